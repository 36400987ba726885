package analyze

import (
	"cmp"
	"maps"
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
	sorter
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

// maxParams is how many hyperparameters are looked at: of more, those that most trials have.
const maxParams = 500

// params makes a column of every hyperparameter.
func (g *grid) params() {
	names := g.paramsByUse()
	at := map[string]int{}
	var found []*paramColumn
	for i, name := range names {
		at[name] = i
		found = append(found, newParamColumn(name, len(g.study.Trials)))
	}
	for i := range g.study.Trials {
		for k := range g.study.Trials[i].Params {
			p := &g.study.Trials[i].Params[k]
			c := k // trials mostly have the same parameters
			if c >= len(names) || names[c] != p.Name {
				var known bool
				if c, known = at[p.Name]; !known {
					continue
				}
			}
			found[c].add(i, p)
		}
	}
	for _, c := range found {
		if col, ok := c.column(&g.sorter); ok {
			g.cols = append(g.cols, col)
		}
	}
}

// paramsByUse are the names of the hyperparameters that most trials have, in alphabetical order.
func (g *grid) paramsByUse() []string {
	used := map[string]int{}
	for i := range g.study.Trials {
		for k := range g.study.Trials[i].Params {
			used[g.study.Trials[i].Params[k].Name]++
		}
	}
	names := slices.SortedFunc(maps.Keys(used), func(a, b string) int { return cmp.Or(cmp.Compare(used[b], used[a]), cmp.Compare(a, b)) })
	names = names[:min(maxParams, len(names))]
	slices.Sort(names)
	return names
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

// smallTable is how many pairs of values a product is looked up by.
const smallTable = 1 << 14

func product(a, b *gridColumn) gridColumn {
	var c gridColumn
	name := a.Name + " * " + b.Name
	if n := len(b.Values); len(a.Values)*n <= smallTable {
		c = tabled(name, a, b)
	} else {
		values := unset(len(a.Codes))
		for i, k := range a.Codes {
			if l := b.Codes[i]; k >= 0 && l >= 0 {
				values[i] = a.Values[k] * b.Values[l]
			}
		}
		c = new(sorter).ordered(name, values)
	}
	c.Role, c.integer, c.factors = scan.Product, a.integer && b.integer, [2]string{a.Name, b.Name}
	return c
}

// tabled is the product of two columns with few values.
func tabled(name string, a, b *gridColumn) gridColumn {
	c := gridColumn{Column: scan.Column{Name: name, Codes: make([]int32, len(a.Codes))}}
	for _, x := range a.Values {
		for _, y := range b.Values {
			c.Values = append(c.Values, x*y)
		}
	}
	slices.Sort(c.Values)
	c.Values = slices.Compact(c.Values)
	var code []int32
	for _, x := range a.Values {
		for _, y := range b.Values {
			k, _ := slices.BinarySearch(c.Values, x*y)
			code = append(code, int32(k))
		}
	}
	for i, k := range a.Codes {
		c.Codes[i] = -1
		if l := b.Codes[i]; k >= 0 && l >= 0 {
			c.Codes[i] = code[int(k)*len(b.Values)+int(l)]
		}
	}
	return c
}

// outcomeWords mark an attribute that tells how a trial ended: no circumstance, but what is to be explained.
var outcomeWords = []string{"error", "fail", "reason", "exception", "traceback", "status", "outcome", "result", "crash", "oom", "kill", "exit", "signal", "prune", "retry", "retries", "finish", "done", "success"}

// outcome says whether an attribute's name is that of an outcome.
func outcome(key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc(outcomeWords, func(w string) bool { return strings.Contains(key, w) })
}
