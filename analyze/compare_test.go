package analyze

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"postmortem/ingest"
	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"
)

// TestCompareMade compares made runs in which it is known what changed.
func TestCompareMade(t *testing.T) {
	cat := failure.Default()
	run := func(n, oom, nan int) *RunSummary {
		var trials []made
		for i := range n {
			m := made{params: map[string]any{"lr": float64(i%17) / 17}, state: timeline.Complete, seconds: 20, process: -1}
			switch {
			case i < oom:
				m.text, m.state = oomText, timeline.Fail
			case i < oom+nan:
				m.text, m.state = nanText, timeline.Fail
			}
			trials = append(trials, m)
		}
		return Summarize("made", study(trials), cat)
	}
	verdicts := func(c *Comparison) map[string]ChangeVerdict {
		m := map[string]ChangeVerdict{}
		for _, x := range c.Classes {
			m[x.Class] = x.Verdict
		}
		return m
	}
	for _, tt := range []struct {
		name     string
		a, b     *RunSummary
		oom, nan ChangeVerdict
	}{
		{"fixed, and worse", run(200, 40, 4), run(200, 0, 40), Fixed, Worse},
		{"better, and nothing", run(200, 60, 10), run(200, 15, 9), Better, NoEvidence},
		{"too few to tell", run(200, 10, 10), run(20, 0, 1), NoEvidence, NoEvidence},
	} {
		c := Compare(tt.a, tt.b)
		got := verdicts(c)
		if got["cuda/out-of-memory"] != tt.oom || got["numeric/nan-loss"] != tt.nan {
			t.Errorf("%s: %v", tt.name, got)
		}
		for _, x := range c.Classes {
			if x.Verdict == NoEvidence && x.Class == "cuda/out-of-memory" && x.Needed != 39 { // 59 at 5 %, of which 20 were run
				t.Errorf("%s: %d more trials, want 39", tt.name, x.Needed)
			}
		}
	}
	same := run(120, 12, 12)
	c := Compare(same, same)
	for _, x := range c.Classes {
		if x.Verdict != NoEvidence || x.P < 0.5 || x.Needed != 0 {
			t.Errorf("a run with itself: %+v", x)
		}
	}
	if len(c.Changes) != 0 || c.Attribution != "no-change" {
		t.Errorf("a run with itself: %+v", c.Changes)
	}
}

// TestMixExplains: sizes of 12 and more always die, and the later run tried hardly any.
func TestMixExplains(t *testing.T) {
	before, later := sizes(300), sizes(900)
	var after []made
	for _, m := range later {
		if m.params["size"].(int) < 12 || len(after)%40 == 0 {
			after = append(after, m)
		}
	}
	cat := failure.Default()
	c := Compare(Summarize("before", study(before), cat), Summarize("after", study(after), cat))
	if len(c.Classes) != 1 || !c.Classes[0].Mixed || c.Classes[0].Verdict != NoEvidence || *c.Classes[0].MixedP < 0.9 || c.Classes[0].P > 1e-6 {
		t.Errorf("%+v", c.Classes)
	}
}

// TestCompareRecorded: the recorded run before, and the logs after without their storage.
func TestCompareRecorded(t *testing.T) {
	a := Summarize("before", nightly(t), failure.Default())
	if a.Trials != 179 || a.Lost != 82 || a.Workers != 4 || a.Resets != 0 || a.MemoryVerdict != Overcommit || a.LostByClass["cuda/out-of-memory"] != 40 {
		t.Errorf("%+v", a)
	}
}

// TestOptions holds what is known of the recorded options.
func TestOptions(t *testing.T) {
	var list []Option
	logs, _ := filepath.Glob("../testdata/options/*.log")
	for _, log := range logs {
		name := strings.TrimSuffix(filepath.Base(log), ".log")
		tl, err := ingest.Read(context.Background(), ingest.Request{Logs: []string{log}, GPUs: []string{"../testdata/options/" + name + ".nvidia_smi.csv"}, Catalogue: failure.Default()})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, ReadOption(name, tl, failure.Default(), 15<<30))
	}
	c := CompareOptions(list)
	by := map[string]Option{}
	for _, o := range c.Options {
		by[o.Name] = o
	}
	full, stable, failed := by["colab_optimized_full"], by["colab_full_stable"], by["colab_reduce_overhead"]
	near := func(what string, got, want, by float64) {
		if math.Abs(got-want) > by {
			t.Errorf("%s: %v, want about %v", what, got, want)
		}
	}
	near("compiled epoch", full.Steady, 2.0, 0.1)
	near("epoch", stable.Steady, 5.2, 0.1)
	near("speedup", full.Speedup, 2.6, 0.05)
	near("compiling", full.First, 40, 1)
	if full.BreakEven != 12 || full.Epochs != 8 || full.Planned != 8 || full.PeakBytes == 0 || full.Headroom != 15<<30-full.PeakBytes || full.Drifts {
		t.Errorf("%+v", full)
	}
	if failed.Outcome != "failed" || failed.RootClass != "cudagraph/static-input-changed" || failed.Epochs != 1 || len(failed.Conflict) != 2 || failed.Conflict[0].Line != 5 || failed.Conflict[1].Line != 3 {
		t.Errorf("%+v", failed)
	}
	if c.Recommended != "colab_optimized_full" || c.LeastPlanned != "colab_optimized" || c.Options[3].Name != "colab_reduce_overhead" {
		t.Errorf("%s, %s", c.Recommended, c.LeastPlanned)
	}
}
