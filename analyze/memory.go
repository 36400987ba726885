package analyze

import (
	"cmp"
	"slices"
	"time"

	"postmortem/ingest/timeline"
)

// Memory is what was seen of the cards' memory. This version measures; it does not judge, so the
// verdict is always undetermined.
type Memory struct {
	Verdict     string          `json:"verdict"`
	Reasons     []string        `json:"reasons"`
	PerGPU      []GPUMemory     `json:"per_gpu"`
	PerProcess  []ProcessMemory `json:"per_process"`
	PerIncident []any           `json:"per_incident"`
}

// GPUMemory is one card's.
type GPUMemory struct {
	GPU           int    `json:"gpu"`
	UUID          string `json:"uuid,omitempty"`
	Name          string `json:"name,omitempty"`
	TotalBytes    int64  `json:"total_bytes"` // 0 when the dump does not say
	PeakUsedBytes int64  `json:"peak_used_bytes"`
	Samples       int    `json:"samples"`
}

// ProcessMemory is one process's, as nvidia-smi saw it.
type ProcessMemory struct {
	Worker    string `json:"worker,omitempty"` // "" for a process that no log names
	PID       int    `json:"pid"`
	Verdict   string `json:"verdict"`
	PeakBytes int64  `json:"peak_bytes"`
}

func memory(tl *timeline.Timeline) Memory {
	m := Memory{Verdict: "undetermined", Reasons: []string{"not-judged"}, PerGPU: []GPUMemory{}, PerProcess: []ProcessMemory{}, PerIncident: []any{}}
	for _, g := range tl.GPUs {
		m.PerGPU = append(m.PerGPU, GPUMemory{GPU: g.Index, UUID: g.UUID, Name: g.Name, TotalBytes: max(0, g.TotalBytes),
			PeakUsedBytes: max(0, slices.Max(g.UsedBytes)), Samples: len(g.Time)})
	}
	for _, t := range tl.Tenants {
		p := ProcessMemory{PID: t.PID, Verdict: "undetermined", PeakBytes: max(0, slices.Max(t.UsedBytes))}
		for _, pr := range tl.Processes {
			if pr.PID == t.PID && !pr.Start.After(t.Time[len(t.Time)-1]) && (pr.End.IsZero() || !pr.End.Before(t.Time[0])) {
				p.Worker = tl.Streams[pr.Stream].Name
			}
		}
		m.PerProcess = append(m.PerProcess, p)
	}
	slices.SortStableFunc(m.PerProcess, func(a, b ProcessMemory) int {
		return cmp.Or(cmp.Compare(b.PeakBytes, a.PeakBytes), cmp.Compare(a.PID, b.PID))
	})
	return m
}

// Peaks is the most memory that nvidia-smi saw in use over a span of time. 0 is not known: no sample
// fell into the span.
type Peaks struct {
	CardPeakBytes    int64 `json:"card_peak_bytes,omitempty"`    // of the process's card
	ProcessPeakBytes int64 `json:"process_peak_bytes,omitempty"` // of the process itself
}

// peaks looks a span up. The card is known when there is only one, or when nvidia-smi saw the process
// on it.
func (r *run) peaks(process int, from, to time.Time) Peaks {
	var p Peaks
	if from.IsZero() || to.IsZero() {
		return p
	}
	most := func(times []time.Time, used []int64) int64 {
		i, _ := slices.BinarySearchFunc(times, from, time.Time.Compare)
		peak := int64(0)
		for ; i < len(times) && !times[i].After(to); i++ {
			peak = max(peak, used[i])
		}
		return peak
	}
	pid := 0
	if process >= 0 {
		pid = r.tl.Processes[process].PID
	}
	gpu := r.gpuOf(pid)
	for _, g := range r.tl.GPUs {
		if gpu != nil && g.Index == *gpu {
			p.CardPeakBytes = max(p.CardPeakBytes, most(g.Time, g.UsedBytes))
		}
	}
	for _, t := range r.tl.Tenants {
		if pid != 0 && t.PID == pid {
			p.ProcessPeakBytes = max(p.ProcessPeakBytes, most(t.Time, t.UsedBytes))
		}
	}
	return p
}
