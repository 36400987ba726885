// Package kernlog reads kernel logs: dmesg with seconds since boot, dmesg -T, and journalctl or
// syslog. It takes the driver's Xid reports, out-of-memory kills and segfaults out of them; every
// other kernel line is understood as such and holds nothing for us.
package kernlog

import (
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"postmortem/ingest/lines"
	"postmortem/ingest/timeline"
)

var (
	relative = regexp.MustCompile(`^(?:<\d+>)?\[ *(\d+)\.(\d{6})\] (.*)$`)
	ctime    = regexp.MustCompile(`^\[((?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})\] (.*)$`)
	journal  = regexp.MustCompile(`^([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) \S+ kernel: (.*)$`)
	isoForm  = regexp.MustCompile(`^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?)(Z|[+-]\d\d:?\d\d)?\s+\S+ kernel: (.*)$`)

	// NVRM: Xid (PCI:0000:00:06): 43, pid=441, name=python3, channel 0x00000032; PCI:, pid and name
	// may be missing and the pid may be quoted or <unknown>.
	xid   = regexp.MustCompile(`NVRM: Xid \((?:PCI:)?([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.\d)?\): (\d+),(?: pid='?(\d+|<unknown>)'?)?(?:,? ?name=([^,]*))?,? ?(.*)`)
	kill  = regexp.MustCompile(`(?:Out of memory|Memory cgroup out of memory): Killed process (\d+) \(([^)]*)\)`)
	fault = regexp.MustCompile(`^(\S+)\[(\d+)\]: segfault at `)
)

// Sniff says whether the head of a file looks like a kernel log: the first line that is not blank
// has one of its forms, and a word of the kernel's stands somewhere.
func Sniff(head []byte) bool {
	for _, line := range strings.Split(string(head), "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		_, _, ok := split(strings.TrimRight(line, "\r"))
		return ok
	}
	return false
}

// Read reads a kernel log to its end. Times of dmesg -T and journalctl are naive local; seconds since
// boot stay without a time (TimeUnknown), since the log does not say when the boot was; the event
// then keeps its seconds in the fact boot_seconds. journalctl's default form has no year: its times have
// the year 0 (timeline.NoYear) until they are put beside other inputs.
func Read(r io.Reader, src int) (*timeline.Timeline, error) {
	tl := &timeline.Timeline{Sources: []timeline.Source{{Kind: timeline.KernelLog}}}
	acc := &tl.Sources[0]
	bad := timeline.Problem{Pos: timeline.Pos{Source: src}, Msg: "line not understood"}
	lr := lines.NewReader(r)
	for n := 1; ; n++ {
		line, _, err := lr.Next()
		if err != nil {
			if bad.Count > 0 {
				tl.Problems = append(tl.Problems, bad)
			}
			acc.Events, acc.Bytes = len(tl.Events), lr.Bytes
			if err == io.EOF {
				err = nil
			}
			return tl, err
		}
		acc.Lines++
		if strings.TrimSpace(line) == "" {
			acc.Blank++
			continue
		}
		st, msg, ok := split(line)
		if !ok {
			acc.NotUnderstood++
			if bad.Count++; bad.Count == 1 {
				bad.Pos.Line, bad.Text = n, lines.Cut(line, 200)
			}
			continue
		}
		acc.Understood++
		if e, ok := parse(msg); ok {
			e.Pos = timeline.Pos{Source: src, Line: n}
			e.Stream, e.Process, e.Trial, e.Form = -1, -1, timeline.NoTrial, timeline.FormKernel
			e.Quality = timeline.TimeUnknown
			if !st.t.IsZero() {
				e.Time, e.Quality = st.t, timeline.TimeStated
			}
			if st.boot >= 0 {
				e.Facts = append(e.Facts, timeline.Fact{Name: "boot_seconds", Value: st.boot})
			}
			tl.Events = append(tl.Events, e)
		}
	}
}

type stamp struct {
	t    time.Time
	boot float64 // seconds since boot, -1 when the line has a date
}

// split takes the stamp off a kernel line.
func split(line string) (stamp, string, bool) {
	if m := relative.FindStringSubmatch(line); m != nil {
		sec, err := strconv.ParseFloat(m[1]+"."+m[2], 64)
		return stamp{boot: sec}, m[3], err == nil
	}
	if m := ctime.FindStringSubmatch(line); m != nil {
		t, err := time.ParseInLocation("Mon Jan _2 15:04:05 2006", m[1], timeline.Naive)
		return stamp{t: t, boot: -1}, m[2], err == nil
	}
	if m := isoForm.FindStringSubmatch(line); m != nil {
		s := strings.Replace(m[1], ",", ".", 1)
		if m[2] == "" {
			t, err := time.ParseInLocation("2006-01-02T15:04:05", s, timeline.Naive)
			return stamp{t: t, boot: -1}, m[3], err == nil
		}
		for _, layout := range []string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700"} {
			if t, err := time.Parse(layout, s+m[2]); err == nil {
				return stamp{t: t.UTC(), boot: -1}, m[3], true
			}
		}
		return stamp{}, "", false
	}
	if m := journal.FindStringSubmatch(line); m != nil {
		t, err := time.ParseInLocation("Jan _2 15:04:05", m[1], timeline.Naive)
		return stamp{t: t, boot: -1}, m[2], err == nil
	}
	return stamp{}, "", false
}

// parse makes an event of a kernel message that matters.
func parse(msg string) (timeline.Event, bool) {
	e := timeline.Event{Text: lines.Cut(msg, 4<<10)}
	if m := xid.FindStringSubmatch(msg); m != nil {
		e.Kind, e.Class, e.Key = timeline.Xid, "kernel/xid", m[1]
		e.Number, _ = strconv.Atoi(m[2])
		e.PID, _ = strconv.Atoi(m[3])
		return e, true
	}
	if m := kill.FindStringSubmatch(msg); m != nil {
		e.Kind, e.Class, e.Key = timeline.KernelOOM, "host/oom-killed", m[2]
		e.PID, _ = strconv.Atoi(m[1])
		return e, true
	}
	if m := fault.FindStringSubmatch(msg); m != nil {
		e.Kind, e.Class, e.Key = timeline.KernelFault, "host/segfault", m[1]
		e.PID, _ = strconv.Atoi(m[2])
		return e, true
	}
	return e, false
}
