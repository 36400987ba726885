package analyze

import (
	"cmp"
	"math"
	"slices"

	"postmortem/analyze/scan"
	"postmortem/ingest/timeline"
)

// A paramColumn is a hyperparameter on its way into a column.
type paramColumn struct {
	name    string
	values  []float64 // by trial: a number, or the place in choices; NaN where there is none
	choices []timeline.Choice
	at      map[timeline.Choice]int              // the place of each in choices
	of      map[*timeline.Distribution][]float64 // the place in choices of a categorical's own ones
	last    *timeline.Distribution
	places  []float64 // of last
	numbers bool      // all values so far are numbers
	integer bool
}

func newParamColumn(name string, trials int) *paramColumn {
	return &paramColumn{name: name, values: unset(trials), at: map[timeline.Choice]int{}, of: map[*timeline.Distribution][]float64{}, numbers: true, integer: true}
}

// unset is a value for each trial, none of them known.
func unset(trials int) []float64 {
	v := make([]float64, trials)
	for i := range v {
		v[i] = math.NaN()
	}
	return v
}

// add enters one trial's value. Numbers of a range that turns into a categorical of other things, and back,
// make the parameter nominal.
func (c *paramColumn) add(trial int, p *timeline.Param) {
	if p.Dist == nil || p.Dist.Kind == timeline.UnknownDist {
		return
	}
	if p.Dist.Kind != timeline.Categorical {
		c.integer = c.integer && p.Dist.Kind == timeline.Int
		if p.Internal-p.Internal != 0 {
			return // no number that an axis has a place for
		}
		if c.numbers {
			c.values[trial] = p.Internal
		} else {
			c.values[trial] = c.place(p.Value())
		}
		return
	}
	if c.last != p.Dist {
		c.last = p.Dist
		var known bool
		if c.places, known = c.of[p.Dist]; !known {
			c.places = c.enter(p.Dist.Choices)
			c.of[p.Dist] = c.places
		}
	}
	if i := int(p.Internal); float64(i) == p.Internal && i >= 0 && i < len(c.places) {
		c.values[trial] = c.places[i]
	}
}

// enter says what each choice of a categorical is in values.
func (c *paramColumn) enter(choices []timeline.Choice) []float64 {
	for _, v := range choices {
		c.integer = c.integer && v.Type == timeline.ChoiceInt
		finite := (v.Type == timeline.ChoiceInt || v.Type == timeline.ChoiceFloat) && v.Num-v.Num == 0
		if c.numbers && !finite {
			c.turnNominal()
		}
	}
	places := make([]float64, len(choices))
	for i, v := range choices {
		places[i] = v.Num
		if !c.numbers {
			places[i] = c.place(v)
		}
	}
	return places
}

// turnNominal makes places in choices of all numbers so far.
func (c *paramColumn) turnNominal() {
	c.numbers = false
	clear(c.of)
	c.last = nil
	for i, v := range c.values {
		if v == v {
			t := timeline.ChoiceFloat
			if v == math.Trunc(v) {
				t = timeline.ChoiceInt
			}
			c.values[i] = c.place(timeline.Choice{Type: t, Text: timeline.FormatFloat(v), Num: v})
		}
	}
}

func (c *paramColumn) place(v timeline.Choice) float64 {
	i, known := c.at[v]
	if !known {
		i = len(c.choices)
		c.at[v] = i
		c.choices = append(c.choices, v)
	}
	return float64(i)
}

// column makes a column of the values: ordered when all are numbers, else nominal.
func (c *paramColumn) column(s *sorter) (gridColumn, bool) {
	if c.numbers {
		col := s.ordered(c.name, c.values)
		col.integer = c.integer
		return col, len(col.Values) > 0
	}
	return nominal(c.name, c.values, c.choices)
}

// ordered makes a column of numbers; NaN stands for none.
func (s *sorter) ordered(name string, values []float64) gridColumn {
	c := gridColumn{Column: scan.Column{Name: name, Codes: make([]int32, len(values))}}
	s.sorted = s.sorted[:0]
	for _, i := range s.ascending(values) {
		v := values[i]
		if v != v {
			c.Codes[i] = -1
			continue
		}
		if n := len(s.sorted); n == 0 || s.sorted[n-1] != v {
			s.sorted = append(s.sorted, v)
		}
		c.Codes[i] = int32(len(s.sorted) - 1)
	}
	c.Values = slices.Clone(s.sorted)
	return c
}

// A sorter sorts many columns of equal length.
type sorter struct {
	order, next []int32
	keys        []uint64
	sorted      []float64
}

// fewRows is how many values are sorted by comparison.
const fewRows = 1 << 12

// ascending are the indices of values in the order of the values; NaN comes first or last. It sorts by the
// digits of the numbers' bits, which for a hundred thousand is five times as fast as by comparison. The
// result is good until the next call.
func (s *sorter) ascending(values []float64) []int32 {
	if len(s.order) != len(values) {
		s.order, s.next, s.keys = make([]int32, len(values)), make([]int32, len(values)), make([]uint64, len(values))
	}
	for i := range s.order {
		s.order[i] = int32(i)
	}
	if len(values) < fewRows {
		slices.SortFunc(s.order, func(a, b int32) int { return cmp.Or(cmp.Compare(values[a], values[b]), cmp.Compare(a, b)) })
		return s.order
	}
	const digit = 16
	varying := uint64(0)
	for i, v := range values {
		k := math.Float64bits(v + 0) // −0 is 0
		if k>>63 != 0 {
			k = ^k
		} else {
			k |= 1 << 63
		}
		s.keys[i] = k
		varying |= k ^ s.keys[0]
	}
	var starts [1 << digit]int32
	for shift := 0; shift < 64; shift += digit {
		if varying>>shift&(1<<digit-1) == 0 {
			continue
		}
		clear(starts[:])
		for _, k := range s.keys {
			starts[k>>shift&(1<<digit-1)]++
		}
		at := int32(0)
		for d, n := range starts {
			starts[d] = at
			at += n
		}
		for _, i := range s.order {
			d := s.keys[i] >> shift & (1<<digit - 1)
			s.next[starts[d]] = i
			starts[d]++
		}
		s.order, s.next = s.next, s.order
	}
	return s.order
}

// nominal makes a column without order of places in choices; only those that occur become levels.
func nominal(name string, places []float64, choices []timeline.Choice) (gridColumn, bool) {
	used := make([]bool, len(choices))
	for _, v := range places {
		if v == v {
			used[int(v)] = true
		}
	}
	c := gridColumn{Column: scan.Column{Name: name, Codes: make([]int32, len(places))}}
	var order []int
	for i, u := range used {
		if u {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := choices[i], choices[j]
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Num, b.Num), cmp.Compare(a.Text, b.Text))
	})
	level := make([]int32, len(choices))
	for l, i := range order {
		level[i] = int32(l)
		c.choices = append(c.choices, choices[i])
	}
	for i, v := range places {
		c.Codes[i] = -1
		if v == v {
			c.Codes[i] = level[int(v)]
		}
	}
	c.Levels = len(c.choices)
	return c, c.Levels > 0 && c.Levels <= maxLevels
}
