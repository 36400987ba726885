package analyze

import (
	"fmt"
	"math"
	"postmortem/analyze/stats"
	"strings"
	"testing"

	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"

	"github.com/google/go-cmp/cmp"
)

// TestTelltales plants a line in most of the trials that were lost to nobody knows what, and a frightening
// one in every trial.
func TestTelltales(t *testing.T) {
	tl := &timeline.Timeline{Sources: []timeline.Source{{Name: "w0.log"}, {Name: "w1.log"}}, Streams: []timeline.Stream{{}, {Source: 1}}}
	st := timeline.Study{Name: "s"}
	lease := []timeline.Phrase{{Shape: "lease # lost", Text: "lease 17 lost"}, {Stream: 1, Shape: "lease # lost", Text: "lease 4 lost"}}
	fright := []timeline.Phrase{{Shape: "WARNING x", Text: "WARNING x", Alarm: true}, {Stream: 1, Shape: "WARNING x", Text: "WARNING x", Alarm: true}}
	for i := range 40 {
		w := i % 2
		tr := timeline.Trial{Number: i, State: timeline.Complete, Stream: w, Process: -1, From: i*10 + 1, To: i*10 + 9}
		if i%4 < 2 {
			tr.State = timeline.Fail
			if i > 3 {
				lease[w].Lines = append(lease[w].Lines, i*10+5)
			}
		}
		fright[w].Lines = append(fright[w].Lines, i*10+2)
		st.Trials = append(st.Trials, tr)
	}
	for w := range 2 {
		lease[w].Pos = timeline.Pos{Source: w, Line: lease[w].Lines[0]}
		fright[w].Pos = timeline.Pos{Source: w, Line: fright[w].Lines[0]}
	}
	tl.Studies = []timeline.Study{st}
	tl.Phrases = append(lease, fright...)
	var got []string
	for _, x := range Run(tl, failure.Default()).Telltales {
		got = append(got, fmt.Sprintf("%s %s:%d %q %d/%d %d/%d", x.Verdict, x.Source, x.Line, x.Text, x.Lost, x.LostOf, x.Completed, x.CompletedOf))
	}
	want := []string{`suspect w0.log:45 "lease 17 lost" 18/20 0/20`, `cleared w0.log:2 "WARNING x" 20/20 20/20`}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	tl.Studies[0].Trials = tl.Studies[0].Trials[:6] // too few to say
	if x := Run(tl, failure.Default()).Telltales; len(x) != 0 {
		t.Errorf("six trials tell %+v", x)
	}
}

func TestFisherGreater(t *testing.T) {
	// R: fisher.test(matrix(c(a, n-a, b, m-b), 2), alternative = "greater")
	for _, tt := range []struct {
		a, n, b, m int
		want       float64
	}{{3, 4, 1, 4, 0.242857}, {6, 10, 1, 20, 0.002122}, {5, 5, 0, 5, 0.003968}, {0, 5, 3, 5, 1}} {
		if got := fisher(tt.a, tt.n, tt.b, tt.m); math.Abs(got-tt.want) > 1e-6 {
			t.Errorf("%+v: got %.6f", tt, got)
		}
	}
	if got := stats.LogOdds(18, 20, 0, 20); math.Abs(got-math.Log(18.5*20.5/(2.5*0.5))) > 1e-12 {
		t.Error(got)
	}
	if !strings.HasPrefix(fmt.Sprint(stats.LogOdds(0, 0, 0, 0)), "0") {
		t.Error("nothing must tell nothing")
	}
}
