package analyze

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"postmortem/analyze/stats"
)

// A MemoryVerdict says why memory ran out.
type MemoryVerdict string

// The verdicts of the contract.
const (
	Fragmentation MemoryVerdict = "fragmentation" // a compact pool would have had room
	Leak          MemoryVerdict = "leak"          // live memory grew until it did not fit
	Overcommit    MemoryVerdict = "overcommit"    // it would have fitted alone: others hold the card
	TooBig        MemoryVerdict = "too-big"       // it does not fit even alone
	Capacity      MemoryVerdict = "capacity"      // live tensors fill the limit, why is open
	Undetermined  MemoryVerdict = "undetermined"
)

// A shortage is what is known of an allocation that failed: bytes, or unknown.
type shortage struct {
	request, capacity, free, allowed    float64
	allocated, private, slack, reserved float64 // private pools' free blocks count as allocated
	process                             float64 // all of this process's memory on the card
	overhead                            float64 // of it, what is not PyTorch's: the context
	peers                               map[int]float64
	listed                              bool // whether peers is a list of all others
	inferred                            []string
}

const (
	unknown = -1.0
	mib     = 1 << 20
	gib     = 1 << 30
)

// newShortage reads the numbers of a message. A number above four times the card is NVML's word for none.
func newShortage(facts map[string]float64) shortage {
	get := func(names ...string) float64 {
		for _, n := range names {
			if v, ok := facts[n]; ok {
				return v
			}
		}
		return unknown
	}
	s := shortage{request: get("requested_bytes"), capacity: get("capacity_bytes"), free: get("free_bytes"), allowed: get("allowed_bytes", "limit_bytes"),
		allocated: get("allocated_bytes"), private: max(0, get("private_pools_bytes")), slack: get("reserved_unallocated_bytes"), reserved: get("reserved_bytes"),
		process: get("process_bytes"), overhead: unknown, peers: map[int]float64{}}
	for name, v := range facts {
		if n, ok := strings.CutPrefix(name, "process_"); ok {
			if pid, err := strconv.Atoi(strings.TrimSuffix(n, "_bytes")); err == nil {
				s.peers[pid] = v
			}
		}
	}
	s.listed = s.process >= 0 || len(s.peers) > 0
	if none := 4 * s.capacity; s.capacity > 0 {
		if s.process > none {
			s.process, s.listed = unknown, false
		}
		before := len(s.peers)
		maps.DeleteFunc(s.peers, func(_ int, v float64) bool { return v > none })
		s.listed = s.listed && len(s.peers) == before
	}
	switch {
	case s.slack < 0 && s.reserved >= 0 && s.allocated >= 0:
		s.slack = max(0, s.reserved-s.allocated)
	case s.reserved < 0 && s.slack >= 0 && s.allocated >= 0:
		s.reserved = s.allocated + s.slack
	}
	s.findSelf()
	return s
}

// contextAtMost is how large a process's memory beyond PyTorch's is taken to be where the run does not show
// it, and the most by which a listed process can be told to be this one.
const (
	contextAtMost = 1.3 * gib
	selfAtMost    = 1.6 * gib
)

// findSelf takes the one listed process that is as large as this one's pool for this one: in a container
// PyTorch does not know its own process number.
func (s *shortage) findSelf() {
	if s.process >= 0 || s.reserved < 0 {
		return
	}
	var self []int
	for pid, v := range s.peers {
		if d := v - s.reserved; d >= 0 && d <= selfAtMost {
			self = append(self, pid)
		}
	}
	if len(self) == 1 {
		s.process = s.peers[self[0]]
		delete(s.peers, self[0])
		s.inferred = append(s.inferred, "process_bytes")
	}
}

// overheadOf is the median of what processes hold beyond PyTorch's pool; unknown without any.
func overheadOf(all []shortage) float64 {
	var o []float64
	for _, s := range all {
		if s.process >= 0 && s.reserved >= 0 && s.process >= s.reserved {
			o = append(o, s.process-s.reserved)
		}
	}
	if len(o) == 0 {
		return unknown
	}
	return stats.Median(o)
}

// complete infers what a message that was cut lacks, from the overhead of the same run's processes: the slack, or
// where not even the live part is told, the pool as a whole.
func (s *shortage) complete(overhead float64) {
	s.overhead = overhead
	if s.reserved >= 0 || s.process < 0 || overhead < 0 {
		return
	}
	s.reserved = max(0, s.process-overhead)
	s.inferred = append(s.inferred, "reserved_bytes")
	if s.allocated >= 0 {
		s.slack = max(0, s.reserved-s.allocated)
		s.reserved = s.allocated + s.slack
		s.inferred[len(s.inferred)-1] = "reserved_unallocated_bytes"
	}
}

// rounding is by how much two figures that are printed in GiB with two decimals can be off together.
const rounding = 11 * mib

// A judgement is a verdict and the numbers that decided it.
type judgement struct {
	verdict      MemoryVerdict
	why          string // of Undetermined
	confidence   string // high, medium or low
	limit        string // card, allowed or ""
	contributing []string
	numbers      map[string]float64
	borderline   bool
}

// What contributes to a verdict, and why there is none.
const (
	partFragmentation = "fragmentation"
	partRace          = "race"     // there was room when the message was written: another process had given it back
	partLeftover      = "leftover" // the trial began with what a failed one had left behind
	partOvercommit    = "overcommit"
	whyNoNumbers      = "no-numbers"
	whyRoom           = "refused-with-room"
)

// The bars of the verdicts. Live is the share of the reachable memory that a perfectly compact pool would
// need for the request.
const (
	liveBar       = 0.90
	borderlineBy  = 0.05
	foreignBar    = 0.10 // of the card that others hold
	aloneBar      = 0.90 // of the card that the process would need alone
	tooBigBar     = 0.50
	leakFills     = 0.80
	leakSlackMost = 0.30
	surelyLoose   = 0.20 // fragmentation index above which fragmentation is sure
)

// judge weighs a shortage. grew says that this process's live memory grew steadily until then, and how
// much of what it reserved was slack's growth.
func (s *shortage) judge(grew bool, slackShare float64) judgement {
	j := judgement{verdict: Undetermined, numbers: map[string]float64{}, confidence: "high"}
	put := func(name string, v float64) {
		if v >= 0 || name == "shortfall_bytes" {
			j.numbers[name] = v
		}
	}
	put("requested_bytes", s.request)
	put("free_bytes", s.free)
	put("allocated_bytes", s.allocated)
	put("slack_bytes", s.slack)
	if s.request > s.allowed && s.allowed > 0 || s.request > s.capacity && s.capacity > 0 { // whatever else is missing
		j.verdict, j.limit = TooBig, "card"
		limit := s.capacity
		if s.allowed > 0 && s.request > s.allowed {
			j.limit, limit = "allowed", s.allowed
		}
		put("limit_bytes", limit)
		put("shortfall_bytes", s.request-limit)
		return j
	}
	if s.request < 0 || s.reserved < 0 || s.free < 0 && s.allowed < 0 {
		j.why, j.confidence = whyNoNumbers, "low"
		return j
	}
	j.limit = "card"
	limit, headroom := s.reserved+s.free, s.free
	if s.allowed >= 0 && (s.allowed-s.reserved < s.request+rounding || s.free >= s.request) {
		j.limit, limit = "allowed", s.allowed
		headroom = s.allowed - s.reserved
		if s.free >= 0 {
			headroom = min(s.free, headroom)
		}
	}
	told := s.allocated >= 0 // whether live and loose memory can be told apart
	live := unknown
	if told {
		live = (s.allocated - s.private + s.request) / math.Max(1, limit)
		put("fragmentation_index", s.slack/math.Max(1, s.reserved))
	}
	foreign, sure := s.foreign()
	alone := unknown
	if s.capacity > 0 {
		own := s.process
		if own < 0 {
			own = s.reserved + contextOr(s.overhead)
		}
		alone = (own + s.request) / s.capacity
	}
	put("limit_bytes", limit)
	put("shortfall_bytes", s.request-headroom)
	put("live_ratio", live)
	put("foreign_bytes", foreign)
	put("alone_share", alone)
	if s.capacity > 0 {
		put("capacity_bytes", s.capacity)
	}
	race := s.free >= s.request
	loose := told && live <= liveBar
	crowded := j.limit == "card" && s.capacity > 0 && foreign >= foreignBar*s.capacity && alone <= aloneBar
	switch {
	case live > 1 && s.request >= tooBigBar*limit:
		j.verdict = TooBig
	case grew && told && slackShare < leakSlackMost && (s.allocated-s.private)/math.Max(1, limit) >= leakFills:
		j.verdict = Leak
		if crowded {
			j.contributing = append(j.contributing, partOvercommit)
		}
		return j
	case crowded:
		j.verdict = Overcommit
		if !sure {
			j.confidence = "medium"
		}
		if loose {
			j.contributing = append(j.contributing, partFragmentation)
			j.borderline = liveBar-live < borderlineBy
		}
		if race {
			j.contributing = append(j.contributing, partRace)
		}
		return j
	case j.limit == "card" && race:
		j.why, j.confidence = whyRoom, "low"
	case !told:
		j.why, j.confidence = whyNoNumbers, "low"
	case loose:
		j.verdict = Fragmentation
		if s.slack < surelyLoose*s.reserved {
			j.confidence = "medium"
		}
	default:
		j.verdict = Capacity
	}
	j.borderline = (j.verdict == Fragmentation || j.verdict == Capacity) && math.Abs(live-liveBar) < borderlineBy
	return j
}

func contextOr(overhead float64) float64 {
	if overhead >= 0 {
		return overhead
	}
	return contextAtMost
}

// foreign is what others hold of the card: those that the message lists, or, where it lists none, what is
// neither free nor this pool's less a context. sure says which; unknown without a card's size.
func (s *shortage) foreign() (bytes float64, sure bool) {
	if s.listed && (s.process >= 0 || len(s.peers) > 0) {
		sum := 0.0
		for _, pid := range s.holders() { // in a fixed order: sums of floats depend on it
			sum += s.peers[pid]
		}
		return sum, true
	}
	if s.capacity <= 0 || s.free < 0 || s.reserved < 0 {
		return unknown, false
	}
	return max(0, s.capacity-s.reserved-s.free-contextOr(s.overhead)), false
}

// holders are the other processes, the largest first.
func (s *shortage) holders() []int {
	pids := slices.Collect(maps.Keys(s.peers))
	slices.SortFunc(pids, func(a, b int) int {
		if s.peers[a] != s.peers[b] {
			if s.peers[a] > s.peers[b] {
				return -1
			}
			return 1
		}
		return a - b
	})
	return pids
}
