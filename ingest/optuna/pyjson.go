package optuna

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"postmortem/ingest/timeline"
)

// Python's json.dumps writes NaN, Infinity and -Infinity bare, which encoding/json refuses. They are
// replaced by strings that no honest document holds, and turned back after decoding.
const (
	nanMark  = "\x01NaN"
	pinfMark = "\x01Inf"
	ninfMark = "\x01-Inf"
)

var bareWords = []struct{ word, mark string }{
	{"-Infinity", `"\u0001-Inf"`},
	{"Infinity", `"\u0001Inf"`},
	{"NaN", `"\u0001NaN"`},
}

// DecodeJSON decodes a document in Python's dialect. Numbers come as json.Number, so that integers of
// any size survive, except NaN and the infinities, which come as float64.
func DecodeJSON(doc string) (any, error) {
	if strings.Contains(doc, "NaN") || strings.Contains(doc, "Infinity") {
		doc = quoteBareWords(doc)
	}
	dec := json.NewDecoder(strings.NewReader(doc))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, fmt.Errorf("text after the end of the JSON value")
	}
	return unmark(v), nil
}

// quoteBareWords replaces the bare words outside of strings.
func quoteBareWords(doc string) string {
	var out bytes.Buffer
	inString := false
scan:
	for i := 0; i < len(doc); {
		switch {
		case inString && doc[i] == '\\' && i+1 < len(doc):
			out.WriteString(doc[i : i+2])
			i += 2
			continue
		case doc[i] == '"':
			inString = !inString
		case !inString:
			for _, b := range bareWords {
				if strings.HasPrefix(doc[i:], b.word) {
					out.WriteString(b.mark)
					i += len(b.word)
					continue scan
				}
			}
		}
		out.WriteByte(doc[i])
		i++
	}
	return out.String()
}

func unmark(v any) any {
	switch v := v.(type) {
	case string:
		switch v {
		case nanMark:
			return math.NaN()
		case pinfMark:
			return math.Inf(1)
		case ninfMark:
			return math.Inf(-1)
		}
		return v
	case []any:
		for i := range v {
			v[i] = unmark(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = unmark(v[k])
		}
	}
	return v
}

// choice makes a categorical choice out of a decoded JSON value.
func choice(v any) timeline.Choice {
	switch v := v.(type) {
	case nil:
		return timeline.Choice{Type: timeline.ChoiceNone, Text: "None"}
	case bool:
		if v {
			return timeline.Choice{Type: timeline.ChoiceBool, Text: "True", Num: 1}
		}
		return timeline.Choice{Type: timeline.ChoiceBool, Text: "False"}
	case json.Number:
		n, _ := v.Float64() // out of range gives an infinity of the right sign
		if strings.ContainsAny(v.String(), ".eE") {
			return timeline.Choice{Type: timeline.ChoiceFloat, Text: v.String(), Num: n}
		}
		return timeline.Choice{Type: timeline.ChoiceInt, Text: v.String(), Num: n}
	case float64:
		return timeline.Choice{Type: timeline.ChoiceFloat, Text: timeline.FormatFloat(v), Num: v}
	case string:
		return timeline.Choice{Type: timeline.ChoiceString, Text: v}
	}
	b, err := json.Marshal(v) // Optuna allows no lists or maps, but warns only
	if err != nil {
		return timeline.Choice{}
	}
	return timeline.Choice{Type: timeline.ChoiceString, Text: string(b)}
}
