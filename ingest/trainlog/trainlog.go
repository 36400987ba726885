// Package trainlog reads the text logs of training processes: Optuna's own lines, trial blocks,
// tracebacks, epoch lines, allocator figures, settings, supervisor lines and native error lines.
//
// A line is understood or counted as not understood; none is dropped in silence.
package trainlog

import (
	"bytes"
	"io"
	"path/filepath"
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
	p := &parser{
		cat: cat, src: src, tl: &timeline.Timeline{}, proc: -1,
		trial: timeline.NoTrial, failed: timeline.NoTrial,
		unread: map[string]*timeline.Problem{},
	}
	p.tl.Streams = []timeline.Stream{{Source: src, Name: strings.TrimSuffix(base, filepath.Ext(base))}}
	p.account.Kind = timeline.TrainLog
	n, err := eachSegment(r, p.segment)
	p.account.Bytes = n
	p.finish()
	return p.tl, err
}

type parser struct {
	cat     *failure.Catalogue
	src     int
	tl      *timeline.Timeline
	account timeline.Source

	proc   int // index of the current process, -1 before the first sign of one
	trial  int // the trial that is open
	failed int // the trial that Optuna just called failed, whose traceback may follow

	tb    *traceback    // open traceback
	block *handlerBlock // open report of a caught error
	inCfg bool          // within a trial's configuration block
	inWrn bool          // the line after a Python warning quotes its source
	inMsg bool          // lines that may belong to a message that began above

	lineOK   bool // whether a segment of the current line was understood
	lineFull bool // whether a segment of the current line was not blank

	anchor   time.Time // the last stamped time
	anchored int       // its line
	events   []int     // events that wait for the next anchor
	allocs   []int     // allocator figures that wait for it
	lastLine int
	noYear   bool // stamps without a year were met before any year was known

	unread map[string]*timeline.Problem // by shape of line
}

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
	} else {
		p.blank()
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
		p.lineOK, p.lineFull = false, false
	}
}

// understand says whether anything knows the segment.
func (p *parser) understand(s segment) bool {
	text := stripPrefix(s.text)
	st, stamped := findStamp(text)
	if stamped && st.noYear {
		stamped = p.addYear(&st)
	}
	if d := p.anchor.Sub(st.time); stamped && d > 0 && d < time.Second && st.time.Nanosecond() == 0 {
		st.time = p.anchor // a clock of whole seconds, not one that went back
	}
	if i := strings.Index(text, tracebackHead); i >= 0 {
		if p.tb == nil || !p.tb.chained {
			p.closeBlocks(s.line - 1)
		}
		p.openTraceback()
		return true
	}
	if p.tb != nil {
		if !stamped && p.tb.add(p, s.line, text) {
			return true
		}
		p.closeTraceback(s.line - 1)
	}
	if p.block != nil {
		if !stamped && p.block.add(s.line, text) {
			return true
		}
		p.closeHandler(s.line - 1)
	}
	msg := text
	if stamped {
		msg = strings.TrimLeft(text[st.end:], "] \t|:-")
		p.inCfg, p.inMsg = false, false
	}
	l := &logLine{no: s.line, text: text, msg: msg, stamped: stamped, time: st.time}
	ok := p.recognise(l)
	if stamped {
		p.settle(st.time, s.line, l.ends)
	}
	return ok
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

// stripPrefix takes off what launchers put before every line: torchrun's [rank0]: and [default0]:.
func stripPrefix(s string) string {
	for _, p := range []string{"[rank", "[default"} {
		if rest, ok := strings.CutPrefix(s, p); ok {
			if i := strings.Index(rest, "]:"); i > 0 && i <= 4 {
				return strings.TrimPrefix(rest[i+2:], " ")
			}
		}
	}
	return s
}

func (p *parser) blank() {
	if p.tb != nil {
		p.tb.blank = true
	}
	p.inWrn, p.inMsg = false, false
}

// event adds an event at a line, in the current process and trial.
func (p *parser) event(kind timeline.EventKind, l *logLine) *timeline.Event {
	p.begin(l.no)
	e := timeline.Event{Kind: kind, Pos: timeline.Pos{Source: p.src, Line: l.no}, Process: p.proc, Trial: timeline.NoTrial, Quality: timeline.TimeUnknown}
	if l.stamped {
		e.Time, e.Quality = l.time, timeline.TimeStated
	} else {
		p.events = append(p.events, len(p.tl.Events))
	}
	p.tl.Events = append(p.tl.Events, e)
	return &p.tl.Events[len(p.tl.Events)-1]
}

// failure adds error text that counts.
func (p *parser) failure(l *logLine, cl *failure.Class, form timeline.Form, text string) *timeline.Event {
	e := p.event(timeline.Failure, l)
	e.Class, e.Form = cl.ID, form
	e.Facts = cl.ReadFacts(text)
	e.Text = firstLine(text)
	e.Trial = p.trial
	if e.Trial == timeline.NoTrial {
		e.Trial = p.failed
	}
	return e
}

// firstLine cuts a message to its first line and to 4 KiB.
func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return lines.Cut(s, 4<<10)
}

// begin makes sure that there is a process for what follows.
func (p *parser) begin(line int) {
	if p.proc < 0 {
		p.newProcess(line, -1)
	}
}

func (p *parser) newProcess(line, restart int) *timeline.Process {
	if p.proc >= 0 {
		p.tl.Processes[p.proc].To = timeline.Pos{Source: p.src, Line: line - 1}
	}
	p.trial, p.failed = timeline.NoTrial, timeline.NoTrial
	p.tl.Processes = append(p.tl.Processes, timeline.Process{Restart: restart, From: timeline.Pos{Source: p.src, Line: line}})
	p.proc = len(p.tl.Processes) - 1
	return &p.tl.Processes[p.proc]
}

// settle gives everything that waits a time, now that the next stamp is known. An error report that
// a trial's or process's end follows happened just before it; other lines lie evenly between.
func (p *parser) settle(t time.Time, line int, ends bool) {
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
	if p.proc >= 0 {
		pr := &p.tl.Processes[p.proc]
		if pr.Start.IsZero() {
			pr.Start = t
		}
		pr.End = t
	}
}

// finish closes what is open and writes the account.
func (p *parser) finish() {
	p.closeBlocks(p.lastLine)
	for _, i := range p.events { // after the last stamp only a lower bound is known
		if e := &p.tl.Events[i]; !p.anchor.IsZero() {
			e.Quality, e.After, e.Time = timeline.TimeInterpolated, p.anchor, p.anchor
		}
	}
	for _, i := range p.allocs {
		if a := &p.tl.Allocs[i]; !p.anchor.IsZero() {
			a.Quality, a.Time = timeline.TimeInterpolated, p.anchor
		} else {
			a.Quality = timeline.TimeUnknown
		}
	}
	if p.proc >= 0 {
		p.tl.Processes[p.proc].To = timeline.Pos{Source: p.src, Line: p.lastLine}
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

func (p *parser) closeBlocks(line int) {
	if p.tb != nil {
		p.closeTraceback(line)
	}
	if p.block != nil {
		p.closeHandler(line)
	}
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
	for _, e := range tl.Events {
		if e.Kind != timeline.Setting && e.Kind != timeline.Epoch {
			return true
		}
	}
	acc := tl.Sources[0]
	return acc.Understood*10 >= acc.Lines-acc.Blank && acc.Understood > 0
}
