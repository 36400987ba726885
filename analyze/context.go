package analyze

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"postmortem/analyze/scan"
	"postmortem/ingest/timeline"
)

// The circumstances of a trial: when in the study it ran, how long its process had run, and every user
// attribute with few values, such as the worker, the card or the commit.

// Factors of the contract that are no user attributes.
const (
	factorOrder  = "order"
	factorUptime = "uptime" // trials that the process had begun before
	factorWorker = "worker"
	factorPID    = "pid"
)

// circumstances makes a column of each.
func (g *grid) circumstances(r *run) {
	attrs := g.attributes()
	if attrs[factorWorker] == nil {
		attrs[factorWorker] = g.texts(func(t *timeline.Trial) string { return t.Worker })
	}
	if attrs[factorPID] == nil {
		attrs[factorPID] = g.texts(func(t *timeline.Trial) string {
			if t.Process < 0 || r.tl.Processes[t.Process].PID == 0 {
				return ""
			}
			return strconv.Itoa(r.tl.Processes[t.Process].PID)
		})
	}
	names := slices.SortedFunc(maps.Keys(attrs), func(a, b string) int { return cmp.Or(cmp.Compare(suspicion(b), suspicion(a)), cmp.Compare(a, b)) })
	for _, name := range names {
		g.circumstance(name, attrs[name])
	}
	order := gridColumn{Column: scan.Column{Name: factorOrder, Role: scan.Order, Temporal: true}, integer: true}
	for i := range g.study.Trials {
		order.Values = append(order.Values, float64(g.study.Trials[i].Number))
		order.Codes = append(order.Codes, int32(i))
	}
	g.cols = append(g.cols, order)
	if c := g.ordered(factorUptime, r.trialsBefore(g.study)); len(c.Values) > 5 {
		c.Role, c.Temporal, c.integer = scan.Context, true, true
		if o := &g.cols[len(g.cols)-1]; grows(c.Codes) >= inseparable {
			o.alike, c.alike = []string{factorUptime}, []string{factorOrder}
		}
		g.cols = append(g.cols, c)
	}
}

// inseparable is the correlation above which uptime cannot be told from the order of the trials: nothing was
// restarted.
const inseparable = 0.9

// grows is the correlation of a column's codes with the order of the rows.
func grows(codes []int32) float64 {
	var n, sx, sy, sxx, syy, sxy float64
	for i, k := range codes {
		if k >= 0 {
			x, y := float64(i), float64(k)
			n, sx, sy, sxx, syy, sxy = n+1, sx+x, sy+y, sxx+x*x, syy+y*y, sxy+x*y
		}
	}
	if v := (n*sxx - sx*sx) * (n*syy - sy*sy); v > 0 {
		return (n*sxy - sx*sy) / math.Sqrt(v)
	}
	return 0
}

// suspicion orders circumstances that split the trials alike by which is the likelier cause: a card breaks
// sooner than a process number.
func suspicion(name string) int {
	return slices.Index([]string{factorPID, factorWorker, "host", "hostname", "gpu_id", "gpu"}, name)
}

// circumstance adds a column, unless it has too many values, is a hyperparameter in another guise, or splits
// the trials as another circumstance does.
func (g *grid) circumstance(name string, texts *texts) {
	c, ok := nominal(name, texts.of, texts.choices)
	if !ok || c.Levels > maxContext {
		return
	}
	c.Role = scan.Context
	for i := range g.cols {
		o := &g.cols[i]
		switch {
		case o.Role == scan.Parameter && o.size() <= maxContext && o.size()*rowsPerValue <= len(c.Codes) && tells(o, &c):
			return
		case o.Role == scan.Context && tells(o, &c) && tells(&c, o):
			o.alike = append(o.alike, name)
			return
		}
	}
	c.Temporal = changes(c.Codes)*10 < len(c.Codes)
	g.cols = append(g.cols, c)
}

// rowsPerValue is how many trials a hyperparameter's value must have on average before it counts that the
// value always tells the circumstance: among few trials it does by chance.
const rowsPerValue = 5

// size is the number of different values.
func (c *gridColumn) size() int { return c.Levels + len(c.Values) }

// tells says whether a column's value always tells another's.
func tells(a, b *gridColumn) bool {
	of := map[int32]int32{}
	for i, k := range a.Codes {
		if v, known := of[k]; known && v != b.Codes[i] {
			return false
		}
		of[k] = b.Codes[i]
	}
	return true
}

// changes counts how often a column's value is another one than the row's before.
func changes(codes []int32) int {
	n := 0
	for i := 1; i < len(codes); i++ {
		if codes[i] != codes[i-1] {
			n++
		}
	}
	return n
}

// texts are values of trials that are names, even where they are numbers: a worker's number has no order.
type texts struct {
	of      []float64 // by trial the place in choices; NaN for none
	choices []timeline.Choice
	at      map[string]int
}

func newTexts(trials int) *texts { return &texts{of: unset(trials), at: map[string]int{}} }

// add enters a trial's text, which is written as JSON or as it is.
func (t *texts) add(trial int, doc string) {
	k, known := t.at[doc]
	if !known {
		k = len(t.choices)
		t.at[doc] = k
		text := timeline.PlainText(doc)
		c := timeline.Choice{Type: timeline.ChoiceString, Text: text}
		if v, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(v, 10) == text {
			c.Type, c.Num = timeline.ChoiceInt, float64(v)
		}
		t.choices = append(t.choices, c)
	}
	t.of[trial] = float64(k)
}

// texts are those of every trial that has one.
func (g *grid) texts(text func(*timeline.Trial) string) *texts {
	out := newTexts(len(g.study.Trials))
	for i := range g.study.Trials {
		if s := text(&g.study.Trials[i]); s != "" {
			out.add(i, s)
		}
	}
	return out
}

// attributes are the user attributes that may be circumstances: few values, and known of nearly all trials
// however they ended, since what only some trials recorded tells of their end.
func (g *grid) attributes() map[string]*texts {
	all := map[string]*texts{}
	for key := range g.everywhere() {
		if !outcome(key) {
			all[key] = newTexts(len(g.study.Trials))
		}
	}
	for i := range g.study.Trials {
		for _, a := range g.study.Trials[i].UserAttrs {
			x := all[a.Key]
			switch {
			case x == nil || a.JSON == "null":
			case a.JSON == "" || a.JSON[0] == '[' || a.JSON[0] == '{' || len(a.JSON) > 200 || len(x.choices) > maxContext:
				delete(all, a.Key)
			default:
				x.add(i, a.JSON)
			}
		}
	}
	return all
}

// everywhere are the attributes that at least nine in ten trials of every final state have.
func (g *grid) everywhere() map[string]bool {
	final := []timeline.State{timeline.Complete, timeline.Pruned, timeline.Fail}
	var all [3]int
	have := map[string]*[3]int{}
	for i := range g.study.Trials {
		t := &g.study.Trials[i]
		s := slices.Index(final, t.State)
		if s < 0 {
			continue
		}
		all[s]++
		for _, a := range t.UserAttrs {
			n := have[a.Key]
			if n == nil {
				n = new([3]int)
				have[a.Key] = n
			}
			if a.JSON != "null" {
				n[s]++
			}
		}
	}
	out := map[string]bool{}
	for key, n := range have {
		out[key] = !slices.ContainsFunc([]int{0, 1, 2}, func(s int) bool { return n[s]*10 < all[s]*9 })
	}
	maps.DeleteFunc(out, func(_ string, ok bool) bool { return !ok })
	return out
}

// A processKey names a process: by the join with its log, or by what the trial recorded.
type processKey struct {
	process     int
	worker, pid string
}

// processOf is the process that a trial ran in; false where nothing tells.
func processOf(t *timeline.Trial) (processKey, bool) {
	if t.Process >= 0 {
		return processKey{process: t.Process}, true
	}
	k := processKey{-1, timeline.AttrText(t.UserAttrs, "worker", "hostname", "host"), timeline.AttrText(t.UserAttrs, "pid")}
	return k, k.pid != ""
}

// trialsBefore is, for each trial whose process is known, how many trials that process began before it.
func (r *run) trialsBefore(s *timeline.Study) []float64 {
	out := unset(len(s.Trials))
	for _, life := range r.lives(s) {
		for k, i := range life.trials {
			out[i] = float64(k)
		}
	}
	return out
}

// A processLife is a process and the study's trials that it ran.
type processLife struct {
	start  time.Time // of the process where a log tells, else of its first trial
	trials []int     // indices in the study, in order of their starts
}

// lives are the processes that ran trials of a study, by their first trial.
func (r *run) lives(s *timeline.Study) []processLife {
	at := map[processKey]int{}
	var out []processLife
	order := make([]int, len(s.Trials))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(s.Trials[a].Start.Compare(s.Trials[b].Start), cmp.Compare(a, b))
	})
	for _, i := range order {
		t := &s.Trials[i]
		k, ok := processOf(t)
		if !ok || t.Start.IsZero() {
			continue
		}
		l, known := at[k]
		if !known {
			l = len(out)
			at[k] = l
			out = append(out, processLife{start: t.Start})
			if k.process >= 0 {
				if from := r.tl.Processes[k.process].Start; !from.IsZero() && from.Before(t.Start) {
					out[l].start = from
				}
			}
		}
		out[l].trials = append(out[l].trials, i)
	}
	return out
}
