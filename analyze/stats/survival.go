package stats

import (
	"cmp"
	"math"
	"slices"
)

// A Life is how long something was watched, and how that ended.
type Life struct {
	At    float64
	Cause int // 0: it was still alive; 1: what is asked about; other numbers: competing causes
}

// An Incidence is a point of the curves of AalenJohansen, right after At.
type Incidence struct {
	At    float64
	Alive float64 // share that nothing has befallen
	Dead  float64 // share that cause 1 has befallen
	Other float64 // share that another cause has befallen
}

// AalenJohansen estimates what share each cause has befallen by when, with the others as competitors
// (O. O. Aalen and S. Johansen, Scand. J. Stat. 5 (1978) 141). One point for each distinct time; deaths come
// before the end of watching at the same time.
func AalenJohansen(lives []Life) []Incidence {
	ls := slices.Clone(lives)
	slices.SortFunc(ls, func(a, b Life) int { return cmp.Compare(a.At, b.At) })
	now := Incidence{Alive: 1}
	var out []Incidence
	for i := 0; i < len(ls); {
		atRisk, j, dead, other := len(ls)-i, i, 0, 0
		for ; j < len(ls) && ls[j].At == ls[i].At; j++ {
			switch ls[j].Cause {
			case 0:
			case 1:
				dead++
			default:
				other++
			}
		}
		step := now.Alive / float64(atRisk)
		now.At = ls[i].At
		now.Dead += step * float64(dead)
		now.Other += step * float64(other)
		now.Alive -= step * float64(dead+other)
		out = append(out, now)
		i = j
	}
	return out
}

// Trend tests whether a rate rises from group to group (Cochran and Armitage, scores 0, 1, 2 …): z, positive
// where it rises, and the two-sided p. Both are 0 and 1 where nothing can vary.
func Trend(hits, n []int) (z, p float64) {
	var N, R, sx, sxx, t float64
	for i := range n {
		x, m, r := float64(i), float64(n[i]), float64(hits[i])
		N += m
		R += r
		sx += m * x
		sxx += m * x * x
		t += r * x
	}
	rate := R / N
	v := rate * (1 - rate) * (sxx - sx*sx/N)
	if !(v > 0) {
		return 0, 1
	}
	z = (t - rate*sx) / math.Sqrt(v)
	return z, math.Erfc(math.Abs(z) / math.Sqrt2)
}
