package analyze

import (
	"cmp"
	"math"
	"slices"

	"postmortem/analyze/scan"
	"postmortem/ingest/timeline"
)

// A Picture is what a culprit looks like: for one condition the rate along the parameter, for more the plane
// of two of them with the trials that died and those that did not.
type Picture struct {
	Axes []Axis // one or two
	// Bins are rates along the only axis, never across the rule's bounds.
	Bins []ValueRate
	// Points are trials in the plane; of many, a part. They meet the rule's other conditions.
	Points []PlanePoint
	Shown  int // how many of Of trials Points are
	Of     int
	Others []Condition
	// Diagonal asks for the line on which both axes are equal.
	Diagonal bool
}

// An Axis is one parameter.
type Axis struct {
	Param  string
	Log    bool
	Levels []string // of a parameter without order: its positions are 0, 1, 2 …
	Low    float64  // of the values
	High   float64
	// The rule's part of the axis: a range, or of a parameter without order the levels.
	From, To float64
	In       []bool
}

// A PlanePoint is one trial.
type PlanePoint struct {
	X, Y   float64
	Failed bool
}

// maxPoints is how many trials that died, and how many others, a picture shows.
const maxPoints = 300

// picture draws a rule.
func (b *Blame) picture(rule []scan.Condition) *Picture {
	t := b.table
	var cols []int
	for _, c := range rule {
		if !slices.Contains(cols, c.Column) {
			cols = append(cols, c.Column)
		}
	}
	p := &Picture{}
	for _, col := range cols[:min(2, len(cols))] {
		p.Axes = append(p.Axes, t.axis(col, rule))
	}
	if len(cols) == 1 {
		p.Bins = t.along(cols[0], t.among(rule))
		return p
	}
	others := slices.DeleteFunc(slices.Clone(rule), func(c scan.Condition) bool { return c.Column == cols[0] || c.Column == cols[1] })
	p.Others = t.conditions(others)
	in := t.among(others)
	var of [2][]PlanePoint
	for k, i := range t.rows {
		x, y := t.cols[cols[0]].Codes[i], t.cols[cols[1]].Codes[i]
		if in[k] && x >= 0 && y >= 0 {
			pt := PlanePoint{t.cols[cols[0]].at(x), t.cols[cols[1]].at(y), t.hit[k]}
			of[boolInt(pt.Failed)] = append(of[boolInt(pt.Failed)], pt)
		}
	}
	for _, pts := range of {
		p.Of += len(pts)
		n := min(maxPoints, len(pts))
		for k := range n {
			p.Points = append(p.Points, pts[k*len(pts)/n])
		}
	}
	p.Shown = len(p.Points)
	return p
}

// at is a code's place on an axis.
func (c *gridColumn) at(code int32) float64 {
	if c.Ordered() {
		return c.Values[code]
	}
	return float64(code)
}

func (b *blamed) axis(col int, rule []scan.Condition) Axis {
	c := b.cols[col]
	a := Axis{Param: c.Name, From: math.Inf(-1), To: math.Inf(1), Low: math.Inf(1), High: math.Inf(-1)}
	for _, i := range b.rows {
		if k := c.Codes[i]; k >= 0 {
			a.Low, a.High = min(a.Low, c.at(k)), max(a.High, c.at(k))
		}
	}
	for _, v := range c.choices {
		a.Levels = append(a.Levels, v.Text)
	}
	a.In = make([]bool, len(a.Levels))
	for i := range a.In {
		a.In[i] = true
	}
	for _, r := range rule {
		if r.Column != col {
			continue
		}
		switch r.Op {
		case scan.AtLeast:
			a.From = c.Values[r.Code]
		case scan.AtMost:
			a.To = c.Values[r.Code]
		case scan.Equal:
			a.From, a.To = c.Values[r.Code], c.Values[r.Code]
		case scan.In:
			for l := range a.In {
				a.In[l] = slices.Contains(r.Set, int32(l))
			}
		}
	}
	d := b.grid.distribution(c.Name)
	a.Log = c.Ordered() && a.Low > 0 && (a.High >= 50*a.Low || d != nil && d.Log)
	return a
}

// along are rates along a column, apart for the rows within the rule and without: a bin a value where there
// are few, else bins of about equal n.
func (b *blamed) along(col int, in []bool) []ValueRate {
	c := b.cols[col]
	var parts [2][]point
	for k, i := range b.rows {
		if code := c.Codes[i]; code >= 0 {
			v := number(c.at(code))
			if !c.Ordered() {
				v = timeline.Choice{Type: timeline.ChoiceString, Num: float64(code), Text: c.choices[code].Text}
			}
			parts[boolInt(in[k])] = append(parts[boolInt(in[k])], point{v, b.hit[k]})
		}
	}
	var out []ValueRate
	for _, pts := range parts {
		sortPoints(pts, true)
		if c.Ordered() && len(c.Values) > maxDistinct {
			out = append(out, binned(pts)...)
		} else {
			out = append(out, byValue(pts)...)
		}
	}
	slices.SortStableFunc(out, func(a, b ValueRate) int { return cmp.Compare(a.Low, b.Low) })
	return out
}
