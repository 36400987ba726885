package scan

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A world is a made table whose outcomes follow known rules.
type world struct {
	table   Table
	planted [][]bool // rows of each rule
	context []string // columns that are right where the cause is no parameter
}

type maker struct {
	*rand.Rand
	n    int
	raw  [][]float64 // by column, NaN for none
	cols []Column
}

// addParams makes parameters of every kind. A learning sampler copies most values from earlier rows that it
// liked, so that parameters move together and with time.
func (m *maker) addParams(learns bool) {
	levels := func(k int) func() float64 { return func() float64 { return float64(m.IntN(k)) } }
	type kind struct {
		draw   func() float64
		levels int
	}
	kinds := []kind{{levels(2), 2}, {levels(3), 3}, {levels(4), 4}, {levels(5), 5},
		{m.Float64, 0}, {func() float64 { return math.Exp(-12 + 10*m.Float64()) }, 0}, {m.Float64, 0},
		{func() float64 { return float64(8 * (1 + m.IntN(16))) }, 0}, {func() float64 { return math.Pow(2, float64(3+m.IntN(5))) }, 0}, {func() float64 { return float64(1 + m.IntN(6)) }, 0}}
	for range m.IntN(5) {
		kinds = append(kinds, kinds[m.IntN(len(kinds))])
	}
	m.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	liked := make([]float64, m.n)
	for r := range m.n {
		liked[r] = m.Float64()
	}
	for c, k := range kinds {
		raw := make([]float64, m.n)
		for r := range raw {
			raw[r] = k.draw()
			if learns && r > 30 && m.Float64() < 0.6 {
				best := m.IntN(r)
				for range 3 {
					if o := m.IntN(r); liked[o] > liked[best] {
						best = o
					}
				}
				raw[r] = raw[best]
			}
		}
		m.raw = append(m.raw, raw)
		m.cols = append(m.cols, Column{Name: string(rune('a' + c)), Levels: k.levels})
	}
	// One more exists only where the first nominal one is 0.
	parent := slices.IndexFunc(m.cols, func(c Column) bool { return c.Levels > 0 })
	raw := make([]float64, m.n)
	for r := range raw {
		raw[r] = math.NaN()
		if m.raw[parent][r] == 0 {
			raw[r] = m.Float64()
		}
	}
	m.raw = append(m.raw, raw)
	m.cols = append(m.cols, Column{Name: "child"})
}

func (m *maker) addContext() {
	worker, order, uptime, commit := make([]float64, m.n), make([]float64, m.n), make([]float64, m.n), make([]float64, m.n)
	at := map[float64]float64{}
	change := 0.3 + 0.4*m.Float64()
	restart := m.Float64() < 0.5
	for r := range m.n {
		w := float64(m.IntN(3))
		if restart && at[w] > 30 && m.Float64() < 0.05 {
			at[w] = 0
		}
		worker[r], order[r], uptime[r] = w, float64(r), at[w]
		at[w]++
		if float64(r) > change*float64(m.n) {
			commit[r] = 1
		}
	}
	m.raw = append(m.raw, worker, commit, order, uptime)
	m.cols = append(m.cols, Column{Name: "worker", Role: Context, Levels: 3}, Column{Name: "commit", Role: Context, Levels: 2, Temporal: true},
		Column{Name: "order", Role: Order, Temporal: true}, Column{Name: "uptime", Role: Context, Temporal: true})
}

// encode turns raw values into codes.
func (m *maker) encode() {
	for c := range m.cols {
		col := &m.cols[c]
		col.Codes = make([]int32, m.n)
		if col.Levels == 0 {
			for _, v := range m.raw[c] {
				if v == v {
					col.Values = append(col.Values, v)
				}
			}
			slices.Sort(col.Values)
			col.Values = slices.Compact(col.Values)
		}
		for r, v := range m.raw[c] {
			col.Codes[r] = -1
			if v == v {
				k := int(v)
				if col.Levels == 0 {
					k, _ = slices.BinarySearch(col.Values, v)
				}
				col.Codes[r] = int32(k)
			}
		}
	}
}

// condition draws rows by one parameter: about the given share of them.
func (m *maker) condition(c int, share float64) []bool {
	in := make([]bool, m.n)
	raw, col := m.raw[c], m.cols[c]
	var sorted []float64
	for _, v := range raw {
		if v == v {
			sorted = append(sorted, v)
		}
	}
	slices.Sort(sorted)
	if col.Levels > 0 {
		want := 1
		if col.Levels > 3 && share > 0.3 {
			want = 2
		}
		first := m.IntN(col.Levels)
		for r, v := range raw {
			in[r] = int(v+float64(col.Levels)-float64(first))%col.Levels < want
		}
		return in
	}
	above := m.IntN(2) == 0
	cut := sorted[int(share*float64(len(sorted)-1))]
	if above {
		cut = sorted[int((1-share)*float64(len(sorted)-1))]
	}
	for r, v := range raw {
		in[r] = above && v >= cut || !above && v <= cut
	}
	return in
}

// rule draws a conjunction of k parameters.
func (m *maker) rule(k int, share float64) []bool {
	params := 0
	for _, c := range m.cols {
		if c.Role == Parameter {
			params++
		}
	}
	each := math.Pow(share, 1/float64(k))
	in := make([]bool, m.n)
	for i := range in {
		in[i] = true
	}
	for _, c := range m.Perm(params)[:k] {
		for r, ok := range m.condition(c, each) {
			in[r] = in[r] && ok
		}
	}
	return in
}

var worldKinds = []string{"one", "two", "three", "either", "soft", "commit", "worker", "uptime", "none", "learned"}

// newWorld makes a table of a kind.
func newWorld(kind string, seed uint64) *world {
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 99))}
	m.n = 200 + m.IntN(800)
	m.addParams(kind == "learned" || m.Float64() < 0.4)
	m.addContext()
	w := &world{}
	noise, dies := 0.02*m.Float64(), 0.8+0.2*m.Float64()
	share := 0.08 + 0.2*m.Float64()
	cause := make([]float64, m.n)
	last := len(m.cols)
	add := func(in []bool) {
		w.planted = append(w.planted, in)
		for r, ok := range in {
			if ok {
				cause[r] = dies
			}
		}
	}
	switch kind {
	case "one", "learned":
		add(m.rule(1, share))
	case "two":
		add(m.rule(2, share))
	case "three":
		add(m.rule(3, share))
	case "either":
		add(m.rule(2, share))
		add(m.rule(1, share))
	case "soft":
		dies = 0.35
		add(m.rule(1+m.IntN(2), 0.2))
	case "commit":
		w.context = []string{"commit", "order", "uptime"}
		for r, v := range m.raw[last-3] {
			cause[r] = 0.3 * v
		}
	case "worker":
		w.context = []string{"worker"}
		for r, v := range m.raw[last-4] {
			if v == 1 {
				cause[r] = 0.3
			}
		}
	case "uptime":
		w.context = []string{"uptime", "order", "commit"}
		for r, v := range m.raw[last-1] {
			if v >= slices.Max(m.raw[last-1])*0.6 {
				cause[r] = 0.5
			}
		}
	case "none":
		noise = 0.1
	}
	m.encode()
	w.table = Table{Hit: make([]bool, m.n), Columns: m.cols}
	for r := range w.table.Hit {
		w.table.Hit[r] = m.Float64() < max(cause[r], noise)
	}
	return w
}

// findable says whether every planted rule has hits enough to be found, rows enough outside, and rows that
// the other rules do not have.
func (w *world) findable() bool {
	for i, in := range w.planted {
		hits, n, own := 0, 0, 0
		for r, ok := range in {
			if ok {
				n++
				if w.table.Hit[r] {
					hits++
				}
				if len(w.planted) == 1 || !w.planted[1-i][r] {
					own++
				}
			}
		}
		if hits < 12 || n > len(in)*6/10 || own < n/2 {
			return false
		}
	}
	return true
}

func overlap(a, b []bool) float64 {
	both, any := 0, 0
	for i := range a {
		if a[i] && b[i] {
			both++
		}
		if a[i] || b[i] {
			any++
		}
	}
	return float64(both) / float64(max(1, any))
}

// TestWorlds measures the search on tables that it was not made for.
func TestWorlds(t *testing.T) {
	const each = 25
	for _, kind := range worldKinds {
		rules, equal, claims, tables, context, wrong := 0, 0, 0, 0, 0, 0
		for seed := uint64(1); tables < each; seed++ {
			w := newWorld(kind, seed)
			if !w.findable() {
				continue
			}
			tables++
			found := Find(&w.table)
			params := 0
			right := false
			for _, f := range found {
				if !f.Context {
					params++
					continue
				}
				for _, c := range f.Conditions {
					right = right || slices.Contains(w.context, w.table.Columns[c.Column].Name)
				}
				if len(w.context) == 0 {
					wrong++
				}
			}
			if right {
				context++
			}
			if len(w.planted) == 0 && params > 0 {
				claims++
			}
			for _, p := range w.planted {
				rules++
				if slices.ContainsFunc(found, func(f Rule) bool { return overlap(f.Rows, p) >= 0.95 }) {
					equal++
				}
			}
		}
		t.Logf("%-8s %3d of %3d rules found, %d of %d tables with a false claim, right context in %d, wrong in %d", kind, equal, rules, claims, tables, context, wrong)
		if claims > 1 || wrong > 1 {
			t.Errorf("%s: false claims", kind)
		}
		if float64(equal) < 0.9*float64(rules) && kind != "soft" {
			t.Errorf("%s: %d of %d rules", kind, equal, rules)
		}
		if (kind == "commit" || kind == "worker" || kind == "uptime") && context < each*8/10 {
			t.Errorf("%s: context found in %d of %d", kind, context, tables)
		}
	}
}
