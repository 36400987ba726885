package timeline

import (
	"encoding/json"
	"strconv"
	"time"
)

// A Study is one Optuna study.
type Study struct {
	ID          int64
	Name        string
	Directions  []Direction // one per objective
	UserAttrs   []Attr      // in the order in which the storage has them
	SystemAttrs []Attr
	Trials      []Trial // by number
	Source      int
}

// A Direction is what an objective is optimised for, spelled as the storage spells it.
type Direction string

// The directions. NotSet is what a study has before its first direction is set.
const (
	Minimize Direction = "MINIMIZE"
	Maximize Direction = "MAXIMIZE"
	NotSet   Direction = "NOT_SET"
)

// A State is a trial's state as stored. It is no cause: PRUNED hides crashes.
type State string

// The states that Optuna writes. Others can occur in a damaged database and are kept as they are.
const (
	Complete State = "COMPLETE"
	Pruned   State = "PRUNED"
	Fail     State = "FAIL"
	Running  State = "RUNNING"
	Waiting  State = "WAITING"
)

// A Trial is one trial as the storage has it, and, below, what the join with logs added.
type Trial struct {
	ID           int64 // unique in the storage
	Number       int   // unique in the study, from 0
	State        State
	Values       []float64 // one per objective; nil when there is none; may be infinite
	Params       []Param   // by name
	UserAttrs    []Attr
	SystemAttrs  []Attr
	Intermediate []Step    // by step
	Start, End   time.Time // zero when the storage has none
	Heartbeat    time.Time // the last one; zero when there is none
	Pos          Pos

	// What the join found. Index -1 means none.
	Stream  int
	Process int
	Worker  string // name of the worker, "" when unknown
	Link    Link   // how Stream, Process and Worker were found
	From    int    // first and last line of the trial in its stream; 0 when not known
	To      int
}

// A Link says how two inputs were joined.
type Link string

// How a trial came to its log and its process.
const (
	Unlinked Link = ""         // no log is known to be this trial's
	Stated   Link = "stated"   // the log names the trial, or the trial names the pid or worker
	Inferred Link = "inferred" // from times alone
)

// A Param is one hyperparameter of one trial.
type Param struct {
	Name     string
	Internal float64 // as stored: for a categorical the index into Dist.Choices
	Dist     *Distribution
}

// Value returns the parameter's external value: a Choice for a categorical, else a number.
func (p Param) Value() Choice {
	if p.Dist != nil && p.Dist.Kind == Categorical {
		if i := int(p.Internal); float64(i) == p.Internal && i >= 0 && i < len(p.Dist.Choices) {
			return p.Dist.Choices[i]
		}
		return Choice{}
	}
	if p.Dist != nil && p.Dist.Kind == Int {
		return Choice{Type: ChoiceInt, Text: strconv.FormatInt(int64(p.Internal), 10), Num: p.Internal}
	}
	return Choice{Type: ChoiceFloat, Text: FormatFloat(p.Internal), Num: p.Internal}
}

// FormatFloat writes a number the shortest way that reads back the same.
func FormatFloat(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// A DistKind is the kind of a distribution, whatever generation of Optuna wrote it.
type DistKind string

// The kinds of distribution. UnknownDist keeps a parameter whose distribution nobody can read.
const (
	Float       DistKind = "float"
	Int         DistKind = "int"
	Categorical DistKind = "categorical"
	UnknownDist DistKind = ""
)

// A Distribution is the range a parameter was drawn from. Trials of one study may differ in it.
type Distribution struct {
	Kind      DistKind
	Name      string // as stored, e.g. "LogUniformDistribution"
	Low, High float64
	Step      float64 // 0 = none
	Log       bool
	Choices   []Choice // of a categorical
}

// A ChoiceType is the JSON type of a categorical choice; Optuna's true, 1 and 1.0 are three values.
type ChoiceType uint8

// The types a choice can have. ChoiceNone is Python's None, ChoiceInvalid the zero Choice.
const (
	ChoiceInvalid ChoiceType = iota
	ChoiceNone
	ChoiceBool
	ChoiceInt
	ChoiceFloat
	ChoiceString
)

// A Choice is one value of a parameter.
type Choice struct {
	Type ChoiceType
	Text string  // as a person would read it: None, True, 16, 0.5, bert-base-uncased
	Num  float64 // of ints and floats; 1 for true
}

// Any is the value as JSON has it: nil, bool, int64, float64 or string; a number that JSON does not know is
// its text.
func (c Choice) Any() any {
	switch c.Type {
	case ChoiceBool:
		return c.Num != 0
	case ChoiceInt:
		return int64(c.Num)
	case ChoiceFloat:
		if c.Num-c.Num != 0 {
			return c.Text
		}
		return c.Num
	case ChoiceString:
		return c.Text
	}
	return nil
}

// A Step is one intermediate value; Value may be NaN or infinite.
type Step struct {
	Step  int64
	Value float64
}

// An Attr is a user or system attribute. JSON is Python's dialect: it may hold NaN, Infinity and
// integers of any size, so encoding/json alone cannot read it.
type Attr struct {
	Key  string
	JSON string
}

// FindAttr returns the JSON of the attribute of that name.
func FindAttr(attrs []Attr, key string) (string, bool) {
	for _, a := range attrs {
		if a.Key == key {
			return a.JSON, true
		}
	}
	return "", false
}

// AttrText returns the first of the named attributes that there is, as PlainText has it; "" for none.
func AttrText(attrs []Attr, keys ...string) string {
	for _, k := range keys {
		if v, ok := FindAttr(attrs, k); ok {
			return PlainText(v)
		}
	}
	return ""
}

// PlainText returns an attribute's JSON as a person would read it: a string without its quotes and
// escapes, anything else as it stands.
func PlainText(doc string) string {
	var s string
	if len(doc) > 1 && doc[0] == '"' && json.Unmarshal([]byte(doc), &s) == nil {
		return s
	}
	return doc
}
