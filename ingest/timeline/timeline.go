// Package timeline is the model that every reader makes and every analysis takes: what the inputs
// said, on one time axis, each fact with the place it was read from.
//
// It holds no conclusions. That a pruned trial was really a crash, or that one error is the echo of
// another, is for package analyze to find. Quantities are in base units: bytes, seconds, instants.
package timeline

import (
	"cmp"
	"slices"
	"time"
)

// A Timeline is everything that was read, in a fixed order: equal inputs give equal timelines.
type Timeline struct {
	Sources   []Source   // in the order in which they were given, a folder's files by name
	Studies   []Study    // by name
	Streams   []Stream   // one per log file, in the order of their sources
	Processes []Process  // by stream, then by line of their first sign of life
	Events    []Event    // by time, then by place; events without any time last
	Allocs    []Alloc    // logged allocator figures, by time, then by place
	GPUs      []GPU      // by host order of appearance: index, then UUID
	Tenants   []Tenant   // memory of single processes on a GPU, by GPU, then pid
	Snapshots []Snapshot // by source
	Phrases   []Phrase   // kinds of lines that no class names, by stream, then by their first line
	Problems  []Problem  // what was not understood, by source, then line
	Skipped   []Skipped  // files of a given folder that are no input, by name
	Clocks    []Clock    // how naive times were placed on the axis, one per kind of input
}

// A Kind names an input format. The strings are those of the JSON contract.
type Kind string

// The input formats.
const (
	OptunaSQLite  Kind = "optuna-sqlite"
	TrainLog      Kind = "train-log"
	NvidiaSMI     Kind = "nvidia-smi-csv"
	NvidiaApps    Kind = "nvidia-smi-apps"
	NvidiaDmon    Kind = "nvidia-smi-dmon"
	NvidiaPmon    Kind = "nvidia-smi-pmon"
	TorchSnapshot Kind = "torch-snapshot"
	KernelLog     Kind = "kernel-log"
)

// A Source is one input and the account of how it was read. For text inputs
// Lines = Understood + Blank + NotUnderstood.
type Source struct {
	Name          string // as given, or the path below the folder that was given
	Kind          Kind
	Bytes         int64
	Lines         int
	Blank         int
	Understood    int
	NotUnderstood int
	Events        int
	Samples       int
	Notes         []string // how the input was read where that was not self-evident
}

// A Pos is the place a fact was read from. The zero Line means the source as a whole.
type Pos struct {
	Source int    // index in Timeline.Sources
	Line   int    // 1-based, counted by \n as editors and grep -n do; for databases 0
	Row    string // for databases, table and trial number, such as "trials/267"
}

// A Problem is a part of an input that was not understood. It never ends the reading.
type Problem struct {
	Pos   Pos
	Msg   string // what is wrong and, where one is known, what to do; without file and line
	Text  string // the offending text, cut to 200 bytes; may be empty
	Count int    // how many lines of this source share Msg; Pos is the first
}

// A Skipped is a file that was found in a given folder and not read.
type Skipped struct {
	Name string
	Why  SkipReason
}

// A SkipReason says why a file was not read.
type SkipReason string

// Why a file is skipped.
const (
	SkipNotAnInput SkipReason = "not-an-input" // no format that this program reads
	SkipUnreadable SkipReason = "unreadable"
	SkipEmpty      SkipReason = "empty"
)

// A Clock tells how the naive times of one kind of input were placed.
type Clock struct {
	Of     string        // "database", "logs", "gpu" or "kernel"
	Offset time.Duration // local time minus UTC
	Zone   string        // an IANA name where the user gave one, else ""
	How    ZoneEvidence
	Trials int // how many trials or pairs bear witness; 0 where none were asked
	Others int // how many trials contradict it (and were placed by their own evidence)
}

// ZoneEvidence says what a Clock rests on.
type ZoneEvidence string

// What a Clock can rest on, strongest first.
const (
	ZoneGiven      ZoneEvidence = "given"      // --tz
	ZoneHeartbeats ZoneEvidence = "heartbeats" // heartbeats are always UTC, trial times are not
	ZoneVersion    ZoneEvidence = "version"    // written by an Optuna that stores UTC
	ZonePairs      ZoneEvidence = "pairs"      // the same trials' ends in database and log
	ZoneShared     ZoneEvidence = "shared"     // taken over from another input of the same run
	ZoneAssumed    ZoneEvidence = "assumed"    // nothing tells: taken as UTC
)

// Naive is the location of a time that was written without a zone. Readers return such times;
// Timeline holds none after ingest has placed them.
var Naive = time.FixedZone("naive", 0)

// NoYear says whether a time was read from a form that has no year, such as syslog's: readers leave the
// year 0.
func NoYear(t time.Time) bool { return t.Year() == 0 }

// NearestYear gives a time without a year the one that brings it nearest to another time, so that
// December and January meet at New Year.
func NearestYear(t, near time.Time) time.Time {
	best := t.AddDate(near.Year()-t.Year(), 0, 0)
	for _, y := range []int{near.Year() - 1, near.Year() + 1} {
		if c := t.AddDate(y-t.Year(), 0, 0); c.Sub(near).Abs() < best.Sub(near).Abs() {
			best = c
		}
	}
	return best
}

// Sort puts every part of t into its documented order. Indices between parts (Event.Stream,
// Trial.Process and so on) refer to parts that keep their order, so Sort may be called at any time.
func (t *Timeline) Sort() {
	slices.SortStableFunc(t.Events, func(a, b Event) int {
		if a.Time.IsZero() != b.Time.IsZero() {
			if a.Time.IsZero() {
				return 1
			}
			return -1
		}
		return cmp.Or(a.Time.Compare(b.Time), a.Pos.Compare(b.Pos))
	})
	slices.SortStableFunc(t.Allocs, func(a, b Alloc) int {
		return cmp.Or(a.Time.Compare(b.Time), a.Pos.Compare(b.Pos))
	})
	slices.SortStableFunc(t.Problems, func(a, b Problem) int {
		return cmp.Or(a.Pos.Compare(b.Pos), cmp.Compare(a.Msg, b.Msg))
	})
	slices.SortFunc(t.GPUs, func(a, b GPU) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.UUID, b.UUID), cmp.Compare(a.Source, b.Source))
	})
	slices.SortFunc(t.Tenants, func(a, b Tenant) int {
		return cmp.Or(cmp.Compare(a.UUID, b.UUID), cmp.Compare(a.PID, b.PID), cmp.Compare(a.Source, b.Source))
	})
}

// Compare orders places by source, line and row.
func (p Pos) Compare(q Pos) int {
	return cmp.Or(cmp.Compare(p.Source, q.Source), cmp.Compare(p.Line, q.Line), cmp.Compare(p.Row, q.Row))
}
