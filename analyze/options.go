package analyze

import (
	"cmp"
	"math"
	"slices"

	"postmortem/analyze/stats"
	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"
)

// An Option is one way to run the same training, as its log tells.
type Option struct {
	Name    string  `json:"name"`
	Epochs  int     `json:"epochs"`  // done
	Planned int     `json:"planned"` // 0 where the log does not say
	First   float64 `json:"compile_epoch_seconds"`
	// Steady is the median of the epochs after the first, Spread the middle half of them; Drifts says that they
	// get slower or faster as they go.
	Steady float64 `json:"steady_epoch_seconds"`
	Spread float64 `json:"steady_spread_seconds"`
	Drifts bool    `json:"drifts"`
	Total  float64 `json:"planned_seconds"` // for all planned epochs; 0 where that is not known
	// Speedup is against the slowest option that finished; 0 where either is not known. BreakEven is the epoch
	// from which on this option has been faster than that one, its first epoch included; 0 for never.
	Speedup   float64   `json:"speedup"`
	BreakEven int       `json:"break_even_epoch"`
	PeakBytes int64     `json:"peak_bytes"`     // of the card, or as the log tells; 0 where nothing does
	Headroom  int64     `json:"headroom_bytes"` // of the card, or of the one that was asked about, left at the peak
	BestLoss  *float64  `json:"best_val_loss,omitempty"`
	Outcome   string    `json:"outcome"` // ok, failed, or unfinished where it stopped without a word
	RootClass string    `json:"root_class,omitempty"`
	RootLine  int       `json:"root_line,omitempty"`
	Settings  []Setting `json:"settings"`
	// Conflict names two settings that do not go together, with their lines.
	Conflict []Setting `json:"conflict"`

	Times []float64 `json:"-"` // of the epochs, in seconds
}

// minSteady is how many epochs after the first tell a steady time.
const minSteady = 2

// ReadOption reads one way from its timeline; capacity is that of another card, or 0.
func ReadOption(name string, tl *timeline.Timeline, cat *failure.Catalogue, capacity int64) Option {
	x := Explain(tl, cat)
	o := Option{Name: name, Outcome: "ok", Settings: settings(tl), Conflict: []Setting{}}
	for _, e := range tl.Events {
		if e.Kind != timeline.Epoch {
			continue
		}
		o.Epochs = max(o.Epochs, e.Number)
		o.Planned = max(o.Planned, e.Total)
		if e.Metric.Took > 0 {
			o.Times = append(o.Times, seconds(e.Metric.Took))
		}
		if v := e.Metric.ValLoss; e.Metric.HasVal && v-v == 0 && (o.BestLoss == nil || v < *o.BestLoss) {
			o.BestLoss = &v
		}
	}
	o.times()
	if x.Outcome == "failed" {
		o.Outcome, o.RootClass, o.RootLine = "failed", *x.RootClass, x.Root.Line
	} else if o.Epochs < o.Planned {
		o.Outcome = "unfinished"
	}
	total := capacity
	for _, g := range tl.GPUs {
		o.PeakBytes = max(o.PeakBytes, g.PeakUsed())
		if capacity == 0 {
			total = max(total, g.TotalBytes)
		}
	}
	if o.PeakBytes == 0 {
		for _, a := range tl.Allocs {
			o.PeakBytes = max(o.PeakBytes, a.ReservedBytes)
		}
	}
	if total > 0 && o.PeakBytes > 0 {
		o.Headroom = total - o.PeakBytes
	}
	o.conflict()
	return o
}

// times sums up the epochs.
func (o *Option) times() {
	if len(o.Times) == 0 {
		return
	}
	o.First = o.Times[0]
	rest := o.Times[1:]
	if len(rest) < minSteady {
		return
	}
	o.Steady = stats.Median(rest)
	sorted := slices.Clone(rest)
	slices.Sort(sorted)
	o.Spread = sorted[len(sorted)*3/4] - sorted[len(sorted)/4]
	index := make([]float64, len(rest))
	for i := range index {
		index[i] = float64(i)
	}
	g := stats.Grow(index, rest)
	o.Drifts = g.P < 0.01 && math.Abs(g.Slope*float64(len(rest)-1)) > 0.1*o.Steady
	if o.Planned > 0 {
		o.Total = o.First + float64(o.Planned-1)*o.Steady
	}
}

// conflict looks for compiled CUDA graphs together with checkpointing, which recomputes into other memory than
// the graphs were captured with.
func (o *Option) conflict() {
	find := func(key string, values ...string) *Setting {
		i := slices.IndexFunc(o.Settings, func(s Setting) bool { return s.Key == key && slices.Contains(values, s.Value) })
		if i < 0 {
			return nil
		}
		return &o.Settings[i]
	}
	mode := find("torch_compile_mode", "reduce-overhead", "max-autotune")
	checkpointing := find("gradient_checkpointing", "true", "True")
	if mode != nil && checkpointing != nil && find("torch_compile", "false", "False") == nil {
		o.Conflict = append(o.Conflict, *mode, *checkpointing)
	}
}

// CompareOptions ranks options and recommends one: that with the shortest steady epoch of those that finished. The
// others follow as they would be fallen back to, failed ones last.
func CompareOptions(list []Option) *Comparison {
	out := &Comparison{SchemaVersion: 1, Runs: []*RunSummary{}, Classes: []ClassChange{}, Changes: []Change{}, Named: []string{}, Checks: []any{}, Attribution: "several-changes", Options: slices.Clone(list)}
	var slowest *Option
	for i := range out.Options {
		if o := &out.Options[i]; o.Outcome == "ok" && o.Steady > 0 && (slowest == nil || o.Steady > slowest.Steady) {
			slowest = o
		}
	}
	if slowest != nil {
		base := *slowest
		for i := range out.Options {
			o := &out.Options[i]
			if o.Steady <= 0 {
				continue
			}
			o.Speedup = base.Steady / o.Steady
			if gain := base.Steady - o.Steady; gain > 0 {
				o.BreakEven = max(1, 1+int(math.Ceil((o.First-base.First)/gain)))
			}
		}
	}
	rank := map[string]int{"ok": 0, "unfinished": 1, "failed": 2}
	time := func(t float64) float64 { // what is not known goes last
		if t > 0 {
			return t
		}
		return math.Inf(1)
	}
	slices.SortStableFunc(out.Options, func(a, b Option) int {
		return cmp.Or(cmp.Compare(rank[a.Outcome], rank[b.Outcome]), cmp.Compare(time(a.Steady), time(b.Steady)), cmp.Compare(time(a.Total), time(b.Total)), cmp.Compare(a.Name, b.Name))
	})
	if len(out.Options) > 0 && out.Options[0].Outcome == "ok" {
		out.Recommended = out.Options[0].Name
		least := out.Options[0]
		for _, o := range out.Options {
			if o.Outcome == "ok" && time(o.Total) < time(least.Total) {
				least = o
			}
		}
		out.LeastPlanned = least.Name
	}
	return out
}
