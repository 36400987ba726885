package analyze

import (
	"time"

	"postmortem/ingest/timeline"
)

// Kernel counts the kernel log's reports: those of this run, and those of other runs since the boot.
type Kernel struct {
	InRun     int `json:"in_run"`    // within the run's time span and by one of its processes
	Unmatched int `json:"unmatched"` // within the span, by a process that no log names
	Outside   int `json:"outside"`   // before or after the run, or at a time that cannot be told
}

// xidReach is how far a process's death and the driver's report of it may lie apart; kernel logs count
// whole seconds and dmesg -T drifts.
const xidReach = 10 * time.Second

// processOf finds the process that a kernel line is about: same pid, and alive around then.
func (r *run) processOf(e timeline.Event) int {
	for i, p := range r.tl.Processes {
		if p.PID != 0 && p.PID == e.PID && !e.Time.IsZero() && !p.Start.IsZero() &&
			!e.Time.Before(p.Start.Add(-xidReach)) && (p.End.IsZero() || !e.Time.After(p.End.Add(xidReach))) {
			return i
		}
	}
	return -1
}

// span is the time from the first to the last thing that trials and logs did.
func (r *run) span() (from, to time.Time) {
	see := func(t time.Time) {
		if t.IsZero() {
			return
		}
		if from.IsZero() || t.Before(from) {
			from = t
		}
		if t.After(to) {
			to = t
		}
	}
	r.eachTrial(func(_ *timeline.Study, t *timeline.Trial) { see(t.Start); see(t.End); see(t.Heartbeat) })
	for _, e := range r.tl.Events {
		if e.Stream >= 0 {
			see(e.Time)
		}
	}
	return from, to
}

// kernelFailures hands kills and faults to the processes they hit and counts all kernel reports.
func (r *run) kernelFailures(byProcess [][]timeline.Event) {
	for _, e := range r.tl.Events {
		switch e.Kind {
		case timeline.Xid, timeline.KernelOOM, timeline.KernelFault:
		default:
			continue
		}
		p := r.processOf(e)
		switch {
		case p >= 0:
			r.kernel.InRun++
		case e.Time.IsZero() || e.Time.Before(r.from.Add(-xidReach)) || e.Time.After(r.last.Add(xidReach)):
			r.kernel.Outside++
		default:
			r.kernel.Unmatched++
		}
		if p >= 0 && e.Kind != timeline.Xid {
			e.Stream, e.Process = r.tl.Processes[p].Stream, p
			e.Study = r.tl.Streams[e.Stream].Study
			r.eachTrial(func(_ *timeline.Study, t *timeline.Trial) {
				if t.Process == p && !e.Time.Before(t.Start) && (t.End.IsZero() || !e.Time.After(t.End.Add(time.Second))) {
					e.Trial = t.Number
				}
			})
			byProcess[p] = append(byProcess[p], e)
		}
	}
}

// joinXids gives every Xid to the nearest incident of its process.
func (r *run) joinXids() {
	for _, e := range r.tl.Events {
		if e.Kind != timeline.Xid {
			continue
		}
		p := r.processOf(e)
		if p < 0 {
			continue
		}
		var best *incident
		for _, in := range r.found {
			if in.root.Process == p && !in.root.Time.IsZero() &&
				(best == nil || in.root.Time.Sub(e.Time).Abs() < best.root.Time.Sub(e.Time).Abs()) {
				best = in
			}
		}
		if best != nil && best.root.Time.Sub(e.Time).Abs() <= xidReach {
			best.xids = append(best.xids, e.Number)
			best.echoes = append(best.echoes, e)
		}
	}
}
