package analyze

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"
)

// An Incident is one root error and its echoes.
type Incident struct {
	ID          string             `json:"id"`
	Class       string             `json:"class"`
	Outcome     Outcome            `json:"outcome"`
	Source      string             `json:"source"`
	Line        int                `json:"line"`          // 0 where the source is a database
	Row         string             `json:"row,omitempty"` // table/number in a database
	Time        string             `json:"time,omitempty"`
	TimeQuality string             `json:"time_quality"`
	Worker      string             `json:"worker,omitempty"`
	PID         int                `json:"pid,omitempty"`
	GPU         *int               `json:"gpu,omitempty"`
	Trial       *int               `json:"trial,omitempty"` // in which the root stands
	Study       string             `json:"study,omitempty"`
	Trials      []int              `json:"trials"` // all trials lost to it, echoes' included
	Text        string             `json:"text"`
	Facts       map[string]float64 `json:"facts"`
	Chain       []Cause            `json:"chain,omitempty"` // of a Python traceback, earliest first
	Echoes      []Echo             `json:"echoes"`
	Related     []string           `json:"related"`
	Xids        []int              `json:"xids"`

	// In the moments before it; memory is given back within half a second after.
	Peaks
}

// beforeIncident is how far back the memory before an incident is looked up: nvidia-smi's own loops
// take a sample every half to two seconds.
const beforeIncident = 3 * time.Second

// An Outcome says whether an incident cost anything.
type Outcome string

// The outcomes of the contract.
const (
	Lost      Outcome = "lost"
	Recovered Outcome = "recovered"
)

// An Echo is a later sign of the same incident.
type Echo struct {
	Source string `json:"source"`
	Line   int    `json:"line"`
	Row    string `json:"row,omitempty"`
	Class  string `json:"class"`
	Trial  *int   `json:"trial,omitempty"`
}

// A Cause is one exception of a traceback's chain.
type Cause struct {
	Line  int    `json:"line"`
	Class string `json:"class"`
	Text  string `json:"text"`
}

// An incident is an Incident while it grows.
type incident struct {
	root    timeline.Event
	echoes  []timeline.Event
	outcome Outcome
	trials  []trialRef // in which it was seen, the root's first
	xids    []int
}

// incidents groups the error events of each process, then those that only the storage holds.
func (r *run) incidents() {
	r.from, r.last = r.span()
	byProcess := make([][]timeline.Event, len(r.tl.Processes))
	for _, e := range r.tl.Events {
		if e.Process >= 0 {
			byProcess[e.Process] = append(byProcess[e.Process], e)
		}
	}
	for _, events := range byProcess {
		slices.SortStableFunc(events, func(a, b timeline.Event) int { return cmp.Compare(a.Pos.Line, b.Pos.Line) })
	}
	r.kernelFailures(byProcess) // a kill is the last word: it comes after the process's own lines
	for p, events := range byProcess {
		r.processIncidents(p, events)
	}
	r.attributeIncidents()
	r.sortIncidents()
	r.joinXids()
}

// sortIncidents puts them in order of time; those of one moment by the names of their sources, so that
// the order in which inputs were given does not matter.
func (r *run) sortIncidents() {
	slices.SortStableFunc(r.found, func(a, b *incident) int {
		return cmp.Or(a.root.Time.Compare(b.root.Time), cmp.Compare(r.sourceName(a.root), r.sourceName(b.root)),
			cmp.Compare(a.root.Pos.Line, b.root.Pos.Line), cmp.Compare(a.root.Trial, b.root.Trial))
	})
}

func (r *run) sourceName(e timeline.Event) string { return r.tl.Sources[e.Pos.Source].Name }

// processIncidents walks through one life of a process. After an error that poisons the CUDA context
// every error that a dead context can raise is its echo, in whichever trial it surfaces. Further
// errors of the same trial without progress in between are echoes too.
func (r *run) processIncidents(process int, events []timeline.Event) {
	var (
		poison, open *incident // the context's death; the incident that a further error may echo
		openTrial    = timeline.NoTrial
		exit         *timeline.Event
	)
	for _, e := range events {
		switch e.Kind {
		case timeline.Epoch:
			if open != nil && open != poison && e.Trial == openTrial {
				open.outcome = Recovered
				open = nil
			}
		case timeline.TrialEnd:
			if e.State == timeline.Complete && open != nil && open != poison && e.Trial == openTrial {
				open.outcome = Recovered
				open = nil
			}
		case timeline.ProcessExit:
			exit = &e
		case timeline.Failure, timeline.KernelOOM, timeline.KernelFault:
			cl := r.cat.Class(e.Class)
			switch {
			case poison != nil && (cl.Context || cl.Poisons || cl.Wrapper):
				poison.echo(e)
				open, openTrial = poison, e.Trial
			case open != nil && (e.Trial == openTrial || e.Trial == timeline.NoTrial):
				r.absorb(open, e)
			default:
				open = &incident{root: e, outcome: Lost}
				open.see(e)
				openTrial = e.Trial
				r.found = append(r.found, open)
				if cl.Poisons && e.Form != timeline.FormOptuna {
					poison = open
				}
			}
		}
	}
	if exit != nil && exit.Number != 0 && open == nil {
		r.exitIncident(process, *exit, events)
	}
}

// absorb adds a further error of the same trial. The better witness becomes the root: a kernel's own
// assertion before the exception that it raises, an exception line before Optuna's quotation of it.
func (r *run) absorb(in *incident, e timeline.Event) {
	old, class := r.cat.Class(in.root.Class), r.cat.Class(e.Class)
	vague := old.ID == "cuda/unknown-error" || old.ID == failure.Unknown || old.Wrapper
	if rank(e.Form) < rank(in.root.Form) && (class == old || vague || class.Poisons && old.Context) {
		in.root, e = e, in.root
	}
	in.echo(e)
}

// rank orders forms of error text by how well they bear witness.
func rank(f timeline.Form) int {
	return slices.Index([]timeline.Form{timeline.FormNative, timeline.FormKernel, timeline.FormTraceback, timeline.FormException,
		timeline.FormHandler, timeline.FormOptuna, timeline.FormAttribute, timeline.FormCleanup}, f)
}

// echo adds a further sign.
func (in *incident) echo(e timeline.Event) {
	in.echoes = append(in.echoes, e)
	in.see(e)
}

// see notes the trial in which the incident showed.
func (in *incident) see(e timeline.Event) {
	ref := trialRef{e.Study, e.Trial}
	if e.Trial != timeline.NoTrial && !slices.Contains(in.trials, ref) {
		in.trials = append(in.trials, ref)
	}
}

// exitClasses are the classes of a bad exit status where no error text says more.
var exitClasses = map[int]string{137: "host/killed", 139: "host/segfault", 134: "host/aborted", 143: "host/terminated", 130: "host/interrupted", 124: "host/time-limit"}

// exitIncident is a process that ended badly without a word.
func (r *run) exitIncident(process int, exit timeline.Event, events []timeline.Event) {
	e := exit
	e.Kind, e.Form, e.Class = timeline.Failure, timeline.FormNative, exitClasses[exit.Number]
	if e.Class == "" {
		e.Class = failure.Unknown
	}
	e.Text = "exit status " + strconv.Itoa(exit.Number)
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
	in := &incident{root: e, outcome: Lost}
	in.see(e)
	r.found = append(r.found, in)
}

// errorAttributes are the attributes in which programs record what killed a trial; fail_reason is
// Optuna's own, up to 2.3.
var errorAttributes = []string{"cuda_error_msg", "fail_reason", "error_msg", "error_message", "error", "exception", "traceback", "failure"}

// attributeIncidents takes what a trial recorded about its own end. An error that the trial's log
// also holds is the same incident.
func (r *run) attributeIncidents() {
	byTrial := map[trialRef]*incident{}
	for _, in := range r.found {
		for _, ref := range in.trials {
			if in.outcome == Lost || byTrial[ref] == nil {
				byTrial[ref] = in
			}
		}
	}
	r.eachTrial(func(s *timeline.Study, t *timeline.Trial) {
		e, ok := r.attributeError(s, t)
		if !ok {
			return
		}
		if in := byTrial[trialRef{s.Name, t.Number}]; in != nil {
			in.outcome = Lost
			in.echo(e)
			return
		}
		in := &incident{root: e, outcome: Lost}
		in.see(e)
		r.found = append(r.found, in)
	})
}

// attributeError reads a trial's error attributes, if it ended badly and they are its own: a retried
// trial inherits its ancestor's.
func (r *run) attributeError(s *timeline.Study, t *timeline.Trial) (timeline.Event, bool) {
	if t.State != timeline.Pruned && t.State != timeline.Fail || guarded(t) {
		return timeline.Event{}, false
	}
	text := ""
	for _, key := range errorAttributes {
		if text == "" {
			text = timeline.AttrText(t.UserAttrs, key)
		}
		if text == "" {
			text = timeline.AttrText(t.SystemAttrs, key)
		}
	}
	typ := timeline.AttrText(t.UserAttrs, "cuda_error_type", "error_type", "exception_type")
	cuda := timeline.AttrText(t.UserAttrs, "cuda_error") == "true"
	if reason := timeline.AttrText(t.UserAttrs, "prune_reason"); text == "" && typ == "" && isCrashText(reason) {
		text, cuda = reason, cuda || strings.Contains(strings.ToLower(reason), "cuda")
	}
	if text == "" && typ == "" && !cuda || inherited(s, t, text) {
		return timeline.Event{}, false
	}
	class := failure.Unknown
	if cl := r.cat.Match(text); cl != nil {
		class = cl.ID
	} else if typ != "" {
		class = r.cat.MatchException(typ, text).ID
	} else if cuda {
		class = "cuda/unknown-error"
	}
	e := timeline.Event{Kind: timeline.Failure, Form: timeline.FormAttribute, Class: class, Pos: t.Pos, Stream: t.Stream, Process: t.Process,
		Study: s.Name, Trial: t.Number, Link: timeline.Stated, Time: t.End, Quality: timeline.TimeStated}
	if t.End.IsZero() {
		e.Quality = timeline.TimeUnknown
	}
	e.Facts = r.cat.Class(class).ReadFacts(text)
	e.Text, _, _ = strings.Cut(cmp.Or(text, typ), "\n")
	return e, true
}

// crashWords mark a pruning reason that is a crash's.
var crashWords = []string{"error", "oom", "exception", "crash", "nan"}

func isCrashText(s string) bool {
	s = strings.ToLower(s)
	return slices.ContainsFunc(strings.FieldsFunc(s, func(r rune) bool { return r == '_' || r == '-' || r == ' ' || r == ':' }), func(w string) bool { return slices.Contains(crashWords, w) }) ||
		strings.Contains(s, "out of memory")
}

// inherited says whether a retried trial's error text is its ancestor's.
func inherited(s *timeline.Study, t *timeline.Trial, text string) bool {
	n, err := strconv.Atoi(timeline.AttrText(t.SystemAttrs, "failed_trial"))
	if err != nil || t.State == timeline.Fail {
		return false
	}
	i := slices.IndexFunc(s.Trials, func(o timeline.Trial) bool { return o.Number == n })
	return i >= 0 && text != "" && timeline.AttrText(s.Trials[i].UserAttrs, "cuda_error_msg") == text
}

// listIncidents writes the incidents out, in order of time.
func (r *run) listIncidents() []Incident {
	out := []Incident{}
	for i, in := range r.found {
		e := in.root
		x := Incident{ID: "i" + strconv.Itoa(i+1), Class: e.Class, Outcome: in.outcome, Source: r.sourceName(e), Line: e.Pos.Line, Row: e.Pos.Row,
			Time: stamp(e.Time), TimeQuality: string(e.Quality), Text: e.Text, Study: e.Study, PID: e.PID,
			Trials: []int{}, Facts: map[string]float64{}, Echoes: []Echo{}, Related: []string{}, Xids: append([]int{}, in.xids...)}
		if e.Trial != timeline.NoTrial {
			x.Trial = &e.Trial
		}
		x.Worker = r.workerOf(e)
		if e.Process >= 0 {
			x.PID = r.tl.Processes[e.Process].PID
		}
		x.GPU = r.gpuOf(x.PID)
		if !e.Time.IsZero() {
			x.Peaks = r.peaks(e.Process, e.Time.Add(-beforeIncident), e.Time)
		}
		for _, f := range e.Facts {
			x.Facts[f.Name] = f.Value
		}
		for _, c := range e.Chain {
			x.Chain = append(x.Chain, Cause{c.Line, c.Class, c.Text})
		}
		for _, ref := range in.trials {
			if in.outcome == Lost {
				x.Trials = append(x.Trials, ref.number)
			}
		}
		for _, ec := range in.echoes {
			y := Echo{Source: r.sourceName(ec), Line: ec.Pos.Line, Row: ec.Pos.Row, Class: ec.Class}
			if ec.Trial != timeline.NoTrial {
				y.Trial = &ec.Trial
			}
			x.Echoes = append(x.Echoes, y)
		}
		out = append(out, x)
	}
	return out
}

// workerOf names the worker in whose log an error stands, or whose trial recorded it.
func (r *run) workerOf(e timeline.Event) string {
	if e.Stream >= 0 {
		return r.tl.Streams[e.Stream].Name
	}
	return r.workers[trialRef{e.Study, e.Trial}]
}

// gpuOf finds the card of a process: the only one there is, or the one on which nvidia-smi saw it.
// PyTorch's own "GPU 0" is no index of nvidia-smi's: it counts the visible cards.
func (r *run) gpuOf(pid int) *int {
	if len(r.tl.GPUs) == 1 {
		return &r.tl.GPUs[0].Index
	}
	for _, t := range r.tl.Tenants {
		if pid == 0 || t.PID != pid {
			continue
		}
		for i, g := range r.tl.GPUs {
			if g.UUID == t.UUID && g.UUID != "" {
				return &r.tl.GPUs[i].Index
			}
		}
	}
	return nil
}
