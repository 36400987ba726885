// Package smimon reads the tables that nvidia-smi dmon and pmon print: a card's or a process's figures, a row
// for each card or process and second.
//
// Columns are separated by blanks and named by a header line that begins with #, followed by one with their
// units; both are printed again every few dozen rows, and the columns depend on -s and on the driver. A dash
// stands for no number. Memory is in MB, which are MiB. Without -o DT there are no times, and nothing can be
// made of the rows.
package smimon

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"postmortem/ingest/lines"
	"postmortem/ingest/timeline"
)

// Sniff tells dmon's and pmon's output by its first line; "" for anything else.
func Sniff(head []byte) timeline.Kind {
	line, _, _ := strings.Cut(string(head), "\n")
	h, ok := header(strings.TrimPrefix(line, "\ufeff"))
	switch {
	case !ok:
		return ""
	case slices.Contains(h, "pid"):
		return timeline.NvidiaPmon
	}
	return timeline.NvidiaDmon
}

// header reads a line of column names, in lower case.
func header(line string) ([]string, bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "#")
	if !ok {
		return nil, false
	}
	h := strings.Fields(strings.ToLower(rest))
	known := slices.Contains(h, "gpu") && (slices.Contains(h, "sm") || slices.Contains(h, "pwr") || slices.Contains(h, "fb") || slices.Contains(h, "pid"))
	return h, known
}

// Read reads one table to its end; src is the index that places in the result refer to. Times are in
// timeline.Naive.
func Read(r io.Reader, src int) (*timeline.Timeline, error) {
	d := &table{src: src, tl: &timeline.Timeline{Sources: []timeline.Source{{Kind: timeline.NvidiaDmon}}}, gpus: map[int]int{}, tenants: map[[2]int]int{}, bad: map[string]int{}}
	lr := lines.NewReader(r)
	for n := 1; ; n++ {
		line, ended, err := lr.Next()
		if err != nil {
			d.acc().Bytes = lr.Bytes
			if err == io.EOF {
				err = nil
			}
			return d.tl, err
		}
		d.line(n, line, ended)
	}
}

type table struct {
	src     int
	tl      *timeline.Timeline
	cols    []string
	gpus    map[int]int
	tenants map[[2]int]int
	bad     map[string]int // index of the problem, by message
}

func (d *table) acc() *timeline.Source { return &d.tl.Sources[0] }

func (d *table) line(n int, line string, ended bool) {
	d.acc().Lines++
	line = strings.TrimSpace(strings.TrimPrefix(line, "\ufeff"))
	switch {
	case line == "":
		d.acc().Blank++
		return
	case line[0] == '#':
		if h, ok := header(line); ok {
			d.cols = h
			if slices.Contains(h, "pid") {
				d.acc().Kind = timeline.NvidiaPmon
			}
		}
		d.acc().Understood++
		return
	}
	err := errors.New("a row before any header")
	if d.cols != nil {
		err = d.row(line, ended)
	}
	if err != nil {
		d.problem(n, err.Error(), line)
		return
	}
	d.acc().Understood++
}

func (d *table) problem(n int, msg, text string) {
	d.acc().NotUnderstood++
	if i, known := d.bad[msg]; known {
		d.tl.Problems[i].Count++
		return
	}
	d.bad[msg] = len(d.tl.Problems)
	d.tl.Problems = append(d.tl.Problems, timeline.Problem{Pos: timeline.Pos{Source: d.src, Line: n}, Msg: msg, Text: lines.Cut(text, 200), Count: 1})
}

// row takes one row. The last column of pmon is a command, which may hold blanks.
func (d *table) row(line string, ended bool) error {
	cells := strings.Fields(line)
	last := len(d.cols) - 1
	if d.cols[last] == "command" && len(cells) > len(d.cols) {
		cells = append(cells[:last:last], strings.Join(cells[last:], " "))
	}
	switch {
	case len(cells) < len(d.cols) && !ended:
		return errors.New("the last line is cut off")
	case len(cells) != len(d.cols):
		return fmt.Errorf("a row has not the %d columns of its header", len(d.cols))
	}
	cell := func(name string) string {
		if i := slices.Index(d.cols, name); i >= 0 {
			return cells[i]
		}
		return "-"
	}
	at, err := moment(cell("date"), cell("time"))
	if err != nil {
		return err
	}
	gpu, err := strconv.Atoi(cell("gpu"))
	if err != nil || gpu < 0 {
		return errors.New("a row has no readable card")
	}
	if d.acc().Kind == timeline.NvidiaPmon {
		return d.process(gpu, at, cell)
	}
	i, known := d.gpus[gpu]
	if !known {
		i = len(d.tl.GPUs)
		d.gpus[gpu] = i
		d.tl.GPUs = append(d.tl.GPUs, timeline.GPU{Source: d.src, Index: gpu, TotalBytes: -1})
	}
	g := &d.tl.GPUs[i]
	g.Time, g.UsedBytes, g.FreeBytes = append(g.Time, at), append(g.UsedBytes, mebibytes(cell("fb"))), append(g.FreeBytes, -1)
	g.Util = append(g.Util, -1)
	if v, err := strconv.ParseFloat(cell("sm"), 64); err == nil {
		g.Util[len(g.Util)-1] = v / 100
	}
	d.acc().Samples++
	return nil
}

// process takes a row of pmon; a card without processes has a row of dashes.
func (d *table) process(gpu int, at time.Time, cell func(string) string) error {
	if cell("pid") == "-" {
		return nil
	}
	pid, err := strconv.Atoi(cell("pid"))
	if err != nil {
		return errors.New("a row has no readable pid")
	}
	key := [2]int{gpu, pid}
	i, known := d.tenants[key]
	if !known {
		i = len(d.tl.Tenants)
		d.tenants[key] = i
		d.tl.Tenants = append(d.tl.Tenants, timeline.Tenant{Source: d.src, PID: pid, Name: cell("command")})
	}
	t := &d.tl.Tenants[i]
	t.Time, t.UsedBytes = append(t.Time, at), append(t.UsedBytes, mebibytes(cell("fb")))
	d.acc().Samples++
	return nil
}

// moment reads the columns that -o DT adds.
func moment(date, clock string) (time.Time, error) {
	if clock == "-" {
		return time.Time{}, errors.New("the rows have no times; record them with nvidia-smi dmon -o DT, or pmon -o DT")
	}
	if date == "-" {
		return time.Time{}, errors.New("the rows have a time of day and no date; record them with -o DT")
	}
	t, err := time.ParseInLocation("20060102 15:04:05", date+" "+clock, timeline.Naive)
	if err != nil {
		return t, errors.New("a row has no readable time")
	}
	return t, nil
}

// mebibytes reads a cell of memory; -1 where it is no number.
func mebibytes(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > 1<<40 {
		return -1
	}
	return n << 20
}
