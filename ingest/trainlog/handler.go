package trainlog

import (
	"strings"

	"postmortem/ingest/timeline"
)

// A handlerBlock is a program's own report of an error that it caught, as the seeds write it:
// "[CUDA ERROR] Trial 7 encountered CUDA error:", indented fields, the message under "Error:".
type handlerBlock struct {
	trial    int
	from     int
	errLine  int
	typ, msg string
	inError  bool
	lines    int
	lead     []string
}

// add takes a line and says whether it belongs to the block.
func (b *handlerBlock) add(w *lane, line int, text string) bool {
	if b.lines++; b.lines > maxMessageLines {
		return false
	}
	field, value, ok := strings.Cut(strings.TrimSpace(text), ": ")
	switch indented := text[0] == ' ' || text[0] == '\t'; {
	case indented && ok && field == "Error Type":
		b.typ = value
	case indented && ok && field == "Error":
		b.msg, b.errLine, b.inError, b.lead = value, line, true, w.lead()
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

func (w *lane) closeHandler(last int) {
	b := w.block
	w.block = nil
	line := b.errLine
	if line == 0 {
		line = b.from
	}
	class := w.cat.MatchException(b.typ, b.msg, "")
	text := b.msg
	if text == "" {
		text = b.typ
	}
	e := w.failure(&logLine{no: line}, class, timeline.FormHandler, text)
	e.EndLine, e.Trial = last, b.trial
	if b.lead != nil {
		e.Lead = b.lead
	}
}
