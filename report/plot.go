package report

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// A figure is a plot that can be drawn into a page or into a file.
type figure struct {
	id          string // of the element and of the file
	title, desc string
	w, h        vg.Length
	draw        func(draw.Canvas)
}

// svg returns the figure as an element for a page.
func (f figure) svg() string {
	c := newSVG(f.w, f.h)
	f.draw(draw.New(c))
	return c.document(f.id, f.title, f.desc)
}

// png returns the figure as a PNG file, on white.
func (f figure) png() ([]byte, error) {
	c := vgimg.NewWith(vgimg.UseWH(f.w, f.h), vgimg.UseDPI(144))
	f.draw(draw.New(c))
	var b bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: c}).WriteTo(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

// newPlot is a plot in our style: sans serif, thin axes.
func newPlot() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	style := func(s *text.Style, size vg.Length, k ink) {
		s.Font = sans
		s.Font.Size = size
		s.Color = k.rgb
	}
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		style(&a.Label.TextStyle, 10, inkText)
		style(&a.Tick.Label, 10, inkText)
		a.LineStyle.Color, a.LineStyle.Width = inkMuted.rgb, 0.6
		a.Tick.LineStyle.Color, a.Tick.LineStyle.Width = inkMuted.rgb, 0.6
		a.Padding = 0
	}
	style(&p.Title.TextStyle, 11, inkText)
	return p
}

// mark draws between open and close so that the page shows title on hover.
func mark(c draw.Canvas, title string, f func()) {
	var v vg.Canvas = c
	for { // gonum/plot puts canvases into canvases as it pads
		inner, ok := v.(draw.Canvas)
		if !ok {
			break
		}
		v = inner.Canvas
	}
	if s, ok := v.(*svgCanvas); ok {
		s.open(title)
		defer s.close()
	}
	f()
}

// rect fills a rectangle.
func rect(c draw.Canvas, k ink, x0, y0, x1, y1 vg.Length) {
	var p vg.Path
	p.Move(vg.Point{X: x0, Y: y0})
	p.Line(vg.Point{X: x1, Y: y0})
	p.Line(vg.Point{X: x1, Y: y1})
	p.Line(vg.Point{X: x0, Y: y1})
	p.Close()
	c.SetColor(k.rgb)
	c.Fill(p)
}

func line(k ink, width vg.Length, dash ...vg.Length) draw.LineStyle {
	return draw.LineStyle{Color: k.rgb, Width: width, Dashes: dash}
}

// timeTicks puts ticks at round times. X values are seconds since base.
type timeTicks struct{ base time.Time }

var timeSteps = []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour, 14 * 24 * time.Hour, 28 * 24 * time.Hour}

// Ticks implements plot.Ticker.
func (t timeTicks) Ticks(lo, hi float64) []plot.Tick {
	span := hi - lo // in seconds, since a Duration holds 292 years only
	step := timeSteps[len(timeSteps)-1]
	for _, s := range timeSteps {
		if span/s.Seconds() <= 8 {
			step = s
			break
		}
	}
	if span/step.Seconds() > 100 {
		return nil // some clock is off by years; no tick would mean anything
	}
	for span/step.Seconds() > 12 {
		step *= 2
	}
	layout := "15:04"
	switch {
	case step < time.Minute:
		layout = "15:04:05"
	case step >= 24*time.Hour:
		layout = "2 Jan"
	case span > 24*3600:
		layout = "2 Jan 15:04"
	}
	var out []plot.Tick
	first := t.base.Add(time.Duration(lo * float64(time.Second))).Truncate(step)
	for at := first; ; at = at.Add(step) {
		x := at.Sub(t.base).Seconds()
		if x > hi {
			return out
		}
		if x >= lo {
			out = append(out, plot.Tick{Value: x, Label: at.UTC().Format(layout)})
		}
	}
}

// roundTicks puts ticks at round numbers.
type roundTicks struct{}

// Ticks implements plot.Ticker.
func (roundTicks) Ticks(lo, hi float64) []plot.Tick {
	step := niceStep((hi - lo) / 4)
	var out []plot.Tick
	for v := math.Ceil(lo/step) * step; v <= hi+step/1e6; v += step {
		out = append(out, plot.Tick{Value: v, Label: fmt.Sprintf("%.6g", math.Round(v/step)*step+0)})
	}
	return out
}

// niceStep rounds up to 1, 2 or 5 times a power of ten.
func niceStep(v float64) float64 {
	if v <= 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*p {
			return m * p
		}
	}
	return 10 * p
}
