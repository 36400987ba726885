package failure

import (
	"strconv"
	"strings"

	"postmortem/ingest/timeline"
)

// notAvailable is 2^64-1 bytes in GiB: what PyTorch prints when NVML has no figure for a process
// (WSL, vGPU). It is no number.
const notAvailable = 1 << 34

// ReadFacts takes the numbers out of a message, in the catalogue's order. A figure that the text
// does not hold, because its version never printed it or because a handler cut it, is absent.
func (cl *Class) ReadFacts(text string) []timeline.Fact {
	if len(cl.Facts) == 0 {
		return nil
	}
	text = compact(text)
	var facts []timeline.Fact
	for _, r := range cl.Facts {
		m := r.re.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		unit := ""
		if len(m) > 2 {
			unit = m[2]
		}
		if v, ok := quantity(m[1], unit); ok {
			facts = append(facts, timeline.Fact{Name: r.Name, Value: v})
		}
	}
	return facts
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
