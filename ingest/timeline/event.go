package timeline

import (
	"slices"
	"time"
)

// A Stream is one log file: a sequence of lines that one or more processes wrote.
type Stream struct {
	Source int
	Name   string // of the worker where the log says one, else the file's base name without extension
	Stated bool   // Name comes from the log's own words
	Study  string // the study the log says it works on, "" when it does not say
}

// A Process is one life of a process within a stream, from its first sign to the next restart.
type Process struct {
	Stream     int
	Restart    int // -1 when the log does not count them
	PID        int // 0 when unknown
	Start, End time.Time
	From, To   Pos
	ExitStatus int // meaningful when Exited
	Exited     bool

	// A log file may hold several writers' lines (Lane) and several runs one after the other (Run, from 0).
	// Lines are 1-based, 0 for none.
	Lane          string // prefix that marks this writer's lines, such as [rank1]:
	Run           int
	FirstProgress int // line of the first sign of progress: an epoch, a step, a bar
	LastProgress  int
	Finished      int      // line of the last word that says it ended well
	ExitLine      int      // of the exit status
	ErrorLine     int      // of the last line of level ERROR or above that no class explains
	ErrorText     string   // that line
	Tail          []string // the last lines of the log, at most three; of its last process only
}

// A TimeQuality says how an event came by its time. The strings are those of the JSON contract.
type TimeQuality string

// How sure a time is.
const (
	TimeStated       TimeQuality = "stated"       // on the line itself
	TimeInterpolated TimeQuality = "interpolated" // between the stamped neighbours, After and Before
	TimeUnknown      TimeQuality = "unknown"      // the log has no times at all
)

// An EventKind says what an event is.
type EventKind string

// The kinds of event.
const (
	TrialBegin   EventKind = "trial-begin"   // a trial's configuration block
	TrialEnd     EventKind = "trial-end"     // Optuna's own finished, pruned or failed line
	StudyOpened  EventKind = "study-opened"  // Optuna created or loaded a study
	Failure      EventKind = "failure"       // error text that counts: see Class
	Epoch        EventKind = "epoch"         // an epoch or metric line
	ProcessStart EventKind = "process-start" // a supervisor started the process, or a banner named it
	ProcessExit  EventKind = "process-exit"
	GPUReset     EventKind = "gpu-reset" // a worker's own clean-up between trials
	Setting      EventKind = "setting"   // environment variable or version: Key and Value
	Xid          EventKind = "xid"       // the driver's error report
	KernelOOM    EventKind = "kernel-oom"
	KernelFault  EventKind = "kernel-fault" // segfault and the like
	GPUText      EventKind = "gpu-text"     // error text in the middle of an nvidia-smi dump
)

// A Form says in what shape an error text stood in its log; it tells witnesses of one error apart.
type Form string

// The forms of error text.
const (
	FormTraceback Form = "traceback" // exception line that ends a Python traceback
	FormException Form = "exception" // exception line standing alone
	FormHandler   Form = "handler"   // a program's own report of a caught error
	FormNative    Form = "native"    // a line of CUDA, NCCL, the C++ runtime …
	FormOptuna    Form = "optuna"    // quoted in Optuna's own line about the trial
	FormCleanup   Form = "cleanup"   // a further error while handling one
	FormAttribute Form = "attribute" // a user attribute of the trial
	FormKernel    Form = "kernel"    // the kernel log
	FormWarning   Form = "warning"   // a program's report of an error that it goes on after
	FormMetric    Form = "metric"    // a figure that cannot be, such as a loss of nan
	FormBare      Form = "bare"      // words that begin a line, with no type, level or number: an error only when nothing else is there
	FormExit      Form = "exit"      // an exit status, where no text says more
)

// An Event is one thing that happened, where it was read and when.
type Event struct {
	Kind    EventKind
	Time    time.Time // zero when Quality is unknown
	Quality TimeQuality
	After   time.Time // bounds of an interpolated time; zero when open
	Before  time.Time
	Pos     Pos
	EndLine int    // last line of a block; 0 or Pos.Line for a single line
	Stream  int    // -1 none
	Process int    // -1 none
	Study   string // of Trial, set by the join; "" unknown
	Trial   int    // trial number that the text states or implies; NoTrial
	Link    Link   // how Trial was found
	PID     int    // 0 unknown

	Class string // of a failure: id in the catalogue
	Form  Form
	Text  string   // the telling line, cut to 4 KiB
	Chain []Cause  // of a traceback: what it says it was caused by, earliest first
	Lead  []string // of a failure: the lines before Pos, at most three, cut
	Fatal bool     // of a failure: the process cannot have gone on after it
	// Resumed is the line of the process's next sign of progress after a failure, 0 when there is none.
	Resumed int
	Facts   []Fact // numbers taken from the text, in the catalogue's order

	State  State  // of a TrialEnd
	Key    string // of a Setting; of a ProcessStart the worker's name
	Value  string // of a Setting
	Number int    // Xid number, exit status, restart count or epoch
	Total  int    // epochs planned
	Metric Metrics
}

// PIDLane begins the Lane of a process that is known by the number in its lines.
const PIDLane = "pid "

// GivenStatus is the Key of a ProcessExit that the user gave beside the log.
const GivenStatus = "given"

// NoTrial is Event.Trial where no trial is known.
const NoTrial = -1

// A Cause is an earlier exception in a traceback's chain.
type Cause struct {
	Class string
	Text  string
	Line  int
}

// A Fact is a number taken from a message; names carry the unit, e.g. requested_bytes.
type Fact struct {
	Name  string
	Value float64
}

// Metrics are the figures of an epoch line; NaN-able values are valid only when their flag is set.
type Metrics struct {
	HasTrain, HasVal bool
	TrainLoss        float64
	ValLoss          float64
	Took             time.Duration // 0 when not printed
}

// A Phrase is a kind of line that a log holds, numbers apart, and that no class names: what was not
// understood, and what a logger calls a warning or an error. Across trials it may tell what one log cannot.
type Phrase struct {
	Stream int
	Pos    Pos    // of the first such line
	Text   string // of the first such line, cut to 200 bytes
	Shape  string // Text with its numbers masked: equal for lines of one kind in any log
	Alarm  bool   // its level is WARNING or above
	Lines  []int  // of all such lines, ascending; at most 4096
}

// An Alloc is one logged reading of a process's PyTorch allocator.
type Alloc struct {
	Time           time.Time
	Quality        TimeQuality
	Pos            Pos
	Stream         int
	Process        int
	Trial          int    // NoTrial when not stated
	Phase          string // what the log calls the moment, e.g. "start"; "" when it does not say
	AllocatedBytes int64
	ReservedBytes  int64
	InactiveBytes  int64 // inactive_split; -1 when not printed
	Retries        int   // -1 when not printed
	OOMs           int   // -1 when not printed
	// Binary is what the figures are to be multiplied by if GB was written and GiB was meant, or MB and MiB;
	// 1 where the unit leaves no doubt.
	Binary float64
}

// A GPU is one card's samples, column by column; all columns have equal length.
type GPU struct {
	Source     int
	Index      int    // -1 when the dump does not say
	UUID       string // "" when the dump does not say
	Name       string
	Time       []time.Time
	UsedBytes  []int64   // -1 where the cell is not a number
	FreeBytes  []int64   // -1 likewise
	TotalBytes int64     // -1 when unknown
	Util       []float64 // 0..1; -1 where unknown
}

// PeakUsed is the most that was in use; 0 where no sample has a number.
func (g GPU) PeakUsed() int64 { return max(0, slices.Max(g.UsedBytes)) }

// A Tenant is one process's memory on a card over time.
type Tenant struct {
	Source    int
	UUID      string // of the card
	PID       int
	Name      string
	Time      []time.Time
	UsedBytes []int64 // -1 where the cell is not a number
}
