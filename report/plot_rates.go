package report

import (
	"fmt"

	"postmortem/analyze"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// maxRateRows is how many values a rate plot shows; the table below it has them all.
const maxRateRows = 60

// ratesFigure draws a class's failure rate for every value of every hyperparameter: a dot with its
// 95 % interval, and the overall rate as a dashed line.
func ratesFigure(id, title, desc, xLabel string, r analyze.Rates) figure {
	rows := rateRows(r)
	return figure{id: id, title: title, desc: desc, w: plotWidth, h: vg.Length(len(rows))*15 + 46, draw: func(c draw.Canvas) {
		c.Max.X -= 14
		p := newPlot()
		p.Add(&ratePlotter{r, rows})
		p.X.Min, p.X.Max = -0.012, 1 // room for a dot at 0
		p.Y.Min, p.Y.Max = 0, float64(len(rows))
		p.X.Label.Text = xLabel
		p.X.Tick.Marker = percentTicks
		var ticks []plot.Tick
		for i, row := range rows {
			ticks = append(ticks, plot.Tick{Value: float64(len(rows)-i) - 0.5, Label: row.label})
		}
		p.Y.Tick.Marker = plot.ConstantTicks(ticks)
		p.Y.Tick.LineStyle.Width = 0
		p.Draw(c)
	}}
}

type rateRow struct {
	label string
	head  bool
	v     analyze.ValueRate
}

func rateRows(r analyze.Rates) []rateRow {
	var rows []rateRow
	for _, p := range r.Params {
		if len(rows)+len(p.Values)+1 > maxRateRows {
			break
		}
		rows = append(rows, rateRow{label: clip(plainText(p.Param), 34), head: true})
		for _, v := range p.Values {
			rows = append(rows, rateRow{label: fmt.Sprintf("%s\u2003%d/%d", clip(plainText(v.Label()), 28), v.Failed, v.N), v: v})
		}
	}
	return rows
}

type ratePlotter struct {
	r    analyze.Rates
	rows []rateRow
}

// Plot implements plot.Plotter.
func (p *ratePlotter) Plot(c draw.Canvas, plt *plot.Plot) {
	x, y := plt.Transforms(&c)
	for _, g := range []float64{0.25, 0.5, 0.75, 1} {
		c.StrokeLine2(line(inkGrid, 0.4), x(g), c.Min.Y, x(g), c.Max.Y)
	}
	c.StrokeLine2(line(inkMuted, 0.9, 5, 3), x(p.r.Rate), c.Min.Y, x(p.r.Rate), c.Max.Y)
	for i, row := range p.rows {
		mid := y(float64(len(p.rows)-i) - 0.5)
		if row.head {
			c.StrokeLine2(line(inkGrid, 0.6), c.Min.X, mid, c.Max.X, mid)
			continue
		}
		v := row.v
		mark(c, fmt.Sprintf("%s: %d of %d, %s (95 %%: %s to %s)", v.Label(), v.Failed, v.N, percent(v.Rate), percent(v.CI[0]), percent(v.CI[1])), func() {
			c.StrokeLine2(line(inkMuted, 1.4), x(v.CI[0]), mid, x(v.CI[1]), mid)
			k := inkMemory
			if v.CI[0] > p.r.Rate { // surely above the rest
				k = inkLost
			}
			var dot vg.Path
			dot.Arc(vg.Point{X: x(v.Rate), Y: mid}, 3.4, 0, 6.283185307179586)
			dot.Close()
			c.SetColor(k.rgb)
			c.Fill(dot)
		})
	}
}
