package analyze

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"postmortem/ingest/timeline"
)

// outOfMemory is the class that says so in words; others hide it.
const outOfMemory = "cuda/out-of-memory"

// What a hidden exhaustion can be.
const (
	hiddenConfirmed = "confirmed"
	hiddenRefuted   = "refuted"
	hiddenPossible  = "possible"
)

// A judged is an incident with its judgement.
type judged struct {
	MemoryIncident
	in       *incident
	shortage shortage
}

// shortages judges every incident that is, or may be, want of memory.
func (r *run) shortages() []judged {
	ids := r.ids()
	var out []judged
	var known []shortage
	for _, in := range r.found {
		class := r.cat.Class(in.root.Class)
		if class.ID != outOfMemory && !slices.Contains(class.Hides, outOfMemory) {
			continue
		}
		s := newShortage(r.facts(in))
		known = append(known, s)
		out = append(out, judged{MemoryIncident: MemoryIncident{Incident: ids[in]}, in: in, shortage: s})
	}
	overhead := overheadOf(known)
	grown := map[int]series{}
	for _, s := range r.logged().series {
		grown[s.process] = s
	}
	for i := range out {
		r.judge(&out[i], overhead, grown)
	}
	return out
}

// judge judges one incident.
func (r *run) judge(x *judged, overhead float64, grown map[int]series) {
	e := x.in.root
	x.shortage.complete(overhead)
	if x.shortage.capacity < 0 && len(r.tl.GPUs) == 1 && r.tl.GPUs[0].TotalBytes > 0 {
		x.shortage.capacity = float64(r.tl.GPUs[0].TotalBytes)
	}
	grew, slackShare := false, 0.0
	own, logged := grown[e.Process]
	limit, room := x.shortage.reach(), r.room(x)
	if own = own.before(e.Pos.Line); logged && limit > 0 && own.mayGrow(room) {
		g := own.growth(room, time.Time{})
		grew, slackShare = g.Sustained, g.SlackShare
	}
	grew = grew || room > 0 && r.leaked(grown, e.Process, e.Time) >= leakTogether*room
	j := x.shortage.judge(grew, slackShare)
	x.Verdict, x.Why, x.Confidence, x.BindingLimit, x.Borderline, x.Numbers = j.verdict, j.why, j.confidence, j.limit, j.borderline, j.numbers
	x.Contributing, x.Inferred, x.Holders = append([]string{}, j.contributing...), append([]string{}, x.shortage.inferred...), []Holder{}
	for _, pid := range x.shortage.holders() {
		x.Holders = append(x.Holders, Holder{pid, r.workerAt(pid, e.Time), int64(x.shortage.peers[pid])})
	}
	if left := r.leftover(x.in); left > 0 && limit > 0 && left >= leftoverBar*limit {
		x.Numbers["leftover_bytes"] = left
		x.Contributing = append(x.Contributing, partLeftover)
	}
	if x.Why == whyNoNumbers {
		r.hidden(x)
	}
	x.Record = []string{}
	for _, c := range []struct {
		what   string
		lacked bool
	}{{recordMessage, x.Why == whyNoNumbers && x.Hidden == "" || len(x.Inferred) > 0}, {recordList, x.Why == "" && !x.shortage.listed && len(r.tl.Tenants) == 0},
		{recordFigures, !logged}, {recordSnapshot, x.Verdict == Fragmentation || x.Verdict == Capacity}} {
		if c.lacked {
			x.Record = append(x.Record, c.what)
		}
	}
}

// What can be recorded to be surer next time.
const (
	recordMessage  = "full-message"
	recordList     = "process-list"
	recordFigures  = "allocator-figures"
	recordSnapshot = "snapshot"
)

// leakTogether is the share of the room that the leaks of all processes together must fill for a shortage to be
// theirs, however small each is.
const leakTogether = 0.1

// leaked is how much the run's processes had grown together at a time, each steadily as measured by its own
// size: those on the same card, or the one process itself where nothing tells who shares it.
func (r *run) leaked(grown map[int]series, process int, at time.Time) float64 {
	sum := 0.0
	for _, p := range slices.Sorted(maps.Keys(grown)) {
		s, pr := grown[p], r.tl.Processes[p]
		if p != process && (at.IsZero() || pr.Start.IsZero() || pr.Start.After(at) || pr.End.Before(at)) {
			continue
		}
		if s = s.until(at); len(s.at) == 0 || !s.mayGrow(slices.Max(s.total)) {
			continue
		}
		if g := s.growth(slices.Max(s.total), time.Time{}); g.Sustained && g.SlackShare < leakSlackMost {
			sum += g.BytesPerReading * float64(len(s.at)-1)
		}
	}
	return sum
}

// reach is how much the process could hold: what it is allowed, or what it has and the card has left.
func (s *shortage) reach() float64 {
	switch {
	case s.allowed > 0:
		return s.allowed
	case s.reserved >= 0 && s.free >= 0:
		return s.reserved + s.free
	}
	return 0
}

// room is what growth is measured against: what the process is allowed, or the card without what processes
// hold that are none of the run's.
func (r *run) room(x *judged) float64 {
	s := &x.shortage
	if s.allowed > 0 || s.capacity <= 0 {
		return s.reach()
	}
	left := s.capacity
	for _, pid := range s.holders() {
		if r.workerAt(pid, x.in.root.Time) == "" {
			left -= s.peers[pid]
		}
	}
	return max(0, left)
}

// leftoverBar is the share of its reach that a trial must begin with for it to count as left behind.
const leftoverBar = 0.1

// leftover is what was allocated already when the trial of an incident began, where the process's trial before
// it was lost.
func (r *run) leftover(in *incident) float64 {
	e := in.root
	if e.Process < 0 || e.Trial == timeline.NoTrial {
		return 0
	}
	allocs := r.logged().allocs[e.Process]
	i := slices.IndexFunc(allocs, func(a timeline.Alloc) bool { return a.Trial == e.Trial && a.Pos.Line < e.Pos.Line })
	if i < 0 {
		return 0
	}
	start, after := allocs[i], 0 // the line of the reading before it
	if i > 0 {
		after = allocs[i-1].Pos.Line
	}
	if !slices.ContainsFunc(r.logged().found[e.Process], func(o *incident) bool {
		return o != in && o.outcome == Lost && o.root.Pos.Line > after && o.root.Pos.Line < start.Pos.Line
	}) {
		return 0
	}
	return float64(start.AllocatedBytes) * r.scale(e.Process)
}

// beforeHidden is how long before an error the card's free memory is looked at, and nearly nothing is what
// counts as none: less than a context, or a hundredth of the card.
const (
	beforeHidden  = 2 * time.Second
	nearlyNothing = 512 * mib
)

// hidden says of an error without numbers whether memory had run out.
func (r *run) hidden(x *judged) {
	e := x.in.root
	x.Hidden = hiddenPossible
	for _, o := range r.logged().found[e.Process] {
		if o != x.in && o.root.Pos.Line < e.Pos.Line && r.cat.Class(o.root.Class).Poisons {
			x.Hidden = hiddenRefuted
			return
		}
	}
	if e.Class == outOfMemory {
		x.Hidden = "" // it says so itself
	}
	pid := 0
	if e.Process >= 0 {
		pid = r.tl.Processes[e.Process].PID
	}
	card := r.gpuOf(pid)
	for _, g := range r.tl.GPUs {
		if card == nil || g.Index != *card || e.Time.IsZero() || g.TotalBytes <= 0 {
			continue
		}
		least := int64(-1)
		i, _ := slices.BinarySearchFunc(g.Time, e.Time.Add(-beforeHidden), time.Time.Compare)
		for ; i < len(g.Time) && !g.Time[i].After(e.Time); i++ {
			free := g.FreeBytes[i]
			if free < 0 && g.UsedBytes[i] >= 0 {
				free = g.TotalBytes - g.UsedBytes[i]
			}
			if free >= 0 && (least < 0 || free < least) {
				least = free
			}
		}
		if least < 0 {
			continue
		}
		x.Numbers["card_free_bytes"] = float64(least)
		if least < max(nearlyNothing, g.TotalBytes/100) {
			if x.Hidden != "" {
				x.Hidden = hiddenConfirmed
			}
			r.listTenants(x, g, pid)
		}
	}
}

// listTenants names the other processes that nvidia-smi saw on the card just before.
func (r *run) listTenants(x *judged, g timeline.GPU, pid int) {
	for _, t := range r.tl.Tenants {
		i, _ := slices.BinarySearchFunc(t.Time, x.in.root.Time, time.Time.Compare)
		elsewhere := t.UUID != g.UUID && g.UUID != "" && t.UUID != ""
		if elsewhere || t.PID == pid || i == 0 || x.in.root.Time.Sub(t.Time[i-1]) > 3*beforeHidden {
			continue
		}
		x.Holders = append(x.Holders, Holder{t.PID, r.workerAt(t.PID, x.in.root.Time), max(0, t.UsedBytes[i-1])})
	}
	slices.SortFunc(x.Holders, func(a, b Holder) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.PID, b.PID)) })
}

// workerAt names the worker that had a process number at a time; "" for none.
func (r *run) workerAt(pid int, at time.Time) string {
	for _, p := range r.tl.Processes {
		if p.PID == pid && pid != 0 && !p.Start.After(at) && (p.End.IsZero() || !p.End.Before(at)) {
			return r.tl.Streams[p.Stream].Name
		}
	}
	return ""
}
