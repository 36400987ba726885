package stats

import (
	"cmp"
	"math"
	"slices"
)

// Fisher compares a of n with b of m (Fisher's exact test): p is two-sided, the sum of all tables that are no
// likelier than the one seen; mid counts the seen one's own chance by half (H. O. Lancaster, JASA 56 (1961)
// 223), which is less timid with small counts.
func Fisher(a, n, b, m int) (p, mid float64) {
	h := hyper{n + m, a + b, n}
	if h.most() == h.least() {
		return 1, 1
	}
	seen := h.logP(a)
	for k := h.least(); k <= h.most(); k++ {
		switch l := h.logP(k); {
		case k == a:
			p, mid = p+math.Exp(l), mid+math.Exp(l)/2
		case l <= seen+1e-7: // equal but for rounding
			p, mid = p+math.Exp(l), mid+math.Exp(l)
		}
	}
	return math.Min(1, p), math.Min(1, mid)
}

// Newcombe is the 95 % interval of the difference a/n − b/m from both Wilson intervals (R. G. Newcombe, Stat.
// Med. 17 (1998) 873, method 10).
func Newcombe(a, n, b, m int) Interval {
	if n == 0 || m == 0 {
		return Interval{-1, 1}
	}
	p, q := float64(a)/float64(n), float64(b)/float64(m)
	x, y := Wilson(a, n), Wilson(b, m)
	return Interval{p - q - math.Hypot(p-x[0], y[1]-q), p - q + math.Hypot(x[1]-p, q-y[0])}
}

// BenjaminiHochberg turns p values into q values: the rate of false discoveries among all that are at most as
// large (Y. Benjamini and Y. Hochberg, J. R. Stat. Soc. B 57 (1995) 289).
func BenjaminiHochberg(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	q, least := make([]float64, len(p)), 1.0
	for k := len(order) - 1; k >= 0; k-- {
		least = math.Min(least, p[order[k]]*float64(len(p))/float64(k+1))
		q[order[k]] = least
	}
	return q
}

// RateRatio compares a events in time s with b in time t: the ratio of the rates, infinite where b is 0, and the
// two-sided exact chance of counts as unlikely when the rates are equal.
func RateRatio(a int, s float64, b int, t float64) (ratio, p float64) {
	n := a + b
	if n == 0 || !(s > 0) || !(t > 0) {
		return 1, 1
	}
	share := s / (s + t)
	logP := func(k int) float64 {
		l := LogChoose(n, k)
		if k > 0 {
			l += float64(k) * math.Log(share)
		}
		if k < n {
			l += float64(n-k) * math.Log1p(-share)
		}
		return l
	}
	seen := logP(a)
	for k := 0; k <= n; k++ {
		if l := logP(k); l <= seen+1e-7 {
			p += math.Exp(l)
		}
	}
	ratio = math.Inf(1)
	if b > 0 {
		ratio = float64(a) / s / (float64(b) / t)
	}
	return ratio, math.Min(1, p)
}

// MannWhitney compares two samples: the shift between them (Hodges and Lehmann's median of all differences), and
// the two-sided chance of ranks as far apart, exact for small samples without ties, else normal with ties
// considered. U counts the pairs in which the first is the larger, ties by half.
func MannWhitney(x, y []float64) (shift, u, p float64) {
	n, m := len(x), len(y)
	if n == 0 || m == 0 {
		return 0, 0, 1
	}
	x, y = thin(x, maxPairs), thin(y, maxPairs)
	n, m = len(x), len(y)
	var diffs []float64
	ties := false
	for _, a := range x {
		for _, b := range y {
			diffs = append(diffs, a-b)
			switch {
			case a > b:
				u++
			case a == b:
				u += 0.5
				ties = true
			}
		}
	}
	shift = Median(diffs)
	if !ties && n*m <= 400 {
		return shift, u, exactU(n, m, u)
	}
	all := append(slices.Clone(x), y...)
	slices.Sort(all)
	N, t := float64(n+m), 0.0
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j] == all[i] {
			j++
		}
		k := float64(j - i)
		t += k*k*k - k
		i = j
	}
	v := float64(n*m) / 12 * (N + 1 - t/(N*(N-1)))
	if v <= 0 {
		return shift, u, 1
	}
	z := math.Max(0, math.Abs(u-float64(n*m)/2)-0.5) / math.Sqrt(v)
	return shift, u, math.Erfc(z / math.Sqrt2)
}

// exactU is the two-sided chance of a U as far from its mean, by counting all orders: the largest value is one of
// the first sample, and beats all m of the second, or one of the second.
func exactU(n, m int, u float64) float64 {
	row := make([][]float64, m+1) // orders of i of the first and j of the second, by their U
	for j := range row {
		row[j] = []float64{1}
	}
	for i := 1; i <= n; i++ {
		next := make([][]float64, m+1)
		next[0] = []float64{1}
		for j := 1; j <= m; j++ {
			next[j] = make([]float64, i*j+1)
			copy(next[j], next[j-1])
			for k, c := range row[j] {
				next[j][k+j] += c
			}
		}
		row = next
	}
	total, far, mean := 0.0, 0.0, float64(n*m)/2
	for k, c := range row[m] {
		total += c
		if math.Abs(float64(k)-mean) >= math.Abs(u-mean)-1e-9 {
			far += c
		}
	}
	return far / total
}
