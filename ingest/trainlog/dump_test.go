package trainlog

import (
	"fmt"
	"os"
	"testing"

	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"
)

func TestDump(t *testing.T) {
	f, err := os.Open(os.Getenv("LOGF"))
	if err != nil {
		t.Skip()
	}
	tl, _ := Read(f, os.Getenv("LOGF"), 0, failure.Default())
	for _, e := range tl.Events {
		if e.Kind == timeline.Failure || e.Kind == timeline.TrialEnd || e.Kind == timeline.ProcessExit {
			tx := e.Text
			if len(tx) > 60 {
				tx = tx[:60]
			}
			fmt.Println(e.Pos.Line, e.EndLine, e.Kind, e.Time.Format("15:04:05.000"), e.Quality, e.Process, e.Trial, e.Class, e.Form, e.State, tx)
		}
	}
	fmt.Printf("%+v\n", tl.Sources[0])
	for _, p := range tl.Problems {
		fmt.Println("PROBLEM", p.Pos.Line, p.Count, p.Msg, p.Text)
	}
	fmt.Println(len(tl.Allocs), tl.Streams, tl.Processes)
}
