package ingest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"postmortem/ingest/failure"
	"postmortem/ingest/optuna"
	"postmortem/ingest/timeline"
	"postmortem/ingest/trainlog"
)

// A LogRequest asks for one training log and what the log itself cannot know.
type LogRequest struct {
	Path       string    // "-" is Stdin
	KernelLogs []string  // globs
	ExitStatus *int      // of the process that wrote the log, as a shell or Python gives it
	Stdin      io.Reader // for "-"
	Zone       *time.Location
	Catalogue  *failure.Catalogue
}

// ReadLog reads one file as a training log, whatever is in it. A file that is empty or no text is an
// *InputError.
func ReadLog(ctx context.Context, req LogRequest) (*timeline.Timeline, error) {
	in := Input{Name: req.Path, Path: req.Path}
	if req.Path == "-" {
		in = Input{Name: "standard input", r: req.Stdin}
	}
	f, err := in.open()
	if err != nil {
		return nil, &InputError{in.Name, plain(err)}
	}
	defer f.Close()
	br := bufio.NewReaderSize(ctxReader{ctx, f}, headSize)
	head, err := br.Peek(headSize)
	if err != nil && err != io.EOF && !errors.Is(err, bufio.ErrBufferFull) {
		return nil, &InputError{in.Name, plain(err)}
	}
	switch {
	case len(head) == 0:
		return nil, &InputError{in.Name, skipError(timeline.SkipEmpty)}
	case optuna.Sniff(head):
		return nil, &InputError{in.Name, errors.New("this is a database; give it to postmortem report --db")}
	case bytes.Count(head, []byte{0})*10 > len(head):
		return nil, &InputError{in.Name, errors.New("this is no text")}
	}
	part, err := trainlog.Read(br, in.Name, 0, req.Catalogue)
	if err != nil {
		return nil, &InputError{in.Name, plain(err)}
	}
	part.Sources[0].Name = in.Name
	parts := []*timeline.Timeline{part}
	jobs, _, err := plan(Request{KernelLogs: req.KernelLogs})
	if err != nil {
		return nil, err
	}
	for i, j := range jobs {
		k, err := j.format.Read(ctx, j.in, i+1, req.Catalogue)
		if err != nil {
			return nil, &InputError{j.in.Name, plain(err)}
		}
		k.Sources[0].Name = j.in.Name
		parts = append(parts, k)
	}
	if req.ExitStatus != nil {
		exitWith(part, *req.ExitStatus)
	}
	tl := merge(parts, req.Zone)
	join(tl)
	tl.Sort()
	return tl, nil
}

// exitWith gives the last process of a log the status that it ended with.
func exitWith(tl *timeline.Timeline, status int) {
	last := -1
	for i, p := range tl.Processes {
		if last < 0 || p.Run > tl.Processes[last].Run || p.Run == tl.Processes[last].Run && p.Lane == "" {
			last = i
		}
	}
	end := timeline.Pos{Line: max(1, tl.Sources[0].Lines)}
	if last < 0 {
		last = 0
		tl.Processes = append(tl.Processes, timeline.Process{Restart: -1, From: timeline.Pos{Line: 1}, To: end})
	}
	p := &tl.Processes[last]
	p.Exited, p.ExitStatus, p.ExitLine = true, status, end.Line
	e := timeline.Event{Kind: timeline.ProcessExit, Key: timeline.GivenStatus, Number: status, Pos: end, Process: last, Trial: timeline.NoTrial,
		Quality: timeline.TimeUnknown, Time: p.End}
	if !p.End.IsZero() {
		e.Quality = timeline.TimeInterpolated
	}
	tl.Events = append(tl.Events, e)
}
