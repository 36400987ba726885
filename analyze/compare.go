package analyze

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"postmortem/analyze/stats"
	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"
)

// A Comparison sets a run against an earlier one: did the fix work. Its JSON form is the contract of
// "compare --format json".
type Comparison struct {
	SchemaVersion int           `json:"schema_version"`
	Runs          []*RunSummary `json:"runs"` // before, after
	Classes       []ClassChange `json:"classes"`
	// Durations is how much longer a finished trial takes afterwards: the median of all differences.
	Durations Shift    `json:"trial_seconds"`
	Changes   []Change `json:"change_list"`
	Named     []string `json:"changes"` // the same in a line each
	// Attribution says whether the effect can be told to one change: single-change, several-changes, or
	// no-change where nothing that was recorded differs.
	Attribution string `json:"attribution"`
	Checks      []any  `json:"checks"` // not asked by this version

	// Of options instead of runs: the recommended one first, then as they would be fallen back to.
	Options     []Option `json:"options"`
	Recommended string   `json:"recommended,omitempty"` // the fastest that finished, once it is under way
	// LeastPlanned takes the least time for the epochs that were planned, compiling included.
	LeastPlanned string `json:"least_planned,omitempty"`
}

// A RunSummary is what a run counts in a comparison.
type RunSummary struct {
	Name             string         `json:"name"`
	Trials           int            `json:"trials"` // that finished
	Completed        int            `json:"completed"`
	Lost             int            `json:"lost"`
	LostByClass      map[string]int `json:"lost_by_class"`
	TrialHours       float64        `json:"trial_hours"`
	CompletedPerHour float64        `json:"completed_per_hour"` // of wall time
	Workers          int            `json:"workers"`            // most at once; 0 where no log tells
	Resets           int            `json:"gpu_resets"`
	PeakBytes        int64          `json:"peak_bytes"` // of the card; 0 where nothing tells
	MemoryVerdict    MemoryVerdict  `json:"memory_verdict"`

	run      *run
	findings *Findings
	ended    []*timeline.Trial // finished trials in the order in which they ended
}

// A ClassChange is one class before and after. Only trials in which an error of it began are counted.
type ClassChange struct {
	Class      string         `json:"class"`
	Before     Count          `json:"before"`
	After      Count          `json:"after"`
	Difference float64        `json:"difference"` // of the rates, after less before
	CI         stats.Interval `json:"ci"`         // 95 %, Newcombe
	P          float64        `json:"p"`          // Fisher, two-sided, mid-p
	Q          float64        `json:"q"`          // over all classes, Benjamini and Hochberg
	Verdict    ChangeVerdict  `json:"verdict"`
	// Per hour of trial time.
	RateRatio *float64 `json:"rate_ratio,omitempty"` // after over before; absent where there was none before
	RateP     float64  `json:"rate_p"`
	// Needed is how many more trials like those of the later run would tell, where there is no evidence; 0 where
	// none would.
	Needed int `json:"trials_needed"`
	// Mixed says that the runs tried other hyperparameters, and that within the same part of the search space
	// nothing is left of the difference; MixedP is the chance within.
	Mixed  bool     `json:"mix_explains"`
	MixedP *float64 `json:"mix_p,omitempty"`
}

// A Count is a class in one run.
type Count struct {
	Failed  int            `json:"failed"`
	N       int            `json:"n"`
	Rate    float64        `json:"rate"`
	CI      stats.Interval `json:"ci"`              // 95 %, Wilson
	Longest int            `json:"longest_without"` // most trials in a row, by their ends, in which none began
}

// A ChangeVerdict says what became of a class.
type ChangeVerdict string

// The verdicts of the contract.
const (
	Fixed      ChangeVerdict = "fixed" // none is left, and the old rate would have shown
	Better     ChangeVerdict = "better"
	NoEvidence ChangeVerdict = "no-evidence"
	Worse      ChangeVerdict = "worse"
)

// A Shift is a difference between two samples.
type Shift struct {
	Before float64 `json:"before_median"`
	After  float64 `json:"after_median"`
	Shift  float64 `json:"shift"`
	P      float64 `json:"p"` // Mann and Whitney, two-sided
}

// A Change is something that differs between the runs.
type Change struct {
	What   string `json:"what"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Summarize reads a run for a comparison.
func Summarize(name string, tl *timeline.Timeline, cat *failure.Catalogue) *RunSummary {
	r := newRun(tl, cat)
	r.incidents()
	r.fates()
	s := &RunSummary{Name: name, LostByClass: map[string]int{}, Workers: r.mostAtOnce(), run: r, findings: Run(tl, cat)}
	r.eachTrial(func(_ *timeline.Study, t *timeline.Trial) {
		f := r.fateOf[t]
		switch f.kind {
		case completed:
			s.Completed++
		case lost:
			s.Lost++
			s.LostByClass[f.in.root.Class]++
		case byPruner:
		default:
			return
		}
		s.Trials++
		s.TrialHours += took(t).Hours()
		s.ended = append(s.ended, t)
	})
	slices.SortStableFunc(s.ended, func(a, b *timeline.Trial) int { return cmp.Or(a.End.Compare(b.End), cmp.Compare(a.Number, b.Number)) })
	if from, to := r.from, r.last; !from.IsZero() && to.After(from) {
		s.CompletedPerHour = float64(s.Completed) / to.Sub(from).Hours()
	}
	for _, e := range tl.Events {
		if e.Kind == timeline.GPUReset {
			s.Resets++
		}
	}
	for _, g := range s.findings.Memory.PerGPU {
		s.PeakBytes = max(s.PeakBytes, g.PeakUsedBytes)
	}
	s.MemoryVerdict = s.findings.Memory.Verdict
	return s
}

// Compare sets the later run against the earlier one.
func Compare(before, after *RunSummary) *Comparison {
	c := &Comparison{SchemaVersion: 1, Runs: []*RunSummary{before, after}, Classes: []ClassChange{}, Changes: differences(before, after), Named: []string{}, Checks: []any{}, Options: []Option{}}
	names := maps.Clone(before.LostByClass)
	maps.Copy(names, after.LostByClass)
	for _, class := range slices.Sorted(maps.Keys(names)) {
		c.Classes = append(c.Classes, change(class, before, after))
	}
	var p []float64
	for _, x := range c.Classes {
		p = append(p, x.P)
	}
	for i, q := range stats.BenjaminiHochberg(p) {
		c.Classes[i].Q = q
		c.Classes[i].judge()
	}
	slices.SortStableFunc(c.Classes, func(a, b ClassChange) int {
		return cmp.Or(cmp.Compare(b.Before.Failed+b.After.Failed, a.Before.Failed+a.After.Failed), cmp.Compare(a.Class, b.Class))
	})
	x, y := before.durations(), after.durations()
	shift, _, pd := stats.MannWhitney(y, x)
	c.Durations = Shift{stats.Median(x), stats.Median(y), shift, pd}
	for _, d := range c.Changes {
		c.Named = append(c.Named, fmt.Sprintf("%s: %s → %s", d.What, d.Before, d.After))
	}
	c.Attribution = "several-changes"
	switch len(c.Changes) {
	case 0:
		c.Attribution = "no-change"
	case 1:
		c.Attribution = "single-change"
	}
	return c
}

// durations are those of the completed trials, in seconds.
func (s *RunSummary) durations() []float64 {
	var out []float64
	for _, t := range s.ended {
		if s.run.fateOf[t].kind == completed && took(t) > 0 {
			out = append(out, seconds(took(t)))
		}
	}
	return out
}

// count counts a class.
func (s *RunSummary) count(class string) Count {
	c := Count{N: s.Trials}
	row := 0
	for _, t := range s.ended {
		if row++; s.run.fateOf[t].began(class, t) {
			c.Failed++
			row = 0
		}
		c.Longest = max(c.Longest, row)
	}
	c.Rate, c.CI = share(c.Failed, c.N), stats.Wilson(c.Failed, c.N)
	return c
}

// change compares a class.
func change(class string, before, after *RunSummary) ClassChange {
	x := ClassChange{Class: class, Before: before.count(class), After: after.count(class)}
	x.Difference = x.After.Rate - x.Before.Rate
	x.CI = stats.Newcombe(x.After.Failed, x.After.N, x.Before.Failed, x.Before.N)
	_, x.P = stats.Fisher(x.After.Failed, x.After.N, x.Before.Failed, x.Before.N)
	ratio, p := stats.RateRatio(x.After.Failed, after.TrialHours, x.Before.Failed, before.TrialHours)
	if x.RateP = p; !math.IsInf(ratio, 0) {
		x.RateRatio = &ratio
	}
	x.mix(before, after)
	return x
}

// changed is the q below which a difference is taken for one.
const changed = 0.05

// judge gives the verdict.
func (x *ClassChange) judge() {
	x.Verdict = NoEvidence
	switch {
	case x.Q > changed || x.Mixed:
	case x.Difference > 0:
		x.Verdict = Worse
	case x.After.Failed == 0 && x.After.N >= stats.CleanTrials(x.Before.Rate):
		x.Verdict = Fixed
	default:
		x.Verdict = Better
	}
	if x.Verdict == NoEvidence && !x.Mixed && x.Difference != 0 {
		x.Needed = max(0, needed(x.Before.Rate, x.After.Rate)-x.After.N)
		if x.After.Failed == 0 {
			x.Needed = max(0, stats.CleanTrials(x.Before.Rate)-x.After.N)
		}
	}
}

// needed is how many trials a run each takes to tell two rates apart in four cases of five at the 5 % level (the
// normal approximation).
func needed(p, q float64) int {
	const z = 1.959963984540054 + 0.8416212335729143
	return int(math.Ceil(z * z * (p*(1-p) + q*(1-q)) / ((p - q) * (p - q))))
}

// mix asks whether anything is left of a difference when trials are compared within the region of the search
// space in which the class kills, and without.
func (x *ClassChange) mix(before, after *RunSummary) {
	for _, s := range []*RunSummary{before, after} {
		i := slices.IndexFunc(s.findings.Culprits, func(c Culprit) bool {
			return c.Class == x.Class && c.Claimed && !slices.ContainsFunc(c.Conditions, func(k Condition) bool { return strings.HasPrefix(k.Param, "@") })
		})
		if i < 0 {
			continue
		}
		var strata [2]stats.Stratum
		for k, run := range []*RunSummary{before, after} {
			for _, t := range run.ended {
				st := &strata[boolInt(holdAll(s.findings.Culprits[i].Conditions, t))]
				hit := run.run.fateOf[t].began(x.Class, t)
				st.N++
				st.Hits += boolInt(hit)
				st.Inside += k
				st.Both += k * boolInt(hit)
			}
		}
		up := math.Exp(stats.LogPGreater(strata[:]))
		for k := range strata { // fewer is more of the others
			strata[k].Inside, strata[k].Both = strata[k].N-strata[k].Inside, strata[k].Hits-strata[k].Both
		}
		p := math.Min(1, 2*math.Min(up, math.Exp(stats.LogPGreater(strata[:]))))
		x.MixedP = &p
		x.Mixed = x.P <= changed && p > changed
		return
	}
}

// holdAll says whether a trial of any run meets conditions on hyperparameters.
func holdAll(conds []Condition, t *timeline.Trial) bool {
	value := func(name string) (timeline.Choice, bool) {
		for _, p := range t.Params {
			if p.Name == name {
				v := p.Value()
				return v, v.Type != timeline.ChoiceInvalid
			}
		}
		return timeline.Choice{}, false
	}
	for _, c := range conds {
		v, ok := value(c.Param)
		if len(c.Product) == 2 {
			a, okA := value(c.Product[0])
			b, okB := value(c.Product[1])
			v, ok = timeline.Choice{Type: timeline.ChoiceFloat, Num: a.Num * b.Num}, okA && okB
		}
		if !ok || !c.met(v) {
			return false
		}
	}
	return true
}

// met says whether a value meets the condition.
func (c Condition) met(v timeline.Choice) bool {
	bound := func() float64 {
		switch x := c.Value.(type) {
		case int64:
			return float64(x)
		case float64:
			return x
		}
		return math.NaN()
	}
	same := func(x any) bool {
		if f, ok := x.(float64); ok && v.Type != timeline.ChoiceString {
			return v.Num == f
		}
		if n, ok := x.(int64); ok && v.Type != timeline.ChoiceString {
			return v.Num == float64(n)
		}
		return v.Any() == x
	}
	switch c.Op {
	case OpAtLeast:
		return v.Num >= bound()
	case OpAtMost:
		return v.Num <= bound()
	case OpNot:
		return !same(c.Value)
	case OpIn:
		list, _ := c.Value.([]any)
		return slices.ContainsFunc(list, same)
	case OpPresent:
		return true
	}
	return same(c.Value)
}

// differences lists what differs between two runs: workers (most at once), gpu_resets (whether any was seen), what
// they said they ran with, by its key, and space.NAME, what a hyperparameter was drawn from.
func differences(before, after *RunSummary) []Change {
	out := []Change{}
	add := func(what, a, b string) {
		if a != b {
			out = append(out, Change{what, a, b})
		}
	}
	if before.Workers > 0 && after.Workers > 0 { // else a run has no logs, and nothing is known of it
		add("workers", strconv.Itoa(before.Workers), strconv.Itoa(after.Workers))
		add("gpu_resets", strconv.FormatBool(before.Resets > 0), strconv.FormatBool(after.Resets > 0))
	}
	all := func(prefix string, a, b map[string]string) {
		if len(a) == 0 || len(b) == 0 {
			return
		}
		keys := maps.Clone(a)
		maps.Copy(keys, b)
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			add(prefix+k, cmp.Or(a[k], notSeen), cmp.Or(b[k], notSeen))
		}
	}
	all("", before.settings(), after.settings())
	all("space.", before.space(), after.space())
	return out
}

// notSeen stands for a value that a run does not tell.
const notSeen = "not seen"

// settings are the values that the run said it ran with, by key.
func (s *RunSummary) settings() map[string]string {
	all := map[string][]string{}
	for _, x := range s.findings.Settings {
		v := x.Value
		if v == "" {
			v = "not set"
		}
		all[x.Key] = append(all[x.Key], v)
	}
	out := map[string]string{}
	for k, v := range all {
		out[k] = strings.Join(v, ", ")
	}
	return out
}

// space is the range that each hyperparameter was drawn from, the last one where it changed.
func (s *RunSummary) space() map[string]string {
	out := map[string]string{}
	s.run.eachTrial(func(_ *timeline.Study, t *timeline.Trial) {
		for _, p := range t.Params {
			if d := p.Dist; d != nil {
				var choices []string
				for _, c := range d.Choices {
					choices = append(choices, c.Text)
				}
				if d.Kind == timeline.Categorical {
					out[p.Name] = strings.Join(choices, ", ")
				} else {
					out[p.Name] = fmt.Sprintf("%s %s to %s", d.Kind, timeline.FormatFloat(d.Low), timeline.FormatFloat(d.High))
				}
			}
		}
	})
	return out
}
