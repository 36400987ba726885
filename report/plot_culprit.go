package report

import (
	"fmt"
	"math"

	"postmortem/analyze"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// culpritFigure draws a culprit: along one parameter its rates, of two the plane with the trials. The rule's
// part of the picture is shaded.
func culpritFigure(id, title, desc, rateLabel string, p *analyze.Picture) figure {
	return figure{id: id, title: title, desc: desc, w: plotWidth, h: 300, draw: func(c draw.Canvas) {
		c.Max.X -= 14
		plt := newPlot()
		setAxis(&plt.X, p.Axes[0])
		if len(p.Axes) == 1 {
			plt.Y.Min, plt.Y.Max = 0, 1
			plt.Y.Label.Text = rateLabel
			plt.Y.Tick.Marker = percentTicks
			plt.Add(&alongPlotter{p})
		} else {
			setAxis(&plt.Y, p.Axes[1])
			plt.Add(&planePlotter{p})
		}
		plt.Draw(c)
	}}
}

// hazardFigure draws a class's rate along the age of the processes.
func hazardFigure(id, title, desc, xLabel, rateLabel string, bins []analyze.ValueRate) figure {
	a := analyze.Axis{Param: xLabel, From: math.Inf(1), To: math.Inf(-1)} // nothing is shaded
	for _, v := range bins {
		a.High = max(a.High, v.High)
	}
	return culpritFigure(id, title, desc, rateLabel, &analyze.Picture{Axes: []analyze.Axis{a}, Bins: bins})
}

var percentTicks = plot.ConstantTicks{{Value: 0, Label: "0 %"}, {Value: 0.25, Label: "25 %"}, {Value: 0.5, Label: "50 %"}, {Value: 0.75, Label: "75 %"}, {Value: 1, Label: "100 %"}}

// setAxis gives an axis the range, scale and ticks of a parameter.
func setAxis(ax *plot.Axis, a analyze.Axis) {
	ax.Label.Text = clip(plainText(a.Param), 60)
	ax.Label.Padding = 3
	if a.Levels != nil {
		ax.Min, ax.Max = -0.5, float64(len(a.Levels))-0.5
		var ticks []plot.Tick
		for i, l := range a.Levels {
			if len(a.Levels) <= 12 || i%(len(a.Levels)/12+1) == 0 {
				ticks = append(ticks, plot.Tick{Value: float64(i), Label: clip(plainText(l), max(8, 96/len(a.Levels)))})
			}
		}
		ax.Tick.Marker = plot.ConstantTicks(ticks)
		return
	}
	lo, hi := a.Low, a.High
	if a.Log {
		m := math.Pow(hi/lo, 0.03)
		ax.Min, ax.Max = lo/m, hi*m
		ax.Scale = plot.LogScale{}
		ax.Tick.Marker = decadeTicks{}
		return
	}
	m := (hi - lo) * 0.03
	if m == 0 {
		m = 1
	}
	ax.Min, ax.Max = lo-m, hi+m
	ax.Tick.Marker = roundTicks{}
}

// decadeTicks puts ticks at 1, 2 and 5 times powers of ten, fewer where there are many decades.
type decadeTicks struct{}

// Ticks implements plot.Ticker.
func (decadeTicks) Ticks(lo, hi float64) []plot.Tick {
	first, last := int(math.Floor(math.Log10(lo))), int(math.Ceil(math.Log10(hi)))
	steps := []float64{1, 2, 5}
	if last-first > 3 {
		steps = steps[:1]
	}
	var out []plot.Tick
	for d := first; d <= last; d++ {
		for _, s := range steps {
			if v := s * math.Pow10(d); v >= lo && v <= hi {
				out = append(out, plot.Tick{Value: v, Label: value(v)})
			}
		}
	}
	return out
}

// part is the rule's part of an axis in its units; empty where there is none.
func part(a analyze.Axis, lo, hi float64) [][2]float64 {
	if a.Levels != nil {
		var out [][2]float64
		for i, in := range a.In {
			if in {
				out = append(out, [2]float64{float64(i) - 0.5, float64(i) + 0.5})
			}
		}
		return out
	}
	if a.From > a.To {
		return nil
	}
	from, to := max(a.From, lo), min(a.To, hi)
	return [][2]float64{{from, to}}
}

// shade fills the rule's part of the canvas; a part without width is a line.
func shade(c draw.Canvas, plt *plot.Plot, p *analyze.Picture) {
	x, y := plt.Transforms(&c)
	ys := [][2]float64{{plt.Y.Min, plt.Y.Max}}
	if len(p.Axes) > 1 {
		ys = part(p.Axes[1], plt.Y.Min, plt.Y.Max)
	}
	for _, h := range part(p.Axes[0], plt.X.Min, plt.X.Max) {
		for _, v := range ys {
			rect(c, inkShade, x(h[0])-1.5, y(v[0])-1.5, x(h[1])+1.5, y(v[1])+1.5)
		}
	}
}

// alongPlotter draws rates with their intervals along one parameter.
type alongPlotter struct{ p *analyze.Picture }

// Plot implements plot.Plotter.
func (a *alongPlotter) Plot(c draw.Canvas, plt *plot.Plot) {
	shade(c, plt, a.p)
	x, y := plt.Transforms(&c)
	for _, g := range []float64{0.25, 0.5, 0.75, 1} {
		c.StrokeLine2(line(inkGrid, 0.4), c.Min.X, y(g), c.Max.X, y(g))
	}
	axis := a.p.Axes[0]
	for _, v := range a.p.Bins {
		lo, hi := x(v.Low), x(v.High)
		if axis.Levels != nil {
			lo, hi = x(v.Low-0.3), x(v.High+0.3)
		}
		if hi-lo < 8 {
			lo, hi = (lo+hi)/2-4, (lo+hi)/2+4
		}
		mid := (lo + hi) / 2
		k := inkMemory
		if inPart(axis, (v.Low+v.High)/2) {
			k = inkLost
		}
		mark(c, fmt.Sprintf("%s: %d of %d, %s (95 %%: %s to %s)", v.Label(), v.Failed, v.N, percent(v.Rate), percent(v.CI[0]), percent(v.CI[1])), func() {
			c.StrokeLine2(line(inkMuted, 1.2), mid, y(v.CI[0]), mid, y(v.CI[1]))
			rect(c, k, lo, y(v.Rate)-1.8, hi, y(v.Rate)+1.8)
		})
	}
}

func inPart(a analyze.Axis, v float64) bool {
	if a.Levels != nil {
		i := int(v)
		return i >= 0 && i < len(a.In) && a.In[i]
	}
	return v >= a.From && v <= a.To
}

// planePlotter draws trials in the plane of two parameters: crosses died, squares did not. Where many trials
// share a value they are spread a little, always in the same way.
type planePlotter struct{ p *analyze.Picture }

// Plot implements plot.Plotter.
func (a *planePlotter) Plot(c draw.Canvas, plt *plot.Plot) {
	shade(c, plt, a.p)
	x, y := plt.Transforms(&c)
	if a.p.Diagonal {
		end := min(plt.X.Max, plt.Y.Max)
		c.StrokeLine2(line(inkMuted, 1, 5, 3), x(0), y(0), x(end), y(end))
	}
	var crosses, squares vg.Path
	spreadX, spreadY := spread(a.p.Axes[0]), spread(a.p.Axes[1])
	for i, pt := range a.p.Points {
		px := x(pt.X) + spreadX*vg.Length(math.Mod(float64(i)*0.6180339887, 1)-0.5)
		py := y(pt.Y) + spreadY*vg.Length(math.Mod(float64(i)*0.7548776662, 1)-0.5)
		if pt.Failed {
			const r = 3.2
			crosses.Move(vg.Point{X: px - r, Y: py - r})
			crosses.Line(vg.Point{X: px + r, Y: py + r})
			crosses.Move(vg.Point{X: px - r, Y: py + r})
			crosses.Line(vg.Point{X: px + r, Y: py - r})
			continue
		}
		const r = 1.7
		squares.Move(vg.Point{X: px - r, Y: py - r})
		squares.Line(vg.Point{X: px + r, Y: py - r})
		squares.Line(vg.Point{X: px + r, Y: py + r})
		squares.Line(vg.Point{X: px - r, Y: py + r})
		squares.Close()
	}
	if squares != nil {
		c.SetColor(inkMemory.rgb)
		c.Fill(squares)
	}
	if crosses != nil {
		c.SetLineStyle(line(inkLost, 1.4))
		c.Stroke(crosses)
	}
}

// spread is how far trials of one value are drawn apart.
func spread(a analyze.Axis) vg.Length {
	if a.Levels != nil {
		return 40
	}
	return 5
}
