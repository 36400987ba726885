// Package snapshot reads the pickles of torch.cuda.memory._dump_snapshot: every block of PyTorch's caching
// allocator at one moment, and a trace of what was allocated and given back before
// (torch/cuda/_memory_viz.py, c10/cuda/CUDACachingAllocator.cpp).
package snapshot

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"

	"postmortem/ingest/timeline"
)

// Sniff says whether a file begins like such a pickle: a protocol from 2 to 5 and, soon after, the word
// segments or a segment's own words.
func Sniff(head []byte) bool {
	if len(head) < 2 || head[0] != 0x80 || head[1] < 2 || head[1] > 5 {
		return false
	}
	head = head[:min(len(head), 4096)]
	return bytes.Contains(head, []byte("segments")) || bytes.Contains(head, []byte("segment_type")) || bytes.Contains(head, []byte("total_size"))
}

// maxBlocks is how many segments and blocks a snapshot may have.
const maxBlocks = 8 << 20

// Read reads one snapshot; src is the index that places in the result refer to. A pickle that is no snapshot,
// or does more than build data, is an error.
func Read(r io.Reader, src int) (*timeline.Timeline, error) {
	tl := &timeline.Timeline{Sources: []timeline.Source{{Kind: timeline.TorchSnapshot}}}
	doc, n, err := decode(r)
	tl.Sources[0].Bytes = n
	if err != nil {
		return tl, err
	}
	var segments, traces value = doc, nil
	settings := map[string]value{}
	if d, ok := doc.(map[string]value); ok { // the oldest are a bare list of segments
		segments, traces = d["segments"], d["device_traces"]
		settings, _ = d["allocator_settings"].(map[string]value)
	}
	list, ok := segments.(*[]value)
	if !ok {
		return tl, errors.New("the pickle is no memory snapshot: it has no list of segments")
	}
	s := timeline.Snapshot{Source: src}
	s.Expandable, _ = settings["expandable_segments"].(bool)
	blocks := 0
	for _, x := range *list { // which may name one and the same segment over and over
		if d, ok := x.(map[string]value); ok {
			seg := segment(d)
			if blocks += 1 + len(seg.Blocks); blocks > maxBlocks {
				return tl, errors.New("the snapshot has more blocks than any allocator")
			}
			s.Segments = append(s.Segments, seg)
			tl.Sources[0].Samples++
		}
	}
	if devices, ok := traces.(*[]value); ok {
		for _, t := range *devices {
			trace(&s, t)
		}
	}
	tl.Snapshots = []timeline.Snapshot{s}
	return tl, nil
}

func integer(v value) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	}
	return 0
}

func text(v value) string { s, _ := v.(string); return s }

func items(v value) []value {
	if l, ok := v.(*[]value); ok {
		return *l
	}
	return nil
}

func segment(d map[string]value) timeline.Segment {
	s := timeline.Segment{Device: integer(d["device"]), TotalBytes: integer(d["total_size"]), AllocatedBytes: integer(d["allocated_size"]), RequestedBytes: -1, Pool: text(d["segment_type"])}
	if v, ok := d["requested_size"]; ok {
		s.RequestedBytes = integer(v)
	}
	for _, x := range items(d["segment_pool_id"]) {
		s.Private = s.Private || integer(x) != 0
	}
	for _, x := range items(d["blocks"]) {
		b, ok := x.(map[string]value)
		if !ok {
			continue
		}
		state := text(b["state"])
		// A block that waits for its stream is not free yet.
		s.Blocks = append(s.Blocks, timeline.Block{SizeBytes: integer(b["size"]), Live: state != "inactive" && state != "", Frame: frame(b["frames"])})
	}
	return s
}

// frame is the innermost frame that is Python's.
func frame(v value) string {
	for _, x := range items(v) {
		if f, ok := x.(map[string]value); ok && text(f["filename"]) != "" {
			if name := text(f["filename"]); len(name) > 3 && name[len(name)-3:] == ".py" {
				return name + ":" + strconv.FormatInt(integer(f["line"]), 10)
			}
		}
	}
	return ""
}

// trace takes from a device's trace when it began and ended, and what was refused. Times are Unix microseconds.
func trace(s *timeline.Snapshot, v value) {
	for _, x := range items(v) {
		e, ok := x.(map[string]value)
		if !ok {
			continue
		}
		us, ok := e["time_us"]
		if !ok {
			continue
		}
		t := time.UnixMicro(integer(us)).UTC()
		if s.From.IsZero() || t.Before(s.From) {
			s.From = t
		}
		if t.After(s.To) {
			s.To = t
		}
		if text(e["action"]) == "oom" {
			s.Refused = append(s.Refused, timeline.Refusal{Time: t, SizeBytes: integer(e["size"]), FreeBytes: integer(e["device_free"])})
		}
	}
}
