// Package scan finds the regions of a table in which an outcome is frequent.
//
// A region is a box: up to three conditions on columns. A box scores what it saves in a description of the
// outcomes: the scan statistic of its rows less what it costs to say its conditions, so that a longer box
// must pay for itself. A box is claimed when an exact test that is stratified by time and by every context
// attribute leaves it standing against all boxes of its shape. Boxes are found one after another, each on
// the rows that the earlier ones leave, and then polished as a list.
//
// The package knows nothing of trials: rows have an outcome, and columns are parameters or context.
package scan

import (
	"math"
	"slices"

	"postmortem/analyze/stats"
)

// A Role says what a column is.
type Role uint8

// The roles. Rows are in order of time, so Order is a column that grows with the row.
const (
	Parameter Role = iota
	Product        // of two parameters
	Context        // where and how the row came about: worker, card, commit, uptime
	Order
)

// A Column is one attribute of all rows.
type Column struct {
	Name   string
	Role   Role
	Values []float64 // distinct values, ascending; nil for a nominal column
	Levels int       // number of levels of a nominal column; 0 for an ordered one
	Codes  []int32   // per row the index in Values, or the level; -1 where the row has none
	// Temporal says that the column goes with time, so that time cannot be told from it.
	Temporal bool
}

// Ordered says whether the column has an order.
func (c *Column) Ordered() bool { return c.Levels == 0 }

// size is the number of different codes.
func (c *Column) size() int { return max(len(c.Values), c.Levels) }

// A Table is what is searched. Rows are in order of time.
type Table struct {
	Hit     []bool // per row: whether the outcome came about
	Columns []Column
}

// An Op is the kind of a condition. A row whose column has no value meets none.
type Op uint8

// The kinds. In holds a set of levels.
const (
	AtLeast Op = iota
	AtMost
	Equal
	In
	Present
)

// A Condition is a restriction on one column.
type Condition struct {
	Column int
	Op     Op
	Code   int32   // of AtLeast, AtMost, Equal: index in the column's Values
	Set    []int32 // of In: levels, ascending
}

// bounds are the least and the greatest code that meet a condition on a range.
func (c Condition) bounds() (lo, hi int32) {
	switch c.Op {
	case AtLeast:
		return c.Code, math.MaxInt32
	case AtMost:
		return 0, c.Code
	case Equal:
		return c.Code, c.Code
	}
	return 0, math.MaxInt32
}

// members are the levels of a set, as a table.
func (c Condition) members() []bool {
	set := make([]bool, slices.Max(c.Set)+1)
	for _, l := range c.Set {
		set[l] = true
	}
	return set
}

// Meeter returns a function that says whether a code of the column meets the condition.
func (c Condition) Meeter() func(code int32) bool {
	if c.Op == In {
		set := c.members()
		return func(code int32) bool { return code >= 0 && int(code) < len(set) && set[code] }
	}
	lo, hi := c.bounds()
	return func(code int32) bool { return code >= lo && code <= hi }
}

// A term is a condition within the search: with its rows, and what it costs.
type term struct {
	Condition
	rows bitset
	cost float64 // ln of how many conditions there are like it, over all columns
}

// kappa is what a condition must save beyond being picked out of all like it (nats).
const kappa = 3

func (t term) weight() float64 { return t.cost + kappa }

// A finder holds what does not change during a search.
type finder struct {
	cols  []Column
	n     int
	hit   bitset
	all   bitset
	xlx   stats.XLogX
	lnP   float64   // ln of the number of columns that are no products
	alts  []float64 // per ordered column: ln of the number of conditions on it
	equal []bool    // per column: whether single values of it are asked for
	holes []bool    // per column: whether some rows have no value

	hits, rows []int32 // scratch: counts by code
}

// A threshold costs what it takes to pick it out of at most maxCuts cut points, however many there are:
// neighbouring ones say nearly the same. Single values of an ordered column are asked for when there are
// between minEqual and maxEqual of them.
const (
	maxCuts  = 24
	minEqual = 3
	maxEqual = 12
)

func newFinder(t *Table) *finder {
	f := &finder{cols: t.Columns, n: len(t.Hit), hit: newBitset(len(t.Hit)), all: newBitset(len(t.Hit)), xlx: stats.NewXLogX(len(t.Hit) + len(t.Hit)/1000 + 8)} // a sampled row stands for several
	for i, h := range t.Hit {
		f.all.set(i)
		if h {
			f.hit.set(i)
		}
	}
	plain, widest := 0, 0
	for i := range f.cols {
		c := &f.cols[i]
		if c.Role != Product {
			plain++
		}
		widest = max(widest, c.size())
	}
	f.lnP = math.Log(float64(max(1, plain)))
	f.hits, f.rows = make([]int32, widest), make([]int32, widest)
	for i := range f.cols {
		c := &f.cols[i]
		seen := 0
		f.tally(i, f.all, func(hits, rows []int32) {
			for _, h := range hits {
				if h > 0 {
					seen++
				}
			}
		})
		f.holes = append(f.holes, f.present(i).count() < f.n)
		f.equal = append(f.equal, c.Ordered() && c.Role != Context && c.Role != Order && len(c.Values) >= minEqual && len(c.Values) <= maxEqual)
		alts := 2 * max(1, min(maxCuts, seen))
		if f.equal[i] {
			alts += len(c.Values)
		}
		if f.holes[i] {
			alts++
		}
		f.alts = append(f.alts, math.Log(float64(alts)))
	}
	return f
}

// present are the rows that have a value in a column.
func (f *finder) present(col int) bitset {
	return f.rowsOf(Condition{Column: col, Op: Present})
}

// tally counts rows and hits by code and hands the counts over; they are scratch.
func (f *finder) tally(col int, among bitset, use func(hits, rows []int32)) {
	c := &f.cols[col]
	hits, rows := f.hits[:c.size()], f.rows[:c.size()]
	clear(hits)
	clear(rows)
	among.each(func(i int) {
		if k := c.Codes[i]; k >= 0 {
			rows[k]++
		}
	})
	among.eachAnd(f.hit, func(i int) {
		if k := c.Codes[i]; k >= 0 {
			hits[k]++
		}
	})
	use(hits, rows)
}

// cost is the description length (nats) of a condition: which column, and which of the conditions on it.
func (f *finder) cost(c Condition) float64 {
	col := &f.cols[c.Column]
	alt := f.alts[c.Column]
	if !col.Ordered() && c.Op == In {
		alt = stats.LogChoose(col.Levels, len(c.Set))
	}
	if col.Role == Product { // it names two columns
		return 2*f.lnP + alt + kappa
	}
	return f.lnP + alt
}

func (f *finder) term(c Condition) term { return term{c, f.rowsOf(c), f.cost(c)} }

// rowsOf are the rows that meet a condition.
func (f *finder) rowsOf(c Condition) bitset {
	b, codes := newBitset(f.n), f.cols[c.Column].Codes
	if c.Op == In {
		set := c.members()
		for i, k := range codes {
			if k >= 0 && int(k) < len(set) && set[k] {
				b.set(i)
			}
		}
		return b
	}
	lo, hi := c.bounds()
	for i, k := range codes {
		if k >= lo && k <= hi {
			b.set(i)
		}
	}
	return b
}

// Separates is the scan statistic of a condition by itself over all rows: how much it tells (nats).
func (t *Table) Separates(c Condition) float64 {
	f := newFinder(&Table{Hit: t.Hit})
	f.cols = t.Columns
	in := f.rowsOf(c)
	return f.xlx.Scan(in.countAnd(f.hit), in.count(), f.hit.count(), f.n)
}
