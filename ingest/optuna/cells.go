package optuna

import (
	"database/sql"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"postmortem/ingest/timeline"
)

// when reads one of Optuna's times: naive, or, should a later version write one, with a zone.
func (r *reader) when(row string, v any) time.Time {
	s := strings.Replace(text(v), "T", " ", 1)
	if s == "" {
		return time.Time{}
	}
	if t, err := time.ParseInLocation("2006-01-02 15:04:05.999999999", s, timeline.Naive); err == nil {
		return t
	}
	if t, err := time.Parse("2006-01-02 15:04:05.999999999Z07:00", s); err == nil {
		return t.UTC()
	}
	r.problem(row, "a time cannot be read", s)
	return time.Time{}
}

// typed reads a number together with Optuna 3's type column.
func typed(v any, typ string) float64 {
	switch typ {
	case "INF_POS":
		return math.Inf(1)
	case "INF_NEG":
		return math.Inf(-1)
	case "NAN":
		return math.NaN()
	}
	if f, ok := real(v); ok {
		return f
	}
	return math.NaN() // up to 2.3 NULL is how NaN was stored
}

// SQLite columns hold any type whatever they are declared as, so every cell is read as it comes.

func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return strings.ToValidUTF8(v, "\uFFFD")
	case []byte:
		return strings.ToValidUTF8(string(v), "\uFFFD")
	case sql.RawBytes:
		return strings.ToValidUTF8(string(v), "\uFFFD")
	}
	return fmt.Sprint(v)
}

func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), v == math.Trunc(v) && math.Abs(v) < 1<<53
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	}
	return 0, false
}

func real(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case string, []byte:
		f, err := strconv.ParseFloat(text(v), 64)
		return f, err == nil
	}
	return 0, false
}
