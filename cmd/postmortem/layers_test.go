package main

import (
	"os/exec"
	"strings"
	"testing"
)

// layers is the order of the house: a package imports only those before it. Readers do not import each
// other.
var layers = []string{
	"postmortem/ingest/lines", "postmortem/ingest/timeline", "postmortem/ingest/failure",
	"postmortem/ingest/", // the readers
	"postmortem/ingest",
	"postmortem/analyze/stats", "postmortem/analyze/scan", "postmortem/analyze", "postmortem/templates", "postmortem/report", "postmortem/cmd/postmortem",
}

func layer(pkg string) int {
	for i, l := range layers {
		if pkg == l || strings.HasSuffix(l, "/") && strings.HasPrefix(pkg, l) {
			return i
		}
	}
	return -1
}

func TestLayers(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "postmortem/...").Output()
	if err != nil {
		t.Skip("go list:", err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		pkg, imports, _ := strings.Cut(line, " ")
		if layer(pkg) < 0 {
			t.Errorf("%s stands in no layer", pkg)
		}
		for _, imp := range strings.Fields(imports) {
			if strings.HasPrefix(imp, "postmortem/") && layer(imp) >= layer(pkg) {
				t.Errorf("%s imports %s, which does not stand before it", pkg, imp)
			}
			if strings.HasPrefix(pkg, "postmortem/analyze") && (imp == "os" || imp == "net" || imp == "io") {
				t.Errorf("%s imports %s: the analyses are pure", pkg, imp)
			}
		}
	}
}
