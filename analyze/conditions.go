package analyze

import (
	"math"
	"slices"

	"postmortem/analyze/scan"
)

// conditions says conditions in the words of the contract.
func (b *blamed) conditions(cs []scan.Condition) []Condition {
	var out []Condition
	for _, c := range cs {
		out = append(out, b.condition(c))
	}
	return out
}

func (b *blamed) condition(c scan.Condition) Condition {
	col := b.cols[c.Column]
	x := Condition{Param: col.Name}
	if col.Role == scan.Context || col.Role == scan.Order {
		x.Param = "@" + x.Param
	}
	if col.Role == scan.Product {
		x.Product = col.factors[:]
	}
	switch c.Op {
	case scan.Present:
		x.Op = OpPresent
	case scan.In:
		x.Op, x.Value = b.set(col, c.Set)
	default:
		x.Op = map[scan.Op]Op{scan.AtLeast: OpAtLeast, scan.AtMost: OpAtMost, scan.Equal: OpEqual}[c.Op]
		x.Value = col.number(col.Values[c.Code])
		x.Next = b.next(col, c)
	}
	return x
}

// set says a set of levels: one by itself, all but one as that one, others as a list.
func (b *blamed) set(col *gridColumn, set []int32) (Op, any) {
	if len(set) == 1 {
		return OpEqual, col.choices[set[0]].Any()
	}
	if len(set) == col.Levels-1 && col.Levels > 2 {
		for l := range col.choices {
			if !slices.Contains(set, int32(l)) {
				return OpNot, col.choices[l].Any()
			}
		}
	}
	values := []any{}
	for _, l := range set {
		values = append(values, col.choices[l].Any())
	}
	return OpIn, values
}

// number is a column's value as its parameter has it.
func (c *gridColumn) number(v float64) any {
	if c.integer && math.Abs(v) < 1<<53 {
		return int64(v)
	}
	return v
}

// next is the nearest value on the other side of a threshold that a row has.
func (b *blamed) next(col *gridColumn, c scan.Condition) *float64 {
	best := int32(-1)
	for _, r := range b.rows {
		k := col.Codes[r]
		switch {
		case k < 0:
		case c.Op == scan.AtLeast && k < c.Code && k > best,
			c.Op == scan.AtMost && k > c.Code && (best < 0 || k < best):
			best = k
		}
	}
	if best < 0 {
		return nil
	}
	v := col.Values[best]
	return &v
}
