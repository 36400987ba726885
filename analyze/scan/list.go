package scan

import (
	"cmp"
	"slices"
)

// A list of rules describes all rows at once: a row belongs to the first rule that it meets, rules with the
// highest rate first, and what is left is one more part. Its total is the likelihood of the parts' rates less
// what the rules cost.

// total is the penalised log-likelihood of a list on the live rows.
func (f *finder) total(rules []*rule, live bitset) float64 {
	rest, s := live, 0.0
	for _, r := range f.byConfidence(rules) {
		part := rest.and(r.rows)
		s += f.xlx.Likelihood(part.countAnd(f.hit), part.count()) - r.weight()
		rest = rest.andNot(part)
	}
	return s + f.xlx.Likelihood(rest.countAnd(f.hit), rest.count())
}

// byConfidence orders rules by their rate, highest first.
func (f *finder) byConfidence(rules []*rule) []*rule {
	rate := func(r *rule) float64 {
		return (float64(r.rows.countAnd(f.hit)) + 0.5) / float64(r.rows.count()+1)
	}
	out := slices.Clone(rules)
	slices.SortStableFunc(out, func(a, b *rule) int { return cmp.Compare(rate(b), rate(a)) })
	return out
}

// polish cuts one condition of one rule at a time anew, so that the list as a whole gains; rows that leave a
// rule fall to the next one that they meet. Then it drops conditions that do not pay for themselves.
func (f *finder) polish(rules []*rule, live bitset) []*rule {
	for range 3 {
		rules = f.byConfidence(rules)
		better := false
		for i := range rules {
			for j := range rules[i].terms {
				if r := f.recut(rules, i, j, live); r != nil {
					rules[i], better = r, true
				}
			}
		}
		for i := range rules {
			for j := 0; len(rules[i].terms) > 1 && j < len(rules[i].terms); {
				alt := slices.Clone(rules)
				alt[i] = f.rule(rules[i].without(j))
				if f.total(alt, live) >= f.total(rules, live)-1e-9 {
					rules, better = alt, true
				} else {
					j++
				}
			}
		}
		if !better {
			break
		}
	}
	return rules
}

// recut finds the condition in place of term j of rule i with which the list gains most; nil for none.
func (f *finder) recut(rules []*rule, i, j int, live bitset) *rule {
	r := rules[i]
	eligible := live
	for _, q := range rules[:i] {
		eligible = eligible.andNot(q.rows)
	}
	rest := r.without(j)
	p := f.partition(eligible, meet(eligible, rest), rules[i+1:])
	old := r.terms[j]
	now := p.gain(old.rows) - old.cost
	best, bestGain := Condition{}, now+1e-6
	found := false
	p.options(old.Column, rest, func(c Condition, gain float64) {
		if gain -= f.cost(c); gain > bestGain {
			best, bestGain, found = c, gain, true
		}
	})
	if !found {
		return nil
	}
	return f.rule(r.with(j, f.term(best)))
}

// A partition says where the rows that may be a rule's go if they are not: to the first later rule that they
// meet, or to the rest.
type partition struct {
	*view             // of the rows that the rule's other terms leave
	parts    []bitset // the rest first
	hits, ns []int    // of each part, over all eligible rows
}

func (f *finder) partition(eligible, base bitset, later []*rule) *partition {
	p := &partition{view: f.view(base), parts: make([]bitset, len(later)+1)}
	left := eligible
	for k, q := range later {
		p.parts[k+1] = left.and(q.rows)
		left = left.andNot(q.rows)
	}
	p.parts[0] = left
	for _, b := range p.parts {
		p.hits, p.ns = append(p.hits, b.countAnd(f.hit)), append(p.ns, b.count())
	}
	return p
}

// gain is the likelihood of all parts when the rows of the view that are in the set are the rule's.
func (p *partition) gain(set bitset) float64 {
	in := p.live.and(set)
	a, n := make([]int, len(p.parts)), make([]int, len(p.parts))
	for k, b := range p.parts {
		part := in.and(b)
		a[k], n[k] = part.countAnd(p.hit), part.count()
	}
	return p.likelihood(a, n)
}

// likelihood is the same from the hits and rows that the rule takes out of each part.
func (p *partition) likelihood(a, n []int) float64 {
	A, N, s := 0, 0, 0.0
	for k := range a {
		s += p.xlx.Likelihood(p.hits[k]-a[k], p.ns[k]-n[k])
		A, N = A+a[k], N+n[k]
	}
	return s + p.xlx.Likelihood(A, N)
}

// options calls try with every condition on the column and the likelihood that it gives. It is view.options
// with the counts of each part kept apart.
func (p *partition) options(col int, rest []term, try func(c Condition, gain float64)) {
	size := p.cols[col].size()
	var hits, rows [][]int32 // per part, summed from the left
	for _, b := range p.parts {
		h, r := make([]int32, size+1), make([]int32, size+1)
		p.tally(col, p.live.and(b), func(hs, rs []int32) {
			for i := range hs {
				h[i+1], r[i+1] = h[i]+hs[i], r[i]+rs[i]
			}
		})
		hits, rows = append(hits, h), append(rows, r)
	}
	a, n := make([]int, len(p.parts)), make([]int, len(p.parts))
	p.view.options(col, p.live, rest, func(c Condition, _, _ int) {
		for k := range p.parts {
			a[k], n[k] = 0, 0
			add := func(from, to int32) {
				a[k] += int(hits[k][to] - hits[k][from])
				n[k] += int(rows[k][to] - rows[k][from])
			}
			switch c.Op {
			case AtLeast:
				add(c.Code, int32(size))
			case AtMost:
				add(0, c.Code+1)
			case Equal:
				add(c.Code, c.Code+1)
			case In:
				for _, l := range c.Set {
					add(l, l+1)
				}
			case Present:
				add(0, int32(size))
			}
		}
		try(c, p.likelihood(a, n))
	})
}
