package analyze

import (
	"slices"
	"strings"
	"time"

	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"
)

// A Study is one study's totals.
type Study struct {
	Name        string         `json:"name"`
	Directions  []string       `json:"directions"` // "maximize", "minimize" or "not_set"
	Trials      States         `json:"trials"`
	Fates       Fates          `json:"fates"`
	LostByClass map[string]int `json:"lost_by_class"`
	Best        *Best          `json:"best"` // null with several objectives or nothing completed
	Seconds     Seconds        `json:"seconds"`
	Links       Links          `json:"links"`
	First       string         `json:"first,omitempty"`
	Last        string         `json:"last,omitempty"`
}

// States counts trials as the storage has them.
type States struct {
	Total    int `json:"total"`
	Complete int `json:"complete"`
	Pruned   int `json:"pruned"`
	Fail     int `json:"fail"`
	Running  int `json:"running"`
	Waiting  int `json:"waiting"`
	Other    int `json:"other,omitempty"` // states that Optuna does not know
}

// Fates counts what became of the trials; they sum to the total.
type Fates struct {
	Completed      int `json:"completed"`
	PrunedByPruner int `json:"pruned_by_pruner"`
	Guarded        int `json:"guarded"` // pruned before it ran, to prevent a failure
	Lost           int `json:"lost"`
	Stale          int `json:"stale"` // RUNNING, and no worker is alive
	Running        int `json:"running"`
	Waiting        int `json:"waiting"`
	Unknown        int `json:"unknown,omitempty"` // the state says nothing
}

// Best is the best completed trial of a study with one objective.
type Best struct {
	Trial  int       `json:"trial"`
	Values []float64 `json:"values"`
}

// Seconds are sums of trials' durations.
type Seconds struct {
	All     float64  `json:"all"`
	Lost    float64  `json:"lost"`
	Guarded float64  `json:"guarded"`
	Idle    *float64 `json:"idle"` // workers' time without a trial; null when no worker is known
}

// Links counts how trials were matched with the logs.
type Links struct {
	Stated   int `json:"stated"`   // the log names the trial, or the trial its process
	Inferred int `json:"inferred"` // from times alone
	None     int `json:"none"`     // no log is known to be the trial's
}

// A fateKind is what became of a trial.
type fateKind string

const (
	completed fateKind = "completed"
	byPruner  fateKind = "pruned_by_pruner"
	isGuarded fateKind = "guarded"
	lost      fateKind = "lost"
	stale     fateKind = "stale"
	running   fateKind = "running"
	waiting   fateKind = "waiting"
	unclear   fateKind = "unknown"
)

// A fate is what became of one trial and, when it was lost, through which incident.
type fate struct {
	kind fateKind
	in   *incident
}

// fates decides what became of every trial. A FAIL without any error text is lost to the class
// unknown, with the storage's own row as its incident.
func (r *run) fates() {
	r.fateOf = map[*timeline.Trial]*fate{}
	hit := map[trialRef]*incident{}
	for _, in := range r.found {
		for _, ref := range in.trials {
			if in.outcome == Lost && hit[ref] == nil {
				hit[ref] = in
			}
		}
	}
	longest, logged := r.longestTrial(), r.guardedByLog()
	r.eachTrial(func(s *timeline.Study, t *timeline.Trial) {
		f := &fate{in: hit[trialRef{s.Name, t.Number}]}
		r.fateOf[t] = f
		switch t.State {
		case timeline.Complete:
			f.kind = completed
		case timeline.Waiting:
			f.kind = waiting
		case timeline.Fail:
			f.kind = lost
		case timeline.Pruned:
			switch {
			case f.in != nil:
				f.kind = lost
			case guarded(t) || logged[trialRef{s.Name, t.Number}] && timeline.AttrText(t.UserAttrs, "prune_reason") == "":
				f.kind = isGuarded
			default:
				f.kind = byPruner
			}
		case timeline.Running:
			f.kind = running
			if r.isStale(s, t, longest) {
				f.kind = stale
			}
		default:
			f.kind = unclear
		}
		if f.kind == lost && f.in == nil {
			f.in = newIncident(timeline.Event{Kind: timeline.Failure, Class: failure.Unknown, Form: timeline.FormAttribute,
				Pos: t.Pos, Stream: t.Stream, Process: t.Process, Study: s.Name, Trial: t.Number, Time: t.End, Quality: timeline.TimeStated})
			r.found = append(r.found, f.in)
		}
	})
	r.sortIncidents()
}

// guardWords mark a pruning reason that is a guard's: the trial never ran.
var guardWords = []string{"prevent", "guard", "predict", "would exceed", "too large", "skipped"}

func isGuardText(s string) bool {
	s = strings.ToLower(s)
	return slices.ContainsFunc(guardWords, func(w string) bool { return strings.Contains(s, w) })
}

// guarded says whether a pruned trial recorded that a guard stopped it before it ran.
func guarded(t *timeline.Trial) bool {
	return t.State == timeline.Pruned && isGuardText(timeline.AttrText(t.UserAttrs, "prune_reason", "pruned_reason", "pruned_by"))
}

// guardedByLog lists the trials of which Optuna logged that a guard stopped them.
func (r *run) guardedByLog() map[trialRef]bool {
	out := map[trialRef]bool{}
	for _, e := range r.tl.Events {
		if e.Kind == timeline.TrialEnd && e.State == timeline.Pruned && isGuardText(e.Text) {
			out[trialRef{e.Study, e.Trial}] = true
		}
	}
	return out
}

// graceAfterHeartbeat is how long after its last heartbeat a trial counts as alive. Optuna's own grace
// is twice the heartbeat interval, which the storage does not hold; intervals are about a minute.
const graceAfterHeartbeat = 10 * time.Minute

// isStale says whether a RUNNING trial has no living worker: its process exited or went on to another
// trial, its heartbeat stopped long before the last sign of life anywhere, or it has run for more
// than three times the longest finished trial while others went on.
func (r *run) isStale(s *timeline.Study, t *timeline.Trial, longest time.Duration) bool {
	if t.Process >= 0 {
		if r.tl.Processes[t.Process].Exited {
			return true
		}
		for i := range s.Trials {
			if o := &s.Trials[i]; o.Process == t.Process && o.Link == timeline.Stated && o.Start.After(t.Start) {
				return true
			}
		}
	}
	if !t.Heartbeat.IsZero() {
		return r.last.Sub(t.Heartbeat) > graceAfterHeartbeat
	}
	return !t.Start.IsZero() && longest > 0 && r.last.Sub(t.Start) > max(3*longest, graceAfterHeartbeat)
}

func (r *run) longestTrial() time.Duration {
	longest := time.Duration(0)
	r.eachTrial(func(_ *timeline.Study, t *timeline.Trial) { longest = max(longest, took(t)) })
	return longest
}

// took is a trial's duration; 0 when one end is missing or the clock went back.
func took(t *timeline.Trial) time.Duration {
	if t.Start.IsZero() || t.End.IsZero() || t.End.Before(t.Start) {
		return 0
	}
	return t.End.Sub(t.Start)
}

// studyFates sums up each study.
func (r *run) studyFates() []Study {
	out := []Study{}
	for i := range r.tl.Studies {
		s := &r.tl.Studies[i]
		x := Study{Name: s.Name, Directions: []string{}, LostByClass: map[string]int{}}
		for _, d := range s.Directions {
			x.Directions = append(x.Directions, strings.ToLower(string(d)))
		}
		var first, last time.Time
		for j := range s.Trials {
			t := &s.Trials[j]
			f := r.fateOf[t]
			x.Trials.count(t.State)
			x.Fates.count(f.kind)
			x.Links.count(t.Link)
			d := seconds(took(t))
			x.Seconds.All += d
			switch f.kind {
			case lost:
				x.LostByClass[f.in.root.Class]++
				x.Seconds.Lost += d
			case isGuarded:
				x.Seconds.Guarded += d
			}
			if !t.Start.IsZero() && (first.IsZero() || t.Start.Before(first)) {
				first = t.Start
			}
			for _, at := range []time.Time{t.Start, t.End, t.Heartbeat} {
				if at.After(last) {
					last = at
				}
			}
		}
		x.Best = best(s)
		x.Seconds.Idle = r.idle(s)
		x.First, x.Last = stamp(first), stamp(last)
		out = append(out, x)
	}
	return out
}

func (s *States) count(st timeline.State) {
	s.Total++
	switch st {
	case timeline.Complete:
		s.Complete++
	case timeline.Pruned:
		s.Pruned++
	case timeline.Fail:
		s.Fail++
	case timeline.Running:
		s.Running++
	case timeline.Waiting:
		s.Waiting++
	default:
		s.Other++
	}
}

func (l *Links) count(k timeline.Link) {
	switch k {
	case timeline.Stated:
		l.Stated++
	case timeline.Inferred:
		l.Inferred++
	default:
		l.None++
	}
}

func (f *Fates) count(k fateKind) {
	switch k {
	case completed:
		f.Completed++
	case byPruner:
		f.PrunedByPruner++
	case isGuarded:
		f.Guarded++
	case lost:
		f.Lost++
	case stale:
		f.Stale++
	case running:
		f.Running++
	case waiting:
		f.Waiting++
	default:
		f.Unknown++
	}
}

// best finds the best completed trial; of equals the earliest, as Optuna does. Trials that broke a
// constraint do not count.
func best(s *timeline.Study) *Best {
	if len(s.Directions) != 1 {
		return nil
	}
	var b *timeline.Trial
	for i := range s.Trials {
		t := &s.Trials[i]
		if t.State != timeline.Complete || len(t.Values) != 1 || t.Values[0] != t.Values[0] || infeasible(t) {
			continue
		}
		if b == nil || s.Directions[0] == timeline.Maximize && t.Values[0] > b.Values[0] || s.Directions[0] != timeline.Maximize && t.Values[0] < b.Values[0] {
			b = t
		}
	}
	if b == nil || b.Values[0]-b.Values[0] != 0 { // an infinite value has no JSON form
		return nil
	}
	return &Best{Trial: b.Number, Values: b.Values}
}

// infeasible says whether any of a trial's constraints is violated (greater than 0).
func infeasible(t *timeline.Trial) bool {
	v, ok := timeline.FindAttr(t.SystemAttrs, "constraints")
	if !ok {
		return false
	}
	for _, c := range strings.Split(strings.Trim(v, "[] "), ",") {
		c = strings.TrimSpace(c)
		if c != "" && c[0] != '-' && strings.Trim(c, "0.e+-") != "" {
			return true
		}
	}
	return false
}

// idle sums, over the workers of a study, the time between their first and last sign of life in which
// none of their trials ran: start-up, restarts and gaps.
func (r *run) idle(s *timeline.Study) *float64 {
	type life struct {
		from, to time.Time
		busy     time.Duration
	}
	lives := map[int]*life{}
	for i := range s.Trials {
		t := &s.Trials[i]
		if t.Stream < 0 || took(t) == 0 {
			continue
		}
		l := lives[t.Stream]
		if l == nil {
			l = &life{from: t.Start, to: t.End}
			lives[t.Stream] = l
		}
		if t.Start.Before(l.from) {
			l.from = t.Start
		}
		if t.End.After(l.to) {
			l.to = t.End
		}
		l.busy += took(t)
	}
	for _, p := range r.tl.Processes {
		l := lives[p.Stream]
		if l == nil || p.Start.IsZero() {
			continue
		}
		if p.Start.Before(l.from) {
			l.from = p.Start
		}
		if p.End.After(l.to) {
			l.to = p.End
		}
	}
	if len(lives) == 0 {
		return nil
	}
	sum := time.Duration(0)
	for _, l := range lives {
		sum += max(0, l.to.Sub(l.from)-l.busy)
	}
	v := seconds(sum)
	return &v
}
