package timeline

import "time"

// A Snapshot is PyTorch's caching allocator at one moment, block by block.
type Snapshot struct {
	Source     int
	Segments   []Segment
	Expandable bool      // the allocator was set to let segments grow
	Refused    []Refusal // allocations that failed while it was recorded, by time
	From, To   time.Time // of the recorded trace; zero where there is none
}

// A Segment is a piece of the card's memory that the allocator holds.
type Segment struct {
	Device         int64
	TotalBytes     int64
	AllocatedBytes int64
	RequestedBytes int64  // by the program, before rounding; -1 where the snapshot does not say
	Pool           string // large or small
	Private        bool   // of a pool of its own, such as a CUDA graph's
	Blocks         []Block
}

// A Block is a part of a segment.
type Block struct {
	SizeBytes int64
	Live      bool
	Frame     string // the innermost frame of the program that allocated it, file:line; "" where none was recorded
}

// A Refusal is an allocation that failed.
type Refusal struct {
	Time      time.Time
	SizeBytes int64 // as the allocator rounded it
	FreeBytes int64 // on the card
}
