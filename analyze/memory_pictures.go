package analyze

import (
	"cmp"
	"slices"
	"time"

	"postmortem/analyze/stats"
)

// A MemoryStack is one card's memory over time, process by process, as nvidia-smi saw it.
type MemoryStack struct {
	GPU       int
	TotalGiB  float64
	From      time.Time
	At        []float64 // seconds since From
	Layers    []MemoryLayer
	Incidents []float64 // errors for want of memory, seconds since From
	Ends      []float64 // ends of processes
}

// A MemoryLayer is one process, or all that are not shown by themselves.
type MemoryLayer struct {
	Worker string // "" for a process that no log names
	PID    int    // 0 for the rest
	GiB    []float64
}

// maxLayers is how many processes a stack shows by themselves, maxTicks how many moments.
const (
	maxLayers = 8
	maxTicks  = 400
)

// stacks draws every card that nvidia-smi saw processes on.
func (r *run) stacks(all []judged) []MemoryStack {
	var out []MemoryStack
	for _, g := range r.tl.GPUs {
		s := MemoryStack{GPU: g.Index, TotalGiB: float64(max(0, g.TotalBytes)) / gib}
		ticks := map[time.Time]bool{}
		for _, t := range r.tl.Tenants {
			if t.UUID == g.UUID || t.UUID == "" || g.UUID == "" {
				for _, at := range t.Time {
					ticks[at] = true
				}
			}
		}
		if len(ticks) < 2 {
			continue
		}
		times := make([]time.Time, 0, len(ticks))
		for at := range ticks {
			times = append(times, at)
		}
		slices.SortFunc(times, time.Time.Compare)
		if n := len(times); n > maxTicks {
			for i := range maxTicks {
				times[i] = times[i*(n-1)/(maxTicks-1)]
			}
			times = times[:maxTicks]
		}
		s.From = times[0]
		for _, at := range times {
			s.At = append(s.At, seconds(at.Sub(s.From)))
		}
		s.layers(r, g.UUID, times)
		for _, x := range all {
			if t := x.in.root.Time; x.in.outcome == Lost && !t.Before(s.From) {
				s.Incidents = append(s.Incidents, seconds(t.Sub(s.From)))
			}
		}
		for _, p := range r.tl.Processes {
			if p.Exited && p.End.After(s.From) {
				s.Ends = append(s.Ends, seconds(p.End.Sub(s.From)))
			}
		}
		out = append(out, s)
	}
	return out
}

// layers fills the processes in, those with the highest peaks by themselves.
func (s *MemoryStack) layers(r *run, uuid string, times []time.Time) {
	for _, t := range r.tl.Tenants {
		if t.UUID != uuid && t.UUID != "" && uuid != "" {
			continue
		}
		l := MemoryLayer{PID: t.PID, Worker: r.workerAt(t.PID, t.Time[0]), GiB: make([]float64, len(times))}
		if l.Worker == "" {
			l.Worker = r.workerAt(t.PID, t.Time[len(t.Time)-1])
		}
		k := 0
		for i, at := range times {
			for k < len(t.Time) && t.Time[k].Before(at) {
				k++
			}
			if k < len(t.Time) && t.Time[k].Equal(at) {
				l.GiB[i] = float64(max(0, t.UsedBytes[k])) / gib
			}
		}
		s.Layers = append(s.Layers, l)
	}
	peak := func(l MemoryLayer) float64 { return slices.Max(l.GiB) }
	slices.SortStableFunc(s.Layers, func(a, b MemoryLayer) int { return cmp.Or(cmp.Compare(peak(b), peak(a)), cmp.Compare(a.PID, b.PID)) })
	if len(s.Layers) > maxLayers {
		rest := MemoryLayer{GiB: make([]float64, len(times))}
		for _, l := range s.Layers[maxLayers:] {
			for i, v := range l.GiB {
				rest.GiB[i] += v
			}
		}
		s.Layers = append(s.Layers[:maxLayers], rest)
	}
}

// A GrowthPicture is a process's figures with their trend.
type GrowthPicture struct {
	From                       time.Time
	Minutes                    []float64 // since From
	Allocated, Reserved, Loose []float64 // GiB
	Limit                      float64   // GiB; 0 where nothing tells
	Slope, Intercept           float64   // of allocated, GiB a minute
	Died, Forecast             float64   // minutes; 0 for none
}

// picture draws a series.
func (s series) picture(g MemoryGrowth, died time.Time) *GrowthPicture {
	if !s.timed || len(s.at) < 3 {
		return nil
	}
	p := &GrowthPicture{From: s.from, Limit: g.LimitBytes / gib}
	for i, x := range s.at {
		p.Minutes = append(p.Minutes, x/60)
		p.Allocated = append(p.Allocated, s.allocated[i]/gib)
		p.Reserved = append(p.Reserved, s.total[i]/gib)
		p.Loose = append(p.Loose, s.slack[i]/gib)
	}
	t := stats.Grow(p.Minutes, p.Allocated)
	p.Slope, p.Intercept = t.Slope, t.Intercept
	if !died.IsZero() {
		p.Died = died.Sub(s.from).Minutes()
	}
	if g.Forecast != nil {
		if at, err := time.Parse(time.RFC3339Nano, g.Forecast.At); err == nil {
			p.Forecast = at.Sub(s.from).Minutes()
		}
	}
	return p
}

// An AlignPicture is the mean of a card's memory around a class's errors, and where the same mean lies when the
// errors are shifted in time.
type AlignPicture struct {
	Seconds         []float64 // from the error, negative before it
	GiB             []float64
	Mean, Low, High float64 // of all shifts: the mean, and the middle 95 %
}

// around is how many samples before and after an error are drawn.
const around = 20

// alignPicture averages around the events.
func alignPicture(used []float64, events []int, step float64, w int) *AlignPicture {
	n := len(used)
	if n < 4*around {
		return nil
	}
	p := &AlignPicture{}
	for d := -around; d <= around; d++ {
		sum, k := 0.0, 0
		for _, e := range events {
			if i := e + d; i >= 0 && i < n {
				sum += used[i]
				k++
			}
		}
		if k > 0 {
			p.Seconds, p.GiB = append(p.Seconds, float64(d)*step), append(p.GiB, sum/float64(k)/gib)
		}
	}
	shifted := stats.Shifts(used, events, w)
	for i := range shifted {
		shifted[i] /= gib
	}
	slices.Sort(shifted)
	for _, v := range shifted {
		p.Mean += v / float64(len(shifted))
	}
	p.Low, p.High = shifted[len(shifted)/40], shifted[len(shifted)-1-len(shifted)/40]
	return p
}
