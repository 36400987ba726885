package trainlog

import (
	"strconv"
	"strings"

	"postmortem/ingest/timeline"
)

// The table that torch.cuda.memory_summary() makes (torch/cuda/memory.py): a row a figure, with its current
// value, peak, and what was ever allocated and freed. Every column has a unit of its own; KB, MB and GB of
// older releases are binary too.

// A summary is a table that is being read.
type summary struct {
	allocated     int64
	ooms, retries int
	alloc         int // index of the reading once it is complete; -1 before
}

// The rows of the table: those with figures that are kept, and the others.
const (
	summaryRule  = `^\|[=-]{40,}\|$`
	summaryHead  = `^\| +PyTorch \w+ memory summary, device ID (\d+) +\|$`
	summaryCount = `^\| +\w+ OOMs: (\d+) +\| +\w+Malloc retries: (\d+) +\|$`
	summaryRow   = `^\| (Allocated memory|GPU reserved memory|Non-releasable memory) +\| +(\d+) ([KMGT]?i?B) *\|`
	summaryOther = `^\| +(?:Metric|Active memory|Requested memory|from (?:large|small) pool|Allocations|Active allocs|GPU reserved segments|Non-releasable allocs|Oversize (?:allocations|GPU segments)) +\|`
)

func (w *lane) summaryBegins(*logLine, []string) { w.table = summary{alloc: -1} }

func (w *lane) summaryCounts(_ *logLine, m []string) {
	w.table.ooms, _ = strconv.Atoi(m[1])
	w.table.retries, _ = strconv.Atoi(m[2])
}

// summaryFigure keeps a figure. With what is reserved the reading is complete; what cannot be released is what
// inactive_split says elsewhere.
func (w *lane) summaryFigure(l *logLine, m []string) {
	unit := m[3]
	if !strings.Contains(unit, "i") && unit != "B" {
		unit = unit[:1] + "iB"
	}
	v, ok := bytesOf(m[2], unit)
	switch {
	case !ok:
	case m[1] == "Allocated memory":
		w.table.allocated, w.table.alloc = v, -1
	case m[1] == "GPU reserved memory":
		w.table.alloc = len(w.tl.Allocs)
		w.reading(l, timeline.Alloc{Trial: w.trial, Phase: "summary", AllocatedBytes: w.table.allocated, ReservedBytes: v, InactiveBytes: -1, Retries: w.table.retries, OOMs: w.table.ooms, Binary: 1})
	case w.table.alloc >= 0 && w.table.alloc < len(w.tl.Allocs):
		w.tl.Allocs[w.table.alloc].InactiveBytes = v
	}
}
