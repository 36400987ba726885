package failure

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"postmortem/ingest/timeline"

	"github.com/google/go-cmp/cmp"
)

func TestMatchException(t *testing.T) {
	for _, tt := range []struct{ typ, msg, want string }{
		{"torch.OutOfMemoryError", "CUDA out of memory. Tried to allocate 92.00 MiB.", "cuda/out-of-memory"},
		{"RuntimeError", "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity; 9.58 GiB already allocated; 8.00 MiB free; 9.91 GiB reserved in total by PyTorch)", "cuda/out-of-memory"},
		{"RuntimeError", "cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/generic/THCStorage.cu:58", "cuda/out-of-memory"},
		{"torch.AcceleratorError", "CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation'", "cuda/out-of-memory"},
		{"torch.AcceleratorError", "CUDA error: device-side assert triggered", "cuda/device-side-assert"},
		{"torch.AcceleratorError", "CUDA error: an illegal memory access was encountered", "cuda/illegal-address"},
		{"torch.AcceleratorError", "CUDA error: uncorrectable ECC error encountered", "cuda/ecc-uncorrectable"},
		{"torch.AcceleratorError", "CUDA error: something new", "cuda/unknown-error"},
		{"RuntimeError", "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx( handle, opa`", "cublas/execution-failed"},
		{"RuntimeError", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "cublas/alloc-failed"},
		{"RuntimeError", "Expected mha_graph.execute(handle, variant_pack, workspace_ptr.get()).is_good() to be true, but got false.", "cudnn/error"},
		{"torch.utils.checkpoint.CheckpointError", "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.", "checkpoint/recompute-mismatch"},
		{"RuntimeError", "static input data pointer changed.\ninput name: primals_1.", "cudagraph/static-input-changed"},
		{"RuntimeError", "DataLoader worker (pid 933394) is killed by signal: Killed. ", "data/worker-killed"},
		{"MemoryError", "", "host/memory-error"},
		{"KeyError", "'warmup_steps'", "code/key-error"},
		{"RuntimeError", "something that nobody knows", "code/runtime-error"},
		{"sqlite3.OperationalError", "database is locked", "hpo/storage-locked"},
		{"sqlite3.OperationalError", "no such table: trials", "code/exception"},
		{"torch.distributed.elastic.multiprocessing.errors.ChildFailedError", "", "dist/rank-failed"},
	} {
		if got := Default().MatchException(tt.typ, tt.msg, "").ID; got != tt.want {
			t.Errorf("%s: %s: got %s, want %s", tt.typ, tt.msg, got, tt.want)
		}
	}
}

// TestHealthyWords holds lines of healthy logs: none is error text.
func TestHealthyWords(t *testing.T) {
	for _, line := range []string{
		"error_rate=0.031 val_error=0.12; NaN check passed; OOM guard enabled (device-side assert handler installed)",
		"loading nccl_timeout=1800 from config; 'illegal' tokens filtered: 14; killed_neurons=0",
		"epoch 3:  41%|####      | 226/550 [00:11<00:31, 12.41it/s, loss=0.312, errors=0]",
		"Enabling segmentation fault handler",
	} {
		if cl := Default().MatchNative(line); cl != nil {
			t.Errorf("%s: got %s", line, cl.ID)
		}
	}
}

func TestFacts(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	for _, tt := range []struct {
		name, text string
		want       []timeline.Fact
	}{
		{"torch 2.11, cut by a handler", "CUDA out of memory. Tried to allocate 92.00 MiB. GPU 0 has a total capacity of 139.80 GiB of which 56.81 MiB is free. Process 407 has 108.51 GiB memory in use. Including non-PyTorch memory, this process has 13.52 GiB memory in use. Of the allocated memory 12.13 GiB is allocated by PyTorch, and 147.83 MiB is r",
			[]timeline.Fact{{Name: "requested_bytes", Value: 92 * mib}, {Name: "capacity_bytes", Value: 139.80 * gib}, {Name: "free_bytes", Value: 56.81 * mib}, {Name: "process_bytes", Value: 13.52 * gib}, {Name: "process_407_bytes", Value: 108.51 * gib}, {Name: "allocated_bytes", Value: 12.13 * gib}, {Name: "reserved_unallocated_bytes", Value: 147.83 * mib}}},
		{"torch 2.1 has a typo", "GPU 1 has a total capacty of 23.65 GiB of which 539.28 MiB is free.",
			[]timeline.Fact{{Name: "capacity_bytes", Value: 23.65 * gib}, {Name: "free_bytes", Value: 539.28 * mib}}},
		{"torch 1.10", "Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity; 9.58 GiB already allocated; 8.00 MiB free; 9.91 GiB reserved in total by PyTorch)",
			[]timeline.Fact{{Name: "requested_bytes", Value: 20 * mib}, {Name: "capacity_bytes", Value: 10.76 * gib}, {Name: "free_bytes", Value: 8 * mib}, {Name: "allocated_bytes", Value: 9.58 * gib}, {Name: "reserved_bytes", Value: 9.91 * gib}}},
		{"torch 1.0", "Tried to allocate 1.00 GiB (GPU 0; 10.76 GiB total capacity; 9.58 GiB already allocated; 8.00 MiB free; 30.00 MiB cached)",
			[]timeline.Fact{{Name: "requested_bytes", Value: gib}, {Name: "capacity_bytes", Value: 10.76 * gib}, {Name: "free_bytes", Value: 8 * mib}, {Name: "allocated_bytes", Value: 9.58 * gib}, {Name: "reserved_unallocated_bytes", Value: 30 * mib}}},
		{"a limit of its own", "this process has 24.39 GiB memory in use. 24.00 GiB allowed; Of the allocated memory 21.53 GiB is allocated by PyTorch, with 1.00 MiB allocated in private pools (e.g., CUDA Graphs), and 2.14 GiB is reserved by PyTorch but unallocated.",
			[]timeline.Fact{{Name: "allowed_bytes", Value: 24 * gib}, {Name: "process_bytes", Value: 24.39 * gib}, {Name: "allocated_bytes", Value: 21.53 * gib}, {Name: "reserved_unallocated_bytes", Value: 2.14 * gib}, {Name: "private_pools_bytes", Value: mib}}},
		{"no figure from NVML", "Including non-PyTorch memory, this process has 17179869184.00 GiB memory in use.", nil},
		{"two other processes", "Process 672 has 870.00 MiB memory in use. Process 980 has 1.00 GiB memory in use. ",
			[]timeline.Fact{{Name: "process_672_bytes", Value: 870 * mib}, {Name: "process_980_bytes", Value: gib}}},
		{"torch 0.4 prints no figure", "cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/generic/THCStorage.cu:58", nil},
		{"JAX", "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 37.25GiB with allocator GPU_0_bfc on device 0.", []timeline.Fact{{Name: "requested_bytes", Value: 37.25 * gib}}},
		{"JAX in bytes", "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 7406166528 bytes.", []timeline.Fact{{Name: "requested_bytes", Value: 7406166528}}},
		{"TensorFlow", "OOM when allocating tensor with shape[16,112,112,147] and type float on /job:localhost", []timeline.Fact{{Name: "requested_bytes", Value: 16 * 112 * 112 * 147 * 4}}},
		{"MPS", "MPS backend out of memory (MPS allocated: 8.00 GB, other allocations: 1.00 GB, max allowed: 9.00 GB). Tried to allocate 256 bytes on shared pool.",
			[]timeline.Fact{{Name: "requested_bytes", Value: 256}, {Name: "allowed_bytes", Value: 9 * gib}, {Name: "allocated_bytes", Value: 8 * gib}, {Name: "other_allocations_bytes", Value: gib}}},
		{"cudaMallocAsync", "Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : 5.50 GiB\nRequested               : 1.00 GiB\nDevice limit            : 8.00 GiB\nFree (according to CUDA): 16.00 MiB\nPyTorch limit (set by user-supplied memory fraction)\n                        : 7.00 GiB",
			[]timeline.Fact{{Name: "requested_bytes", Value: gib}, {Name: "capacity_bytes", Value: 8 * gib}, {Name: "free_bytes", Value: 16 * mib}, {Name: "allowed_bytes", Value: 7 * gib}, {Name: "allocated_bytes", Value: 5.5 * gib}}},
		{"CuPy with its limit", "Out of memory allocating 1,024 bytes (allocated so far: 2,048 bytes, limit set to: 4,096 bytes).",
			[]timeline.Fact{{Name: "requested_bytes", Value: 1024}, {Name: "limit_bytes", Value: 4096}, {Name: "allocated_bytes", Value: 2048}}},
		{"CuPy", "Out of memory allocating 1,073,741,824 bytes", []timeline.Fact{{Name: "requested_bytes", Value: gib}}},
		{"wrapped by a terminal", "Tried to allocate\n  20.00 MiB. GPU\n 0", []timeline.Fact{{Name: "requested_bytes", Value: 20 * mib}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, Default().Class("cuda/out-of-memory").ReadFacts(tt.text)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestFactsOfOthers takes the numbers out of other classes' messages.
func TestFactsOfOthers(t *testing.T) {
	for _, tt := range []struct{ class, text, want string }{
		{"nccl/watchdog-timeout", "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=6000) ran for 6020 milliseconds before timing out.",
			"[{rank 3} {sequence 2} {timeout_ms 6000} {waited_ms 6020}]"},
		{"kernel/xid", "NVRM: Xid (PCI:0000:9b:00): 119, pid='2024380', name=nvidia-smi", "[{xid 119} {pid 2.02438e+06}]"},
		{"data/worker-killed", "DataLoader worker (pid(s) 822) exited unexpectedly", "[{pid 822}]"},
		{"cudagraph/static-input-changed", "input name: primals_8. data pointer changed from 140445161625600 to 140445162108928.", "[{pointer_before 1.404451616256e+14} {pointer_after 1.40445162108928e+14}]"},
		{"cuda/device-side-assert", "/pytorch/aten/src/ATen/native/cuda/Loss.cu:245: nll_loss: block: [0,0,0]", "[{kernel_line 245}]"},
		{"dist/store-timeout", "Timed out after 6 seconds waiting for clients. 1/2 clients joined.", "[{timeout_seconds 6} {joined 1} {expected 2}]"},
		{"host/oom-killed", "Memory cgroup out of memory: Killed process 3605 (python3) total-vm:2kB, anon-rss:1kB", "[{pid 3605} {anon_rss_bytes 1024} {total_vm_bytes 2048}]"},
		{"triton/out-of-resources", "out of resource: shared memory, Required: 524288, Hardware limit: 232448.", "[{required 524288} {hardware_limit 232448}]"},
	} {
		if got := fmt.Sprint(Default().Class(tt.class).ReadFacts(tt.text)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.class, got, tt.want)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	const good = "[[class]]\nid = \"a/b\"\ntitle = \"x\"\nmeaning = \"y\"\n"
	for _, tt := range []struct{ name, doc, want string }{
		{"syntax", "[[class]]\nid = \n", "x.toml:2"},
		{"unknown key", "[[class]]\nid = \"a/b\"\ntitel = \"x\"\n", `x.toml:3: unknown key "class.titel"`},
		{"unknown table", good + "\n[[klass]]\nid = \"c/d\"\n", `x.toml:6: unknown key "klass"`},
		{"no meaning", good + "[[class]]\nid = \"a/c\"\ntitle = \"x\"\n", "x.toml:5: class \"a/c\": title and meaning"},
		{"no id", "[[class]]\ntitle = \"x\"\n", "x.toml:1: class \"\": id"},
		{"bad pattern", good + "pattern = [{ has = \"abcd\", re = \"(\" }]\n", "x.toml:1: class \"a/b\": error parsing regexp"},
		{"pattern without literal", good + "pattern = [{ re = \"x\" }]\n", "has must be a literal"},
		{"short literal", good + "text = [\"abc\"]\n", "at least 4 bytes"},
		{"bad role", good + "role = \"boss\"\n", `role "boss" is none of`},
		{"bad domain", good + "domain = \"x\"\n", `domain "x" is none of`},
		{"bad retry", good + "retry = \"x\"\n", `retry "x" is none of`},
		{"twice", good + good, "x.toml:5: class \"a/b\" stands twice"},
		{"dangling", good + "hides = [\"a/zzz\"]\n", `refers to "a/zzz"`},
		{"advice without source", good + "advice = [{ text = \"x\" }]\n", "advice needs text and source"},
		{"fact without group", good + "fact = [{ name = \"n\", pattern = \"x\" }]\n", "too few groups"},
		{"sample of another class", good + "text = [\"abcdef\"]\nyes = [\"ValueError: something\"]\n", "x.toml:1: class \"a/b\": its sample"},
		{"empty", "", "no [[class]]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Default().With("x.toml", []byte(tt.doc))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
	if _, err := Load("x.toml", []byte(good)); err == nil || !strings.Contains(err.Error(), `"unknown" is missing`) {
		t.Errorf("a catalogue that stands alone needs the class unknown: %v", err)
	}
}

func TestWith(t *testing.T) {
	const own = `
[[class]]
id = "ours/token-bucket"
title = "Token bucket empty"
meaning = "Our data service throttles."
text = ["token bucket is empty"]
yes = ["RuntimeError: token bucket is empty"]

[[class]]
id = "code/value-error"
title = "Ours"
meaning = "Replaced."
exceptions = ["ValueError"]
`
	cat, err := Default().With("own.toml", []byte(own))
	if err != nil {
		t.Fatal(err)
	}
	if got := cat.MatchException("RuntimeError", "token bucket is empty", "").ID; got != "ours/token-bucket" {
		t.Error("an own class is not asked:", got)
	}
	if got := cat.Class("code/value-error"); got.Title != "Ours" || cat.MatchException("ValueError", "x", "") != got {
		t.Error("a class is not replaced:", got)
	}
	if got := cat.MatchException("RuntimeError", "CUDA out of memory", "").ID; got != "cuda/out-of-memory" {
		t.Error("the others are gone:", got)
	}
	if Default().Class("ours/token-bucket").ID != Unknown {
		t.Error("the built-in catalogue was changed")
	}
}

// TestREADME loads the class that the README shows.
func TestREADME(t *testing.T) {
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(data), "```toml\n")
	block, _, ok2 := strings.Cut(block, "```")
	if !ok || !ok2 {
		t.Fatal("no TOML in the README")
	}
	cat, err := Default().With("README.md", []byte(block))
	if err != nil {
		t.Fatal(err)
	}
	if got := cat.MatchException("RuntimeError", "lease on shard 17 is lost", ""); got.ID != "ours/lease-lost" {
		t.Error(got.ID)
	}
}

// TestCatalogueIsWhole holds every class to what a reader of a report wants to know of it.
func TestCatalogueIsWhole(t *testing.T) {
	for _, cl := range Default().Classes {
		switch {
		case cl.Meaning == "" || !strings.HasSuffix(cl.Meaning, "."):
			t.Errorf("%s: meaning is no sentence", cl.ID)
		case len(cl.Causes) == 0 || cl.Verify == "":
			t.Errorf("%s: causes or verify missing", cl.ID)
		case len(cl.Advice) == 0 && cl.ID != "hpo/pruned-by-pruner":
			t.Errorf("%s: no advice", cl.ID)
		}
		for _, a := range cl.Advice {
			if !strings.HasPrefix(a.Source, "https://") && !strings.HasPrefix(a.Source, "seed 00") && a.Source != "recorded runs" && a.Source != "own judgement" {
				t.Errorf("%s: source %q", cl.ID, a.Source)
			}
		}
	}
}

// TestBindingIDs holds the ids that scripts know (the binding list, and the ids that joined it).
func TestBindingIDs(t *testing.T) {
	for _, id := range strings.Fields(`cuda/out-of-memory cuda/device-side-assert cuda/illegal-address cuda/invalid-address-space cuda/misaligned-address
		cuda/launch-failure cuda/launch-timeout cuda/invalid-argument cuda/invalid-configuration cuda/no-kernel-image cuda/no-device cuda/invalid-ordinal
		cuda/driver-mismatch cuda/ecc-uncorrectable cuda/device-lost cuda/unknown-error cublas/alloc-failed cublas/not-initialized cublas/execution-failed
		cudnn/error cudagraph/static-input-changed cudagraph/output-overwritten cudagraph/capture-unsupported checkpoint/recompute-mismatch
		inductor/autotune-invalid-argument inductor/no-c-compiler inductor/compile-error dynamo/unsupported dynamo/recompile-limit triton/out-of-resources
		nccl/watchdog-timeout nccl/duplicate-gpu nccl/unhandled-cuda nccl/system-error nccl/error gloo/peer-lost gloo/timeout dist/store-timeout
		dist/port-in-use dist/rank-failed kernel/xid host/oom-killed host/killed host/memory-error host/segfault host/aborted host/terminated
		host/interrupted host/time-limit host/disk-full host/too-many-files data/worker-killed data/shm-exhausted data/read-error numeric/nan-loss
		numeric/nan-gradient numeric/diverged code/device-mismatch code/dtype-mismatch code/shape-mismatch code/label-out-of-range code/inplace-modified
		code/state-dict-mismatch code/missing-file code/permission code/missing-module code/assertion code/zero-division code/key-error
		code/attribute-error code/type-error code/value-error code/runtime-error code/exception hub/unreachable hpo/pruned-by-pruner hpo/pruned-as-guard
		hpo/stale-running unknown
		cuda/nvlink-uncorrectable cuda/peer-memory kernel/sxid cuda/ptx-unsupported cuda/fabric-not-ready cuda-lib/other nccl/watchdog-stuck
		nccl/collective-mismatch nccl/remote-error nccl/ib-error nccl/config dist/not-initialized dist/ddp-unused-parameters dist/launcher-teardown
		host/illegal-instruction host/preempted host/node-failed host/read-only-fs host/io-stall host/hung-task host/no-threads data/worker-exception
		data/empty numeric/scale-collapse env/abi-mismatch env/module-load code/syntax-error code/usage code/config hub/unauthorized tracker/failed
		hpo/storage-locked run/stalled run/truncated cuda/illegal-instruction dynamo/unavailable hpo/pruned-as-error nccl/taking-down triton/compile-error`) {
		if Default().Class(id).ID != id {
			t.Errorf("class %s is missing", id)
		}
	}
}

func TestFold(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"Shard 17 of /data/run-3/shard-0017.tar is at 0x7f3a with 12.5 MiB", "Shard <n> of <path> is at <hex> with <n> MiB"},
		{"job 3f2504e0-4f89-11d3-9a0c-0305e82c3301 died at 2026-11-20 19:45:53,186", "job <id> died at <time>"},
		{"fetch https://example.org/a/b?x=1 failed", "fetch <url> failed"},
		{"  two\n lines ", "two lines"},
	} {
		if got := Fold(tt.text); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
	}
	u := Default().Class(Unknown)
	if a, b := u.Fingerprint("worker 3 lost lease 17"), u.Fingerprint("worker 9 lost lease 4"); a != b || len(a) != 12 {
		t.Error("equal unknowns must group:", a, b)
	}
	if u.Fingerprint("a") == u.Fingerprint("b") {
		t.Error("different unknowns must not group")
	}
}

func BenchmarkMatchNative(b *testing.B) {
	line := "Epoch 12/50 | Train Loss: 0.5826 | Val Loss: 0.5942 | LR: 0.001000 | Time: 0.01s | CUDA memory 12.1 GiB"
	b.SetBytes(int64(len(line)))
	cat := Default()
	for b.Loop() {
		cat.MatchNative(line)
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("RuntimeError", "CUDA out of memory. Tried to allocate 92.00 MiB.")
	f.Add("", "DataLoader worker (pid(s) 1, 2) exited unexpectedly")
	f.Fuzz(func(t *testing.T, typ, msg string) {
		cl := Default().MatchException(typ, msg, msg)
		if cl == nil {
			t.Fatal("no class")
		}
		cl.ReadFacts(msg)
		Default().MatchNative(msg)
	})
}

func FuzzWith(f *testing.F) {
	f.Add([]byte("[[class]]\nid = \"a/b\"\ntitle = \"x\"\nmeaning = \"y\"\ntext = [\"abcd\"]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		cat, err := Default().With("x.toml", data)
		if err == nil {
			cat.MatchException("RuntimeError", string(data), "")
		} else if !strings.HasPrefix(err.Error(), "x.toml:") {
			t.Errorf("no file and line: %v", err)
		}
	})
}

func ExampleCatalogue_MatchException() {
	cl := Default().MatchException("torch.OutOfMemoryError", "CUDA out of memory. Tried to allocate 92.00 MiB. GPU 0 has a total capacity of 139.80 GiB", "")
	fmt.Println(cl.ID, cl.ReadFacts("Tried to allocate 92.00 MiB.")[0])
	// Output: cuda/out-of-memory {requested_bytes 9.6468992e+07}
}
