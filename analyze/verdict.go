package analyze

import (
	"slices"

	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"
)

// An Explanation is what became of the process that wrote one log, and why: the answer of "explain".
// Its JSON form is the contract of "explain --format json".
type Explanation struct {
	File      string     `json:"file"`
	Outcome   string     `json:"outcome"`    // failed or ok
	RootClass *string    `json:"root_class"` // null when ok
	Root      *RootLine  `json:"root"`       // null when ok
	Incidents []Incident `json:"incidents"`
	Advice    []Advice   `json:"advice"`
	// Memory judges the failure, where it is want of memory or may be.
	Memory *MemoryIncident `json:"memory,omitempty"`

	Incident *Incident `json:"-"` // the one that ended it; nil when ok
	Input    Input     `json:"-"`
	Problems []Problem `json:"-"`
}

// A RootLine is the line that tells the cause best.
type RootLine struct {
	Line int    `json:"line"` // 0 when only the exit status or the kernel log tells
	Text string `json:"text"`
}

// Explain says how the process of the first source ended, and of what. A file that holds several runs
// one after the other is judged by the last; the earlier ones stay in the list of incidents.
func Explain(tl *timeline.Timeline, cat *failure.Catalogue) *Explanation {
	r := newRun(tl, cat)
	r.incidents()
	if status, given := givenStatus(tl); given && status == 0 {
		for _, in := range r.found {
			in.outcome = Recovered
		}
	}
	x := &Explanation{File: tl.Sources[0].Name, Outcome: "ok", Incidents: r.listIncidents(), Advice: []Advice{}, Input: inputs(tl)[0], Problems: problems(tl)}
	in := r.end()
	if in == nil {
		return x
	}
	i := slices.Index(r.found, in)
	x.Outcome, x.Incident = "failed", &x.Incidents[i]
	x.RootClass = &x.Incident.Class
	x.Root = &RootLine{Line: x.Incident.Line, Text: x.Incident.Text}
	if in.root.Form == timeline.FormExit && in.root.Text != tl.Processes[in.root.Process].ErrorText || x.Incident.Source != x.File {
		x.Root.Line = 0
	}
	m := r.memory()
	if k := slices.IndexFunc(m.PerIncident, func(j MemoryIncident) bool { return j.Incident == x.Incident.ID }); k >= 0 {
		x.Memory = &m.PerIncident[k]
	}
	x.Advice = advice(cat, tl, []string{in.root.Class}, m.reached())
	return x
}

// givenStatus is the exit status that the user gave beside the log.
func givenStatus(tl *timeline.Timeline) (int, bool) {
	for _, e := range tl.Events {
		if e.Kind == timeline.ProcessExit && e.Key == timeline.GivenStatus {
			return e.Number, true
		}
	}
	return 0, false
}

// end is the incident that ended the last run, nil when it ended well or nothing shows that it did not.
func (r *run) end() *incident {
	last := 0
	for _, p := range r.tl.Processes {
		last = max(last, p.Run)
	}
	var first, trial *incident
	for _, in := range r.found {
		if in.outcome != Lost || r.begunAnew(in) || in.root.Process >= 0 && r.tl.Processes[in.root.Process].Run != last {
			continue
		}
		switch {
		case in.root.Trial != timeline.NoTrial:
			if !r.outlived(in) && (trial == nil || in.tail.Pos.Line >= trial.tail.Pos.Line) {
				trial = in
			}
		case in.first || first == nil:
			first = in
		}
	}
	if first == nil {
		return trial
	}
	return first
}

// begunAnew says whether the job began after a rank's error and then ended well, so that the error was of
// a run before, though nothing marks where that ended.
func (r *run) begunAnew(in *incident) bool {
	if in.root.Process < 0 || r.tl.Processes[in.root.Process].Lane == "" {
		return false
	}
	rank, line := r.tl.Processes[in.root.Process], in.tail.Pos.Line
	return slices.ContainsFunc(r.tl.Processes, func(p timeline.Process) bool {
		return p.Stream == rank.Stream && p.Lane == "" && p.FirstProgress > line && p.Finished > line
	})
}

// outlived says whether the process went on after an incident that cost a trial.
func (r *run) outlived(in *incident) bool {
	if in.root.Process < 0 {
		return true
	}
	p, line := r.tl.Processes[in.root.Process], in.tail.Pos.Line
	return p.LastProgress > line || p.Finished > line || p.Exited && exitStatus(p.ExitStatus) == 0
}
