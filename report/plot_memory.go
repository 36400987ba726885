package report

import (
	"fmt"
	"math"

	"postmortem/analyze"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// layerInks are the inks of a stack's workers, in turn; others are grey, and borders keep neighbours of one ink
// apart.
var layerInks = []ink{inkMemory, inkCompleted, inkGuarded, inkOpen}

// stackFigure draws a card's memory process by process; wedges mark errors for want of it, ticks below the
// axis the ends of processes.
func stackFigure(id, title, desc, xLabel, yLabel string, s analyze.MemoryStack) figure {
	return figure{id: id, title: title, desc: desc, w: plotWidth, h: 260, draw: func(c draw.Canvas) {
		c.Max.X -= 14
		p := newPlot()
		p.X.Min, p.X.Max = 0, max(1, s.At[len(s.At)-1])
		top := s.TotalGiB
		for i := range s.At {
			sum := 0.0
			for _, l := range s.Layers {
				sum += l.GiB[i]
			}
			top = max(top, sum)
		}
		p.Y.Min, p.Y.Max = 0, max(0.001, top*1.06)
		p.X.Tick.Marker = timeTicks{s.From}
		p.Y.Tick.Marker = roundTicks{}
		p.X.Label.Text, p.Y.Label.Text = xLabel, yLabel
		p.Add(&stackPlotter{s})
		p.Draw(c)
	}}
}

type stackPlotter struct{ s analyze.MemoryStack }

// Plot implements plot.Plotter.
func (p *stackPlotter) Plot(c draw.Canvas, plt *plot.Plot) {
	x, y := plt.Transforms(&c)
	base := make([]float64, len(p.s.At))
	for k, l := range p.s.Layers {
		var area vg.Path
		for i, at := range p.s.At {
			pt := vg.Point{X: x(at), Y: y(base[i])}
			if i == 0 {
				area.Move(pt)
			} else {
				area.Line(pt)
			}
		}
		for i := len(p.s.At) - 1; i >= 0; i-- {
			base[i] += l.GiB[i]
			area.Line(vg.Point{X: x(p.s.At[i]), Y: y(base[i])})
		}
		area.Close()
		peak := 0.0
		for _, v := range l.GiB {
			peak = max(peak, v)
		}
		mark(c, fmt.Sprintf("%s: at most %.1f GiB", layerName(l), peak), func() {
			k := layerInks[k%len(layerInks)]
			if l.Worker == "" {
				k = inkPruned
			}
			c.SetColor(k.rgb)
			c.Fill(area)
			c.SetLineStyle(line(inkShade, 0.5))
			c.Stroke(area)
		})
	}
	if p.s.TotalGiB > 0 {
		c.StrokeLine2(line(inkText, 0.9, 5, 3), c.Min.X, y(p.s.TotalGiB), c.Max.X, y(p.s.TotalGiB))
	}
	for _, at := range p.s.Ends {
		if at >= plt.X.Min && at <= plt.X.Max {
			c.StrokeLine2(line(inkText, 1.2), x(at), c.Min.Y, x(at), c.Min.Y+7)
		}
	}
	for _, at := range p.s.Incidents {
		if at < plt.X.Min || at > plt.X.Max {
			continue
		}
		var w vg.Path
		w.Move(vg.Point{X: x(at), Y: c.Max.Y - 6})
		w.Line(vg.Point{X: x(at) - 3, Y: c.Max.Y})
		w.Line(vg.Point{X: x(at) + 3, Y: c.Max.Y})
		w.Close()
		c.SetColor(inkLost.rgb)
		c.Fill(w)
	}
}

func layerName(l analyze.MemoryLayer) string {
	switch {
	case l.Worker != "":
		return fmt.Sprintf("worker %s (pid %d)", l.Worker, l.PID)
	case l.PID != 0:
		return fmt.Sprintf("pid %d, no log names it", l.PID)
	}
	return "others"
}

// growthFigure draws a process's allocated, reserved and loose memory, the trend, the limit, the forecast and
// the end.
func growthFigure(id, title, desc, xLabel, yLabel string, g *analyze.GrowthPicture) figure {
	return figure{id: id, title: title, desc: desc, w: plotWidth, h: 260, draw: func(c draw.Canvas) {
		c.Max.X -= 14
		p := newPlot()
		n := len(g.Minutes)
		p.X.Min, p.X.Max = g.Minutes[0], max(g.Minutes[n-1], g.Died, g.Forecast)+1e-6
		p.X.Max += (p.X.Max - p.X.Min) * 0.02
		for _, v := range g.Reserved {
			p.Y.Max = max(p.Y.Max, v)
		}
		p.Y.Min, p.Y.Max = 0, max(0.001, max(p.Y.Max, g.Limit)*1.06)
		if g.Limit > 4*p.Y.Max { // far away: the growth itself is what matters
			p.Y.Max = highest(g.Reserved) * 1.1
		}
		p.X.Tick.Marker, p.Y.Tick.Marker = roundTicks{}, roundTicks{}
		p.X.Label.Text, p.Y.Label.Text = xLabel, yLabel
		p.Add(&growthPlotter{g})
		p.Draw(c)
	}}
}

func highest(v []float64) float64 {
	m := 0.001
	for _, x := range v {
		m = max(m, x)
	}
	return m
}

type growthPlotter struct{ g *analyze.GrowthPicture }

// Plot implements plot.Plotter.
func (p *growthPlotter) Plot(c draw.Canvas, plt *plot.Plot) {
	g := p.g
	x, y := plt.Transforms(&c)
	curve := func(v []float64, s draw.LineStyle) {
		var path vg.Path
		for i := range v {
			pt := vg.Point{X: x(g.Minutes[i]), Y: y(v[i])}
			if i == 0 {
				path.Move(pt)
			} else {
				path.Line(pt)
			}
		}
		c.SetLineStyle(s)
		c.Stroke(path)
	}
	curve(g.Reserved, line(inkPruned, 1.4))
	curve(g.Loose, line(inkGuarded, 1.4, 2, 2))
	curve(g.Allocated, line(inkMemory, 2))
	at := func(m float64) float64 { return g.Intercept + g.Slope*m }
	c.StrokeLine2(line(inkText, 0.9, 5, 3), x(plt.X.Min), y(at(plt.X.Min)), x(plt.X.Max), min(y(at(plt.X.Max)), c.Max.Y))
	if g.Limit > 0 && g.Limit <= plt.Y.Max {
		c.StrokeLine2(line(inkLost, 1, 6, 3), c.Min.X, y(g.Limit), c.Max.X, y(g.Limit))
	}
	if g.Forecast > 0 {
		mark(c, fmt.Sprintf("the limit was expected at %.1f min", g.Forecast), func() {
			c.StrokeLine2(line(inkMuted, 1.2, 2, 3), x(g.Forecast), c.Min.Y, x(g.Forecast), c.Max.Y)
		})
	}
	if g.Died > 0 {
		mark(c, fmt.Sprintf("it ran out of memory at %.1f min", g.Died), func() {
			c.StrokeLine2(line(inkLost, 1.6), x(g.Died), c.Min.Y, x(g.Died), c.Max.Y)
		})
	}
}

// alignFigure draws the mean of a card's memory around a class's errors, over the band in which it lies when
// the errors are shifted in time.
func alignFigure(id, title, desc, xLabel, yLabel string, a *analyze.AlignPicture) figure {
	return figure{id: id, title: title, desc: desc, w: plotWidth, h: 220, draw: func(c draw.Canvas) {
		c.Max.X -= 14
		p := newPlot()
		n := len(a.Seconds)
		lo, hi := a.Low, a.High
		for _, v := range a.GiB {
			lo, hi = math.Min(lo, v), math.Max(hi, v)
		}
		m := (hi - lo) * 0.08
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = a.Seconds[0], a.Seconds[n-1], lo-m, hi+m+1e-6
		p.X.Tick.Marker, p.Y.Tick.Marker = roundTicks{}, roundTicks{}
		p.X.Label.Text, p.Y.Label.Text = xLabel, yLabel
		p.Add(&alignPlotter{a})
		p.Draw(c)
	}}
}

type alignPlotter struct{ a *analyze.AlignPicture }

// Plot implements plot.Plotter.
func (p *alignPlotter) Plot(c draw.Canvas, plt *plot.Plot) {
	x, y := plt.Transforms(&c)
	rect(c, inkShade, c.Min.X, y(p.a.Low), c.Max.X, y(p.a.High))
	c.StrokeLine2(line(inkMuted, 0.9, 5, 3), c.Min.X, y(p.a.Mean), c.Max.X, y(p.a.Mean))
	c.StrokeLine2(line(inkLost, 1.2), x(0), c.Min.Y, x(0), c.Max.Y)
	var path vg.Path
	for i, v := range p.a.GiB {
		pt := vg.Point{X: x(p.a.Seconds[i]), Y: y(v)}
		if i == 0 {
			path.Move(pt)
		} else {
			path.Line(pt)
		}
	}
	c.SetLineStyle(line(inkMemory, 2))
	c.Stroke(path)
}

// mapFigure draws a snapshot's segments as bars, live blocks filled, free ones empty, the largest segments
// first.
func mapFigure(id, title, desc, xLabel string, s analyze.SnapshotMemory) figure {
	rows := min(len(s.Map), maxSegments)
	return figure{id: id, title: title, desc: desc, w: plotWidth, h: vg.Length(rows)*7 + 40, draw: func(c draw.Canvas) {
		c.Max.X -= 14
		p := newPlot()
		for _, m := range s.Map[:rows] {
			sum := 0.0
			for _, b := range m.Blocks {
				sum += math.Abs(float64(b)) / (1 << 20)
			}
			p.X.Max = math.Max(p.X.Max, sum)
		}
		p.X.Max = math.Max(p.X.Max, 0.001)
		p.Y.Min, p.Y.Max = 0, float64(rows)
		p.X.Tick.Marker, p.Y.Tick.Marker = roundTicks{}, plot.ConstantTicks{}
		p.X.Label.Text = xLabel
		p.Add(&mapPlotter{s.Map[:rows]})
		p.Draw(c)
	}}
}

// maxSegments is how many segments a map shows.
const maxSegments = 60

type mapPlotter struct{ rows []analyze.SegmentMap }

// Plot implements plot.Plotter.
func (p *mapPlotter) Plot(c draw.Canvas, plt *plot.Plot) {
	x, y := plt.Transforms(&c)
	for i, m := range p.rows {
		lo, hi := y(float64(len(p.rows)-i)-0.9), y(float64(len(p.rows)-i)-0.1)
		at := 0.0
		for _, b := range m.Blocks {
			size := math.Abs(float64(b)) / (1 << 20)
			if b > 0 {
				rect(c, inkMemory, x(at), lo, x(at+size), hi)
			} else {
				rect(c, inkShade, x(at), lo, x(at+size), hi)
				c.StrokeLine2(line(inkLost, 0.8), x(at), (lo+hi)/2, x(at+size), (lo+hi)/2)
			}
			at += size
		}
	}
}

// footprintFigure puts trials in the plane of what they were predicted to need and what the card had free.
func footprintFigure(id, title, desc, xLabel, yLabel string, points []analyze.FootprintPoint) figure {
	p := &analyze.Picture{Axes: []analyze.Axis{{Param: xLabel, From: math.Inf(1), To: math.Inf(-1)}, {Param: yLabel, From: math.Inf(1), To: math.Inf(-1)}}}
	for _, pt := range points {
		p.Points = append(p.Points, analyze.PlanePoint{X: pt.Predicted, Y: pt.Free, Failed: pt.Lost})
		p.Axes[0].High, p.Axes[1].High = math.Max(p.Axes[0].High, pt.Predicted), math.Max(p.Axes[1].High, pt.Free)
	}
	p.Diagonal = true
	return culpritFigure(id, title, desc, "", p)
}
