package analyze

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"postmortem/analyze/stats"
	"postmortem/ingest/timeline"
)

// A MemoryGrowth is how the allocator's figures of one process went, at one phase of its trials or epochs.
type MemoryGrowth struct {
	Phase           string    `json:"phase"` // what the log calls the moment; "" where it does not say
	Readings        int       `json:"readings"`
	BytesPerHour    float64   `json:"bytes_per_hour"` // of allocated memory (Theil and Sen)
	PerHourInterval Bounds    `json:"bytes_per_hour_ci"`
	BytesPerReading float64   `json:"bytes_per_reading"` // per trial where there is one reading a trial
	P               float64   `json:"p"`                 // two-sided (Mann and Kendall)
	Tau             float64   `json:"tau"`
	Sustained       bool      `json:"sustained"` // proven, material and still going on
	SlackPerHour    float64   `json:"slack_bytes_per_hour"`
	SlackShare      float64   `json:"slack_share"`                    // of the growth of reserved memory
	SlackSustained  bool      `json:"slack_sustained"`                // fragmentation grows
	LimitBytes      float64   `json:"limit_bytes"`                    // what the growth is measured against; 0 where nothing tells
	ResetAfter      int       `json:"reset_after_readings,omitempty"` // what keeps it below nine tenths of the limit, where it grows steadily
	Forecast        *Forecast `json:"forecast,omitempty"`             // absent where nothing grows steadily, or nothing tells the limit

	Picture *GrowthPicture `json:"-"`
}

// Bounds are a lower and an upper bound.
type Bounds [2]float64

// A Forecast is when the limit would be reached.
type Forecast struct {
	At     string  `json:"at"`
	Low    string  `json:"low"` // 95 %, from the slope's interval
	High   string  `json:"high"`
	From   int     `json:"from_readings"` // the first half of them where the process did die, to be held against it
	Died   string  `json:"died,omitempty"`
	LeadBy float64 `json:"lead_seconds"` // from the last reading that it rests on to the forecast
}

// A series is one process's readings at one phase.
type series struct {
	process                 int
	phase                   string
	at                      []float64 // seconds since the first
	from                    time.Time // of the first
	timed                   bool
	lines                   []int
	allocated, slack, total []float64
}

// before is the part of a series above a line of its log.
func (s series) before(line int) series {
	n, _ := slices.BinarySearch(s.lines, line)
	return s.first(n)
}

// until is the part of a series up to a time; all of it where nothing tells.
func (s series) until(at time.Time) series {
	if !s.timed || at.IsZero() {
		return s
	}
	n := 0
	for n < len(s.at) && s.at[n] <= seconds(at.Sub(s.from)) {
		n++
	}
	return s.first(n)
}

func (s series) first(n int) series {
	s.at, s.lines, s.allocated, s.slack, s.total = s.at[:n], s.lines[:n], s.allocated[:n], s.slack[:n], s.total[:n]
	return s
}

// A memoryIndex is what is asked of the logged figures again and again.
type memoryIndex struct {
	allocs map[int][]timeline.Alloc // by process, by line
	found  map[int][]*incident      // by process of the root, by line
	scales map[int]float64
	series []series // by process
}

// logged makes the index, once.
func (r *run) logged() *memoryIndex {
	if r.mem != nil {
		return r.mem
	}
	x := &memoryIndex{allocs: map[int][]timeline.Alloc{}, found: map[int][]*incident{}, scales: map[int]float64{}}
	r.mem = x
	for _, a := range r.tl.Allocs {
		if a.Process >= 0 {
			x.allocs[a.Process] = append(x.allocs[a.Process], a)
		}
	}
	for _, as := range x.allocs {
		slices.SortStableFunc(as, func(a, b timeline.Alloc) int { return cmp.Compare(a.Pos.Line, b.Pos.Line) })
	}
	for _, in := range r.found {
		if p := in.root.Process; p >= 0 {
			x.found[p] = append(x.found[p], in)
		}
	}
	for p, ins := range x.found {
		slices.SortStableFunc(ins, func(a, b *incident) int { return cmp.Compare(a.root.Pos.Line, b.root.Pos.Line) })
		x.scales[p] = r.scaleOf(ins, x.allocs[p])
	}
	for _, p := range slices.Sorted(maps.Keys(x.allocs)) {
		x.series = append(x.series, seriesOf(p, x.allocs[p], r.scale(p)))
	}
	return x
}

// scale is what a process's figures are multiplied by; see scaleOf.
func (r *run) scale(process int) float64 {
	if v, known := r.logged().scales[process]; known {
		return v
	}
	return 1
}

// seriesOf takes the phase with most readings of a process, of equals the one whose name is last: start, not end.
func seriesOf(process int, all []timeline.Alloc, scale float64) series {
	phases := map[string][]timeline.Alloc{}
	split := false // whether it ever had a split block
	for _, a := range all {
		phases[a.Phase] = append(phases[a.Phase], a)
		split = split || a.InactiveBytes > 0
	}
	phase := ""
	for name, as := range phases {
		if n := len(phases[phase]); len(as) > n || len(as) == n && name > phase {
			phase = name
		}
	}
	s := series{process: process, phase: phase, timed: true}
	for _, a := range phases[phase] {
		s.timed = s.timed && !a.Time.IsZero()
	}
	for i, a := range phases[phase] {
		x := float64(i)
		if s.timed {
			if i == 0 {
				s.from = a.Time
			}
			x = seconds(a.Time.Sub(s.from))
		}
		loose := a.ReservedBytes - a.AllocatedBytes
		if split {
			loose = max(0, a.InactiveBytes)
		}
		s.at, s.lines = append(s.at, x), append(s.lines, a.Pos.Line)
		s.allocated = append(s.allocated, float64(a.AllocatedBytes)*scale)
		s.total = append(s.total, float64(a.ReservedBytes)*scale)
		s.slack = append(s.slack, float64(loose)*scale)
	}
	return s
}

// reconciles is how near a logged figure must come to the message's to tell its unit.
const reconciles = 0.01

// scaleOf is what a process's figures are multiplied by: those logged in GB or MB may mean GiB or MiB, and what
// reconciles with the numbers of its own out-of-memory message decides. Without a message they are as written.
func (r *run) scaleOf(ins []*incident, allocs []timeline.Alloc) float64 {
	for _, in := range ins {
		i, _ := slices.BinarySearchFunc(allocs, in.root.Pos.Line, func(a timeline.Alloc, line int) int { return cmp.Compare(a.Pos.Line, line) })
		if i == 0 || allocs[i-1].Binary <= 1 {
			continue
		}
		s := newShortage(r.facts(in))
		near := func(v float64) bool { return v > s.reserved*(1-reconciles) && v < s.reserved*(1+reconciles) }
		if v := float64(allocs[i-1].ReservedBytes); s.reserved > 0 && !near(v) && near(v*allocs[i-1].Binary) {
			return allocs[i-1].Binary
		}
	}
	return 1
}

// mayGrow is a quick look at whether a series can be one of sustained growth: its last quarter lies well above
// its first.
func (s series) mayGrow(limit float64) bool {
	n := len(s.allocated)
	if n < 4 {
		return false
	}
	return stats.Median(s.allocated[n-n/4:])-stats.Median(s.allocated[:n/4]) >= 0.05*limit
}

// growth measures a series against the limit; died is when the process ran out of memory, zero if it did not.
func (s series) growth(limit float64, died time.Time) MemoryGrowth {
	g := stats.Grow(s.at, s.allocated)
	loose, total := stats.Grow(s.at, s.slack), stats.Grow(s.at, s.total)
	out := MemoryGrowth{Phase: s.phase, Readings: len(s.at), P: g.P, Tau: g.TauB, LimitBytes: max(0, limit)}
	index := make([]float64, len(s.at))
	for i := range index {
		index[i] = float64(i)
	}
	out.BytesPerReading = stats.Grow(index, s.allocated).Slope
	if s.timed {
		out.BytesPerHour, out.SlackPerHour = g.Slope*3600, loose.Slope*3600
		out.PerHourInterval = Bounds{g.Low * 3600, g.High * 3600}
	}
	if total.Slope > 0 {
		out.SlackShare = max(0, loose.Slope/total.Slope)
	}
	if limit > 0 {
		out.Sustained = g.Sustained(s.at, s.allocated, limit)
		out.SlackSustained = loose.Sustained(s.at, s.slack, limit)
		if grown := out.BytesPerReading; out.Sustained && grown > 0 {
			out.ResetAfter = max(0, int(((1-spare)*limit-stats.Median(s.slack)-s.allocated[0])/grown))
		}
		if s.timed {
			out.Forecast = s.forecast(limit, died)
		}
	}
	out.Picture = s.picture(out, died)
	return out
}

// farthest is how far beyond the readings a forecast may reach, in spans of them.
const farthest = 3

// forecast extends allocated memory and the median slack to the limit, from all readings, or from the first
// half of them where the process died.
func (s series) forecast(limit float64, died time.Time) *Forecast {
	n := len(s.at)
	if !died.IsZero() {
		n /= 2
	}
	x, y := s.at[:n], s.allocated[:n]
	g := stats.Grow(x, y)
	if !g.Sustained(x, y, limit) {
		return nil
	}
	room := limit - stats.Median(s.slack[:n]) - g.Intercept
	at := room / g.Slope
	if at > x[n-1]+farthest*(x[n-1]-x[0]) {
		return nil
	}
	moment := func(sec float64) string { return stamp(s.from.Add(time.Duration(sec * float64(time.Second)))) }
	// The line goes through the middle of the readings whatever its slope.
	mid := stats.Median(x)
	with := func(slope float64) float64 {
		if slope <= 0 {
			return x[n-1] + farthest*(x[n-1]-x[0])
		}
		return mid + (room-g.Slope*mid)/slope
	}
	return &Forecast{At: moment(at), Low: moment(with(g.High)), High: moment(with(g.Low)), From: n, Died: stamp(died), LeadBy: at - x[n-1]}
}
