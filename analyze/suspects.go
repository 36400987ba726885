package analyze

import (
	"math"

	"postmortem/analyze/scan"
)

// A Suspect is a region that taken by itself would be a culprit, but among trials alike in some circumstance
// does not stand. A sampler that learns moves away from a region, and then time cannot be told from it.
type Suspect struct {
	Conditions []Condition `json:"conditions"`
	Region
	Q      float64 `json:"q"`       // as a culprit's; above the bar for claims
	QCrude float64 `json:"q_crude"` // the same if nothing else had changed in the meantime
	Within string  `json:"within"`  // the circumstance within which it does not stand
}

// maxSuspects is how many are listed of one class.
const maxSuspects = 3

// minCommon is how many failures must share a value, and minOthers how many rows must have another one and
// have survived, for the value to be worth a word.
const (
	minCommon = 10
	minOthers = 5
)

// suspects lists what a class without culprits may go with, and cannot be shown to: regions that cannot be
// told from a circumstance, and single values that all failures have in common while too few trials had others.
func (b *Blame) suspects(table *scan.Table) (confounded []Suspect, common []scan.Rule) {
	confounded = []Suspect{}
	for _, s := range scan.Suspects(table, maxSuspects) {
		switch {
		case s.Crude <= math.Log(scan.MaxQ):
			confounded = append(confounded, Suspect{Conditions: b.table.conditions(s.Conditions), Region: region(s.Hits, s.N, b.Failed, b.N),
				Q: chance(s.LogQ), QCrude: chance(s.Crude), Within: s.Weakest})
		case s.Hits >= minCommon && s.Hits == b.Failed && b.N-s.N >= minOthers:
			common = append(common, s.Rule)
		}
	}
	return confounded, common
}
