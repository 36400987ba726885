package analyze

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Memory is what was seen of the cards' memory, and what is made of it.
type Memory struct {
	Verdict     MemoryVerdict    `json:"verdict"` // of most of the incidents that cost something
	Reasons     []string         `json:"reasons"` // VERDICT:N for the incidents so judged; growth:N for processes that grow; most first
	PerGPU      []GPUMemory      `json:"per_gpu"`
	PerProcess  []ProcessMemory  `json:"per_process"`
	PerIncident []MemoryIncident `json:"per_incident"`        // in order of time
	Alignment   *Alignment       `json:"alignment,omitempty"` // of out-of-memory errors; absent where it cannot be told
	Snapshots   []SnapshotMemory `json:"snapshots"`
	Fit         *Fit             `json:"fit,omitempty"` // absent where no trial's memory is known
	Footprints  []Footprint      `json:"footprints"`
	Stacks      []MemoryStack    `json:"-"`
	Alignments  []Alignment      `json:"alignments"` // of all classes with errors enough
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

// ProcessMemory is one process's, as nvidia-smi saw it and as its own log tells.
type ProcessMemory struct {
	Worker            string        `json:"worker,omitempty"` // "" for a process that no log names
	PID               int           `json:"pid"`
	Verdict           MemoryVerdict `json:"verdict"`                         // of its last incident; leak where it grows without one
	GrowthPerHour     *float64      `json:"growth_bytes_per_hour,omitempty"` // of allocated memory; absent where nothing logs it
	PeakBytes         int64         `json:"peak_bytes"`
	FragmentationPeak *float64      `json:"fragmentation_peak,omitempty"` // largest share of its pool that was free and split; absent where nothing tells
	Growth            *MemoryGrowth `json:"growth,omitempty"`             // absent where its log has no figures
}

// A MemoryIncident judges one failure for want of memory.
type MemoryIncident struct {
	Incident     string             `json:"incident"`
	Verdict      MemoryVerdict      `json:"verdict"`
	Why          string             `json:"why,omitempty"` // of undetermined: no-numbers, refused-with-room
	Confidence   string             `json:"confidence"`    // high, medium, low
	BindingLimit string             `json:"binding_limit"` // card, allowed, or "" where nothing tells
	Contributing []string           `json:"contributing"`  // fragmentation, race, leftover, overcommit
	Borderline   bool               `json:"borderline"`    // the live ratio is near the bar that decides
	Numbers      map[string]float64 `json:"numbers"`
	Inferred     []string           `json:"inferred"` // numbers that the message does not hold
	Holders      []Holder           `json:"holders"`  // other processes on the card, the largest first
	// Hidden says of an error whose text does not speak of memory whether it was want of it: confirmed, refuted
	// (an error that kills the context stands before it) or possible.
	Hidden string `json:"hidden,omitempty"`
	// Record says what to record next time to be surer: process-list, full-message, allocator-figures, snapshot.
	Record []string `json:"record"`
}

// A Holder is another process on the card.
type Holder struct {
	PID    int    `json:"pid"`
	Worker string `json:"worker,omitempty"` // "" for a process that no log names
	Bytes  int64  `json:"bytes"`
}

// memory judges the run's memory.
func (r *run) memory() Memory {
	m := Memory{Verdict: Undetermined, Reasons: []string{}, PerGPU: []GPUMemory{}, PerProcess: []ProcessMemory{}, PerIncident: []MemoryIncident{}, Alignments: r.align(), Snapshots: snapshots(r.tl)}
	for _, g := range r.tl.GPUs {
		m.PerGPU = append(m.PerGPU, GPUMemory{GPU: g.Index, UUID: g.UUID, Name: g.Name, TotalBytes: max(0, g.TotalBytes),
			PeakUsedBytes: g.PeakUsed(), Samples: len(g.Time)})
	}
	for i := range m.Alignments {
		if m.Alignments[i].Class == outOfMemory {
			m.Alignment = &m.Alignments[i]
		}
	}
	all := r.shortages()
	m.PerProcess, m.Stacks = r.processMemory(all), r.stacks(all)
	counts := map[MemoryVerdict]int{}
	for _, x := range all {
		m.PerIncident = append(m.PerIncident, x.MemoryIncident)
		if x.in.outcome == Lost && x.Hidden != hiddenRefuted {
			counts[x.Verdict]++
		}
	}
	grows := 0
	for _, p := range m.PerProcess {
		if p.Growth != nil && p.Growth.Sustained {
			grows++
		}
	}
	m.conclude(counts, grows)
	return m
}

// conclude takes the verdict of most incidents; where none could be judged, growth by itself is a leak.
func (m *Memory) conclude(counts map[MemoryVerdict]int, grows int) {
	order := []MemoryVerdict{Leak, Fragmentation, Overcommit, TooBig, Capacity, Undetermined} // of equals the one with the clearer cure
	slices.SortStableFunc(order, func(a, b MemoryVerdict) int { return cmp.Compare(counts[b], counts[a]) })
	for _, v := range order {
		if counts[v] > 0 {
			m.Reasons = append(m.Reasons, string(v)+":"+strconv.Itoa(counts[v]))
			if m.Verdict == Undetermined {
				m.Verdict = v
			}
		}
	}
	if grows > 0 {
		m.Reasons = append(m.Reasons, "growth:"+strconv.Itoa(grows))
		if m.Verdict == Undetermined {
			m.Verdict = Leak
		}
	}
}

// reached are the verdicts on the incidents that cost something, and what contributed to them; none where no
// incident could be judged.
func (m *Memory) reached() map[string]bool {
	out := map[string]bool{}
	for _, r := range m.Reasons {
		if v, _, _ := strings.Cut(r, ":"); v != string(Undetermined) && v != "growth" {
			out[v] = true
		}
	}
	if len(out) == 0 {
		return out
	}
	for _, x := range m.PerIncident {
		for _, c := range x.Contributing {
			out[c] = true
		}
	}
	out[string(Leak)] = out[string(Leak)] || out[partLeftover] // what a failed trial leaves behind is dropped in the same way
	return out
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
