package trainlog

import (
	"regexp"
	"strings"
	"time"

	"postmortem/ingest/failure"
	"postmortem/ingest/lines"
	"postmortem/ingest/timeline"
)

// A lane is one writer of a file: the process whose lines carry one prefix, or none. Its state is what
// the meaning of its next line depends on.
type lane struct {
	*parser
	lane string

	proc   int // index of the current process, -1 before its first sign
	trial  int // the trial that is open
	failed int // the trial that Optuna just called failed, whose traceback may follow
	trials bool

	tb     *traceback    // open traceback
	block  *handlerBlock // open report of a caught error
	inCfg  bool          // within a trial's configuration block
	inWrn  bool          // the line after a Python warning quotes its source
	inMsg  bool          // lines that may belong to a message that began above
	before notice        // what the last line announced
	table  summary       // memory_summary's table

	mixed bool // several processes write these lines: one's progress says nothing of another's end
	life
}

// A life is what is known of a lane's current process.
type life struct {
	count   [units]float64 // how far each count has come
	counted [units]bool
	pending []waiting // failures that no progress has followed yet
	nan     bool      // the last loss was no number
	lowest  float64   // the lowest loss of an epoch, 0 before the first
	high    int       // epochs in a row whose loss was far above it
	dead    bool      // an error that no process outlives was seen
	died    int       // its line
	raised  bool      // and it was an uncaught exception
	stopped bool      // and it was somebody's stop
	over    bool      // the process said it ended, well or with a status
	backs   int       // how often a count went back to the middle, as it does when two count
}

// A waiting failure is one that may yet prove to be survived.
type waiting struct {
	event   int            // index in the timeline
	count   [units]float64 // how far each count had come when it happened
	counted [units]bool
}

// A notice is what a line says about a traceback that follows it.
type notice int

const (
	nothingSaid notice = iota
	logged             // an ERROR of a logger: the traceback was caught
	inThread           // "Exception in thread …": only the thread dies
	inChild            // "Process SpawnProcess-1:": only the child dies
	ignored            // "Exception ignored in …": nobody dies
)

func noticeOf(l *logLine) notice {
	switch {
	case strings.HasPrefix(l.text, "Exception ignored in"), strings.HasPrefix(l.text, "Error in atexit."), strings.HasPrefix(l.text, "Error in sys.excepthook"):
		return ignored
	case strings.HasPrefix(l.text, "Exception in thread "):
		return inThread
	case strings.HasPrefix(l.text, "Process ") && strings.HasSuffix(l.text, ":"):
		return inChild
	case l.level == failing && letterLevel(l.text) == noLevel:
		return logged
	}
	return nothingSaid
}

// understand says whether anything knows the line.
func (w *lane) understand(line int, text string) bool {
	if w.lane == "" {
		if other := w.speaker(line, text); other != w {
			return other.understand(line, text)
		}
	}
	if i := headAt(text); i >= 0 {
		w.takeHead(line, text, i)
		return true
	}
	if w.tb != nil {
		if w.tb.add(w, line, text) {
			return true
		}
		if !w.tb.frames && !w.tb.chained { // its message is over, unless it goes on after an empty line
			if w.tb.lingers(w, text) {
				return false
			}
			w.closeTraceback(line - 1)
		}
	}
	l := w.read(line, text)
	if w.block != nil {
		if !l.stamped && w.block.add(w, line, text) {
			return true
		}
		w.closeHandler(line - 1)
	}
	if l.stamped {
		w.inCfg, w.inMsg = false, false
		if name, rest := splitLane(l.msg); w.lane == "" && name != "" && rest != "" { // a driver's time before the writer's name
			other := w.writer(name)
			ok := other.understand(line, rest)
			w.settle(other, l.time, line, false)
			return ok
		}
	}
	ok := w.recognise(l)
	if !ok {
		w.phrase(l)
	}
	if w.tb != nil && !w.tb.outlives(ok) {
		w.closeTraceback(line - 1)
	}
	w.before = noticeOf(l)
	if l.stamped {
		w.settle(w, l.time, line, l.ends)
	}
	return ok
}

// read takes a line's time and level off it.
func (w *lane) read(line int, text string) *logLine {
	l := &logLine{no: line, text: text, msg: text, level: levelOf(text)}
	st, found := findStamp(text)
	if !found {
		return l
	}
	l.msg = strings.TrimLeft(text[st.end:], "] \t|:-")
	l.msg = l.msg[len(program.FindString(l.msg)):]
	l.stamped = !st.noYear || w.addYear(&st)
	if d := w.anchor.Sub(st.time); d > 0 && d < time.Second && st.time.Nanosecond() == 0 {
		st.time = w.anchor // a clock of whole seconds, not one that went back
	}
	l.time = st.time
	return l
}

// program is what syslog and journald put between the time and the text.
var program = regexp.MustCompile(`^[\w.-]+ [\w./-]+\[\d+\]: `)

func (w *lane) blank() {
	if w.tb != nil {
		w.tb.blank = true
	}
	w.inWrn, w.inMsg = false, false
}

// event adds an event at a line, in the current process and trial.
func (w *lane) event(kind timeline.EventKind, l *logLine) *timeline.Event {
	w.begin(l.no)
	e := timeline.Event{Kind: kind, Pos: timeline.Pos{Source: w.src, Line: l.no}, Process: w.proc, Trial: timeline.NoTrial, Quality: timeline.TimeUnknown}
	if l.stamped {
		e.Time, e.Quality = l.time, timeline.TimeStated
	} else {
		w.events = append(w.events, len(w.tl.Events))
	}
	w.tl.Events = append(w.tl.Events, e)
	return &w.tl.Events[len(w.tl.Events)-1]
}

// failure adds error text that counts.
func (w *lane) failure(l *logLine, cl *failure.Class, form timeline.Form, text string) *timeline.Event {
	e := w.event(timeline.Failure, l)
	e.Class, e.Form = cl.ID, form
	e.Facts = cl.ReadFacts(text)
	e.Text = firstLine(text)
	e.Lead = w.lead()
	e.Trial = w.trial
	if e.Trial == timeline.NoTrial {
		e.Trial = w.failed
	}
	w.parser.rankFailed = w.rankFailed || w.lane != ""
	w.pending = append(w.pending, waiting{len(w.tl.Events) - 1, w.count, w.counted})
	return e
}

// fatal adds an error after which the process cannot have gone on. A process dies once: a second such
// error, or one after further progress, is another run's, unless it only follows the first.
func (w *lane) fatal(l *logLine, cl *failure.Class, form timeline.Form, text string) *timeline.Event {
	again := form == timeline.FormTraceback && (cl.Role == failure.Root || cl.Role == failure.Stop) && w.raised
	if w.lane == "" && (w.proc >= 0 && w.tl.Processes[w.proc].Exited && form == timeline.FormTraceback || !w.trials && (again || !w.mixed && w.died > 0 && w.tl.Processes[w.proc].LastProgress > w.died)) {
		count, counted := w.count, w.counted // the progress since the last death was this run's already
		w.nextRun(l.no)
		w.count, w.counted = count, counted
	}
	e := w.failure(l, cl, form, text)
	e.Fatal = true
	w.dead, w.died = true, l.no
	w.raised = w.raised || form == timeline.FormTraceback
	w.stopped = w.stopped || cl.Role == failure.Stop
	return e
}

// firstLine cuts a message to its first line and to 4 KiB.
func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return lines.Cut(s, 4<<10)
}

// begin makes sure that there is a process for what follows.
func (w *lane) begin(line int) {
	if w.proc < 0 {
		w.newProcess(line, -1)
	}
}

func (w *lane) newProcess(line, restart int) *timeline.Process {
	if w.lane == "" && (w.dead || w.over) {
		w.parser.run++
	}
	if m := w.lanes[""]; w.lane != "" && m != nil && m.proc >= 0 && w.tl.Processes[m.proc].Exited {
		w.parser.run++ // a rank speaks after its job had ended: this is the next job's
		m.endProcess(line - 1)
	}
	w.endProcess(line - 1)
	w.tl.Processes = append(w.tl.Processes, timeline.Process{Restart: restart, From: timeline.Pos{Source: w.src, Line: line}, Lane: w.lane, Run: w.run})
	w.proc = len(w.tl.Processes) - 1
	return &w.tl.Processes[w.proc]
}

// endProcess forgets the current process.
func (w *lane) endProcess(line int) {
	if w.proc >= 0 {
		w.tl.Processes[w.proc].To = timeline.Pos{Source: w.src, Line: line}
	}
	w.proc, w.trial, w.failed = -1, timeline.NoTrial, timeline.NoTrial
	w.life = life{}
}

func (w *lane) closeBlocks(line int) {
	if w.tb != nil {
		w.closeTraceback(line)
	}
	if w.block != nil {
		w.closeHandler(line)
	}
}
