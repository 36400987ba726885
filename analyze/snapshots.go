package analyze

import (
	"cmp"
	"slices"

	"postmortem/ingest/timeline"
)

// A SnapshotMemory is what a snapshot of the allocator shows.
type SnapshotMemory struct {
	Name           string `json:"name"`
	Segments       int    `json:"segments"`
	TotalBytes     int64  `json:"total_bytes"`
	AllocatedBytes int64  `json:"allocated_bytes"`
	RequestedBytes int64  `json:"requested_bytes,omitempty"` // before rounding; absent where the snapshot does not say
	// Free memory within segments that also hold live blocks, which cannot be given back, and that of segments
	// without any, which can.
	SplitBytes      int64      `json:"split_bytes"`
	ReleasableBytes int64      `json:"releasable_bytes"`
	FreeBlocks      int        `json:"free_blocks"`
	LargestBytes    int64      `json:"largest_free_bytes"`
	External        float64    `json:"external_fragmentation"` // 1 − largest free block over all free memory; by itself no verdict
	Index           float64    `json:"fragmentation_index"`    // split over total
	Pools           []PoolFree `json:"pools"`
	Refused         []Refused  `json:"refused"` // allocations that failed while it was recorded
	Owners          []Owner    `json:"owners"`  // of live memory, the largest first
	Expandable      bool       `json:"expandable_segments"`

	Map []SegmentMap `json:"-"` // the fragmented ones first, of those the largest first
}

// PoolFree is the free memory of the allocator's large or small pool.
type PoolFree struct {
	Pool         string `json:"pool"`
	FreeBytes    int64  `json:"free_bytes"`
	LargestBytes int64  `json:"largest_free_bytes"`
}

// Refused is an allocation that failed.
type Refused struct {
	Time         string `json:"time"`
	RequestBytes int64  `json:"requested_bytes"`
	// Fits says whether all free memory of the pool together would have held it, although no block did:
	// fragmentation, as far as this pool goes.
	Fits bool `json:"would_fit_compacted"`
}

// An Owner is a place in the program that holds live memory.
type Owner struct {
	Frame string `json:"frame"` // file:line; "" where no frames were recorded
	Bytes int64  `json:"bytes"`
	Count int    `json:"blocks"`
}

// A SegmentMap is a segment's blocks in order: positive sizes are live, negative free.
type SegmentMap struct{ Blocks []int64 }

// whole says whether the segment is all live or all free.
func (m SegmentMap) whole() bool {
	return !slices.ContainsFunc(m.Blocks, func(b int64) bool { return (b < 0) != (m.Blocks[0] < 0) })
}

func (m SegmentMap) size() int64 {
	sum := int64(0)
	for _, b := range m.Blocks {
		sum += max(b, -b)
	}
	return sum
}

// maxOwners is how many places are listed.
const maxOwners = 10

// snapshots sums up every snapshot.
func snapshots(tl *timeline.Timeline) []SnapshotMemory {
	out := []SnapshotMemory{}
	for _, s := range tl.Snapshots {
		x := SnapshotMemory{Name: tl.Sources[s.Source].Name, Segments: len(s.Segments), Expandable: s.Expandable, Pools: []PoolFree{}, Refused: []Refused{}, Owners: []Owner{}}
		pools, owners := map[string]*PoolFree{}, map[string]*Owner{}
		for _, seg := range s.Segments {
			x.segment(seg, pools, owners)
		}
		slices.SortStableFunc(x.Map, func(a, b SegmentMap) int {
			return cmp.Or(boolInt(a.whole())-boolInt(b.whole()), cmp.Compare(b.size(), a.size()))
		})
		free := x.SplitBytes + x.ReleasableBytes
		if free > 0 {
			x.External = 1 - float64(x.LargestBytes)/float64(free)
		}
		if x.TotalBytes > 0 {
			x.Index = float64(x.SplitBytes) / float64(x.TotalBytes)
		}
		for _, p := range pools {
			x.Pools = append(x.Pools, *p)
		}
		slices.SortFunc(x.Pools, func(a, b PoolFree) int { return cmp.Compare(a.Pool, b.Pool) })
		for _, o := range owners {
			x.Owners = append(x.Owners, *o)
		}
		slices.SortFunc(x.Owners, func(a, b Owner) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Frame, b.Frame)) })
		x.Owners = x.Owners[:min(maxOwners, len(x.Owners))]
		for _, r := range s.Refused {
			x.Refused = append(x.Refused, Refused{stamp(r.Time), r.SizeBytes, r.SizeBytes > x.LargestBytes && r.SizeBytes <= free})
		}
		out = append(out, x)
	}
	return out
}

// segment adds one segment.
func (x *SnapshotMemory) segment(seg timeline.Segment, pools map[string]*PoolFree, owners map[string]*Owner) {
	x.TotalBytes += seg.TotalBytes
	x.AllocatedBytes += seg.AllocatedBytes
	x.RequestedBytes += max(0, seg.RequestedBytes)
	p := pools[seg.Pool]
	if p == nil {
		p = &PoolFree{Pool: seg.Pool}
		pools[seg.Pool] = p
	}
	live := slices.ContainsFunc(seg.Blocks, func(b timeline.Block) bool { return b.Live })
	var m SegmentMap
	for _, b := range seg.Blocks {
		if b.Live {
			o := owners[b.Frame]
			if o == nil {
				o = &Owner{Frame: b.Frame}
				owners[b.Frame] = o
			}
			o.Bytes += b.SizeBytes
			o.Count++
			m.Blocks = append(m.Blocks, b.SizeBytes)
			continue
		}
		m.Blocks = append(m.Blocks, -b.SizeBytes)
		x.FreeBlocks++
		x.LargestBytes = max(x.LargestBytes, b.SizeBytes)
		p.FreeBytes += b.SizeBytes
		p.LargestBytes = max(p.LargestBytes, b.SizeBytes)
		if live {
			x.SplitBytes += b.SizeBytes
		} else {
			x.ReleasableBytes += b.SizeBytes
		}
	}
	x.Map = append(x.Map, m)
}
