package trainlog

import (
	"regexp"
	"strings"

	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"
)

const tracebackHead = "Traceback (most recent call last)"

// headAt finds where a traceback begins, -1 for nowhere. It may stand behind a stamp, a progress bar or
// within the box that rich draws.
func headAt(text string) int { return strings.Index(text, tracebackHead) }

var (
	// exceptionLine is how Python ends a traceback: a dotted type and, mostly, a message.
	exceptionLine = regexp.MustCompile(`^([A-Za-z_][\w.]*)(?::(?: (.*))?)?$`)

	// typeName is a type whose name says that it is an exception.
	typeName = regexp.MustCompile(`(?:Error|Exception|Interrupt|Exit|Iteration|Unsupported|OutOfResources|Failed|Failure|Timeout|Expired|Empty|Full|Pruned|BadZipFile|NotFound|Abort|Exceeded|Died|Warning|Violation)\w*$`)

	// aloneLine is an exception line that may stand without its traceback.
	aloneLine = regexp.MustCompile(`^((?:[A-Za-z_]\w*\.)*_?[A-Z]\w*(?:Error|Exception|Interrupt|Unsupported|OutOfResources)|(?:[a-z_]\w*\.)+[a-z]\w*error)(?::(?: (.*))?)?$`)

	// dotted is an exception of a module, whose name need not say so.
	dotted = regexp.MustCompile(`^((?:[a-z_]\w*\.)+[A-Z]\w*): (.*)$`)

	fileLine   = regexp.MustCompile(`File "([^"]*)", line \d+(?:, in (.*))?`)
	causedInto = regexp.MustCompile(`^(?:ray\.exceptions\.)?RayTaskError\((\w+)\)`)
)

// chainLines are Python's words between chained tracebacks (traceback.py), and PyTorch's between the
// traceback of a parent and its child's.
var chainLines = []string{
	"During handling of the above exception, another exception occurred:",
	"The above exception was the direct cause of the following exception:",
}

// maxMessageLines is how many lines after an exception line may belong to its message; maxStrange how
// many lines of other writers may stand between a traceback's own.
const (
	maxMessageLines = 40
	maxStrange      = 60
	maxFrames       = 16 << 10
	maxLinger       = 12
)

// A traceback is one Python traceback with its chain.
type traceback struct {
	prefix  string // what stood before the head, when the next lines carry it too
	inner   bool   // its own exception line lies within frames (rich boxes, IPython)
	frames  bool   // still among the frames of the current exception
	blank   bool   // a blank line came since the exception line
	chained bool   // the next traceback continues this one
	below   bool   // what follows is another process's, within this one
	rules   int    // lines of === in torchrun's table
	said    notice
	report  string // class of the error that the line before the head reports
	first   string // function of the outermost frame
	text    strings.Builder
	indent  int // of the frames' File lines, -1 before the first
	strange int // lines of others since the head
	extra   int // message lines so far
	linger  int // lines after an empty one that may be its message's
	errs    []raised
	last    int      // line of the last frame
	lead    []string // the lines before it
}

type raised struct {
	typ, msg string
	line     int
	lead     []string
}

// takeHead begins a traceback, or continues the open one by the next of its chain.
func (w *lane) takeHead(line int, text string, at int) {
	prefix := text[:at]
	if w.tb != nil {
		inner := strings.HasSuffix(prefix, "Original ") && len(w.tb.errs) > 0
		if w.tb.chained || inner {
			w.tb.below = w.tb.below || inner
			w.tb.frames, w.tb.blank, w.tb.chained, w.tb.indent = true, false, false, -1
			return
		}
	}
	if said := strings.TrimSpace(prefix); said != "" && !strings.HasPrefix(said, "╭") {
		// What stood before it on the line may be a message of its own.
		w.closeBlocks(line - 1)
		if len(said) > 24 && levelOf(said) != noLevel {
			w.understand(line, said)
		}
	}
	w.closeBlocks(line - 1)
	w.tb = &traceback{frames: true, indent: -1, said: w.before, prefix: prefix, inner: strings.Contains(prefix, "╭") || strings.HasSuffix(text, "(most recent call last)")}
	if levelOf(prefix) == failing {
		w.tb.said = logged
	}
	if n := len(w.tl.Events); n > 0 && w.tl.Events[n-1].Kind == timeline.Failure && w.tl.Events[n-1].Pos.Line == line-1 {
		w.tb.report = w.tl.Events[n-1].Class
	}
	w.before = nothingSaid
	w.parser.rankFailed = w.rankFailed || w.lane != ""
}

// strip takes the prefix of the traceback's head off a line, its digits differing.
func (tb *traceback) strip(text string) string {
	tb.learn(text)
	if tb.prefix == "" || strings.TrimSpace(tb.prefix) == "" {
		return text
	}
	if n := sameShape(tb.prefix, text); n > 0 {
		return text[n:]
	}
	return text
}

// learn takes what stands before the first frame for the prefix of the lines that follow, where the head
// stood behind something else: the rest of a progress bar.
func (tb *traceback) learn(text string) {
	i := strings.Index(text, `  File "`)
	if i > 0 && i <= 80 && tb.indent < 0 && tb.frames {
		tb.prefix = text[:i]
	}
}

// sameShape says how many bytes of text have the shape of prefix, runs of digits being equal; 0 when it
// does not begin so.
func sameShape(prefix, text string) int {
	i, j := 0, 0
	for i < len(prefix) {
		if isDigit(prefix[i]) {
			if j >= len(text) || !isDigit(text[j]) {
				return 0
			}
			for i < len(prefix) && isDigit(prefix[i]) {
				i++
			}
			for j < len(text) && isDigit(text[j]) {
				j++
			}
			continue
		}
		if j >= len(text) || prefix[i] != text[j] {
			return 0
		}
		i, j = i+1, j+1
	}
	return j
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// add takes a line and says whether it belongs to the traceback.
func (tb *traceback) add(w *lane, line int, text string) bool {
	text = tb.strip(text)
	if text == "" {
		tb.blank = true
		return true
	}
	for _, c := range chainLines {
		if strings.HasPrefix(strings.TrimSpace(text), c) {
			tb.chained = true
			return true
		}
	}
	if strings.HasPrefix(text, "-- Process ") && strings.HasSuffix(text, "terminated with the following error:") {
		tb.chained, tb.below = true, true
		return true
	}
	if tb.frames {
		return tb.addFrame(w, line, text)
	}
	// After the exception line its message may go on, until something else is recognised.
	table := tb.rules < 2 && len(tb.errs) > 0 && strings.HasSuffix(tb.errs[len(tb.errs)-1].typ, "ChildFailedError")
	if table && strings.HasPrefix(text, "=====") {
		tb.rules++
	}
	if tb.chained || tb.extra >= maxMessageLines || len(tb.errs) == 0 || tb.blank && !boilerplate(text) && !table || !table && w.wouldRecognise(text) {
		return false
	}
	tb.extra++
	if e := &tb.errs[len(tb.errs)-1]; len(e.msg) < 4<<10 {
		e.msg += "\n" + text
	}
	return true
}

// addFrame takes a line while the frames go on.
func (tb *traceback) addFrame(w *lane, line int, text string) bool {
	body := strings.TrimLeft(text, " \t")
	depth := len(text) - len(body)
	if m := fileLine.FindStringSubmatch(body); m != nil && (depth > 0 || tb.inner) {
		if tb.indent < 0 {
			tb.indent = depth
			if !tb.below { // of a chain, the last begins at the program's top
				tb.first = m[2]
				if strings.HasPrefix(m[1], "<frozen runpy>") || strings.HasSuffix(m[1], "/runpy.py") {
					tb.first = "<module>"
				}
			}
		}
		tb.last, tb.lead = line, w.lead()
		if tb.text.Len() < maxFrames {
			tb.text.WriteString(body + "\n")
		}
		return true
	}
	if depth > 0 && (tb.indent < 0 || depth >= tb.indent || !aloneLine.MatchString(body)) {
		return true
	}
	if tb.inner && strings.IndexAny(text, "│╭╰┃❱") == 0 || tb.inner && (strings.HasPrefix(text, "File ") || strings.HasPrefix(text, "Cell ") || strings.HasPrefix(text, "-") || isDigit(text[0])) {
		return true
	}
	e, ok := tb.raisedBy(w, body)
	if !ok {
		return false
	}
	e.line, e.lead = line, w.lead()
	tb.errs = append(tb.errs, e)
	tb.frames, tb.blank, tb.extra = false, false, 0
	return true
}

// raisedBy reads an exception line. A line of another writer between the frames is none.
func (tb *traceback) raisedBy(w *lane, text string) (raised, bool) {
	if half, ok := untear(text); ok {
		text = half
	}
	m := exceptionLine.FindStringSubmatch(text)
	if m == nil {
		if c := causedInto.FindStringSubmatch(text); c != nil {
			_, msg, _ := strings.Cut(text, ": ")
			return raised{typ: c[1], msg: msg}, true
		}
		return raised{}, false
	}
	last := m[1][strings.LastIndexByte(m[1], '.')+1:]
	if last == "" {
		return raised{}, false
	}
	sure := typeName.MatchString(last) || w.cat.KnowsException(last) || strings.Contains(m[1], ".") && last[0] >= 'A' && last[0] <= 'Z'
	if !sure && (tb.strange > 0 || last[0] < 'A' || last[0] > 'Z' || levelOf(text) != noLevel || w.wouldRecognise(text) || isCount(text)) {
		return raised{}, false
	}
	return raised{typ: m[1], msg: m[2]}, true
}

// untear mends a line into which two writers printed the same beginning: SyntaxErrorSyntaxError: …
func untear(text string) (string, bool) {
	end := strings.IndexAny(text, ": ")
	if end < 0 {
		end = len(text)
	}
	if n := end / 2; n >= 4 && end%2 == 0 && text[:n] == text[n:end] {
		return text[n:], true
	}
	return text, false
}

// outlives says whether the traceback stays open after a line that is not its own: another writer's
// line may stand between its frames, but after the exception line it is over.
func (tb *traceback) outlives(known bool) bool {
	if tb.strange++; tb.frames && tb.strange <= maxStrange {
		return true
	}
	return tb.chained && !known && tb.strange <= maxStrange
}

// lingers says whether the message may go on after an empty line: some do, and end in a chain after all.
func (tb *traceback) lingers(w *lane, text string) bool {
	if _, stamped := findStamp(text); stamped || !tb.blank || tb.linger >= maxLinger || levelOf(text) != noLevel || aloneLine.MatchString(text) || w.wouldRecognise(text) {
		return false
	}
	tb.linger++
	return true
}

// closeTraceback turns the open traceback into a failure. Of a chain the earliest exception is the
// cause, unless it says nothing that a catalogue knows and a later one does.
func (w *lane) closeTraceback(last int) {
	tb := w.tb
	w.tb = nil
	if tb.said == ignored || len(tb.errs) == 0 && tb.indent < 0 {
		return
	}
	if len(tb.errs) == 0 { // the log was cut among the frames
		tb.fails(w, tb.last, w.cat.Class(failure.Unknown), "a traceback without its last line").Lead = tb.lead
		return
	}
	frames := tb.text.String()
	root := tb.errs[0]
	class := w.cat.MatchException(root.typ, root.msg, frames)
	var chain []timeline.Cause
	for i, e := range tb.errs {
		c := w.cat.MatchException(e.typ, e.msg, frames)
		if len(tb.errs) > 1 {
			chain = append(chain, timeline.Cause{Class: c.ID, Text: firstLine(e.typ + ": " + e.msg), Line: e.line})
		}
		if i > 0 && specific(c) > specific(class) {
			root, class = e, c
		}
	}
	text := root.typ
	if root.msg != "" {
		text += ": " + root.msg
	}
	if tb.said == logged && tb.report != "" && tb.report != class.ID {
		tb.said = nothingSaid // the line before reports another error
	}
	ev := tb.fails(w, root.line, class, text)
	ev.EndLine, ev.Chain, ev.Lead = last, chain, root.lead
	if tb.said == inThread {
		ev.Form = timeline.FormWarning // the process goes on
	}
}

// fails adds the failure that a traceback tells of, at a line.
func (tb *traceback) fails(w *lane, line int, cl *failure.Class, text string) *timeline.Event {
	if tb.uncaught(w) {
		return w.fatal(&logLine{no: line}, cl, timeline.FormTraceback, text)
	}
	return w.failure(&logLine{no: line}, cl, timeline.FormTraceback, text)
}

// specific ranks how much a class says: nothing of its own, a mere type, its own words.
func specific(cl *failure.Class) int {
	switch {
	case cl.Role == failure.Wrapper || cl.Role == failure.Teardown:
		return 0
	case cl.ID == "code/exception" || cl.ID == "code/runtime-error" || cl.ID == failure.Unknown:
		return 1
	case cl.Generic() || cl.Role == failure.Cascade:
		return 2
	}
	return 3
}

// uncaught says whether the traceback is a process's last: it begins at the program's own top, and no
// logger printed it.
func (tb *traceback) uncaught(w *lane) bool {
	if tb.said != nothingSaid {
		return false
	}
	return tb.first == "<module>" || strings.HasPrefix(w.lane, "rank")
}

// boilerplate says whether a line is one that PyTorch appends to its errors.
func boilerplate(text string) bool {
	for _, p := range []string{"Search for `cudaError", "CUDA kernel errors might be", "For debugging consider passing CUDA_LAUNCH_BLOCKING", "Compile with `TORCH_USE_CUDA_DSA`", "Device-side assertion tracking", "Set TORCHDYNAMO_VERBOSE=1", "You can suppress this exception"} {
		if strings.HasPrefix(text, p) {
			return true
		}
	}
	return false
}
