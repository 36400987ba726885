package analyze

import (
	"math"
	"slices"

	"postmortem/analyze/scan"
	"postmortem/analyze/stats"
	"postmortem/ingest/timeline"
)

// A Cut is what narrowing the search space would have done: no trial that meets all conditions would have
// been tried. It is in hindsight, and it is of hyperparameters only.
type Cut struct {
	Conditions []Condition `json:"conditions"` // what is excluded
	Weight
	LosesTop10   *float64 `json:"loses_top10"` // share of the ten best trials; null with several objectives or nothing completed
	Top10        int      `json:"top10"`       // how many of them
	Top10Of      int      `json:"top10_of"`    // ten, or fewer where fewer completed
	Echoes       int      `json:"avoids_echoes"`
	SecondsSaved float64  `json:"seconds_saved"` // of the trials lost to the avoided errors, echoes included
	Space        *Space   `json:"space"`         // what is left of the parameter; null where the cut is on more than one
}

// A Space is what a cut leaves of one parameter's range.
type Space struct {
	Param   string  `json:"param"`
	Kind    string  `json:"kind"` // float, int or categorical
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	Log     bool    `json:"log"`
	Step    float64 `json:"step"`    // 0 = none
	Choices []any   `json:"choices"` // of a categorical
}

// A Weight sets what a cut avoids against what it loses.
type Weight struct {
	Avoids           float64        `json:"avoids"` // share of the class's failures
	AvoidsCI         stats.Interval `json:"avoids_ci"`
	AvoidsTrials     int            `json:"avoids_trials"`
	LosesCompleted   float64        `json:"loses_completed"` // share of the study's completed trials
	LosesCompletedCI stats.Interval `json:"loses_completed_ci"`
	CompletedTrials  int            `json:"loses_trials"`
}

// weigh counts a cut that holds some of the failures and some of the completed trials.
func weigh(avoided, failed, cost, completed int) Weight {
	return Weight{share(avoided, failed), stats.Wilson(avoided, failed), avoided, share(cost, completed), stats.Wilson(cost, completed), cost}
}

// A cutter weighs cuts of one class in one study.
type cutter struct {
	*grid
	blame *Blame
	best  []int // indices of the ten best trials, best first
	done  []int // indices of the completed trials
}

func (g *grid) cutter(b *Blame) *cutter {
	c := &cutter{grid: g, blame: b}
	s := g.study
	for i := range s.Trials {
		if g.fates[i].kind == completed {
			c.done = append(c.done, i)
		}
	}
	if len(s.Directions) != 1 {
		return c
	}
	better := func(a, b float64) bool {
		return s.Directions[0] == timeline.Maximize && a > b || s.Directions[0] != timeline.Maximize && a < b
	}
	for _, i := range c.done {
		t := &s.Trials[i]
		if len(t.Values) != 1 || t.Values[0] != t.Values[0] || infeasible(t) {
			continue
		}
		at := len(c.best)
		for at > 0 && better(t.Values[0], s.Trials[c.best[at-1]].Values[0]) {
			at--
		}
		if at < topTrials {
			c.best = slices.Insert(c.best, at, i)
			c.best = c.best[:min(topTrials, len(c.best))]
		}
	}
	return c
}

// topTrials is how many of the best trials are watched over.
const topTrials = 10

// inside says which of the study's trials meet all conditions.
func (b *blamed) inside(conds []scan.Condition) []bool {
	in := make([]bool, len(b.grid.study.Trials))
	for i := range in {
		in[i] = true
	}
	for _, c := range conds {
		meets := c.Meeter()
		codes := b.cols[c.Column].Codes
		for i := range in {
			in[i] = in[i] && meets(codes[i])
		}
	}
	return in
}

// cut weighs the exclusion of all trials that meet the conditions.
func (c *cutter) cut(conds []scan.Condition) Cut {
	t := c.blame.table
	in := t.inside(conds)
	x := Cut{Conditions: t.conditions(conds), Weight: c.weigh(in, t.failures(), c.done), Top10Of: len(c.best)}
	for _, i := range c.best {
		if in[i] {
			x.Top10++
		}
	}
	if len(c.best) > 0 {
		s := share(x.Top10, x.Top10Of)
		x.LosesTop10 = &s
	}
	x.Echoes, x.SecondsSaved = c.saved(in)
	if len(conds) == 1 {
		x.Space = t.space(conds[0])
	}
	return x
}

// space is what is left of a parameter's last distribution without the values that meet a condition: up to the
// nearest value that was tried and does not meet it. It is nil where that is no range, or nothing.
func (b *blamed) space(c scan.Condition) *Space {
	col := b.cols[c.Column]
	d := b.grid.distribution(col.Name)
	if d == nil || col.Role != scan.Parameter || c.Op == scan.Present || c.Op == scan.Equal && d.Kind != timeline.Categorical {
		return nil
	}
	s := &Space{Param: col.Name, Kind: string(d.Kind), Low: d.Low, High: d.High, Log: d.Log, Step: d.Step, Choices: []any{}}
	if d.Kind == timeline.Categorical {
		for _, v := range d.Choices {
			if !col.meets(c, v, v.Num) {
				s.Choices = append(s.Choices, v.Any())
			}
		}
		if len(s.Choices) == 0 {
			return nil
		}
		return s
	}
	next := b.next(col, c)
	switch {
	case next == nil:
		return nil
	case c.Op == scan.AtLeast:
		s.High = *next
	case c.Op == scan.AtMost:
		s.Low = *next
	}
	return s
}

// distribution is what a parameter was last drawn from; nil where nothing tells.
func (g *grid) distribution(name string) *timeline.Distribution {
	for i := len(g.study.Trials) - 1; i >= 0; i-- {
		for _, p := range g.study.Trials[i].Params {
			if p.Name == name {
				return p.Dist
			}
		}
	}
	return nil
}

// meets says whether a value, tried or not, meets a condition on the column.
func (c *gridColumn) meets(cond scan.Condition, v timeline.Choice, number float64) bool {
	switch cond.Op {
	case scan.AtLeast:
		return number >= c.Values[cond.Code]
	case scan.AtMost:
		return number <= c.Values[cond.Code]
	case scan.Equal:
		return number == c.Values[cond.Code]
	case scan.In:
		l := slices.Index(c.choices, v)
		return l >= 0 && slices.Contains(cond.Set, int32(l))
	}
	return true
}

// failures are the indices of the trials that failed.
func (b *blamed) failures() []int {
	var out []int
	for k, i := range b.rows {
		if b.hit[k] {
			out = append(out, int(i))
		}
	}
	return out
}

// weigh counts the failures and the completed trials that are inside.
func (c *cutter) weigh(in []bool, failures, done []int) Weight {
	n := func(of []int) int {
		k := 0
		for _, i := range of {
			if in[i] {
				k++
			}
		}
		return k
	}
	return weigh(n(failures), c.blame.Failed, n(done), len(c.done))
}

// saved counts the echoes of the errors that began inside, and the time of all trials lost to them.
func (c *cutter) saved(in []bool) (echoes int, sec float64) {
	began := map[*incident]int{}
	for _, i := range c.blame.table.failures() {
		if in[i] {
			began[c.fates[i].in] = i
		}
	}
	for i, f := range c.fates {
		if f.kind != lost {
			continue
		}
		if root, avoided := began[f.in]; avoided {
			sec += seconds(took(&c.study.Trials[i]))
			if root != i {
				echoes++
			}
		}
	}
	return echoes, sec
}

// A milder cut must avoid at least milderAvoids of what the whole cut avoids and lose at most milderLoses of
// the completed trials that it loses.
const (
	milderAvoids = 0.8
	milderLoses  = 0.5
	dearCut      = 5 // completed trials that a cut may cost before a milder one is looked for
)

// milder looks for a cut with one condition drawn tighter that does nearly as well; nil when there is none.
func (c *cutter) milder(conds []scan.Condition, whole Cut) *Cut {
	if whole.CompletedTrials < dearCut && whole.Top10 == 0 {
		return nil // cheap enough
	}
	t := c.blame.table
	in := t.inside(conds)
	outside := func(i int) bool { return !in[i] }
	failures, done := slices.DeleteFunc(t.failures(), outside), slices.DeleteFunc(slices.Clone(c.done), outside)
	var best []scan.Condition
	gain := math.Inf(-1)
	for j, cond := range conds {
		for _, tighter := range c.tighter(cond) {
			meets, codes := tighter.Meeter(), t.cols[cond.Column].Codes
			for _, of := range [][]int{failures, done} {
				for _, i := range of {
					in[i] = meets(codes[i])
				}
			}
			w := c.weigh(in, failures, done)
			if float64(w.AvoidsTrials) >= milderAvoids*float64(whole.AvoidsTrials) && float64(w.CompletedTrials) <= milderLoses*float64(whole.CompletedTrials) && w.Avoids-w.LosesCompleted > gain {
				best, gain = slices.Clone(conds), w.Avoids-w.LosesCompleted
				best[j] = tighter
			}
		}
	}
	if best == nil {
		return nil
	}
	x := c.cut(best)
	return &x
}

// maxTighter is how many tighter thresholds of one condition are tried.
const maxTighter = 24

// tighter are the conditions that hold for fewer trials than one does, at values that failures have.
func (c *cutter) tighter(cond scan.Condition) []scan.Condition {
	t := c.blame.table
	var out []scan.Condition
	switch cond.Op {
	case scan.In:
		for i := range cond.Set {
			if len(cond.Set) > 1 {
				x := cond
				x.Set = slices.Delete(slices.Clone(cond.Set), i, i+1)
				out = append(out, x)
			}
		}
	case scan.AtLeast, scan.AtMost:
		var codes []int32
		for k, i := range t.rows {
			code := t.cols[cond.Column].Codes[i]
			if t.hit[k] && code >= 0 && (cond.Op == scan.AtLeast && code > cond.Code || cond.Op == scan.AtMost && code < cond.Code) {
				codes = append(codes, code)
			}
		}
		slices.Sort(codes)
		codes = slices.Compact(codes)
		for i := range min(maxTighter, len(codes)) {
			x := cond
			x.Code = codes[i*len(codes)/min(maxTighter, len(codes))]
			out = append(out, x)
		}
	}
	return out
}

// onParams are the conditions that a search space can exclude.
func (b *blamed) onParams(conds []scan.Condition) []scan.Condition {
	return slices.DeleteFunc(slices.Clone(conds), func(c scan.Condition) bool {
		role := b.cols[c.Column].Role
		return role == scan.Context || role == scan.Order
	})
}
