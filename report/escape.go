package report

import (
	"fmt"
	"reflect"
	"strings"
	"text/template/parse"
	"unicode"
)

// Text from logs is hostile. This file is the one place that makes it harmless: html/template escapes
// for HTML, and autoescape puts an escaper behind every value that a template prints, for the terminal
// and for HTML one that drops control characters, for Markdown one that takes the meaning from its
// markup as well, unless the value went through a function that made it safe.

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
	for _, r := range unlink.Replace(plainText(s)) {
		if r < 0x80 && strings.IndexByte(markdownSpecial, byte(r)) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// unlink breaks up what GitHub makes links of without any markup: mentions and addresses.
var unlink = strings.NewReplacer("@", "@\u200b", "://", ":\u200b//", "www.", "www\u200b.")

// show writes a value as a template would, pointers followed.
func show(v any) string {
	if r := reflect.ValueOf(v); r.Kind() == reflect.Pointer && !r.IsNil() {
		v = r.Elem().Interface()
	}
	return fmt.Sprint(v)
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

// codeBlock makes a text a block of code; its lines were made plain where they were written.
func codeBlock(s string) string {
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	return fence + "python\n" + strings.Trim(s, "\n") + "\n" + fence
}

// autoescapeTree applies autoescape to a whole template, which may be empty.
func autoescapeTree(t *parse.Tree, escaper string, safe ...string) {
	if t == nil {
		return
	}
	ok := map[string]bool{escaper: true}
	for _, s := range safe {
		ok[s] = true
	}
	autoescape(t.Root, escaper, ok)
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
