package analyze

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"postmortem/analyze/scan"
	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"
)

// A made trial: what it was given, and how it ended.
type made struct {
	params  map[string]any // float64, int, string or bool
	attrs   map[string]any
	text    string // of its error; "" for none
	state   timeline.State
	value   float64
	seconds int
	process int // -1 none
}

// study makes a study of trials one after the other, half a minute apart.
func study(trials []made) *timeline.Timeline {
	s := timeline.Study{Name: "made", Directions: []timeline.Direction{timeline.Maximize}}
	dists := map[string]*timeline.Distribution{}
	choice := func(v any) timeline.Choice {
		switch v := v.(type) {
		case string:
			return timeline.Choice{Type: timeline.ChoiceString, Text: v}
		case bool:
			return timeline.Choice{Type: timeline.ChoiceBool, Text: map[bool]string{true: "True", false: "False"}[v], Num: float64(boolInt(v))}
		case nil:
			return timeline.Choice{Type: timeline.ChoiceNone, Text: "None"}
		}
		return timeline.Choice{Type: timeline.ChoiceFloat, Text: fmt.Sprint(v), Num: v.(float64)}
	}
	for _, m := range trials { // distributions first
		for name, v := range m.params {
			switch v.(type) {
			case int:
				dists[name] = &timeline.Distribution{Kind: timeline.Int, Low: 0, High: 1000, Step: 1}
			case float64:
				if dists[name] == nil {
					dists[name] = &timeline.Distribution{Kind: timeline.Float, Low: 0, High: 1}
				}
			default:
				d := dists[name]
				if d == nil || d.Kind != timeline.Categorical {
					d = &timeline.Distribution{Kind: timeline.Categorical}
					dists[name] = d
				}
				if !slices.Contains(d.Choices, choice(v)) {
					d.Choices = append(d.Choices, choice(v))
				}
			}
		}
	}
	start := time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC)
	for i, m := range trials {
		t := timeline.Trial{Number: i, State: m.state, Stream: -1, Process: m.process, Start: start.Add(time.Duration(i) * 30 * time.Second)}
		t.End = t.Start.Add(time.Duration(m.seconds) * time.Second)
		for name, v := range m.params {
			p := timeline.Param{Name: name, Dist: dists[name]}
			switch v := v.(type) {
			case int:
				p.Internal = float64(v)
			case float64:
				p.Internal = v
			default:
				p.Internal = float64(slices.Index(p.Dist.Choices, choice(v)))
			}
			t.Params = append(t.Params, p)
		}
		slices.SortFunc(t.Params, func(a, b timeline.Param) int {
			if a.Name < b.Name {
				return -1
			}
			return 1
		})
		for k, v := range m.attrs {
			doc, _ := json.Marshal(v)
			t.UserAttrs = append(t.UserAttrs, timeline.Attr{Key: k, JSON: string(doc)})
		}
		if m.text != "" {
			doc, _ := json.Marshal(m.text)
			t.UserAttrs = append(t.UserAttrs, timeline.Attr{Key: "error_msg", JSON: string(doc)})
		}
		if m.state == timeline.Complete {
			t.Values = []float64{m.value}
		}
		s.Trials = append(s.Trials, t)
	}
	tl := &timeline.Timeline{Sources: []timeline.Source{{Name: "made.db", Kind: timeline.OptunaSQLite}}, Studies: []timeline.Study{s}}
	return tl
}

const oomText, nanText = "CUDA out of memory. Tried to allocate 20.00 MiB.", "Loss is nan, stopping training"

// sizes makes n trials of which those with size ≥ 12 (of 0 to 19) die, slowly or at once.
func sizes(n int) []made {
	var out []made
	for i := range n {
		m := made{params: map[string]any{"size": i * 7 % 20, "lr": float64(i*13%50) / 50}, state: timeline.Complete, value: float64(i % 17), seconds: 20, process: -1}
		if m.params["size"].(int) >= 12 {
			m.text, m.state, m.seconds = oomText, timeline.Fail, 5
		}
		out = append(out, m)
	}
	return out
}

func TestCulpritOfAStudy(t *testing.T) {
	f := Run(study(sizes(200)), failure.Default())
	if len(f.Culprits) != 1 || len(f.Context) != 0 || f.Blames[0].Verdict != BlameParameters {
		t.Fatalf("%+v %+v", f.Culprits, f.Blames)
	}
	c := f.Culprits[0]
	if len(c.Conditions) != 1 || c.Conditions[0].Param != "size" || c.Conditions[0].Op != OpAtLeast || c.Conditions[0].Value != int64(12) || *c.Conditions[0].Next != 11 {
		t.Errorf("%+v", c.Conditions)
	}
	if c.Failed != 80 || c.N != 80 || c.FailedElsewhere != 0 || c.NElsewhere != 120 || c.Covers != 1 || math.Abs(c.Lift-2.5) > 1e-12 || !c.Claimed {
		t.Errorf("%+v", c.Region)
	}
	if x := c.Cut; x.AvoidsTrials != 80 || x.CompletedTrials != 0 || x.Top10Of != 10 || x.Top10 != 0 || x.SecondsSaved != 400 || x.Echoes != 0 {
		t.Errorf("cut %+v", x)
	}
	if s := c.Cut.Space; s == nil || s.Kind != "int" || s.Low != 0 || s.High != 11 {
		t.Errorf("space %+v", s)
	}
	if c.Milder != nil {
		t.Errorf("a cut that costs nothing needs no milder one: %+v", c.Milder)
	}
	// With five failures and more the rule is beyond chance soon; what came after is waste.
	w := c.Waste
	if w == nil || w.KnownAfter < 10 || w.KnownAfter > 60 || w.RecordedFail != 80 || w.Failed != w.Trials || w.Trials < 50 || math.Abs(w.First-0.4) > 0.05 {
		t.Errorf("waste %+v", w)
	}
}

// TestAtRisk holds which trials tell of a class.
func TestAtRisk(t *testing.T) {
	trials := sizes(60)
	trials[1] = made{state: timeline.Pruned, params: trials[1].params, process: -1, seconds: 9}               // by the pruner: survived
	trials[2] = made{state: timeline.Fail, text: nanText, params: trials[2].params, process: -1, seconds: 25} // outlived the class's failures
	trials[3] = made{state: timeline.Fail, text: nanText, params: trials[3].params, process: -1, seconds: 2}  // did not: censored
	trials[4] = made{state: timeline.Running, params: trials[4].params, process: -1}
	tl := study(trials)
	r := newRun(tl, failure.Default())
	r.incidents()
	r.fates()
	b := r.grid(&tl.Studies[0]).atRisk("cuda/out-of-memory")
	in := map[int]bool{}
	for _, i := range b.table.rows {
		in[int(i)] = true
	}
	for i, want := range map[int]bool{0: true, 1: true, 2: true, 3: false, 4: false} {
		if in[i] != want {
			t.Errorf("trial %d counts: %v, want %v", i, in[i], want)
		}
	}
}

// TestEchoesSayNothing leaves out trials that died of another one's error.
func TestEchoesSayNothing(t *testing.T) {
	tl := nightly(t)
	f := Run(tl, failure.Default())
	i := slices.IndexFunc(f.Blames, func(b Blame) bool { return b.Class == "cuda/device-side-assert" })
	if b := f.Blames[i]; b.Failed != 19 || b.Echoes != 19 {
		t.Errorf("%+v", b)
	}
	// All 19 began under the focal loss, and too few trials had another one to claim it: a suspect, and nothing else.
	var of []Culprit
	for _, c := range f.Culprits {
		if c.Class == "cuda/device-side-assert" {
			of = append(of, c)
		}
	}
	if len(of) != 1 || of[0].Claimed || of[0].Q <= 0.05 || of[0].Conditions[0].Param != "train.loss" || of[0].Conditions[0].Value != "focal" || of[0].Failed != 19 || of[0].CleanElsewhere == 0 || of[0].Cut.Echoes != 19 {
		t.Errorf("%+v", of)
	}
}

// TestCircumstances holds what counts as a circumstance.
func TestCircumstances(t *testing.T) {
	trials := sizes(120)
	for i := range trials {
		trials[i].attrs = map[string]any{"worker": i % 3, "gpu": i % 3, "pid": 100 + i%3, "commit": []string{"a", "b"}[i/70], "run_status": []string{"good", "bad"}[boolInt(trials[i].state == timeline.Fail)],
			"size_class": []string{"small", "large"}[boolInt(trials[i].params["size"].(int) > 9)], "note": fmt.Sprint("free text ", i), "shape": []int{1}}
		if trials[i].state == timeline.Complete {
			trials[i].attrs["epochs"] = 3 // known of those that ended well only
		}
	}
	tl := study(trials)
	r := newRun(tl, failure.Default())
	r.incidents()
	r.fates()
	g := r.grid(&tl.Studies[0])
	g.fill(r)
	var got []string
	for _, c := range g.cols {
		if c.Role != scan.Parameter {
			got = append(got, c.Name)
		}
		if c.Name == "gpu" && !slices.Equal(c.alike, []string{"worker", "pid"}) {
			t.Errorf("gpu splits as %v", c.alike)
		}
		if c.Name == "commit" && !c.Temporal || c.Name == "gpu" && c.Temporal {
			t.Errorf("%s: temporal %v", c.Name, c.Temporal)
		}
	}
	if !slices.Equal(got, []string{"gpu", "commit", "order", "uptime"}) {
		t.Errorf("circumstances %v", got)
	}
}

// TestKindsOfValues makes columns of values that are no plain numbers.
func TestKindsOfValues(t *testing.T) {
	trials := sizes(100)
	for i := range trials {
		trials[i].params["mixed"] = []any{nil, "auto", true}[i%3]
		trials[i].params["clip"] = []float64{1, 5, math.Inf(1)}[i%3]
		if i%2 == 0 {
			trials[i].params["half"] = float64(i)
		}
	}
	tl := study(trials)
	clip := &timeline.Distribution{Kind: timeline.Categorical, Choices: []timeline.Choice{{Type: timeline.ChoiceFloat, Text: "1.0", Num: 1}, {Type: timeline.ChoiceFloat, Text: "5.0", Num: 5}, {Type: timeline.ChoiceFloat, Text: "inf", Num: math.Inf(1)}}}
	for i := range tl.Studies[0].Trials {
		for k := range tl.Studies[0].Trials[i].Params {
			if p := &tl.Studies[0].Trials[i].Params[k]; p.Name == "clip" {
				p.Dist, p.Internal = clip, float64(i%3)
			}
		}
	}
	r := newRun(tl, failure.Default())
	r.incidents()
	r.fates()
	g := r.grid(&tl.Studies[0])
	g.fill(r)
	for name, want := range map[string][2]int{"mixed": {0, 3}, "clip": {0, 3}, "half": {50, 0}, "size": {20, 0}} {
		i := slices.IndexFunc(g.cols, func(c gridColumn) bool { return c.Name == name })
		if c := g.cols[i]; len(c.Values) != want[0] || c.Levels != want[1] {
			t.Errorf("%s: %d values, %d levels, want %v", name, len(c.Values), c.Levels, want)
		}
	}
	if _, err := json.Marshal(Run(tl, failure.Default())); err != nil {
		t.Error(err)
	}
}

// TestSpace leaves out choices beyond the threshold that were never tried.
func TestSpace(t *testing.T) {
	trials := sizes(200)
	tl := study(trials)
	sizes := &timeline.Distribution{Kind: timeline.Categorical}
	for v := range 30 {
		sizes.Choices = append(sizes.Choices, timeline.Choice{Type: timeline.ChoiceInt, Text: fmt.Sprint(v), Num: float64(v)})
	}
	for i := range tl.Studies[0].Trials {
		for k := range tl.Studies[0].Trials[i].Params {
			if p := &tl.Studies[0].Trials[i].Params[k]; p.Name == "size" {
				p.Dist = sizes // its value is its place
			}
		}
	}
	f := Run(tl, failure.Default())
	if len(f.Culprits) != 1 || f.Culprits[0].Cut.Space == nil || len(f.Culprits[0].Cut.Space.Choices) != 12 {
		t.Errorf("%+v", f.Culprits)
	}
}

// TestWeigh checks the reference's cut: a region with 30 of 36 failures and 11 of 264 others.
func TestWeigh(t *testing.T) {
	w := weigh(30, 36, 11, 264)
	for _, x := range []struct{ got, want float64 }{{w.Avoids, 0.8333333333333334}, {w.LosesCompleted, 0.041666666666666664}, {w.AvoidsCI[0], 0.6810920568872053}, {w.AvoidsCI[1], 0.921295524049819},
		{w.LosesCompletedCI[0], 0.02342274115099168}, {w.LosesCompletedCI[1], 0.07305768773583585}} {
		if math.Abs(x.got-x.want) > 1e-12 {
			t.Errorf("%v, want %v", x.got, x.want)
		}
	}
}

// TestMilder offers a smaller cut where the whole one is dear.
func TestMilder(t *testing.T) {
	trials := sizes(400)
	for i := range trials { // from 12 to 14 only every other one dies
		if s := trials[i].params["size"].(int); s >= 12 && s <= 14 && i/20%2 == 0 {
			trials[i].text, trials[i].state = "", timeline.Complete
		}
	}
	f := Run(study(trials), failure.Default())
	if len(f.Culprits) != 1 {
		t.Fatalf("%+v", f.Culprits)
	}
	c := f.Culprits[0]
	if c.Milder == nil || c.Milder.CompletedTrials*2 > c.Cut.CompletedTrials || float64(c.Milder.AvoidsTrials) < 0.8*float64(c.Cut.AvoidsTrials) {
		t.Errorf("cut %+v, milder %+v", c.Cut, c.Milder)
	}
}

// TestSurvival sees that processes die late.
func TestSurvival(t *testing.T) {
	var trials []made
	for p := range 8 {
		for k := range 25 {
			m := made{params: map[string]any{"lr": float64(k*p%11) / 11}, state: timeline.Complete, seconds: 20, process: -1, attrs: map[string]any{"worker": "w", "pid": 1000 + p}}
			if k == 24 {
				m.text, m.state = oomText, timeline.Fail
			}
			trials = append(trials, m)
		}
	}
	f := Run(study(trials), failure.Default())
	if len(f.Survival) != 1 {
		t.Fatalf("%+v", f.Survival)
	}
	s := f.Survival[0]
	if s.Lives != 8 || s.Died != 8 || !s.BySeconds.Rises() || !s.ByTrials.Rises() || s.ByTrials.Median == nil || *s.ByTrials.Median != 25 || s.ByTrials.NoneOver == nil || *s.ByTrials.NoneOver != 25 || *s.BySeconds.NoneOver != 24*30+20 {
		t.Errorf("%+v", s)
	}
	if len(f.Context) != 1 || f.Context[0].Factor != factorUptime || f.Context[0].Op != OpAtLeast || f.Context[0].Value != int64(24) {
		t.Errorf("%+v", f.Context)
	}
}

func TestPropose(t *testing.T) {
	trials := sizes(200)
	for i := range trials {
		trials[i].params["kind"] = []string{"a", "b"}[i/3%2]
	}
	tl := study(trials)
	for _, tt := range []struct {
		values map[string]string
		failed int
		n      int
		from   RiskFrom
		open   int
		err    bool
	}{
		{map[string]string{"size": "15"}, 80, 80, FromRule, 0, false},
		{map[string]string{"size": "11", "lr": "0.3"}, 0, 120, FromBase, 0, false},
		{map[string]string{"lr": "0.3"}, 80, 200, FromBase, 1, false}, // nothing says whether the rule is met
		{map[string]string{"kind": "z"}, 80, 200, FromBase, 1, false},
		{map[string]string{"size": "large"}, 0, 0, "", 0, true},
		{map[string]string{"batch": "3"}, 0, 0, "", 0, true},
	} {
		r, err := Propose(tl, failure.Default(), "made", tt.values)
		if tt.err {
			if err == nil {
				t.Errorf("%v: no error", tt.values)
			}
			continue
		}
		if err != nil || len(r.Classes) != 1 {
			t.Fatalf("%v: %v %+v", tt.values, err, r)
		}
		if c := r.Classes[0]; c.Failed != tt.failed || c.N != tt.n || c.From != tt.from || len(c.Open) != tt.open || r.Lost != c.Rate {
			t.Errorf("%v: %+v", tt.values, r)
		}
		if (tt.values["kind"] == "z") != slices.ContainsFunc(r.Params, func(p ProposedParam) bool { return p.Untried }) {
			t.Errorf("%v: %+v", tt.values, r.Params)
		}
	}
}
