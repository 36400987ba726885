package analyze

import (
	"cmp"
	"slices"
	"strconv"

	"postmortem/ingest/timeline"
)

// A Loss is one lost trial and the line or attribute that shows what it was lost to.
type Loss struct {
	Study     string  `json:"study"`
	Trial     int     `json:"trial"`
	RootClass string  `json:"root_class"` // of the incident
	Incident  string  `json:"incident"`
	Class     string  `json:"class"`  // of this trial's own error, an echo's included
	Source    string  `json:"source"` // where that error stands
	Line      int     `json:"line"`
	Row       string  `json:"row,omitempty"`
	Worker    string  `json:"worker,omitempty"`
	Seconds   float64 `json:"seconds"`
	Link      string  `json:"link"` // stated, inferred or ""

	FirstLine int `json:"first_line,omitempty"` // of the trial in its worker's log
	LastLine  int `json:"last_line,omitempty"`
	Peaks
}

// losses lists every lost trial, by study and number.
func (r *run) losses() []Loss {
	ids := r.ids()
	out := []Loss{}
	r.eachTrial(func(s *timeline.Study, t *timeline.Trial) {
		f := r.fateOf[t]
		if f.kind != lost {
			return
		}
		own := f.in.witness(trialRef{s.Name, t.Number})
		out = append(out, Loss{Study: s.Name, Trial: t.Number, RootClass: f.in.root.Class, Incident: ids[f.in], Class: own.Class,
			Source: r.sourceName(own), Line: own.Pos.Line, Row: own.Pos.Row, Worker: t.Worker, Seconds: seconds(took(t)), Link: string(t.Link),
			FirstLine: t.From, LastLine: t.To, Peaks: r.peaks(t.Process, t.Start, t.End)})
	})
	return out
}

// witness returns the best sign of the incident within one trial. The error that the program itself
// saw comes before a kernel's assertion here: it is what the trial died of.
func (in *incident) witness(ref trialRef) timeline.Event {
	order := []timeline.Form{timeline.FormTraceback, timeline.FormException, timeline.FormHandler, timeline.FormNative, timeline.FormOptuna,
		timeline.FormAttribute, timeline.FormCleanup, timeline.FormKernel}
	best, rank := in.root, len(order)
	for _, e := range in.signs() {
		if e.Trial != ref.number || e.Study != ref.study || e.Kind == timeline.Xid {
			continue
		}
		if k := slices.Index(order, e.Form); k >= 0 && k < rank {
			best, rank = e, k
		}
	}
	return best
}

// A Failure sums up what one class cost.
type Failure struct {
	Class       string  `json:"class"`
	Incidents   int     `json:"incidents"` // that cost something
	Recovered   int     `json:"recovered"`
	Trials      []int   `json:"trials"`
	Share       float64 `json:"share"` // of all trials of all studies
	First       string  `json:"first,omitempty"`
	Last        string  `json:"last,omitempty"`
	SecondsLost float64 `json:"seconds_lost"`
	Example     string  `json:"example"` // id of the incident that cost most trials
}

// failures sums up the classes, by trials lost.
func (r *run) failures(losses []Loss) []Failure {
	byClass := map[string]*Failure{}
	exampleSize := map[string]int{}
	for i, in := range r.found {
		f := byClass[in.root.Class]
		if f == nil {
			f = &Failure{Class: in.root.Class, Trials: []int{}}
			byClass[in.root.Class] = f
		}
		if in.outcome == Recovered {
			f.Recovered++
			if f.Example == "" {
				f.Example = "i" + strconv.Itoa(i+1)
			}
			continue
		}
		f.Incidents++
		if f.First == "" {
			f.First = stamp(in.root.Time)
		}
		if last := stamp(in.root.Time); last != "" {
			f.Last = last
		}
		if n := len(in.trials) + 1; n > exampleSize[f.Class] {
			f.Example, exampleSize[f.Class] = "i"+strconv.Itoa(i+1), n
		}
	}
	total := 0
	r.eachTrial(func(*timeline.Study, *timeline.Trial) { total++ })
	for _, l := range losses {
		f := byClass[l.RootClass]
		f.Trials = append(f.Trials, l.Trial)
		f.SecondsLost += l.Seconds
		f.Share = float64(len(f.Trials)) / float64(total)
	}
	out := []Failure{}
	for _, f := range byClass {
		out = append(out, *f)
	}
	slices.SortFunc(out, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(len(b.Trials), len(a.Trials)), cmp.Compare(b.Incidents, a.Incidents), cmp.Compare(a.Class, b.Class))
	})
	return out
}
