// Package report writes findings for people and for scripts: HTML, Markdown, plain text for the
// terminal, and JSON. It computes nothing; the words stand in package templates.
package report

import (
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"maps"
	"path"
	"strings"
	texttemplate "text/template"

	"postmortem/analyze"
	"postmortem/ingest/failure"
	"postmortem/templates"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// A Renderer writes findings in one format.
type Renderer struct {
	Name string // as --format knows it
	Ext  string // of the file that -o DIR makes
	// Render writes the report. Files that it refers to (plots) go through files, which may be nil when
	// there is nowhere to put them.
	Render func(w io.Writer, d Document, files FileWriter) error
}

// A FileWriter stores a file beside the report under a name that the report refers to.
type FileWriter func(name string, data []byte) error

// A Document is what a report is made of.
type Document struct {
	*analyze.Findings
	Catalogue *failure.Catalogue
	Version   string // of the program
	Color     bool   // whether the text form may use colour
	// Comparison makes it the report of a comparison; Findings is then empty.
	Comparison *analyze.Comparison
}

// root is the name of the template that the document is made of, less the format.
func (d Document) root() string {
	if d.Comparison != nil {
		return "compare"
	}
	return "report"
}

// Renderers are the formats. A new one is a line here.
var Renderers = []Renderer{
	{"html", ".html", renderHTML},
	{"markdown", ".md", renderMarkdown},
	{"json", ".json", renderJSON},
	{"text", ".txt", renderText},
}

func renderJSON(w io.Writer, d Document, _ FileWriter) error {
	if d.Comparison != nil {
		return writeJSON(w, d.Comparison)
	}
	return writeJSON(w, d.Findings)
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// funcs are the words' helpers, common to all formats.
func funcs(d Document) map[string]any {
	fs := map[string]any{
		"percent": percent, "duration": duration, "bytes": size, "plural": plural, "where": where, "moment": moment,
		"offset": offset, "numbers": numbers, "clip": clip,
		"totals":   func() Totals { return totals(d.Findings) },
		"incident": func(id string) analyze.Incident { return incident(d.Findings, id) },
		"title":    func(class string) string { return title(d.Catalogue, class) },
		"meaning":  func(class string) string { return d.Catalogue.Class(class).Meaning },
		"lanes": func(title, desc, y, x, memory string) figure {
			return lanesFigure("timeline", title, desc, y, x, memory, d.Lanes)
		},
		"rates": func(i int, title, desc, x string, r analyze.Rates) figure {
			return ratesFigure(fmt.Sprintf("rates-%d", i+1), title, desc, x, r)
		},
		"spanDays":      func() bool { return d.Lanes.To.Sub(d.Lanes.From).Hours() > 20 },
		"hasLanes":      func() bool { return len(d.Lanes.Workers) > 0 || len(d.Lanes.Cards) > 0 },
		"fates":         fateRows,
		"workers":       func() []WorkerRow { return workerRows(d.Findings) },
		"adviceByClass": func() []AdviceGroup { return adviceByClass(d.Findings) },
		"link":          func(s string) bool { return strings.HasPrefix(s, "https://") },
		"class":         d.Catalogue.Class,
		"facts":         factRows,
		"factNames":     factNames,
		"first":         func(in []analyze.Incident, n int) []analyze.Incident { return in[:min(n, len(in))] },
		"survived":      survivedIn,
		"unread":        func() int { return unread(d.Findings) },
		"fact":          fact,
		"listed":        func() []analyze.Incident { return listed(d.Findings) },
		"head":          func(e []analyze.Echo) []analyze.Echo { return e[:min(maxEchoes, len(e))] },
		"share":         func(a, b int) float64 { return float64(a) / float64(max(b, 1)) },
		"minus":         func(a, b int) int { return a - b },
		"rest":          restOf,
		"lower":         lower,
		"join":          func(s []string) string { return strings.Join(s, ", ") },
	}
	maps.Copy(fs, culpritFuncs(d))
	maps.Copy(fs, memoryFuncs(d))
	fs["plus"] = func(a, b int) int { return a + b }
	fs["epochsPlot"] = func(title, desc, x, y string, o []analyze.Option) figure {
		return epochsFigure("epochs", title, desc, x, y, o)
	}
	fs["changes"] = func(title, desc, x string, c []analyze.ClassChange) figure {
		return changesFigure("changes", title, desc, x, d.Catalogue, c)
	}
	return fs
}

// title is a class's short name; a class that the catalogue does not know is named by its id.
func title(cat *failure.Catalogue, class string) string {
	if cl := cat.Class(class); cl.ID == class {
		return cl.Title
	}
	return class
}

// A FateRow is one row of the table of fates.
type FateRow struct {
	Fate  string // as in the JSON contract
	N     int
	Share float64
}

// fateRows lists the fates that occur, in the contract's order.
func fateRows(s analyze.Study) []FateRow {
	var out []FateRow
	for _, r := range []FateRow{{"completed", s.Fates.Completed, 0}, {"pruned_by_pruner", s.Fates.PrunedByPruner, 0}, {"guarded", s.Fates.Guarded, 0},
		{"lost", s.Fates.Lost, 0}, {"stale", s.Fates.Stale, 0}, {"running", s.Fates.Running, 0}, {"waiting", s.Fates.Waiting, 0}, {"unknown", s.Fates.Unknown, 0}} {
		if r.N > 0 || r.Fate == "lost" {
			if s.Trials.Total > 0 {
				r.Share = float64(r.N) / float64(s.Trials.Total)
			}
			out = append(out, r)
		}
	}
	return out
}

func renderHTML(w io.Writer, d Document, _ FileWriter) error {
	fs := template.FuncMap(funcs(d))
	// The canvas escapes every text that it draws, so its output is safe as it stands.
	fs["plot"] = func(f figure) template.HTML { return template.HTML(f.svg()) }
	fs["css"] = func() template.CSS { return template.CSS(templates.CSS) }
	fs["plain"] = func(v any) string { return plainText(show(v)) }
	plain, err := plainTemplates(d)
	if err != nil {
		return err
	}
	fs["render"] = into(plain) // figures' texts; the canvas escapes them
	t, err := template.New("").Funcs(fs).Funcs(stubs(fs)).ParseFS(templates.Files, "*.tmpl")
	if err != nil {
		return err
	}
	for _, x := range t.Templates() {
		autoescapeTree(x.Tree, "plain", "plot", "css")
	}
	return t.ExecuteTemplate(w, d.root()+".html", d)
}

// stubs stand in for functions that only other formats call: the formats share their files.
func stubs(have map[string]any) map[string]any {
	out := map[string]any{}
	for _, name := range []string{"plot", "css", "code", "image", "table", "markdown", "plain", "strong", "fold", "codeBlock"} {
		if have[name] == nil {
			out[name] = func(...any) string { return "" }
		}
	}
	return out
}

// parseText makes a text template of the shared files in which every printed value is escaped.
func parseText(fs texttemplate.FuncMap, escaper string, safe ...string) (*texttemplate.Template, error) {
	t, err := texttemplate.New("").Funcs(fs).Funcs(stubs(fs)).ParseFS(templates.Files, "*.tmpl")
	if err != nil {
		return nil, err
	}
	for _, x := range t.Templates() {
		autoescapeTree(x.Tree, escaper, safe...)
	}
	return t, nil
}

func renderMarkdown(w io.Writer, d Document, files FileWriter) error {
	fs := texttemplate.FuncMap(funcs(d))
	fs["markdown"] = func(v any) string { return markdown(show(v)) }
	fs["code"] = codeSpan
	fs["codeBlock"] = codeBlock
	plain, err := plainTemplates(d)
	if err != nil {
		return err
	}
	fs["render"] = into(plain)
	fs["image"] = func(f figure) (string, error) {
		if files == nil {
			return "*" + markdown(f.title+". "+f.desc) + "*", nil
		}
		png, err := f.png()
		if err != nil {
			return "", err
		}
		name := path.Join("plots", f.id+".png")
		if err := files(name, png); err != nil {
			return "", err
		}
		return "![" + markdown(f.title+". "+f.desc) + "](" + name + ")", nil
	}
	t, err := parseText(fs, "markdown", "code", "image", "codeBlock")
	if err != nil {
		return err
	}
	return squeeze(w, t, d.root()+".md", d)
}

// plainTemplates makes the templates for the terminal.
func plainTemplates(d Document) (*texttemplate.Template, error) {
	var t *texttemplate.Template
	fs := texttemplate.FuncMap(funcs(d))
	fs["plain"] = func(v any) string { return plainText(show(v)) }
	fs["table"] = table
	fs["fold"] = fold
	fs["strong"] = func(on bool) string {
		switch {
		case !d.Color:
			return ""
		case on:
			return "\x1b[1m"
		}
		return "\x1b[0m"
	}
	// A template refers to others of its own set, which there is none of before it is parsed.
	fs["render"] = func(name string, data any) (string, error) { return into(t)(name, data) }
	var err error
	t, err = parseText(fs, "plain", "table", "strong", "fold")
	return t, err
}

// into returns a function that executes one template of a set and returns its text.
func into(t *texttemplate.Template) func(name string, data any) (string, error) {
	return func(name string, data any) (string, error) {
		var b strings.Builder
		err := t.ExecuteTemplate(&b, name, data)
		return b.String(), err
	}
}

func renderText(w io.Writer, d Document, _ FileWriter) error {
	return writeText(w, d, d.root()+".txt", d)
}

// writeText writes one template for the terminal.
func writeText(w io.Writer, d Document, name string, data any) error {
	t, err := plainTemplates(d)
	if err != nil {
		return err
	}
	return squeeze(w, t, name, data)
}

// squeeze executes a template and folds runs of empty lines, which templates leave, into one.
func squeeze(w io.Writer, t *texttemplate.Template, name string, data any) error {
	var b strings.Builder
	if err := t.ExecuteTemplate(&b, name, data); err != nil {
		return err
	}
	blank := true
	var out strings.Builder
	for l := range strings.SplitSeq(strings.TrimRight(b.String(), "\n"), "\n") {
		l = strings.TrimRight(l, " ")
		if l == "" && blank {
			continue
		}
		blank = l == ""
		out.WriteString(l + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// table sets rows of cells separated by tabs; the first is the head. A column whose head ends in ">"
// is set flush right.
func table(text string) (string, error) {
	var b strings.Builder
	rows := strings.Split(strings.Trim(text, "\n"), "\n")
	head := strings.Split(rows[0], "\t")
	align := make([]tw.Align, len(head))
	for i, h := range head {
		align[i] = tw.AlignLeft
		if s, ok := strings.CutSuffix(h, ">"); ok {
			head[i], align[i] = s, tw.AlignRight
		}
	}
	t := tablewriter.NewTable(&b,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  tw.BorderNone,
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone},
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithHeaderAlignmentConfig(tw.CellAlignment{PerColumn: align}),
		tablewriter.WithRowAlignmentConfig(tw.CellAlignment{PerColumn: align}),
	)
	t.Header(head)
	for _, r := range rows[1:] {
		if err := t.Append(strings.Split(r, "\t")); err != nil {
			return "", err
		}
	}
	if err := t.Render(); err != nil {
		return "", err
	}
	return b.String(), nil
}

// Studies writes the list of a storage's studies for the terminal.
func Studies(w io.Writer, d Document) error {
	return writeText(w, d, "studies.txt", d)
}
