package analyze

import (
	"cmp"
	"math"
	"slices"

	"postmortem/analyze/stats"
	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"
)

// A Telltale is a kind of line, of which no class is known, whose place among the trials says something: it
// stands in trials lost to nobody knows what and hardly in completed ones, or it looks frightening and
// stands in completed ones as often as in lost ones.
type Telltale struct {
	Study   string `json:"study"`
	Source  string `json:"source"`
	Line    int    `json:"line"` // the first of its kind
	Text    string `json:"text"`
	Verdict string `json:"verdict"` // suspect or cleared
	// Trials with such a line, and all of that fate whose log is known. For a suspect, Lost counts the trials
	// lost to an unknown cause; for a cleared line, all lost ones.
	Lost        int     `json:"lost"`
	LostOf      int     `json:"lost_of"`
	Completed   int     `json:"completed"`
	CompletedOf int     `json:"completed_of"`
	LogOdds     float64 `json:"log_odds"` // natural, with 0.5 added to each count (Haldane and Anscombe)
	P           float64 `json:"p"`        // Fisher's exact test, one-sided
}

// A line is a suspect when it stands in at least minTelling lost trials, its log-odds are at least
// suspectOdds (seven to one) and chance explains it with less than suspectP. A frightening line is
// cleared when it stands in at least minTelling completed trials and its log-odds are at most clearedOdds.
const (
	minTelling  = 3
	suspectOdds = 1.95
	suspectP    = 0.01
	clearedOdds = 0.4
	maxTelltale = 20
)

// telltales compares lost and completed trials by the lines that no class names.
func (r *run) telltales() []Telltale {
	out := []Telltale{}
	kinds := r.phraseKinds()
	for i := range r.tl.Studies {
		s := &r.tl.Studies[i]
		good := r.spans(s, func(f *fate) bool { return f.kind == completed })
		unknown := r.spans(s, func(f *fate) bool { return f.kind == lost && f.in.root.Class == failure.Unknown })
		bad := r.spans(s, func(f *fate) bool { return f.kind == lost })
		var found []Telltale
		for _, ph := range kinds {
			t := r.compare(s.Name, ph, unknown, good)
			if t.Lost >= minTelling && t.LogOdds >= suspectOdds && t.P < suspectP {
				t.Verdict = "suspect"
				found = append(found, t)
			} else if t = r.compare(s.Name, ph, bad, good); ph[0].Alarm && len(bad) >= minTelling && t.Completed >= minTelling && t.LogOdds <= clearedOdds {
				t.Verdict = "cleared"
				found = append(found, t)
			}
		}
		slices.SortStableFunc(found, func(a, b Telltale) int {
			return cmp.Or(cmp.Compare(b.Verdict, a.Verdict), cmp.Compare(b.LogOdds, a.LogOdds), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Line, b.Line))
		})
		out = append(out, found[:min(len(found), maxTelltale)]...)
	}
	return out
}

// phraseKinds brings the phrases of all logs together that are of one shape, in order of source and line.
func (r *run) phraseKinds() [][]timeline.Phrase {
	byShape := map[string]int{}
	var out [][]timeline.Phrase
	sorted := slices.Clone(r.tl.Phrases)
	slices.SortStableFunc(sorted, func(a, b timeline.Phrase) int {
		return cmp.Or(cmp.Compare(r.tl.Sources[a.Pos.Source].Name, r.tl.Sources[b.Pos.Source].Name), cmp.Compare(a.Pos.Line, b.Pos.Line))
	})
	for _, ph := range sorted {
		i, known := byShape[ph.Shape]
		if !known {
			i = len(out)
			byShape[ph.Shape] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], ph)
	}
	return out
}

// compare counts the lost and the completed trials that hold a kind of line.
func (r *run) compare(study string, ph []timeline.Phrase, bad, good []span) Telltale {
	t := Telltale{Study: study, Source: r.tl.Sources[ph[0].Pos.Source].Name, Line: ph[0].Pos.Line, Text: ph[0].Text,
		Lost: within(ph, bad), LostOf: len(bad), Completed: within(ph, good), CompletedOf: len(good)}
	t.LogOdds = stats.LogOdds(t.Lost, t.LostOf, t.Completed, t.CompletedOf)
	t.P = fisher(t.Lost, t.LostOf, t.Completed, t.CompletedOf)
	return t
}

// A span is the lines of one trial in its worker's log.
type span struct{ stream, from, to int }

// spans are the lines of the trials of a study that a log is known of and whose fate is asked for.
func (r *run) spans(s *timeline.Study, want func(*fate) bool) []span {
	var out []span
	for j := range s.Trials {
		if t := &s.Trials[j]; t.Stream >= 0 && t.To > 0 && want(r.fateOf[t]) {
			out = append(out, span{t.Stream, t.From, t.To})
		}
	}
	return out
}

// within counts the spans that hold a line of a kind.
func within(kind []timeline.Phrase, spans []span) int {
	n := 0
	for _, s := range spans {
		if slices.ContainsFunc(kind, func(ph timeline.Phrase) bool {
			i, _ := slices.BinarySearch(ph.Lines, s.from)
			return ph.Stream == s.stream && i < len(ph.Lines) && ph.Lines[i] <= s.to
		}) {
			n++
		}
	}
	return n
}

// fisher is the chance of at least a of n, given a+b of n+m in all, when the two groups do not differ.
func fisher(a, n, b, m int) float64 {
	return math.Exp(stats.LogPGreater([]stats.Stratum{{N: n + m, Hits: a + b, Inside: n, Both: a}}))
}
