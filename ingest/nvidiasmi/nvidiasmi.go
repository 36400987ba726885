// Package nvidiasmi reads the CSV dumps of nvidia-smi: --query-gpu and --query-compute-apps, with and
// without header and units, columns in any order.
//
// Cells are separated by comma and space and never quoted; a header names a column "name [unit]"
// (nvidia-smi --help-query-gpu). A cell that is no number ("[N/A]", "ERR!") is unknown, never 0.
package nvidiasmi

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"postmortem/ingest/lines"
	"postmortem/ingest/timeline"
)

// sniffSize is how much of a dump is looked at before it is read; maxUTF16 how much of one in UTF-16 is
// read at all, since it is decoded in memory.
const (
	sniffSize = 256 << 10
	maxUTF16  = 1 << 30
)

// headLines is how many rows of a dump without header are looked at to tell its columns.
const headLines = 200

// Read reads one dump to its end; src is the index that places in the result refer to. Times are in
// timeline.Naive: nvidia-smi writes local time without a zone.
func Read(r io.Reader, src int) (*timeline.Timeline, error) {
	d := &dump{src: src, tl: &timeline.Timeline{}, gpus: map[gpuKey]int{}, tenants: map[tenantKey]int{}}
	d.tl.Sources = []timeline.Source{{Kind: timeline.NvidiaSMI}}
	lr := lines.NewReader(r)
	head, err := lr.Peek(sniffSize)
	if err != nil {
		return d.tl, err
	}
	if isUTF16(head) {
		all, err := io.ReadAll(io.LimitReader(lr, maxUTF16))
		if err != nil {
			return d.tl, err
		}
		d.acc().Notes = append(d.acc().Notes, "UTF-16")
		text := decode(all)
		lr = lines.NewReader(strings.NewReader(text))
		head = []byte(text[:min(len(text), sniffSize)])
	}
	d.inferColumns(string(head))
	for n := 1; ; n++ {
		line, ended, err := lr.Next()
		if err != nil {
			d.finish(lr.Bytes)
			if err == io.EOF {
				err = nil
			}
			return d.tl, err
		}
		d.line(n, strings.TrimSpace(strings.TrimPrefix(line, "\ufeff")), ended)
	}
}

type gpuKey struct {
	index int
	uuid  string
}

type tenantKey struct {
	uuid string
	pid  int
}

type dump struct {
	src     int
	tl      *timeline.Timeline
	cols    []column
	named   bool // the columns come from a header
	gpus    map[gpuKey]int
	tenants map[tenantKey]int
	lastT   time.Time // of the previous row, to number cards that the dump does not name
	inTick  int
	bad     map[string]int // index of the problem, by message
}

func (d *dump) acc() *timeline.Source { return &d.tl.Sources[0] }

// inferColumns tells the columns when the dump has no header.
func (d *dump) inferColumns(head string) {
	ls := strings.SplitN(head, "\n", headLines+1)
	for _, l := range ls {
		if _, ok := header(strings.TrimSpace(l)); ok {
			return
		}
	}
	cols, how := infer(rows(ls))
	if cols == nil {
		return
	}
	d.cols = cols
	d.acc().Notes = append(d.acc().Notes, "no header; columns told by their content: "+how)
	d.acc().Kind = kindOf(cols)
}

func (d *dump) problem(line int, msg, text string) {
	d.acc().NotUnderstood++
	if d.bad == nil {
		d.bad = map[string]int{}
	}
	if i, ok := d.bad[msg]; ok {
		d.tl.Problems[i].Count++
		return
	}
	text = lines.Cut(text, 200)
	d.bad[msg] = len(d.tl.Problems)
	d.tl.Problems = append(d.tl.Problems, timeline.Problem{Pos: timeline.Pos{Source: d.src, Line: line}, Msg: msg, Text: text, Count: 1})
}

func (d *dump) line(n int, line string, ended bool) {
	d.acc().Lines++
	if line == "" {
		d.acc().Blank++
		return
	}
	if cols, ok := header(line); ok { // also after a restart in the middle; the set may differ
		d.cols, d.named = cols, true
		d.acc().Kind = kindOf(cols)
		d.acc().Understood++
		return
	}
	for _, t := range errorTexts {
		if strings.Contains(line, t) && strings.Count(line, ",") < 2 {
			d.tl.Events = append(d.tl.Events, timeline.Event{Kind: timeline.GPUText, Quality: timeline.TimeInterpolated, Time: d.lastT, After: d.lastT,
				Pos: timeline.Pos{Source: d.src, Line: n}, Stream: -1, Process: -1, Trial: timeline.NoTrial, Text: line})
			d.acc().Understood++
			return
		}
	}
	if d.cols == nil {
		d.problem(n, "a row before any header, and its columns cannot be told", line)
		return
	}
	cells := split(line, d.cols)
	switch {
	case len(cells) != len(d.cols):
		if !ended {
			d.problem(n, "the last line is cut off", line)
		} else {
			d.problem(n, fmt.Sprintf("a row has not the %d columns of its header", len(d.cols)), line)
		}
		return
	case !ended && !strings.HasSuffix(line, "B") && !strings.HasSuffix(line, "%") && !strings.HasSuffix(line, "z") && !strings.HasSuffix(line, "W"):
		d.problem(n, "the last line is cut off", line) // a cut number still reads as a number
		return
	}
	if err := d.row(cells); err != nil {
		d.problem(n, err.Error(), line)
		return
	}
	d.acc().Understood++
	d.acc().Samples++
}

// split cuts a row into cells. A process name may hold commas: what is too much belongs to it.
func split(line string, cols []column) []string {
	cells := strings.Split(line, ",")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	for i, c := range cols {
		if extra := len(cells) - len(cols); c == process && extra > 0 {
			joined := strings.Join(cells[i:i+extra+1], ", ")
			cells = append(append(cells[:i:i], joined), cells[i+extra+1:]...)
		}
	}
	return cells
}

type reading struct {
	time                time.Time
	index, pid          int
	uuid, name, process string
	total, used, free   int64
	util                float64
}

// row takes one sample.
func (d *dump) row(cells []string) error {
	r := reading{index: -1, total: -1, used: -1, free: -1, util: -1}
	for i, c := range d.cols {
		cell := cells[i]
		switch c {
		case timestamp:
			t, err := parseTime(cell)
			if err != nil {
				return fmt.Errorf("a row has no readable time")
			}
			r.time = t
		case index:
			if n, err := strconv.Atoi(cell); err == nil {
				r.index = n
			}
		case uuid:
			r.uuid = cell
		case name:
			r.name = cell
		case total:
			r.total = mebibytes(cell)
		case used:
			r.used = mebibytes(cell)
		case free:
			r.free = mebibytes(cell)
		case util:
			if v, ok := plainNumber(cell, "%"); ok {
				r.util = v / 100
			}
		case pid:
			n, err := strconv.Atoi(cell)
			if err != nil {
				return fmt.Errorf("a row has no readable pid")
			}
			r.pid = n
		case process:
			r.process = cell
		}
	}
	if r.time.IsZero() {
		return fmt.Errorf("a row has no time; ask nvidia-smi for the column timestamp")
	}
	if r.pid != 0 {
		d.tenant(r)
	} else {
		d.gpu(r)
	}
	d.lastT = r.time
	return nil
}

// gpu adds a card's sample. Cards that the dump does not name are told by their order within a tick.
func (d *dump) gpu(r reading) {
	if r.index < 0 && r.uuid == "" {
		if !d.lastT.IsZero() && r.time.Sub(d.lastT).Abs() < 50*time.Millisecond {
			d.inTick++
		} else {
			d.inTick = 0
		}
		r.index = d.inTick
	}
	key := gpuKey{r.index, r.uuid}
	i, ok := d.gpus[key]
	if !ok {
		i = len(d.tl.GPUs)
		d.gpus[key] = i
		d.tl.GPUs = append(d.tl.GPUs, timeline.GPU{Source: d.src, Index: r.index, UUID: r.uuid, Name: r.name, TotalBytes: -1})
	}
	g := &d.tl.GPUs[i]
	g.TotalBytes = max(g.TotalBytes, r.total)
	g.Time = append(g.Time, r.time)
	g.UsedBytes = append(g.UsedBytes, r.used)
	g.FreeBytes = append(g.FreeBytes, r.free)
	g.Util = append(g.Util, r.util)
}

func (d *dump) tenant(r reading) {
	key := tenantKey{r.uuid, r.pid}
	i, ok := d.tenants[key]
	if !ok {
		i = len(d.tl.Tenants)
		d.tenants[key] = i
		d.tl.Tenants = append(d.tl.Tenants, timeline.Tenant{Source: d.src, UUID: r.uuid, PID: r.pid, Name: r.process})
	}
	t := &d.tl.Tenants[i]
	if !strings.HasPrefix(r.process, "[") {
		t.Name = r.process // a process that just died is named [No data]
	}
	t.Time = append(t.Time, r.time)
	t.UsedBytes = append(t.UsedBytes, r.used)
}

func (d *dump) finish(bytes int64) {
	d.acc().Bytes = bytes
	unnamed := 0
	for k := range d.gpus {
		if k.uuid == "" && d.named {
			hasIndex := false
			for _, c := range d.cols {
				hasIndex = hasIndex || c == index
			}
			if !hasIndex {
				unnamed++
			}
		}
	}
	if unnamed > 1 {
		d.acc().Notes = append(d.acc().Notes, fmt.Sprintf("the rows name no card; %d cards were told by their order within a tick", unnamed))
	}
	d.acc().Events = len(d.tl.Events)
}
