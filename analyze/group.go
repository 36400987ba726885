package analyze

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"
)

// processIncidents walks through one life of a process. After an error that poisons the CUDA context
// every error that a dead context can raise is its echo, in whichever trial it surfaces. Further
// errors of the same trial without progress in between are echoes too.
func (r *run) processIncidents(process int, events []timeline.Event) {
	var (
		poison, open *incident // the context's death; the incident that a further error may echo
		openTrial    = timeline.NoTrial
		own          []*incident
		exit         *timeline.Event
		pasted       = r.pasted(process, events)
	)
	recovered := func(trial int) {
		if open != nil && open != poison && trial == openTrial && trial != timeline.NoTrial {
			open.outcome = Recovered
			open = nil
		}
	}
	for _, e := range events {
		switch e.Kind {
		case timeline.Epoch:
			recovered(e.Trial)
			if open != poison && e.Trial != openTrial && openTrial != timeline.NoTrial {
				open = nil // the next trial is under way
			}
		case timeline.TrialEnd:
			if e.State == timeline.Complete {
				recovered(e.Trial)
				if open != poison && e.Trial != openTrial {
					open = nil
				}
			}
		case timeline.ProcessExit:
			exit = &e
		case timeline.Failure, timeline.KernelOOM, timeline.KernelFault:
			if e.Form == timeline.FormBare && !pasted {
				continue
			}
			cl := r.cat.Class(e.Class)
			switch {
			case poison != nil && (cl.Context || cl.Poisons || cl.Role == failure.Wrapper) && !resumed(poison, e):
				poison.echo(e)
				open, openTrial = poison, e.Trial
			case open != nil && (e.Trial == openTrial || e.Trial == timeline.NoTrial) && !resumed(open, e):
				r.absorb(open, e)
			default:
				open = newIncident(e)
				openTrial = e.Trial
				own = append(own, open)
				if cl.Poisons && e.Form != timeline.FormOptuna && e.Form != timeline.FormWarning {
					poison = open
				}
			}
		}
	}
	for _, in := range own {
		if in.root.Trial == timeline.NoTrial && r.survived(in) {
			in.outcome = Recovered
		}
	}
	if exit != nil {
		own = r.atExit(process, *exit, events, own)
	}
	r.found = append(r.found, own...)
}

// pasted says whether a log holds an error's bare words and nothing of a run.
func (r *run) pasted(process int, events []timeline.Event) bool {
	p := r.tl.Processes[process]
	return p.FirstProgress == 0 && p.Finished == 0 && !slices.ContainsFunc(events, func(e timeline.Event) bool {
		return e.Kind != timeline.ProcessExit && (e.Kind != timeline.Failure || e.Form != timeline.FormBare)
	})
}

// resumed says whether the process went on between an incident and a later error, where no trial tells.
func resumed(in *incident, e timeline.Event) bool {
	at := in.tail.Resumed
	return in.root.Trial == timeline.NoTrial && at > 0 && (at <= e.Pos.Line || e.Pos.Source != in.root.Pos.Source)
}

// survived says whether the process outlived an error outside any trial: it reports the error only as a
// warning, it went on, or it said at last that it ended well. A figure that cannot be is no death, and
// neither is what only follows one.
func (r *run) survived(in *incident) bool {
	if in.root.Process < 0 {
		return false
	}
	last, p := in.tail, r.tl.Processes[in.root.Process]
	deadly := func(e timeline.Event) bool {
		return e.Form != timeline.FormWarning && e.Form != timeline.FormMetric && r.cat.Class(e.Class).Role != failure.Teardown && !softXid(e)
	}
	if stop := r.cat.Class(in.root.Class).Role == failure.Stop; stop && p.Finished > 0 && p.Finished >= p.LastProgress && p.Finished < in.root.Pos.Line {
		return true // it had ended well before somebody stopped what was left of it
	}
	if strings.HasPrefix(p.Lane, timeline.PIDLane) && p.FirstProgress == 0 && !in.root.Fatal { // a helper, not a trainer
		for _, o := range r.tl.Processes {
			if o.Stream == p.Stream && o.Run == p.Run && max(o.LastProgress, o.Finished) > last.Pos.Line {
				return true
			}
		}
	}
	return last.Resumed > 0 || p.Finished > last.Pos.Line || !deadly(in.root) && !slices.ContainsFunc(in.echoes, deadly)
}

// absorb adds a further error of the same trial or end, which becomes the root when it is the better one.
func (r *run) absorb(in *incident, e timeline.Event) {
	root := r.cat.Class(in.root.Class)
	late := in.dead && root.Role == failure.Root && e.Form != timeline.FormTraceback && !slices.Contains(root.YieldsTo, e.Class) && !softXid(in.root)
	if !late && r.outranks(in.root, e) {
		in.root, e = e, in.root
	}
	in.echo(e)
}

// outranks says whether a later error is the root of an incident rather than the one that was taken so far.
func (r *run) outranks(old, e timeline.Event) bool {
	o, n := r.cat.Class(old.Class), r.cat.Class(e.Class)
	if o == n { // the better witness of one error
		return witness(n, e.Form) < witness(n, old.Form)
	}
	minor := func(cl *failure.Class, e timeline.Event) bool {
		return cl.Role == failure.Wrapper || cl.Role == failure.Teardown || cl.Role == failure.Note || softXid(e)
	}
	if o.Role == failure.Teardown && n.Role == failure.Wrapper {
		return true
	}
	reported := old.Form == timeline.FormHandler || old.Form == timeline.FormWarning || old.Form == timeline.FormCleanup || old.Form == timeline.FormMetric
	switch {
	case minor(n, e), n.ID == failure.Unknown:
		return false
	case o.Role == failure.Wrapper && old.Fatal && (n.Role == failure.Cascade || n.Role == failure.Stop) && !slices.Contains(o.YieldsTo, n.ID):
		return false // a rank had failed before the others noticed
	case slices.Contains(o.YieldsTo, n.ID), minor(o, old), o.Role == failure.Cascade && n.Role == failure.Root:
		return true
	case o.ID == failure.Unknown:
		return n.Role == failure.Root
	case n.Poisons && o.Context, o.ID == "cuda/unknown-error" && n.Context:
		return rank(e.Form) < rank(old.Form)
	case old.Form == timeline.FormWarning:
		return n.Role == failure.Root || n.Role == failure.Stop
	case !reported || !e.Fatal || n.Role == failure.Cascade:
		return false
	case o.ID == "numeric/diverged":
		return !lossWords.MatchString(e.Text) // the program must say that it is about the loss
	case old.Form == timeline.FormMetric:
		return !n.Generic() && n.Family() != o.Family()
	}
	// A report of an error that the program caught, and then a death of its own.
	return !n.Generic() || o.Family() == "hub" || o.Family() == "tracker" || o.Generic()
}

// lossWords tell of an error that it is about the loss.
var lossWords = regexp.MustCompile(`(?i)loss|diverg|explod`)

// softXid says whether an event is a driver's report that follows a program's own fault.
func softXid(e timeline.Event) bool {
	n := e.Number
	if e.Class == "kernel/xid" && n == 0 {
		for _, f := range e.Facts {
			if f.Name == "xid" {
				n = int(f.Value)
			}
		}
	}
	return e.Class == "kernel/xid" && (n == 13 || n == 31 || n == 43 || n == 45)
}

// rank orders forms of error text by how well they bear witness.
func rank(f timeline.Form) int {
	return slices.Index([]timeline.Form{timeline.FormMetric, timeline.FormNative, timeline.FormKernel, timeline.FormTraceback, timeline.FormException,
		timeline.FormHandler, timeline.FormOptuna, timeline.FormAttribute, timeline.FormCleanup, timeline.FormWarning, timeline.FormExit, timeline.FormBare}, f)
}

// witness ranks the forms of one class: a native line tells more than the exception only where that comes
// late, after the card's own assertion.
func witness(cl *failure.Class, f timeline.Form) int {
	if f == timeline.FormNative && !cl.Poisons {
		f = timeline.FormException
	}
	return rank(f)
}

// echo adds a further sign.
func (in *incident) echo(e timeline.Event) {
	in.echoes = append(in.echoes, e)
	in.dead = in.dead || e.Fatal
	in.see(e)
	for _, x := range []timeline.Event{in.root, e} {
		if x.Pos.Source == in.tail.Pos.Source && x.Pos.Line > in.tail.Pos.Line {
			in.tail = x
		}
	}
}

// signs are the root and its echoes.
func (in *incident) signs() []timeline.Event {
	return append([]timeline.Event{in.root}, in.echoes...)
}

// newIncident begins an incident with its first error.
func newIncident(e timeline.Event) *incident {
	in := &incident{root: e, tail: e, outcome: Lost}
	in.see(e)
	return in
}

// see notes the trial in which the incident showed.
func (in *incident) see(e timeline.Event) {
	ref := trialRef{e.Study, e.Trial}
	if e.Trial != timeline.NoTrial && !slices.Contains(in.trials, ref) {
		in.trials = append(in.trials, ref)
	}
}

// exitClasses are the classes of a bad exit status where no error text says more: 128 and the signal's
// number, and 124 of timeout(1).
var exitClasses = map[int]string{137: "host/killed", 139: "host/segfault", 134: "host/aborted", 143: "host/terminated", 130: "host/interrupted",
	124: "host/time-limit", 132: "host/illegal-instruction", 135: "data/shm-exhausted", 152: "host/time-limit"}

// exitStatus makes a shell's exit status of what Python and Slurm write for a signal: -9 is 137.
func exitStatus(n int) int {
	if n < 0 && n > -65 {
		return 128 - n
	}
	return n
}

// atExit lets the exit status have its say: 0 means that everything was survived; any other that
// something was not, though the log shows progress after it.
func (r *run) atExit(process int, exit timeline.Event, events []timeline.Event, own []*incident) []*incident {
	status := exitStatus(exit.Number)
	deaths := 0
	for _, in := range own {
		if status == 0 && in.root.Trial == timeline.NoTrial && in.tail.Pos.Line <= exit.Pos.Line {
			in.outcome = Recovered
		}
		if in.outcome == Lost && (in.root.Trial != timeline.NoTrial && !r.outlived(in) || in.root.Trial == timeline.NoTrial && in.tail.Resumed == 0) {
			deaths++
		}
	}
	if status == 0 {
		return own
	}
	e := r.exitEvent(process, exit, status, events)
	if deaths > 0 {
		if last := own[len(own)-1]; last.outcome == Lost && last.root.Trial == timeline.NoTrial && status > 128 && r.outranks(last.root, e) {
			r.absorb(last, e)
		}
		return own
	}
	for i := len(own) - 1; i >= 0 && exitClasses[status] == ""; i-- { // what seemed survived was not
		if own[i].root.Trial == timeline.NoTrial && (own[i].root.Fatal || own[i].root.Class == "numeric/nan-loss") {
			own[i].outcome = Lost
			return own
		}
	}
	return append(own, newIncident(e))
}

// exitEvent makes an error of a process that ended badly without a word.
func (r *run) exitEvent(process int, exit timeline.Event, status int, events []timeline.Event) timeline.Event {
	e := exit
	e.Kind, e.Form, e.Class, e.Fatal = timeline.Failure, timeline.FormExit, exitClasses[status], true
	e.Text = "exit status " + strconv.Itoa(status)
	p := r.tl.Processes[process]
	e.Lead = p.Tail
	if e.Class == "" {
		e.Class = failure.Unknown
		if p.ErrorLine > p.LastProgress { // what it complained of and went on is no cause
			e.Text, e.Pos.Line, e.Lead = p.ErrorText, p.ErrorLine, nil
		}
	}
	for _, x := range events { // the trial that was open when it died
		switch x.Kind {
		case timeline.TrialBegin:
			e.Trial = x.Trial
		case timeline.TrialEnd:
			e.Trial = timeline.NoTrial
		}
	}
	if e.Trial == timeline.NoTrial {
		r.eachTrial(func(_ *timeline.Study, t *timeline.Trial) {
			if t.Process == process && t.State == timeline.Running {
				e.Trial = t.Number
			}
		})
	}
	return e
}

// mergeRuns joins the incidents of one run of one file: what one rank's death did to the others.
func (r *run) mergeRuns() {
	type key struct{ stream, run int }
	byRun := map[key][]*incident{}
	var order []key
	for _, in := range r.found {
		if p := in.root.Process; p >= 0 && in.root.Trial == timeline.NoTrial && in.outcome == Lost {
			k := key{r.tl.Processes[p].Stream, r.tl.Processes[p].Run}
			if byRun[k] == nil {
				order = append(order, k)
			}
			byRun[k] = append(byRun[k], in)
		}
	}
	gone := map[*incident]bool{}
	for _, k := range order {
		r.mergeRun(byRun[k], gone)
	}
	r.found = slices.DeleteFunc(r.found, func(in *incident) bool { return gone[in] })
}

// mergeRun takes the incidents of one run. The first is the root unless a later one outranks it; the
// others that only follow, or are the same on another rank, are its echoes, and the rest are related.
func (r *run) mergeRun(ins []*incident, gone map[*incident]bool) {
	byExit := func(in *incident) int { // only a status is the last to tell anything
		if in.root.Form == timeline.FormExit {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(ins, func(a, b *incident) int { return cmp.Or(byExit(a)-byExit(b), a.root.Pos.Line-b.root.Pos.Line) })
	root := ins[0]
	for _, in := range ins[1:] {
		if r.outranks(root.root, in.root) && r.cat.Class(in.root.Class) != r.cat.Class(root.root.Class) {
			root = in
		}
	}
	if rank, ok := firstRank(ins); ok { // the launcher knows which rank failed first
		for _, in := range ins {
			lane := r.tl.Processes[in.root.Process].Lane
			if lane == "rank"+rank || lane == "default"+rank {
				root = in
			}
		}
	}
	root.first = true
	for _, in := range ins {
		if in == root {
			continue
		}
		if in.root.Form == timeline.FormExit {
			gone[in] = true
			continue
		}
		cl := r.cat.Class(in.root.Class)
		if cl.Role != failure.Root || in.root.Class == root.root.Class || r.cat.Class(root.root.Class).Context && cl.Context {
			for _, e := range in.signs() {
				root.echo(e)
			}
			gone[in] = true
			continue
		}
		root.related, in.related = append(root.related, in), append(in.related, root)
	}
}

// firstRank is the rank that torchrun's table names as the first to fail.
func firstRank(ins []*incident) (string, bool) {
	for _, in := range ins {
		for _, e := range in.signs() {
			for _, f := range e.Facts {
				if f.Name == "first_rank" {
					return strconv.Itoa(int(f.Value)), true
				}
			}
		}
	}
	return "", false
}
