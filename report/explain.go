package report

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"postmortem/analyze"
	"postmortem/ingest/failure"
)

// textWidth is how wide running text for the terminal is set.
const textWidth = 96

// ExplainJSON writes an explanation as one line of JSON.
func ExplainJSON(w io.Writer, x *analyze.Explanation) error { return json.NewEncoder(w).Encode(x) }

// Explain writes an explanation for a person, one screen of it. Every one but the first is parted from
// the one before by an empty line.
func Explain(w io.Writer, d Document, x *analyze.Explanation, first bool) error {
	if !first {
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
	}
	return writeText(w, d, "explain.txt", x)
}

// Classes lists the catalogue.
func Classes(w io.Writer, d Document) error { return writeText(w, d, "classes.txt", d.Catalogue) }

// Class tells all of one class.
func Class(w io.Writer, d Document, cl *failure.Class) error {
	return writeText(w, d, "class.txt", cl)
}

func writeText(w io.Writer, d Document, name string, data any) error {
	t, err := plainTemplates(d)
	if err != nil {
		return err
	}
	return squeeze(w, func(w io.Writer) error { return t.ExecuteTemplate(w, name, data) })
}

// fold sets text for the terminal: escaped, broken at spaces, with the first line's lead and the others
// indented as far.
func fold(lead, text string) string {
	indent := strings.Repeat(" ", len([]rune(lead)))
	var b strings.Builder
	b.WriteString(lead)
	col := len(indent)
	for i, word := range strings.Fields(plainText(text)) {
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
