package nvidiasmi

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf16"

	"postmortem/ingest/timeline"

	"github.com/google/go-cmp/cmp"
)

func read(t testing.TB, csv string) *timeline.Timeline {
	t.Helper()
	tl, err := Read(strings.NewReader(csv), 0)
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

// describe writes a card's samples in MiB.
func describe(tl *timeline.Timeline) []string {
	var out []string
	for _, g := range tl.GPUs {
		s := fmt.Sprintf("gpu %d %s total %d:", g.Index, g.UUID, g.TotalBytes>>20)
		for i := range g.Time {
			s += fmt.Sprintf(" %s used %d free %d util %g", g.Time[i].Format("05.000"), mib(g.UsedBytes[i]), mib(g.FreeBytes[i]), g.Util[i])
		}
		out = append(out, s)
	}
	for _, p := range tl.Tenants {
		s := fmt.Sprintf("pid %d %s on %s:", p.PID, p.Name, p.UUID)
		for i := range p.Time {
			s += fmt.Sprintf(" %d", mib(p.UsedBytes[i]))
		}
		out = append(out, s)
	}
	return out
}

func mib(b int64) int64 {
	if b < 0 {
		return -1
	}
	return b >> 20
}

func TestRead(t *testing.T) {
	for _, tt := range []struct {
		name, csv string
		want      []string
		bad       int
	}{
		{"header and units", "timestamp, index, name, memory.total [MiB], memory.used [MiB], memory.free [MiB], utilization.gpu [%]\n" +
			"2026/11/20 19:45:31.069, 0, NVIDIA H200, 143771 MiB, 5 MiB, 143151 MiB, 7 %\n",
			[]string{"gpu 0  total 143771: 31.069 used 5 free 143151 util 0.07"}, 0},
		{"another order, no units, aliases", "memory.used [MiB], gpu_uuid, timestamp\n12, GPU-a, 2026/11/20 19:45:31.069\n",
			[]string{"gpu -1 GPU-a total -1: 31.069 used 12 free -1 util -1"}, 0},
		{"cells that are no numbers", "timestamp, index, memory.used [MiB], utilization.gpu [%]\n2026/11/20 19:45:31.069, 0, [N/A], ERR!\n",
			[]string{"gpu 0  total -1: 31.069 used -1 free -1 util -1"}, 0},
		{"several cards", "timestamp, index, memory.used [MiB]\n2026/11/20 19:45:31.000, 0, 1 MiB\n2026/11/20 19:45:31.004, 1, 2 MiB\n2026/11/20 19:45:32.000, 0, 3 MiB\n2026/11/20 19:45:32.004, 1, 4 MiB\n",
			[]string{"gpu 0  total -1: 31.000 used 1 free -1 util -1 32.000 used 3 free -1 util -1", "gpu 1  total -1: 31.004 used 2 free -1 util -1 32.004 used 4 free -1 util -1"}, 0},
		{"several cards that no column names", "timestamp, name, memory.used [MiB]\n2026/11/20 19:45:31.000, A10, 1 MiB\n2026/11/20 19:45:31.004, A10, 2 MiB\n2026/11/20 19:45:32.000, A10, 3 MiB\n2026/11/20 19:45:32.004, A10, 4 MiB\n",
			[]string{"gpu 0  total -1: 31.000 used 1 free -1 util -1 32.000 used 3 free -1 util -1", "gpu 1  total -1: 31.004 used 2 free -1 util -1 32.004 used 4 free -1 util -1"}, 0},
		{"header again after a restart, with other columns", "timestamp, index, memory.used [MiB]\n2026/11/20 19:45:31.000, 0, 1 MiB\ntimestamp, memory.used [MiB], index\n2026/11/20 19:45:33.000, 2 MiB, 0\n",
			[]string{"gpu 0  total -1: 31.000 used 1 free -1 util -1 33.000 used 2 free -1 util -1"}, 0},
		{"error text between rows", "timestamp, index, memory.used [MiB]\n2026/11/20 19:45:31.000, 0, 1 MiB\nUnable to determine the device handle for GPU 0000:0B:00.0: Unknown Error\n2026/11/20 19:45:33.000, 0, 2 MiB\n",
			[]string{"gpu 0  total -1: 31.000 used 1 free -1 util -1 33.000 used 2 free -1 util -1"}, 0},
		{"a last line cut in a number", "timestamp, index, memory.used [MiB]\n2026/11/20 19:45:31.000, 0, 143 MiB\n2026/11/20 19:45:32.000, 0, 14",
			[]string{"gpu 0  total -1: 31.000 used 143 free -1 util -1"}, 1},
		{"a last line cut in the middle", "timestamp, index, memory.used [MiB]\n2026/11/20 19:45:31.000, 0, 143 MiB\n2026/11/20 19:45",
			[]string{"gpu 0  total -1: 31.000 used 143 free -1 util -1"}, 1},
		{"a whole last line without end", "timestamp, index, memory.used [MiB]\n2026/11/20 19:45:31.000, 0, 143 MiB",
			[]string{"gpu 0  total -1: 31.000 used 143 free -1 util -1"}, 0},
		{"a torn row", "timestamp, index, memory.used [MiB]\n2026/11/20 19:45:31.000, 0\n2026/11/20 19:45:32.000, 0, 1 MiB\n",
			[]string{"gpu 0  total -1: 32.000 used 1 free -1 util -1"}, 1},
		{"no header, no units", "2026/11/20 19:53:32.391, 0, GPU-5d, 0, 143156, 143771, 0, 78.28, 33\n2026/11/20 19:53:33.396, 0, GPU-5d, 10, 143146, 143771, 5, 78.28, 33\n",
			[]string{"gpu 0 GPU-5d total 143771: 32.391 used 0 free 143156 util -1 33.396 used 10 free 143146 util -1"}, 0},
		{"no header, free before used", "2026/11/20 19:53:32.391, 143771, 143156, 0\n2026/11/20 19:53:33.396, 143771, 143146, 10\n",
			[]string{"gpu 0  total 143771: 32.391 used 0 free 143156 util -1 33.396 used 10 free 143146 util -1"}, 0},
		{"processes", "timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n2026/11/20 19:45:37.149, GPU-5d, 407, python3, 111110 MiB\n2026/11/20 19:45:39.149, GPU-5d, 407, [No data], [N/A]\n2026/11/20 19:45:39.149, GPU-5d, 9, sh -c a, b, 1 MiB\n",
			[]string{"pid 407 python3 on GPU-5d: 111110 -1", "pid 9 sh -c a, b on GPU-5d: 1"}, 0},
		{"processes without header", "2026/11/20 19:45:37.149, GPU-5d, 407, python3, 111110 MiB\n2026/11/20 19:45:39.149, GPU-5d, 407, python3, 5 MiB\n",
			[]string{"pid 407 python3 on GPU-5d: 111110 5"}, 0},
		{"rows that nobody can tell", "2026/11/20 19:45:37.149, 5\n", nil, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tl := read(t, tt.csv)
			if d := cmp.Diff(tt.want, describe(tl)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if a := tl.Sources[0]; a.NotUnderstood != tt.bad || a.Lines != a.Understood+a.Blank+a.NotUnderstood {
				t.Errorf("account %+v, want %d not understood", a, tt.bad)
			}
			crlf := read(t, strings.ReplaceAll(tt.csv, "\n", "\r\n"))
			if d := cmp.Diff(tt.want, describe(crlf)); d != "" {
				t.Errorf("with CRLF (-want +got):\n%s", d)
			}
		})
	}
}

func TestSaysHowItReadColumns(t *testing.T) {
	tl := read(t, "2026/11/20 19:53:32.391, 0, GPU-5d, 0, 143156, 143771, 0, 78.28, 33\n")
	if n := strings.Join(tl.Sources[0].Notes, ""); !strings.Contains(n, "2 index") || !strings.Contains(n, "4 memory.used") || !strings.Contains(n, "6 memory.total") {
		t.Errorf("notes: %s", n)
	}
}

// TestUTF16 reads what Windows PowerShell's > makes of a dump.
func TestUTF16(t *testing.T) {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune("timestamp, index, memory.used [MiB]\r\n2026/11/20 19:45:31.000, 0, 143 MiB\r\n")) {
		b = append(b, byte(u), byte(u>>8))
	}
	if Sniff(b) != timeline.NvidiaSMI {
		t.Error("not told")
	}
	if got := describe(read(t, string(b))); len(got) != 1 || !strings.Contains(got[0], "used 143") {
		t.Errorf("got %v", got)
	}
}

func FuzzRead(f *testing.F) {
	for _, p := range []string{"nvidia_smi.csv", "nvidia_smi_apps.csv"} {
		b, err := os.ReadFile("../../testdata/nightly/" + p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:2000])
	}
	f.Add([]byte("2026/11/20 19:53:32.391, 0, GPU-5d, 0, 143156, 143771, 0, 78.28, 33\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		tl, err := Read(bytes.NewReader(b), 0)
		if err != nil {
			t.Fatal(err)
		}
		a := tl.Sources[0]
		if a.Lines != a.Understood+a.Blank+a.NotUnderstood {
			t.Errorf("account %+v", a)
		}
		for _, g := range tl.GPUs {
			if n := len(g.Time); n == 0 || len(g.UsedBytes) != n || len(g.FreeBytes) != n || len(g.Util) != n {
				t.Errorf("columns differ: %+v", g)
			}
		}
		Sniff(b)
	})
}
