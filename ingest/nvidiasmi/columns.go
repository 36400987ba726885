package nvidiasmi

import (
	"strconv"
	"strings"
	"time"

	"postmortem/ingest/timeline"
)

// A column is what a cell means to us.
type column int

const (
	other column = iota
	timestamp
	index
	uuid
	name
	total
	used
	free
	util
	pid
	process
)

// columnNames maps canonical names and their aliases (nvidia-smi --help-query-gpu).
var columnNames = map[string]column{
	"timestamp": timestamp, "index": index, "uuid": uuid, "gpu_uuid": uuid,
	"name": name, "gpu_name": name, "memory.total": total, "memory.used": used, "memory.free": free,
	"utilization.gpu": util, "pid": pid, "process_name": process,
	"used_gpu_memory": used, "used_memory": used,
}

// errorTexts begin what nvidia-smi prints instead of rows when the driver or a card is in trouble.
var errorTexts = []string{
	"Unable to determine the device handle", "No devices were found", "Failed to initialize NVML",
	"NVIDIA-SMI has failed", "Field \"", "GPU is lost", "Unknown Error",
}

// header says whether a line is a header, and what its columns are.
func header(line string) ([]column, bool) {
	cells := strings.Split(line, ",")
	cols := make([]column, len(cells))
	known := 0
	for i, c := range cells {
		c, _, _ = strings.Cut(strings.TrimSpace(c), " [")
		if k, ok := columnNames[strings.ToLower(c)]; ok {
			cols[i] = k
			known++
		}
	}
	return cols, known >= 2
}

// Sniff tells a dump from its head: NvidiaSMI, NvidiaApps, or "" for neither.
func Sniff(head []byte) timeline.Kind {
	ls := strings.Split(decode(head), "\n")
	if len(ls) > 1 {
		ls = ls[:len(ls)-1] // the last may be cut
	}
	for _, line := range ls {
		line = strings.TrimRight(line, "\r")
		if cols, ok := header(line); ok {
			return kindOf(cols)
		}
		if _, err := parseTime(strings.TrimSpace(strings.Split(line, ",")[0])); err == nil && strings.Count(line, ",") >= 2 {
			if cols, _ := infer(rows(ls)); cols != nil {
				return kindOf(cols)
			}
			return ""
		}
	}
	return ""
}

func kindOf(cols []column) timeline.Kind {
	for _, c := range cols {
		if c == pid {
			return timeline.NvidiaApps
		}
	}
	return timeline.NvidiaSMI
}

// isUTF16 knows the byte order marks.
func isUTF16(b []byte) bool {
	return len(b) >= 2 && (b[0] == 0xff && b[1] == 0xfe || b[0] == 0xfe && b[1] == 0xff)
}

// decode makes text of what Windows PowerShell's > writes (UTF-16 with a mark), and of plain bytes.
func decode(b []byte) string {
	if isUTF16(b) {
		low, high := 0, 1
		if b[0] == 0xfe {
			low, high = 1, 0
		}
		var s strings.Builder
		for i := 2; i+1 < len(b); i += 2 {
			s.WriteRune(rune(b[i+high])<<8 | rune(b[i+low]))
		}
		return s.String()
	}
	return strings.ToValidUTF8(strings.TrimPrefix(string(b), "\ufeff"), "\uFFFD")
}

// parseTime reads nvidia-smi's YYYY/MM/DD HH:MM:SS.msec.
func parseTime(s string) (time.Time, error) {
	return time.ParseInLocation("2006/01/02 15:04:05.999", s, timeline.Naive)
}

// mebibytes reads a memory cell; nvidia-smi counts in MiB. Unknown is -1.
func mebibytes(cell string) int64 {
	v, ok := plainNumber(cell, "MiB")
	if !ok || v < 0 || v > 1<<30 {
		return -1
	}
	return int64(v * (1 << 20))
}

func plainNumber(cell, unit string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(cell, unit)), 64)
	return v, err == nil
}
