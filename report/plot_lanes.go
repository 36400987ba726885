package report

import (
	"fmt"
	"time"

	"postmortem/analyze"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const plotWidth vg.Length = 920

// lanesFigure draws the run: a lane per worker with trials as bars in the colour of their fate, below
// it the cards' memory on the same axis, incidents marked in both. Words come from the template.
func lanesFigure(id, title, desc, yLanes, xLabel, yMemory string, l analyze.Lanes) figure {
	rows := 0
	for _, w := range l.Workers {
		rows += w.Rows()
	}
	laneH := min(max(vg.Length(rows)*22, 44), 900)
	h := laneH + 60
	if len(l.Cards) > 0 {
		h += 170
	}
	return figure{id: id, title: title, desc: desc, w: plotWidth, h: h, draw: func(c draw.Canvas) {
		base := l.From
		hi := max(l.To.Sub(base).Seconds(), 1)
		top := newPlot()
		top.Add(&lanePlotter{l, base})
		top.X.Tick.Marker = timeTicks{base}
		top.X.Min, top.X.Max = 0, hi
		top.Y.Min, top.Y.Max = 0, float64(max(rows, 1))
		top.Y.Label.Text = yLanes
		var ticks []plot.Tick
		y := float64(rows)
		for _, w := range l.Workers {
			name := w.Worker
			if name == "" {
				name = "?"
			}
			ticks = append(ticks, plot.Tick{Value: y - float64(w.Rows())/2, Label: clip(plainText(name), 18)})
			y -= float64(w.Rows())
		}
		top.Y.Tick.Marker = plot.ConstantTicks(ticks)
		top.Y.Tick.LineStyle.Width = 0
		if len(l.Cards) == 0 {
			top.X.Label.Text = xLabel
			top.Draw(c)
			return
		}
		bottom := newPlot()
		bottom.Add(&memoryPlotter{l, base})
		bottom.X.Tick.Marker = timeTicks{base}
		bottom.X.Min, bottom.X.Max = 0, hi
		bottom.X.Label.Text = xLabel
		bottom.Y.Label.Text = yMemory
		bottom.Y.Tick.Marker = roundTicks{}
		bottom.Y.Min, bottom.Y.Max = 0, memoryTop(l)
		// The panels share their horizontal axis: align by drawing each into a tile of its height.
		c.Min.X += 2
		c.Max.X -= 14 // the last tick label reaches beyond the axis
		upper, lower := c, c
		upper.Min.Y = c.Max.Y - laneH - 20
		lower.Max.Y = upper.Min.Y - 8
		alignLeft(top, bottom, upper, lower)
	}}
}

// alignLeft draws two plots so that their data areas begin and end at the same x.
func alignLeft(a, b *plot.Plot, ca, cb draw.Canvas) {
	da, db := a.DataCanvas(ca), b.DataCanvas(cb)
	if d := da.Min.X - db.Min.X; d > 0 {
		cb.Min.X += d
	} else {
		ca.Min.X -= d
	}
	if d := da.Max.X - db.Max.X; d > 0 {
		ca.Max.X -= d
	} else {
		cb.Max.X += d
	}
	a.Draw(ca)
	b.Draw(cb)
}

func memoryTop(l analyze.Lanes) float64 {
	top := int64(0)
	for _, card := range l.Cards {
		top = max(top, card.TotalBytes)
		for _, u := range card.UsedBytes {
			top = max(top, u)
		}
	}
	return max(float64(top)/(1<<30)*1.04, 0.1)
}

type lanePlotter struct {
	l    analyze.Lanes
	base time.Time
}

// Plot implements plot.Plotter.
func (p *lanePlotter) Plot(c draw.Canvas, plt *plot.Plot) {
	x, y := plt.Transforms(&c)
	at := func(t time.Time) vg.Length { return x(t.Sub(p.base).Seconds()) }
	row := plt.Y.Max
	rowOf := map[string]float64{}
	for _, w := range p.l.Workers {
		rowOf[w.Worker] = row
		for _, b := range thinBars(w.Bars, at) {
			// Height tells the fate as well as colour: lost fills its row, completed most of it.
			height := map[string]float64{"lost": 0.9, "completed": 0.6}[b.Fate]
			if height == 0 {
				height = 0.35
			}
			mid := row - float64(b.Row) - 0.5
			title := fmt.Sprintf("trial %d: %s %s, %s – %s", b.Trial, b.Fate, b.Class, b.From.UTC().Format("15:04:05"), b.To.UTC().Format("15:04:05"))
			if b.more > 0 {
				title = fmt.Sprintf("%d trials, the worst of them %s", b.more+1, b.Fate)
			}
			x0, x1 := at(b.From), at(b.To)
			mark(c, title, func() { rect(c, fateInk(b.Fate), x0, y(mid-height/2), max(x1-0.4, x0+0.6), y(mid+height/2)) })
		}
		row -= float64(w.Rows())
		c.StrokeLine2(line(inkGrid, 0.5), c.Min.X, y(row), c.Max.X, y(row))
	}
	for _, m := range thinMarks(p.l.Marks, at) {
		r, ok := rowOf[m.Worker]
		if !ok {
			continue
		}
		// A small wedge at the top of the lane marks the moment of the root error.
		px, py := at(m.At), y(r)
		var tri vg.Path
		tri.Move(vg.Point{X: px - 3, Y: py + 1})
		tri.Line(vg.Point{X: px + 3, Y: py + 1})
		tri.Line(vg.Point{X: px, Y: py - 5})
		tri.Close()
		mark(c, m.Incident+" "+m.Class+" "+m.At.UTC().Format("15:04:05"), func() {
			c.SetColor(inkText.rgb)
			c.Fill(tri)
		})
	}
}

type thinBar struct {
	analyze.Bar
	more int // how many further trials it stands for
}

// grain is the finest step that is drawn: half a point.
const grain vg.Length = 0.5

// thinBars joins bars of one row that begin within half a point of each other; the worst fate shows.
func thinBars(bars []analyze.Bar, at func(time.Time) vg.Length) []thinBar {
	out := make([]thinBar, 0, min(len(bars), 4096))
	var last [analyze.MaxRows]int // index in out + 1
	for _, b := range bars {
		if i := last[b.Row]; i > 0 && at(b.From)-at(out[i-1].From) < grain {
			t := &out[i-1]
			if b.To.After(t.To) {
				t.To = b.To
			}
			if b.Fate == "lost" {
				t.Fate, t.Class = b.Fate, b.Class
			}
			t.more++
			continue
		}
		out = append(out, thinBar{Bar: b})
		last[b.Row] = len(out)
	}
	return out
}

// thinMarks keeps one mark of each worker for every half point.
func thinMarks(marks []analyze.Mark, at func(time.Time) vg.Length) []analyze.Mark {
	var out []analyze.Mark
	last := map[string]vg.Length{}
	for _, m := range marks {
		x := at(m.At)
		if l, ok := last[m.Worker]; ok && x-l < grain {
			continue
		}
		last[m.Worker] = x
		out = append(out, m)
	}
	return out
}

type memoryPlotter struct {
	l    analyze.Lanes
	base time.Time
}

// Plot implements plot.Plotter.
func (p *memoryPlotter) Plot(c draw.Canvas, plt *plot.Plot) {
	x, y := plt.Transforms(&c)
	const gib = 1 << 30
	for _, t := range plt.Y.Tick.Marker.Ticks(plt.Y.Min, plt.Y.Max) {
		c.StrokeLine2(line(inkGrid, 0.4), c.Min.X, y(t.Value), c.Max.X, y(t.Value))
	}
	for _, m := range thinMarks(p.l.Marks, func(t time.Time) vg.Length { return x(t.Sub(p.base).Seconds()) }) {
		px := x(m.At.Sub(p.base).Seconds())
		mark(c, m.Incident+" "+m.Class+" "+m.At.UTC().Format("15:04:05"), func() {
			c.StrokeLine2(line(inkLost, 0.5, 2, 3), px, c.Min.Y, px, c.Max.Y)
		})
	}
	for i, card := range p.l.Cards {
		dash := []vg.Length{} // cards after the first are told apart by their dashes
		if i > 0 {
			dash = []vg.Length{vg.Length(1 + 2*i), 2}
		}
		if card.TotalBytes > 0 {
			top := y(float64(card.TotalBytes) / gib)
			c.StrokeLine2(line(inkMuted, 0.8, 6, 3), c.Min.X, top, c.Max.X, top)
		}
		var run []vg.Point
		flush := func() {
			if len(run) > 1 {
				mark(c, fmt.Sprintf("GPU %d", card.GPU), func() { c.StrokeLines(line(inkMemory, 1.1, dash...), run) })
			}
			run = nil
		}
		for _, s := range thinSamples(card, func(t time.Time) vg.Length { return x(t.Sub(p.base).Seconds()) }) {
			if s.X < c.Min.X || s.X > c.Max.X {
				continue
			}
			if s.unknown {
				flush()
				continue
			}
			run = append(run, vg.Point{X: s.X, Y: y(s.bytes / gib)})
		}
		flush()
	}
}

type sample struct {
	X       vg.Length
	bytes   float64
	unknown bool
}

// thinSamples keeps, for every column of half a point, the first, the least, the most and the last
// sample, so that no peak is lost.
func thinSamples(card analyze.Card, at func(time.Time) vg.Length) []sample {
	var out []sample
	for i := 0; i < len(card.Time); {
		col := int(at(card.Time[i]) * 2)
		j, lo, hi := i, i, i
		for ; j < len(card.Time) && int(at(card.Time[j])*2) == col; j++ {
			if card.UsedBytes[j] < card.UsedBytes[lo] {
				lo = j
			}
			if card.UsedBytes[j] > card.UsedBytes[hi] {
				hi = j
			}
		}
		last := -1
		for _, k := range []int{i, min(lo, hi), max(lo, hi), j - 1} {
			if k != last {
				out = append(out, sample{at(card.Time[k]), float64(card.UsedBytes[k]), card.UsedBytes[k] < 0})
			}
			last = k
		}
		i = j
	}
	return out
}

// clip cuts a label to n runes.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
