package trainlog

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"
)

// classesOf reads a piece of log and lists the classes of the errors in it.
func classesOf(t *testing.T, cat *failure.Catalogue, text string) []string {
	t.Helper()
	tl, err := Read(strings.NewReader(text+"\n"), "sample.log", 0, cat)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range tl.Events {
		if e.Kind == timeline.Failure {
			out = append(out, e.Class)
		}
	}
	return out
}

var (
	words  = regexp.MustCompile(`[A-Za-z]{3,}|[0-9]{3,}`)
	escape = regexp.MustCompile(`\\[a-zA-Z]|\(\?i\)|\[[^\]]*\]`)
)

// TestSamples reads the catalogue's samples as logs: every signature has at least one text that it
// names, and one that shares a word with it and is named otherwise or not at all.
func TestSamples(t *testing.T) {
	cat := failure.Default()
	for i := range cat.Classes {
		cl := &cat.Classes[i]
		signatures := slices.Concat(cl.Text, cl.Native, cl.Line, cl.Exceptions)
		for _, p := range cl.Patterns {
			signatures = append(signatures, p.RE)
		}
		for _, sample := range cl.Yes {
			if got := classesOf(t, cat, sample); !slices.Contains(got, cl.ID) {
				t.Errorf("%s: %q is named %v", cl.ID, sample, got)
			}
		}
		for _, sample := range cl.No {
			if got := classesOf(t, cat, sample); slices.Contains(got, cl.ID) {
				t.Errorf("%s: %q must not be named so", cl.ID, sample)
			}
		}
		for k, sig := range signatures {
			yes := slices.ContainsFunc(cl.Yes, func(s string) bool {
				if k < len(signatures)-len(cl.Patterns) {
					return strings.Contains(s, sig)
				}
				return regexp.MustCompile(sig).MatchString(strings.Join(strings.Fields(s), " "))
			})
			if !yes {
				t.Errorf("%s: no sample for %q", cl.ID, sig)
			}
			no := slices.ContainsFunc(cl.No, func(s string) bool {
				told := sig
				if k >= len(signatures)-len(cl.Patterns) {
					told = escape.ReplaceAllString(sig, " ")
				}
				return slices.ContainsFunc(words.FindAllString(told, -1), func(w string) bool { return strings.Contains(s, w) })
			})
			if !no {
				t.Errorf("%s: no tempting sample for %q", cl.ID, sig)
			}
		}
	}
}
