package analyze_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"postmortem/analyze"
	"postmortem/ingest"
	"postmortem/ingest/failure"
)

// A specimen is a log of which the cause is known.
type specimen struct {
	name, class string // class "" is a healthy log
	lines       []string
}

// A surrounding puts a specimen where such logs are found. It returns the log, and what is true of it
// when that is no longer the specimen's own class: "" for a run that went well.
type surrounding struct {
	name string
	make func(r *rand.Rand, s, other specimen, healthy []string) (lines []string, class string)
}

func gallery(t testing.TB) (failed, healthy []specimen) {
	t.Helper()
	table, err := os.ReadFile("../testdata/gallery/expected.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range strings.Split(strings.TrimSpace(string(table)), "\n")[1:] {
		f := strings.Split(row, "\t")
		data, err := os.ReadFile(filepath.Join("../testdata/gallery", f[0]+".log"))
		if err != nil {
			t.Fatal(err)
		}
		s := specimen{name: f[0], lines: strings.Split(strings.TrimRight(string(data), "\n"), "\n")}
		switch {
		case f[1] == "ok":
			healthy = append(healthy, s)
		case slices.Contains([]string{"host_oom", "segfault", "sigterm"}, f[0]): // nothing in the log itself
		default:
			s.class = f[2]
			failed = append(failed, s)
		}
	}
	return failed, healthy
}

// fromCatalogue makes a specimen of every exception line among the catalogue's samples.
func fromCatalogue() []specimen {
	var out []specimen
	for _, cl := range failure.Default().Classes {
		if cl.Role != failure.Root {
			continue
		}
		for i, y := range cl.Yes {
			typ, _, _ := strings.Cut(y, ":")
			last := typ[strings.LastIndexByte(typ, '.')+1:]
			if strings.ContainsAny(typ, " []") || strings.ContainsAny(y, "\n") || last == "" || last[0] < 'A' || last[0] > 'Z' || last == "ERROR" || last == "NVRM" || last == "State" {
				continue
			}
			out = append(out, specimen{name: fmt.Sprintf("%s#%d", cl.ID, i), class: cl.ID, lines: append(epochLines(1, 3), uncaught(y)...)})
		}
	}
	return out
}

func epochLines(from, to int) []string {
	var out []string
	for i := from; i <= to; i++ {
		out = append(out, fmt.Sprintf("Epoch %d/50 | Train Loss: %.4f | Val Loss: %.4f | LR: 0.001000 | Time: 0.21s", i, 1.2/float64(i), 1.3/float64(i)))
	}
	return out
}

func uncaught(exception string) []string {
	return []string{
		"Traceback (most recent call last):",
		`  File "/srv/train/main.py", line 88, in <module>`,
		"    main()",
		`  File "/srv/train/main.py", line 61, in main`,
		"    raise RuntimeError(f\"OutOfMemoryError: {e}\")  # see CUDA error: device-side assert triggered",
		`  File "/srv/train/loop.py", line 207, in step`,
		"    loss = model(batch)",
		"           ^^^^^^^^^^^^",
		exception,
	}
}

// noise is what a healthy program prints before it trains.
var noise = []string{
	"+ python train.py --config base.yaml --on-oom 'CUDA out of memory' --retry 3",
	"/opt/venv/lib/python3.12/site-packages/torch/utils/data/dataloader.py:557: UserWarning: This DataLoader will create 16 worker processes in total.",
	"  warnings.warn(_create_warning_msg(",
	"2026-11-20 19:38:00.123456: E external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:9261] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered",
	"2026-11-20 19:38:00.223456: W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:38] TF-TRT Warning: Could not find TensorRT",
	"[W1120 19:38:01.036000000 socket.cpp:204] [c10d] The hostname of the client socket cannot be retrieved. err=-3",
	"FutureWarning: `torch.cuda.amp.GradScaler(args...)` is deprecated.",
	"ERROR: pip's dependency resolver does not currently take into account all the packages that are installed.",
	"on_error: {'RuntimeError': 'CUDA error: an illegal memory access was encountered', 'action': 'restart'}",
	"2026-11-20 19:38:02,000 INFO train: watching for OutOfMemoryError, NCCL timeout, Segmentation fault; none so far",
	"2026-11-20 19:38:02,500 WARNING train: falling back to the math kernel because flash attention is not supported",
	"wandb: WARNING Path /scratch/wandb wasn't writable, using system temp directory.",
	"Some weights of BertForSequenceClassification were not initialized from the model checkpoint and are newly initialized: ['classifier.bias']",
	"node-01:189884:189884 [3] NCCL INFO NET/IB : No device found.",
	"If you run out of memory, try a smaller batch: RuntimeError: CUDA out of memory is raised otherwise.",
}

var survivedReports = [][]string{
	{"2026-11-20 19:38:21,004 WARNING train: batch_size=4096 does not fit, halving: CUDA out of memory. Tried to allocate 16.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which 137.25 GiB is free."},
	{"2026-11-20 19:38:21,004 WARNING train: retrying failed download of shard 3 (attempt 2/5): Max retries exceeded with url: /shard3"},
	append([]string{"2026-11-20 19:38:21,004 ERROR train: step 3 failed, skipping the batch"}, func() []string {
		tb := uncaught("RuntimeError: The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1")
		tb[1] = `  File "/srv/train/loop.py", line 88, in run`
		return tb
	}()...),
	{"[W 2026-11-20 19:38:21,004] Trial 3 failed with parameters: {'lr': 0.1} because of the following error: ValueError('bad').", "[W 2026-11-20 19:38:21,005] Trial 3 failed with value None.", "[I 2026-11-20 19:38:29,005] Trial 4 finished with value: 0.5 and parameters: {'lr': 0.01}. Best is trial 4 with value: 0.5."},
}

var cascade = []string{
	"[rank0]:[E1120 19:48:35.402948762 ProcessGroupNCCL.cpp:689] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.",
	"[rank0]:[E1120 19:48:38.689214876 ProcessGroupNCCL.cpp:2636] [PG ID 0 PG GUID 0(default_pg) Rank 0] First PG on this rank to signal dumping.",
	"terminate called after throwing an instance of 'c10::DistBackendError'",
	"  what():  [PG ID 0 PG GUID 0(default_pg) Rank 0] Process group watchdog thread terminated with exception: [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2)",
	"Fatal Python error: Aborted",
	"",
	"W1120 19:48:40.036000 669 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 2711 closing signal SIGTERM",
	"E1120 19:48:41.036000 669 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 1 (pid: 2712) of binary: /opt/venv/bin/python",
	"Traceback (most recent call last):",
	`  File "/opt/venv/bin/torchrun", line 8, in <module>`,
	"    sys.exit(main())",
	"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
	"============================================================",
	"train.py FAILED",
	"------------------------------------------------------------",
	"Failures:",
	"  <NO_OTHER_FAILURES>",
	"------------------------------------------------------------",
	"Root Cause (first observed failure):",
	"[0]:",
	"  time      : 2026-11-20_19:48:41",
	"  host      : node-01",
	"  rank      : 1 (local_rank: 1)",
	"  exitcode  : 1 (pid: 2712)",
	"  error_file: <N/A>",
	"  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html",
	"============================================================",
	"srun: error: node-01: task 0: Exited with exit code 1",
	"slurmstepd: error: *** STEP 4711.0 ON node-01 CANCELLED AT 2026-11-20T19:48:42 ***",
}

// weave puts b's lines between a's, keeping the order of each.
func weave(r *rand.Rand, a, b []string) []string {
	var out []string
	for len(a) > 0 || len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && r.IntN(len(a)+len(b)) < len(a) {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return out
}

func each(lines []string, f func(i int, l string) string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = f(i, l)
	}
	return out
}

func rankEpochs(rank, n int) []string {
	return each(epochLines(1, n), func(_ int, l string) string { return fmt.Sprintf("[rank%d]: %s", rank, l) })
}

var goodEnd = []string{"Training complete. Best val_loss: 0.1021"}

var surroundings = []surrounding{
	{"alone", func(_ *rand.Rand, s, _ specimen, _ []string) ([]string, string) { return s.lines, s.class }},
	{"earlier noise", func(_ *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		return slices.Concat(noise, epochLines(1, 2), s.lines), s.class
	}},
	{"survived before", func(r *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		return slices.Concat(epochLines(1, 2), survivedReports[r.IntN(len(survivedReports))], epochLines(3, 5), each(s.lines, later)), s.class
	}},
	{"later cascades", func(_ *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		return slices.Concat(s.lines, cascade), s.class
	}},
	{"killed afterwards", func(_ *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		return slices.Concat(s.lines, []string{"", "/var/spool/slurmd/job1/slurm_script: line 23: 4273 Killed                  python train.py", "slurmstepd: error: *** JOB 4711 ON node-01 CANCELLED AT 2026-11-20T19:48:42 DUE TO TIME LIMIT ***"}), s.class
	}},
	{"a rank among others", func(r *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		mine := each(s.lines, func(_ int, l string) string { return "[rank1]: " + l })
		return slices.Concat(weave(r, mine, weave(r, rankEpochs(0, 12), rankEpochs(2, 12))), cascade[:2]), s.class
	}},
	{"srun --label", func(r *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		return weave(r, each(s.lines, func(_ int, l string) string { return "1: " + l }), each(epochLines(1, 12), func(_ int, l string) string { return "0: " + l })), s.class
	}},
	{"progress of others in between", func(r *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		var out []string
		for i, l := range s.lines {
			out = append(out, l)
			if i > 2 && i < len(s.lines)-1 && strings.HasPrefix(l, "  File ") && r.IntN(2) == 0 {
				out = append(out, "2026-11-20 19:38:02,000 INFO loader: prefetched 128 samples")
			}
		}
		return out, s.class
	}},
	{"another process's batches in between", func(r *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		i := slices.IndexFunc(s.lines, func(l string) bool { return strings.HasPrefix(l, "Traceback") })
		if i < 0 || i+5 > len(s.lines) {
			return s.lines, s.class
		}
		var out []string
		for k, l := range s.lines {
			out = append(out, l)
			if k > i+1 && k%3 == 0 {
				out = append(out, fmt.Sprintf("2026-11-20 19:38:02,000 INFO train: step %d loss 0.%d", 100+k, k))
			}
		}
		return append(out, "2026-11-20 19:39:02,000 INFO train: step 900 loss 0.1"), s.class
	}},
	{"appended to another failed run", func(_ *rand.Rand, s, other specimen, _ []string) ([]string, string) {
		return slices.Concat([]string{"+ python train.py"}, epochLines(1, 4), other.lines, []string{"+ python train.py"}, s.lines), s.class
	}},
	{"appended without a mark", func(_ *rand.Rand, s, other specimen, _ []string) ([]string, string) {
		return slices.Concat(epochLines(1, 4), other.lines, epochLines(1, 2), each(s.lines, later)), s.class
	}},
	{"a good run appended", func(_ *rand.Rand, s, _ specimen, healthy []string) ([]string, string) {
		return slices.Concat(s.lines, []string{"+ python train.py"}, epochLines(1, 4), healthy, goodEnd), ""
	}},
	{"glued behind a bar", func(_ *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		out := slices.Clone(s.lines)
		if i := slices.IndexFunc(out, func(l string) bool { return strings.HasPrefix(l, "Traceback") }); i >= 0 {
			out[i] = "  0%|          | 0/62 [00:00<?, ?it/s]\r  2%|▏         | 1/62 [00:00<00:24,  2.51it/s]\r 16%|█▌        | 10/62 [00:00<00:02, 18.35it/s]" + out[i]
		}
		return out, s.class
	}},
	{"stamped by the log driver", func(_ *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		return each(s.lines, func(i int, l string) string {
			return fmt.Sprintf("2026-11-20T19:38:%02d.%09dZ %s", i/10%60, i*1000, l)
		}), s.class
	}},
	{"wrapped in JSON by docker", func(_ *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		return each(s.lines, func(i int, l string) string {
			b, _ := json.Marshal(map[string]string{"log": l + "\n", "stream": "stderr", "time": fmt.Sprintf("2026-11-20T19:38:%02d.000000001Z", i/10%60)})
			return string(b)
		}), s.class
	}},
	{"coloured, CRLF", func(_ *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		return each(s.lines, func(_ int, l string) string { return "\x1b[31m" + l + "\x1b[0m\r" }), s.class
	}},
	{"through a logger", func(_ *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		return each(s.lines, func(i int, l string) string {
			return fmt.Sprintf("2026-11-20 19:38:%02d,%03d ERROR launcher: %s", i/10%60, i%1000, l)
		}), s.class
	}},
	{"healthy with frightening words", func(r *rand.Rand, _, _ specimen, healthy []string) ([]string, string) {
		return slices.Concat(noise, epochLines(1, 3), weave(r, healthy, survivedReports[0]), epochLines(4, 9), goodEnd), ""
	}},
	{"supervised", func(_ *rand.Rand, s, other specimen, _ []string) ([]string, string) {
		return slices.Concat([]string{"[supervisor] 2026-11-20 19:30:00 starting worker 0 (restart 0)"}, other.lines, []string{"[supervisor] 2026-11-20 19:36:00 worker 0 exited with status 1",
			"[supervisor] 2026-11-20 19:36:01 starting worker 0 (restart 1)"}, s.lines, []string{"[supervisor] 2026-11-20 19:39:00 worker 0 exited with status 1"}), s.class
	}},
	{"a peer's death told first", func(_ *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		return slices.Concat(epochLines(1, 3), uncaught("RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:41234"), s.lines, cascade[6:]), s.class
	}},
	{"every rank says so", func(_ *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		var out []string
		for _, l := range s.lines { // two ranks in step
			out = append(out, "[rank0]: "+l, "[rank1]: "+l)
		}
		return out, s.class
	}},
	{"a caught traceback, and on", func(_ *rand.Rand, s, _ specimen, healthy []string) ([]string, string) {
		if s.class == "" || strings.Contains(s.name, "/") && s.lines[3] != "Traceback (most recent call last):" {
			return healthy, ""
		}
		return slices.Concat(epochLines(1, 4), uncaught("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."), epochLines(5, 9), goodEnd), ""
	}},
	{"a second attempt succeeded", func(_ *rand.Rand, s, _ specimen, healthy []string) ([]string, string) {
		return slices.Concat(s.lines, []string{"Attempt 2 of 3"}, epochLines(1, 9), goodEnd), ""
	}},
	{"tracker and bar close behind it", func(_ *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		return slices.Concat([]string{" 16%|█▌        | 10/62 [00:00<00:02, 18.35it/s]"}, s.lines, []string{"", " 16%|█▌        | 10/62 [00:00<00:04, 10.90it/s]", "wandb: ", "wandb: Run history:", "wandb:      loss █▅▃▂▁",
			"wandb: Run summary:", "wandb:     epoch 3.4", "wandb:      loss 0.31", "wandb: Synced 5 W&B file(s), 0 media file(s)", "Best val loss 0.31 at epoch 1", "Exception ignored in: <function Pool.__del__ at 0x7f3a>",
			"Traceback (most recent call last):", "  File \"/usr/lib/python3.12/multiprocessing/pool.py\", line 268, in __del__", "ResourceWarning: unclosed running multiprocessing pool"}), s.class
	}},
	{"another worker goes on", func(r *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		mine := each(s.lines, func(_ int, l string) string { return "worker-1  | " + l })
		return append(weave(r, mine, each(epochLines(1, 20), func(_ int, l string) string { return "worker-0  | " + l })), "worker-0  | Training complete."), s.class
	}},
	{"boxed by rich", func(_ *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		i := slices.IndexFunc(s.lines, func(l string) bool { return strings.HasPrefix(l, "Traceback") })
		if i < 0 || !strings.Contains(s.name, "#") {
			return s.lines, s.class
		}
		return slices.Concat(s.lines[:i], []string{"╭───────────────────── Traceback (most recent call last) ─────────────────────╮", "│ /srv/train/main.py:88 in <module>                                          │",
			"│                                                                            │", "│   87 if __name__ == \"__main__\":                                            │", "│ ❱ 88     main()                                                            │",
			"╰────────────────────────────────────────────────────────────────────────────╯"}, s.lines[len(s.lines)-1:]), s.class
	}},
	{"in a notebook", func(_ *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		i := slices.IndexFunc(s.lines, func(l string) bool { return strings.HasPrefix(l, "Traceback") })
		if i < 0 || !strings.Contains(s.name, "#") {
			return s.lines, s.class
		}
		last := s.lines[len(s.lines)-1]
		typ, _, _ := strings.Cut(last, ":")
		return slices.Concat(s.lines[:i], []string{"---------------------------------------------------------------------------", typ + "                          Traceback (most recent call last)",
			"Cell In[3], line 5", "      3 for x in data:", "      4     opt.zero_grad()", "----> 5     loss = model(x)", "", "File ~/model.py:12, in forward(self, x)", "     10 def forward(self, x):", "---> 12     return self.net(x)", "", last}), s.class
	}},
	{"clock before every line", func(_ *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		return each(s.lines, func(i int, l string) string { return fmt.Sprintf("[19:38:%02d] %s", i/10%60, l) }), s.class
	}},
	{"torn by another rank", func(_ *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		out := slices.Clone(s.lines)
		last := out[len(out)-1]
		typ, rest, ok := strings.Cut(last, ": ")
		if !ok || !strings.Contains(s.name, "#") {
			return out, s.class
		}
		out[len(out)-1] = typ + typ + ": " + rest
		return append(out, ": "+rest), s.class
	}},
	{"quoted in an issue", func(_ *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		return slices.Concat([]string{"Hi, my training crashes since the update:", "", "> "}, each(s.lines, func(_ int, l string) string { return "> " + l }), []string{"", "Any idea?"}), s.class
	}},
	{"standard output written last", func(_ *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		var printed, rest []string
		for _, l := range s.lines {
			if strings.HasPrefix(l, "Epoch ") {
				printed = append(printed, l)
			} else {
				rest = append(rest, l)
			}
		}
		return append(rest, printed...), s.class
	}},
	{"restarted by torchrun", func(_ *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		return slices.Concat(epochLines(1, 3), each(s.lines, func(_ int, l string) string { return "[rank1]: " + l }), []string{
			"W1120 19:48:40.036000 669 torch/distributed/elastic/agent/server/api.py:900] [default] Worker group FAILED. 1/3 attempts left; will restart worker group"}, epochLines(1, 9), goodEnd), ""
	}},
	{"a structured logger", func(_ *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		var out []string
		i := slices.IndexFunc(s.lines, func(l string) bool { return strings.HasPrefix(l, "Traceback") })
		for k, l := range s.lines {
			m := map[string]string{"ts": fmt.Sprintf("2026-11-20T19:38:%02dZ", k/10%60), "level": "info", "msg": l}
			if k == i && strings.Contains(s.name, "#") {
				m["level"], m["msg"], m["exc_info"] = "error", "training failed", strings.Join(s.lines[i:], "\n")
			}
			b, _ := json.Marshal(m)
			out = append(out, string(b))
			if m["exc_info"] != "" {
				return out, s.class
			}
		}
		return s.lines, s.class
	}},
	{"through journald", func(_ *rand.Rand, s, other specimen, _ []string) ([]string, string) {
		return each(slices.Concat(epochLines(1, 5), other.lines, epochLines(1, 3), each(s.lines, later)), func(i int, l string) string {
			return fmt.Sprintf("Nov 20 19:38:%02d node-01 python[4711]: %s", i/10%60, l)
		}), s.class
	}},
	{"the next job's name in between", func(_ *rand.Rand, s, other specimen, _ []string) ([]string, string) {
		return slices.Concat([]string{"Job ID: 4711", "Node: node-01", ""}, other.lines, []string{"Job ID: 4712", "Node: node-02", ""}, s.lines), s.class
	}},
	{"a worker of an HPO file", func(r *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		return weave(r, each(s.lines, func(_ int, l string) string { return "[worker 1] " + l }), each(append(epochLines(1, 20), goodEnd...), func(_ int, l string) string { return "[worker 0] " + l })), s.class
	}},
	{"the kernel's words after a good end", func(_ *rand.Rand, _, _ specimen, healthy []string) ([]string, string) {
		return slices.Concat(healthy, goodEnd, []string{"--- dmesg | tail", "[  397.007981] NVRM: Xid (PCI:0000:00:06): 43, pid=3441, name=python3, channel 0x0000000a",
			"WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 2711 closing signal SIGTERM"}), ""
	}},
	{"head cut off", func(_ *rand.Rand, s, _ specimen, _ []string) ([]string, string) {
		i := slices.IndexFunc(s.lines, func(l string) bool { return strings.HasPrefix(l, "Traceback") })
		if i < 0 || i+4 > len(s.lines) {
			return s.lines, s.class
		}
		return s.lines[i+3:], s.class // within the frames
	}},
}

// later renumbers a specimen's epochs, so that they follow those before it.
func later(_ int, l string) string {
	var n int
	if _, err := fmt.Sscanf(l, "Epoch %d/", &n); err == nil {
		return strings.Replace(l, fmt.Sprintf("Epoch %d/", n), fmt.Sprintf("Epoch %d/", n+20), 1)
	}
	return l
}

// TestSurroundings puts every failure of the gallery, and one for each exception line of the
// catalogue's samples, into every surrounding: the class must be found again.
func TestSurroundings(t *testing.T) {
	failed, healthy := gallery(t)
	specimens := append(slices.Clone(failed), fromCatalogue()...)
	for _, sur := range surroundings {
		t.Run(sur.name, func(t *testing.T) {
			t.Parallel()
			inSurrounding(t, sur, specimens, failed, healthy)
		})
	}
}

func inSurrounding(t *testing.T, sur surrounding, specimens, failed, healthy []specimen) {
	right := 0
	for i, s := range specimens {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		other := failed[(i+7)%len(failed)]
		if other.class == s.class {
			other = failed[(i+8)%len(failed)]
		}
		lines, want := sur.make(r, s, other, healthy[i%len(healthy)].lines)
		tl, err := ingest.ReadLog(context.Background(), ingest.LogRequest{Path: "-", Stdin: strings.NewReader(strings.Join(lines, "\n") + "\n"), Catalogue: failure.Default()})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if x := analyze.Explain(tl, failure.Default()); x.RootClass != nil {
			got = *x.RootClass
		}
		if got == want {
			right++
		} else {
			t.Logf("%s: %s: got %q, want %q", sur.name, s.name, got, want)
		}
	}
	if share := float64(right) / float64(len(specimens)); share < 0.97 {
		t.Errorf("%s: %d of %d right", sur.name, right, len(specimens))
	} else {
		t.Logf("%s: %d of %d right", sur.name, right, len(specimens))
	}
}
