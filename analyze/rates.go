package analyze

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"postmortem/analyze/stats"
	"postmortem/ingest/timeline"
)

// Rates are a class's failure rates per value of every hyperparameter of a study. They count trials
// that ended well (completed or pruned by the pruner) or with a root error of this class. Trials that
// only echoed another one's error say nothing about their own values, and trials lost to another
// class did not get to show whether they would have failed with this one.
type Rates struct {
	Study  string         `json:"study"`
	Class  string         `json:"class"`
	Failed int            `json:"failed"`
	N      int            `json:"n"`
	Rate   float64        `json:"rate"`
	CI     stats.Interval `json:"ci"` // 95 %, Wilson
	Params []ParamRate    `json:"params"`
}

// A ParamRate is one hyperparameter.
type ParamRate struct {
	Param  string      `json:"param"`
	Binned bool        `json:"binned"` // numbers were put into bins of about equal n
	Values []ValueRate `json:"values"`
}

// A ValueRate is the failure rate of one value, or of one bin of values (Low ≤ value ≤ High).
type ValueRate struct {
	Value  string         `json:"value,omitempty"`
	Low    float64        `json:"low"`
	High   float64        `json:"high"`
	Failed int            `json:"failed"`
	N      int            `json:"n"`
	Rate   float64        `json:"rate"`
	CI     stats.Interval `json:"ci"`
}

const (
	costliest   = 2 // how many classes are looked at
	maxDistinct = 8 // numbers with more values than this are binned
	bins        = 4
)

// rates looks at the classes that cost most.
func (r *run) rates(failures []Failure) []Rates {
	out := []Rates{}
	for _, f := range failures[:min(costliest, len(failures))] {
		if len(f.Trials) == 0 {
			continue
		}
		for i := range r.tl.Studies {
			if x, ok := r.rate(&r.tl.Studies[i], f.Class); ok {
				out = append(out, x)
			}
		}
	}
	return out
}

type observation struct {
	trial  *timeline.Trial
	failed bool
}

func (r *run) rate(s *timeline.Study, class string) (Rates, bool) {
	var obs []observation
	x := Rates{Study: s.Name, Class: class, Params: []ParamRate{}}
	for i := range s.Trials {
		t := &s.Trials[i]
		f := r.fateOf[t]
		root := f.began(class, t)
		if f.kind == completed || f.kind == byPruner || root {
			obs = append(obs, observation{t, root})
			if root {
				x.Failed++
			}
		}
	}
	x.N = len(obs)
	if x.Failed == 0 {
		return x, false
	}
	x.Rate, x.CI = float64(x.Failed)/float64(x.N), stats.Wilson(x.Failed, x.N)
	names := map[string]bool{}
	for _, o := range obs {
		for _, p := range o.trial.Params {
			names[p.Name] = true
		}
	}
	for name := range names {
		x.Params = append(x.Params, paramRate(name, obs))
	}
	slices.SortFunc(x.Params, func(a, b ParamRate) int { return cmp.Compare(a.Param, b.Param) })
	return x, true
}

type point struct {
	v      timeline.Choice
	failed bool
}

// paramRate tallies one parameter over the trials that have it.
func paramRate(name string, obs []observation) ParamRate {
	var points []point
	distinct := map[timeline.Choice]bool{}
	numeric := true
	for _, o := range obs {
		for _, p := range o.trial.Params {
			if v := p.Value(); p.Name == name && v.Type != timeline.ChoiceInvalid {
				if math.IsNaN(v.Num) || math.IsInf(v.Num, 0) { // has no place on an axis and no JSON form
					v = timeline.Choice{Type: timeline.ChoiceString, Text: v.Text}
				}
				points = append(points, point{v, o.failed})
				distinct[v] = true
				numeric = numeric && (v.Type == timeline.ChoiceInt || v.Type == timeline.ChoiceFloat)
			}
		}
	}
	sortPoints(points, numeric)
	pr := ParamRate{Param: name, Binned: numeric && len(distinct) > maxDistinct}
	if pr.Binned {
		pr.Values = binned(points)
		return pr
	}
	pr.Values = byValue(points)
	return pr
}

// byValue tallies sorted points value by value.
func byValue(points []point) []ValueRate {
	var out []ValueRate
	for i := 0; i < len(points); {
		v := ValueRate{Value: points[i].v.Text, Low: points[i].v.Num, High: points[i].v.Num}
		first := points[i].v
		for ; i < len(points) && points[i].v == first; i++ {
			v.add(points[i].failed)
		}
		out = append(out, v.done())
	}
	return out
}

// number is a plain number as a value.
func number(f float64) timeline.Choice { return timeline.Choice{Type: timeline.ChoiceFloat, Num: f} }

// sortPoints sorts by value; numbers of either type are numbers.
func sortPoints(points []point, numeric bool) {
	slices.SortStableFunc(points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.v.Type, b.v.Type)*boolInt(!numeric), cmp.Compare(a.v.Num, b.v.Num), cmp.Compare(a.v.Text, b.v.Text))
	})
}

// binned cuts sorted points into bins of about equal size, never between equal values.
func binned(points []point) []ValueRate {
	var out []ValueRate
	n := len(points)
	for b, i := 0, 0; b < bins && i < n; b++ {
		end := max((b+1)*n/bins, i+1)
		for end < n && points[end].v.Num == points[end-1].v.Num {
			end++
		}
		v := ValueRate{Low: points[i].v.Num, High: points[end-1].v.Num}
		for ; i < end; i++ {
			v.add(points[i].failed)
		}
		out = append(out, v.done())
	}
	return out
}

func (v *ValueRate) add(failed bool) {
	v.N++
	if failed {
		v.Failed++
	}
}

func (v ValueRate) done() ValueRate {
	v.Rate, v.CI = float64(v.Failed)/float64(v.N), stats.Wilson(v.Failed, v.N)
	return v
}

// Label is the value as text, or the bin as low – high.
func (v ValueRate) Label() string {
	if v.Value != "" {
		return v.Value
	}
	if v.Low == v.High {
		return short(v.Low)
	}
	return short(v.Low) + " – " + short(v.High)
}

func short(f float64) string { return strconv.FormatFloat(f, 'g', 3, 64) }

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
