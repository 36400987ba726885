// Package trainlog reads the text logs of training processes: Optuna's own lines, trial blocks,
// tracebacks, progress, allocator figures, settings, supervisor lines and native error lines.
//
// A log is read in this order: lines into segments (a progress bar writes many on one line), records
// out of JSON, writers by the prefix of their lines, tracebacks and reports as one record each, and only
// then error text, which counts on exception lines, on lines of level ERROR and on the native lines that
// the catalogue lists. A line is understood or counted as not understood; none is dropped in silence.
package trainlog

import (
	"bytes"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"postmortem/ingest/failure"
	"postmortem/ingest/lines"
	"postmortem/ingest/timeline"
)

// Read reads one log to its end. name is the file's name, from which the stream takes its own when
// the log does not say which worker wrote it. Naive times stay in timeline.Naive. The error is the
// reader's; no text is an error. src is the index that places in the result refer to.
func Read(r io.Reader, name string, src int, cat *failure.Catalogue) (*timeline.Timeline, error) {
	base := filepath.Base(name)
	p := &parser{cat: cat, src: src, tl: &timeline.Timeline{}, lanes: map[string]*lane{}, unread: map[string]*timeline.Problem{}, phrases: map[string]int{}}
	p.tl.Streams = []timeline.Stream{{Source: src, Name: strings.TrimSuffix(base, filepath.Ext(base))}}
	p.account.Kind = timeline.TrainLog
	n, err := eachSegment(r, p.segment)
	p.account.Bytes = n
	p.end()
	return p.tl, err
}

// A parser holds what all writers of a file share: the clock, the account, the runs.
type parser struct {
	cat        *failure.Catalogue
	src        int
	tl         *timeline.Timeline
	account    timeline.Source
	lanes      map[string]*lane // by prefix; the one without is always there
	order      []*lane          // as they appeared
	run        int
	rankFailed bool     // a writer with a prefix failed in this run
	banner     []string // shapes of the file's first lines
	headed     int      // lines looked at for them

	mainPID    string // the number by which the lines without a prefix name their process
	unnumbered int    // stamped lines without one
	speaking   *lane  // who wrote the last stamped line, when not the main process

	lineOK   bool   // whether a segment of the current line was understood
	lineFull bool   // whether a segment of the current line was not blank
	lineLane string // prefix of the current line

	anchor   time.Time // the last stamped time
	anchored int       // its line
	events   []int     // events that wait for the next anchor
	allocs   []int     // allocator figures that wait for it
	lastLine int
	noYear   bool // stamps without a year were met before any year was known

	recent  [leadLines]string // the last lines that were not blank, oldest first
	unread  map[string]*timeline.Problem
	phrases map[string]int // indices of tl.Phrases by shape
}

// leadLines is how many lines before a failure are kept with it.
const leadLines = 3

// maxLanes bounds the writers that are told apart; a file with more is no log of ranks.
const maxLanes = 512

// segment takes one piece of the log.
func (p *parser) segment(s segment) {
	p.lastLine = s.line
	if s.cut {
		p.problem(s.line, "a line is longer than 1 MiB; the rest of it was left out", "")
	}
	if s.text != "" {
		p.lineFull = true
		if p.understand(s) {
			p.lineOK = true
		} else if s.last {
			p.notUnderstood(s)
		}
		copy(p.recent[:], p.recent[1:])
		p.recent[leadLines-1] = s.text
	} else {
		for _, w := range p.order {
			w.blank()
		}
	}
	if s.last {
		p.account.Lines++
		switch {
		case !p.lineFull:
			p.account.Blank++
		case p.lineOK:
			p.account.Understood++
		default:
			p.account.NotUnderstood++
		}
		p.lineOK, p.lineFull, p.lineLane = false, false, ""
	}
}

// understand says whether anything knows the segment.
func (p *parser) understand(s segment) bool {
	before := len(p.tl.Events)
	defer func() { p.keepBanner(s.text, before) }()
	r, ok := unwrap(s.text)
	if !ok {
		r.lines = unglue(s.text)
	}
	known := false
	for _, text := range r.lines {
		text = strings.TrimRight(text, " \t")
		if text == "" {
			continue
		}
		name, rest := splitLane(text)
		if name == "" {
			name = p.lineLane // a bar's later pieces do not repeat the prefix
		}
		p.lineLane = name
		if rest == "" {
			continue
		}
		if p.writer(name).understand(s.line, rest) {
			known = true
		}
	}
	if r.timed && (!r.time.noYear || p.addYear(&r.time)) {
		p.settle(nil, r.time.time, s.line, false)
	}
	return known
}

// writer is the lane of that prefix.
func (p *parser) writer(name string) *lane {
	w := p.lanes[name]
	if w == nil {
		if len(p.lanes) >= maxLanes {
			name = ""
		}
		if w = p.lanes[name]; w == nil {
			w = &lane{parser: p, lane: name, proc: -1, trial: timeline.NoTrial, failed: timeline.NoTrial}
			p.lanes[name] = w
			p.order = append(p.order, w)
		}
	}
	return w
}

// addYear gives a stamp without a year the year of the last full one. Around New Year the nearer
// year is taken.
func (p *parser) addYear(st *stamp) bool {
	if p.anchor.IsZero() {
		p.noYear = true
		return false
	}
	st.time = timeline.NearestYear(st.time, p.anchor)
	return true
}

// settle gives everything that waits a time, now that the next stamp is known. An error report that
// a trial's or process's end follows happened just before it; other lines lie evenly between. w is the
// writer of the stamp, if one is known.
func (p *parser) settle(w *lane, t time.Time, line int, ends bool) {
	prev, from := p.anchor, p.anchored
	if !prev.IsZero() && t.Before(prev) { // an older run was appended, or the clock was set back
		prev = time.Time{}
	}
	between := func(at int) time.Time {
		if prev.IsZero() || line <= from {
			return t
		}
		return prev.Add(time.Duration(float64(t.Sub(prev)) * float64(at-from) / float64(line-from)))
	}
	for _, i := range p.events {
		e := &p.tl.Events[i]
		e.Quality, e.After, e.Before = timeline.TimeInterpolated, prev, t
		e.Time = between(e.Pos.Line)
		if e.Kind == timeline.Failure && ends {
			e.Time = t
		}
	}
	for _, i := range p.allocs {
		a := &p.tl.Allocs[i]
		a.Quality, a.Time = timeline.TimeInterpolated, between(a.Pos.Line)
	}
	p.events, p.allocs = p.events[:0], p.allocs[:0]
	p.anchor, p.anchored = t, line
	if w != nil && w.proc >= 0 {
		pr := &p.tl.Processes[w.proc]
		if pr.Start.IsZero() {
			pr.Start = t
		}
		pr.End = t
	}
}

// closeLanes ends what every writer has open, and their processes.
func (p *parser) closeLanes(line int) {
	for _, w := range p.order {
		w.closeBlocks(line)
		w.endProcess(line)
	}
}

// end closes what is open and writes the account.
func (p *parser) end() {
	if w := p.lanes[""]; w != nil && w.proc >= 0 {
		p.tl.Processes[w.proc].Tail = p.lead()
	}
	p.closeLanes(p.lastLine)
	at := p.anchor // after the last stamp only a lower bound is known, and how long epochs say that they took
	for _, i := range p.events {
		if e := &p.tl.Events[i]; !p.anchor.IsZero() {
			if e.Kind == timeline.Epoch {
				at = at.Add(e.Metric.Took)
			}
			e.Quality, e.After, e.Time = timeline.TimeInterpolated, p.anchor, at
		}
	}
	for _, i := range p.allocs {
		if a := &p.tl.Allocs[i]; !p.anchor.IsZero() {
			a.Quality, a.Time = timeline.TimeInterpolated, p.anchor
		} else {
			a.Quality = timeline.TimeUnknown
		}
	}
	if p.noYear {
		p.account.Notes = append(p.account.Notes, "some lines have times without a year and no line before them has one; they lie between their neighbours")
	}
	for _, pr := range p.unread {
		p.tl.Problems = append(p.tl.Problems, *pr)
	}
	p.account.Events, p.account.Samples = len(p.tl.Events), len(p.tl.Allocs)
	p.tl.Sources = []timeline.Source{p.account}
	p.tl.Sort()
}

// lead is the lines before the current one.
func (p *parser) lead() []string {
	var out []string
	for _, l := range p.recent {
		if l != "" {
			out = append(out, strings.Clone(lines.Cut(l, 200)))
		}
	}
	return out
}

// Sniff says whether the head of a file looks like a training log: text of which a fair part is
// understood, or which reports a failure.
func Sniff(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return false
	}
	tl, err := Read(bytes.NewReader(head), "", 0, failure.Default())
	if err != nil {
		return false
	}
	if slices.ContainsFunc(tl.Events, func(e timeline.Event) bool { return e.Kind != timeline.Setting && e.Kind != timeline.Epoch }) {
		return true
	}
	acc := tl.Sources[0]
	return acc.Understood*10 >= acc.Lines-acc.Blank && acc.Understood > 0
}
