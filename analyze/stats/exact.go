package stats

import "math"

// A Stratum is the margins of one 2×2 table, and what was seen in it.
type Stratum struct {
	N      int // rows
	Hits   int // rows with the outcome
	Inside int // rows in the group that is asked about
	Both   int // rows with the outcome in the group
}

// LogPGreater is the natural logarithm of the chance of at least as many hits inside as were seen, over all
// strata together, when within each stratum the hits fall on its rows at random: Fisher's exact test,
// one-sided, stratified (the exact form of the test of Mantel and Haenszel). One stratum is Fisher's own.
//
// The distribution of the sum is that of independent hypergeometric numbers. It is tilted to have its mean
// at what was seen, so that chances of 1e-300 lose no digit, and then summed by convolution, or, where
// that is long, by the saddlepoint approximation (H. E. Daniels, Ann. Math. Stat. 25 (1954) 631; its
// relative error is less than 1 % there).
func LogPGreater(strata []Stratum) float64 {
	seen, least, most := 0, 0, 0
	var hs []hyper
	for _, s := range strata {
		h := hyper{s.N, s.Hits, s.Inside}
		seen, least, most = seen+s.Both, least+h.least(), most+h.most()
		if h.most() > h.least() {
			hs = append(hs, h)
		}
	}
	if seen <= least {
		return 0
	}
	if seen >= most { // one way only
		p := 0.0
		for _, h := range hs {
			p += h.logP(h.most())
		}
		return p
	}
	fixed := least // hits that the margins leave no choice about
	for _, h := range hs {
		fixed -= h.least()
	}
	seen -= fixed
	theta := tilt(hs, float64(seen))
	var logM, variance float64
	length := 0
	ps := make([]window, len(hs))
	for i, h := range hs {
		ps[i] = h.tilted(theta)
		logM += ps[i].logM
		variance += ps[i].variance
		length += len(ps[i].p)
	}
	if length > longConvolution {
		return min(0, logM-theta*float64(seen)+logTail(theta, variance))
	}
	return min(0, logM-theta*float64(seen)+math.Log(tail(ps, theta, seen)))
}

// longConvolution is the total length of distributions above which the sum is approximated.
const longConvolution = 1500

// tilt finds θ ≥ 0 that puts the mean of the tilted sum at seen, or 0 if it is there already.
func tilt(hs []hyper, seen float64) float64 {
	moments := func(theta float64) (mean, variance float64) {
		for _, h := range hs {
			w := h.tilted(theta)
			mean += w.mean
			variance += w.variance
		}
		return mean, variance
	}
	mean, variance := moments(0)
	if mean >= seen {
		return 0
	}
	lo, hi, theta := 0.0, math.Inf(1), (seen-mean)/variance
	for range 60 {
		if math.IsInf(hi, 1) {
			theta = min(theta, lo+3) // a step of Newton's can overshoot by far where the variance is small
		} else if theta <= lo || theta >= hi {
			theta = (lo + hi) / 2
		}
		mean, variance = moments(theta)
		if math.Abs(mean-seen) < 1e-6*(1+math.Sqrt(variance)) {
			break
		}
		if mean < seen {
			lo = theta
		} else {
			hi = theta
		}
		theta += (seen - mean) / variance
	}
	return theta
}

// tail is the sum over j ≥ seen of the tilted chances of j, each times e^(−θ(j−seen)).
func tail(ps []window, theta float64, seen int) float64 {
	from, sum := 0, []float64{1}
	for _, w := range ps {
		from += w.from
		next := make([]float64, len(sum)+len(w.p)-1)
		for i, a := range sum {
			for j, b := range w.p {
				next[i+j] += a * b
			}
		}
		sum = next
	}
	t := 0.0
	for i := len(sum) - 1; i >= 0 && from+i >= seen; i-- {
		t += sum[i] * math.Exp(-theta*float64(from+i-seen))
	}
	return t
}

// logTail approximates the logarithm of tail for a sum of many: a normal distribution on whole numbers.
func logTail(theta, variance float64) float64 {
	if theta < 1e-9 {
		return math.Log(0.5)
	}
	l := theta * math.Sqrt(variance)
	lattice := math.Log(theta / -math.Expm1(-theta))
	if l > 20 { // e^(λ²/2)·Φ(−λ) → 1/(λ√2π)
		return lattice - math.Log(l*math.Sqrt(2*math.Pi))
	}
	return lattice + l*l/2 + math.Log(math.Erfc(l/math.Sqrt2)/2)
}

// A hyper is a hypergeometric distribution: of n rows, hits have the outcome, and inside are drawn.
type hyper struct{ n, hits, inside int }

func (h hyper) least() int { return max(0, h.hits+h.inside-h.n) }
func (h hyper) most() int  { return min(h.hits, h.inside) }

func (h hyper) logP(k int) float64 {
	return LogChoose(h.hits, k) + LogChoose(h.n-h.hits, h.inside-k) - LogChoose(h.n, h.inside)
}

// ratio is P(k+1)/P(k).
func (h hyper) ratio(k int) float64 {
	return float64(h.hits-k) * float64(h.inside-k) / (float64(k+1) * float64(h.n-h.hits-h.inside+k+1))
}

// A window is the part of a tilted distribution that holds all but 1e-17 of it.
type window struct {
	from           int       // the number that p[0] is the chance of
	p              []float64 // sums to 1
	logM           float64   // logarithm of the moment generating function at θ
	mean, variance float64
}

// tilted gives the distribution with chances in proportion to P(k)·e^(θk).
func (h hyper) tilted(theta float64) window {
	w := math.Exp(theta)
	mode := h.mode(w)
	var down []float64
	sum := 1.0
	for k, p := mode, 1.0; k > h.least(); k-- {
		if p /= h.ratio(k-1) * w; p < 1e-17*sum {
			break
		}
		down = append(down, p)
		sum += p
	}
	out := window{from: mode - len(down), p: make([]float64, 0, 2*len(down)+8)}
	for i := len(down) - 1; i >= 0; i-- {
		out.p = append(out.p, down[i])
	}
	out.p = append(out.p, 1)
	for k, p := mode, 1.0; k < h.most(); k++ {
		if p *= h.ratio(k) * w; p < 1e-17*sum {
			break
		}
		out.p = append(out.p, p)
		sum += p
	}
	out.logM = h.logP(mode) + theta*float64(mode) + math.Log(sum)
	for i := range out.p {
		out.p[i] /= sum
		out.mean += out.p[i] * float64(i)
	}
	for i, p := range out.p {
		d := float64(i) - out.mean
		out.variance += p * d * d
	}
	out.mean += float64(out.from)
	return out
}

// mode is the likeliest number under odds w: ratio·w falls with k and is 1 there.
func (h hyper) mode(w float64) int {
	lo, hi := h.least(), h.most()
	for lo < hi {
		if mid := (lo + hi) / 2; h.ratio(mid)*w >= 1 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// LogChoose is the natural logarithm of the number of ways to choose k of n.
func LogChoose(n, k int) float64 {
	return logFactorial(n) - logFactorial(k) - logFactorial(n-k)
}

func logFactorial(n int) float64 {
	if n < len(logFactorials) {
		return logFactorials[n]
	}
	v, _ := math.Lgamma(float64(n + 1))
	return v
}

var logFactorials = func() (t [4096]float64) {
	for i := 2; i < len(t); i++ {
		t[i] = t[i-1] + math.Log(float64(i))
	}
	return t
}()
