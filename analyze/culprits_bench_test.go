package analyze

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"
)

// bigStudy makes a study of 20 hyperparameters in which three classes of failure follow three rules, in
// part of their region and with noise outside.
func bigStudy(trials int) *timeline.Timeline {
	rng := rand.New(rand.NewPCG(1, uint64(trials)))
	choices := func(texts ...string) *timeline.Distribution {
		d := &timeline.Distribution{Kind: timeline.Categorical}
		for _, t := range texts {
			d.Choices = append(d.Choices, timeline.Choice{Type: timeline.ChoiceString, Text: t})
		}
		return d
	}
	model, opt, loss := choices("small", "base", "large", "huge"), choices("adamw", "sgd", "lion"), choices("ce", "focal")
	unit := &timeline.Distribution{Kind: timeline.Float, High: 1}
	log := &timeline.Distribution{Kind: timeline.Float, Low: 1e-6, High: 1e-2, Log: true}
	size := &timeline.Distribution{Kind: timeline.Int, Low: 8, High: 128, Step: 8}
	long := &timeline.Distribution{Kind: timeline.Int, Low: 64, High: 4096, Step: 64}
	s := timeline.Study{Name: "big", Directions: []timeline.Direction{timeline.Maximize}}
	start := time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC)
	for i := range trials {
		p := func(name string, d *timeline.Distribution, v float64) timeline.Param {
			return timeline.Param{Name: name, Internal: v, Dist: d}
		}
		m, o, l, batch, length, lr := rng.IntN(4), rng.IntN(3), rng.IntN(2), 8*(1+rng.IntN(16)), 64*(1+rng.IntN(64)), math.Exp(math.Log(1e-6)+rng.Float64()*math.Log(1e4))
		params := []timeline.Param{p("a.model", model, float64(m)), p("b.optimizer", opt, float64(o)), p("c.loss", loss, float64(l)),
			p("d.batch_size", size, float64(batch)), p("e.length", long, float64(length)), p("f.lr", log, lr)}
		for k := range 4 {
			params = append(params, p(fmt.Sprintf("g.size%d", k), size, float64(8*(1+rng.IntN(16)))))
		}
		for k := range 10 {
			params = append(params, p(fmt.Sprintf("h.unit%d", k), unit, rng.Float64()))
		}
		t := timeline.Trial{Number: i, State: timeline.Complete, Values: []float64{rng.Float64()}, Params: params, Stream: -1, Process: -1,
			Start: start.Add(time.Duration(i) * time.Second), End: start.Add(time.Duration(i+1+rng.IntN(300)) * time.Second),
			UserAttrs: []timeline.Attr{{Key: "worker", JSON: fmt.Sprint(i % 4)}, {Key: "pid", JSON: fmt.Sprint(1000 + i%4)}, {Key: "git_commit", JSON: `"3f2a91c"`}}}
		text := ""
		switch {
		case batch*length > 200000 && m >= 2 && rng.Float64() < 0.9:
			text = "CUDA out of memory. Tried to allocate 20.00 MiB."
		case l == 1 && rng.Float64() < 0.3:
			text = "CUDA error: device-side assert triggered"
		case o == 2 && lr > 1e-3 && rng.Float64() < 0.8 || rng.Float64() < 0.01:
			text = "Loss is nan, stopping training"
		}
		if text != "" {
			t.State = timeline.Fail
			t.Values = nil
			t.UserAttrs = append(t.UserAttrs, timeline.Attr{Key: "error_msg", JSON: fmt.Sprintf("%q", text)})
		}
		s.Trials = append(s.Trials, t)
	}
	return &timeline.Timeline{Sources: []timeline.Source{{Name: "big.db", Kind: timeline.OptunaSQLite}}, Studies: []timeline.Study{s}}
}

// BenchmarkCulprits is to take less than a second for 100,000 trials on one core, and to grow with the number
// of trials.
func BenchmarkCulprits(b *testing.B) {
	for _, n := range []int{5000, 25000, 50000, 100000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := newRun(bigStudy(n), failure.Default())
			r.incidents()
			r.fates()
			failures := r.failures(r.losses())
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			b.ReportAllocs()
			for b.Loop() {
				if _, c, _ := r.culprits(failures); len(c) != 3 {
					b.Fatalf("%d culprits", len(c))
				}
			}
		})
	}
}
