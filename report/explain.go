package report

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"text/template"

	"postmortem/analyze"
	"postmortem/ingest/failure"
)

// textWidth is how wide running text for the terminal is set.
const textWidth = 96

// ExplainJSON writes an explanation as one line of JSON.
func ExplainJSON(w io.Writer, x *analyze.Explanation) error { return json.NewEncoder(w).Encode(x) }

// A Terminal writes explanations and classes for a person. One serves many files: its templates are
// parsed once.
type Terminal struct {
	w         io.Writer
	catalogue *failure.Catalogue
	templates *template.Template
	explained bool // one explanation stands already
}

// NewTerminal returns a Terminal that writes to w, with escape codes where color says so. The error is
// the templates' own, which a test rules out.
func NewTerminal(w io.Writer, cat *failure.Catalogue, color bool) (*Terminal, error) {
	t, err := plainTemplates(Document{Findings: &analyze.Findings{}, Catalogue: cat, Color: color})
	return &Terminal{w: w, catalogue: cat, templates: t}, err
}

// Explain writes an explanation, one screen of it, parted from the one before by an empty line.
func (t *Terminal) Explain(x *analyze.Explanation) error {
	if t.explained {
		if _, err := io.WriteString(t.w, "\n"); err != nil {
			return err
		}
	}
	t.explained = true
	return t.write("explain.txt", x)
}

// Classes lists the catalogue.
func (t *Terminal) Classes() error { return t.write("classes.txt", t.catalogue) }

// Class tells all of one class.
func (t *Terminal) Class(cl *failure.Class) error { return t.write("class.txt", cl) }

func (t *Terminal) write(name string, data any) error {
	return squeeze(t.w, t.templates, name, data)
}

// fold sets text for the terminal: escaped, broken at spaces, with the first line's lead and the others
// indented as far.
func fold(lead, text string) string {
	indent := strings.Repeat(" ", len([]rune(lead)))
	var b strings.Builder
	b.WriteString(lead)
	col := len(indent)
	for i, word := range words(plainText(text)) {
		n := len([]rune(word))
		switch {
		case i == 0:
		case col+1+n > textWidth:
			b.WriteString("\n" + indent)
			col = len(indent)
		default:
			b.WriteByte(' ')
			col++
		}
		b.WriteString(word)
		col += n
	}
	return b.String()
}

// words cuts a text where a line may break: not between a number and its %.
func words(text string) []string {
	var out []string
	for _, w := range strings.Fields(text) {
		if len(out) > 0 && strings.HasPrefix(w, "%") {
			out[len(out)-1] += " " + w
			continue
		}
		out = append(out, w)
	}
	return out
}

// A FactRow is a number from a message.
type FactRow struct {
	Name  string
	Value string
}

// factRows lists an incident's numbers by name.
func factRows(facts map[string]float64) []FactRow {
	var out []FactRow
	for _, name := range sortedKeys(facts) {
		out = append(out, FactRow{name, fact(name, facts[name])})
	}
	return out
}

// factNames lists the names of readings, each once.
func factNames(readings []failure.Reading) []string {
	var out []string
	for _, r := range readings {
		if !slices.Contains(out, r.Name) {
			out = append(out, r.Name)
		}
	}
	return out
}

// survivedIn counts the incidents of an explanation that were survived.
func survivedIn(x *analyze.Explanation) int {
	n := 0
	for _, i := range x.Incidents {
		if i.Outcome == analyze.Recovered {
			n++
		}
	}
	return n
}
