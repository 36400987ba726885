package report

import (
	"fmt"
	"image/color"
)

// An ink is a colour with a role. The page gives each role a colour for its light and for its dark
// theme by class; the hexadecimal value stands in where there is no style sheet. The colours of the
// fates keep apart for colour-blind readers (after Okabe and Ito), and bars differ in height as well.
type ink struct {
	class string
	rgb   color.RGBA
}

func hex(v uint32) color.RGBA {
	return color.RGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 255}
}

var (
	inkText      = ink{"text", hex(0x1f2328)}
	inkMuted     = ink{"muted", hex(0x59636e)}
	inkGrid      = ink{"grid", hex(0xd1d9e0)}
	inkShade     = ink{"shade", hex(0xe6ebf0)} // a part of the ground
	inkCompleted = ink{"completed", hex(0x0b7a5b)}
	inkPruned    = ink{"pruned", hex(0x7f96ad)}
	inkLost      = ink{"lost", hex(0xc93a00)}
	inkGuarded   = ink{"guarded", hex(0xb58900)}
	inkOpen      = ink{"open", hex(0x8250df)} // stale, running, unknown
	inkMemory    = ink{"memory", hex(0x0969da)}

	inks = []ink{inkText, inkMuted, inkGrid, inkShade, inkCompleted, inkPruned, inkLost, inkGuarded, inkOpen, inkMemory}
)

// fateInk is the ink of a trial's bar.
func fateInk(fate string) ink {
	switch fate {
	case "completed":
		return inkCompleted
	case "pruned_by_pruner":
		return inkPruned
	case "lost":
		return inkLost
	case "guarded":
		return inkGuarded
	}
	return inkOpen
}

// paint writes a colour as attributes: fill or stroke, and the class that lets the page override it.
func paint(attr string, c color.Color) string {
	r, g, b, a := c.RGBA()
	rgb := color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), uint8(a >> 8)}
	class := inkText.class
	for _, k := range inks {
		if k.rgb == rgb {
			class = k.class
		}
	}
	return fmt.Sprintf(`%s="#%02x%02x%02x" class="%s-%s"`, attr, rgb.R, rgb.G, rgb.B, attr[:1], class)
}
