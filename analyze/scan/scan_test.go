package scan

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// ordered makes an ordered column of whole numbers; negative ones stand for none.
func ordered(name string, values ...int) Column {
	c := Column{Name: name}
	for _, v := range values {
		if v >= 0 {
			c.Values = append(c.Values, float64(v))
		}
	}
	slices.Sort(c.Values)
	c.Values = slices.Compact(c.Values)
	for _, v := range values {
		k, ok := slices.BinarySearch(c.Values, float64(v))
		if !ok {
			k = -1
		}
		c.Codes = append(c.Codes, int32(k))
	}
	return c
}

func nominal(name string, levels int, codes ...int32) Column {
	return Column{Name: name, Levels: levels, Codes: codes}
}

// repeat makes n rows by a function of the row.
func repeat[T any](n int, f func(i int) T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = f(i)
	}
	return out
}

// TestFind holds what the search must make of tables whose answer is plain.
func TestFind(t *testing.T) {
	const n = 200
	x := repeat(n, func(i int) int { return i * 7 % 20 })
	kind := repeat(n, func(i int) int32 { return int32(i * 11 % 3) })
	worker := repeat(n, func(i int) int32 { return int32(i % 4) })
	ctx := nominal("worker", 4, worker...)
	ctx.Role = Context
	half := repeat(n, func(i int) int {
		if kind[i] != 0 {
			return -1
		}
		return x[i]
	})
	for _, tt := range []struct {
		name string
		cols []Column
		hit  func(i int) bool
		want [][]Condition
	}{
		{"a threshold", []Column{ordered("x", x...), nominal("kind", 3, kind...)}, func(i int) bool { return x[i] >= 15 },
			[][]Condition{{{Column: 0, Op: AtLeast, Code: 15}}}},
		{"a level", []Column{ordered("x", x...), nominal("kind", 3, kind...)}, func(i int) bool { return kind[i] == 1 },
			[][]Condition{{{Column: 1, Op: In, Set: []int32{1}}}}},
		{"two together", []Column{ordered("x", x...), nominal("kind", 3, kind...)}, func(i int) bool { return kind[i] == 1 && x[i] <= 6 },
			[][]Condition{{{Column: 0, Op: AtMost, Code: 6}, {Column: 1, Op: In, Set: []int32{1}}}}},
		{"between two bounds", []Column{ordered("x", x...), nominal("kind", 3, kind...)}, func(i int) bool { return x[i] >= 5 && x[i] <= 9 },
			[][]Condition{{{Column: 0, Op: AtLeast, Code: 5}, {Column: 0, Op: AtMost, Code: 9}}}},
		{"being there", []Column{ordered("half", half...), ordered("x", x...)}, func(i int) bool { return half[i] >= 0 },
			[][]Condition{{{Column: 0, Op: Present}}}},
		{"a circumstance", []Column{ordered("x", x...), ctx}, func(i int) bool { return worker[i] == 2 && i%3 > 0 },
			[][]Condition{{{Column: 1, Op: In, Set: []int32{2}}}}},
		{"nothing", []Column{ordered("x", x...), nominal("kind", 3, kind...)}, func(i int) bool { return i*i%17 == 3 }, nil},
		{"too few", []Column{ordered("x", x...)}, func(i int) bool { return x[i] == 19 && i < 80 }, nil},
		{"all", []Column{ordered("x", x...)}, func(int) bool { return true }, nil},
		{"none", []Column{ordered("x", x...)}, func(int) bool { return false }, nil},
		{"no columns", nil, func(i int) bool { return i%2 == 0 }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			table := &Table{Hit: repeat(n, tt.hit), Columns: tt.cols}
			rules := Find(table)
			var got [][]Condition
			for _, r := range rules {
				got = append(got, r.Conditions)
				if r.LogQ > math.Log(MaxQ) {
					t.Errorf("claimed with q %v", math.Exp(r.LogQ))
				}
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestConfounded does not claim a parameter whose values only one worker has, when it is the worker that dies.
func TestConfounded(t *testing.T) {
	const n = 400
	rng := rand.New(rand.NewPCG(3, 4))
	worker := repeat(n, func(int) int32 { return int32(rng.IntN(4)) })
	size := repeat(n, func(i int) int {
		if worker[i] == 1 {
			return 8 + rng.IntN(3)
		}
		return rng.IntN(9)
	})
	ctx := nominal("worker", 4, worker...)
	ctx.Role = Context
	table := &Table{Hit: repeat(n, func(i int) bool { return worker[i] == 1 && rng.Float64() < 0.6 }), Columns: []Column{ordered("size", size...), ctx}}
	rules := Find(table)
	if len(rules) != 1 || !rules[0].Context || rules[0].Conditions[0].Column != 1 {
		t.Errorf("%+v", rules)
	}
	suspects := Suspects(table, 3)
	if len(suspects) == 0 || suspects[0].Weakest != "worker" || suspects[0].Crude > math.Log(MaxQ) {
		t.Errorf("the size is a suspect that the worker explains: %+v", suspects)
	}
}

// TestSampled finds the same rule where the coarse pass counts a sample.
func TestSampled(t *testing.T) {
	const n = 60000
	rng := rand.New(rand.NewPCG(5, 6))
	x := repeat(n, func(int) int { return rng.IntN(5000) })
	kind := repeat(n, func(int) int32 { return int32(rng.IntN(5)) })
	table := &Table{Hit: repeat(n, func(i int) bool { return x[i] >= 3000 && kind[i] == 3 || rng.Float64() < 0.01 }), Columns: []Column{ordered("x", x...), nominal("kind", 5, kind...), ordered("order", repeat(n, func(i int) int { return i })...)}}
	table.Columns[2].Role, table.Columns[2].Temporal = Order, true
	rules := Find(table)
	if len(rules) != 1 || overlap(rules[0].Rows, repeat(n, func(i int) bool { return x[i] >= 3000 && kind[i] == 3 })) < 0.995 {
		t.Errorf("%d rules", len(rules))
		for _, r := range rules {
			t.Errorf("%+v: %d of %d", r.Conditions, r.Hits, r.N)
		}
	}
}

func TestFindTwice(t *testing.T) {
	w := newWorld("either", 5)
	a, b := Find(&w.table), Find(&w.table)
	if !reflect.DeepEqual(a, b) {
		t.Error("two searches of one table differ")
	}
}

// FuzzFind searches tables made of any bytes: nothing may panic, and what is claimed must stand.
func FuzzFind(f *testing.F) {
	f.Add([]byte{3, 2, 1, 200, 7, 7, 9}, uint8(3), uint8(60))
	f.Add([]byte("any text will do, as long as it has some length to it and then some more"), uint8(5), uint8(200))
	f.Fuzz(func(t *testing.T, data []byte, cols, rows uint8) {
		if len(data) == 0 || rows == 0 {
			return
		}
		n := int(rows)
		at := 0
		next := func() int {
			at++
			return int(data[at%len(data)]) ^ at/len(data)*37&255
		}
		table := &Table{Hit: repeat(n, func(int) bool { return next()%3 == 0 })}
		for c := range int(cols) % 12 {
			role := Role(next() % 4)
			if next()%2 == 0 || role == Product || role == Order {
				table.Columns = append(table.Columns, ordered(string(rune('a'+c)), repeat(n, func(int) int { return next()%40 - 3 })...))
			} else {
				levels := 1 + next()%30
				table.Columns = append(table.Columns, nominal(string(rune('a'+c)), levels, repeat(n, func(int) int32 { return int32(next()%(levels+1)) - 1 })...))
			}
			table.Columns[c].Role, table.Columns[c].Temporal = role, next()%2 == 0
		}
		for _, r := range append(Find(table), Rule{LogQ: -9, Hits: 9}) {
			if !(r.LogQ <= math.Log(MaxQ)) || r.Hits < MinHits {
				t.Errorf("claimed %+v", r)
			}
		}
		Suspects(table, 3)
	})
}
