package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image"
	"image/color"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// An svgCanvas draws for gonum/plot into SVG that a page can style: no style attributes, a class for
// every colour (so that a dark theme can change it), real text, titles that show on hover without
// script. gonum's own SVG has a white ground and fixed colours.
type svgCanvas struct {
	buf    bytes.Buffer
	w, h   vg.Length
	now    state
	states []state
}

type state struct {
	m     [6]float64 // x' = m0 x + m2 y + m4, y' = m1 x + m3 y + m5
	color color.Color
	width vg.Length
	dash  []vg.Length
}

func newSVG(w, h vg.Length) *svgCanvas {
	return &svgCanvas{w: w, h: h, now: state{m: [6]float64{1, 0, 0, 1, 0, 0}, color: color.Black, width: 1}}
}

// document returns the finished element. title and desc are its text alternative.
func (c *svgCanvas) document(id, title, desc string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" role="img" class="plot" viewBox="0 0 %s %s" width="%s" height="%s" font-family="Liberation Sans, Arial, Helvetica, sans-serif" aria-labelledby="%s-t %s-d">`,
		f2(float64(c.w)), f2(float64(c.h)), f2(float64(c.w)), f2(float64(c.h)), id, id)
	fmt.Fprintf(&b, `<title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, id, escapeXML(title), id, escapeXML(desc))
	b.Write(c.buf.Bytes())
	b.WriteString("</svg>")
	return b.String()
}

// open and close put a title around what is drawn between them.
func (c *svgCanvas) open(title string) {
	c.buf.WriteString("<g><title>" + escapeXML(title) + "</title>")
}
func (c *svgCanvas) close() { c.buf.WriteString("</g>") }

func escapeXML(s string) string {
	var b bytes.Buffer
	if err := xml.EscapeText(&b, []byte(plainText(s))); err != nil {
		return ""
	}
	return b.String()
}

// f2 writes a coordinate with two decimals at most.
func f2(f float64) string { return strconv.FormatFloat(math.Round(f*100)/100, 'f', -1, 64) }

func (c *svgCanvas) at(p vg.Point) (x, y float64) {
	m := c.now.m
	x, y = m[0]*float64(p.X)+m[2]*float64(p.Y)+m[4], m[1]*float64(p.X)+m[3]*float64(p.Y)+m[5]
	return x, float64(c.h) - y
}

func (c *svgCanvas) multiply(n [6]float64) {
	m := c.now.m
	c.now.m = [6]float64{
		m[0]*n[0] + m[2]*n[1], m[1]*n[0] + m[3]*n[1],
		m[0]*n[2] + m[2]*n[3], m[1]*n[2] + m[3]*n[3],
		m[0]*n[4] + m[2]*n[5] + m[4], m[1]*n[4] + m[3]*n[5] + m[5],
	}
}

// The methods of vg.Canvas.

func (c *svgCanvas) Size() (w, h vg.Length)                 { return c.w, c.h }
func (c *svgCanvas) SetLineWidth(w vg.Length)               { c.now.width = w }
func (c *svgCanvas) SetLineDash(d []vg.Length, _ vg.Length) { c.now.dash = d }
func (c *svgCanvas) SetColor(col color.Color)               { c.now.color = col }
func (c *svgCanvas) Push()                                  { c.states = append(c.states, c.now) }
func (c *svgCanvas) Translate(p vg.Point) {
	c.multiply([6]float64{1, 0, 0, 1, float64(p.X), float64(p.Y)})
}
func (c *svgCanvas) Scale(x, y float64) { c.multiply([6]float64{x, 0, 0, y, 0, 0}) }

func (c *svgCanvas) Rotate(rad float64) {
	s, k := math.Sincos(rad)
	c.multiply([6]float64{k, s, -s, k, 0, 0})
}

func (c *svgCanvas) Pop() {
	c.now = c.states[len(c.states)-1]
	c.states = c.states[:len(c.states)-1]
}

func (c *svgCanvas) path(p vg.Path) string {
	var b strings.Builder
	for _, comp := range p {
		x, y := c.at(comp.Pos)
		switch comp.Type {
		case vg.MoveComp:
			b.WriteString("M" + f2(x) + " " + f2(y))
		case vg.LineComp:
			b.WriteString("L" + f2(x) + " " + f2(y))
		case vg.ArcComp:
			c.arc(&b, comp)
		case vg.CurveComp:
			x1, y1 := c.at(comp.Control[0])
			if len(comp.Control) == 1 {
				b.WriteString("Q" + f2(x1) + " " + f2(y1) + " " + f2(x) + " " + f2(y))
				continue
			}
			x2, y2 := c.at(comp.Control[1])
			b.WriteString("C" + f2(x1) + " " + f2(y1) + " " + f2(x2) + " " + f2(y2) + " " + f2(x) + " " + f2(y))
		case vg.CloseComp:
			b.WriteString("Z")
		}
	}
	return b.String()
}

// arc writes an arc in pieces of at most half a turn, which SVG can draw.
func (c *svgCanvas) arc(b *strings.Builder, comp vg.PathComp) {
	n := max(1, int(math.Ceil(math.Abs(comp.Angle)/math.Pi)))
	r := float64(comp.Radius)
	point := func(angle float64) (x, y float64) {
		return c.at(vg.Point{X: comp.Pos.X + vg.Length(r*math.Cos(angle)), Y: comp.Pos.Y + vg.Length(r*math.Sin(angle))})
	}
	x, y := point(comp.Start)
	cmd := "L"
	if b.Len() == 0 {
		cmd = "M"
	}
	b.WriteString(cmd + f2(x) + " " + f2(y))
	sweep := "0"
	if comp.Angle < 0 {
		sweep = "1"
	}
	for i := 1; i <= n; i++ {
		x, y := point(comp.Start + comp.Angle*float64(i)/float64(n))
		b.WriteString("A" + f2(r) + " " + f2(r) + " 0 0 " + sweep + " " + f2(x) + " " + f2(y))
	}
}

func (c *svgCanvas) Stroke(p vg.Path) {
	if c.now.width <= 0 {
		return
	}
	fmt.Fprintf(&c.buf, `<path d="%s" fill="none" stroke-width="%s" %s`, c.path(p), f2(float64(c.now.width)), paint("stroke", c.now.color))
	if len(c.now.dash) > 0 {
		var d []string
		for _, l := range c.now.dash {
			d = append(d, f2(float64(l)))
		}
		fmt.Fprintf(&c.buf, ` stroke-dasharray="%s"`, strings.Join(d, " "))
	}
	c.buf.WriteString("/>")
}

func (c *svgCanvas) Fill(p vg.Path) {
	fmt.Fprintf(&c.buf, `<path d="%s" %s/>`, c.path(p), paint("fill", c.now.color))
}

func (c *svgCanvas) FillString(f font.Face, p vg.Point, s string) {
	x, y := c.at(p)
	fmt.Fprintf(&c.buf, `<text x="%s" y="%s" font-size="%s" %s`, f2(x), f2(y), f2(float64(f.Font.Size)), paint("fill", c.now.color))
	if angle := -math.Atan2(c.now.m[1], c.now.m[0]) * 180 / math.Pi; math.Abs(angle) > 0.01 {
		fmt.Fprintf(&c.buf, ` transform="rotate(%s %s %s)"`, f2(angle), f2(x), f2(y))
	}
	c.buf.WriteString(">" + escapeXML(s) + "</text>")
}

// DrawImage is not needed by any plot here.
func (c *svgCanvas) DrawImage(vg.Rectangle, image.Image) {}
