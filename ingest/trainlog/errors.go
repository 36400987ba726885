package trainlog

import (
	"regexp"
	"strings"

	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"
)

var (
	// quoted is an exception that a message quotes: "trial 2 failed: ValueError: …", "RuntimeError('…')".
	quoted = regexp.MustCompile(`(?:^|[\s:'"(=])((?:[A-Za-z_]\w*\.)*_?[A-Z]\w*(?:Error|Exception|Interrupt|Unsupported|OutOfResources))(?:: ?|\()(.*)$`)

	// glued is an exception line behind text that another writer left unfinished.
	glued = regexp.MustCompile(`[^\s'"(=:.\w]((?:torch|jax|jaxlib|triton|cupy|tensorflow|builtins|optuna)\.[\w.]*[A-Z]\w*|[A-Z]\w*(?:Error|Exception)): (.*)$|\w(torch\.(?:\w+\.)*[A-Z]\w*(?:Error|Exception)): (.*)$`)

	// complains is how a program that prints without a logger begins to report an error.
	complains = regexp.MustCompile(`(?i)^[^\w{'"]*(?:\w+ )?(?:fatal|error|exception|failed|failure|critical|crash(?:ed)?|caught|uncaught|(?:training|run|job|trial|worker|process)(?: \d+)? (?:failed|crashed|aborted|died))\b`)

	// handles is how a program begins to speak of errors in general.
	handles = regexp.MustCompile(`(?i)^\W*(?:\w+ )?(?:errors?|exceptions?|failures?|crash(?:es)?)[ _-](?:handl|rate|polic|count|recover|mode|guard|log|report|toleran|budget|class|type|thresh|callback|hook|map|table|watch)`)

	// goesOn is how a message says that what it tells of is dealt with.
	goesOn = regexp.MustCompile(`(?i)\bretry|\bignor|\bskip|\bfall(?:ing)? ?back|\binstead\b|\busing (?:native|default|cpu|the)\b|\bcontinu(?:e|ing)\b`)

	bareNumber = regexp.MustCompile(`^[\d.]*$`)

	what = regexp.MustCompile(`^\s*what\(\): +(.*)$`)
)

// errorLine takes a line that is error text without a traceback.
func (w *lane) errorLine(l *logLine) bool {
	if l.level == info {
		return false
	}
	if cl := w.cat.MatchNative(l.text); cl != nil {
		w.native(l, cl)
		return true
	}
	if m := what.FindStringSubmatch(l.text); m != nil {
		cl := w.cat.Match(m[1], "")
		if cl == nil {
			cl = w.cat.Class("host/aborted")
		}
		w.fatal(l, cl, timeline.FormNative, strings.TrimSpace(l.text))
		w.inMsg = true
		return true
	}
	if l.level == noLevel && w.exceptionAlone(l) {
		return true
	}
	cl, text := w.report(l)
	if cl == nil {
		if l.level == failing || complains.MatchString(l.msg) {
			w.complaint(l)
		}
		return false
	}
	form := timeline.FormHandler
	switch {
	case l.level == warning, cl.Role == failure.Note, cl.Family() == "tracker":
		form = timeline.FormWarning
	case l.level == noLevel && !complains.MatchString(l.msg) && len(cl.ReadFacts(text)) == 0:
		form = timeline.FormBare
	}
	w.failure(l, cl, form, text)
	w.inMsg = true
	return true
}

// exceptionAlone takes an exception line without its traceback: pasted, or torn from it.
func (w *lane) exceptionAlone(l *logLine) bool {
	text := l.msg
	if half, ok := untear(text); ok {
		text = half
	}
	m := aloneLine.FindStringSubmatch(text)
	if m == nil {
		if m = dotted.FindStringSubmatch(text); m != nil && !w.cat.KnowsException(m[1]) && w.cat.Match(text, "") == nil {
			m = nil
		}
	}
	if m == nil && causedInto.MatchString(text) {
		m = []string{"", causedInto.FindStringSubmatch(text)[1], text[strings.IndexByte(text, ')')+1:]}
	}
	if g := glued.FindStringSubmatch(text); m == nil && g != nil {
		if g[1] == "" {
			g[1], g[2] = g[3], g[4]
		}
		if cl := w.cat.Match(g[1]+": "+g[2], ""); cl != nil {
			m = g[:3]
		}
	}
	if m == nil || m[2] != "" && bareNumber.MatchString(m[2]) { // "RuntimeError: 0" counts them
		return false
	}
	cl, form := w.cat.MatchException(m[1], m[2], ""), timeline.FormException
	if cl.Role == failure.Note || goesOn.MatchString(m[2]) && (cl.Generic() || cl.Family() == "hub" || cl.Family() == "tracker") {
		form = timeline.FormWarning
	}
	said := m[1]
	if m[2] != "" {
		said += ": " + m[2]
	}
	w.failure(l, cl, form, said)
	w.inMsg = true
	return true
}

// report names the error that a line reports: of level WARNING or above by what it quotes, and without a
// level only when it begins like a report or with a class's own words.
func (w *lane) report(l *logLine) (*failure.Class, string) {
	if l.level == noLevel && (!complains.MatchString(l.msg) || handles.MatchString(l.msg)) {
		if cl := w.cat.MatchStart(l.msg); cl != nil {
			return cl, l.msg
		}
		return nil, ""
	}
	if cl := w.cat.Match(l.msg, ""); cl != nil && (l.level != warning || cl.Family() != "code") {
		return cl, l.msg
	}
	if m := quoted.FindStringSubmatch(l.msg); m != nil && l.level != warning {
		return w.cat.MatchException(m[1], m[2], ""), l.msg
	}
	return nil, ""
}

// complaint keeps a line of level ERROR that no class explains: it is all there is to show when the
// process then ends badly without another word.
func (w *lane) complaint(l *logLine) {
	w.begin(l.no)
	pr := &w.tl.Processes[w.proc]
	pr.ErrorLine, pr.ErrorText = l.no, firstLine(l.text)
}

// native adds a native error line; a kernel prints the same assertion once per thread, which is one.
func (w *lane) native(l *logLine, cl *failure.Class) {
	if n := len(w.tl.Events); n > 0 {
		if e := &w.tl.Events[n-1]; e.Kind == timeline.Failure && e.Form == timeline.FormNative && e.Class == cl.ID && max(e.EndLine, e.Pos.Line) == l.no-1 {
			e.EndLine = l.no
			return
		}
	}
	switch {
	case cl.Role == failure.Note:
		w.failure(l, cl, timeline.FormWarning, l.text)
	case (cl.Role == failure.Root || cl.Role == failure.Stop) && !cl.Poisons: // a process outlives what poisons its context
		w.fatal(l, cl, timeline.FormNative, l.text)
	default:
		w.failure(l, cl, timeline.FormNative, l.text)
	}
}
