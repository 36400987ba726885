package analyze

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"postmortem/analyze/scan"
	"postmortem/analyze/stats"
	"postmortem/ingest/timeline"
)

// A Culprit is a region of the search space in which trials die of one class. Rows are the trials that ended
// well or in which an error of the class began; see Blame.
type Culprit struct {
	Study      string      `json:"study"`
	Class      string      `json:"class"`
	Rank       int         `json:"rank"`
	Conditions []Condition `json:"conditions"` // all of which hold
	Region
	Q float64 `json:"q"` // chance of such a rule, of all rules of its shape, if failures fell at random
	// Claimed is false for a value that all failures have in common where too few trials had another one to
	// tell: worth a look, and shown to be nothing.
	Claimed bool `json:"claimed"`
	// CleanElsewhere is, for a rule that is not claimed, how many trials outside of it would exclude with 95 %
	// confidence that they fail at its rate, if none of them failed.
	CleanElsewhere int `json:"clean_elsewhere,omitempty"`
	// TestedWithin lists what the rule was tested within: time, and the circumstances that the study recorded,
	// its own apart; a claimed rule holds within each. Weakest is the one under which the evidence is weakest,
	// none for the crude test.
	TestedWithin []string `json:"tested_within"`
	Weakest      string   `json:"weakest"`

	Cut    Cut    `json:"cut"`
	Milder *Cut   `json:"milder,omitempty"` // a smaller cut that does nearly as well
	Waste  *Waste `json:"waste,omitempty"`

	Picture *Picture `json:"-"`

	rule []scan.Condition // Conditions as the table has them
	rows []bool           // of the table that meet it
}

// A Region counts the failures within a part of the rows, and outside of it.
type Region struct {
	Failed          int            `json:"failed"`
	N               int            `json:"n"`
	Rate            float64        `json:"rate"`
	CI              stats.Interval `json:"ci"` // 95 %, Wilson
	FailedElsewhere int            `json:"failed_elsewhere"`
	NElsewhere      int            `json:"n_elsewhere"`
	RateElsewhere   float64        `json:"rate_elsewhere"`
	Lift            float64        `json:"lift"`   // rate over the rate of all rows
	Covers          float64        `json:"covers"` // share of the class's failures
}

func region(failed, n, all, of int) Region {
	r := Region{Failed: failed, N: n, Rate: share(failed, n), CI: stats.Wilson(failed, n), FailedElsewhere: all - failed, NElsewhere: of - n,
		RateElsewhere: share(all-failed, of-n), Covers: share(failed, all)}
	if all > 0 {
		r.Lift = r.Rate / share(all, of)
	}
	return r
}

func share(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// A Condition restricts one hyperparameter, or, with an @ before its name, one circumstance.
type Condition struct {
	Param   string   `json:"param"`
	Op      Op       `json:"op"`
	Value   any      `json:"value"`             // number, string, boolean or null; a list of those for in; null for present
	Product []string `json:"product,omitempty"` // two parameters, whose product is restricted
	// Next is the nearest value beyond the threshold that any of the rows has: the boundary lies between.
	Next *float64 `json:"next,omitempty"`
}

// An Op is the operator of a condition, as the contract spells it.
type Op string

// The operators that are used.
const (
	OpAtLeast Op = ">="
	OpAtMost  Op = "<="
	OpEqual   Op = "=="
	OpNot     Op = "!="
	OpIn      Op = "in"
	OpPresent Op = "present"
)

// A Context is a circumstance, and no hyperparameter, that trials of a class die of.
type Context struct {
	Study      string      `json:"study"`
	Class      string      `json:"class"`
	Factor     string      `json:"factor"` // order, uptime (trials that the process ran before), or an attribute
	Op         Op          `json:"op"`
	Value      any         `json:"value"`
	Conditions []Condition `json:"conditions"` // all of the rule's, Factor's included
	Alike      []string    `json:"alike"`      // circumstances that split the trials as Factor does
	Region
	Q float64 `json:"q"`
}

// A Blame says of one class what its failures go with.
type Blame struct {
	Study   string         `json:"study"`
	Class   string         `json:"class"`
	Failed  int            `json:"failed"` // trials in which an error of the class began
	N       int            `json:"n"`      // those and the ones that ended well
	Rate    float64        `json:"rate"`
	CI      stats.Interval `json:"ci"`
	Echoes  int            `json:"echoes"`  // trials lost to another one's error, which say nothing of their own values
	Verdict Verdict        `json:"verdict"` // what is to blame
	Covers  float64        `json:"covers"`  // share of the failures that the rules explain
	// CleanTrials is how many trials in a row without this failure would exclude, with 95 % confidence,
	// that it still comes at the old rate.
	CleanTrials int `json:"clean_trials"`
	// Suspects are what a class with enough failures and without a culprit may go with.
	Suspects []Suspect `json:"suspects"`

	table *blamed
}

// A Verdict is what the failures of a class go with.
type Verdict string

// The verdicts.
const (
	BlameParameters Verdict = "parameters"
	BlameContext    Verdict = "context"
	BlameBoth       Verdict = "both"
	BlameNothing    Verdict = "nothing"      // enough failures, and neither a hyperparameter nor a circumstance goes with them
	BlameUnclear    Verdict = "undetermined" // there are suspects, and none can be shown
	TooFew          Verdict = "too-few"      // failures to tell
)

// blamed is the table of one class.
type blamed struct {
	grid *grid
	rows []int32 // indices of the study's trials
	hit  []bool  // which of them failed
	cols []*gridColumn
}

// culprits asks of every class of every study what its failures go with. Culprits are by class, then rank.
func (r *run) culprits(failures []Failure) (blames []Blame, culprits []Culprit, contexts []Context) {
	blames, culprits, contexts = []Blame{}, []Culprit{}, []Context{}
	for i := range r.tl.Studies {
		g := r.grid(&r.tl.Studies[i])
		var of []Blame
		for _, f := range failures {
			if b := g.atRisk(f.Class); b.Failed > 0 {
				of = append(of, b)
			}
		}
		for _, found := range r.blameAll(g, of) {
			culprits, contexts = append(culprits, found.culprits...), append(contexts, found.contexts...)
		}
		blames = append(blames, of...)
	}
	slices.SortStableFunc(culprits, func(a, b Culprit) int { return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Study, b.Study)) })
	slices.SortStableFunc(contexts, func(a, b Context) int { return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Study, b.Study)) })
	return blames, culprits, contexts
}

// A finding is what was found of one class.
type finding struct {
	culprits []Culprit
	contexts []Context
}

// blameAll searches the classes with failures enough, on all cores.
func (r *run) blameAll(g *grid, blames []Blame) []finding {
	out := make([]finding, len(blames))
	var wait sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range blames {
		b := &blames[i]
		b.Verdict = TooFew
		if b.Failed < scan.MinHits {
			continue
		}
		g.fill(r)
		free <- struct{}{}
		wait.Go(func() {
			out[i].culprits, out[i].contexts = r.blame(b)
			<-free
		})
	}
	wait.Wait()
	return out
}

// outlived is the share of a class's failures that a trial lost to something else must have outlived to
// count as a survivor of the class.
const outlived = 0.9

// atRisk finds the trials that tell of a class: those in which an error of it began, and those that ended
// well. A trial lost to another class counts as a survivor when it lived long enough to have shown it.
func (g *grid) atRisk(class string) Blame {
	s := g.study
	b := Blame{Study: s.Name, Class: class, Suspects: []Suspect{}, table: &blamed{grid: g}}
	var lasted []time.Duration
	for i := range s.Trials {
		if t := &s.Trials[i]; g.fates[i].began(class, t) && took(t) > 0 {
			lasted = append(lasted, took(t))
		}
	}
	long := time.Duration(math.MaxInt64)
	if len(lasted) > 0 {
		slices.Sort(lasted)
		long = lasted[int(math.Ceil(outlived*float64(len(lasted)-1)))]
	}
	for i := range s.Trials {
		t := &s.Trials[i]
		f := g.fates[i]
		root := f.began(class, t)
		switch {
		case f.kind == lost && f.in.root.Class == class && !root:
			b.Echoes++
			continue
		case root:
			b.Failed++
		case f.kind == completed, f.kind == byPruner:
		case f.kind == lost && f.in.root.Trial == t.Number && took(t) >= long:
		default:
			continue
		}
		b.table.rows = append(b.table.rows, int32(i))
		b.table.hit = append(b.table.hit, root)
	}
	b.N = len(b.table.rows)
	b.Rate, b.CI = share(b.Failed, b.N), stats.Wilson(b.Failed, b.N)
	b.CleanTrials = stats.CleanTrials(b.Rate)
	return b
}

// began says whether an error of a class began in the trial, and was no echo there.
func (f *fate) began(class string, t *timeline.Trial) bool {
	return f.kind == lost && f.in.root.Class == class && f.in.root.Trial == t.Number
}

// blame searches one class.
func (r *run) blame(b *Blame) (culprits []Culprit, contexts []Context) {
	t := b.table
	var products []gridColumn
	if r.cat.Class(b.Class).Memory {
		products = t.grid.products(t.rows, t.hit)
	}
	table, cols := t.grid.table(t.rows, t.hit, products)
	t.cols = cols
	cuts := t.grid.cutter(b)
	explained := make([]bool, len(t.rows))
	for _, rule := range scan.Find(table) {
		for i, in := range rule.Rows {
			explained[i] = explained[i] || in
		}
		if rule.Context {
			conds := t.conditions(rule.Conditions)
			at := strongest(table, rule.Conditions)
			contexts = append(contexts, Context{Study: b.Study, Class: b.Class, Factor: cols[rule.Conditions[at].Column].Name, Op: conds[at].Op, Value: conds[at].Value,
				Conditions: conds, Alike: append([]string{}, cols[rule.Conditions[at].Column].alike...), Region: region(rule.Hits, rule.N, b.Failed, b.N), Q: chance(rule.LogQ)})
			continue
		}
		culprits = append(culprits, b.culprit(cuts, rule, len(culprits)+1))
	}
	failed := 0
	for i, h := range t.hit {
		if h && explained[i] {
			failed++
		}
	}
	b.Covers = share(failed, b.Failed)
	b.Verdict = BlameNothing
	switch {
	case len(culprits) > 0 && len(contexts) > 0:
		b.Verdict = BlameBoth
	case len(culprits) > 0:
		b.Verdict = BlameParameters
	case len(contexts) > 0:
		b.Verdict = BlameContext
	}
	if len(culprits) == 0 {
		var common []scan.Rule
		b.Suspects, common = b.suspects(table)
		for _, rule := range common {
			culprits = append(culprits, b.culprit(cuts, rule, len(culprits)+1))
		}
		if b.Verdict == BlameNothing && len(culprits)+len(b.Suspects) > 0 {
			b.Verdict = BlameUnclear
		}
	}
	return culprits, contexts
}

// culprit says a rule in the words of the contract, and what came of it.
func (b *Blame) culprit(cuts *cutter, rule scan.Rule, rank int) Culprit {
	t := b.table
	own := t.onParams(rule.Conditions)
	whole := cuts.cut(own)
	c := Culprit{Study: b.Study, Class: b.Class, Rank: rank, Conditions: t.conditions(rule.Conditions), Region: region(rule.Hits, rule.N, b.Failed, b.N),
		Q: chance(rule.LogQ), Claimed: rule.LogQ <= math.Log(scan.MaxQ), TestedWithin: append([]string{}, rule.Within...), Weakest: rule.Weakest,
		Cut: whole, Milder: cuts.milder(own, whole), Waste: t.grid.waste(b, rule.Conditions, rule.Shapes), Picture: b.picture(rule.Conditions), rule: rule.Conditions, rows: rule.Rows}
	if !c.Claimed {
		c.CleanElsewhere = stats.CleanTrials(c.Rate)
	}
	return c
}

// leastQ stands for all smaller chances, which a float64 cannot hold.
const leastQ = 1e-300

// chance is the number of a logarithm, at most 1.
func chance(log float64) float64 { return math.Min(1, math.Max(math.Exp(log), leastQ)) }

// strongest is the condition that separates best by itself.
func strongest(t *scan.Table, conds []scan.Condition) int {
	best, at := -1.0, 0
	for k, c := range conds {
		if g := t.Separates(c); g > best {
			best, at = g, k
		}
	}
	return at
}
