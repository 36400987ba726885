package report

import (
	"strconv"
	"strings"

	"postmortem/analyze"
)

// maxHolders is how many other processes on the card are listed beside an incident.
const maxHolders = 4

// A MemoryCount is how many incidents were judged so.
type MemoryCount struct {
	Verdict string
	N       int
}

// memoryFuncs are the helpers of the words about memory.
func memoryFuncs(d Document) map[string]any {
	return map[string]any{
		"int64":     func(f float64) int64 { return int64(f) },
		"hasMemory": func() bool { return len(d.Memory.PerIncident)+len(d.Memory.Snapshots) > 0 || d.Memory.Verdict != analyze.Undetermined },
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
		"tenants": func() []analyze.ProcessMemory {
			return keep(d.Memory.PerProcess, func(p analyze.ProcessMemory) bool { return p.PeakBytes > 0 })
		},
		"topHolders": func(h []analyze.Holder) []analyze.Holder { return h[:min(maxHolders, len(h))] },
	}
}
