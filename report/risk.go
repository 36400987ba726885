package report

import (
	"io"

	"postmortem/analyze"
	"postmortem/ingest/failure"
)

// A RiskWriter writes what is known of a proposal.
type RiskWriter func(w io.Writer, r *analyze.Risk, cat *failure.Catalogue) error

// RiskText writes a proposal's risk for the terminal.
func RiskText(w io.Writer, r *analyze.Risk, cat *failure.Catalogue) error {
	return writeText(w, Document{Findings: &analyze.Findings{}, Catalogue: cat}, "risk.txt", r)
}

// RiskJSON writes it as one JSON object.
func RiskJSON(w io.Writer, r *analyze.Risk, _ *failure.Catalogue) error { return writeJSON(w, r) }
