package analyze

import (
	"postmortem/analyze/scan"
	"postmortem/analyze/stats"
)

// A Survival says of one class how the chance to die of it goes with how long the process had run: what leaks,
// fills up or wears out kills late, whatever the hyperparameters are.
type Survival struct {
	Study string `json:"study"`
	Class string `json:"class"`
	Lives int    `json:"lives"` // processes that ran trials of the study
	Died  int    `json:"died"`  // of those in which an error of the class was the first
	// The rate of failure by how many trials the process had run before, and by how long it had run when the
	// trial began: bins of about equal n, over the trials of which the process is known.
	ByTrials  Hazard `json:"by_trials"`
	BySeconds Hazard `json:"by_seconds"`
}

// A Hazard is a class's rate of failure along the age of the process, and what share of the processes it had
// befallen by when.
type Hazard struct {
	Bins []ValueRate `json:"bins"`
	Z    float64     `json:"z"` // of the trend over the bins (Cochran and Armitage), positive where the rate rises
	P    float64     `json:"p"` // two-sided
	// Incidence counts a process up to its first failure, other classes as competitors (Aalen and Johansen).
	Incidence []Step   `json:"incidence"`
	Median    *float64 `json:"median"`  // age by which it had befallen half of the processes; null where it had not
	NoneOver  *float64 `json:"no_over"` // age that no process passed without it; null where one did
}

// A Step is a point of a curve of shares, right after At.
type Step struct {
	At    float64 `json:"at"`
	Alive float64 `json:"alive"`
	Dead  float64 `json:"dead"`
	Other float64 `json:"other"` // another class was the first
}

// risingP is the chance below which a hazard is said to rise.
const risingP = 0.01

// Rises says whether the rate grows with age.
func (h Hazard) Rises() bool { return h.Z > 0 && h.P <= risingP }

// survival looks at every class with failures enough in a study whose processes are known.
func (r *run) survival(blames []Blame) []Survival {
	out := []Survival{}
	for i := range blames {
		b := &blames[i]
		lives := r.lives(b.table.grid.study)
		if b.Failed < scan.MinHits || len(lives) == 0 {
			continue
		}
		s := Survival{Study: b.Study, Class: b.Class, Lives: len(lives)}
		s.ByTrials = b.hazard(lives, func(l processLife, k int) float64 { return float64(k) }, func(l processLife, k int) float64 { return float64(k + 1) })
		s.BySeconds = b.hazard(lives,
			func(l processLife, k int) float64 {
				return seconds(b.table.grid.study.Trials[l.trials[k]].Start.Sub(l.start))
			},
			func(l processLife, k int) float64 {
				t := &b.table.grid.study.Trials[l.trials[k]]
				return seconds(t.Start.Sub(l.start) + took(t))
			})
		for _, l := range lives {
			if _, cause := b.first(l); cause == 1 {
				s.Died++
			}
		}
		if len(s.ByTrials.Bins) > 1 {
			out = append(out, s)
		}
	}
	return out
}

// hazard measures along an age that a process has when it begins and when it ends its k-th trial.
func (b *Blame) hazard(lives []processLife, begins, ends func(l processLife, k int) float64) Hazard {
	age := map[int32]float64{}
	var spans []stats.Life
	longest, died := 0.0, 0.0
	for _, l := range lives {
		for k, i := range l.trials {
			age[int32(i)] = begins(l, k)
		}
		k, cause := b.first(l)
		at := ends(l, k)
		spans = append(spans, stats.Life{At: at, Cause: cause})
		longest = max(longest, at)
		if cause == 1 {
			died = max(died, at)
		}
	}
	var h Hazard
	h.Bins = ageBins(b.table, age)
	var hits, ns []int
	for _, v := range h.Bins {
		hits, ns = append(hits, v.Failed), append(ns, v.N)
	}
	h.Z, h.P = stats.Trend(hits, ns)
	h.Incidence = []Step{}
	for _, s := range stats.AalenJohansen(spans) {
		h.Incidence = append(h.Incidence, Step(s))
		if h.Median == nil && s.Dead >= 0.5 {
			h.Median = &s.At
		}
	}
	if longest == died && died > 0 {
		h.NoneOver = &died
	}
	return h
}

// ageBins are the rates of a class's rows by age.
func ageBins(t *blamed, age map[int32]float64) []ValueRate {
	var points []point
	for k, i := range t.rows {
		if a, known := age[i]; known {
			points = append(points, point{number(a), t.hit[k]})
		}
	}
	sortPoints(points, true)
	return binned(points)
}

// first is the process's first trial that was lost to an error of its own, and whether that was of the class
// (1) or of another one (2); without any, its last trial and 0.
func (b *Blame) first(l processLife) (k, cause int) {
	g := b.table.grid
	for k, i := range l.trials {
		t := &g.study.Trials[i]
		switch f := g.fates[i]; {
		case f.began(b.Class, t):
			return k, 1
		case f.kind == lost && f.in.root.Trial == t.Number:
			return k, 2
		}
	}
	return len(l.trials) - 1, 0
}
