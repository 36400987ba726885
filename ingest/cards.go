package ingest

import (
	"slices"
	"time"

	"postmortem/ingest/timeline"
)

// oneDumpACard drops what dmon and pmon say of cards and processes that a query dump has too, over the same
// time: their samples are coarser, and name neither the card nor its size.
func oneDumpACard(tl *timeline.Timeline) {
	coarse := func(source int) bool {
		k := tl.Sources[source].Kind
		return k == timeline.NvidiaDmon || k == timeline.NvidiaPmon
	}
	dropped := map[int]bool{}
	cards := slices.Clone(tl.GPUs) // the list moves while it is thinned
	tl.GPUs = slices.DeleteFunc(tl.GPUs, func(g timeline.GPU) bool {
		twice := coarse(g.Source) && slices.ContainsFunc(cards, func(o timeline.GPU) bool {
			return !coarse(o.Source) && (o.Index == g.Index || o.Index < 0) && overlap(o.Time, g.Time)
		})
		dropped[g.Source] = dropped[g.Source] || twice
		return twice
	})
	tenants := slices.Clone(tl.Tenants)
	tl.Tenants = slices.DeleteFunc(tl.Tenants, func(t timeline.Tenant) bool {
		twice := coarse(t.Source) && slices.ContainsFunc(tenants, func(o timeline.Tenant) bool {
			return !coarse(o.Source) && o.PID == t.PID && overlap(o.Time, t.Time)
		})
		dropped[t.Source] = dropped[t.Source] || twice
		return twice
	})
	for s := range dropped {
		if dropped[s] {
			tl.Sources[s].Notes = append(tl.Sources[s].Notes, "another dump has the same cards or processes over the same time; that one is used")
		}
	}
}

// overlap says whether two series of samples have any time in common.
func overlap(a, b []time.Time) bool {
	return len(a) > 0 && len(b) > 0 && !a[0].After(b[len(b)-1]) && !b[0].After(a[len(a)-1])
}
