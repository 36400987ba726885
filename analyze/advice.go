package analyze

import (
	"slices"
	"strings"

	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"
)

// Advice is one thing to do about a class that occurred.
type Advice struct {
	For        string `json:"for"` // class, or the verdict on memory that it is for
	Text       string `json:"text"`
	Because    string `json:"because"`        // the condition under which it applies; "" for always
	Sets       string `json:"sets,omitempty"` // KEY=VALUE that it asks for; KEY alone when the value is the user's
	AlreadySet bool   `json:"already_set"`    // what it asks for was seen to be set, and the failure came all the same
	Verify     string `json:"verify"`
	Provenance string `json:"provenance"`
}

// advice collects what the catalogue says about classes, in their order. What is for another verdict on memory
// than those that were reached is left out; what is set already goes last.
func advice(cat *failure.Catalogue, tl *timeline.Timeline, classes []string, reached map[string]bool) []Advice {
	out, set := []Advice{}, []Advice{}
	for _, id := range classes {
		cl := cat.Class(id)
		for _, a := range cl.Advice {
			if len(reached) > 0 && len(a.Verdicts) > 0 && !slices.ContainsFunc(a.Verdicts, func(v string) bool { return reached[v] }) {
				continue
			}
			x := Advice{For: cl.ID, Text: a.Text, Because: a.When, Sets: strings.TrimSuffix(a.Sets, "="), Verify: a.Verify, Provenance: a.Source}
			if x.Verify == "" {
				x.Verify = cl.Verify
			}
			if x.AlreadySet = isSet(tl, a.Sets); x.AlreadySet {
				set = append(set, x)
			} else {
				out = append(out, x)
			}
		}
	}
	return append(out, set...)
}

// isSet says whether some log shows that a setting is in effect: KEY=PART, of which PART must be in the
// value.
func isSet(tl *timeline.Timeline, sets string) bool {
	key, part, ok := strings.Cut(sets, "=")
	if !ok {
		return false
	}
	for _, e := range tl.Events {
		if e.Kind == timeline.Setting && e.Key == key && e.Value != "" && strings.Contains(e.Value, part) {
			return true
		}
	}
	return false
}
