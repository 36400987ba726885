package analyze

import (
	"math"

	"postmortem/analyze/scan"
	"postmortem/analyze/stats"
	"postmortem/ingest/timeline"
)

// Waste is what the search spent in a region after it could have known that trials die there.
type Waste struct {
	// KnownAfter is the trial with whose end the region could have been known: from then on an exact test on
	// the trials that had ended by then leaves it standing against all rules of its shape.
	KnownAfter int     `json:"known_after_trial"`
	KnownAt    string  `json:"known_at,omitempty"`
	Trials     int     `json:"trials"` // that began in the region later
	Failed     int     `json:"failed"` // of those, by an error of the class that began there
	Seconds    float64 `json:"seconds"`
	Share      float64 `json:"share"` // of all trial time that began later

	// What the storage, and so the sampler, knows of the failures in the region.
	RecordedFail   int `json:"recorded_fail"`   // Optuna's samplers leave such trials out
	RecordedPruned int `json:"recorded_pruned"` // the TPE sampler counts such trials as bad ones
	// How large a share of the first and of the second half of the study's trials fell into the region:
	// whether the sampler moved away from it, or towards it.
	First float64 `json:"share_first_half"`
	Later float64 `json:"share_second_half"`
}

// waste finds out by when a rule could have been known, and what went into its region afterwards; nil where
// it could not have been known before the end.
func (g *grid) waste(b *Blame, conds []scan.Condition, shapes float64) *Waste {
	t := b.table
	trials := g.study.Trials
	in := t.inside(conds)
	at := g.knownAt(t, in, shapes)
	if at < 0 {
		return nil
	}
	known := &trials[at]
	w := &Waste{KnownAfter: known.Number, KnownAt: stamp(known.End)}
	all := 0.0
	for i := range trials {
		x := &trials[i]
		root := in[i] && g.fates[i].began(b.Class, x)
		if root {
			switch x.State {
			case timeline.Fail:
				w.RecordedFail++
			case timeline.Pruned:
				w.RecordedPruned++
			}
		}
		if !x.Start.After(known.End) {
			continue
		}
		all += seconds(took(x))
		if in[i] {
			w.Trials++
			w.Seconds += seconds(took(x))
			if root {
				w.Failed++
			}
		}
	}
	if all > 0 {
		w.Share = w.Seconds / all
	}
	half := len(trials) / 2
	w.First, w.Later = share(count(in[:half]), half), share(count(in[half:]), len(trials)-half)
	return w
}

func count(in []bool) int {
	n := 0
	for _, x := range in {
		if x {
			n++
		}
	}
	return n
}

// knownAt is the trial with whose end the rule could first be claimed, or -1: trials are taken in the order
// in which they ended.
func (g *grid) knownAt(t *blamed, in []bool, shapes float64) int {
	const notARow, survivor, failed = 0, 1, 2
	what := make([]uint8, len(in))
	for k, i := range t.rows {
		what[i] = survivor
		if t.hit[k] {
			what[i] = failed
		}
	}
	var s stats.Stratum
	for _, i := range g.byEnd {
		if what[i] == notARow {
			continue
		}
		s.N++
		if in[i] {
			s.Inside++
		}
		if what[i] == survivor {
			continue
		}
		s.Hits++
		if !in[i] {
			continue
		}
		s.Both++
		if g.study.Trials[i].End.IsZero() {
			return -1
		}
		if s.Both >= scan.MinHits && stats.LogPGreater([]stats.Stratum{s})+shapes <= math.Log(scan.MaxQ) {
			return int(i)
		}
	}
	return -1
}
