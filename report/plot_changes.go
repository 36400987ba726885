package report

import (
	"fmt"

	"postmortem/analyze"
	"postmortem/ingest/failure"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// changesFigure draws each class's rate before and after with its interval: before hollow, after filled.
func changesFigure(id, heading, desc, xLabel string, cat *failure.Catalogue, classes []analyze.ClassChange) figure {
	return figure{id: id, title: heading, desc: desc, w: plotWidth, h: vg.Length(len(classes))*34 + 46, draw: func(c draw.Canvas) {
		c.Max.X -= 14
		p := newPlot()
		p.X.Min, p.X.Max = -0.012, 0.05
		for _, x := range classes {
			p.X.Max = min(1, max(p.X.Max, x.Before.CI[1], x.After.CI[1]))
		}
		p.Y.Min, p.Y.Max = 0, float64(len(classes))
		p.X.Label.Text = xLabel
		p.X.Tick.Marker = shareTicks{}
		var ticks []plot.Tick
		for i, x := range classes {
			ticks = append(ticks, plot.Tick{Value: float64(len(classes)-i) - 0.5, Label: clip(plainText(title(cat, x.Class)), 40)})
		}
		p.Y.Tick.Marker = plot.ConstantTicks(ticks)
		p.Y.Tick.LineStyle.Width = 0
		p.Add(&changesPlotter{classes})
		p.Draw(c)
	}}
}

// shareTicks puts ticks at round shares, written in per cent.
type shareTicks struct{}

// Ticks implements plot.Ticker.
func (shareTicks) Ticks(lo, hi float64) []plot.Tick {
	ticks := roundTicks{}.Ticks(max(0, lo), hi)
	for i := range ticks {
		ticks[i].Label = fmt.Sprintf("%.3g %%", 100*ticks[i].Value)
	}
	return ticks
}

type changesPlotter struct{ classes []analyze.ClassChange }

// Plot implements plot.Plotter.
func (p *changesPlotter) Plot(c draw.Canvas, plt *plot.Plot) {
	x, y := plt.Transforms(&c)
	for i, k := range p.classes {
		mid := float64(len(p.classes)-i) - 0.5
		for j, n := range []analyze.Count{k.Before, k.After} {
			at := y(mid) + vg.Length(5-10*j)
			mark(c, fmt.Sprintf("%s: %d of %d, %s (95 %%: %s to %s)", []string{"before", "after"}[j], n.Failed, n.N, percent(n.Rate), percent(n.CI[0]), percent(n.CI[1])), func() {
				ink := []ink{inkMuted, inkMemory}[j]
				c.StrokeLine2(line(ink, 1.4), x(n.CI[0]), at, x(n.CI[1]), at)
				var dot vg.Path
				dot.Arc(vg.Point{X: x(n.Rate), Y: at}, 3.4, 0, 6.283185307179586)
				dot.Close()
				if j == 1 {
					c.SetColor(ink.rgb)
					c.Fill(dot)
				} else {
					c.SetLineStyle(line(ink, 1.6))
					c.Stroke(dot)
				}
			})
		}
	}
}
