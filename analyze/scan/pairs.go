package scan

import (
	"cmp"
	"math"
	"slices"
)

// counts are hits and misses by bin, summed from the left so that a range is a difference.
type counts struct{ hits, misses []int32 }

func (k *counts) grow(n int) {
	if cap(k.hits) < n {
		k.hits, k.misses = make([]int32, n), make([]int32, n)
	}
	k.hits, k.misses = k.hits[:n], k.misses[:n]
	clear(k.hits)
	clear(k.misses)
}

// of sums a literal's ranges: hits, and rows.
func (k *counts) of(c *coarse, l *literal) (a, n int) {
	var h, m int32
	for _, r := range l.ranges {
		h += k.hits[r[1]] - k.hits[r[0]]
		m += k.misses[r[1]] - k.misses[r[0]]
	}
	return int(h) * c.perHit, int(h)*c.perHit + int(m)*c.perMiss
}

// count counts some of the sampled rows by the bins of one column.
func (k *counts) count(b *binned, rows []int32, hitRows int) {
	k.grow(b.n + 2)
	for i, r := range rows {
		if i < hitRows {
			k.hits[b.bins[r]+1]++
		} else {
			k.misses[b.bins[r]+1]++
		}
	}
	for i := 1; i <= b.n; i++ {
		k.hits[i] += k.hits[i-1]
		k.misses[i] += k.misses[i-1]
	}
}

func (c *coarse) scan(a, n int) float64 { return c.xlx.Scan(a, n, c.A, c.N) }

// singles scores every condition alone, and puts the columns that tell most by themselves first: what they
// set as the standard spares most of the work on the others.
func (c *coarse) singles() {
	rows := make([]int32, len(c.rows))
	for i := range rows {
		rows[i] = int32(i)
	}
	found := newTop(12)
	tells := make([]float64, len(c.cols))
	for i := range c.cols {
		b := &c.cols[i]
		b.line.count(b, rows, c.hitRows)
		for j := range b.lits {
			l := &b.lits[j]
			a, n := b.line.of(c, l)
			g := c.scan(a, n)
			tells[i] = max(tells[i], g)
			l.pure = c.pure[a/c.perHit]
			found.add(candidate{[3]*literal{l}, g - l.weight})
		}
		c.order = append(c.order, i)
	}
	slices.SortStableFunc(c.order, func(a, b int) int { return cmp.Compare(tells[b], tells[a]) })
	c.order = c.order[:min(paired, len(c.order))]
	c.candidates = found.list
}

// pairs scores every pair of conditions: on two columns, or from below and above on one. Of each pair of
// columns at most two become candidates, and three that separate best become seeds.
func (c *coarse) pairs() {
	best, seeds := newTop(perColumns*candidates), newTop(seedPairs)
	var k counts
	for x, i := range c.order {
		for _, j := range c.order[x:] {
			if i != j && c.finder.cols[i].Role == Product && c.finder.cols[j].Role == Product {
				continue // four parameters at once
			}
			p := pair{coarse: c, best: top{most: perColumns, floor: best.least()}, seeds: top{most: 3, floor: seeds.least()}}
			if i == j {
				p.intervals(i)
			} else {
				c.square(i, j, &k)
				p.crossed(i, j, &k)
			}
			for _, x := range p.best.list {
				best.add(x)
			}
			for _, x := range p.seeds.list {
				seeds.add(x)
			}
		}
	}
	c.candidates = append(c.candidates, best.list...)
	c.seeds = seeds.list
}

// A pair collects the best pairs of conditions on two columns.
type pair struct {
	*coarse
	best, seeds top
}

// hopeless says whether a pair of conditions would not do even if it held nothing but hits.
func (p *pair) hopeless(pure, weight float64) bool {
	return pure <= p.seeds.least() && pure-weight <= p.best.least()
}

// square counts the sampled rows by the bins of two columns, summed from both sides.
func (c *coarse) square(i, j int, k *counts) {
	a, b := &c.cols[i], &c.cols[j]
	w := b.n + 2
	k.grow((a.n + 2) * w)
	for x, y := range a.bins[:c.hitRows] {
		k.hits[(int(y)+1)*w+int(b.bins[x])+1]++
	}
	rest := b.bins[c.hitRows:]
	for x, y := range a.bins[c.hitRows:] {
		k.misses[(int(y)+1)*w+int(rest[x])+1]++
	}
	for y := 1; y <= a.n; y++ {
		var h, m int32
		for x := 1; x <= b.n; x++ {
			h += k.hits[y*w+x]
			m += k.misses[y*w+x]
			k.hits[y*w+x] = h + k.hits[(y-1)*w+x]
			k.misses[y*w+x] = m + k.misses[(y-1)*w+x]
		}
	}
}

// crossed scores the pairs of conditions on two columns.
func (p *pair) crossed(i, j int, k *counts) {
	w := int32(p.cols[j].n + 2)
	line := counts{make([]int32, w), make([]int32, w)}
	for x := range p.cols[i].lits {
		l := &p.cols[i].lits[x]
		if p.hopeless(l.pure, l.weight+kappa) {
			continue
		}
		clear(line.hits)
		clear(line.misses)
		for _, r := range l.ranges {
			for y := range w {
				line.hits[y] += k.hits[r[1]*w+y] - k.hits[r[0]*w+y]
				line.misses[y] += k.misses[r[1]*w+y] - k.misses[r[0]*w+y]
			}
		}
		for y := range p.cols[j].lits {
			m := &p.cols[j].lits[y]
			a, n := line.of(p.coarse, m)
			p.offer(l, m, a, n)
		}
	}
}

// intervals scores the pairs of a lower and an upper bound on one column.
func (p *pair) intervals(i int) {
	if !p.finder.cols[i].Ordered() {
		return
	}
	b := &p.cols[i]
	for x := range b.lits {
		for y := range b.lits {
			l, m := &b.lits[x], &b.lits[y]
			if l.Op != AtLeast || m.Op != AtMost || l.Code > m.Code {
				continue
			}
			between := literal{ranges: [2][2]int32{{l.ranges[0][0], m.ranges[0][1]}}}
			a, n := b.line.of(p.coarse, &between)
			p.offer(l, m, a, n)
		}
	}
}

// offer enters a pair into the lists of the best.
func (p *pair) offer(l, m *literal, a, n int) {
	weight := l.weight + m.weight
	if a < MinHits || n >= p.N || p.hopeless(p.pure[a/p.perHit], weight) {
		return
	}
	g := p.scan(a, n)
	p.best.add(candidate{[3]*literal{l, m}, g - weight})
	p.seeds.add(candidate{[3]*literal{l, m}, g})
}

// triples extends the seeds by a condition on a third column; of each the best two become candidates.
func (c *coarse) triples() {
	var k counts
	var rows []int32
	for _, s := range c.seeds {
		l, m := s.lits[0], s.lits[1]
		lb, mb := &c.cols[l.Column], &c.cols[m.Column]
		rows = rows[:0]
		hitRows := 0
		for i := range c.rows {
			if l.holds(lb.bins[i]) && m.holds(mb.bins[i]) {
				rows = append(rows, int32(i))
				if i < c.hitRows {
					hitRows++
				}
			}
		}
		best := newTop(perColumns)
		for _, x := range c.order {
			if x == l.Column || x == m.Column {
				continue
			}
			b := &c.cols[x]
			k.count(b, rows, hitRows)
			for y := range b.lits {
				a, n := k.of(c, &b.lits[y])
				if weight := l.weight + m.weight + b.lits[y].weight; a >= MinHits && c.pure[a/c.perHit]-weight > best.least() {
					best.add(candidate{[3]*literal{l, m, &b.lits[y]}, c.scan(a, n) - weight})
				}
			}
		}
		c.candidates = append(c.candidates, best.list...)
	}
}

func (l *literal) holds(bin uint8) bool {
	b := int32(bin)
	return b >= l.ranges[0][0] && b < l.ranges[0][1] || b >= l.ranges[1][0] && b < l.ranges[1][1]
}

// top keeps the candidates with the highest score above a floor, best first; of equals the first.
type top struct {
	most  int
	floor float64
	list  []candidate
}

func newTop(most int) top { return top{most: most, floor: math.Inf(-1)} }

func (t *top) least() float64 {
	if len(t.list) < t.most {
		return t.floor
	}
	return t.list[len(t.list)-1].s
}

func (t *top) add(c candidate) {
	if len(t.list) == t.most && c.s <= t.least() || c.s < t.floor {
		return
	}
	i := len(t.list)
	for i > 0 && t.list[i-1].s < c.s {
		i--
	}
	t.list = slices.Insert(t.list, i, c)
	t.list = t.list[:min(len(t.list), t.most)]
}
