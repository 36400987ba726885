package smimon

import (
	"os"
	"strings"
	"testing"
	"time"

	"postmortem/ingest/timeline"
)

const dmon = `#Date        Time         gpu    pwr  gtemp  mtemp     sm    mem     fb   bar1
#YYYYMMDD    HH:MM:SS     Idx      W      C      C      %      %     MB     MB
 20261120    19:45:31       0    125     35     34     20      0    512      1
 20261120    19:45:31       1    120     35      -      -      0      -      1
#Date        Time         gpu     fb     sm
#YYYYMMDD    HH:MM:SS     Idx     MB      %
 20261120    19:45:32       0   1024     50

 20261120    19:45:33       0
`

func read(t *testing.T, text string) *timeline.Timeline {
	t.Helper()
	tl, err := Read(strings.NewReader(text), 0)
	if err != nil {
		t.Fatal(err)
	}
	s := tl.Sources[0]
	if s.Lines != s.Understood+s.Blank+s.NotUnderstood {
		t.Errorf("the account does not add up: %+v", s)
	}
	return tl
}

func TestDmon(t *testing.T) {
	tl := read(t, dmon)
	if Sniff([]byte(dmon)) != timeline.NvidiaDmon || tl.Sources[0].Kind != timeline.NvidiaDmon {
		t.Errorf("kind %s", tl.Sources[0].Kind)
	}
	if len(tl.GPUs) != 2 || tl.Sources[0].Samples != 3 || tl.Sources[0].NotUnderstood != 1 {
		t.Fatalf("%+v %+v", tl.GPUs, tl.Sources[0])
	}
	g := tl.GPUs[0]
	if g.UsedBytes[1] != 1<<30 || g.Util[1] != 0.5 || g.Time[1].Format(time.DateTime) != "2026-11-20 19:45:32" || tl.GPUs[1].UsedBytes[0] != -1 || tl.GPUs[1].Util[0] != -1 {
		t.Errorf("%+v", tl.GPUs)
	}
}

func TestPmon(t *testing.T) {
	text := "#Date        Time         gpu         pid   type     sm     fb    command \n#YYYYMMDD    HH:MM:SS     Idx           #    C/G      %     MB    name \n" +
		" 20261120    19:53:34       0          -     -      -      -    -              \n 20261120    19:53:35       0       2184     C      3    540    python3        \n 20261120    19:53:36       0       2184     C      3    640    NVIDIA Overlay. \n"
	tl := read(t, text)
	if Sniff([]byte(text)) != timeline.NvidiaPmon || len(tl.Tenants) != 1 || len(tl.Tenants[0].Time) != 2 || tl.Tenants[0].UsedBytes[1] != 640<<20 || tl.Tenants[0].PID != 2184 || tl.Sources[0].NotUnderstood != 0 {
		t.Errorf("%+v %+v", tl.Tenants, tl.Sources[0])
	}
	tl = read(t, "# gpu   pid  type  sm  fb  command\n# Idx     #   C/G   %  MB  name\n    0  2184     C   3 540  python3\n")
	if len(tl.Tenants) != 0 || len(tl.Problems) != 1 || !strings.Contains(tl.Problems[0].Msg, "-o DT") {
		t.Errorf("undated rows: %+v %+v", tl.Tenants, tl.Problems)
	}
}

func TestRecorded(t *testing.T) {
	f, err := os.Open("../../testdata/leak/pmon.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tl, err := Read(f, 0)
	if err != nil || tl.Sources[0].NotUnderstood != 0 || len(tl.Tenants) < 2 {
		t.Errorf("%v %+v", err, tl.Sources[0])
	}
}

func TestSniff(t *testing.T) {
	for _, s := range []string{"", "# a comment", "# gpu cluster notes", "timestamp, index, memory.used [MiB]", "#!/bin/sh"} {
		if k := Sniff([]byte(s)); k != "" {
			t.Errorf("Sniff(%q) = %s", s, k)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(dmon)
	f.Add("# gpu pid type sm fb command\n 0 - - - - -\n")
	f.Fuzz(func(t *testing.T, text string) { read(t, text) })
}
