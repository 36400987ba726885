package trainlog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"

	"github.com/google/go-cmp/cmp"
)

func read(t testing.TB, log string) *timeline.Timeline {
	t.Helper()
	tl, err := Read(strings.NewReader(log), "worker7.log", 0, failure.Default())
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

func TestSegments(t *testing.T) {
	var got []string
	n, err := eachSegment(strings.NewReader("a\r\nb\rc\n\x1b[32md\x1b[0m\n\xff\x00e\n"+strings.Repeat("x", maxLine+5)+"\nlast"), func(s segment) {
		if s.cut {
			s.text = fmt.Sprintf("%d cut", len(s.text))
		}
		got = append(got, fmt.Sprintf("%d %q", s.line, s.text))
	})
	if err != nil || n == 0 {
		t.Fatal(n, err)
	}
	want := []string{`1 "a"`, `2 "b"`, `2 "c"`, `3 "d"`, `4 "` + "\uFFFD" + `e"`, `5 "1048576 cut"`, `6 "last"`}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestStamps(t *testing.T) {
	naive := func(y int, mo time.Month, d, h, mi, s, ns int) time.Time {
		return time.Date(y, mo, d, h, mi, s, ns, timeline.Naive)
	}
	for _, tt := range []struct {
		line string
		want time.Time
	}{
		{"[I 2026-11-20 19:45:53,186] Trial 0 pruned.", naive(2026, 11, 20, 19, 45, 53, 186e6)},
		{"2026-11-20 19:38:21,004 WARNING train: x", naive(2026, 11, 20, 19, 38, 21, 4e6)},
		{"2026-11-20 19:38:21.004 | INFO     | mod:func:12 - msg", naive(2026, 11, 20, 19, 38, 21, 4e6)},
		{"[supervisor] 2026-11-20 19:45:37 starting worker 0", naive(2026, 11, 20, 19, 45, 37, 0)},
		{"[2026-11-20 19:45:37] x", naive(2026, 11, 20, 19, 45, 37, 0)},
		{"2026-11-20T19:45:56.123456789Z stdout F msg", time.Date(2026, 11, 20, 19, 45, 56, 123456789, time.UTC)},
		{"2026-11-20T19:45:56+05:30 msg", time.Date(2026, 11, 20, 14, 15, 56, 0, time.UTC)},
		{"[rank0]:[E1120 19:38:35.402948762 ProcessGroupNCCL.cpp:689] x", naive(0, 11, 20, 19, 38, 35, 402948762)},
		{"[rank2]:[E602 11:18:53.865680143 ProcessGroupNCCL.cpp:684] x", naive(0, 6, 2, 11, 18, 53, 865680143)},
		{"W1120 19:38:06.036000 669 torch/multiprocessing/spawn.py:165] x", naive(0, 11, 20, 19, 38, 6, 36e6)},
		{"Nov 20 19:45:56 host kernel: x", naive(0, 11, 20, 19, 45, 56, 0)},
		{"Nov  2 19:45:56 host kernel: x", naive(0, 11, 2, 19, 45, 56, 0)},
		{"epoch 3: 12:30 left", time.Time{}},
		{"2026-13-20 19:45:56 x", time.Time{}},
		{"model-2026-11-20 loaded", time.Time{}},
		{strings.Repeat("x ", 40) + "2026-11-20 19:45:56", time.Time{}},
	} {
		st, _ := findStamp(tt.line)
		if !st.time.Equal(tt.want) {
			t.Errorf("%s: got %v, want %v", tt.line, st.time, tt.want)
		}
	}
}

// describe writes an event so that a table can hold it.
func describe(e timeline.Event) string {
	s := fmt.Sprintf("%d %s", e.Pos.Line, e.Kind)
	if e.Trial != timeline.NoTrial {
		s += fmt.Sprintf(" trial=%d", e.Trial)
	}
	for _, x := range []string{e.Class, string(e.Form), string(e.State), e.Key, e.Value} {
		if x != "" {
			s += " " + x
		}
	}
	return s
}

func TestOptunaLines(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"[I 2020-01-01 00:00:00,000] Finished trial#3 resulted in value: 0.5. Current best value is 0.5 with parameters: {'x': 1}.", "1 trial-end trial=3 COMPLETE"},
		{"[I 2020-01-01 00:00:00,000] Finished trial#3 with value: 0.5 with parameters: {'x': 1}. Best is trial#3 with value: 0.5.", "1 trial-end trial=3 COMPLETE"},
		{"[I 2026-01-01 00:00:00,000] Trial 4 finished with value: 0.5 and parameters: {'x': 1}. Best is trial 4 with value: 0.5.", "1 trial-end trial=4 COMPLETE"},
		{"[I 2026-01-01 00:00:00,000] Trial 4 finished with values: [0.5, 1.0] and parameters: {'x': 1}.", "1 trial-end trial=4 COMPLETE"},
		{"[I 2020-01-01 00:00:00,000] Setting status of trial#5 as TrialState.PRUNED. msg", "1 trial-end trial=5 PRUNED"},
		{"[I 2026-01-01 00:00:00,000] Trial 5 pruned. ", "1 trial-end trial=5 PRUNED"},
		{"\x1b[32m[I 2026-01-01 00:00:00,000]\x1b[0m Trial 5 pruned. CUDA OOM", "1 trial-end trial=5 PRUNED; 1 failure trial=5 cuda/out-of-memory optuna"},
		{"[W 2020-01-01 00:00:00,000] Setting status of trial#9 as TrialState.FAIL because of the following error: RuntimeError('boom',)", "1 trial-end trial=9 FAIL; 1 failure trial=9 code/runtime-error optuna"},
		{"[W 2020-01-01 00:00:00,000] Setting status of trial#9 as TrialState.FAIL because the objective function returned nan.", "1 trial-end trial=9 FAIL; 1 failure trial=9 numeric/nan-loss optuna"},
		{"[W 2021-01-01 00:00:00,000] Trial 9 failed because of the following error: KeyError('a')", "1 trial-end trial=9 FAIL; 1 failure trial=9 code/key-error optuna"},
		{"[W 2021-01-01 00:00:00,000] Trial 9 failed, because the objective function returned nan.", "1 trial-end trial=9 FAIL; 1 failure trial=9 numeric/nan-loss optuna"},
		{"[W 2026-01-01 00:00:00,000] Trial 9 failed with parameters: {'a': 'because'} because of the following error: ValueError('x').\n[W 2026-01-01 00:00:00,001] Trial 9 failed with value None.", "1 trial-end trial=9 FAIL; 1 failure trial=9 code/value-error optuna"},
		{"[W 2026-01-01 00:00:00,000] Trial 10 failed with parameters: {} because of the following error: The value nan is not acceptable.", "1 trial-end trial=10 FAIL; 1 failure trial=10 numeric/nan-loss optuna"},
		{"[I 2026-01-01 00:00:00,000] A new study created in RDB with name: criteria", "1 study-opened criteria"},
		{"[I 2020-01-01 00:00:00,000] A new study created with name: criteria", "1 study-opened criteria"},
		{"[I 2026-01-01 00:00:00,000] Using an existing study with name 'criteria' instead of creating a new one.", "1 study-opened criteria"},
		{"[I 2026-01-01 00:00:00,000] Using an existing study with `study_name='criteria'` instead of creating a new one.", "1 study-opened criteria"},
		{"we tried Trial 5 pruned. in a sentence", ""},
	} {
		var got []string
		for _, e := range read(t, tt.line+"\n").Events {
			got = append(got, describe(e))
		}
		if g := strings.Join(got, "; "); g != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.line, g, tt.want)
		}
	}
}

const twoTrials = `[supervisor] 2026-11-20 19:45:37 starting worker 0 (restart 0)
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
torch 2.11.0+cu130 | optuna 4.9.0 | NVIDIA H200 | worker 0 pid 441
[I 2026-11-20 19:45:43,000] A new study created in RDB with name: criteria
TRIAL 7 - Configuration:
  Batch size: 64
================
[MEM] trial=7 at=start allocated=12.126GiB reserved=12.777GiB inactive_split=0.652GiB alloc_retries=2 ooms=1
Epoch 1/2 | Train Loss: 0.7085 | Val Loss: 0.6828 | LR: 0.000001 | Time: 2.44s
/pytorch/aten/src/ATen/native/cuda/Loss.cu:245: nll_loss: block: [0,0,0], thread: [0,0,0] Assertion ` + "`t >= 0 && t < n_classes`" + ` failed.
/pytorch/aten/src/ATen/native/cuda/Loss.cu:245: nll_loss: block: [0,0,0], thread: [1,0,0] Assertion ` + "`t >= 0 && t < n_classes`" + ` failed.
[W 2026-11-20 19:45:56,369] Trial 7 failed with parameters: {'x': 1} because of the following error: RuntimeError('mha_graph.execute').
Traceback (most recent call last):
  File "/srv/tune.py", line 132, in objective
    value = run(trial)
RuntimeError: Expected mha_graph.execute(handle) to be true
[W 2026-11-20 19:45:56,370] Trial 7 failed with value None.
FATAL: giving up
[supervisor] 2026-11-20 19:45:57 worker 0 exited with status 1
[supervisor] 2026-11-20 19:45:58 starting worker 0 (restart 1)
torch 2.11.0+cu130 | worker 0 pid 643
`

func TestWorkerLog(t *testing.T) {
	tl := read(t, twoTrials)
	var got []string
	for _, e := range tl.Events {
		if e.Kind != timeline.Setting {
			got = append(got, describe(e))
		}
	}
	want := []string{"1 process-start 0", "4 study-opened criteria", "5 trial-begin trial=7", "9 epoch trial=7",
		"10 failure trial=7 cuda/device-side-assert native", "12 trial-end trial=7 FAIL", "12 failure trial=7 cudnn/error optuna",
		"16 failure trial=7 cudnn/error traceback", "19 process-exit", "20 process-start 0"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if len(tl.Processes) != 2 || tl.Processes[0].PID != 441 || tl.Processes[1].PID != 643 || tl.Processes[0].ExitStatus != 1 || tl.Processes[1].Restart != 1 {
		t.Errorf("processes: %+v", tl.Processes)
	}
	if s := tl.Streams[0]; s.Name != "0" || !s.Stated || s.Study != "criteria" {
		t.Errorf("stream: %+v", s)
	}
	if len(tl.Allocs) != 1 || tl.Allocs[0].Trial != 7 || tl.Allocs[0].Retries != 2 || tl.Allocs[0].ReservedBytes>>20 != 13083 || tl.Allocs[0].Phase != "start" {
		t.Errorf("allocator: %+v", tl.Allocs)
	}
	a := tl.Sources[0]
	if a.Lines != 21 || a.NotUnderstood != 1 || len(tl.Problems) != 1 || tl.Problems[0].Pos.Line != 18 {
		t.Errorf("account %+v, problems %+v", a, tl.Problems)
	}
}

// TestBetweenNeighbours places lines without a time between those that have one, and says so.
func TestBetweenNeighbours(t *testing.T) {
	tl := read(t, "2026-01-01 10:00:00,000 INFO start\nEpoch 1/3 | Train Loss: 1\nEpoch 2/3 | Train Loss: 1\n2026-01-01 10:00:30,000 INFO end\nEpoch 3/3 | Train Loss: 1\n")
	var got []string
	for _, e := range tl.Events {
		got = append(got, fmt.Sprintf("%d %s %s", e.Pos.Line, e.Time.Format("05"), e.Quality))
	}
	want := []string{"2 10 interpolated", "3 20 interpolated", "5 30 interpolated"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if e := read(t, "Epoch 1/3 | Train Loss: 1\n").Events[0]; e.Quality != timeline.TimeUnknown || !e.Time.IsZero() {
		t.Errorf("without any stamp: %+v", e)
	}
}

func TestTracebackChain(t *testing.T) {
	tl := read(t, `  2%|3         | 1/62 [00:00<00:24,  2.51it/s]Traceback (most recent call last):
  File "a.py", line 1, in f
OSError: [Errno 28] No space left on device

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 2, in g
RuntimeError: [enforce fail at inline_container.cc:672] . unexpected pos 704 vs 598
`)
	if len(tl.Events) != 1 {
		t.Fatalf("events: %+v", tl.Events)
	}
	e := tl.Events[0]
	if e.Class != "host/disk-full" || e.Pos.Line != 3 || len(e.Chain) != 2 || e.EndLine != 9 {
		t.Errorf("got %+v", e)
	}
}

func TestMetrics(t *testing.T) {
	for _, tt := range []struct {
		line       string
		epoch      int
		train, val float64
		took       time.Duration
	}{
		{"Epoch 2/50 | Train Loss: 3.8234 | Val Loss: 1.2103 | LR: 0.000001 | Time: 95.32s", 2, 3.8234, 1.2103, 95320 * time.Millisecond},
		{"Epoch 1/50 | Loss: 4.12 | Time: 140s", 1, 4.12, 0, 140 * time.Second},
		{"{'loss': '0.696', 'grad_norm': '0.7832', 'learning_rate': '4.4e-05', 'epoch': '2.4'}", 2, 0.696, 0, 0},
		{"{'loss': 0.5, 'eval_loss': 1e-3, 'epoch': 3.0}", 3, 0.5, 0.001, 0},
	} {
		tl := read(t, tt.line+"\n")
		if len(tl.Events) != 1 {
			t.Errorf("%s: %d events", tt.line, len(tl.Events))
			continue
		}
		e := tl.Events[0]
		if e.Number != tt.epoch || e.Metric.TrainLoss != tt.train || e.Metric.ValLoss != tt.val || e.Metric.Took != tt.took {
			t.Errorf("%s: got epoch %d %+v", tt.line, e.Number, e.Metric)
		}
	}
}

// TestAnySplit reads the same events however the bytes arrive and however lines end.
func TestAnySplit(t *testing.T) {
	logs, err := filepath.Glob("../../testdata/nightly/worker*.log")
	if err != nil || len(logs) != 4 {
		t.Fatal(logs, err)
	}
	for _, path := range logs {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := read(t, string(b))
		whole, err := Read(iotest.HalfReader(bytes.NewReader(b)), "worker7.log", 0, failure.Default())
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, whole); d != "" {
			t.Errorf("%s in halves: %s", path, d)
		}
		crlf := read(t, strings.ReplaceAll(string(b), "\n", "\r\n"))
		if d := cmp.Diff(want.Events, crlf.Events); d != "" {
			t.Errorf("%s with CRLF: %s", path, d)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(twoTrials))
	f.Add([]byte("Traceback (most recent call last):\n\nValueError\n[CUDA ERROR] Trial 1 \n  Error: x\n\r\r\n"))
	f.Add([]byte("worker exited with status 99999999999999999999\nTRIAL 99999999999999999999\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		tl, err := Read(bytes.NewReader(b), "x.log", 0, failure.Default())
		if err != nil {
			t.Fatal(err)
		}
		a := tl.Sources[0]
		if a.Lines != a.Understood+a.Blank+a.NotUnderstood {
			t.Errorf("%d lines, but %d understood, %d blank, %d not understood", a.Lines, a.Understood, a.Blank, a.NotUnderstood)
		}
		for _, e := range tl.Events {
			if len(e.Text) > 4<<10 || e.Pos.Line < 1 || e.Pos.Line > a.Lines {
				t.Errorf("event %+v", e)
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	log, err := os.ReadFile("../../testdata/nightly/worker0.log")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(bytes.NewReader(log), "worker0.log", 0, failure.Default()); err != nil {
			b.Fatal(err)
		}
	}
}

// TestMemorySummary reads memory_summary's table of a recorded log.
func TestMemorySummary(t *testing.T) {
	f, err := os.Open("../../testdata/gallery/memory_summary.log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tl, err := Read(f, "memory_summary.log", 0, failure.Default())
	if err != nil {
		t.Fatal(err)
	}
	if len(tl.Allocs) != 1 || tl.Sources[0].NotUnderstood != 0 {
		t.Fatalf("%+v %+v", tl.Allocs, tl.Problems)
	}
	if a := tl.Allocs[0]; a.AllocatedBytes != 83005<<10 || a.ReservedBytes != 131072<<10 || a.InactiveBytes != 25539<<10 || a.OOMs != 0 || a.Retries != 0 {
		t.Errorf("%+v", a)
	}
}
