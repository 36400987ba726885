package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func line(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(i)
	}
	return x
}

// TestGrow checks G1 to G8 of the reference.
func TestGrow(t *testing.T) {
	for _, tt := range []struct {
		name             string
		x, y             []float64
		slope, intercept float64
		s                int
		variance, z, p   float64
		tau              float64
	}{
		{"G1", line(10), []float64{1, 2, 2, 3, 5, 4, 6, 7, 7, 9}, .857143, .928571, 41, 123, 3.606679, .000310141, .932059},
		{"G2", line(10), []float64{5, 5, 5, 5, 50, 5, 5, 5, 5, 5}, 0, 5, -1, 33, 0, 1, -.049690},
		{"G3", line(6), []float64{2, 2, 2, 2, 2, 2}, 0, 2, 0, 0, 0, 1, 0},
		{"G4", line(10), []float64{10, 9, 8, 8, 7, 6, 5, 5, 4, 2}, -.8, 10, -43, 123, -3.787012, .000152469, -.977525},
		{"G5", []float64{0, 1, 2, 4, 8, 16, 32}, []float64{1, 1.1, 1.3, 1.6, 2.3, 3.9, 7.2}, .185714, .928571, 21, 44.333333, 3.003757, .00266668, 1},
		{"G6", line(4), []float64{1, 2, 3, 4}, 1, 1, 6, 8.666667, 1.698416, .0894294, 1},
		{"G7", line(5), []float64{0, .104, .126, .16, .205}, .04225, .036, 10, 16.666667, 2.204541, .0274863, 1},
		{"G8", []float64{0, 10, 20, 30, 40}, []float64{2, 2.9, 4.1, 5, 6.1}, .10375, 1.95, 10, 16.666667, 2.204541, .0274863, 1},
	} {
		g := Grow(tt.x, tt.y)
		for _, c := range []struct {
			what      string
			got, want float64
		}{{"slope", g.Slope, tt.slope}, {"intercept", g.Intercept, tt.intercept}, {"variance", g.Variance, tt.variance}, {"z", g.Z, tt.z}, {"p", g.Normal, tt.p}, {"tau", g.TauB, tt.tau}} {
			if math.Abs(c.got-c.want) > 1e-5*math.Max(0.1, math.Abs(c.want)) {
				t.Errorf("%s: %s %v, want %v", tt.name, c.what, c.got, c.want)
			}
		}
		if g.S != tt.s {
			t.Errorf("%s: S %d, want %d", tt.name, g.S, tt.s)
		}
	}
	if g := Grow(line(10), []float64{1, 2, 2, 3, 5, 4, 6, 7, 7, 9}); math.Abs(g.Low-.666667) > 1e-6 || math.Abs(g.High-1) > 1e-6 {
		t.Errorf("G1: interval %v to %v", g.Low, g.High)
	}
	if g := Grow(nil, nil); g.P != 1 || g.Slope != 0 {
		t.Errorf("nothing: %+v", g)
	}
}

func TestExactKendall(t *testing.T) {
	for _, tt := range []struct {
		n, s int
		want float64
	}{{4, 6, .083333}, {5, 10, .016667}, {6, 15, .002778}, {6, 13, .016667}, {7, 21, .000397}, {8, 28, .0000496}, {8, 24, .001736}, {8, 16, .061012}, {9, 36, .000006}} {
		if got := exactKendall(tt.n, tt.s); math.Abs(got-tt.want) > 6e-7 {
			t.Errorf("n %d, S %d: %v, want %v", tt.n, tt.s, got, tt.want)
		}
	}
}

func TestSustained(t *testing.T) {
	for name, tt := range map[string]struct {
		y    []float64
		want bool
	}{
		"steady":  {[]float64{2.0, 2.2, 2.1, 2.6, 3.0, 2.9, 3.3, 3.8, 3.7, 4.2, 4.4, 4.9}, true},
		"warm-up": {[]float64{2, 3, 3.6, 4, 4.2, 4.3, 4.3, 4.4, 4.4, 4.4, 4.4, 4.4}, false},
		"slack":   {[]float64{1, 1.35, 1.9, 2.2, 2.8, 3.15, 3.6, 4.1}, true},
		"flat":    {[]float64{4, 4.05, 4, 4.1, 4, 4.05, 4.1, 4}, false},
		"a step":  {[]float64{1, 1.01, 1, 1.02, 1.01, 3, 3.01, 3, 3.02, 3.01, 3.02, 3.03}, false},
		"short":   {[]float64{1, 2, 3, 4, 5, 6, 7}, false},
		"small":   {[]float64{1, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07, 1.08}, false},
	} {
		x := line(len(tt.y))
		if got := Grow(x, tt.y).Sustained(x, tt.y, 10); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	// Series that wander without any trend are rarely taken for growth, and a real leak mostly is.
	rng := rand.New(rand.NewPCG(1, 2))
	wandering, leaking := 0, 0
	for range 400 {
		a, b, level := make([]float64, 50), make([]float64, 50), 0.0
		for i := range a {
			level = 0.9*level + rng.NormFloat64()
			a[i], b[i] = 10+level, 10+level+float64(i)*0.4
		}
		x := line(50)
		if Grow(x, a).Sustained(x, a, 10) {
			wandering++
		}
		if Grow(x, b).Sustained(x, b, 10) {
			leaking++
		}
	}
	if wandering > 40 || leaking < 300 {
		t.Errorf("of 400: %d wandering series grow, %d leaking ones", wandering, leaking)
	}
}

// TestBefore checks G9.
func TestBefore(t *testing.T) {
	u := []float64{10, 10, 11, 12, 18, 10, 10, 11, 13, 19, 10, 10, 11, 12, 20, 10}
	mean, p, n := Before(u, []int{5, 10, 15}, 2)
	if math.Abs(mean-15.666667) > 1e-6 || p != 1.0/16 || n != 16 {
		t.Errorf("mean %v, p %v of %d", mean, p, n)
	}
	if _, p, _ := Before(nil, nil, 2); p != 1 {
		t.Errorf("nothing: %v", p)
	}
}

func ExampleGrow() {
	g := Grow([]float64{0, 10, 20, 30, 40}, []float64{2, 2.9, 4.1, 5, 6.1})
	fmt.Printf("%.5g a second; 10 is reached at %.2f\n", g.Slope, (10-g.Intercept)/g.Slope)
	// Output: 0.10375 a second; 10 is reached at 77.59
}
