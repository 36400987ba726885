package optuna

import (
	"encoding/json"
	"fmt"

	"postmortem/ingest/timeline"
)

// parseDistribution reads a distribution_json of any generation. The names are those of
// optuna/distributions.py; the three of Optuna 3 replaced the five of 1.x and 2.x.
func parseDistribution(doc string) (*timeline.Distribution, error) {
	v, err := DecodeJSON(doc)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("a distribution must be a JSON object")
	}
	name, _ := m["name"].(string)
	attrs, _ := m["attributes"].(map[string]any)
	if name == "" { // the abbreviated form that json_to_distribution accepts
		name, _ = m["type"].(string)
		attrs = m
	}
	d := &timeline.Distribution{Name: name, Low: number(attrs["low"]), High: number(attrs["high"]), Step: number(attrs["step"])}
	d.Log, _ = attrs["log"].(bool)
	switch name {
	case "FloatDistribution", "UniformDistribution", "float":
		d.Kind = timeline.Float
	case "LogUniformDistribution":
		d.Kind, d.Log = timeline.Float, true
	case "DiscreteUniformDistribution":
		d.Kind, d.Step = timeline.Float, number(attrs["q"])
	case "IntDistribution", "IntUniformDistribution", "int":
		d.Kind = timeline.Int
	case "IntLogUniformDistribution":
		d.Kind, d.Log = timeline.Int, true
	case "CategoricalDistribution", "categorical":
		d.Kind = timeline.Categorical
		choices, _ := attrs["choices"].([]any)
		for _, c := range choices {
			d.Choices = append(d.Choices, choice(c))
		}
	default:
		return nil, fmt.Errorf("unknown distribution %.40q", name)
	}
	if d.Kind == timeline.Int && d.Step == 0 {
		d.Step = 1
	}
	return d, nil
}

func number(v any) float64 {
	switch v := v.(type) {
	case json.Number:
		f, _ := v.Float64()
		return f
	case float64:
		return v
	}
	return 0
}
