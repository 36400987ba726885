package analyze

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"postmortem/ingest"
	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"
)

// planted are Optuna studies with known causes. A truth names classes in a few words.
type plantedTruth map[string]struct {
	Rules []struct {
		Conditions []Condition
		Rows       []int // where conditions cannot say it
		Params     []string
	}
	Context []string // factors that are right, where the cause is no hyperparameter
}

var plantedClasses = map[string]string{"oom": "cuda/out-of-memory", "device_side_assert": "cuda/device-side-assert", "nan_loss": "numeric/nan-loss",
	"illegal_memory_access": "cuda/illegal-address", "worker_killed": "data/worker-killed"}

func readPlanted(t *testing.T, name string) *timeline.Timeline {
	t.Helper()
	f, err := os.Open("../testdata/planted/" + name + ".db.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "study.db")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, z); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	tl, err := ingest.Read(context.Background(), ingest.Request{Databases: []string{path}, Catalogue: failure.Default()})
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

// holds is the meaning of a condition, written apart from the search.
func holds(c Condition, t *timeline.Trial) bool {
	value := func(name string) (timeline.Choice, bool) {
		if attr, ok := strings.CutPrefix(name, "@"); ok {
			return timeline.Choice{Type: timeline.ChoiceString, Text: timeline.AttrText(t.UserAttrs, attr)}, true
		}
		i := slices.IndexFunc(t.Params, func(p timeline.Param) bool { return p.Name == name })
		if i < 0 {
			return timeline.Choice{}, false
		}
		return t.Params[i].Value(), true
	}
	number := func(v any) float64 {
		switch v := v.(type) {
		case int64:
			return float64(v)
		case float64:
			return v
		}
		return 0
	}
	v, ok := value(c.Param)
	if len(c.Product) == 2 {
		a, okA := value(c.Product[0])
		b, okB := value(c.Product[1])
		v, ok = timeline.Choice{Type: timeline.ChoiceFloat, Num: a.Num * b.Num}, okA && okB
	}
	is := func(want any) bool {
		switch v.Any().(type) {
		case int64, float64:
			return number(v.Any()) == number(want)
		}
		return v.Any() == want
	}
	if !ok {
		return false
	}
	list, _ := c.Value.([]any)
	switch c.Op {
	case OpAtLeast:
		return v.Num >= number(c.Value)
	case OpAtMost:
		return v.Num <= number(c.Value)
	case OpEqual:
		return is(c.Value)
	case OpNot:
		return !is(c.Value)
	case OpIn:
		return slices.ContainsFunc(list, is)
	case "not_in":
		return !slices.ContainsFunc(list, is)
	}
	return true
}

func rowsWith(conds []Condition, s *timeline.Study, rows []int32) map[int]bool {
	out := map[int]bool{}
	for _, i := range rows {
		if !slices.ContainsFunc(conds, func(c Condition) bool { return !holds(c, &s.Trials[i]) }) {
			out[s.Trials[i].Number] = true
		}
	}
	return out
}

func jaccard(a, b map[int]bool) float64 {
	both := 0
	for n := range a {
		if b[n] {
			both++
		}
	}
	if len(a)+len(b) == both {
		return 1
	}
	return float64(both) / float64(len(a)+len(b)-both)
}

// TestPlanted finds what was planted, and nothing where nothing was.
func TestPlanted(t *testing.T) {
	files, _ := filepath.Glob("../testdata/planted/*.json")
	if len(files) < 8 {
		t.Fatal("no planted studies")
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			doc, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var truth plantedTruth
			if err := json.Unmarshal(doc, &truth); err != nil {
				t.Fatal(err)
			}
			tl := readPlanted(t, name)
			f := Run(tl, failure.Default())
			for class, want := range truth {
				if id := plantedClasses[class]; id != "" {
					class = id
				}
				i := slices.IndexFunc(f.Blames, func(b Blame) bool { return b.Class == class })
				if len(want.Rules) > 0 && i < 0 {
					t.Fatalf("no failures of %s: %+v", class, f.Blames)
				}
				var found []map[int]bool
				for _, c := range f.Culprits {
					if c.Class == class && c.Claimed {
						found = append(found, rowsWith(c.Conditions, &tl.Studies[0], f.Blames[i].table.rows))
						if n := len(found[len(found)-1]); n != c.N {
							t.Errorf("%+v: its words hold for %d rows, its count is %d", c.Conditions, n, c.N)
						}
					}
				}
				if len(found) != len(want.Rules) {
					t.Errorf("%s: %d culprits, want %d: %+v", class, len(found), len(want.Rules), f.Culprits)
				}
				for _, rule := range want.Rules {
					planted := rowsWith(rule.Conditions, &tl.Studies[0], f.Blames[i].table.rows)
					if rule.Rows != nil {
						planted = map[int]bool{}
						for _, n := range rule.Rows {
							planted[n] = true
						}
					}
					best := 0.0
					for _, g := range found {
						best = max(best, jaccard(planted, g))
					}
					if best < 0.95 {
						t.Errorf("%s: %+v is met by %.3f of a culprit's rows: %+v", class, rule.Conditions, best, f.Culprits)
					}
				}
				for _, x := range f.Context {
					if x.Class == class && !slices.Contains(want.Context, x.Factor) {
						t.Errorf("%s: context %+v", class, x)
					}
				}
				if len(want.Context) > 0 && !slices.ContainsFunc(f.Context, func(x Context) bool { return x.Class == class }) {
					t.Errorf("%s: no context found", class)
				}
			}
		})
	}
}

// TestShuffledLabels claims next to nothing when the failures are dealt out anew among the trials, so that
// nothing goes with them. POSTMORTEM_SHUFFLES=1000 is the full measure.
func TestShuffledLabels(t *testing.T) {
	shuffles := 40
	if n, ok := os.LookupEnv("POSTMORTEM_SHUFFLES"); ok {
		if err := json.Unmarshal([]byte(n), &shuffles); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"d01_single_cat", "d13_null", "d20_product"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tl := readPlanted(t, name)
			r := newRun(tl, failure.Default())
			r.incidents()
			r.fates()
			failures := r.failures(r.losses())
			g := r.grid(&tl.Studies[0])
			b := g.atRisk(failures[0].Class)
			g.fill(r)
			rng := rand.New(rand.NewPCG(7, 7))
			claims := 0
			for range shuffles {
				rng.Shuffle(len(b.table.hit), func(i, j int) { b.table.hit[i], b.table.hit[j] = b.table.hit[j], b.table.hit[i] })
				culprits, contexts := r.blame(&b)
				if len(contexts) > 0 || slices.ContainsFunc(culprits, func(c Culprit) bool { return c.Claimed }) {
					claims++
				}
			}
			t.Logf("%d of %d shuffles claim anything", claims, shuffles)
			if float64(claims) > 0.05*float64(shuffles) {
				t.Errorf("%d of %d shuffles claim anything, want at most 5 %%", claims, shuffles)
			}
		})
	}
}
