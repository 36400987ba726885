package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"postmortem/analyze"
)

// maxHolders is how many other processes on the card are listed beside an incident.
const maxHolders = 4

// A process's figures are drawn when it has at least minDrawn of them; at most maxDrawn processes are.
const (
	minDrawn = 5
	maxDrawn = 4
)

// A MemoryCount is how many incidents were judged so.
type MemoryCount struct {
	Verdict string
	N       int
}

// memoryFuncs are the helpers of the words about memory.
func memoryFuncs(d Document) map[string]any {
	return map[string]any{
		"int64": func(f float64) int64 { return int64(f) },
		"hasMemory": func() bool {
			return len(d.Memory.PerIncident)+len(d.Memory.Snapshots) > 0 || d.Memory.Verdict != analyze.Undetermined
		},
		"memoryKnown": func() bool { return d.Memory.Verdict != analyze.Undetermined && len(d.Memory.PerIncident) > 0 },
		"memoryCounts": func() []MemoryCount {
			var out []MemoryCount
			for _, r := range d.Memory.Reasons {
				v, n, _ := strings.Cut(r, ":")
				if k, err := strconv.Atoi(n); err == nil {
					out = append(out, MemoryCount{v, k})
				}
			}
			return out
		},
		"growing": func() []analyze.ProcessMemory {
			return keep(d.Memory.PerProcess, func(p analyze.ProcessMemory) bool {
				return p.Growth != nil && (p.Growth.Sustained || p.Growth.SlackSustained)
			})
		},
		"drawn": func() []analyze.ProcessMemory { // that do not grow, and have readings enough to be looked at
			ps := keep(d.Memory.PerProcess, func(p analyze.ProcessMemory) bool {
				return p.Growth != nil && p.Growth.Picture != nil && !p.Growth.Sustained && !p.Growth.SlackSustained && p.Growth.Readings >= minDrawn
			})
			slices.SortStableFunc(ps, func(a, b analyze.ProcessMemory) int { return b.Growth.Readings - a.Growth.Readings })
			return ps[:min(maxDrawn, len(ps))]
		},
		"tenants": func() []analyze.ProcessMemory {
			return keep(d.Memory.PerProcess, func(p analyze.ProcessMemory) bool { return p.PeakBytes > 0 })
		},
		"stack": func(i int, title, desc, x, y string, s analyze.MemoryStack) figure {
			return stackFigure(fmt.Sprintf("memory-%d", i+1), title, desc, x, y, s)
		},
		"growthPlot": func(i int, title, desc, x, y string, g *analyze.GrowthPicture) figure {
			return growthFigure(fmt.Sprintf("growth-%d", i+1), title, desc, x, y, g)
		},
		"alignPlot": func(i int, title, desc, x, y string, a *analyze.AlignPicture) figure {
			return alignFigure(fmt.Sprintf("align-%d", i+1), title, desc, x, y, a)
		},
		"mapPlot": func(i int, title, desc, x string, s analyze.SnapshotMemory) figure {
			return mapFigure(fmt.Sprintf("snapshot-%d", i+1), title, desc, x, s)
		},
		"thousand": func(f float64) float64 { return 1000 * f },
		"footprintPlot": func(i int, title, desc, x, y string, f analyze.Footprint) figure {
			return footprintFigure(fmt.Sprintf("footprint-%d", i+1), title, desc, x, y, f.Points)
		},
		"topHolders": func(h []analyze.Holder) []analyze.Holder { return h[:min(maxHolders, len(h))] },
	}
}
