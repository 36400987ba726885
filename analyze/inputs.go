package analyze

import (
	"cmp"
	"slices"

	"postmortem/ingest/timeline"
)

// An Input is the account of one source.
type Input struct {
	Name          string `json:"name"`
	Kind          string `json:"kind"`
	Bytes         int64  `json:"bytes"`
	Lines         int    `json:"lines"`
	Events        int    `json:"events"`
	Samples       int    `json:"samples"`
	NotUnderstood int    `json:"not_understood"`
	Note          string `json:"note"`
}

func inputs(tl *timeline.Timeline) []Input {
	out := []Input{}
	for _, s := range tl.Sources {
		x := Input{Name: s.Name, Kind: string(s.Kind), Bytes: s.Bytes, Lines: s.Lines, Events: s.Events, Samples: s.Samples, NotUnderstood: s.NotUnderstood}
		for i, n := range s.Notes {
			if i > 0 {
				x.Note += "; "
			}
			x.Note += n
		}
		out = append(out, x)
	}
	return out
}

// A Problem is what was not understood, once per source and shape.
type Problem struct {
	Source string `json:"source"`
	Line   int    `json:"line"`
	Row    string `json:"row,omitempty"`
	Msg    string `json:"msg"`
	Text   string `json:"text"`
	Count  int    `json:"count"`
}

func problems(tl *timeline.Timeline) []Problem {
	out := []Problem{}
	for _, p := range tl.Problems {
		out = append(out, Problem{Source: tl.Sources[p.Pos.Source].Name, Line: p.Pos.Line, Row: p.Pos.Row, Msg: p.Msg, Text: p.Text, Count: p.Count})
	}
	slices.SortStableFunc(out, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Row, b.Row))
	})
	return out
}

// A Skipped is a file of a folder that was not read.
type Skipped struct {
	Name string `json:"name"`
	Why  string `json:"why"` // not-an-input, unreadable or empty
}

func skipped(tl *timeline.Timeline) []Skipped {
	out := []Skipped{}
	for _, s := range tl.Skipped {
		out = append(out, Skipped{s.Name, string(s.Why)})
	}
	return out
}

// A Clock says how one kind of input was placed in time.
type Clock struct {
	Of            string  `json:"of"` // database, logs, gpu or kernel
	OffsetSeconds float64 `json:"offset_seconds"`
	Zone          string  `json:"zone,omitempty"`
	How           string  `json:"how"` // given, heartbeats, version, pairs, shared or assumed
	Witnesses     int     `json:"witnesses"`
	Contradicting int     `json:"contradicting"`
}

func clocks(tl *timeline.Timeline) []Clock {
	out := []Clock{}
	for _, c := range tl.Clocks {
		out = append(out, Clock{c.Of, seconds(c.Offset), c.Zone, string(c.How), c.Trials, c.Others})
	}
	return out
}

// A Setting is what the run itself said it ran with.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source"`
	Line   int    `json:"line"` // of the first time it was said
	Times  int    `json:"times"`
}

// settings lists each key with each of its values once, by key, source and line of the first.
func settings(tl *timeline.Timeline) []Setting {
	seen := map[[2]string]int{}
	out := []Setting{}
	for _, e := range tl.Events {
		if e.Kind != timeline.Setting {
			continue
		}
		k := [2]string{e.Key, e.Value}
		src := tl.Sources[e.Pos.Source].Name
		i, ok := seen[k]
		if !ok {
			seen[k] = len(out)
			out = append(out, Setting{Key: e.Key, Value: e.Value, Source: src, Line: e.Pos.Line, Times: 1})
			continue
		}
		out[i].Times++
		if cmp.Or(cmp.Compare(src, out[i].Source), cmp.Compare(e.Pos.Line, out[i].Line)) < 0 {
			out[i].Source, out[i].Line = src, e.Pos.Line
		}
	}
	slices.SortFunc(out, func(a, b Setting) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value)) })
	return out
}
