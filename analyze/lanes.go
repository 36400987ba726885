package analyze

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"postmortem/ingest/timeline"
)

// Lanes is the run as a picture: a lane per worker with its trials as bars, the cards' memory on the
// same axis, and the moments of incidents.
type Lanes struct {
	From, To time.Time
	Workers  []Lane
	Cards    []Card
	Marks    []Mark
}

// A Lane is one worker.
type Lane struct {
	Worker string // "" for trials whose worker is not known
	Bars   []Bar
}

// A Bar is one trial.
type Bar struct {
	Study    string
	Trial    int
	From, To time.Time
	Fate     string // as in the JSON contract
	Class    string // of what it was lost to
	Row      int    // within the lane: trials that overlap lie below each other
}

// A Card is one GPU's memory over time.
type Card struct {
	GPU        int
	Time       []time.Time
	UsedBytes  []int64
	TotalBytes int64
}

// A Mark is an incident.
type Mark struct {
	At       time.Time
	Incident string
	Class    string
	Worker   string
}

// MaxRows is how many trials may overlap in one lane before they are drawn over each other.
const MaxRows = 4

func (r *run) lanes() Lanes {
	var l Lanes
	byWorker := map[string]*Lane{}
	var names []string
	r.eachTrial(func(s *timeline.Study, t *timeline.Trial) {
		if took(t) == 0 {
			return
		}
		lane := byWorker[t.Worker]
		if lane == nil {
			lane = &Lane{Worker: t.Worker}
			byWorker[t.Worker] = lane
			names = append(names, t.Worker)
		}
		f := r.fateOf[t]
		b := Bar{Study: s.Name, Trial: t.Number, From: t.Start, To: t.End, Fate: string(f.kind)}
		if f.kind == lost {
			b.Class = f.in.root.Class
		}
		lane.Bars = append(lane.Bars, b)
	})
	slices.SortFunc(names, func(a, b string) int {
		x, errX := strconv.Atoi(a)
		y, errY := strconv.Atoi(b)
		if errX == nil && errY == nil {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(a, b)
	})
	for _, n := range names {
		lane := byWorker[n]
		lane.stack()
		l.Workers = append(l.Workers, *lane)
		for _, b := range lane.Bars {
			if l.From.IsZero() || b.From.Before(l.From) {
				l.From = b.From
			}
			if b.To.After(l.To) {
				l.To = b.To
			}
		}
	}
	for _, g := range r.tl.GPUs {
		l.Cards = append(l.Cards, Card{GPU: g.Index, Time: g.Time, UsedBytes: g.UsedBytes, TotalBytes: g.TotalBytes})
		if len(l.Workers) == 0 {
			if l.From.IsZero() || g.Time[0].Before(l.From) {
				l.From = g.Time[0]
			}
			if last := g.Time[len(g.Time)-1]; last.After(l.To) {
				l.To = last
			}
		}
	}
	for i, in := range r.found {
		if in.outcome != Lost || in.root.Time.IsZero() {
			continue
		}
		m := Mark{At: in.root.Time, Incident: "i" + strconv.Itoa(i+1), Class: in.root.Class, Worker: r.workerOf(in.root)}
		l.Marks = append(l.Marks, m)
	}
	return l
}

// stack gives overlapping bars rows of their own.
func (l *Lane) stack() {
	slices.SortStableFunc(l.Bars, func(a, b Bar) int { return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Trial, b.Trial)) })
	var free [MaxRows]time.Time
	for i := range l.Bars {
		b := &l.Bars[i]
		for row := range free {
			if !b.From.Before(free[row]) {
				b.Row, free[row] = row, b.To
				break
			}
			b.Row = MaxRows - 1
		}
	}
}

// Rows is how many rows the lane needs.
func (l Lane) Rows() int {
	n := 1
	for _, b := range l.Bars {
		n = max(n, b.Row+1)
	}
	return n
}
