package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"postmortem": main})
}

func TestScripts(t *testing.T) {
	data, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(e *testscript.Env) error {
			e.Setenv("TESTDATA", data)
			return nil
		},
	})
}

// TestREADME runs every postmortem command of the README's console blocks from the top of the project.
func TestREADME(t *testing.T) {
	t.Chdir("../..")
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^(?:\$ )?go run \./cmd/postmortem (.*)$`).FindAllStringSubmatch(string(readme), -1)
	if len(commands) == 0 {
		t.Fatal("the README has no command")
	}
	for _, m := range commands {
		args := strings.Fields(strings.ReplaceAll(m[1], "'", ""))
		for i, a := range args {
			if a == "-o" {
				args[i+1] = filepath.Join(t.TempDir(), args[i+1])
			}
		}
		var out, errOut bytes.Buffer
		if status := run(args, strings.NewReader(""), &out, &errOut); status != exitOK {
			t.Errorf("postmortem %s: status %d: %s", m[1], status, errOut.String())
		}
	}
}
