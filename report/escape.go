package report

import (
	"strings"
	"text/template/parse"
	"unicode"
)

// Text from logs is hostile. This file is the one place that makes it harmless: html/template escapes
// for HTML, and for Markdown and the terminal autoescape puts an escaper behind every value that a
// template prints, unless the value went through a function that made it safe.

// plainText drops control, escape and bidirectional characters, and folds line ends into spaces.
func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\ufeff':
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// markdownSpecial are the characters that can mean something in GitHub's Markdown.
const markdownSpecial = "\\`*_{}[]()<>#+!|~&$"

// markdown makes a value plain text in Markdown: nothing in it is markup, a table cell, a mention or
// a reference to an issue.
func markdown(s string) string {
	var b strings.Builder
	for _, r := range plainText(s) {
		if r < 0x80 && strings.IndexByte(markdownSpecial, byte(r)) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
		if r == '@' || r == ':' { // no mentions, no links
			b.WriteRune('\u200b')
		}
	}
	return b.String()
}

// codeSpan makes a value a code span, in which nothing is markup. A pipe would end a table cell even
// there, and is escaped as tables want it.
func codeSpan(s string) string {
	s = plainText(s)
	if strings.TrimSpace(s) == "" {
		return ""
	}
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	pad := ""
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		pad = " "
	}
	return fence + pad + strings.ReplaceAll(s, "|", `\|`) + pad + fence
}

// autoescape puts the function named escaper behind every pipeline of the tree that prints, unless its
// last function is in safe.
func autoescape(n parse.Node, escaper string, safe map[string]bool) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, c := range n.Nodes {
			autoescape(c, escaper, safe)
		}
	case *parse.ActionNode:
		if len(n.Pipe.Decl) > 0 {
			return
		}
		last := n.Pipe.Cmds[len(n.Pipe.Cmds)-1]
		if id, ok := last.Args[0].(*parse.IdentifierNode); ok && safe[id.Ident] {
			return
		}
		n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos,
			Args: []parse.Node{parse.NewIdentifier(escaper).SetPos(n.Pos)}})
	case *parse.IfNode:
		autoescape(n.List, escaper, safe)
		autoescape(n.ElseList, escaper, safe)
	case *parse.RangeNode:
		autoescape(n.List, escaper, safe)
		autoescape(n.ElseList, escaper, safe)
	case *parse.WithNode:
		autoescape(n.List, escaper, safe)
		autoescape(n.ElseList, escaper, safe)
	}
}
