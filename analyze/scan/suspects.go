package scan

import (
	"cmp"
	"math"
	"slices"
)

// A Suspect is a rule on parameters that is not claimed.
type Suspect struct {
	Rule
	Crude float64 // as LogQ, from the crude test alone
}

// Suspects returns rules on parameters alone that would be claimed if the rows did not differ otherwise, and
// then the single levels that all hits have in common.
func Suspects(t *Table, most int) []Suspect {
	plain := &Table{Hit: t.Hit, Columns: slices.Clone(t.Columns)}
	for i := range plain.Columns { // a column without codes is met by nothing
		if c := &plain.Columns[i]; c.Role == Context || c.Role == Order {
			c.Codes = make([]int32, len(t.Hit))
			for k := range c.Codes {
				c.Codes[k] = -1
			}
		}
	}
	f, g := newFinder(plain), newFinder(t)
	all := g.view(g.all)
	var out []Suspect
	add := func(r *rule) {
		r = g.rule(r.terms)
		all.test(r)
		s := Suspect{g.export(r), all.logP(r, all.stratifications()[0]) + r.shapes()}
		if !slices.ContainsFunc(out, func(o Suspect) bool { return slices.Equal(o.Rows, s.Rows) }) {
			out = append(out, s)
		}
	}
	for _, r := range f.view(f.all).search() {
		if p := f.view(f.all); p.hitsIn(r) >= MinHits && r.score > 0 && all.logP(r, all.stratifications()[0])+r.shapes() <= math.Log(MaxQ) {
			add(r)
		}
	}
	for _, r := range g.shared() {
		add(r)
	}
	slices.SortStableFunc(out, func(a, b Suspect) int { return cmp.Compare(a.Crude, b.Crude) })
	return out[:min(most, len(out))]
}

// shared are the single levels of nominal parameters that all hits have and not all rows.
func (f *finder) shared() []*rule {
	var out []*rule
	for i := range f.cols {
		if c := &f.cols[i]; c.Role != Parameter || c.Ordered() {
			continue
		}
		f.tally(i, f.all, func(hits, rows []int32) {
			for l, h := range hits {
				if int(h) == f.hit.count() && int(rows[l]) < f.n {
					out = append(out, f.rule([]term{f.term(in(i, []int32{int32(l)}))}))
				}
			}
		})
	}
	return out
}
