package trainlog

import (
	"regexp"
	"strings"

	"postmortem/ingest/lines"
	"postmortem/ingest/timeline"
)

// maxShapes is how many different shapes of line that nobody understood are told apart.
const maxShapes = 200

const (
	msgUnread = "line not understood"
	msgOthers = "further lines not understood"
)

var numberLike = regexp.MustCompile(`[0-9][0-9a-fA-F.x_]*`)

// shapeOf is a text with its numbers folded: what lines of one kind have in common.
func shapeOf(text string) string { return numberLike.ReplaceAllString(text, "#") }

// notUnderstood counts a line under its shape: its text with the numbers folded.
func (p *parser) notUnderstood(s segment) {
	text := lines.Cut(s.text, 200)
	shape := shapeOf(text)
	if pr := p.unread[shape]; pr != nil {
		pr.Count++
		return
	}
	if len(p.unread) < maxShapes {
		p.unread[shape] = &timeline.Problem{Pos: timeline.Pos{Source: p.src, Line: s.line}, Msg: msgUnread, Text: text, Count: 1}
		return
	}
	p.problem(s.line, msgOthers, "")
}

// maxPhraseLines is how many places of a phrase are kept.
const maxPhraseLines = 4096

// phrase notes where a kind of line stands that nothing knows.
func (p *parser) phrase(l *logLine) {
	text := lines.Cut(l.msg, 200)
	shape := shapeOf(text)
	i, known := p.phrases[shape]
	if !known {
		if len(p.tl.Phrases) >= 2*maxShapes {
			return
		}
		i = len(p.tl.Phrases)
		p.phrases[shape] = i
		p.tl.Phrases = append(p.tl.Phrases, timeline.Phrase{Pos: timeline.Pos{Source: p.src, Line: l.no}, Text: strings.Clone(text), Shape: shape, Alarm: l.level >= warning})
	}
	ph := &p.tl.Phrases[i]
	if n := len(ph.Lines); n < maxPhraseLines && (n == 0 || ph.Lines[n-1] != l.no) {
		ph.Lines = append(ph.Lines, l.no)
	}
}

// problem counts something of which only the first place is kept.
func (p *parser) problem(line int, msg, text string) {
	if pr := p.unread[msg]; pr != nil {
		pr.Count++
		return
	}
	p.unread[msg] = &timeline.Problem{Pos: timeline.Pos{Source: p.src, Line: line}, Msg: msg, Text: text, Count: 1}
}
