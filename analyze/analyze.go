// Package analyze answers questions about a timeline: what became of every trial, what killed those
// that were lost, and which values of the hyperparameters go with it. Its functions are pure: no
// input, no clock, no words for people. One file holds one question.
package analyze

import (
	"time"

	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"
)

// Findings is all that is known after the analysis. Its JSON form is the contract of
// "report --format json": fields are added, never renamed; lists are never null.
type Findings struct {
	SchemaVersion int        `json:"schema_version"`
	Inputs        []Input    `json:"inputs"`
	Studies       []Study    `json:"studies"`
	Incidents     []Incident `json:"incidents"`
	Failures      []Failure  `json:"failures"`
	Losses        []Loss     `json:"losses"`
	Rates         []Rates    `json:"rates"`
	Blames        []Blame    `json:"blames"`
	Culprits      []Culprit  `json:"culprits"`
	Context       []Context  `json:"context"`
	Survival      []Survival `json:"survival"`
	Memory        Memory     `json:"memory"`
	Kernel        Kernel     `json:"kernel"`
	Settings      []Setting  `json:"settings"`
	Advice        []Advice   `json:"advice"`
	Telltales     []Telltale `json:"telltales"`
	Clocks        []Clock    `json:"clocks"`
	Skipped       []Skipped  `json:"skipped"`
	Problems      []Problem  `json:"not_understood"`

	// Questions of the contract that this version does not ask; their lists are empty for that reason.
	NotComputed []string `json:"not_computed"`
	Checks      []any    `json:"checks"`
	Gates       []any    `json:"gates"`

	Lanes Lanes `json:"-"` // the run as a picture: trials per worker, card memory, incidents
}

// Asked is what a person asks beyond what happened.
type Asked struct {
	CapacityBytes int64 // of another card that the run might move to; 0 for this run's
}

// Run asks all questions of one timeline.
func Run(tl *timeline.Timeline, cat *failure.Catalogue) *Findings { return RunWith(tl, cat, Asked{}) }

// RunWith is Run with something asked beyond it.
func RunWith(tl *timeline.Timeline, cat *failure.Catalogue, o Asked) *Findings {
	r := newRun(tl, cat)
	r.incidents()
	r.fates()
	f := &Findings{
		SchemaVersion: 1,
		Inputs:        inputs(tl),
		Studies:       r.studyFates(),
		Incidents:     r.listIncidents(),
		Losses:        r.losses(),
		Memory:        r.memory(),
		Kernel:        r.kernel,
		Settings:      settings(tl),
		Clocks:        clocks(tl),
		Skipped:       skipped(tl),
		Problems:      problems(tl),
		NotComputed:   []string{"checks", "gates"},
		Checks:        []any{}, Gates: []any{},
	}
	f.Failures = r.failures(f.Losses)
	f.Rates = r.rates(f.Failures)
	f.Blames, f.Culprits, f.Context = r.culprits(f.Failures)
	f.Survival = r.survival(f.Blames)
	f.Memory.Fit = r.fit(float64(o.CapacityBytes))
	f.Memory.Footprints = r.footprints(f.Blames, f.Memory.Fit)
	f.Telltales = r.telltales()
	var classes []string
	for _, x := range f.Failures {
		if len(x.Trials) > 0 || x.Incidents > 0 {
			classes = append(classes, x.Class)
		}
	}
	f.Advice = advice(cat, tl, classes, f.Memory.reached())
	f.Lanes = r.lanes()
	return f
}

func newRun(tl *timeline.Timeline, cat *failure.Catalogue) *run {
	r := &run{tl: tl, cat: cat, workers: map[trialRef]string{}, sole: -1}
	r.eachTrial(func(s *timeline.Study, t *timeline.Trial) { r.workers[trialRef{s.Name, t.Number}] = t.Worker })
	return r
}

// A run is what the questions share while they are asked.
type run struct {
	tl       *timeline.Timeline
	cat      *failure.Catalogue
	found    []*incident
	fateOf   map[*timeline.Trial]*fate
	kernel   Kernel
	workers  map[trialRef]string      // of trials whose worker is known
	children map[int]int              // processes by the pid of a worker of theirs that an error names
	sole     int                      // the process that kernel lines are about where no pid tells, or -1
	launches map[int][]timeline.Event // settings of CUDA_LAUNCH_BLOCKING by source
	mem      *memoryIndex             // see logged
	from     time.Time                // the first sign of life of a trial or in a log
	last     time.Time                // the last one: what "now" means after the fact
}

func (r *run) eachTrial(f func(s *timeline.Study, t *timeline.Trial)) {
	for i := range r.tl.Studies {
		s := &r.tl.Studies[i]
		for j := range s.Trials {
			f(s, &s.Trials[j])
		}
	}
}

// trialRef names a trial across studies.
type trialRef struct {
	study  string
	number int
}

func seconds(d time.Duration) float64 { return d.Seconds() }

// stamp writes a time as the contract wants it; "" for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
