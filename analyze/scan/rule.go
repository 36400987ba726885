package scan

import (
	"math"
	"slices"
)

// A rule is a box within the search.
type rule struct {
	terms []term
	rows  bitset // of the whole table
	score float64
	logQ  float64  // ln of the chance, times the number of rules of this shape
	weak  string   // the stratification under which the evidence is weakest
	tests []string // all stratifications that it was tested under
}

func (f *finder) rule(terms []term) *rule {
	r := &rule{terms: terms, rows: f.all}
	for _, t := range terms {
		r.rows = r.rows.and(t.rows)
	}
	return r
}

// weight is what the rule's description costs.
func (r *rule) weight() float64 {
	w := 0.0
	for _, t := range r.terms {
		w += t.weight()
	}
	return w
}

// shapes is ln of the number of rules of this shape: the same terms in another order are the same rule.
func (r *rule) shapes() float64 {
	orders, _ := math.Lgamma(float64(len(r.terms) + 1))
	n := 0.0
	for _, t := range r.terms {
		n += t.cost
	}
	return n - orders
}

// with is the rule with one term replaced; without is the rule less one.
func (r *rule) with(j int, t term) []term {
	out := slices.Clone(r.terms)
	out[j] = t
	return out
}

func (r *rule) without(j int) []term { return slices.Delete(slices.Clone(r.terms), j, j+1) }

// meet are the rows that meet all terms.
func meet(among bitset, terms []term) bitset {
	for _, t := range terms {
		among = among.and(t.rows)
	}
	return among
}

// usesContext says whether any term is on a context column, and onlyContext whether all are.
func (f *finder) usesContext(r *rule) bool {
	return slices.ContainsFunc(r.terms, f.isContext)
}

func (f *finder) onlyContext(r *rule) bool {
	return !slices.ContainsFunc(r.terms, func(t term) bool { return !f.isContext(t) })
}

func (f *finder) isContext(t term) bool {
	role := f.cols[t.Column].Role
	return role == Context || role == Order
}

// A view is the table seen through the rows that are left.
type view struct {
	*finder
	live   bitset
	N, A   int
	strata []stratification // made when first needed
}

func (f *finder) view(live bitset) *view {
	return &view{finder: f, live: live, N: live.count(), A: live.countAnd(f.hit)}
}

// scoreOf is what the terms save in describing the view's outcomes.
func (v *view) score(r *rule) float64 {
	in := v.live.and(r.rows)
	return v.xlx.Scan(in.countAnd(v.hit), in.count(), v.A, v.N) - r.weight()
}

// hitsIn is how many hits a rule has within the view.
func (v *view) hitsIn(r *rule) int { return v.live.and(r.rows).countAnd(v.hit) }
