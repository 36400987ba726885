package analyze

import "math"

// An Interval is a range of a share.
type Interval [2]float64

// z95 is the normal quantile of a two-sided 95 % interval.
const z95 = 1.959963984540054

// Wilson returns the 95 % score interval of k successes in n (E. B. Wilson, JASA 22 (1927) 209). It is
// [0, 1] for n = 0.
func Wilson(k, n int) Interval {
	if n <= 0 {
		return Interval{0, 1}
	}
	p, m := float64(k)/float64(n), float64(n)
	z2 := z95 * z95
	centre := (p + z2/(2*m)) / (1 + z2/m)
	half := z95 / (1 + z2/m) * math.Sqrt(p*(1-p)/m+z2/(4*m*m))
	lo, hi := max(0, centre-half), min(1, centre+half)
	if k == 0 {
		lo = 0
	}
	if k == n {
		hi = 1
	}
	return Interval{lo, hi}
}
