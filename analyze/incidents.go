package analyze

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"postmortem/ingest/timeline"
)

// An Incident is one root error and its echoes.
type Incident struct {
	ID          string   `json:"id"`
	Class       string   `json:"class"`
	Outcome     Outcome  `json:"outcome"`
	Domain      string   `json:"domain"` // whose problem the class is: workload, environment, infrastructure …
	Retry       string   `json:"retry"`  // whether the same again helps: yes, no, elsewhere, unknown
	Source      string   `json:"source"`
	Line        int      `json:"line"`          // 0 where the source is a database
	Row         string   `json:"row,omitempty"` // table/number in a database
	Time        string   `json:"time,omitempty"`
	TimeQuality string   `json:"time_quality"`
	Worker      string   `json:"worker,omitempty"`
	PID         int      `json:"pid,omitempty"`
	GPU         *int     `json:"gpu,omitempty"`
	Trial       *int     `json:"trial,omitempty"` // in which the root stands
	Study       string   `json:"study,omitempty"`
	Trials      []int    `json:"trials"` // all trials lost to it, echoes' included
	Text        string   `json:"text"`
	Lead        []string `json:"lead,omitempty"` // the lines before it, at most three
	Fingerprint string   `json:"fingerprint"`    // equal for the same error in any run
	// Misplaced says that the Python line of the error may be the wrong one: CUDA reports it late, and
	// CUDA_LAUNCH_BLOCKING=1 was not seen to be set.
	Misplaced bool               `json:"python_line_uncertain,omitempty"`
	Facts     map[string]float64 `json:"facts"`
	Chain     []Cause            `json:"chain,omitempty"` // of a Python traceback, earliest first
	Echoes    []Echo             `json:"echoes"`
	Related   []string           `json:"related"`
	Xids      []int              `json:"xids"`

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
	tail    timeline.Event // its last error in the root's own log
	dead    bool           // an error among the echoes is one that no process outlives
	first   bool           // of its run: what the others follow
	related []*incident    // that it may have caused, or been caused by
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
	r.mergeRuns()
	r.attributeIncidents()
	r.sortIncidents()
	r.joinXids()
	r.sortIncidents()
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

// listIncidents writes the incidents out, in order of time.
func (r *run) listIncidents() []Incident {
	out := []Incident{}
	ids := r.ids()
	for _, in := range r.found {
		e, cl := in.root, r.cat.Class(in.root.Class)
		x := Incident{ID: ids[in], Class: e.Class, Outcome: in.outcome, Domain: string(cl.Domain), Retry: string(cl.Retry), Source: r.sourceName(e), Line: e.Pos.Line, Row: e.Pos.Row,
			Time: stamp(e.Time), TimeQuality: string(e.Quality), Text: e.Text, Study: e.Study, PID: e.PID,
			Trials: []int{}, Echoes: []Echo{}, Related: []string{}, Xids: append([]int{}, in.xids...)}
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
		x.Facts = r.facts(in)
		x.Lead, x.Fingerprint = e.Lead, cl.Fingerprint(e.Text)
		x.Misplaced = cl.Poisons && (e.Form == timeline.FormTraceback || e.Form == timeline.FormException) && !r.blocking(e)
		for _, o := range in.related {
			x.Related = append(x.Related, ids[o])
		}
		slices.Sort(x.Related)
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

// facts are the numbers of an incident's message: what the root's line does not hold, another of its kind may.
func (r *run) facts(in *incident) map[string]float64 {
	e, out := in.root, map[string]float64{}
	for _, w := range in.signs() {
		for _, f := range w.Facts {
			if _, known := out[f.Name]; !known && w.Class == e.Class && w.Trial == e.Trial {
				out[f.Name] = f.Value
			}
		}
	}
	if e.Form == timeline.FormKernel {
		for _, f := range r.cat.Class(e.Class).ReadFacts(e.Text) {
			out[f.Name] = f.Value
		}
	}
	return out
}

// ids numbers the incidents in their order.
func (r *run) ids() map[*incident]string {
	ids := map[*incident]string{}
	for i, in := range r.found {
		ids[in] = "i" + strconv.Itoa(i+1)
	}
	return ids
}

// blocking says whether CUDA_LAUNCH_BLOCKING=1 was seen to be set in the log of an error before it.
func (r *run) blocking(e timeline.Event) bool {
	if r.launches == nil {
		r.launches = map[int][]timeline.Event{}
		for _, s := range r.tl.Events {
			if s.Kind == timeline.Setting && s.Key == "CUDA_LAUNCH_BLOCKING" {
				r.launches[s.Pos.Source] = append(r.launches[s.Pos.Source], s)
			}
		}
	}
	on, at := false, -1
	for _, s := range r.launches[e.Pos.Source] {
		if s.Pos.Line <= e.Pos.Line && s.Pos.Line > at {
			on, at = s.Value == "1", s.Pos.Line
		}
	}
	return on
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
