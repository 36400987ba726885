package nvidiasmi

import (
	"math"
	"strconv"
	"strings"
)

// rows cuts lines into the cells of those that begin with a time.
func rows(lines []string) [][]string {
	var out [][]string
	for _, l := range lines {
		cells := strings.Split(strings.TrimRight(l, "\r"), ",")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		for _, c := range cells {
			if _, err := parseTime(c); err == nil && len(cells) > 2 {
				out = append(out, cells)
				break
			}
		}
	}
	return out
}

// reserveMiB is the most that a card's total exceeds used + free by: what the driver keeps for itself
// (205 to 620 MiB on the cards seen; rounding adds 2).
const reserveMiB = 1200

// infer tells the columns of a dump without header from their content, and says how. Total is the
// largest constant number; used and free are the pair that adds up to it, less the driver's reserve,
// and used is the one that is less at the start or, failing that, stands first as in nvidia-smi's own
// examples. Utilisation, power and temperature cannot be told apart and are left out, except where a
// cell carries its unit. It returns nil when the rows do not say enough.
func infer(rs [][]string) ([]column, string) {
	if len(rs) == 0 {
		return nil, ""
	}
	n := len(rs[0])
	var kept [][]string
	for _, r := range rs {
		if len(r) == n {
			kept = append(kept, r)
		}
	}
	rs = kept
	cols := make([]column, n)
	var how []string
	set := func(i int, c column, what string) {
		cols[i] = c
		how = append(how, strconv.Itoa(i+1)+" "+what)
	}
	numbers := map[int]bool{}
	for i, cell := range rs[0] {
		switch {
		case isTime(cell):
			set(i, timestamp, "timestamp")
		case strings.HasPrefix(cell, "GPU-"):
			set(i, uuid, "uuid")
		case strings.HasSuffix(cell, " %") && !taken(cols, util):
			set(i, util, "utilization.gpu")
		case strings.HasPrefix(cell, "NVIDIA ") || strings.HasPrefix(cell, "Tesla "):
			set(i, name, "name")
		default:
			if _, ok := plainNumber(cell, "MiB"); ok {
				numbers[i] = true
			}
		}
	}
	// A small constant right after the time is the card's index, if the memory can be told without it.
	idx := smallConstant(rs, numbers, cols)
	delete(numbers, idx)
	t, u, f, ok := memoryColumns(rs, numbers)
	if !ok && idx >= 0 {
		numbers[idx] = true
		idx = -1
		t, u, f, ok = memoryColumns(rs, numbers)
	}
	if ok {
		set(t, total, "memory.total")
		set(u, used, "memory.used")
		set(f, free, "memory.free")
		if idx >= 0 {
			set(idx, index, "index")
		}
		return cols, strings.Join(how, ", ")
	}
	// Compute-apps: time, uuid, pid, name, memory.
	for i := 0; i+2 < n; i++ {
		_, errPID := strconv.Atoi(rs[0][i])
		if errPID == nil && !numbers[i+1] && cols[i+1] == other && (numbers[n-1] || strings.HasPrefix(rs[0][n-1], "[")) && taken(cols, timestamp) {
			set(i, pid, "pid")
			set(i+1, process, "process_name")
			set(n-1, used, "used_gpu_memory")
			return cols, strings.Join(how, ", ")
		}
	}
	return nil, ""
}

func isTime(cell string) bool {
	_, err := parseTime(cell)
	return err == nil
}

func taken(cols []column, c column) bool {
	for _, k := range cols {
		if k == c {
			return true
		}
	}
	return false
}

// memoryColumns finds total, used and free among the numeric columns.
func memoryColumns(rs [][]string, numbers map[int]bool) (t, u, f int, ok bool) {
	value := func(r []string, i int) float64 { v, _ := plainNumber(r[i], "MiB"); return v }
	n := len(rs[0])
	t = -1
	for i := range n {
		if numbers[i] && (t < 0 || value(rs[0], i) > value(rs[0], t)) {
			t = i
		}
	}
	if t < 0 || value(rs[0], t) < 512 {
		return 0, 0, 0, false
	}
	for _, r := range rs {
		if value(r, t) != value(rs[0], t) {
			return 0, 0, 0, false
		}
	}
	best := math.Inf(1)
	for i := range n {
		for j := i + 1; j < n; j++ {
			if !numbers[i] || !numbers[j] || i == t || j == t {
				continue
			}
			lo, hi := math.Inf(1), math.Inf(-1) // of what the driver keeps
			for _, r := range rs {
				rest := value(r, t) - value(r, i) - value(r, j)
				lo, hi = min(lo, rest), max(hi, rest)
			}
			if lo < -2 || hi > reserveMiB || hi-lo >= best {
				continue
			}
			best = hi - lo
			u, f, ok = i, j, true
			if value(rs[0], i) > value(rs[0], j) && value(rs[0], j) < 1024 {
				u, f = j, i
			}
		}
	}
	return t, u, f, ok
}

// smallConstant finds a card's index: an integer below 64 right after the time.
func smallConstant(rs [][]string, numbers map[int]bool, cols []column) int {
	for i := 1; i < len(cols); i++ {
		if cols[i-1] != timestamp || !numbers[i] || cols[i] != other {
			continue
		}
		for _, r := range rs {
			if v, err := strconv.Atoi(r[i]); err != nil || v < 0 || v > 63 {
				return -1
			}
		}
		return i
	}
	return -1
}
