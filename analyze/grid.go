package analyze

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"postmortem/analyze/scan"
	"postmortem/ingest/timeline"
)

// A grid is a study as a table: a row a trial, in order of their numbers, a column each hyperparameter and
// each circumstance. It is made once a study; every class takes its rows from it.
type grid struct {
	study *timeline.Study
	fates []*fate // by trial
	byEnd []int32 // the trials in the order in which they ended
	cols  []gridColumn
}

// A gridColumn is a column with what is needed to say its values.
type gridColumn struct {
	scan.Column
	choices []timeline.Choice // of a nominal column, by level
	integer bool
	factors [2]string // of a product
	alike   []string  // circumstances that split the trials in the same way
}

// maxLevels is how many values a hyperparameter without order may have, maxContext a circumstance.
const (
	maxLevels  = 200
	maxContext = 20
)

func (r *run) grid(s *timeline.Study) *grid {
	g := &grid{study: s}
	for i := range s.Trials {
		g.fates = append(g.fates, r.fateOf[&s.Trials[i]])
	}
	return g
}

// fill makes the columns, once.
func (g *grid) fill(r *run) {
	if g.cols != nil {
		return
	}
	s := g.study
	for i := range s.Trials {
		g.byEnd = append(g.byEnd, int32(i))
	}
	slices.SortFunc(g.byEnd, func(a, b int32) int {
		return cmp.Or(s.Trials[a].End.Compare(s.Trials[b].End), cmp.Compare(a, b))
	})
	g.params()
	g.circumstances(r)
}

// params makes a column of every hyperparameter.
func (g *grid) params() {
	at := map[string]int{}
	var found []*paramColumn
	n := len(g.study.Trials)
	for i := range g.study.Trials {
		for k := range g.study.Trials[i].Params {
			p := &g.study.Trials[i].Params[k]
			c := k // trials mostly have the same parameters
			if c >= len(found) || found[c].name != p.Name {
				var known bool
				if c, known = at[p.Name]; !known {
					c = len(found)
					at[p.Name] = c
					found = append(found, newParamColumn(p.Name, n))
				}
			}
			found[c].add(i, p)
		}
	}
	slices.SortFunc(found, func(a, b *paramColumn) int { return cmp.Compare(a.name, b.name) })
	for _, c := range found {
		if col, ok := c.column(); ok {
			g.cols = append(g.cols, col)
		}
	}
}

// A paramColumn is a hyperparameter on its way into a column.
type paramColumn struct {
	name    string
	values  []float64 // by trial: a number, or the place in choices; NaN where there is none
	choices []timeline.Choice
	of      map[*timeline.Distribution][]float64 // the place in choices of a categorical's own ones
	last    *timeline.Distribution
	places  []float64 // of last
	numbers bool      // all values so far are numbers
	integer bool
}

func newParamColumn(name string, trials int) *paramColumn {
	return &paramColumn{name: name, values: unset(trials), of: map[*timeline.Distribution][]float64{}, numbers: true, integer: true}
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
	i := slices.Index(c.choices, v)
	if i < 0 {
		i = len(c.choices)
		c.choices = append(c.choices, v)
	}
	return float64(i)
}

// column makes a column of the values: ordered when all are numbers, else nominal.
func (c *paramColumn) column() (gridColumn, bool) {
	col := ordered(c.name, c.values)
	col.integer = c.integer
	if c.numbers {
		return col, len(col.Values) > 0
	}
	return nominal(c.name, c.values, c.choices)
}

// ordered makes a column of numbers; NaN stands for none.
func ordered(name string, values []float64) gridColumn {
	c := gridColumn{Column: scan.Column{Name: name, Codes: make([]int32, len(values))}}
	sorted := make([]float64, 0, len(values))
	for _, i := range ascending(values) {
		v := values[i]
		if v != v {
			c.Codes[i] = -1
			continue
		}
		if n := len(sorted); n == 0 || sorted[n-1] != v {
			sorted = append(sorted, v)
		}
		c.Codes[i] = int32(len(sorted) - 1)
	}
	c.Values = slices.Clone(sorted)
	return c
}

// ascending are the indices of values in the order of the values; NaN comes first or last. It sorts by the
// digits of the numbers' bits, which for a hundred thousand is five times as fast as by comparison.
func ascending(values []float64) []int32 {
	const digit = 16
	if len(values) < 1<<12 {
		order := make([]int32, len(values))
		for i := range order {
			order[i] = int32(i)
		}
		slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(values[a], values[b]), cmp.Compare(a, b)) })
		return order
	}
	order, next := make([]int32, len(values)), make([]int32, len(values))
	keys := make([]uint64, len(values))
	varying := uint64(0)
	for i, v := range values {
		k := math.Float64bits(v + 0) // −0 is 0
		if k>>63 != 0 {
			k = ^k
		} else {
			k |= 1 << 63
		}
		order[i], keys[i] = int32(i), k
		varying |= k ^ keys[0]
	}
	var starts [1 << digit]int32
	for shift := 0; shift < 64; shift += digit {
		if varying>>shift&(1<<digit-1) == 0 {
			continue
		}
		clear(starts[:])
		for _, k := range keys {
			starts[k>>shift&(1<<digit-1)]++
		}
		at := int32(0)
		for d, n := range starts {
			starts[d] = at
			at += n
		}
		for _, i := range order {
			d := keys[i] >> shift & (1<<digit - 1)
			next[starts[d]] = i
			starts[d]++
		}
		order, next = next, order
	}
	return order
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

// table is the grid's table for some of its trials, without columns that do not vary among them, and the
// grid's column that each of the table's is.
func (g *grid) table(rows []int32, hit []bool, products []gridColumn) (*scan.Table, []*gridColumn) {
	t := &scan.Table{Hit: hit}
	var of []*gridColumn
	add := func(c *gridColumn) {
		codes := make([]int32, len(rows))
		varies := false
		for i, r := range rows {
			codes[i] = c.Codes[r]
			varies = varies || codes[i] != codes[0]
		}
		if varies {
			col := c.Column
			col.Codes = codes
			t.Columns = append(t.Columns, col)
			of = append(of, c)
		}
	}
	for i := range g.cols {
		add(&g.cols[i])
	}
	for i := range products {
		add(&products[i])
	}
	return t, of
}

// maxFactors is how many size-like parameters are multiplied with one another.
const maxFactors = 6

// products are the columns of the products of two size-like parameters: positive numbers that can exceed 1
// and span a factor of two. Where there are many, those that say most about the hits by themselves.
func (g *grid) products(rows []int32, hit []bool) []gridColumn {
	var sizes []int
	for i := range g.cols {
		c := &g.cols[i]
		if n := len(c.Values); c.Role == scan.Parameter && n >= 3 && c.Values[0] > 0 && c.Values[n-1] >= 2*c.Values[0] && c.Values[n-1] > 1 {
			sizes = append(sizes, i)
		}
	}
	if len(sizes) > maxFactors {
		gain := map[int]float64{}
		for _, i := range sizes {
			gain[i] = largerIsWorse(&g.cols[i], rows, hit)
		}
		slices.SortStableFunc(sizes, func(a, b int) int { return cmp.Compare(gain[b], gain[a]) })
		sizes = sizes[:maxFactors]
		slices.Sort(sizes)
	}
	var out []gridColumn
	for k, i := range sizes {
		for _, j := range sizes[:k] {
			out = append(out, product(&g.cols[j], &g.cols[i]))
		}
	}
	return out
}

// largerIsWorse is how far the mean rank of a column's values among the hits lies above that of all rows, in
// standard errors.
func largerIsWorse(c *gridColumn, rows []int32, hit []bool) float64 {
	counts := make([]int, len(c.Values))
	total := 0
	for _, r := range rows {
		if k := c.Codes[r]; k >= 0 {
			counts[k]++
			total++
		}
	}
	rank := make([]float64, len(counts))
	below := 0
	for k, n := range counts {
		rank[k] = (float64(below) + float64(n)/2) / float64(max(1, total))
		below += n
	}
	sum, hits := 0.0, 0
	for i, r := range rows {
		if k := c.Codes[r]; hit[i] && k >= 0 {
			sum += rank[k] - 0.5
			hits++
		}
	}
	return sum / math.Sqrt(float64(max(1, hits))/12)
}

func product(a, b *gridColumn) gridColumn {
	c := gridColumn{Column: scan.Column{Name: a.Name + " * " + b.Name, Role: scan.Product},
		integer: a.integer && b.integer, factors: [2]string{a.Name, b.Name}}
	values := make([]float64, len(a.Codes))
	for i, k := range a.Codes {
		values[i] = math.NaN()
		if l := b.Codes[i]; k >= 0 && l >= 0 {
			values[i] = a.Values[k] * b.Values[l]
		}
	}
	col := ordered(c.Name, values)
	c.Values, c.Codes = col.Values, col.Codes
	return c
}

// outcomeWords mark an attribute that tells how a trial ended: no circumstance, but what is to be explained.
var outcomeWords = []string{"error", "fail", "reason", "exception", "traceback", "status", "outcome", "result", "crash", "oom", "kill", "exit", "signal", "prune", "retry", "retries", "finish", "done", "success"}

// outcome says whether an attribute's name is that of an outcome.
func outcome(key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc(outcomeWords, func(w string) bool { return strings.Contains(key, w) })
}
