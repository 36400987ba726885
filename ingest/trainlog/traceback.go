package trainlog

import (
	"regexp"
	"strings"

	"postmortem/ingest/timeline"
)

const tracebackHead = "Traceback (most recent call last):"

// exceptionLine is how Python ends a traceback: a dotted type and, mostly, a message.
var exceptionLine = regexp.MustCompile(`^([A-Za-z_][\w.]*)(?::(?: (.*))?)?$`)

// aloneLine is an exception line that may stand without its traceback: its type must look like one.
var aloneLine = regexp.MustCompile(`^((?:[a-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Unsupported))(?::(?: (.*))?)?$`)

// chainLines are Python's words between chained tracebacks (traceback.py).
var chainLines = []string{
	"During handling of the above exception, another exception occurred:",
	"The above exception was the direct cause of the following exception:",
}

// maxMessageLines is how many lines after an exception line may belong to its message.
const maxMessageLines = 40

// A traceback is one Python traceback with its chain.
type traceback struct {
	frames  bool // still among the frames of the current exception
	blank   bool // a blank line came since the exception line
	chained bool // the next traceback continues this one
	extra   int  // message lines so far
	errs    []raised
}

type raised struct {
	typ, msg string
	line     int
}

func (p *parser) openTraceback() {
	if p.tb != nil && p.tb.chained {
		p.tb.frames, p.tb.blank, p.tb.chained = true, false, false
		return
	}
	p.tb = &traceback{frames: true}
}

// add takes a line and says whether it belongs to the traceback.
func (tb *traceback) add(p *parser, line int, text string) bool {
	for _, c := range chainLines {
		if strings.HasPrefix(text, c) {
			tb.chained = true
			return true
		}
	}
	if tb.frames {
		if text[0] == ' ' || text[0] == '\t' {
			return true
		}
		tb.frames = false
		m := exceptionLine.FindStringSubmatch(text)
		if m == nil {
			return false
		}
		tb.errs = append(tb.errs, raised{typ: m[1], msg: m[2], line: line})
		tb.blank, tb.extra = false, 0
		return true
	}
	// After the exception line its message may go on, until something else is recognised.
	if tb.chained || tb.extra >= maxMessageLines || len(tb.errs) == 0 || tb.blank && !cudaBoilerplate(text) || p.wouldRecognise(text) {
		return false
	}
	tb.extra++
	if e := &tb.errs[len(tb.errs)-1]; len(e.msg) < 4<<10 {
		e.msg += "\n" + text
	}
	return true
}

// closeTraceback turns the open traceback into a failure. Of a chain the earliest exception is the
// cause, unless it says nothing that a catalogue knows and a later one does.
func (p *parser) closeTraceback(last int) {
	tb := p.tb
	p.tb = nil
	if len(tb.errs) == 0 {
		return
	}
	root := tb.errs[0]
	class := p.cat.MatchException(root.typ, root.msg)
	var chain []timeline.Cause
	for i, e := range tb.errs {
		c := p.cat.MatchException(e.typ, e.msg)
		if len(tb.errs) > 1 {
			chain = append(chain, timeline.Cause{Class: c.ID, Text: firstLine(e.typ + ": " + e.msg), Line: e.line})
		}
		if i > 0 && (class.Wrapper || generic(class.ID)) && !c.Wrapper && !generic(c.ID) {
			root, class = e, c
		}
	}
	text := root.typ
	if root.msg != "" {
		text += ": " + root.msg
	}
	ev := p.failure(&logLine{no: root.line}, class, timeline.FormTraceback, text)
	ev.EndLine, ev.Chain = last, chain
}

// generic says that a class was given for the exception's type alone.
func generic(id string) bool { return strings.HasPrefix(id, "code/") || id == "unknown" }

// cudaBoilerplate says whether a line is one that PyTorch appends to every CUDA error.
func cudaBoilerplate(text string) bool {
	for _, p := range []string{"Search for `cudaError", "CUDA kernel errors might be", "For debugging consider passing CUDA_LAUNCH_BLOCKING", "Compile with `TORCH_USE_CUDA_DSA`", "Device-side assertion tracking"} {
		if strings.HasPrefix(text, p) {
			return true
		}
	}
	return false
}

// A handlerBlock is a program's own report of an error that it caught, as the seeds write it:
// "[CUDA ERROR] Trial 7 encountered CUDA error:", indented fields, the message under "Error:".
type handlerBlock struct {
	trial    int
	from     int
	errLine  int
	typ, msg string
	inError  bool
	lines    int
}

// add takes a line and says whether it belongs to the block.
func (b *handlerBlock) add(line int, text string) bool {
	if b.lines++; b.lines > maxMessageLines {
		return false
	}
	field, value, ok := strings.Cut(strings.TrimSpace(text), ": ")
	switch indented := text[0] == ' ' || text[0] == '\t'; {
	case indented && ok && field == "Error Type":
		b.typ = value
	case indented && ok && field == "Error":
		b.msg, b.errLine, b.inError = value, line, true
	case indented && strings.HasPrefix(field, "This trial will be"):
		b.inError = false
	case indented:
	case b.inError && len(b.msg) < 4<<10:
		b.msg += "\n" + text
	default:
		return false
	}
	return true
}

func (p *parser) closeHandler(last int) {
	b := p.block
	p.block = nil
	line := b.errLine
	if line == 0 {
		line = b.from
	}
	class := p.cat.MatchException(b.typ, b.msg)
	text := b.msg
	if text == "" {
		text = b.typ
	}
	e := p.failure(&logLine{no: line}, class, timeline.FormHandler, text)
	e.EndLine, e.Trial = last, b.trial
}
