package scan

import "slices"

// refine cuts each condition of a rule anew at full resolution, and drops one that does not pay, until
// nothing changes.
func (v *view) refine(terms []term) *rule {
	cur := v.rule(terms)
	cur.score = v.score(cur)
	for range 6 {
		better := false
		for j := range cur.terms {
			rest := cur.without(j)
			weight := 0.0
			for _, t := range rest {
				weight += t.weight()
			}
			c, gain, ok := v.best(cur.terms[j].Column, meet(v.live, rest), rest)
			if ok && gain-weight > cur.score+1e-9 {
				cur = v.rule(cur.with(j, v.term(c)))
				cur.score = v.score(cur)
				better = true
			}
		}
		for j := 0; j < len(cur.terms) && len(cur.terms) > 1; j++ {
			less := v.rule(cur.without(j))
			if less.score = v.score(less); less.score >= cur.score-1e-9 {
				cur, better = less, true
				break
			}
		}
		if !better {
			break
		}
	}
	return cur
}

// best finds the condition on one column that scores best among the rows that the other terms leave, and
// what it gains after its own cost.
func (v *view) best(col int, among bitset, rest []term) (best Condition, gain float64, ok bool) {
	gain = -1e300
	v.options(col, among, rest, func(c Condition, a, n int) {
		if g := v.xlx.Scan(a, n, v.A, v.N) - v.cost(c) - kappa; g > gain+1e-9 {
			best, gain, ok = c, g, true
		}
	})
	return best, gain, ok
}

// options calls try with every condition on a column that some rows meet and some do not, with the hits and
// rows that meet it. Thresholds stand at values of hits; a column that has one bound already gets the other.
func (v *view) options(col int, among bitset, rest []term, try func(c Condition, a, n int)) {
	if !v.cols[col].Ordered() {
		v.setOptions(col, among, try)
		return
	}
	taken := func(op Op) bool {
		return slices.ContainsFunc(rest, func(t term) bool { return t.Column == col && t.Op == op })
	}
	alone := !slices.ContainsFunc(rest, func(t term) bool { return t.Column == col })
	total := among.count()
	v.tally(col, among, func(hits, rows []int32) {
		A, N := sum(hits), sum(rows)
		a, n := 0, 0 // below
		for code := range hits {
			h, r := int(hits[code]), int(rows[code])
			if h > 0 {
				at := Condition{Column: col, Code: int32(code)}
				if at.Op = AtLeast; n > 0 && !taken(AtLeast) && !taken(Equal) {
					try(at, A-a, N-n)
				}
				if at.Op = AtMost; n+r < N && !taken(AtMost) && !taken(Equal) {
					try(at, a+h, n+r)
				}
				if at.Op = Equal; v.equal[col] && alone && r < N {
					try(at, h, r)
				}
			}
			a, n = a+h, n+r
		}
		if alone && N < total && A > 0 {
			try(Condition{Column: col, Op: Present}, A, N)
		}
	})
}

// setOptions are the sets of the levels with the highest rates, and all levels where some rows have none.
func (v *view) setOptions(col int, among bitset, try func(c Condition, a, n int)) {
	order := v.byRate(col, among)
	total := among.count()
	type level struct{ a, n int }
	levels := make([]level, 0, len(order))
	v.tally(col, among, func(hits, rows []int32) {
		for _, l := range order {
			levels = append(levels, level{int(hits[l]), int(rows[l])})
		}
	})
	a, n := 0, 0
	for i, l := range levels {
		a, n = a+l.a, n+l.n
		switch {
		case i < len(order)-1:
			try(in(col, order[:i+1]), a, n)
		case n < total && a > 0:
			try(Condition{Column: col, Op: Present}, a, n)
		}
	}
}

func sum(k []int32) int {
	s := 0
	for _, v := range k {
		s += int(v)
	}
	return s
}
