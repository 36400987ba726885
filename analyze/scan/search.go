package scan

import (
	"cmp"
	"math"
	"slices"
)

// The search is exhaustive over single conditions and pairs at coarse cut points; the seeds, pairs that
// separate best whatever they cost, are extended by a third condition; the best candidates are refined at
// full resolution.
const (
	seedPairs  = 80   // pairs that are extended
	candidates = 24   // that are refined
	perColumns = 2    // candidates of one set of columns
	sampleSize = 8000 // rows above which the coarse pass counts a sample of them
	fewer      = 4    // candidates that are refined where the coarse pass counted a sample
	paired     = 64   // columns that are combined: of more, those that tell most by themselves
	maxSets    = 24   // sets of levels of each kind that the coarse pass tries
)

// A literal is a condition in the coarse pass: one or two ranges of its column's bins.
type literal struct {
	Condition
	ranges [2][2]int32 // [from, to); the second may be empty
	weight float64
	pure   float64 // scan statistic of its hits alone
}

// A binned column is a column in the coarse pass.
type binned struct {
	n    int     // number of bins; rows without a value are in bin n
	bins []uint8 // per sampled row, hits first
	lits []literal
	line counts // of all sampled rows
}

// A coarse pass counts hits and misses in a sample of the view's rows in which each stands for several.
type coarse struct {
	*view
	rows       []int32 // hits first
	hitRows    int
	perHit     int // rows that a sampled hit stands for
	perMiss    int
	A, N       int
	cols       []binned
	order      []int     // of the columns, the telling ones first
	pure       []float64 // scan statistic of so many sampled hits and nothing else
	candidates []candidate
	seeds      []candidate
}

type candidate struct {
	lits [3]*literal // one to three
	s    float64     // score, or for a seed the scan statistic alone
}

func (v *view) coarse() *coarse {
	c := &coarse{view: v, perHit: 1 + v.A/(sampleSize/2), perMiss: 1 + (v.N-v.A)/sampleSize}
	take := func(from bitset, every int) {
		k := 0
		from.each(func(i int) {
			if k%every == 0 {
				c.rows = append(c.rows, int32(i))
			}
			k++
		})
	}
	take(v.live.and(v.hit), c.perHit)
	c.hitRows = len(c.rows)
	take(v.live.andNot(v.hit), c.perMiss)
	c.A = c.hitRows * c.perHit
	c.N = c.A + (len(c.rows)-c.hitRows)*c.perMiss
	for a := range c.hitRows + 1 {
		c.pure = append(c.pure, c.scan(a*c.perHit, a*c.perHit))
	}
	for i := range v.cols {
		c.cols = append(c.cols, c.bin(i))
	}
	return c
}

// search returns the best rules of the view, best first.
func (v *view) search() []*rule {
	c := v.coarse()
	c.singles()
	c.pairs()
	c.triples()
	slices.SortStableFunc(c.candidates, func(a, b candidate) int { return cmp.Compare(b.s, a.s) })
	most := candidates
	if c.perHit > 1 || c.perMiss > 1 {
		most = fewer
	}
	var out []*rule
	used := map[[3]int]int{}
	for _, k := range c.candidates {
		key := k.columns()
		if used[key]++; used[key] > perColumns {
			continue
		}
		var terms []term
		for _, l := range k.lits {
			if l != nil {
				terms = append(terms, v.term(l.Condition))
			}
		}
		r := v.refine(terms)
		if !slices.ContainsFunc(out, func(o *rule) bool { return o.rows.equal(r.rows) && len(o.terms) <= len(r.terms) }) {
			out = append(out, r)
		}
		if most--; most == 0 {
			break
		}
	}
	slices.SortStableFunc(out, func(a, b *rule) int {
		return cmp.Or(cmp.Compare(math.Round(b.score*1e6), math.Round(a.score*1e6)), cmp.Compare(len(a.terms), len(b.terms)))
	})
	return out
}

// columns are the columns of a candidate, ascending, 1-based.
func (k candidate) columns() [3]int {
	var key [3]int
	for i, l := range k.lits {
		if l != nil {
			key[i] = l.Column + 1
		}
	}
	slices.Sort(key[:])
	return key
}

// bin cuts a column: an ordered one at values seen in hits, a bin for each and one between each two; a
// nominal one has a bin a level, the level with the highest rate first.
func (c *coarse) bin(col int) binned {
	column := &c.finder.cols[col]
	var b binned
	lookup := make([]uint8, column.size())
	if column.Ordered() {
		cuts := c.cuts(col)
		k := 0
		for code := range lookup {
			for k < len(cuts) && int32(code) > cuts[k] {
				k++
			}
			lookup[code] = uint8(2 * k)
			if k < len(cuts) && int32(code) == cuts[k] {
				lookup[code]++
			}
		}
		b.n = 2*len(cuts) + 1
		c.thresholds(col, &b, cuts)
	} else {
		order := c.byRate(col, c.live)
		b.n = len(order)
		for i := range lookup {
			lookup[i] = uint8(b.n) // levels that no row has
		}
		for i, l := range order {
			lookup[l] = uint8(i)
		}
		c.sets(col, &b, order)
	}
	if c.holes[col] {
		b.add(c, Condition{Column: col, Op: Present}, 0, b.n)
	}
	b.bins = make([]uint8, len(c.rows))
	for i, r := range c.rows {
		b.bins[i] = uint8(b.n)
		if k := column.Codes[r]; k >= 0 {
			b.bins[i] = lookup[k]
		}
	}
	return b
}

// cuts are the codes of at most maxCuts values of hits, evenly spread over the hits.
func (c *coarse) cuts(col int) []int32 {
	codes := make([]int32, 0, c.hitRows)
	for _, r := range c.rows[:c.hitRows] {
		if k := c.finder.cols[col].Codes[r]; k >= 0 {
			codes = append(codes, k)
		}
	}
	slices.Sort(codes)
	distinct := slices.Compact(slices.Clone(codes))
	if len(distinct) <= maxCuts {
		return distinct
	}
	var out []int32
	for i := range maxCuts {
		out = append(out, codes[int(math.Round(float64(i)*float64(len(codes)-1)/(maxCuts-1)))])
	}
	return slices.Compact(out)
}

func (b *binned) add(c *coarse, cond Condition, ranges ...int) {
	l := literal{Condition: cond, weight: c.cost(cond) + kappa}
	for i := 0; i < len(ranges); i += 2 {
		l.ranges[i/2] = [2]int32{int32(ranges[i]), int32(ranges[i+1])}
	}
	b.lits = append(b.lits, l)
}

func (c *coarse) thresholds(col int, b *binned, cuts []int32) {
	lo, hi := c.span(col)
	for i, t := range cuts {
		if t > lo {
			b.add(c, Condition{Column: col, Op: AtLeast, Code: t}, 2*i+1, b.n)
		}
		if t < hi {
			b.add(c, Condition{Column: col, Op: AtMost, Code: t}, 0, 2*i+2)
		}
		if c.equal[col] && t > lo && t < hi {
			b.add(c, Condition{Column: col, Op: Equal, Code: t}, 2*i+1, 2*i+2)
		}
	}
}

// span is the least and the greatest code among the sampled rows.
func (c *coarse) span(col int) (lo, hi int32) {
	lo, hi = math.MaxInt32, -1
	for _, r := range c.rows {
		if k := c.finder.cols[col].Codes[r]; k >= 0 {
			lo, hi = min(lo, k), max(hi, k)
		}
	}
	return lo, hi
}

// sets are the sets of levels that are asked for: the first few by rate, each alone, and all but one.
func (c *coarse) sets(col int, b *binned, order []int32) {
	n := len(order)
	for i := 1; i < min(n, maxSets+1); i++ {
		b.add(c, in(col, order[:i]), 0, i)
	}
	for i := 1; i < min(n, maxSets); i++ {
		b.add(c, in(col, order[i:i+1]), i, i+1)
	}
	for i := 0; i < n-1 && n > 2 && n <= maxSets; i++ { // all but the last is a first few
		b.add(c, in(col, slices.Delete(slices.Clone(order), i, i+1)), 0, i, i+1, n)
	}
}

// in is the condition that a nominal column has one of the levels.
func in(col int, levels []int32) Condition {
	set := slices.Clone(levels)
	slices.Sort(set)
	return Condition{Column: col, Op: In, Set: set}
}

// byRate lists the levels of a nominal column that occur, the highest rate of hits first; a level with few
// rows is drawn towards the rate of all.
func (v *view) byRate(col int, among bitset) []int32 {
	overall := float64(v.A) / float64(max(1, v.N))
	var order []int32
	v.tally(col, among, func(hits, rows []int32) {
		rate := func(l int32) float64 { return (float64(hits[l]) + 0.5*overall) / (float64(rows[l]) + 0.5) }
		for l := range rows {
			if rows[l] > 0 {
				order = append(order, int32(l))
			}
		}
		slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(rate(b), rate(a)) })
	})
	return order
}
