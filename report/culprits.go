package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"postmortem/analyze"
)

// culpritFuncs are the helpers of the words about hyperparameters and circumstances.
func culpritFuncs(d Document) map[string]any {
	return map[string]any{
		"trimAt":    func(s string) string { return strings.TrimPrefix(s, "@") },
		"isContext": func(s string) bool { return strings.HasPrefix(s, "@") },
		"value":     value,
		"values":    values,
		"py":        python,
		"chance":    chance,
		"points":    func(f float64) string { return fmt.Sprintf("%+.1f", 100*f) },
		"last":      func(v []analyze.ValueRate) int { return len(v) - 1 },
		"studies":   func() int { return len(d.Studies) },
		"culpritsOf": func(b analyze.Blame) []analyze.Culprit {
			return keep(d.Culprits, func(c analyze.Culprit) bool { return c.Study == b.Study && c.Class == b.Class })
		},
		"claimed": func(most int) []analyze.Culprit { // the first of each class, the costliest class first
			var out []analyze.Culprit
			for _, x := range d.Failures {
				out = append(out, keep(d.Culprits, func(c analyze.Culprit) bool { return c.Class == x.Class && c.Claimed && c.Rank == 1 })...)
			}
			return out[:min(most, len(out))]
		},
		"contextOf": func(b analyze.Blame) []analyze.Context {
			return keep(d.Context, func(c analyze.Context) bool { return c.Study == b.Study && c.Class == b.Class })
		},
		"survivalOf": func(b analyze.Blame) *analyze.Survival {
			for _, s := range d.Survival {
				if s.Study == b.Study && s.Class == b.Class && s.BySeconds.Rises() {
					return &s
				}
			}
			return nil
		},
		"culprit": func(c analyze.Culprit, title, desc, y string) figure {
			i := slices.IndexFunc(d.Culprits, func(o analyze.Culprit) bool { return o.Study == c.Study && o.Class == c.Class && o.Rank == c.Rank })
			return culpritFigure(fmt.Sprintf("culprit-%d", i+1), title, desc, y, c.Picture)
		},
		"hazard": func(i int, title, desc, minutes, hours, y string, s *analyze.Survival) figure {
			bins := slices.Clone(s.BySeconds.Bins)
			unit, x := 60.0, minutes
			if bins[len(bins)-1].High > 5*3600 {
				unit, x = 3600, hours
			}
			for k := range bins {
				bins[k].Low /= unit
				bins[k].High /= unit
			}
			return hazardFigure(fmt.Sprintf("hazard-%d", i+1), title, desc, x, y, bins)
		},
	}
}

func keep[T any](list []T, want func(T) bool) []T {
	var out []T
	for _, x := range list {
		if want(x) {
			out = append(out, x)
		}
	}
	return out
}

// value writes a value of a condition for people: numbers with four digits, Python's names for the rest.
func value(v any) string {
	switch v := v.(type) {
	case *float64:
		return value(*v)
	case float64:
		switch a := math.Abs(v); {
		case v == math.Trunc(v) && a < 1e9:
			return strconv.FormatFloat(v, 'f', 0, 64)
		case a >= 1000 && a < 1e9:
			return strconv.FormatFloat(v, 'f', 1, 64)
		}
		return strconv.FormatFloat(v, 'g', 4, 64)
	case string:
		return clip(v, 60)
	}
	return python(v)
}

// values writes a list of values: a, b or c.
func values(v any) string {
	list, _ := v.([]any)
	var out strings.Builder
	for i, x := range list {
		switch {
		case i > 0 && i == len(list)-1:
			out.WriteString(" or ")
		case i > 0:
			out.WriteString(", ")
		}
		out.WriteString(value(x))
	}
	return out.String()
}

// python writes a value as a Python literal; it holds nothing but printable ASCII.
func python(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []any:
		var out []string
		for _, x := range v {
			out = append(out, python(x))
		}
		return "[" + strings.Join(out, ", ") + "]"
	}
	return strconv.QuoteToASCII(fmt.Sprint(v))
}

// chance writes a probability that may be very small.
func chance(p float64) string {
	switch {
	case p >= 0.001:
		return percent(p)
	case p <= 1e-300:
		return "below 1e-300"
	}
	return strconv.FormatFloat(p, 'e', 0, 64)
}
