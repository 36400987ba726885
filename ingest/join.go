package ingest

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"postmortem/ingest/timeline"
)

// linkSlop is how far a trial's end may lie apart in database and log. Optuna writes the one and
// then logs the other.
const linkSlop = time.Minute

// join links trials with the log streams and processes that ran them, and error events with the
// trials they fell into. What no input states is inferred from times, and is marked so.
func join(tl *timeline.Timeline) {
	j := &joiner{tl: tl, trials: map[trialKey]*timeline.Trial{}}
	for s := range tl.Studies {
		for t := range tl.Studies[s].Trials {
			tr := &tl.Studies[s].Trials[t]
			j.trials[trialKey{tl.Studies[s].Name, tr.Number}] = tr
		}
	}
	j.nameStreams()
	j.linkByLog()
	j.linkByAttributes()
	j.linkByTime()
	j.eventsToTrials()
}

type trialKey struct {
	study  string
	number int
}

type joiner struct {
	tl     *timeline.Timeline
	trials map[trialKey]*timeline.Trial
}

// nameStreams gives a stream that does not say its study the only one there is, or the one whose
// trials end when the stream says.
func (j *joiner) nameStreams() {
	for i := range j.tl.Streams {
		st := &j.tl.Streams[i]
		switch {
		case st.Study != "":
		case len(j.tl.Studies) == 1:
			st.Study = j.tl.Studies[0].Name
		default:
			votes := map[string]int{}
			for _, e := range j.tl.Events {
				if e.Kind != timeline.TrialEnd || e.Stream != i {
					continue
				}
				for _, s := range j.tl.Studies {
					if t := j.trials[trialKey{s.Name, e.Trial}]; t != nil && near(t.End, e.Time) {
						votes[s.Name]++
					}
				}
			}
			for _, s := range j.tl.Studies {
				if votes[s.Name] > votes[st.Study] {
					st.Study = s.Name
				}
			}
		}
	}
}

func near(a, b time.Time) bool {
	return !a.IsZero() && !b.IsZero() && a.Sub(b).Abs() <= linkSlop
}

// linkByLog uses the lines that name a trial. A line far from the trial's own times is of another run.
func (j *joiner) linkByLog() {
	link := func(stream, process, number int, when time.Time, end bool) {
		if number == timeline.NoTrial || stream < 0 {
			return
		}
		t := j.trials[trialKey{j.tl.Streams[stream].Study, number}]
		if t == nil || !when.IsZero() && !t.Start.IsZero() && (end && !t.End.IsZero() && !near(t.End, when) || !within(t, when)) {
			return
		}
		if t.Link != timeline.Stated || end {
			t.Stream, t.Process, t.Link = stream, process, timeline.Stated
		}
	}
	for _, e := range j.tl.Events {
		if e.Kind == timeline.TrialBegin || e.Kind == timeline.TrialEnd {
			link(e.Stream, e.Process, e.Trial, e.Time, e.Kind == timeline.TrialEnd)
		}
	}
	j.lineRanges()
	for _, a := range j.tl.Allocs {
		link(a.Stream, a.Process, a.Trial, a.Time, false)
	}
	j.eachTrial(func(t *timeline.Trial) {
		if t.Stream >= 0 {
			t.Worker = j.tl.Streams[t.Stream].Name
		}
	})
}

// lineRanges gives every trial that its log ends the lines from its first mark, or from the end of the
// trial before it, to its own end.
func (j *joiner) lineRanges() {
	marks := make([][]timeline.Event, len(j.tl.Processes))
	for _, e := range j.tl.Events {
		if e.Kind == timeline.TrialBegin || e.Kind == timeline.TrialEnd {
			marks[e.Process] = append(marks[e.Process], e)
		}
	}
	for p, ms := range marks {
		slices.SortStableFunc(ms, func(a, b timeline.Event) int { return a.Pos.Line - b.Pos.Line })
		begun, after := map[int]int{}, j.tl.Processes[p].From.Line
		for _, m := range ms {
			if m.Kind == timeline.TrialBegin {
				begun[m.Trial] = m.Pos.Line
				continue
			}
			t := j.trials[trialKey{j.tl.Streams[m.Stream].Study, m.Trial}]
			if t != nil && t.Process == p {
				t.From, t.To = after, m.Pos.Line
				if b := begun[m.Trial]; b > 0 {
					t.From = b
				}
			}
			after = m.Pos.Line + 1
		}
	}
}

// within says whether a moment lies within a trial, give or take the slop.
func within(t *timeline.Trial, when time.Time) bool {
	return !when.Before(t.Start.Add(-linkSlop)) && (t.End.IsZero() || !when.After(t.End.Add(linkSlop)))
}

func (j *joiner) eachTrial(f func(*timeline.Trial)) {
	for s := range j.tl.Studies {
		for t := range j.tl.Studies[s].Trials {
			f(&j.tl.Studies[s].Trials[t])
		}
	}
}

// linkByAttributes uses what the trial itself recorded: its pid, its worker, its host.
func (j *joiner) linkByAttributes() {
	j.eachTrial(func(t *timeline.Trial) {
		worker := timeline.AttrText(t.UserAttrs, "worker", "worker_id")
		if t.Worker == "" {
			t.Worker = worker
			if t.Worker == "" {
				t.Worker = timeline.AttrText(t.UserAttrs, "hostname", "host")
			}
		}
		if t.Link != timeline.Unlinked || t.Start.IsZero() {
			return
		}
		pid, _ := strconv.Atoi(timeline.AttrText(t.UserAttrs, "pid"))
		for i, p := range j.tl.Processes {
			st := j.tl.Streams[p.Stream]
			if (pid != 0 && p.PID == pid || worker != "" && st.Stated && st.Name == worker) && alive(p, t.Start) {
				t.Stream, t.Process, t.Link = p.Stream, i, timeline.Stated
				return
			}
		}
	})
}

func alive(p timeline.Process, at time.Time) bool {
	return !p.Start.IsZero() && !at.Before(p.Start) && (p.End.IsZero() || !at.After(p.End))
}

// linkByTime gives a trial to the only process that was alive when it began and ended, unless another
// trial of that process, or one that could as well be its, ran at the same time: then nobody can tell.
func (j *joiner) linkByTime() {
	candidates := make([][]*timeline.Trial, len(j.tl.Processes))
	j.eachTrial(func(t *timeline.Trial) {
		if t.Start.IsZero() {
			return
		}
		if t.Link != timeline.Unlinked {
			if t.Process >= 0 {
				candidates[t.Process] = append(candidates[t.Process], t)
			}
			return
		}
		found := -1
		for i, p := range j.tl.Processes {
			if !alive(p, t.Start) || !t.End.IsZero() && !alive(p, t.End) {
				continue
			}
			if found >= 0 {
				return
			}
			found = i
		}
		if found >= 0 {
			candidates[found] = append(candidates[found], t)
		}
	})
	for p, ts := range candidates {
		slices.SortStableFunc(ts, func(a, b *timeline.Trial) int { return a.Start.Compare(b.Start) })
		var busy time.Time // until when an earlier one ran
		for i, t := range ts {
			end := t.End
			if end.IsZero() {
				end = j.tl.Processes[p].End.Add(time.Second)
			}
			alone := !t.Start.Before(busy) && (i+1 == len(ts) || !ts[i+1].Start.Before(end))
			if end.After(busy) {
				busy = end
			}
			if t.Link != timeline.Unlinked || !alone {
				continue
			}
			t.Process, t.Stream, t.Link = p, j.tl.Processes[p].Stream, timeline.Inferred
			if t.Worker == "" {
				t.Worker = j.tl.Streams[t.Stream].Name
			}
		}
	}
}

// eventsToTrials gives events their study and, where the log names no trial, the trial of their
// process that was running then.
func (j *joiner) eventsToTrials() {
	byProcess := make([][]*timeline.Trial, len(j.tl.Processes))
	j.eachTrial(func(t *timeline.Trial) {
		if t.Process >= 0 {
			byProcess[t.Process] = append(byProcess[t.Process], t)
		}
	})
	for _, ts := range byProcess {
		slices.SortFunc(ts, func(a, b *timeline.Trial) int { return a.Start.Compare(b.Start) })
	}
	foreign := map[int]int{} // by source
	defer func() {
		for src, n := range foreign {
			s := &j.tl.Sources[src]
			s.Notes = append(s.Notes, fmt.Sprintf("%d events name a trial at a time when, by the storage, it did not run: they are taken for another run's (or the clocks differ: see --tz)", n))
		}
	}()
	for i := range j.tl.Events {
		e := &j.tl.Events[i]
		if e.Stream >= 0 {
			e.Study = j.tl.Streams[e.Stream].Study
		}
		if e.Trial != timeline.NoTrial {
			e.Link = timeline.Stated
			if t := j.trials[trialKey{e.Study, e.Trial}]; t != nil && !e.Time.IsZero() && !t.Start.IsZero() && !within(t, e.Time) {
				e.Study, e.Link = "", timeline.Unlinked // a trial of that number, but of another run
				foreign[e.Pos.Source]++
			}
			continue
		}
		if e.Kind != timeline.Failure || e.Process < 0 || e.Time.IsZero() {
			continue
		}
		for _, t := range byProcess[e.Process] {
			if !e.Time.Before(t.Start) && (t.End.IsZero() || !e.Time.After(t.End)) {
				e.Trial, e.Link = t.Number, timeline.Inferred
			}
		}
	}
}
