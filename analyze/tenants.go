package analyze

import (
	"cmp"
	"slices"
	"time"
)

// processMemory lists every process of which anything is known: those that nvidia-smi saw, and those whose logs
// have the allocator's figures or an incident for want of memory. The largest first.
func (r *run) processMemory(all []judged) []ProcessMemory {
	out := []ProcessMemory{}
	at := map[int]int{} // by index in Processes
	for _, t := range r.tl.Tenants {
		p := ProcessMemory{PID: t.PID, Verdict: Undetermined, PeakBytes: max(0, slices.Max(t.UsedBytes))}
		for i, pr := range r.tl.Processes {
			if pr.PID == t.PID && !pr.Start.After(t.Time[len(t.Time)-1]) && (pr.End.IsZero() || !pr.End.Before(t.Time[0])) {
				p.Worker = r.tl.Streams[pr.Stream].Name
				at[i] = len(out)
			}
		}
		out = append(out, p)
	}
	of := func(process int) *ProcessMemory {
		i, known := at[process]
		if !known {
			pr := r.tl.Processes[process]
			i = len(out)
			at[process] = i
			out = append(out, ProcessMemory{PID: pr.PID, Worker: r.tl.Streams[pr.Stream].Name, Verdict: Undetermined})
		}
		return &out[i]
	}
	limits, died := map[int]float64{}, map[int]time.Time{}
	for _, x := range all {
		if process := x.in.root.Process; process >= 0 && x.in.outcome == Lost && x.Hidden != hiddenRefuted {
			p := of(process)
			p.Verdict = x.Verdict
			if fi, ok := x.Numbers["fragmentation_index"]; ok {
				p.FragmentationPeak = larger(p.FragmentationPeak, fi)
			}
			limits[process], died[process] = r.room(&x), x.in.root.Time
		}
	}
	for _, s := range r.logged().series {
		p := of(s.process)
		limit := limits[s.process]
		if limit == 0 {
			limit = r.cardOf(p.PID)
		}
		g := s.growth(limit, died[s.process])
		if limit == 0 { // nothing tells what it may hold: a third of its own size is much
			g = s.growth(unknownLimit*slices.Max(s.total), time.Time{})
			g.LimitBytes, g.Forecast, g.ResetAfter = 0, nil, 0
		}
		p.Growth = &g
		if s.timed && g.Readings > 1 {
			p.GrowthPerHour = &g.BytesPerHour
		}
		p.PeakBytes = max(p.PeakBytes, int64(slices.Max(s.total)))
		if g.Sustained && p.Verdict == Undetermined {
			p.Verdict = Leak
		}
	}
	slices.SortStableFunc(out, func(a, b ProcessMemory) int {
		return cmp.Or(cmp.Compare(b.PeakBytes, a.PeakBytes), cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.PID, b.PID))
	})
	return out
}

// unknownLimit is how many times a process's own size stands in for a limit that nothing tells: growth is
// material from a tenth of it on.
const unknownLimit = 10.0 / 3

func larger(a *float64, b float64) *float64 {
	if a != nil && *a >= b {
		return a
	}
	return &b
}

// cardOf is the card that a process is on, less what processes hold that are none of the run's; 0 where nothing
// tells.
func (r *run) cardOf(pid int) float64 {
	card := r.gpuOf(pid)
	for _, g := range r.tl.GPUs {
		if card == nil || g.Index != *card || g.TotalBytes <= 0 {
			continue
		}
		left := float64(g.TotalBytes)
		for _, t := range r.tl.Tenants {
			if same := t.UUID == g.UUID || g.UUID == "" || t.UUID == ""; same && t.PID != pid && r.workerAt(t.PID, t.Time[0]) == "" && r.workerAt(t.PID, t.Time[len(t.Time)-1]) == "" {
				left -= float64(max(0, t.UsedBytes[len(t.UsedBytes)-1]))
			}
		}
		return max(0, left)
	}
	return 0
}
