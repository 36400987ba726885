package analyze

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"postmortem/ingest"
	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"

	"github.com/google/go-cmp/cmp"
)

func nightly(t testing.TB) *timeline.Timeline {
	t.Helper()
	tl, err := ingest.Read(context.Background(), ingest.Request{Paths: []string{"../testdata/nightly"}, Catalogue: failure.Default()})
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

// TestNightly holds what is known to be true of the recorded run.
func TestNightly(t *testing.T) {
	tl := nightly(t)
	f := Run(tl, failure.Default())
	s := f.Studies[0]
	if d := cmp.Diff(States{Total: 179, Complete: 26, Pruned: 137, Fail: 16}, s.Trials); d != "" {
		t.Errorf("states (-want +got):\n%s", d)
	}
	// 66 trials recorded cuda_error, 16 failed: all are lost.
	if d := cmp.Diff(Fates{Completed: 26, PrunedByPruner: 71, Lost: 82}, s.Fates); d != "" {
		t.Errorf("fates (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]int{"cuda/out-of-memory": 40, "cuda/device-side-assert": 38, "checkpoint/recompute-mismatch": 3, "cudnn/error": 1}, s.LostByClass); d != "" {
		t.Errorf("classes (-want +got):\n%s", d)
	}
	lost := map[int]Loss{}
	for _, l := range f.Losses {
		lost[l.Trial] = l
	}
	failed := 0
	for _, tr := range tl.Studies[0].Trials {
		_, cuda := timeline.FindAttr(tr.UserAttrs, "cuda_error")
		l, ok := lost[tr.Number]
		if want := cuda || tr.State == timeline.Fail; ok != want {
			t.Errorf("trial %d: lost %v, want %v", tr.Number, ok, want)
		}
		if tr.State != timeline.Fail {
			continue
		}
		failed++
		if l.FirstLine == 0 || l.LastLine < l.FirstLine || l.CardPeakBytes == 0 || l.ProcessPeakBytes == 0 && l.Seconds > 2.1 { // processes were sampled every 2 s
			t.Errorf("trial %d: lines and memory of its life are missing: %+v", tr.Number, l)
		}
		if l.Line == 0 || l.Class != "cudnn/error" && l.Class != "checkpoint/recompute-mismatch" {
			t.Errorf("FAIL trial %d carries %+v, want the class and line of its exception in a worker's log", tr.Number, l)
		}
	}
	if failed != 16 {
		t.Errorf("%d FAIL trials", failed)
	}
	// One poisoned process is one root: 19 processes met an assertion, as the driver's 19 Xid 43 say.
	asserts := 0
	processes := map[int]bool{}
	for _, i := range f.Incidents {
		if i.Class != "cuda/device-side-assert" {
			continue
		}
		asserts++
		if processes[i.PID] || i.PID == 0 || !slices.Equal(i.Xids, []int{43}) || len(i.Echoes) == 0 {
			t.Errorf("incident %+v", i)
		}
		processes[i.PID] = true
	}
	if asserts != 19 || f.Kernel.InRun != 19 {
		t.Errorf("%d asserts, %+v", asserts, f.Kernel)
	}
	// The asserts come only from focal trials.
	for _, r := range f.Rates {
		if r.Class != "cuda/device-side-assert" {
			continue
		}
		i := slices.IndexFunc(r.Params, func(p ParamRate) bool { return p.Param == "train.loss" })
		if v := r.Params[i].Values; v[0].Value != "ce" || v[0].Failed != 0 || v[1].Failed != 19 {
			t.Errorf("train.loss: %+v", v)
		}
	}
}

func TestSameInputsSameBytes(t *testing.T) {
	var first []byte
	for range 5 {
		b, err := json.Marshal(Run(nightly(t), failure.Default()))
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b
		}
		if string(b) != string(first) {
			t.Fatal("two runs over the same inputs differ")
		}
	}
}

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func minute(n int) time.Time { return t0.Add(time.Duration(n) * time.Minute) }

// storage makes a timeline of one study without logs.
func storage(trials ...timeline.Trial) *timeline.Timeline {
	for i := range trials {
		tr := &trials[i]
		tr.Number, tr.Stream, tr.Process = i, -1, -1
		tr.Pos.Row = fmt.Sprintf("trials/%d", i+1)
	}
	return &timeline.Timeline{Sources: []timeline.Source{{Name: "optuna.db", Kind: timeline.OptunaSQLite}},
		Studies: []timeline.Study{{Name: "s", Directions: []timeline.Direction{timeline.Minimize}, Trials: trials}}}
}

func attrs(kv ...string) []timeline.Attr {
	var out []timeline.Attr
	for i := 0; i < len(kv); i += 2 {
		out = append(out, timeline.Attr{Key: kv[i], JSON: kv[i+1]})
	}
	return out
}

func TestFates(t *testing.T) {
	for _, tt := range []struct {
		name  string
		trial timeline.Trial
		want  fateKind
		class string
	}{
		{"completed", timeline.Trial{State: timeline.Complete}, completed, ""},
		{"completed after a caught error", timeline.Trial{State: timeline.Complete, UserAttrs: attrs("cuda_error", "true")}, completed, ""},
		{"stopped by the pruner", timeline.Trial{State: timeline.Pruned, UserAttrs: attrs("prune_reason", `"median"`)}, byPruner, ""},
		{"stopped by the pruner, without a word", timeline.Trial{State: timeline.Pruned}, byPruner, ""},
		{"a crash in disguise", timeline.Trial{State: timeline.Pruned, UserAttrs: attrs("cuda_error", "true", "cuda_error_msg", `"CUDA out of memory. Tried to allocate 1.00 GiB."`, "prune_reason", `"cuda_error"`)}, lost, "cuda/out-of-memory"},
		{"a crash of which only the type is known", timeline.Trial{State: timeline.Pruned, UserAttrs: attrs("cuda_error_type", `"OutOfMemoryError"`)}, lost, "cuda/out-of-memory"},
		{"a crash of which nothing is known", timeline.Trial{State: timeline.Pruned, UserAttrs: attrs("cuda_error", "true")}, lost, "cuda/unknown-error"},
		{"a crash of which only the reason is known", timeline.Trial{State: timeline.Pruned, UserAttrs: attrs("prune_reason", `"cuda_error"`)}, lost, "cuda/unknown-error"},
		{"a reason that only sounds like one", timeline.Trial{State: timeline.Pruned, UserAttrs: attrs("prune_reason", `"zoomed out of the region"`)}, byPruner, ""},
		{"a guard", timeline.Trial{State: timeline.Pruned, UserAttrs: attrs("cuda_error", "true", "cuda_error_msg", `"predicted peak 31.4 GiB"`, "prune_reason", `"oom_prevention"`)}, isGuarded, ""},
		{"failed, and nobody says why", timeline.Trial{State: timeline.Fail}, lost, "unknown"},
		{"failed, and Optuna 1 kept the reason", timeline.Trial{State: timeline.Fail, SystemAttrs: attrs("fail_reason", `"Setting status of trial#9 as TrialState.FAIL because of the following error: RuntimeError('CUDA error: uncorrectable ECC error encountered')"`)}, lost, "cuda/ecc-uncorrectable"},
		{"running, its heart beats", timeline.Trial{State: timeline.Running, Heartbeat: minute(199)}, running, ""},
		{"running, its heart stopped", timeline.Trial{State: timeline.Running, Heartbeat: minute(150)}, stale, ""},
		{"running for longer than any other", timeline.Trial{State: timeline.Running, Start: minute(10)}, stale, ""},
		{"running since a moment ago", timeline.Trial{State: timeline.Running, Start: minute(195)}, running, ""},
		{"waiting", timeline.Trial{State: timeline.Waiting}, waiting, ""},
		{"a state that nobody knows", timeline.Trial{State: "ABORTED"}, unclear, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// A second trial, of ten minutes, shows how long trials take and that the run went on.
			tl := storage(tt.trial, timeline.Trial{State: timeline.Complete, Start: minute(190), End: minute(200)})
			r := &run{tl: tl, cat: failure.Default()}
			r.incidents()
			r.fates()
			f := r.fateOf[&tl.Studies[0].Trials[0]]
			class := ""
			if f.in != nil && f.kind == lost {
				class = f.in.root.Class
			}
			if f.kind != tt.want || class != tt.class {
				t.Errorf("got %s %s, want %s %s", f.kind, class, tt.want, tt.class)
			}
		})
	}
}

func TestRetryInheritsNoCrash(t *testing.T) {
	msg := attrs("cuda_error", "true", "cuda_error_msg", `"CUDA out of memory. Tried to allocate 1.00 GiB."`)
	tl := storage(timeline.Trial{State: timeline.Fail, UserAttrs: msg}, timeline.Trial{State: timeline.Pruned, UserAttrs: msg, SystemAttrs: attrs("failed_trial", "0")})
	f := Run(tl, failure.Default())
	if got := f.Studies[0].Fates; got.Lost != 1 || got.PrunedByPruner != 1 {
		t.Errorf("got %+v", got)
	}
}

// process makes a timeline of one log from its events, in order of line.
func process(events ...timeline.Event) *timeline.Timeline {
	for i := range events {
		events[i].Pos.Line = i + 1
		events[i].Time, events[i].Quality = minute(i), timeline.TimeStated
		if events[i].Kind == timeline.Epoch {
			for j := range i {
				if events[j].Resumed == 0 {
					events[j].Resumed = i + 1
				}
			}
		}
	}
	return &timeline.Timeline{Sources: []timeline.Source{{Name: "w.log", Kind: timeline.TrainLog}}, Streams: []timeline.Stream{{Name: "w"}},
		Processes: []timeline.Process{{PID: 7, Start: t0, End: minute(len(events))}}, Events: events}
}

func TestIncidents(t *testing.T) {
	fail := func(trial int, class string, form timeline.Form) timeline.Event {
		return timeline.Event{Kind: timeline.Failure, Trial: trial, Class: class, Form: form}
	}
	epoch := func(trial int) timeline.Event { return timeline.Event{Kind: timeline.Epoch, Trial: trial} }
	exit := func(status int) timeline.Event {
		return timeline.Event{Kind: timeline.ProcessExit, Trial: timeline.NoTrial, Number: status}
	}
	const (
		oom, dsa, cublas, shape = "cuda/out-of-memory", "cuda/device-side-assert", "cublas/execution-failed", "code/shape-mismatch"
		handler, native, tb     = timeline.FormHandler, timeline.FormNative, timeline.FormTraceback
	)
	none := timeline.NoTrial
	for _, tt := range []struct {
		name   string
		events []timeline.Event
		want   []string
	}{
		{"an error told three times", []timeline.Event{fail(1, oom, handler), fail(1, oom, timeline.FormCleanup), fail(1, oom, timeline.FormOptuna)},
			[]string{"w.log:1 cuda/out-of-memory lost [1] 2 echoes"}},
		{"two trials, two errors", []timeline.Event{fail(1, oom, handler), fail(2, oom, handler)},
			[]string{"w.log:1 cuda/out-of-memory lost [1] 0 echoes", "w.log:2 cuda/out-of-memory lost [2] 0 echoes"}},
		{"a poisoned context", []timeline.Event{fail(1, dsa, native), fail(1, dsa, handler), fail(2, cublas, handler), fail(3, "cudnn/error", tb)},
			[]string{"w.log:1 cuda/device-side-assert lost [1 2 3] 3 echoes"}},
		{"a poisoned context does not explain a shape", []timeline.Event{fail(1, dsa, native), fail(2, shape, tb)},
			[]string{"w.log:1 cuda/device-side-assert lost [1] 0 echoes", "w.log:2 code/shape-mismatch lost [2] 0 echoes"}},
		{"memory exhaustion does not poison", []timeline.Event{fail(1, oom, handler), fail(2, cublas, handler)},
			[]string{"w.log:1 cuda/out-of-memory lost [1] 0 echoes", "w.log:2 cublas/execution-failed lost [2] 0 echoes"}},
		{"the assertion is the better witness", []timeline.Event{fail(1, cublas, handler), fail(1, dsa, native)},
			[]string{"w.log:2 cuda/device-side-assert lost [1] 1 echoes"}},
		{"survived", []timeline.Event{fail(1, oom, handler), epoch(1)},
			[]string{"w.log:1 cuda/out-of-memory recovered [] 0 echoes"}},
		{"survived, then died", []timeline.Event{fail(none, oom, handler), epoch(none), fail(none, shape, tb), exit(1)},
			[]string{"w.log:1 cuda/out-of-memory recovered [] 0 echoes", "w.log:3 code/shape-mismatch lost [] 0 echoes"}},
		{"killed without a word", []timeline.Event{{Kind: timeline.TrialBegin, Trial: 4}, epoch(4), exit(137)},
			[]string{"w.log:3 host/killed lost [4] 0 echoes"}},
		{"a good end", []timeline.Event{epoch(1), exit(0)}, nil},
		{"a bad status after an error is its echo", []timeline.Event{fail(1, oom, tb), exit(1)},
			[]string{"w.log:1 cuda/out-of-memory lost [1] 0 echoes"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, i := range Run(process(tt.events...), failure.Default()).Incidents {
				got = append(got, fmt.Sprintf("%s:%d %s %s %v %d echoes", i.Source, i.Line, i.Class, i.Outcome, i.Trials, len(i.Echoes)))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestKernelKill joins the kernel's word with the process that it killed.
func TestKernelKill(t *testing.T) {
	tl := process(timeline.Event{Kind: timeline.TrialBegin, Trial: 4}, timeline.Event{Kind: timeline.Epoch, Trial: 4}, timeline.Event{Kind: timeline.ProcessExit, Trial: timeline.NoTrial, Number: 137})
	tl.Sources = append(tl.Sources, timeline.Source{Name: "dmesg", Kind: timeline.KernelLog})
	tl.Events = append(tl.Events, timeline.Event{Kind: timeline.KernelOOM, Class: "host/oom-killed", Form: timeline.FormKernel, PID: 7, Time: minute(2),
		Quality: timeline.TimeStated, Pos: timeline.Pos{Source: 1, Line: 9}, Stream: -1, Process: -1, Trial: timeline.NoTrial})
	f := Run(tl, failure.Default())
	if len(f.Incidents) != 1 || f.Incidents[0].Class != "host/oom-killed" || f.Incidents[0].Source != "dmesg" || f.Incidents[0].Line != 9 {
		t.Errorf("got %+v", f.Incidents)
	}
}

func BenchmarkRun(b *testing.B) {
	tl := nightly(b)
	b.ReportAllocs()
	for b.Loop() {
		Run(tl, failure.Default())
	}
}

func ExampleRun() {
	tl, err := ingest.Read(context.Background(), ingest.Request{Paths: []string{"../testdata/nightly"}, Catalogue: failure.Default()})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range Run(tl, failure.Default()).Failures {
		fmt.Println(f.Class, len(f.Trials), "trials,", f.Incidents, "incidents")
	}
	// Output:
	// cuda/out-of-memory 40 trials, 40 incidents
	// cuda/device-side-assert 38 trials, 19 incidents
	// checkpoint/recompute-mismatch 3 trials, 3 incidents
	// cudnn/error 1 trials, 1 incidents
}

// TestNumbersWithoutJSONForm: NaN and the infinities can stand in any number that a storage holds.
func TestNumbersWithoutJSONForm(t *testing.T) {
	float := &timeline.Distribution{Kind: timeline.Float, High: math.Inf(1)}
	cat := &timeline.Distribution{Kind: timeline.Categorical, Choices: []timeline.Choice{{Type: timeline.ChoiceFloat, Text: "NaN", Num: math.NaN()}, {Type: timeline.ChoiceFloat, Text: "+Inf", Num: math.Inf(1)}}}
	var trials []timeline.Trial
	for i := range 20 {
		tr := timeline.Trial{State: timeline.Complete, Values: []float64{math.Inf(-1)}, Params: []timeline.Param{{Name: "a", Internal: math.NaN(), Dist: float},
			{Name: "b", Internal: math.Inf(1), Dist: float}, {Name: "c", Internal: float64(i % 3), Dist: cat}, {Name: "d", Internal: float64(i), Dist: float}}}
		if i%2 == 0 {
			tr.State = timeline.Fail
		}
		trials = append(trials, tr)
	}
	f := Run(storage(trials...), failure.Default())
	if _, err := json.Marshal(f); err != nil {
		t.Fatal(err)
	}
	if len(f.Rates) != 1 || len(f.Rates[0].Params) != 4 {
		t.Errorf("rates: %+v", f.Rates)
	}
}
