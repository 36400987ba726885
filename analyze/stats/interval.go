// Package stats holds the statistics that the analyses share: intervals of rates, exact tests within strata,
// the scan statistic, incidence with competing causes. It knows nothing of trials or of failures.
//
// Reference values for all of them stand in testdata/golden-statistics.json, computed by SciPy 1.10.1 and
// statsmodels 0.13.5.
package stats

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

// AnyOf combines independent chances into the chance that at least one of them comes true, with an interval
// by recovery of the variances (MOVER; G. Y. Zou and A. Donner, Stat. Med. 27 (2008) 1693) on the scale on
// which they add, −ln(1 − p).
func AnyOf(p []float64, ci []Interval) (float64, Interval) {
	hazard := func(p float64) float64 { return -math.Log1p(-p) }
	sum, below, above := 0.0, 0.0, 0.0
	for i := range p {
		h := hazard(p[i])
		sum += h
		if math.IsInf(h, 1) { // certain: only the lower end is open
			return 1, Interval{lowestOf(p, ci), 1}
		}
		lo, hi := h-hazard(ci[i][0]), hazard(ci[i][1])-h
		below += lo * lo
		above += hi * hi
	}
	chance := func(h float64) float64 { return -math.Expm1(-h) }
	return chance(sum), Interval{chance(max(0, sum-math.Sqrt(below))), chance(sum + math.Sqrt(above))}
}

// lowestOf is the lower end of the chances that were all seen to come true: the highest of their own.
func lowestOf(p []float64, ci []Interval) float64 {
	lo := 0.0
	for i := range p {
		if p[i] == 1 {
			lo = max(lo, ci[i][0])
		}
	}
	return lo
}

// CleanTrials is how many trials without a failure it takes to exclude, with 95 % confidence, that failures
// still come at the given rate: the least n with (1 − rate)^n ≤ 0.05. It is 0 for a rate that is no rate.
func CleanTrials(rate float64) int {
	if !(rate > 0) {
		return 0
	}
	if rate >= 1 {
		return 1
	}
	return int(math.Ceil(math.Log(0.05)/math.Log1p(-rate) - 1e-9))
}

// LogOdds is the logarithm of the odds ratio of a of n against b of m, with 0.5 added to each count
// (Haldane and Anscombe).
func LogOdds(a, n, b, m int) float64 {
	h := func(k int) float64 { return float64(k) + 0.5 }
	return math.Log(h(a) * h(m-b) / (h(n-a) * h(b)))
}
