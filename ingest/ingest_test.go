package ingest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"

	"github.com/google/go-cmp/cmp"
)

func readAll(t testing.TB, req Request) (*timeline.Timeline, error) {
	t.Helper()
	req.Catalogue = failure.Default()
	return Read(context.Background(), req)
}

const nightly = "../testdata/nightly"

func TestFolderIsToldByContent(t *testing.T) {
	tl, err := readAll(t, Request{Paths: []string{nightly}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range tl.Sources {
		got = append(got, s.Name+" "+string(s.Kind))
	}
	want := []string{"dmesg.log kernel-log", "nvidia_dmon.txt nvidia-smi-dmon", "nvidia_smi.csv nvidia-smi-csv", "nvidia_smi_apps.csv nvidia-smi-apps", "optuna.db optuna-sqlite",
		"worker0.log train-log", "worker1.log train-log", "worker2.log train-log", "worker3.log train-log"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if len(tl.Skipped) != 0 {
		t.Errorf("skipped %+v", tl.Skipped)
	}
	// dmon has the same card, coarser: the query dump's samples are used, and the source says so.
	if len(tl.GPUs) != 1 || tl.GPUs[0].TotalBytes <= 0 || len(tl.Sources[1].Notes) == 0 {
		t.Errorf("%d cards, %+v", len(tl.GPUs), tl.Sources[1])
	}
}

// TestNamesDoNotMatter gives every file of the run a misleading name.
func TestNamesDoNotMatter(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"optuna.db", "worker0.log", "nvidia_smi.csv", "dmesg.log"} {
		b, err := os.ReadFile(filepath.Join(nightly, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.csv.db.log", i)), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tl, err := readAll(t, Request{Paths: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	var got []timeline.Kind
	for _, s := range tl.Sources {
		got = append(got, s.Kind)
	}
	if d := cmp.Diff([]timeline.Kind{timeline.OptunaSQLite, timeline.TrainLog, timeline.NvidiaSMI, timeline.KernelLog}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestAwkwardPath opens a database whose name means something in an SQLite address.
func TestAwkwardPath(t *testing.T) {
	b, err := os.ReadFile(nightly + "/optuna.db")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a b?mode=rw#c%41é.db")
	if err := os.WriteFile(path, b, 0o444); err != nil {
		t.Skip(err)
	}
	tl, err := readAll(t, Request{Databases: []string{path}})
	if err != nil || len(tl.Studies[0].Trials) != 179 {
		t.Errorf("%v", err)
	}
}

func TestEveryTrialIsLinked(t *testing.T) {
	tl, err := readAll(t, Request{Paths: []string{nightly}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range tl.Studies[0].Trials {
		worker, _ := timeline.FindAttr(tr.UserAttrs, "worker")
		if tr.Link != timeline.Stated || tr.Worker != worker || tl.Processes[tr.Process].PID == 0 {
			t.Errorf("trial %d: link %q, worker %q (its attribute says %s)", tr.Number, tr.Link, tr.Worker, worker)
		}
	}
	for _, e := range tl.Events {
		if e.Time.Location() == timeline.Naive {
			t.Fatalf("a naive time is left: %+v", e)
		}
	}
}

// synthetic makes the parts of a run whose storage is in UTC by heartbeats shifted by db, and whose
// log is written with the offset log.
func synthetic(db, log time.Duration, heartbeats bool) []*timeline.Timeline {
	base := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	naive := func(t time.Time, o time.Duration) time.Time {
		t = t.Add(o)
		return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, timeline.Naive)
	}
	storage := &timeline.Timeline{Sources: []timeline.Source{{Kind: timeline.OptunaSQLite}}, Studies: []timeline.Study{{Name: "s"}}}
	text := &timeline.Timeline{Sources: []timeline.Source{{Kind: timeline.TrainLog}}}
	for i := range 5 {
		start, end := base.Add(time.Duration(i)*10*time.Minute), base.Add(time.Duration(i)*10*time.Minute+7*time.Minute)
		tr := timeline.Trial{Number: i, Start: naive(start, db), End: naive(end, db)}
		if heartbeats {
			tr.Heartbeat = start.Add(6 * time.Minute)
		}
		storage.Studies[0].Trials = append(storage.Studies[0].Trials, tr)
		text.Events = append(text.Events, timeline.Event{Kind: timeline.TrialEnd, Trial: i, Quality: timeline.TimeStated, Time: naive(end, log)})
	}
	gpu := &timeline.Timeline{Sources: []timeline.Source{{Kind: timeline.NvidiaSMI}}, GPUs: []timeline.GPU{{Time: []time.Time{naive(base, log)}}}}
	return []*timeline.Timeline{storage, text, gpu}
}

func TestClocks(t *testing.T) {
	const h = time.Hour
	for _, tt := range []struct {
		name       string
		db, log    time.Duration
		heartbeats bool
		zone       *time.Location
		want       string
	}{
		{"all in UTC", 0, 0, true, nil, "database 0s heartbeats; logs 0s pairs; gpu 0s shared"},
		{"India", 5*h + 30*time.Minute, 5*h + 30*time.Minute, true, nil, "database 5h30m0s heartbeats; logs 5h30m0s pairs; gpu 5h30m0s shared"},
		{"Optuna 5 in UTC, logs in local time", 0, 9 * h, true, nil, "database 0s heartbeats; logs 9h0m0s pairs; gpu 9h0m0s shared"},
		{"no heartbeats", 9 * h, 9 * h, false, nil, "database 0s assumed; logs 0s pairs; gpu 0s shared"},
		{"given", 9 * h, 9 * h, true, time.FixedZone("X", 9*3600), "database 0s given; logs 0s given; gpu 0s given"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			parts := synthetic(tt.db, tt.log, tt.heartbeats)
			var got []string
			for _, c := range place(parts, tt.zone) {
				got = append(got, fmt.Sprintf("%s %v %s", c.Of, c.Offset, c.How))
			}
			if g := strings.Join(got, "; "); g != tt.want {
				t.Errorf("got %s\nwant %s", g, tt.want)
			}
			end, logged := parts[0].Studies[0].Trials[0].End, parts[1].Events[0].Time
			if !end.Equal(logged) {
				t.Errorf("the trial ends at %v in the storage and at %v in the log", end, logged)
			}
			if want := time.Date(2026, 3, 1, 12, 7, 0, 0, time.UTC); tt.heartbeats && !end.Equal(want) {
				t.Errorf("end %v, want %v", end, want)
			}
		})
	}
}

// TestYearsFromOtherInputs: journalctl writes no year, so its times get that of the run, across New Year.
func TestYearsFromOtherInputs(t *testing.T) {
	event := func(month time.Month, day int) *timeline.Timeline {
		return &timeline.Timeline{Sources: []timeline.Source{{Kind: timeline.KernelLog}},
			Events: []timeline.Event{{Kind: timeline.Xid, Quality: timeline.TimeStated, Time: time.Date(0, month, day, 12, 0, 0, 0, timeline.Naive)}}}
	}
	november, december, alone := event(11, 20), event(12, 31), event(11, 20)
	place(append(synthetic(0, 0, true), november), nil) // a run of 1 March 2026
	place([]*timeline.Timeline{december, {Sources: []timeline.Source{{Kind: timeline.NvidiaSMI}}, GPUs: []timeline.GPU{{Time: []time.Time{time.Date(2026, 1, 1, 8, 0, 0, 0, timeline.Naive)}}}}}, nil)
	place([]*timeline.Timeline{alone}, nil)
	for _, tt := range []struct {
		got  timeline.Event
		want string
	}{{november.Events[0], "2025-11-20 stated"}, {december.Events[0], "2025-12-31 stated"}, {alone.Events[0], "0001-01-01 unknown"}} {
		if got := tt.got.Time.Format("2006-01-02 ") + string(tt.got.Quality); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	empty, binary, text := write("empty.log", ""), write("x.bin", "\x00\x01\x02"), write("notes.txt", "milk\neggs\n")
	for _, tt := range []struct {
		name string
		req  Request
		want string
	}{
		{"no such file", Request{Paths: []string{filepath.Join(dir, "no.log")}}, "no.log: no such file"},
		{"no file matches", Request{Logs: []string{filepath.Join(dir, "w*.log")}}, "w*.log: no such file"},
		{"empty", Request{Paths: []string{empty}}, "empty.log: the file is empty"},
		{"binary", Request{Paths: []string{binary}}, "x.bin: this is no database"},
		{"text that is no log", Request{Paths: []string{text}}, "none of its 2 lines is understood"},
		{"not a database", Request{Databases: []string{text}}, "notes.txt: this is no SQLite database"},
		{"a study that is not there", Request{Databases: []string{nightly + "/optuna.db"}, Studies: []string{"criterai"}}, `study "criterai": not in the storage, which has ["criteria"]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := readAll(t, tt.req)
			var in *InputError
			if !errors.As(err, &in) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := readAll(t, Request{Paths: []string{t.TempDir()}}); !errors.Is(err, ErrNothing) {
		t.Errorf("an empty folder: %v", err)
	}
}

// TestForeignDatabase: an SQLite database that is not Optuna's is skipped in a folder and refused by name.
func TestForeignDatabase(t *testing.T) {
	dir := t.TempDir()
	db, err := sql.Open("sqlite", filepath.Join(dir, "a-tracker.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE runs(x)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(t, Request{Paths: []string{dir}}); !errors.Is(err, ErrNothing) {
		t.Errorf("alone: %v", err)
	}
	b, err := os.ReadFile(nightly + "/worker0.log")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "w.log"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	tl, err := readAll(t, Request{Paths: []string{dir}})
	if err != nil || len(tl.Sources) != 1 || len(tl.Skipped) != 1 {
		t.Fatalf("in a folder: %+v, %v", tl, err)
	}
	for _, e := range tl.Events {
		if e.Pos.Source != 0 {
			t.Fatalf("event of source %d", e.Pos.Source)
		}
	}
	if _, err := readAll(t, Request{Databases: []string{filepath.Join(dir, "a-tracker.db")}}); err == nil || !strings.Contains(err.Error(), "no Optuna studies") {
		t.Errorf("by name: %v", err)
	}
}

// TestAnotherRunsLog: a log whose trials bear the same numbers but ran on another day says nothing about
// this storage's trials.
func TestAnotherRunsLog(t *testing.T) {
	log := filepath.Join(t.TempDir(), "old.log")
	text := "[I 2020-01-01 10:00:00,000] Using an existing study with name 'criteria' instead of creating a new one.\n" +
		"[I 2020-01-01 10:00:01,000] Trial 19 pruned. CUDA error: device-side assert triggered\n"
	if err := os.WriteFile(log, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	tl, err := readAll(t, Request{Databases: []string{nightly + "/optuna.db"}, Logs: []string{log}})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range tl.Events {
		if e.Trial == 19 && e.Study != "" {
			t.Errorf("taken for this run's: %+v", e)
		}
	}
	if notes := strings.Join(tl.Sources[1].Notes, ""); !strings.Contains(notes, "another run") {
		t.Errorf("notes: %q", notes)
	}
}

// TestInferredLink: a log that names no trial is joined by time where only one trial can be its, and the
// join says so.
func TestInferredLink(t *testing.T) {
	at := func(min int) time.Time { return time.Date(2026, 1, 1, 0, min, 0, 0, time.UTC) }
	trial := func(n, from, to int) timeline.Trial {
		return timeline.Trial{Number: n, Start: at(from), End: at(to), Stream: -1, Process: -1}
	}
	for _, tt := range []struct {
		name   string
		trials []timeline.Trial
		want   []timeline.Link
		event  int // the trial that the error at minute 5 is given to
	}{
		{"one after the other", []timeline.Trial{trial(0, 1, 3), trial(1, 4, 6), trial(2, 11, 12)}, []timeline.Link{timeline.Inferred, timeline.Inferred, timeline.Unlinked}, 1},
		{"two at a time", []timeline.Trial{trial(0, 1, 3), trial(1, 4, 6), trial(2, 5, 7)}, []timeline.Link{timeline.Inferred, timeline.Unlinked, timeline.Unlinked}, timeline.NoTrial},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tl := &timeline.Timeline{Sources: []timeline.Source{{}}, Studies: []timeline.Study{{Name: "s", Trials: tt.trials}}, Streams: []timeline.Stream{{Name: "w"}},
				Processes: []timeline.Process{{Start: at(0), End: at(10)}},
				Events:    []timeline.Event{{Kind: timeline.Failure, Time: at(5), Trial: timeline.NoTrial}}}
			join(tl)
			for i, want := range tt.want {
				if got := tl.Studies[0].Trials[i].Link; got != want {
					t.Errorf("trial %d: link %q, want %q", i, got, want)
				}
			}
			if e := tl.Events[0]; e.Trial != tt.event {
				t.Errorf("the error is trial %d's, want %d", e.Trial, tt.event)
			}
		})
	}
}

func ExampleRead() {
	tl, err := Read(context.Background(), Request{Paths: []string{nightly}, Catalogue: failure.Default()})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := tl.Studies[0]
	fmt.Println(s.Name, len(s.Trials), "trials,", len(tl.Processes), "processes of", len(tl.Streams), "workers")
	// Output: criteria 179 trials, 27 processes of 4 workers
}
