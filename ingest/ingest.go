// Package ingest turns files and folders into one timeline: it tells what each input is by its
// content, runs the reader of that format, puts all times on one axis and joins trials with logs.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"postmortem/ingest/failure"
	"postmortem/ingest/kernlog"
	"postmortem/ingest/nvidiasmi"
	"postmortem/ingest/optuna"
	"postmortem/ingest/smimon"
	"postmortem/ingest/snapshot"
	"postmortem/ingest/timeline"
	"postmortem/ingest/trainlog"
)

// An Input is one file, or standard input.
type Input struct {
	Name string // as people know it
	Path string // where it is; "" for standard input
	r    io.Reader
}

func (in Input) open() (io.ReadCloser, error) {
	if in.r != nil {
		return io.NopCloser(in.r), nil
	}
	return os.Open(in.Path)
}

// A Format is an input format: how to tell it and how to read it.
type Format struct {
	Kind  timeline.Kind
	Sniff func(head []byte) bool
	Read  func(ctx context.Context, in Input, src int, cat *failure.Catalogue) (*timeline.Timeline, error)
}

// Formats are the formats that are read, the surest to tell first. A new one is a line here.
var Formats = []Format{
	{timeline.OptunaSQLite, optuna.Sniff, func(ctx context.Context, in Input, src int, _ *failure.Catalogue) (*timeline.Timeline, error) {
		return optuna.Read(ctx, in.Path, src)
	}},
	{timeline.NvidiaSMI, func(head []byte) bool { return nvidiasmi.Sniff(head) != "" }, text(func(r io.Reader, _ string, src int, _ *failure.Catalogue) (*timeline.Timeline, error) {
		return nvidiasmi.Read(r, src)
	})},
	{timeline.NvidiaDmon, func(head []byte) bool { return smimon.Sniff(head) != "" }, text(func(r io.Reader, _ string, src int, _ *failure.Catalogue) (*timeline.Timeline, error) {
		return smimon.Read(r, src)
	})},
	{timeline.TorchSnapshot, snapshot.Sniff, text(func(r io.Reader, _ string, src int, _ *failure.Catalogue) (*timeline.Timeline, error) {
		return snapshot.Read(r, src)
	})},
	{timeline.KernelLog, kernlog.Sniff, text(func(r io.Reader, _ string, src int, _ *failure.Catalogue) (*timeline.Timeline, error) {
		return kernlog.Read(r, src)
	})},
	{timeline.TrainLog, trainlog.Sniff, text(trainlog.Read)},
}

// text makes a Format's Read of a reader of text.
func text(read func(io.Reader, string, int, *failure.Catalogue) (*timeline.Timeline, error)) func(context.Context, Input, int, *failure.Catalogue) (*timeline.Timeline, error) {
	return func(ctx context.Context, in Input, src int, cat *failure.Catalogue) (*timeline.Timeline, error) {
		f, err := in.open()
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return read(ctxReader{ctx, f}, in.Name, src, cat)
	}
}

// A ctxReader ends when its context does.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// A Request says what to read.
type Request struct {
	Paths      []string  // files and folders, told by content; "-" is a log on Stdin
	Databases  []string  // Optuna storages
	Logs       []string  // globs of training logs
	GPUs       []string  // globs of nvidia-smi dumps
	KernelLogs []string  // globs of kernel logs
	Studies    []string  // only these; empty for all
	Stdin      io.Reader // for "-"
	AllowEmpty bool      // whether storages without any trial are in order

	Zone      *time.Location // of naive times, when the user gave one
	Catalogue *failure.Catalogue
}

// ErrNothing is returned when there was no input in what was given.
var ErrNothing = errors.New("nothing to read")

// An InputError is an input that cannot be read at all.
type InputError struct {
	Name string
	Err  error
}

func (e *InputError) Error() string { return e.Name + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Err }

// Read reads everything into one timeline. What cannot be read at all is an *InputError, of which
// all are joined; a file of a folder that is no input is skipped and listed.
func Read(ctx context.Context, req Request) (*timeline.Timeline, error) {
	jobs, skipped, err := plan(req)
	if err != nil {
		return nil, err
	}
	jobs, foreign, parts, errs := readOwn(ctx, jobs, req.Catalogue)
	skipped = append(skipped, foreign...)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := name(jobs, parts, errs); err != nil {
		return nil, err
	}
	if len(jobs) == 0 {
		return nil, ErrNothing
	}
	if err := chooseStudies(parts, req.Studies); err != nil {
		return nil, err
	}
	tl := merge(parts, req.Zone)
	if !req.AllowEmpty {
		if err := refuseEmpty(tl); err != nil {
			return nil, err
		}
	}
	tl.Skipped = skipped
	join(tl)
	tl.Sort()
	return tl, nil
}

// readOwn reads all inputs but the databases that are somebody else's and were only found in a folder.
func readOwn(ctx context.Context, jobs []job, cat *failure.Catalogue) (own []job, foreign []timeline.Skipped, parts []*timeline.Timeline, errs []error) {
	parts, errs = readJobs(ctx, jobs, cat)
	for i, j := range jobs {
		if j.found && errors.Is(errs[i], optuna.ErrForeign) {
			foreign = append(foreign, timeline.Skipped{Name: j.in.Name, Why: timeline.SkipNotAnInput})
		} else {
			own = append(own, j)
		}
	}
	if len(foreign) > 0 { // places refer to sources by index: read again without them
		parts, errs = readJobs(ctx, own, cat)
	}
	return own, foreign, parts, errs
}

// name gives the parts and the errors the names of their inputs. An input of which nothing was
// understood is an error too.
func name(jobs []job, parts []*timeline.Timeline, errs []error) error {
	for i, p := range parts {
		if errs[i] != nil {
			errs[i] = &InputError{jobs[i].in.Name, plain(errs[i])}
			continue
		}
		s := &p.Sources[0]
		s.Name = jobs[i].in.Name
		if s.Understood == 0 && s.Samples == 0 && s.Kind != timeline.OptunaSQLite {
			errs[i] = &InputError{s.Name, fmt.Errorf("none of its %d lines is understood as %s", s.Lines, s.Kind)}
		}
	}
	return errors.Join(errs...)
}

// refuseEmpty makes an error of a storage without a single trial when there is nothing else: an empty
// result must not pass for a good one.
func refuseEmpty(tl *timeline.Timeline) error {
	for _, s := range tl.Sources {
		if s.Kind != timeline.OptunaSQLite {
			return nil
		}
	}
	for _, s := range tl.Studies {
		if len(s.Trials) > 0 {
			return nil
		}
	}
	if len(tl.Studies) == 1 {
		return &InputError{fmt.Sprintf("study %q", tl.Studies[0].Name), errors.New("has no trials")}
	}
	return &InputError{tl.Sources[0].Name, errors.New("the storage has no trials")}
}

// readJobs reads all inputs, as many at a time as there are processors.
func readJobs(ctx context.Context, jobs []job, cat *failure.Catalogue) ([]*timeline.Timeline, []error) {
	parts := make([]*timeline.Timeline, len(jobs))
	errs := make([]error, len(jobs))
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, j := range jobs {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			parts[i], errs[i] = j.format.Read(ctx, j.in, i, cat)
		})
	}
	wg.Wait()
	return parts, errs
}

// plain takes the path out of the operating system's errors: the name is added once, by the caller.
func plain(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// chooseStudies drops the studies that were not asked for.
func chooseStudies(parts []*timeline.Timeline, names []string) error {
	if len(names) == 0 {
		return nil
	}
	want := map[string]bool{}
	for _, n := range names {
		want[n] = true
	}
	found := map[string]bool{}
	var have []string
	for _, p := range parts {
		var kept []timeline.Study
		for _, s := range p.Studies {
			have = append(have, s.Name)
			if want[s.Name] {
				found[s.Name] = true
				kept = append(kept, s)
			}
		}
		p.Studies = kept
	}
	for _, n := range names {
		if !found[n] {
			return &InputError{fmt.Sprintf("study %q", n), fmt.Errorf("not in the storage, which has %q", have)}
		}
	}
	return nil
}

// merge puts the parts together and all times on one axis.
func merge(parts []*timeline.Timeline, zone *time.Location) *timeline.Timeline {
	tl := &timeline.Timeline{Clocks: place(parts, zone)}
	for _, p := range parts {
		streams, procs := len(tl.Streams), len(tl.Processes)
		for i := range p.Processes {
			p.Processes[i].Stream += streams
		}
		for i := range p.Events {
			e := &p.Events[i]
			if e.Stream >= 0 {
				e.Stream += streams
			}
			if e.Process >= 0 {
				e.Process += procs
			}
		}
		for i := range p.Allocs {
			p.Allocs[i].Stream += streams
			p.Allocs[i].Process += procs
		}
		for i := range p.Phrases {
			p.Phrases[i].Stream += streams
		}
		tl.Phrases = append(tl.Phrases, p.Phrases...)
		tl.Sources = append(tl.Sources, p.Sources...)
		tl.Studies = append(tl.Studies, p.Studies...)
		tl.Streams = append(tl.Streams, p.Streams...)
		tl.Processes = append(tl.Processes, p.Processes...)
		tl.Events = append(tl.Events, p.Events...)
		tl.Allocs = append(tl.Allocs, p.Allocs...)
		tl.GPUs = append(tl.GPUs, p.GPUs...)
		tl.Tenants = append(tl.Tenants, p.Tenants...)
		tl.Snapshots = append(tl.Snapshots, p.Snapshots...)
		tl.Problems = append(tl.Problems, p.Problems...)
	}
	oneDumpACard(tl)
	tl.Sort()
	return tl
}
