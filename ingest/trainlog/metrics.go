package trainlog

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"postmortem/ingest/timeline"
)

var (
	trainLoss = regexp.MustCompile(`(?i)(?:train[ _]?loss|\bloss)['"]?[=: ]+'?(-?(?:[\d.]+(?:e[+-]?\d+)?|nan|inf))`)
	valLoss   = regexp.MustCompile(`(?i)(?:val(?:id(?:ation)?)?|eval)[ _]?loss['"]?[=: ]+'?(-?(?:[\d.]+(?:e[+-]?\d+)?|nan|inf))`)
	took      = regexp.MustCompile(`(?i)\btime[=: ]+([\d.]+) ?s\b`)
	hfEpoch   = regexp.MustCompile(`'epoch': '?([\d.]+)`)
)

// epoch is an epoch line of any common style: "Epoch 3/50 | Train Loss: 3.61 | Val Loss: … | Time: 94.81s".
func (w *lane) epoch(l *logLine, m []string) {
	n, _ := strconv.Atoi(m[1])
	w.progress(l, float64(n), metrics(m[3]))
	e := w.event(timeline.Epoch, l)
	e.Trial, e.Number = w.trial, n
	e.Total, _ = strconv.Atoi(m[2])
	if e.Total > 1 && n >= e.Total && !w.trials {
		w.finish(l.no)
	}
	e.Metric = metrics(m[3])
}

// hfDict is a line of the Hugging Face Trainer: a Python dict; transformers 5 prints its numbers as
// strings.
func (w *lane) hfDict(l *logLine, _ []string) {
	f := 0.0
	if m := hfEpoch.FindStringSubmatch(l.msg); m != nil {
		f, _ = strconv.ParseFloat(m[1], 64)
	}
	w.progress(l, f, metrics(l.msg))
	e := w.event(timeline.Epoch, l)
	e.Trial, e.Number = w.trial, int(f)
	e.Metric = metrics(l.msg)
	if strings.Contains(l.msg, "'train_runtime'") {
		w.finish(l.no)
	}
}

// progress notes an epoch and looks at its loss.
func (w *lane) progress(l *logLine, n float64, m timeline.Metrics) {
	w.advance(l, epochs, n, true)
	if m.HasTrain {
		w.loss(l, m.TrainLoss)
		w.diverging(l, m.TrainLoss)
	}
}

func metrics(s string) timeline.Metrics {
	var out timeline.Metrics
	if m := valLoss.FindStringSubmatchIndex(s); m != nil {
		out.ValLoss, out.HasVal = number(s[m[2]:m[3]])
		s = s[:m[0]] + s[m[1]:] // "Val Loss" also looks like "Loss"
	}
	if m := trainLoss.FindStringSubmatch(s); m != nil {
		out.TrainLoss, out.HasTrain = number(m[1])
	}
	if m := took.FindStringSubmatch(s); m != nil {
		if f, ok := number(m[1]); ok && f < 1e6 {
			out.Took = time.Duration(f * float64(time.Second))
		}
	}
	return out
}

func number(s string) (float64, bool) {
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

var (
	allocFigure = regexp.MustCompile(`(?i)\b(max_)?(?:memory_)?(allocated|reserved|cached|inactive_split)[=: ]+([\d.]+) ?([KMGT]?i?B)?`)
	allocCount  = regexp.MustCompile(`\b(alloc_retries|ooms)[=: ]+(\d+)`)
	allocTrial  = regexp.MustCompile(`\btrial[=: ]+(\d+)`)
	allocPhase  = regexp.MustCompile(`\bat[=: ]+(\w+)`)
)

// allocator reads a line with the figures of PyTorch's allocator: allocated and reserved at least.
// GiB and MiB are binary, GB and MB are taken as written, decimal.
func (w *lane) allocator(l *logLine, _ []string) {
	w.begin(l.no)
	a := timeline.Alloc{Trial: timeline.NoTrial,
		AllocatedBytes: -1, ReservedBytes: -1, InactiveBytes: -1, Retries: -1, OOMs: -1, Binary: 1}
	for _, m := range allocFigure.FindAllStringSubmatch(l.msg, -1) {
		if m[1] != "" {
			continue // a running maximum is no reading
		}
		v, ok := bytesOf(m[3], m[4])
		if k := strings.Index("KMGT", strings.ToUpper(strings.TrimSuffix(m[4], "B"))); k >= 0 && len(m[4]) == 2 {
			a.Binary = math.Pow(1.024, float64(k+1))
		}
		switch {
		case !ok:
		case strings.EqualFold(m[2], "allocated"):
			a.AllocatedBytes = v
		case strings.EqualFold(m[2], "inactive_split"):
			a.InactiveBytes = v
		default:
			a.ReservedBytes = v
		}
	}
	if a.AllocatedBytes < 0 || a.ReservedBytes < 0 {
		return
	}
	for _, m := range allocCount.FindAllStringSubmatch(l.msg, -1) {
		n, _ := strconv.Atoi(m[2])
		if m[1] == "ooms" {
			a.OOMs = n
		} else {
			a.Retries = n
		}
	}
	a.Trial = w.trial
	if m := allocTrial.FindStringSubmatch(l.msg); m != nil {
		a.Trial, _ = strconv.Atoi(m[1])
	}
	if m := allocPhase.FindStringSubmatch(l.msg); m != nil {
		a.Phase = m[1]
	}
	w.reading(l, a)
}

// reading enters a reading at a line.
func (w *lane) reading(l *logLine, a timeline.Alloc) {
	a.Pos, a.Process = timeline.Pos{Source: w.src, Line: l.no}, w.proc
	if l.stamped {
		a.Time, a.Quality = l.time, timeline.TimeStated
	} else {
		w.allocs = append(w.allocs, len(w.tl.Allocs))
	}
	w.tl.Allocs = append(w.tl.Allocs, a)
}

// bytesOf reads a quantity of memory; a number without unit is bytes.
func bytesOf(num, unit string) (int64, bool) {
	f, err := strconv.ParseFloat(num, 64)
	if err != nil {
		return 0, false
	}
	base := 1000.0
	if strings.Contains(unit, "i") {
		base = 1024
	}
	if i := strings.IndexByte("KMGT", (strings.ToUpper(unit) + " ")[0]); i >= 0 && unit != "" {
		f *= math.Pow(base, float64(i+1))
	}
	if f < 0 || f > 1<<50 {
		return 0, false
	}
	return int64(math.Round(f)), true
}
