package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"postmortem/analyze/scan"
	"postmortem/analyze/stats"
	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"
)

// A Risk is the chance that a trial with proposed hyperparameters dies, as far as a study tells.
type Risk struct {
	Study   string          `json:"study"`
	Params  []ProposedParam `json:"params"` // by name
	Lost    float64         `json:"lost"`   // chance to be lost to any class
	CI      stats.Interval  `json:"ci"`     // 95 %
	Classes []ClassRisk     `json:"classes"`
}

// A ProposedParam is one proposed value.
type ProposedParam struct {
	Param string `json:"param"`
	Value any    `json:"value"`
	// Untried says that no trial of the study had the value, or one beyond it: what is said of it is
	// extrapolated.
	Untried bool `json:"untried"`
}

// A ClassRisk is the chance to die of one class.
type ClassRisk struct {
	Class  string         `json:"class"`
	Rate   float64        `json:"rate"`
	CI     stats.Interval `json:"ci"` // 95 %, Wilson
	Failed int            `json:"failed"`
	N      int            `json:"n"`
	From   RiskFrom       `json:"from"`
	// Conditions are the rule's that the rate is from; Open those of its conditions that the proposal leaves
	// open, so that the rate is that of the trials that meet the others.
	Conditions []Condition `json:"conditions"`
	Open       []Condition `json:"open"`
	Context    []Context   `json:"context"` // circumstances that the rate also hangs on
}

// RiskFrom says what a chance rests on.
type RiskFrom string

// What a chance can rest on.
const (
	FromRule RiskFrom = "rule"
	FromBase RiskFrom = "base" // the trials outside of every rule that the proposal does not meet
)

// A RiskError is a proposal that cannot be weighed.
type RiskError struct{ Msg string }

func (e *RiskError) Error() string { return e.Msg }

// Propose weighs a proposal, which maps names of hyperparameters to values as a person writes them, by one
// study of the timeline. Its errors are RiskErrors.
func Propose(tl *timeline.Timeline, cat *failure.Catalogue, study string, values map[string]string) (*Risk, error) {
	i := slices.IndexFunc(tl.Studies, func(s timeline.Study) bool { return s.Name == study })
	if i < 0 {
		return nil, &RiskError{fmt.Sprintf("no study %q", study)}
	}
	r := newRun(tl, cat)
	r.incidents()
	r.fates()
	g := r.grid(&tl.Studies[i])
	g.fill(r)
	p, err := g.proposal(values)
	if err != nil {
		return nil, err
	}
	blames, culprits, contexts := r.culprits(r.failures(r.losses()))
	out := &Risk{Study: study, Params: p.list(), Classes: []ClassRisk{}}
	var rates []float64
	var cis []stats.Interval
	for k := range blames {
		if b := &blames[k]; b.Study == study {
			c := p.risk(b, culprits)
			for _, x := range contexts {
				if x.Study == study && x.Class == b.Class {
					c.Context = append(c.Context, x)
				}
			}
			out.Classes = append(out.Classes, c)
			rates, cis = append(rates, c.Rate), append(cis, c.CI)
		}
	}
	out.Lost, out.CI = stats.AnyOf(rates, cis)
	slices.SortStableFunc(out.Classes, func(a, b ClassRisk) int { return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(a.Class, b.Class)) })
	return out, nil
}

// A proposal is what is known of a trial that has not run.
type proposal struct {
	grid   *grid
	values map[string]proposed
}

type proposed struct {
	value   timeline.Choice
	untried bool
}

// proposal reads values by the columns that they are of.
func (g *grid) proposal(values map[string]string) (*proposal, error) {
	p := &proposal{g, map[string]proposed{}}
	for name, text := range values {
		i := slices.IndexFunc(g.cols, func(c gridColumn) bool { return c.Name == name && c.Role == scan.Parameter })
		if i < 0 {
			return nil, &RiskError{fmt.Sprintf("study %q has no hyperparameter %q; it has %s", g.study.Name, name, strings.Join(g.paramNames(), ", "))}
		}
		v, err := g.cols[i].read(text)
		if err != nil {
			return nil, err
		}
		p.values[name] = v
	}
	return p, nil
}

func (g *grid) paramNames() []string {
	var out []string
	for _, c := range g.cols {
		if c.Role == scan.Parameter {
			out = append(out, c.Name)
		}
	}
	return out
}

// read finds the value of a column that a text means.
func (c *gridColumn) read(text string) (proposed, error) {
	if !c.Ordered() {
		for _, v := range c.choices {
			if v.Text == text || v.Type != timeline.ChoiceString && strings.EqualFold(v.Text, text) {
				return proposed{value: v}, nil
			}
		}
		return proposed{timeline.Choice{Type: timeline.ChoiceString, Text: text}, true}, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != f {
		return proposed{}, &RiskError{fmt.Sprintf("%s=%s: the study's values are numbers, from %s to %s", c.Name, text, timeline.FormatFloat(c.Values[0]), timeline.FormatFloat(c.Values[len(c.Values)-1]))}
	}
	v := timeline.Choice{Type: timeline.ChoiceFloat, Text: text, Num: f}
	if c.integer && f == float64(int64(f)) {
		v.Type = timeline.ChoiceInt
	}
	return proposed{v, f < c.Values[0] || f > c.Values[len(c.Values)-1]}, nil
}

func (p *proposal) list() []ProposedParam {
	out := []ProposedParam{}
	for name, v := range p.values {
		out = append(out, ProposedParam{name, v.value.Any(), v.untried})
	}
	slices.SortFunc(out, func(a, b ProposedParam) int { return cmp.Compare(a.Param, b.Param) })
	return out
}

// An answer says whether a proposal meets a condition; open where it does not say.
type answer uint8

const (
	no answer = iota
	yes
	open
)

// meets asks whether the proposal meets a condition on one of the class's columns.
func (p *proposal) meets(c scan.Condition, col *gridColumn) answer {
	names := []string{col.Name}
	switch col.Role {
	case scan.Product:
		names = col.factors[:]
	case scan.Context, scan.Order:
		return open
	}
	v, product := timeline.Choice{}, 1.0
	for _, name := range names {
		x, known := p.values[name]
		if !known {
			return open
		}
		v = x.value
		product *= v.Num
	}
	if col.meets(c, v, product) {
		return yes
	}
	return no
}

// risk is the chance of one class: by the surest rule that the proposal meets, else by one that it may meet,
// else by the trials outside of the rules that it does not meet.
func (p *proposal) risk(b *Blame, culprits []Culprit) ClassRisk {
	out := ClassRisk{Class: b.Class, From: FromBase, Conditions: []Condition{}, Open: []Condition{}, Context: []Context{}}
	outside := make([]bool, len(b.table.rows))
	for i := range outside {
		outside[i] = true
	}
	var met *Culprit
	var metOpen []scan.Condition
	for k := range culprits {
		c := &culprits[k]
		if c.Study != b.Study || c.Class != b.Class || !c.Claimed {
			continue
		}
		var left []scan.Condition
		decided := 0
		fails := slices.ContainsFunc(c.rule, func(x scan.Condition) bool {
			switch p.meets(x, b.table.cols[x.Column]) {
			case no:
				return true
			case open:
				left = append(left, x)
			default:
				decided++
			}
			return false
		})
		if fails {
			for i, in := range c.rows {
				outside[i] = outside[i] && !in
			}
			continue
		}
		if decided == 0 { // it may be in the region or not, as the trials were
			out.Open = append(out.Open, c.Conditions...)
			continue
		}
		if met == nil || len(left) == 0 && (len(metOpen) > 0 || c.Rate > met.Rate) {
			met, metOpen = c, left
		}
	}
	if met == nil {
		out.count(b, outside)
		return out
	}
	out.From, out.Conditions, out.Open = FromRule, met.Conditions, append([]Condition{}, b.table.conditions(metOpen)...)
	out.count(b, b.table.among(slices.DeleteFunc(slices.Clone(met.rule), func(x scan.Condition) bool {
		return slices.ContainsFunc(metOpen, func(o scan.Condition) bool { return o.Column == x.Column && o.Op == x.Op })
	})))
	return out
}

// among says which of the rows meet all conditions.
func (b *blamed) among(conds []scan.Condition) []bool {
	in := b.inside(conds)
	out := make([]bool, len(b.rows))
	for k, i := range b.rows {
		out[k] = in[i]
	}
	return out
}

// count takes the rate from some of a class's rows.
func (c *ClassRisk) count(b *Blame, rows []bool) {
	for i, in := range rows {
		if in {
			c.N++
			if b.table.hit[i] {
				c.Failed++
			}
		}
	}
	c.Rate, c.CI = share(c.Failed, c.N), stats.Wilson(c.Failed, c.N)
}
