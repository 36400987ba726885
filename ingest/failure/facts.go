package failure

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"postmortem/ingest/timeline"
)

// A Reading tells how to take a number out of a class's message.
type Reading struct {
	// Name carries the unit, e.g. requested_bytes. A * in it stands for group 1 of a pattern that may
	// match several times (process_*_bytes by pid); the number is then group 2 and its unit group 3.
	Name    string `toml:"name"`
	Pattern string `toml:"pattern"` // group 1 is the number, group 2, if any, its unit
	// As says what the number is where it is not one as it stands: "tensor" for a shape in group 1 and
	// an element type in group 2, which make bytes, or "hex".
	As string `toml:"as"`
	re *regexp.Regexp
}

func (cl *Class) compileFacts() error {
	for i := range cl.Facts {
		r := &cl.Facts[i]
		var err error
		if r.re, err = regexp.Compile(r.Pattern); err != nil {
			return fmt.Errorf("fact %q: %w", r.Name, err)
		}
		if r.re.NumSubexp() < 1+strings.Count(r.Name, "*") {
			return fmt.Errorf("fact %q: its pattern has too few groups", r.Name)
		}
		if r.Name == "" || r.As != "" && r.As != "tensor" && r.As != "hex" {
			return errors.New("a fact needs a name, and as is tensor, hex or not there")
		}
	}
	return nil
}

// notAvailable is 2^64-1 bytes in GiB: what PyTorch prints when NVML has no figure for a process
// (WSL, vGPU). It is no number.
const notAvailable = 1 << 34

// maxRepeats is how often a reading with * is taken: a machine has that many processes on a card.
const maxRepeats = 64

// ReadFacts takes the numbers out of a message, in the catalogue's order. A figure that the text
// does not hold, because its version never printed it or because a handler cut it, is absent.
func (cl *Class) ReadFacts(text string) []timeline.Fact {
	if len(cl.Facts) == 0 {
		return nil
	}
	text = compact(text)
	var facts []timeline.Fact
	for _, r := range cl.Facts {
		many := strings.Contains(r.Name, "*")
		n := 1
		if many {
			n = maxRepeats
		}
		for _, m := range r.re.FindAllStringSubmatch(text, n) {
			name := r.Name
			if many {
				name = strings.Replace(name, "*", m[1], 1)
				m = m[1:]
			}
			m = append(m, "")
			if v, ok := r.value(m[1], m[2]); ok {
				facts = append(facts, timeline.Fact{Name: name, Value: v})
			}
		}
	}
	return facts
}

func (r *Reading) value(num, unit string) (float64, bool) {
	switch r.As {
	case "tensor":
		return tensorBytes(num, unit)
	case "hex":
		v, err := strconv.ParseUint(strings.TrimPrefix(num, "0x"), 16, 64)
		return float64(v), err == nil
	}
	return quantity(num, unit)
}

// quantity reads a number with a binary unit as PyTorch prints it. Some log viewers retype GiB as
// GB; in these messages both are 2^30.
func quantity(num, unit string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.ReplaceAll(num, ",", ""), 64)
	if err != nil {
		return 0, false
	}
	switch strings.ToUpper(strings.TrimSuffix(strings.TrimSuffix(unit, "iB"), "B")) {
	case "K":
		v *= 1 << 10
	case "M":
		v *= 1 << 20
	case "G":
		if v >= notAvailable {
			return 0, false
		}
		v *= 1 << 30
	case "T":
		v *= 1 << 40
	}
	return v, v < 1e18 // more than any machine has is no figure
}

// elementBytes are TensorFlow's names of element types (tensorflow/core/framework/types.cc).
var elementBytes = map[string]float64{"float": 4, "half": 2, "bfloat16": 2, "double": 8, "int32": 4, "int64": 8, "int16": 2, "int8": 1,
	"uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8, "bool": 1, "complex64": 8, "complex128": 16}

// tensorBytes is the size of a tensor whose shape and type a message names.
func tensorBytes(shape, typ string) (float64, bool) {
	v := elementBytes[typ]
	for _, d := range strings.Split(shape, ",") {
		n, err := strconv.ParseFloat(strings.TrimSpace(d), 64)
		if err != nil {
			return 0, false
		}
		v *= n
	}
	return v, v > 0 && v < 1e18
}
