package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"postmortem/analyze"
)

// percent writes a share with as many digits as it means: two.
func percent(f float64) string {
	switch p := f * 100; {
	case p == 0 || p == 100:
		return fmt.Sprintf("%.0f %%", p)
	case p < 1:
		return fmt.Sprintf("%.2g %%", p)
	case p < 10:
		return fmt.Sprintf("%.1f %%", p)
	case p > 99:
		return fmt.Sprintf("%.1f %%", p)
	default:
		return fmt.Sprintf("%.0f %%", p)
	}
}

// duration writes seconds as people say them: 47 s, 3 min 58 s, 7 h 12 min, 2 d 3 h.
func duration(sec float64) string {
	switch {
	case sec < 10 && sec != math.Trunc(sec):
		return fmt.Sprintf("%.1f s", sec)
	case sec < 60:
		return fmt.Sprintf("%.0f s", sec)
	}
	s := int(math.Round(sec))
	two := func(a int, ua string, b int, ub string) string {
		if b == 0 {
			return fmt.Sprintf("%d %s", a, ua)
		}
		return fmt.Sprintf("%d %s %d %s", a, ua, b, ub)
	}
	switch {
	case s < 3600:
		return two(s/60, "min", s%60, "s")
	case s < 48*3600:
		return two(s/3600, "h", s%3600/60, "min")
	}
	return two(s/86400, "d", s%86400/3600, "h")
}

// size writes memory in binary units.
func size(n int64) string {
	switch f := float64(n); {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", f/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.0f MiB", f/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.0f KiB", f/(1<<10))
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// plural writes a count with its noun: 1 trial, 2 trials.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// where writes a place as file:line, or file:table/row.
func where(source string, line int, row string) string {
	switch {
	case line > 0:
		return source + ":" + strconv.Itoa(line)
	case row != "":
		return source + ":" + row
	}
	return source
}

// moment writes a contract time as clock time, with the day where days says so.
func moment(s string, days bool) string {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return ""
	}
	if days {
		return t.UTC().Format("2 Jan 15:04:05")
	}
	return t.UTC().Format("15:04:05")
}

// offset writes a zone's distance from UTC.
func offset(sec float64) string {
	if sec == 0 {
		return "UTC"
	}
	sign := "+"
	if sec < 0 {
		sign, sec = "−", -sec
	}
	return fmt.Sprintf("UTC%s%02d:%02d", sign, int(sec)/3600, int(sec)%3600/60)
}

// numbers writes trial numbers, of which it shows at most max.
func numbers(ns []int, most int) string {
	var b strings.Builder
	for i, n := range ns {
		if i == most {
			fmt.Fprintf(&b, " … (%d more)", len(ns)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

// Totals sums the studies up for the verdict.
type Totals struct {
	Trials, Lost, Stale, Completed, Pruned, Guarded int
	Seconds, SecondsLost                            float64
	Classes                                         []ClassTotal // that cost trials, most first
}

// ClassTotal is one class's part in the verdict.
type ClassTotal struct {
	Class             string
	Trials, Incidents int
	Echoed            int // trials lost to the echo of another trial's error
}

func totals(f *analyze.Findings) Totals {
	var t Totals
	for _, s := range f.Studies {
		t.Trials += s.Trials.Total
		t.Lost += s.Fates.Lost
		t.Stale += s.Fates.Stale
		t.Completed += s.Fates.Completed
		t.Pruned += s.Fates.PrunedByPruner
		t.Guarded += s.Fates.Guarded
		t.Seconds += s.Seconds.All
		t.SecondsLost += s.Seconds.Lost
	}
	for _, x := range f.Failures {
		if len(x.Trials) > 0 {
			t.Classes = append(t.Classes, ClassTotal{x.Class, len(x.Trials), x.Incidents, max(0, len(x.Trials)-x.Incidents)})
		}
	}
	return t
}

// incident finds an incident by its id; the zero Incident when there is none.
func incident(f *analyze.Findings, id string) analyze.Incident {
	i := slices.IndexFunc(f.Incidents, func(x analyze.Incident) bool { return x.ID == id })
	if i < 0 {
		return analyze.Incident{}
	}
	return f.Incidents[i]
}

// restOf counts the trials of the classes that the verdict does not name.
func restOf(t Totals) int {
	n := 0
	for _, c := range t.Classes[min(3, len(t.Classes)):] {
		n += c.Trials
	}
	return n
}

// lower makes a title fit into a sentence: abbreviations keep their capitals.
func lower(s string) string {
	first, rest, _ := strings.Cut(s, " ")
	if len(first) > 1 && strings.ToLower(first[1:]) != first[1:] || len(first) == 1 {
		return s
	}
	return strings.TrimSpace(strings.ToLower(first) + " " + rest)
}

// A WorkerRow sums up one worker.
type WorkerRow struct {
	Worker                  string
	Trials, Lost, Incidents int
}

func workerRows(f *analyze.Findings) []WorkerRow {
	var out []WorkerRow
	for _, l := range f.Lanes.Workers {
		r := WorkerRow{Worker: l.Worker, Trials: len(l.Bars)}
		if r.Worker == "" {
			r.Worker = "not known"
		}
		for _, b := range l.Bars {
			if b.Fate == "lost" {
				r.Lost++
			}
		}
		for _, i := range f.Incidents {
			if i.Worker == l.Worker && i.Outcome == analyze.Lost {
				r.Incidents++
			}
		}
		out = append(out, r)
	}
	return out
}

func unread(f *analyze.Findings) int {
	n := 0
	for _, i := range f.Inputs {
		n += i.NotUnderstood
	}
	return n
}

// maxEchoes is how many echoes of an incident are listed.
const maxEchoes = 20

// fact writes a number from a message in the unit that its name carries.
func fact(name string, v float64) string {
	if strings.HasSuffix(name, "_bytes") {
		return size(int64(v))
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// maxListed is how many incidents a report for people lists; the JSON has them all.
const maxListed = 500

// listed returns the first incidents and, beyond them, those that the report refers to as examples.
func listed(f *analyze.Findings) []analyze.Incident {
	if len(f.Incidents) <= maxListed {
		return f.Incidents
	}
	out := slices.Clone(f.Incidents[:maxListed])
	for _, x := range f.Failures {
		i := incident(f, x.Example)
		if !slices.ContainsFunc(out, func(o analyze.Incident) bool { return o.ID == i.ID }) {
			out = append(out, i)
		}
	}
	return out
}

func sortedKeys(m map[string]float64) []string { return slices.Sorted(maps.Keys(m)) }

// An AdviceGroup is the advice on one class.
type AdviceGroup struct {
	Class  string
	First  bool
	Verify string
	Advice []analyze.Advice
}

// adviceByClass groups advice by class, in the order of the failures.
func adviceByClass(f *analyze.Findings) []AdviceGroup {
	var out []AdviceGroup
	for _, a := range f.Advice {
		i := slices.IndexFunc(out, func(g AdviceGroup) bool { return g.Class == a.For })
		if i < 0 {
			i = len(out)
			out = append(out, AdviceGroup{Class: a.For, First: i == 0, Verify: a.Verify})
		}
		out[i].Advice = append(out[i].Advice, a)
	}
	return out
}
