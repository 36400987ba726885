package kernlog

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"postmortem/ingest/timeline"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	for _, tt := range []struct{ name, line, want string }{
		{"dmesg -T", "[Fri Nov 20 19:45:56 2026] NVRM: Xid (PCI:0000:00:06): 43, pid=441, name=python3, channel 0x00000032", "xid 43 pid 441 2026-11-20 19:45:56 stated"},
		{"dmesg", "[  375.495792] NVRM: Xid (PCI:0000:00:06): 31, pid=3328, name=python3, Ch 0", "xid 31 pid 3328 unknown 375.495792"},
		{"journalctl -o short-iso", "2026-11-20T19:45:56+0900 host kernel: NVRM: Xid (PCI:0000:00:06): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", "xid 79 pid 0 2026-11-20 10:45:56 stated"},
		{"journalctl, which has no year", "Nov 20 19:45:56 host kernel: NVRM: Xid (PCI:0000:00:06): 43, pid=441, name=python3, channel 0x00000032", "xid 43 pid 441 0000-11-20 19:45:56 stated"},
		{"old Xid form", "[    1.000000] NVRM: Xid (0000:03:00): 14, 0001", "xid 14 pid 0 unknown 1"},
		{"out of memory", "[    1.000000] Memory cgroup out of memory: Killed process 3605 (python3) total-vm:24117860kB", "kernel-oom 0 pid 3605 unknown 1"},
		{"segfault", "[    1.000000] python3[3529]: segfault at 0 ip 00007f0c42b9bc5c sp 00007ffecc4a63e8 error 4 in libc.so.6", "kernel-fault 0 pid 3529 unknown 1"},
		{"anything else", "[    1.000000] eth0: link up", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tl, err := Read(strings.NewReader(tt.line+"\n"), 0)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, e := range tl.Events {
				got = fmt.Sprintf("%s %d pid %d ", e.Kind, e.Number, e.PID)
				if e.Quality == timeline.TimeStated {
					got += e.Time.Format("2006-01-02 15:04:05 ")
				}
				got += string(e.Quality)
				for _, f := range e.Facts {
					got += fmt.Sprint(" ", f.Value)
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if a := tl.Sources[0]; a.Understood != 1 || a.Lines != 1 {
				t.Errorf("account %+v", a)
			}
			if !Sniff([]byte(tt.line)) {
				t.Error("not told")
			}
		})
	}
	if Sniff([]byte("Epoch 1/3 | Train Loss: 1\n")) || Sniff([]byte("[I 2026-11-20 19:45:53,186] Trial 0 pruned.\n")) {
		t.Error("a training log was taken for a kernel log")
	}
}

func FuzzRead(f *testing.F) {
	b, err := os.ReadFile("../../testdata/nightly/dmesg.log")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("Nov 20 19:45:56 host kernel: NVRM: Xid (PCI:0000:00:06): 43\n\n[99999999999999999999999.000000] x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		tl, err := Read(bytes.NewReader(b), 0)
		if err != nil {
			t.Fatal(err)
		}
		if a := tl.Sources[0]; a.Lines != a.Understood+a.Blank+a.NotUnderstood {
			t.Errorf("account %+v", a)
		}
		Sniff(b)
	})
}
