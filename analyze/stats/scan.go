package stats

import "math"

// XLogX is a table of x·ln x for whole numbers, from which log-likelihoods are summed.
type XLogX []float64

// NewXLogX makes the table for 0 to n.
func NewXLogX(n int) XLogX {
	t := make(XLogX, n+1)
	for i := 2; i <= n; i++ {
		t[i] = float64(i) * math.Log(float64(i))
	}
	return t
}

// Likelihood is the greatest log-likelihood (nats) of a hits in n rows that share one rate.
func (t XLogX) Likelihood(a, n int) float64 { return t[a] + t[n-a] - t[n] }

// Scan is the one-sided scan statistic (M. Kulldorff, Commun. Stat. 26 (1997) 1481) of a part with a hits in
// n rows out of a whole with A hits in N rows: the logarithm (nats) of how much likelier the data are with a
// rate of its own in the part; 0 where the rate in the part is not the higher one.
func (t XLogX) Scan(a, n, A, N int) float64 {
	b, m := A-a, N-n
	if n == 0 || m == 0 || a*m <= b*n {
		return 0
	}
	return t.Likelihood(a, n) + t.Likelihood(b, m) - t.Likelihood(A, N)
}
