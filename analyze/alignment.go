package analyze

import (
	"cmp"
	"slices"
	"time"

	"postmortem/analyze/stats"
	"postmortem/ingest/timeline"
)

// An Alignment says whether a class's errors line up with the memory of their card: the mean of what was used
// before them, against the same at all other moments of the run.
type Alignment struct {
	Class         string  `json:"class"`
	Incidents     int     `json:"incidents"`
	WindowSeconds float64 `json:"window_seconds"`
	MeanRiseBytes float64 `json:"mean_rise_bytes"` // of the windows before the errors over the run's mean
	P             float64 `json:"p"`               // of all shifts of the errors in time, together: the share that come as high
	Shifts        int     `json:"shifts"`
	// How long before the error the card had been used to nine tenths without a break: what an alarm would
	// have given. Median over the errors, 0 where it was not; and the share that had a minute or more.
	LeadSeconds float64 `json:"lead_seconds"`
	LeadMinute  float64 `json:"lead_minute_share"`

	Picture *AlignPicture `json:"-"`
}

// alignWindow is how far before an error memory is looked at: an allocator gives back within a sample after.
const alignWindow = 3 * time.Second

// minAligned is how many errors and minSamples how many samples it takes.
const (
	minAligned = 5
	minSamples = 40
	alarmAt    = 0.9
)

// align lines every class with errors enough up with the memory of its card.
func (r *run) align() []Alignment {
	out := []Alignment{}
	if len(r.tl.GPUs) != 1 { // which card a process is on is seldom known
		return out
	}
	g := r.alive(&r.tl.GPUs[0])
	if len(g.Time) < minSamples {
		return out
	}
	used := make([]float64, len(g.Time))
	mean := 0.0
	for i, v := range g.UsedBytes {
		used[i] = float64(max(0, v))
		mean += used[i] / float64(len(used))
	}
	step := g.Time[len(g.Time)-1].Sub(g.Time[0]) / time.Duration(len(g.Time)-1)
	w := 1
	if step > 0 {
		w = max(1, int(alignWindow/step))
	}
	byClass := map[string][]time.Time{}
	for _, in := range r.found {
		if t := in.root.Time; in.outcome == Lost && t.After(g.Time[0]) && !t.After(g.Time[len(g.Time)-1]) {
			byClass[in.root.Class] = append(byClass[in.root.Class], t)
		}
	}
	for class, times := range byClass {
		if len(times) < minAligned {
			continue
		}
		var at []int
		var leads []float64
		minute := 0
		for _, t := range times {
			i, _ := slices.BinarySearchFunc(g.Time, t, time.Time.Compare)
			at = append(at, i)
			lead := leadBefore(g, i, t)
			leads = append(leads, lead)
			if lead >= 60 {
				minute++
			}
		}
		m, p, shifts := stats.Before(used, at, w)
		out = append(out, Alignment{Class: class, Incidents: len(times), WindowSeconds: seconds(step) * float64(w), MeanRiseBytes: m - mean, P: p, Shifts: shifts,
			LeadSeconds: stats.Median(leads), LeadMinute: share(minute, len(times)),
			Picture: alignPicture(used, at, seconds(step), w)})
	}
	slices.SortFunc(out, func(a, b Alignment) int {
		return cmp.Or(cmp.Compare(b.Incidents, a.Incidents), cmp.Compare(a.Class, b.Class))
	})
	return out
}

// leadBefore is how long before an error the card had been used to alarmAt without a break.
func leadBefore(g *timeline.GPU, i int, t time.Time) float64 {
	total := g.TotalBytes
	if total <= 0 {
		return 0
	}
	from := i
	for from > 0 && float64(g.UsedBytes[from-1]) >= alarmAt*float64(total) {
		from--
	}
	if from == i {
		return 0
	}
	return seconds(t.Sub(g.Time[from]))
}

// alive is the part of a card's samples in which processes of ours ran, from just before the first error on:
// before it the run was filling up, and no error could have fallen there.
func (r *run) alive(g *timeline.GPU) *timeline.GPU {
	var from, to time.Time
	for _, in := range r.found {
		if t := in.root.Time; in.outcome == Lost && !t.IsZero() && t.After(g.Time[0]) && (from.IsZero() || t.Before(from)) {
			from = t
		}
	}
	for _, p := range r.tl.Processes {
		if p.End.After(to) {
			to = p.End
		}
	}
	i, _ := slices.BinarySearchFunc(g.Time, from.Add(-alignWindow), time.Time.Compare)
	j := len(g.Time)
	if !to.IsZero() {
		j, _ = slices.BinarySearchFunc(g.Time, to, time.Time.Compare)
	}
	x := *g
	x.Time, x.UsedBytes = g.Time[min(i, j):j], g.UsedBytes[min(i, j):j]
	return &x
}
