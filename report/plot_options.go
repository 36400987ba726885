package report

import (
	"fmt"

	"postmortem/analyze"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// optionInks are the inks of options in turn; the names stand at the curves' ends.
var optionInks = []ink{inkCompleted, inkMemory, inkOpen, inkGuarded, inkPruned, inkLost}

// epochsFigure draws every option's epoch times, on a logarithmic scale: compiling takes many times an epoch.
func epochsFigure(id, title, desc, xLabel, yLabel string, options []analyze.Option) figure {
	return figure{id: id, title: title, desc: desc, w: plotWidth, h: 280, draw: func(c draw.Canvas) {
		c.Max.X -= 150 // for the names
		p := newPlot()
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0.8, 2, 1, 2
		first := true
		for _, o := range options {
			p.X.Max = max(p.X.Max, float64(len(o.Times))+0.2)
			for _, t := range o.Times {
				if t <= 0 {
					continue
				}
				if first {
					p.Y.Min, p.Y.Max, first = t, t, false
				}
				p.Y.Min, p.Y.Max = min(p.Y.Min, t), max(p.Y.Max, t)
			}
		}
		p.Y.Min, p.Y.Max = p.Y.Min/1.15, p.Y.Max*1.15
		p.Y.Scale, p.Y.Tick.Marker, p.X.Tick.Marker = plot.LogScale{}, decadeTicks{}, roundTicks{}
		p.X.Label.Text, p.Y.Label.Text = xLabel, yLabel
		p.Add(&epochsPlotter{options})
		p.Draw(c)
	}}
}

type epochsPlotter struct{ options []analyze.Option }

// Plot implements plot.Plotter.
func (p *epochsPlotter) Plot(c draw.Canvas, plt *plot.Plot) {
	x, y := plt.Transforms(&c)
	style := plt.X.Tick.Label
	style.XAlign, style.YAlign = draw.XLeft, draw.YCenter
	for k, o := range p.options {
		ink := optionInks[k%len(optionInks)]
		var path vg.Path
		var last vg.Point
		for i, t := range o.Times {
			if t <= 0 {
				continue
			}
			last = vg.Point{X: x(float64(i + 1)), Y: y(t)}
			if path == nil {
				path.Move(last)
			} else {
				path.Line(last)
			}
			mark(c, fmt.Sprintf("%s, epoch %d: %.2f s", plainText(o.Name), i+1, t), func() { rect(c, ink, last.X-2, last.Y-2, last.X+2, last.Y+2) })
		}
		if path == nil {
			continue
		}
		c.SetLineStyle(line(ink, 1.4))
		c.Stroke(path)
		style.Color = ink.rgb
		c.FillText(style, vg.Point{X: last.X + 6, Y: last.Y}, clip(plainText(o.Name), 26))
	}
}
