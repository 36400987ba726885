package analyze

import (
	"slices"
	"time"

	"postmortem/ingest/failure"
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

// processOf finds the process that a kernel line is about: same pid, and alive around then; or the one
// that names the pid as its worker's. A kernel log that was given with one log that knows no pid is that
// log's own.
func (r *run) processOf(e timeline.Event) int {
	for i, p := range r.tl.Processes {
		if p.PID != 0 && p.PID == e.PID && !e.Time.IsZero() && !p.Start.IsZero() &&
			!e.Time.Before(p.Start.Add(-xidReach)) && (p.End.IsZero() || !e.Time.After(p.End.Add(xidReach))) {
			return i
		}
	}
	if r.children == nil {
		r.children = map[int]int{}
		for _, x := range r.tl.Events {
			for _, f := range x.Facts {
				if f.Name == "pid" && x.Kind == timeline.Failure && x.Process >= 0 {
					r.children[int(f.Value)] = x.Process
				}
			}
		}
		r.sole = r.soleProcess()
	}
	if p, ok := r.children[e.PID]; ok && e.PID != 0 && (e.Time.IsZero() || r.tl.Processes[p].Start.IsZero() || e.Time.Sub(r.tl.Processes[p].End).Abs() < time.Hour) {
		return p
	}
	if r.sole >= 0 && e.Kind == timeline.Xid && slices.ContainsFunc(r.tl.Events, func(o timeline.Event) bool { return o.Kind == timeline.Xid && o.PID != e.PID }) {
		return -1 // of several processes: nobody can tell which is this one
	}
	return r.sole
}

// soleProcess is the last process of the only log, when nothing says which processes there were; else -1.
func (r *run) soleProcess() int {
	last := -1
	if len(r.tl.Streams) != 1 || len(r.tl.Studies) > 0 {
		return -1
	}
	for i, p := range r.tl.Processes {
		if p.PID != 0 {
			return -1
		}
		if last < 0 || p.Run > r.tl.Processes[last].Run {
			last = i
		}
	}
	return last
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
		if p >= 0 && p == r.sole && e.Kind != timeline.Xid && !r.bearsOut(byProcess[p], e) {
			p = -1
		}
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

// bearsOut says whether a log shows that a kill or fault was its process's, where no pid does: a kernel log
// holds those of the whole boot.
func (r *run) bearsOut(events []timeline.Event, kernel timeline.Event) bool {
	status, classes := 137, []string{"host/killed", "data/worker-killed", "dist/rank-failed"}
	if kernel.Kind == timeline.KernelFault {
		status, classes = 139, []string{"host/segfault", "data/worker-killed", "dist/rank-failed"}
	}
	return slices.ContainsFunc(events, func(e timeline.Event) bool {
		return e.Kind == timeline.ProcessExit && exitStatus(e.Number) == status || e.Kind == timeline.Failure && slices.Contains(classes, e.Class)
	})
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
		best := r.nearest(p, e)
		switch {
		case best != nil && hardware(e.Number) && (best.root.Class == failure.Unknown || !e.Time.IsZero() && e.Time.Before(best.root.Time)):
			e.Kind, e.Stream, e.Process, e.Study = timeline.Failure, best.root.Stream, best.root.Process, best.root.Study
			best.root, e = e, best.root
			best.xids = append(best.xids, best.root.Number)
			best.echoes = append(best.echoes, e)
		case best != nil:
			best.xids = append(best.xids, e.Number)
			best.echoes = append(best.echoes, e)
		case hardware(e.Number) && p == r.sole: // nothing else says what happened
			e.Kind, e.Stream, e.Process = timeline.Failure, r.tl.Processes[p].Stream, p
			in := newIncident(e)
			in.xids = []int{e.Number}
			r.found = append(r.found, in)
		}
	}
}

// nearest is the incident of a process that a driver's report belongs to: within seconds, or the last
// one when there are no times to compare.
func (r *run) nearest(p int, e timeline.Event) *incident {
	var best *incident
	for _, in := range r.found {
		if in.root.Process != p {
			continue
		}
		if e.Time.IsZero() || in.root.Time.IsZero() {
			if cl := r.cat.Class(in.root.Class); p == r.sole && in.outcome == Lost && (cl.Context || cl.ID == failure.Unknown) {
				best = in
			}
			continue
		}
		if d := in.root.Time.Sub(e.Time).Abs(); d <= xidReach && (best == nil || d < best.root.Time.Sub(e.Time).Abs()) {
			best = in
		}
	}
	return best
}

// hardware says whether an Xid points at the card, its memory, link or firmware
// (https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html).
func hardware(xid int) bool {
	return slices.Contains([]int{48, 63, 64, 74, 79, 92, 94, 95, 119, 140}, xid)
}
