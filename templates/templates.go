// Package templates holds the words of the reports. A file is a section: it defines the section for
// HTML, for Markdown and, where it has one, for the terminal, so that the words stand side by side.
package templates

import "embed"

// Files are the templates.
//
//go:embed *.tmpl
var Files embed.FS

// CSS is the style sheet of the HTML report.
//
//go:embed style.css
var CSS string
