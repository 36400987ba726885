package stats

import (
	"math"
	"slices"
)

// A Growth is what a series of readings says of its growth: the slope of Theil and Sen, and the test of Mann
// and Kendall of whether it rises or falls at all.
type Growth struct {
	N         int
	Slope     float64 // median of the slopes between all pairs; 0 for fewer than two different x
	Intercept float64 // median of y − Slope·x
	Low, High float64 // 95 % interval of the slope (P. K. Sen, JASA 63 (1968) 1379)
	S         int     // pairs that rise less pairs that fall
	Variance  float64 // of S, ties considered
	Z         float64
	P         float64 // two-sided; exact for fewer than ten readings without ties, else normal
	Normal    float64 // two-sided, normal
	TauB      float64
}

// maxPairs is how many readings are compared pair by pair; of more, that many are taken, evenly spread.
const maxPairs = 600

// Grow measures the growth of y over x, which must not decrease.
func Grow(x, y []float64) Growth {
	x, y = thin(x, maxPairs), thin(y, maxPairs)
	n := len(y)
	g := Growth{N: n, P: 1, Normal: 1}
	slopes := make([]float64, 0, n*(n-1)/2)
	tiesY, tiesX := 0, 0
	for i := range n {
		for j := i + 1; j < n; j++ {
			d := y[j] - y[i]
			switch {
			case x[j] == x[i]:
				tiesX++
			case d > 0:
				g.S++
			case d < 0:
				g.S--
			}
			if d == 0 {
				tiesY++
			}
			if x[j] != x[i] {
				slopes = append(slopes, d/(x[j]-x[i]))
			}
		}
	}
	if len(slopes) == 0 {
		return g
	}
	slices.Sort(slopes)
	g.Slope = median(slopes)
	rest := make([]float64, n)
	for i := range rest {
		rest[i] = y[i] - g.Slope*x[i]
	}
	slices.Sort(rest)
	g.Intercept = median(rest)
	g.test(y, tiesY)
	if pairs := float64(n * (n - 1) / 2); pairs > float64(tiesY) && pairs > float64(tiesX) {
		g.TauB = float64(g.S) / math.Sqrt((pairs-float64(tiesY))*(pairs-float64(tiesX)))
	}
	c := z95 * math.Sqrt(g.Variance)
	at := func(k float64) float64 { return slopes[min(len(slopes)-1, max(0, int(math.RoundToEven(k))))] }
	g.Low, g.High = at((float64(len(slopes))-c)/2-1), at((float64(len(slopes))+c)/2)
	return g
}

// test finds the variance of S and its chance.
func (g *Growth) test(y []float64, tied int) {
	n := float64(g.N)
	v := n * (n - 1) * (2*n + 5)
	sorted := slices.Clone(y)
	slices.Sort(sorted)
	for i := 0; i < len(sorted); {
		j := i
		for j < len(sorted) && sorted[j] == sorted[i] {
			j++
		}
		t := float64(j - i)
		v -= t * (t - 1) * (2*t + 5)
		i = j
	}
	g.Variance = v / 18
	if g.Variance > 0 && g.S != 0 {
		g.Z = (float64(g.S) - math.Copysign(1, float64(g.S))) / math.Sqrt(g.Variance)
		g.Normal = math.Erfc(math.Abs(g.Z) / math.Sqrt2)
	}
	g.P = g.Normal
	if tied == 0 && g.N > 1 && g.N < 10 {
		g.P = exactKendall(g.N, max(g.S, -g.S))
	}
}

// exactKendall is the chance of at least s rising pairs more than falling ones, or the reverse, among all
// orders of n different numbers.
func exactKendall(n, s int) float64 {
	counts := []float64{1} // orders by their number of falling pairs
	for k := 2; k <= n; k++ {
		next := make([]float64, len(counts)+k-1)
		for i, c := range counts {
			for d := range k {
				next[i+d] += c
			}
		}
		counts = next
	}
	total, far := 0.0, 0.0
	for falling, c := range counts {
		total += c
		if d := len(counts) - 1 - 2*falling; d >= s || -d >= s {
			far += c
		}
	}
	return far / total
}

// median is that of sorted numbers; 0 for none.
func median(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Median is that of numbers in any order; 0 for none.
func Median(v []float64) float64 {
	s := slices.Clone(v)
	slices.Sort(s)
	return median(s)
}

// thin takes at most n of the values, evenly spread, the first and the last among them.
func thin(v []float64, n int) []float64 {
	if len(v) <= n {
		return v
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = v[i*(len(v)-1)/(n-1)]
	}
	return out
}

// Sustained growth must be proven by at least minReadings, be material, and go on to the end.
const (
	minReadings = 8
	growthP     = 0.01
	material    = 0.10
)

// Sustained says whether y grows steadily over x and by at least a tenth of the limit: a warm-up that levels
// off, one step, and a series that merely wanders are none. Each quarter's median must be above the one
// before by three tenths of an even share, the last by half of one.
func (g Growth) Sustained(x, y []float64, limit float64) bool {
	n := len(y)
	if n < minReadings || g.P >= growthP || g.S <= 0 || g.Slope*(x[n-1]-x[0]) < material*limit {
		return false
	}
	var q [4]float64
	for k := range q {
		q[k] = Median(y[k*n/4 : (k+1)*n/4])
	}
	share := (q[3] - q[0]) / 3
	return share > 0 && q[1]-q[0] >= 0.3*share && q[2]-q[1] >= 0.3*share && q[3]-q[2] >= 0.5*share
}

// Before is the mean, over the events, of the mean of the w values before each (the value at the event is
// not among them), and the chance of a mean as high when all events are shifted together around the series:
// an exact test (superposed epochs with circular shifts). Events closer than w to the start count with what
// there is; one at 0 takes the end of the series.
func Before(v []float64, events []int, w int) (mean, p float64, shifts int) {
	all := Shifts(v, events, w)
	if len(all) == 0 {
		return 0, 1, len(v)
	}
	mean = all[0]
	atLeast := 1
	for _, m := range all[1:] {
		if m >= mean-1e-12*math.Abs(mean) {
			atLeast++
		}
	}
	return mean, float64(atLeast) / float64(len(all)), len(all)
}

// maxMeans is how many windows Shifts averages at most.
const maxMeans = 50_000_000

// Shifts are the means of Before for the shifts of the events around the series, that of no shift first: every
// shift, or of very many every second, third and so on.
func Shifts(v []float64, events []int, w int) []float64 {
	n := len(v)
	if n == 0 || len(events) == 0 {
		return nil
	}
	sums := make([]float64, n+1)
	for i, x := range v {
		sums[i+1] = sums[i] + x
	}
	before := func(at int) float64 { // mean of the w values before, around the end
		from := at - w
		if from >= 0 {
			return (sums[at] - sums[from]) / float64(w)
		}
		return (sums[at] + sums[n] - sums[n+from]) / float64(w)
	}
	stride := 1 + n*len(events)/maxMeans
	out := make([]float64, 0, n/stride+1)
	for k := 0; k < n; k += stride {
		m := 0.0
		for _, e := range events {
			m += before((e + k) % n)
		}
		out = append(out, m/float64(len(events)))
	}
	return out
}
