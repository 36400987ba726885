package optuna

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"postmortem/ingest/timeline"

	"github.com/google/go-cmp/cmp"
)

const fixtures = "../../testdata/optuna"

func gunzip(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join(fixtures, name+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// unpack lays a fixture and its companions into a folder of their own.
func unpack(t testing.TB, name string) string {
	t.Helper()
	dir := t.TempDir()
	for _, suffix := range []string{"", "-wal", "-journal"} {
		if _, err := os.Stat(filepath.Join(fixtures, name+suffix+".gz")); err != nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name+suffix), gunzip(t, name+suffix), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, name)
}

var seoul = time.FixedZone("Asia/Seoul", 9*3600) // where the fixtures were made; it has no summer time

// TestEqualsOptuna compares every fixture with what the Optuna that wrote it says is in it.
func TestEqualsOptuna(t *testing.T) {
	truths, err := filepath.Glob(filepath.Join(fixtures, "*.expected.json.gz"))
	if err != nil || len(truths) < 13 {
		t.Fatalf("found %d truths, %v", len(truths), err)
	}
	for _, path := range truths {
		name := strings.TrimSuffix(filepath.Base(path), ".expected.json.gz")
		t.Run(name, func(t *testing.T) {
			var want truth
			dec := json.NewDecoder(bytes.NewReader(gunzip(t, name+".expected.json")))
			dec.UseNumber()
			if err := dec.Decode(&want); err != nil {
				t.Fatal(err)
			}
			tl, err := Read(context.Background(), unpack(t, name+".db"), 0)
			if err != nil {
				t.Fatal(err)
			}
			clock, found := FindClock(tl)
			if hasHeartbeats := len(want.Heartbeats) > 0; found != hasHeartbeats {
				t.Fatalf("clock found: %v, but heartbeats are there: %v", found, hasHeartbeats)
			}
			if found {
				Place(tl, clock, nil) // the zone must come out of the heartbeats
			} else {
				Place(tl, clock, seoul)
			}
			mixed := strings.Contains(name, "mixed")
			if len(tl.Studies) != len(want.Studies) {
				t.Fatalf("got %d studies, want %d", len(tl.Studies), len(want.Studies))
			}
			got := map[string]timeline.Study{}
			for _, s := range tl.Studies {
				got[s.Name] = s
			}
			for _, w := range want.Studies {
				compareStudy(t, got[w.Name], w, mixed)
			}
			compareHeartbeats(t, tl, want.Heartbeats)
		})
	}
}

type truth struct {
	Studies    []truthStudy
	Heartbeats [][]any `json:"heartbeats_utc"`
}

type truthStudy struct {
	Name        string         `json:"study_name"`
	ID          int64          `json:"study_id"`
	Directions  []string       `json:"directions"`
	UserAttrs   map[string]any `json:"user_attrs"`
	SystemAttrs map[string]any `json:"system_attrs"`
	Trials      []truthTrial
}

type truthTrial struct {
	Number        int
	ID            int64 `json:"trial_id"`
	State         string
	Values        []any
	Params        map[string]any
	Distributions map[string]struct {
		Name       string
		Attributes map[string]any
	}
	UserAttrs    map[string]any `json:"user_attrs"`
	SystemAttrs  map[string]any `json:"system_attrs"`
	Intermediate map[string]any `json:"intermediate_values"`
	Start        string         `json:"datetime_start"`
	End          string         `json:"datetime_complete"`
}

func compareStudy(t *testing.T, got timeline.Study, want truthStudy, mixed bool) {
	t.Helper()
	var dirs []string
	for _, d := range got.Directions {
		dirs = append(dirs, string(d))
	}
	check(t, want.Name+": directions", dirs, want.Directions)
	check(t, want.Name+": id", got.ID, want.ID)
	check(t, want.Name+": user attributes", attrs(t, got.UserAttrs), want.UserAttrs)
	check(t, want.Name+": system attributes", attrs(t, got.SystemAttrs), want.SystemAttrs)
	if len(got.Trials) != len(want.Trials) {
		t.Fatalf("%s: got %d trials, want %d", want.Name, len(got.Trials), len(want.Trials))
	}
	for i, w := range want.Trials {
		g := got.Trials[i]
		at := fmt.Sprintf("%s trial %d: ", want.Name, w.Number)
		check(t, at+"number, id, state", []any{g.Number, g.ID, string(g.State)}, []any{w.Number, w.ID, w.State})
		var values []any
		for _, v := range g.Values {
			values = append(values, plainFloat(v))
		}
		check(t, at+"values", values, plainList(w.Values))
		params, dists := map[string]any{}, map[string]string{}
		for _, p := range g.Params {
			params[p.Name] = plainChoice(p)
			dists[p.Name] = string(p.Dist.Kind)
			compareDistribution(t, at+p.Name, p.Dist, w.Distributions[p.Name].Name, w.Distributions[p.Name].Attributes)
		}
		check(t, at+"params", params, plainMap(w.Params))
		check(t, at+"user attributes", attrs(t, g.UserAttrs), w.UserAttrs)
		if _, ok := timeline.FindAttr(g.SystemAttrs, "_number"); !ok {
			delete(w.SystemAttrs, "_number") // the half upgrade moved it into the column, which was compared above
		}
		check(t, at+"system attributes", attrs(t, g.SystemAttrs), w.SystemAttrs)
		steps := map[string]any{}
		for _, s := range g.Intermediate {
			steps[fmt.Sprint(s.Step)] = plainFloat(s.Value)
		}
		for k, v := range w.Intermediate { // up to 2.3 a NaN is stored as NULL, which that API shows as None
			if v == nil && steps[k] == "NaN" {
				steps[k] = nil
			}
		}
		check(t, at+"intermediate values", steps, plainMap(w.Intermediate))
		// In the mixed file Optuna 5 shifts the times that 4.9 wrote by the zone's nine hours. The two
		// trials that it wrote itself (the last of study halving) it reads rightly; they have no
		// heartbeat, so nothing in the file tells that they are in UTC, and we read them nine hours early.
		shift := time.Duration(0)
		if mixed {
			shift = 9 * time.Hour
		}
		check(t, at+"times", []string{wall(g.Start, shift), wall(g.End, shift)}, []string{seconds(w.Start), seconds(w.End)})
	}
}

func compareDistribution(t *testing.T, at string, d *timeline.Distribution, name string, a map[string]any) {
	t.Helper()
	want := timeline.Distribution{}
	doc, _ := json.Marshal(map[string]any{"name": name, "attributes": a})
	w, err := parseDistribution(string(doc))
	if err != nil {
		t.Fatalf("%s: %v", at, err)
	}
	want = *w
	got := *d
	got.Name, want.Name = "", ""  // the API shows old distributions under their new names
	for i := range want.Choices { // the truth writes non-finite choices as strings
		if c := &want.Choices[i]; c.Type == timeline.ChoiceString && (c.Text == "NaN" || strings.HasSuffix(c.Text, "Infinity")) {
			got.Choices[i] = *c
		}
	}
	check(t, at+": distribution", got, want)
}

func compareHeartbeats(t *testing.T, tl *timeline.Timeline, want [][]any) {
	t.Helper()
	got := map[string]string{}
	for _, s := range tl.Studies {
		for _, tr := range s.Trials {
			if !tr.Heartbeat.IsZero() {
				got[fmt.Sprint(tr.ID)] = tr.Heartbeat.Format("2006-01-02 15:04:05")
			}
		}
	}
	w := map[string]string{}
	for _, h := range want {
		w[fmt.Sprint(h[0])] = strings.TrimSuffix(fmt.Sprint(h[1]), ".000000")
	}
	check(t, "heartbeats", got, w)
}

func wall(t time.Time, shift time.Duration) string {
	if t.IsZero() {
		return ""
	}
	return t.Add(shift).In(seoul).Format("2006-01-02T15:04:05.000000")
}

func seconds(s string) string {
	if s != "" && !strings.Contains(s, ".") {
		s += ".000000"
	}
	return s
}

// attrs decodes attributes into the form of the truth.
func attrs(t *testing.T, list []timeline.Attr) map[string]any {
	t.Helper()
	m := map[string]any{}
	for _, a := range list {
		v, err := DecodeJSON(a.JSON)
		if err != nil {
			t.Fatalf("attribute %q: %v", a.Key, err)
		}
		m[a.Key] = plain(v)
	}
	return m
}

func plain(v any) any {
	switch v := v.(type) {
	case float64:
		return plainFloat(v)
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	}
	return v
}

func plainList(v []any) []any {
	var out []any
	for _, x := range v {
		if n, ok := x.(json.Number); ok {
			f, _ := n.Float64()
			x = f
		}
		out = append(out, x)
	}
	return out
}

func plainMap(m map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		if n, ok := v.(json.Number); ok {
			f, _ := n.Float64()
			v = f
		}
		out[k] = v
	}
	return out
}

func plainFloat(f float64) any {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return f
}

func plainChoice(p timeline.Param) any {
	switch c := p.Value(); c.Type {
	case timeline.ChoiceNone:
		return nil
	case timeline.ChoiceBool:
		return c.Num == 1
	case timeline.ChoiceString:
		return c.Text
	default:
		return plainFloat(c.Num)
	}
}

func check(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(normal(want), normal(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// normal passes a value through JSON, so that nil and empty, and number types, compare equal.
func normal(v any) any {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%#v", v)
	}
	if s := string(b); s == "{}" || s == "[]" {
		return nil
	}
	var out any
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&out); err != nil {
		return err.Error()
	}
	return out
}

// TestLeavesNoTrace proves that reading changes no byte, no time and no folder entry.
func TestLeavesNoTrace(t *testing.T) {
	for _, name := range []string{"optuna-v4.9.0.db", "hot-journal.db", "wal-uncheckpointed.db", "wal-lost.db", "truncated-half.db"} {
		t.Run(name, func(t *testing.T) {
			path := unpack(t, name)
			before := listing(t, filepath.Dir(path))
			t.Setenv("TMPDIR", t.TempDir())
			_, err := Read(context.Background(), path, 0)
			if (err != nil) != (name == "truncated-half.db") {
				t.Errorf("Read: %v", err)
			}
			if d := cmp.Diff(before, listing(t, filepath.Dir(path))); d != "" {
				t.Errorf("the folder changed (-before +after):\n%s", d)
			}
			if left := listing(t, os.Getenv("TMPDIR")); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func listing(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s %x %d %s %s", e.Name(), sha256.Sum256(b), len(b), info.ModTime(), info.Mode()))
	}
	sort.Strings(out)
	return out
}

// TestBroken reads what is damaged or foreign: all that can be read is, and the rest is said.
func TestBroken(t *testing.T) {
	states := func(t *testing.T, name string) (map[timeline.State]int, *timeline.Timeline) {
		tl, err := Read(context.Background(), unpack(t, name), 0)
		if err != nil {
			t.Fatal(err)
		}
		m := map[timeline.State]int{}
		for _, s := range tl.Studies {
			for _, tr := range s.Trials {
				m[tr.State]++
			}
		}
		return m, tl
	}
	t.Run("hot journal is rolled back", func(t *testing.T) {
		got, _ := states(t, "hot-journal.db")
		if got[timeline.Fail] != 10 || got[timeline.Pruned] != 22 {
			t.Errorf("got %v, want 10 FAIL and 22 PRUNED", got)
		}
	})
	t.Run("write-ahead log counts", func(t *testing.T) {
		got, _ := states(t, "wal-uncheckpointed.db")
		n := 0
		for _, c := range got {
			n += c
		}
		if n != 105 {
			t.Errorf("got %d trials, want 105", n)
		}
	})
	t.Run("missing write-ahead log is said", func(t *testing.T) {
		_, tl := states(t, "wal-lost.db")
		if notes := strings.Join(tl.Sources[0].Notes, "\n"); !strings.Contains(notes, "-wal file is not here") {
			t.Errorf("notes: %s", notes)
		}
	})
	t.Run("bad JSON and a foreign state are problems", func(t *testing.T) {
		got, tl := states(t, "bad-json.db")
		if got["ABORTED"] != 1 || len(tl.Problems) < 2 {
			t.Errorf("got %v, problems %v", got, tl.Problems)
		}
	})
	t.Run("a newer schema is read by its columns", func(t *testing.T) {
		got, tl := states(t, "future-schema.db")
		if got[timeline.Complete] != 62 || !strings.Contains(strings.Join(tl.Sources[0].Notes, "\n"), "newer") {
			t.Errorf("got %v, notes %q", got, tl.Sources[0].Notes)
		}
	})
	for name, content := range map[string]string{"empty": "", "text": "[I 2024-05-11] hello", "header": magic + strings.Repeat("x", 84), "short": magic} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.db")
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
			if tl, err := Read(context.Background(), path, 0); err == nil {
				t.Errorf("got %+v, want an error", tl)
			}
		})
	}
}

func FuzzDecodeJSON(f *testing.F) {
	for _, s := range []string{`{"a": NaN, "b": [-Infinity, "NaN \" Infinity"]}`, `1e999`, `"\ud800"`, `12345678901234567890`, `{`, `NaNNaN`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		v, err := DecodeJSON(doc)
		if err == nil {
			choice(v)
		}
		_, _ = parseDistribution(doc)
	})
}

func FuzzRead(f *testing.F) {
	f.Add(gunzip(f, "optuna-v1.0.0.db"), 4000, byte(0xff))
	f.Add(gunzip(f, "optuna-v4.9.0.db"), 9000, byte(1))
	f.Fuzz(func(t *testing.T, db []byte, at int, with byte) {
		if len(db) > 1<<20 {
			return
		}
		if at >= 0 && at < len(db) {
			db[at] ^= with
		}
		path := filepath.Join(t.TempDir(), "f.db")
		if err := os.WriteFile(path, db, 0o644); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if tl, err := Read(ctx, path, 0); err == nil {
			clock, _ := FindClock(tl)
			Place(tl, clock, nil)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	path := unpack(b, "optuna-v4.9.0.db")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(context.Background(), path, 0); err != nil {
			b.Fatal(err)
		}
	}
}
