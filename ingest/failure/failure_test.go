package failure

import (
	"fmt"
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
		{"sqlite3.OperationalError", "database is locked", "code/exception"},
		{"torch.distributed.elastic.multiprocessing.errors.ChildFailedError", "", "dist/rank-failed"},
	} {
		if got := Default().MatchException(tt.typ, tt.msg).ID; got != tt.want {
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
			[]timeline.Fact{{Name: "requested_bytes", Value: 92 * mib}, {Name: "capacity_bytes", Value: 139.80 * gib}, {Name: "free_bytes", Value: 56.81 * mib}, {Name: "process_bytes", Value: 13.52 * gib}, {Name: "allocated_bytes", Value: 12.13 * gib}, {Name: "reserved_unallocated_bytes", Value: 147.83 * mib}}},
		{"torch 2.1 has a typo", "GPU 1 has a total capacty of 23.65 GiB of which 539.28 MiB is free.",
			[]timeline.Fact{{Name: "capacity_bytes", Value: 23.65 * gib}, {Name: "free_bytes", Value: 539.28 * mib}}},
		{"torch 1.10", "Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity; 9.58 GiB already allocated; 8.00 MiB free; 9.91 GiB reserved in total by PyTorch)",
			[]timeline.Fact{{Name: "requested_bytes", Value: 20 * mib}, {Name: "capacity_bytes", Value: 10.76 * gib}, {Name: "free_bytes", Value: 8 * mib}, {Name: "allocated_bytes", Value: 9.58 * gib}, {Name: "reserved_bytes", Value: 9.91 * gib}}},
		{"torch 1.0", "Tried to allocate 1.00 GiB (GPU 0; 10.76 GiB total capacity; 9.58 GiB already allocated; 8.00 MiB free; 30.00 MiB cached)",
			[]timeline.Fact{{Name: "requested_bytes", Value: gib}, {Name: "capacity_bytes", Value: 10.76 * gib}, {Name: "free_bytes", Value: 8 * mib}, {Name: "allocated_bytes", Value: 9.58 * gib}, {Name: "reserved_unallocated_bytes", Value: 30 * mib}}},
		{"a limit of its own", "this process has 24.39 GiB memory in use. 24.00 GiB allowed; Of the allocated memory 21.53 GiB is allocated by PyTorch, with 1.00 MiB allocated in private pools (e.g., CUDA Graphs), and 2.14 GiB is reserved by PyTorch but unallocated.",
			[]timeline.Fact{{Name: "allowed_bytes", Value: 24 * gib}, {Name: "process_bytes", Value: 24.39 * gib}, {Name: "allocated_bytes", Value: 21.53 * gib}, {Name: "reserved_unallocated_bytes", Value: 2.14 * gib}, {Name: "private_pools_bytes", Value: mib}}},
		{"no figure from NVML", "Including non-PyTorch memory, this process has 17179869184.00 GiB memory in use.", nil},
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

func TestLoadRefuses(t *testing.T) {
	for _, tt := range []struct{ name, doc, want string }{
		{"syntax", "[[class]]\nid = \n", "x.toml:2"},
		{"unknown key", "[[class]]\nid = \"a/b\"\ntitel = \"x\"\n", "titel"},
		{"no meaning", "[[class]]\nid = \"a/b\"\ntitle = \"x\"\n", "meaning"},
		{"bad pattern", "[[class]]\nid = \"a/b\"\ntitle = \"x\"\nmeaning = \"y\"\npattern = [\"(\"]\n", "a/b"},
		{"no unknown", "[[class]]\nid = \"a/b\"\ntitle = \"x\"\nmeaning = \"y\"\n", `"unknown" is missing`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Load("x.toml", []byte(tt.doc))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("RuntimeError", "CUDA out of memory. Tried to allocate 92.00 MiB.")
	f.Add("", "DataLoader worker (pid(s) 1, 2) exited unexpectedly")
	f.Fuzz(func(t *testing.T, typ, msg string) {
		cl := Default().MatchException(typ, msg)
		if cl == nil {
			t.Fatal("no class")
		}
		cl.ReadFacts(msg)
		Default().MatchNative(msg)
	})
}

func ExampleCatalogue_MatchException() {
	cl := Default().MatchException("torch.OutOfMemoryError", "CUDA out of memory. Tried to allocate 92.00 MiB. GPU 0 has a total capacity of 139.80 GiB")
	fmt.Println(cl.ID, cl.ReadFacts("Tried to allocate 92.00 MiB.")[0])
	// Output: cuda/out-of-memory {requested_bytes 9.6468992e+07}
}
