package scan

import "math/bits"

// A bitset is a set of rows.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }
func (b bitset) set(i int)   { b[i/64] |= 1 << (i % 64) }

func (b bitset) count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// countAnd is how many rows are in both.
func (b bitset) countAnd(o bitset) int {
	n := 0
	for i, w := range b {
		n += bits.OnesCount64(w & o[i])
	}
	return n
}

func (b bitset) and(o bitset) bitset {
	out := make(bitset, len(b))
	for i, w := range b {
		out[i] = w & o[i]
	}
	return out
}

func (b bitset) andNot(o bitset) bitset {
	out := make(bitset, len(b))
	for i, w := range b {
		out[i] = w &^ o[i]
	}
	return out
}

func (b bitset) equal(o bitset) bool {
	for i, w := range b {
		if w != o[i] {
			return false
		}
	}
	return true
}

// each calls f for every row of the set, in order.
func (b bitset) each(f func(i int)) {
	for k, w := range b {
		for ; w != 0; w &= w - 1 {
			f(k*64 + bits.TrailingZeros64(w))
		}
	}
}

// eachAnd calls f for every row that is in both sets, in order.
func (b bitset) eachAnd(o bitset, f func(i int)) {
	for k, w := range b {
		for w &= o[k]; w != 0; w &= w - 1 {
			f(k*64 + bits.TrailingZeros64(w))
		}
	}
}
