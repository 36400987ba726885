package scan

import (
	"math"
	"slices"

	"postmortem/analyze/stats"
)

// MinHits is how many hits a rule needs: of fewer, nothing is claimed.
const MinHits = 5

// MaxQ is the chance, of all rules of its shape, with which chance may bring forth a rule that is claimed.
const MaxQ = 0.01

// maxOwn is the chance with which a parameter's condition has to stand by itself beside a context condition.
const maxOwn = 0.05

// A stratification groups a view's rows, so that a rule is compared with like rows only.
type stratification struct {
	name     string
	col      int // -1: none, or time
	temporal bool
	of       []int32         // per row of the table its stratum
	margins  []stats.Stratum // of the view, with nothing inside
}

// stratifications are: none, blocks of time, and every context column, an ordered one in eight parts.
func (v *view) stratifications() []stratification {
	if v.strata != nil {
		return v.strata
	}
	v.strata = append(v.strata, stratification{name: "none", col: -1, of: make([]int32, v.n)})
	blocks := min(40, max(4, v.N/25))
	time := stratification{name: "time", col: -1, temporal: true, of: make([]int32, v.n)}
	k := 0
	v.live.each(func(i int) {
		time.of[i] = int32(k * blocks / v.N)
		k++
	})
	v.strata = append(v.strata, time)
	for i := range v.cols {
		if c := &v.cols[i]; c.Role == Context {
			v.strata = append(v.strata, stratification{c.Name, i, c.Temporal, v.groups(i), nil})
		}
	}
	for i := range v.strata {
		s := &v.strata[i]
		v.live.each(func(r int) { s.at(int(s.of[r])).N++ })
		v.live.eachAnd(v.hit, func(r int) { s.at(int(s.of[r])).Hits++ })
	}
	return v.strata
}

func (s *stratification) at(k int) *stats.Stratum {
	for len(s.margins) <= k {
		s.margins = append(s.margins, stats.Stratum{})
	}
	return &s.margins[k]
}

// groups are the levels of a context column, or eight equal parts of an ordered one; rows without a value
// are a group of their own.
func (v *view) groups(col int) []int32 {
	c := &v.cols[col]
	part := make([]int32, c.size())
	if c.Ordered() {
		v.tally(col, v.live, func(_, rows []int32) {
			total, before := sum(rows), 0
			for code, n := range rows {
				part[code] = int32(8 * before / max(1, total))
				before += int(n)
			}
		})
	} else {
		for l := range part {
			part[l] = int32(l)
		}
	}
	out := make([]int32, v.n)
	for i, k := range c.Codes {
		if k >= 0 {
			out[i] = part[k] + 1
		}
	}
	return out
}

// test finds the worst chance of a rule over all stratifications that it does not itself use: a rule on
// time is not asked within time. It enters logQ, weak and tests into the rule.
func (v *view) test(r *rule) {
	uses := func(s stratification) bool {
		return slices.ContainsFunc(r.terms, func(t term) bool {
			c := v.cols[t.Column]
			return s.col == t.Column || s.temporal && (c.Temporal || c.Role == Order)
		})
	}
	worst := math.Inf(-1)
	r.tests = nil
	for _, s := range v.stratifications() {
		if uses(s) {
			continue
		}
		p := v.logP(r, s)
		if p > worst {
			worst, r.weak = p, s.name
		}
		if s.col >= 0 || s.name == "time" {
			r.tests = append(r.tests, s.name)
		}
	}
	r.logQ = worst + r.shapes()
}

// logP is the exact conditional chance of a rule within the strata.
func (v *view) logP(r *rule, s stratification) float64 {
	strata := slices.Clone(s.margins)
	inside := v.live.and(r.rows)
	inside.each(func(i int) { strata[s.of[i]].Inside++ })
	inside.eachAnd(v.hit, func(i int) { strata[s.of[i]].Both++ })
	return stats.LogPGreater(strata)
}

// stands says whether a rule may be claimed on the view's rows.
func (v *view) stands(r *rule) bool {
	if v.hitsIn(r) < MinHits {
		return false
	}
	v.test(r)
	return r.logQ <= math.Log(MaxQ)
}

// earn drops from a rule that mixes parameters and context the parameters' conditions that do not hold by
// themselves, among the rows that the other conditions select. What is left may be context alone.
func (v *view) earn(r *rule) *rule {
	for len(r.terms) > 1 && v.usesContext(r) {
		worst, at := math.Log(maxOwn), -1
		for j, t := range r.terms {
			if v.isContext(t) {
				continue
			}
			sub := v.view(meet(v.live, r.without(j)))
			p := math.Inf(-1)
			for _, s := range sub.stratifications() {
				p = max(p, sub.logP(r, s))
			}
			if p+t.cost > worst {
				worst, at = p+t.cost, j
			}
		}
		if at < 0 {
			break
		}
		r = v.refine(r.without(at))
	}
	return r
}
