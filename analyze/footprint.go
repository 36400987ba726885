package analyze

import (
	"cmp"
	"math"
	"slices"
	"time"

	"postmortem/analyze/scan"
)

// A Footprint is a model of how much card memory a trial takes, fitted to the trials whose peak is known: a line
// in one size-like hyperparameter or the product of two, for each value of another one where that says more.
type Footprint struct {
	Study  string          `json:"study"`
	Sizes  []string        `json:"sizes"` // one hyperparameter, or two that are multiplied
	By     string          `json:"by"`    // the hyperparameter by whose values the lines differ; "" for one line
	Lines  []FootprintLine `json:"lines"` // by value
	Trials int             `json:"trials"`
	// Error is the root of the mean squared error of predictions for trials that were left out of the fit, and
	// Spread the same when every trial is taken to need the mean.
	ErrorBytes  float64 `json:"error_bytes"`
	SpreadBytes float64 `json:"spread_bytes"`

	Points []FootprintPoint `json:"-"`

	chosen footprintModel
}

// A FootprintLine is base + slope · size.
type FootprintLine struct {
	Value string  `json:"value"`
	N     int     `json:"n"`
	Base  float64 `json:"base_bytes"`
	Slope float64 `json:"bytes_per_unit"`
	// Largest is the largest size, of those that trials had, that the model takes to fit within what the card
	// leaves with a tenth to spare; 0 where none does or nothing tells.
	Largest float64 `json:"largest_fitting"`
}

// A FootprintPoint is a trial: what it was predicted to need, and what the card had free as it began.
type FootprintPoint struct {
	Predicted, Free float64 // GiB
	Lost            bool    // for want of memory
}

// A footprint is only shown with enough trials, and when it errs clearly less than knowing nothing does.
const (
	minFootprint = 24
	perLine      = 6
	usefulFit    = 0.85
	folds        = 5
)

// footprints fits every study.
func (r *run) footprints(blames []Blame, fit *Fit) []Footprint {
	out := []Footprint{}
	peaks := r.trialPeaks()
	for i := range r.tl.Studies {
		s := &r.tl.Studies[i]
		g := r.grid(s)
		k := slices.IndexFunc(blames, func(b Blame) bool { return b.Study == s.Name })
		if k >= 0 {
			g = blames[k].table.grid
		}
		var rows []int32
		var y []float64
		for j := range s.Trials {
			// A trial that was lost may have needed more than it got.
			if p, ok := peaks[trialRef{s.Name, s.Trials[j].Number}]; ok && (g.fates[j].kind == completed || g.fates[j].kind == byPruner) {
				rows, y = append(rows, int32(j)), append(y, p)
			}
		}
		if len(rows) < minFootprint {
			continue
		}
		g.fill(r)
		if f := g.footprint(rows, y); f != nil {
			if fit != nil {
				f.largest((1-spare)*fit.CapacityBytes - fit.ForeignBytes)
			}
			r.beside(f, g)
			out = append(out, *f)
		}
	}
	return out
}

// A footprintModel is a choice of columns, and what it predicts.
type footprintModel struct {
	size  *gridColumn
	by    *gridColumn
	error float64
}

// footprint picks the columns with the least error on trials that were left out.
func (g *grid) footprint(rows []int32, y []float64) *Footprint {
	var sizes, groups []*gridColumn
	for i := range g.cols {
		c := &g.cols[i]
		switch {
		case c.Role != scan.Parameter:
		case c.Ordered() && len(c.Values) >= 2 && c.Values[0] > 0 && c.Values[len(c.Values)-1] > 1:
			sizes = append(sizes, c)
		case !c.Ordered() && c.Levels <= 12:
			groups = append(groups, c)
		}
	}
	products := g.products(rows, make([]bool, len(rows)))
	for i := range products {
		sizes = append(sizes, &products[i])
	}
	spread := crossError(rows, y, nil, nil)
	best := footprintModel{error: usefulFit * spread}
	for _, s := range sizes {
		for _, by := range append([]*gridColumn{nil}, groups...) {
			if e := crossError(rows, y, s, by); e < best.error {
				best = footprintModel{s, by, e}
			}
		}
	}
	if best.size == nil {
		return nil
	}
	f := &Footprint{Study: g.study.Name, Sizes: []string{best.size.Name}, Trials: len(rows), ErrorBytes: best.error, SpreadBytes: spread}
	if best.size.Role == scan.Product {
		f.Sizes = best.size.factors[:]
	}
	if best.by != nil {
		f.By = best.by.Name
	}
	for level, l := range fitLines(rows, y, best.size, best.by, -1) {
		x := FootprintLine{N: l.n, Base: l.base, Slope: l.slope}
		if best.by != nil {
			x.Value = best.by.choices[level].Text
		}
		f.Lines = append(f.Lines, x)
	}
	slices.SortFunc(f.Lines, func(a, b FootprintLine) int { return cmp.Compare(a.Value, b.Value) })
	f.chosen = best
	return f
}

// A regression is a straight line through points.
type regression struct {
	n                int
	sx, sy, sxx, sxy float64
	base, slope      float64
}

func (l *regression) add(x, y float64) {
	l.n++
	l.sx, l.sy, l.sxx, l.sxy = l.sx+x, l.sy+y, l.sxx+x*x, l.sxy+x*y
}

// solve finds the line of least squares; with one x only, the mean.
func (l *regression) solve() {
	n := float64(l.n)
	if d := n*l.sxx - l.sx*l.sx; d > 1e-9*n*l.sxx {
		l.slope = (n*l.sxy - l.sx*l.sy) / d
	}
	l.base = (l.sy - l.slope*l.sx) / math.Max(1, n)
}

// fitLines fits a line to each level of by, or one; rows of the fold are left out, -1 for none. A nil size fits
// means.
func fitLines(rows []int32, y []float64, size, by *gridColumn, fold int) map[int32]*regression {
	out := map[int32]*regression{}
	for k, i := range rows {
		x, level, ok := place(i, size, by)
		if !ok || k%folds == fold {
			continue
		}
		if out[level] == nil {
			out[level] = &regression{}
		}
		out[level].add(x, y[k])
	}
	for _, l := range out {
		l.solve()
	}
	return out
}

// place is a trial's size and level.
func place(row int32, size, by *gridColumn) (x float64, level int32, ok bool) {
	if size != nil {
		c := size.Codes[row]
		if c < 0 {
			return 0, 0, false
		}
		x = size.Values[c]
	}
	if by != nil {
		if level = by.Codes[row]; level < 0 {
			return 0, 0, false
		}
	}
	return x, level, true
}

// crossError is the root of the mean squared error over folds that are left out in turn; +Inf where a level has
// too few trials for a line of its own.
func crossError(rows []int32, y []float64, size, by *gridColumn) float64 {
	sum, n := 0.0, 0
	for fold := range folds {
		lines := fitLines(rows, y, size, by, fold)
		for k, i := range rows {
			if k%folds != fold {
				continue
			}
			x, level, ok := place(i, size, by)
			l := lines[level]
			if !ok || l == nil || l.n < perLine-1 {
				return math.Inf(1)
			}
			d := y[k] - l.base - l.slope*x
			sum += d * d
			n++
		}
	}
	return math.Sqrt(sum / math.Max(1, float64(n)))
}

// predict is what a trial is taken to need; ok is false where it lacks a parameter.
func (f *Footprint) predict(row int32) (float64, bool) {
	x, level, ok := place(row, f.chosen.size, f.chosen.by)
	if !ok {
		return 0, false
	}
	value := ""
	if f.chosen.by != nil {
		value = f.chosen.by.choices[level].Text
	}
	i := slices.IndexFunc(f.Lines, func(l FootprintLine) bool { return l.Value == value })
	if i < 0 {
		return 0, false
	}
	return f.Lines[i].Base + f.Lines[i].Slope*x, true
}

// largest finds for each line the largest size that fits into the room.
func (f *Footprint) largest(room float64) {
	for i := range f.Lines {
		for _, v := range f.chosen.size.Values {
			if l := &f.Lines[i]; l.Base+l.Slope*v <= room {
				l.Largest = math.Max(l.Largest, v)
			}
		}
	}
}

// beside puts every trial beside what its card had free as it began.
func (r *run) beside(f *Footprint, g *grid) {
	if len(r.tl.GPUs) != 1 {
		return
	}
	card := r.tl.GPUs[0]
	for i := range g.study.Trials {
		t := &g.study.Trials[i]
		p, ok := f.predict(int32(i))
		k, _ := slices.BinarySearchFunc(card.Time, t.Start, time.Time.Compare)
		if !ok || t.Start.IsZero() || k >= len(card.Time) || card.FreeBytes[k] < 0 {
			continue
		}
		fate := g.fates[i]
		f.Points = append(f.Points, FootprintPoint{p / gib, float64(card.FreeBytes[k]) / gib, fate.kind == lost && fate.in.root.Class == outOfMemory})
	}
}
