package analyze_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"postmortem/analyze"
	"postmortem/ingest"
	"postmortem/ingest/failure"

	"github.com/rogpeppe/go-internal/txtar"
)

// explain explains a log that is given as text.
func explain(t testing.TB, log string, status *int, kernel string) *analyze.Explanation {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "x.log")
	if err := os.WriteFile(path, []byte(log), 0o644); err != nil {
		t.Fatal(err)
	}
	req := ingest.LogRequest{Path: path, Catalogue: failure.Default(), ExitStatus: status}
	if kernel != "" {
		req.KernelLogs = []string{filepath.Join(dir, "dmesg.log")}
		if err := os.WriteFile(req.KernelLogs[0], []byte(kernel), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tl, err := ingest.ReadLog(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	return analyze.Explain(tl, failure.Default())
}

// numbered writes lines as a logger does that tells the process's number.
func numbered(pid int, msgs ...string) string {
	var b strings.Builder
	for _, m := range msgs {
		fmt.Fprintf(&b, "2026-11-20 19:42:43,111 [%d] INFO train: %s\n", pid, m)
	}
	return b.String()
}

// verdict writes an explanation's outcome and root class in a word.
func verdict(x *analyze.Explanation) string {
	if x.RootClass == nil {
		return x.Outcome
	}
	return x.Outcome + " " + *x.RootClass
}

// TestGallery explains every recorded failure with its exit status and kernel lines.
func TestGallery(t *testing.T) {
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join("../testdata/gallery", name))
		if err != nil {
			return ""
		}
		return string(data)
	}
	status := map[string]int{}
	for _, row := range strings.Split(strings.TrimSpace(read("exit_status.tsv")), "\n")[1:] {
		name, n, _ := strings.Cut(row, "\t")
		status[name], _ = strconv.Atoi(n)
	}
	// The line that tells best: the card's assertion, the first loss of nan, the exception, the status.
	lines := map[string]int{"device_assert": 3, "assert_cascade": 4, "nan_loss": 2, "oom_plain": 9, "no_c_compiler": 102, "disk_full": 8, "nccl_watchdog": 2, "segfault": 0, "host_oom": 0}
	rows := strings.Split(strings.TrimSpace(read("expected.tsv")), "\n")[1:]
	if len(rows) != 37 {
		t.Fatalf("%d cases", len(rows))
	}
	for _, row := range rows {
		f := strings.Split(row, "\t")
		n := status[f[0]]
		x := explain(t, read(f[0]+".log"), &n, read(f[0]+".dmesg"))
		class, recovered, _ := strings.Cut(f[2], " ")
		want := f[1]
		if f[1] == "failed" {
			want += " " + class
		}
		if got := verdict(x); got != want {
			t.Errorf("%s: got %s, want %s", f[0], got, want)
		}
		for _, in := range x.Incidents {
			if f[1] == "ok" && (recovered == "" || in.Class != class || in.Outcome != analyze.Recovered) {
				t.Errorf("%s: a healthy log has incident %s %s", f[0], in.Class, in.Outcome)
			}
		}
		if line, ok := lines[f[0]]; ok && x.Root.Line != line {
			t.Errorf("%s: root at line %d, want %d", f[0], x.Root.Line, line)
		}
		if f[1] == "failed" && (x.Root.Text == "" || len(x.Advice) == 0) {
			t.Errorf("%s: root %+v, %d pieces of advice", f[0], x.Root, len(x.Advice))
		}
	}
}

func TestExplain(t *testing.T) {
	const (
		none   = -1000 // no exit status is given
		epochs = "Epoch 1/9 | Train Loss: 1.2 | Val Loss: 1.3\nEpoch 2/9 | Train Loss: 0.9 | Val Loss: 1.0\n"
		tb     = "Traceback (most recent call last):\n  File \"/srv/train.py\", line 9, in <module>\n    main()\n"
	)
	for _, tt := range []struct {
		name, log string
		status    int
		kernel    string
		want      string
	}{
		{"a pasted message with its type", "RuntimeError: CUDA error: device-side assert triggered", none, "", "failed cuda/device-side-assert"},
		{"a pasted message without its type", "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity; 9.58 GiB already allocated; 8.00 MiB free; 9.91 GiB reserved in total by PyTorch)", none, "", "failed cuda/out-of-memory"},
		{"a cancelled job", epochs + "slurmstepd: error: *** JOB 402690 ON gpu0037 CANCELLED AT 2024-11-15T22:22:25 ***\n", none, "", "failed host/terminated"},
		{"a job at its limit", epochs + "slurmstepd: error: *** JOB 20457810 ON midway3-0284 CANCELLED AT 2024-05-18T12:04:20 DUE TO TIME LIMIT ***\n", none, "", "failed host/time-limit"},
		{"a preempted job", epochs + "slurmstepd: error: *** JOB 20457810 ON node1 CANCELLED AT 2024-05-18T12:04:20 DUE TO PREEMPTION ***\n", none, "", "failed host/preempted"},
		{"bash tells of a kill", epochs + "/var/spool/slurmd/job9/slurm_script: line 23: 427394 Killed                  python train.py\n", none, "", "failed host/killed"},
		{"Slurm knows who killed it", epochs + "run.sh: line 23: 427394 Killed                  python train.py\nslurmstepd: error: Detected 1 oom_kill event in StepId=66733646.batch. Some of the step tasks have been OOM Killed.\n", none, "", "failed host/oom-killed"},
		{"a loader worker and who killed it", epochs + tb + "RuntimeError: DataLoader worker (pid 822) is killed by signal: Killed. \n", 1, "[  429.735458] Memory cgroup out of memory: Killed process 822 (python3) total-vm:24117860kB, anon-rss:6253056kB\n", "failed host/oom-killed"},
		{"a kernel log of somebody else's kill", epochs + tb + "RuntimeError: DataLoader worker (pid 822) is killed by signal: Killed. \nworker 0 pid 441 torch 2.11.0\n", 1, "[  429.735458] Memory cgroup out of memory: Killed process 999 (java) total-vm:24117860kB, anon-rss:6253056kB\n", "failed data/worker-killed"},
		{"killed without a word", epochs, 137, "", "failed host/killed"},
		{"killed by the kernel", epochs, -9, "[  429.735458] Out of memory: Killed process 3605 (python3) total-vm:24117860kB, anon-rss:6253056kB\n", "failed host/oom-killed"},
		{"survived an error, then killed by the kernel", epochs + "2026-11-20 19:38:21,004 WARNING train: halving: CUDA out of memory. Tried to allocate 16.00 GiB.\nEpoch 3/9 | Train Loss: 0.8\nEpoch 4/9 | Train Loss: 0.7\n", 137, "[  429.735458] Memory cgroup out of memory: Killed process 3605 (python3) total-vm:24117860kB, anon-rss:6253056kB\n", "failed host/oom-killed"},
		{"survived an error, then its time was up", epochs + "2026-11-20 19:38:21,004 ERROR train: step failed: CUDA out of memory. Tried to allocate 16.00 GiB.\nEpoch 3/9 | Train Loss: 0.8\n", 124, "", "failed host/time-limit"},
		{"survived an error, then a segfault", epochs + "2026-11-20 19:38:21,004 ERROR train: step failed: CUDA out of memory. Tried to allocate 16.00 GiB.\nEpoch 3/9 | Train Loss: 0.8\n", 139, "[  413.195026] python3[3529]: segfault at 0 ip 00007f0c42b9bc5c sp 00007ffecc4a63e8 error 4 in libc.so.6\n", "failed host/segfault"},
		{"a failed run, then a killed one", epochs + tb + "KeyError: 'a'\n" + epochs, 137, "[  429.735458] Memory cgroup out of memory: Killed process 3605 (python3) total-vm:24117860kB, anon-rss:6253056kB\n", "failed host/oom-killed"},
		{"an assertion, its Xid and a kill", epochs + "/pytorch/Loss.cu:245: nll_loss: block: [0,0,0], thread: [3,0,0] Assertion `t < n` failed.\n" + tb + "torch.AcceleratorError: CUDA error: device-side assert triggered\n", 137, "[  397.007981] NVRM: Xid (PCI:0000:00:06): 43, pid=3441, name=python3, channel 0x0000000a\n", "failed cuda/device-side-assert"},
		{"a kill that nothing in the log bears out", epochs + "Training complete\n", none, "[  429.735458] Memory cgroup out of memory: Killed process 3605 (java) total-vm:24117860kB, anon-rss:6253056kB\n", "ok"},
		{"another process's Xid", epochs + tb + "KeyError: 'a'\n", 1, "[  397.007981] NVRM: Xid (PCI:0000:00:06): 79, pid=3441, name=python3\n", "failed code/key-error"},
		{"a kill below other boots' Xids", epochs, 137, "[  397.007981] NVRM: Xid (PCI:0000:00:06): 43, pid=1, name=python3\n[  398.007981] NVRM: Xid (PCI:0000:00:06): 79, pid=2, name=python3\n[  429.735458] Memory cgroup out of memory: Killed process 3605 (python3) total-vm:24117860kB, anon-rss:6253056kB\n", "failed host/oom-killed"},
		{"status 139", epochs, 139, "", "failed host/segfault"},
		{"status 134", epochs, 134, "", "failed host/aborted"},
		{"status 143", epochs, 143, "", "failed host/terminated"},
		{"status 130", epochs, 130, "", "failed host/interrupted"},
		{"status 124", epochs, 124, "", "failed host/time-limit"},
		{"status 1 without a word", epochs, 1, "", "failed unknown"},
		{"status 0 and a terrible traceback", epochs + tb + "RuntimeError: CUDA error: device-side assert triggered\n", 0, "", "ok"},
		{"a status does not outrank an error", epochs + tb + "KeyError: 'lr'\n", 137, "", "failed code/key-error"},
		{"the log tells the status", epochs + "worker 3 gave up\nERROR: lease 17 lost\nexit status 3\n", none, "", "failed unknown"},
		{"interrupted, then run again", epochs + tb + "KeyboardInterrupt\n" + epochs + "Training finished\n", none, "", "ok"},
		{"a syntax error has no head", "  File \"/srv/train.py\", line 3\n    x = = 3\n        ^\nSyntaxError: invalid syntax\n", none, "", "failed code/syntax-error"},
		{"no such program", "python: can't open file '/srv/trian.py': [Errno 2] No such file or directory\n", none, "", "failed code/missing-file"},
		{"what() says more than the abort", epochs + "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be asynchronously reported\n\nAborted (core dumped)\n", none, "", "failed cuda/illegal-address"},
		{"an abort alone", epochs + "double free or corruption (!prev)\nAborted (core dumped)\n", none, "", "failed host/aborted"},
		{"a child's traceback within its parent's", epochs + tb + "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 0 terminated with the following error:\nTraceback (most recent call last):\n  File \"/opt/torch/multiprocessing/spawn.py\", line 90, in _wrap\n    fn(i, *args)\nValueError: bad shard\n\n", none, "", "failed code/value-error"},
		{"a loader worker's own exception", epochs + tb + "OSError: Caught OSError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n  File \"/opt/torch/utils/data/_utils/worker.py\", line 350, in _worker_loop\n    data = fetcher.fetch(index)\nOSError: [Errno 5] Input/output error: '/data/shard-0001.tar'\n\n", none, "", "failed data/read-error"},
		{"torchrun's table tells of a kill", epochs + tb + "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n=====================\ntrain.py FAILED\n---------------------\nRoot Cause (first observed failure):\n[0]:\n  rank      : 2 (local_rank: 2)\n  exitcode  : -9 (pid: 12345)\n  traceback : Signal 9 (SIGKILL) received by PID 12345\n=====================\n", none, "", "failed host/killed"},
		{"torchrun's table holds the traceback", epochs + tb + "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n=====================\ntrain.py FAILED\n---------------------\nRoot Cause (first observed failure):\n[0]:\n  rank      : 2 (local_rank: 2)\n  exitcode  : 1 (pid: 12345)\n  traceback : Traceback (most recent call last):\n    File \"/opt/torch/errors/__init__.py\", line 346, in wrapper\n      return f(*args, **kwargs)\n    File \"/srv/train.py\", line 3, in main\n      x\n  RuntimeError: CUDA error: misaligned address\n  \n=====================\n", none, "", "failed cuda/misaligned-address"},
		{"the rank that the table names", "[rank0]: " + strings.ReplaceAll(strings.TrimSpace(tb), "\n", "\n[rank0]: ") + "\n[rank0]: KeyError: 'a'\n[rank2]: " + strings.ReplaceAll(strings.TrimSpace(tb), "\n", "\n[rank2]: ") + "\n[rank2]: ZeroDivisionError: division by zero\n" + tb +
			"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n=====================\ntrain.py FAILED\n---------------------\nRoot Cause (first observed failure):\n[0]:\n  rank      : 2 (local_rank: 2)\n  exitcode  : 1 (pid: 12345)\n=====================\n", none, "", "failed code/zero-division"},
		{"Ray's wrapper", epochs + tb + "ray.exceptions.RayTaskError(ValueError): ray::train() (pid=7, ip=10.0.0.1)\n  File \"/srv/train.py\", line 3, in train\n    x\nValueError: bad shard\n", none, "", "failed code/value-error"},
		{"an optuna study dies of its objective", "[W 2026-11-20 19:38:21,004] Trial 5 failed with parameters: {'lr': 0.1} because of the following error: KeyError('lr').\n" + strings.Replace(tb, "<module>", "_run_trial", 1) + "KeyError: 'lr'\n[W 2026-11-20 19:38:21,005] Trial 5 failed with value None.\n" + tb + "KeyError: 'lr'\n", none, "", "failed code/key-error"},
		{"NaN, then the guard", epochs + "Epoch 3/9 | Train Loss: nan | Val Loss: nan\nEpoch 4/9 | Train Loss: nan | Val Loss: nan\n" + tb + "ValueError: loss not finite\n", none, "", "failed numeric/nan-loss"},
		{"diverged, then the guard", epochs + "Epoch 3/9 | Train Loss: 90\nEpoch 4/9 | Train Loss: 900\nEpoch 5/9 | Train Loss: 9000\n" + tb + "ValueError: loss out of range\n", none, "", "failed numeric/diverged"},
		{"diverged, then another error", epochs + "Epoch 3/9 | Train Loss: 90\nEpoch 4/9 | Train Loss: 900\nEpoch 5/9 | Train Loss: 9000\n" + tb + "KeyError: 'a'\n", none, "", "failed code/key-error"},
		{"one NaN, then well", epochs + "Epoch 3/9 | Train Loss: nan | Val Loss: 1.0\nEpoch 4/9 | Train Loss: 0.8 | Val Loss: 1.0\nTraining complete.\n", none, "", "ok"},
		{"one NaN, then well, then memory", epochs + "Epoch 3/9 | Train Loss: nan | Val Loss: 1.0\nEpoch 4/9 | Train Loss: 0.8 | Val Loss: 1.0\n" + tb + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n", none, "", "failed cuda/out-of-memory"},
		{"a tracker that could not be reached is not what it died of", epochs + "2026-11-20 19:38:21,004 ERROR wandb: Max retries exceeded with url: /graphql\n" + tb + "ValueError: bad shard\n", none, "", "failed code/value-error"},
		{"hardware comes first", epochs + "[  397.007981] NVRM: Xid (PCI:0000:9b:00): 79, pid=3441, name=python3, GPU has fallen off the bus.\n" + tb + "torch.AcceleratorError: CUDA error: unknown error\n", none, "", "failed cuda/device-lost"},
		{"a program's Xid does not", epochs + "[  397.007981] NVRM: Xid (PCI:0000:00:06): 43, pid=3441, name=python3, channel 0x0000000a\n" + tb + "torch.AcceleratorError: CUDA error: device-side assert triggered\n", none, "", "failed cuda/device-side-assert"},
		{"a hardware Xid in the kernel log alone", epochs, 1, "[  397.007981] NVRM: Xid (PCI:0000:9b:00): 95, pid=3441, name=python3, Uncontained\n", "failed kernel/xid"},
		{"a thread died at the end", epochs + "Training complete\nException in thread ChkStopThr:\nTraceback (most recent call last):\n  File \"/usr/lib/python3.12/threading.py\", line 1, in _bootstrap_inner\n    self.run()\nBrokenPipeError: [Errno 32] Broken pipe\n", none, "", "ok"},
		{"a monitor stopped after a good end", epochs + "Training complete\nrun.sh: line 40: 12345 Terminated              nvidia-smi -l 1\n", none, "", "ok"},
		{"an install that failed, then a run with a logger", tb + "ModuleNotFoundError: No module named 'apex'\n2026-11-20 19:38:21,004 - mmdet - INFO - Epoch [1][50/7330]\tlr: 2.0e-03, loss: 1.2\n2026-11-20 19:38:29,004 - mmdet - INFO - Epoch [1][100/7330]\tlr: 2.0e-03, loss: 1.1\n", none, "", "ok"},
		{"DeepSpeed's launcher tells", epochs + "[2026-11-20 19:38:29,004] [ERROR] [launch.py:325:sigkill_handler] ['/usr/bin/python', 'train.py'] exits with return code = -9\n", none, "", "failed host/killed"},
		{"make tells", epochs + "make: *** [Makefile:3: train] Error 1\n", none, "", "failed unknown"},
		{"PyCharm tells", epochs + "Process finished with exit code 139 (interrupted by signal 11: SIGSEGV)\n", none, "", "failed host/segfault"},
		{"one of two numbered processes dies", numbered(4711, "step 1 loss 0.9", "step 2 loss 0.8") + numbered(4712, "step 1 loss 0.9") + strings.ReplaceAll(numbered(4712, "training failed: CUDA out of memory. Tried to allocate 2.00 GiB."), "INFO", "ERROR") + numbered(4711, "step 3 loss 0.7", "training complete"), none, "", "failed cuda/out-of-memory"},
		{"a numbered helper reports and the trainer ends well", numbered(4711, "step 1 loss 0.9") + strings.ReplaceAll(numbered(4720, "skipping a sample: UnidentifiedImageError: cannot identify image file '/x.jpg'"), "INFO", "ERROR") + numbered(4711, "step 2 loss 0.8", "training complete"), none, "", "ok"},
		{"a new number after a death is a new run", numbered(4711, "step 1 loss 0.9") + tb + "KeyError: 'a'\n" + numbered(4790, "loading data", "step 1 loss 0.9"), none, "", "ok"},
		{"a numbered process's traceback follows its line", numbered(4711, "step 1 loss 0.9") + strings.ReplaceAll(numbered(4712, "step 1 loss 0.9", "crashed"), "INFO train: crashed", "ERROR train: crashed") + strings.Replace(tb, "<module>", "run", 1) + "ZeroDivisionError: division by zero\n" + numbered(4711, "step 2 loss 0.8", "training complete"), none, "", "failed code/zero-division"},
		{"healthy words", epochs + "Error rate: 0.03, 0 failed, 12 passed\nmax_error=3 killed=0 nan_count=0\nTraceback depth: 5\nException handling: on\nWARNING: OOM is possible\nEpoch 3/9 | Train Loss: 0.8 | Val Loss: 1.0\nDone.\n", none, "", "ok"},
		{"a log of nothing but warnings", "UserWarning: CUDA initialization: CUDA unknown error - this may be due to an incorrectly set up environment\n  return torch._C._cuda_getDeviceCount() > 0\nW1120 19:38:01.036000000 socket.cpp:204] [c10d] failed\n", none, "", "ok"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var status *int
			if tt.status != none {
				status = &tt.status
			}
			if got := verdict(explain(t, tt.log, status, tt.kernel)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestShapes explains logs in the shapes of public ones.
func TestShapes(t *testing.T) {
	ar, err := txtar.ParseFile("testdata/shapes.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range ar.Files {
		name, want, _ := strings.Cut(f.Name, ": ")
		if got := verdict(explain(t, strings.ReplaceAll(string(f.Data), "␍", "\r"), nil, "")); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// TestHealthyWords ends a healthy log with each of many frightening lines: none makes an incident.
func TestHealthyWords(t *testing.T) {
	data, err := os.ReadFile("testdata/healthy_words.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		for _, before := range []string{"", "2026-11-20 19:39:45,201 INFO train: "} {
			x := explain(t, "Epoch 1/9 | Train Loss: 1.2\nEpoch 2/9 | Train Loss: 0.9\n"+before+line, nil, "")
			if x.Outcome != "ok" || len(x.Incidents) > 0 {
				t.Errorf("%q: %s, %d incidents", before+line, verdict(x), len(x.Incidents))
			}
		}
	}
	for _, line := range []string{"wandb: ERROR Failed to sample metric: Not Supported", "ImportError: apex not available, using native amp", "requests.exceptions.ConnectionError: retrying in 5 s"} {
		if x := explain(t, "Epoch 1/9 | Train Loss: 1.2\n"+line+"\n", nil, ""); x.Outcome != "ok" {
			t.Errorf("%q: %s", line, verdict(x))
		}
	}
	if x := explain(t, "Input/output error", nil, ""); verdict(x) != "failed data/read-error" {
		t.Errorf("a pasted message: %s", verdict(x))
	}
}

func TestExplainKeepsTheUnknown(t *testing.T) {
	x := explain(t, "Epoch 1/9 | Train Loss: 1.2\nERROR: lease 17 of shard 4 lost\nexit status 3\n", nil, "")
	if x.Root == nil || x.Root.Line != 2 || x.Root.Text != "ERROR: lease 17 of shard 4 lost" {
		t.Errorf("root %+v", x.Root)
	}
	y := explain(t, "Epoch 1/9 | Train Loss: 1.2\nsome line\nERROR: lease 90 of shard 12 lost\nexit status 3\n", nil, "")
	if x.Incident.Fingerprint != y.Incident.Fingerprint {
		t.Error("equal unknowns have different fingerprints")
	}
}

func TestExplainMarksLateErrors(t *testing.T) {
	const log = "Traceback (most recent call last):\n  File \"t.py\", line 9, in <module>\n    x\nRuntimeError: CUDA error: an illegal memory access was encountered\n"
	if !explain(t, log, nil, "").Incident.Misplaced {
		t.Error("the Python line of an asynchronous error is not marked")
	}
	if explain(t, "CUDA_LAUNCH_BLOCKING=1\n"+log, nil, "").Incident.Misplaced {
		t.Error("marked although CUDA_LAUNCH_BLOCKING=1")
	}
}

func ExampleExplain() {
	path := filepath.Join(os.TempDir(), "postmortem-example.log")
	os.WriteFile(path, []byte("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 92.00 MiB.\n"), 0o644)
	defer os.Remove(path)
	tl, err := ingest.ReadLog(context.Background(), ingest.LogRequest{Path: path, Catalogue: failure.Default()})
	if err != nil {
		fmt.Println(err)
		return
	}
	x := analyze.Explain(tl, failure.Default())
	fmt.Println(x.Outcome, *x.RootClass, "at line", x.Root.Line)
	// Output: failed cuda/out-of-memory at line 1
}

// BenchmarkExplain explains the whole gallery, 37 logs, in one go.
func BenchmarkExplain(b *testing.B) {
	paths, _ := filepath.Glob("../testdata/gallery/*.log")
	for b.Loop() {
		for _, path := range paths {
			tl, err := ingest.ReadLog(context.Background(), ingest.LogRequest{Path: path, Catalogue: failure.Default()})
			if err != nil {
				b.Fatal(err)
			}
			analyze.Explain(tl, failure.Default())
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(paths)), "µs/log")
}

// FuzzExplain reads any bytes as a log: it never panics, every line is accounted for, and the answer has a
// JSON form.
func FuzzExplain(f *testing.F) {
	for _, s := range []string{"RuntimeError: CUDA error: out of memory", "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"x\", line 1, in <module>\n[rank1]: KeyError: 'a'\n",
		`{"log":"Epoch 1/2 | loss 0.3\n","time":"2026-11-20T19:38:00Z"}` + "\nexit status 1\n", "  1%|a| 1/2 [00:00<1, 1it/s]\r 50%|b| 1/2 [x]Traceback (most recent call last):\n"} {
		f.Add([]byte(s), 1)
	}
	f.Fuzz(func(t *testing.T, log []byte, status int) {
		req := ingest.LogRequest{Path: "-", Stdin: strings.NewReader(string(log)), Catalogue: failure.Default(), ExitStatus: &status}
		tl, err := ingest.ReadLog(context.Background(), req)
		if err != nil {
			return
		}
		if s := tl.Sources[0]; s.Lines != s.Understood+s.Blank+s.NotUnderstood {
			t.Errorf("%d lines, %d + %d + %d", s.Lines, s.Understood, s.Blank, s.NotUnderstood)
		}
		x := analyze.Explain(tl, failure.Default())
		if (x.Outcome == "failed") != (x.RootClass != nil) {
			t.Error(x.Outcome, x.RootClass)
		}
		if status == 0 && x.Outcome != "ok" {
			t.Error("status 0 and", x.Outcome)
		}
		if _, err := json.Marshal(x); err != nil {
			t.Error(err)
		}
	})
}
