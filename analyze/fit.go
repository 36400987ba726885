package analyze

import (
	"math"
	"slices"

	"postmortem/analyze/stats"
	"postmortem/ingest/timeline"
)

// A Fit says how many workers of this run's size fit on a card.
type Fit struct {
	CapacityBytes float64 `json:"capacity_bytes"` // of this run's card, or of the one that was asked about
	Asked         bool    `json:"asked"`          // the capacity is not this run's
	ForeignBytes  float64 `json:"foreign_bytes"`  // that processes hold which are none of the run's; 0 for a card that was asked about
	PeakBytes     float64 `json:"peak_bytes"`     // of a worker, its context included: nine in ten trials stayed below
	Trials        int     `json:"trials"`         // whose peak is known
	Workers       int     `json:"workers"`        // that fit with a tenth to spare
	Now           int     `json:"workers_now"`    // most that ran at once on a card of this run
	Fitting       float64 `json:"fitting"`        // share of the trials that would fit alone with a tenth to spare
}

// spare is the share of a card that is left free.
const spare = 0.1

// peakShare is the share of the trials that a worker's peak is to cover.
const peakShare = 0.9

// fit counts the workers that fit; nil where no trial's memory is known. capacity is that of another card, or 0.
func (r *run) fit(capacity float64) *Fit {
	var peaks []float64
	for _, p := range r.trialPeaks() {
		peaks = append(peaks, p)
	}
	if len(peaks) == 0 { // no trials: the processes themselves
		for _, x := range r.logged().series {
			peaks = append(peaks, slices.Max(x.total)+contextTypical)
		}
	}
	if len(peaks) == 0 || len(r.tl.GPUs) == 0 && capacity == 0 {
		return nil
	}
	slices.Sort(peaks)
	f := &Fit{CapacityBytes: capacity, Asked: capacity > 0, Trials: len(peaks), PeakBytes: peaks[int(math.Ceil(peakShare*float64(len(peaks)-1)))], Now: r.mostAtOnce()}
	if !f.Asked {
		f.CapacityBytes, f.ForeignBytes = float64(max(0, r.tl.GPUs[0].TotalBytes)), r.foreign()
	}
	if f.CapacityBytes <= 0 {
		return nil
	}
	room := (1-spare)*f.CapacityBytes - f.ForeignBytes
	f.Workers = max(0, int(room/math.Max(1, f.PeakBytes)))
	n := 0
	for _, p := range peaks {
		if p <= room {
			n++
		}
	}
	f.Fitting = share(n, len(peaks))
	return f
}

// trialPeaks are the most that each trial's process held while it ran, by the trial's index over all studies:
// as nvidia-smi saw it, else as its log tells, with a context added.
func (r *run) trialPeaks() map[trialRef]float64 {
	out := map[trialRef]float64{}
	logged := map[int]float64{} // by trial number, which names a trial where there is one study
	for _, a := range r.tl.Allocs {
		if a.Trial >= 0 && a.Process >= 0 && len(r.tl.Studies) == 1 {
			logged[a.Trial] = math.Max(logged[a.Trial], float64(a.ReservedBytes)*r.scale(a.Process)+contextTypical)
		}
	}
	for i := range r.tl.Studies {
		s := &r.tl.Studies[i]
		for j := range s.Trials {
			t := &s.Trials[j]
			ref := trialRef{s.Name, t.Number}
			p := float64(r.peaks(t.Process, t.Start, t.End).ProcessPeakBytes)
			if p == 0 {
				p = logged[t.Number]
			}
			if p > 0 {
				out[ref] = p
			}
		}
	}
	return out
}

// contextTypical is what a process holds on the card beside PyTorch's pool.
const contextTypical = 0.75 * gib

// foreign is what processes that no log names held of the card, at the median of their samples; 0 where the logs
// do not name all their own.
func (r *run) foreign() float64 {
	if len(r.tl.Processes) == 0 || slices.ContainsFunc(r.tl.Processes, func(p timeline.Process) bool { return p.PID == 0 }) {
		return 0 // some processes of the run may be among those that no log names
	}
	sum := 0.0
	for _, t := range r.tl.Tenants {
		if r.workerAt(t.PID, t.Time[0]) != "" || r.workerAt(t.PID, t.Time[len(t.Time)-1]) != "" {
			continue
		}
		var v []float64
		for _, u := range t.UsedBytes {
			v = append(v, float64(max(0, u)))
		}
		sum += stats.Median(v)
	}
	return sum
}

// mostAtOnce is how many of the run's processes were alive at the same time at most.
func (r *run) mostAtOnce() int {
	most := 0
	for _, p := range r.tl.Processes {
		n := 0
		for _, o := range r.tl.Processes {
			if !p.Start.IsZero() && !o.Start.IsZero() && !o.Start.After(p.Start) && !o.End.Before(p.Start) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
