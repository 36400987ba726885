package ingest

import (
	"time"

	"postmortem/ingest/optuna"
	"postmortem/ingest/timeline"
)

// minPairs is how many trials must end at the same moment in database and log to reveal the zone
// of the log.
const minPairs = 3

// place moves all naive times onto the axis and says how. Optuna's times come first, since
// heartbeats can show their zone; logs are compared with them; GPU dumps and kernel logs, written on
// the same machine, take over the zone of the logs.
func place(parts []*timeline.Timeline, zone *time.Location) []timeline.Clock {
	giveYears(parts)
	var clocks []timeline.Clock
	given := timeline.Clock{How: timeline.ZoneGiven}
	if zone != nil {
		given.Zone = zone.String()
	}
	shared := timeline.Clock{How: timeline.ZoneAssumed}
	var db []*timeline.Timeline
	for _, p := range parts {
		if p.Sources[0].Kind != timeline.OptunaSQLite {
			continue
		}
		clock, _ := optuna.FindClock(p)
		if zone != nil {
			clock = given
			clock.Of = "database"
		}
		optuna.Place(p, clock, zone)
		if len(db) == 0 {
			clocks = append(clocks, clock)
			if clock.How == timeline.ZoneHeartbeats {
				shared = timeline.Clock{Offset: clock.Offset, How: timeline.ZoneShared}
			}
		}
		db = append(db, p)
	}
	for _, of := range []struct {
		name  string
		kinds []timeline.Kind
	}{{"logs", []timeline.Kind{timeline.TrainLog}}, {"gpu", []timeline.Kind{timeline.NvidiaSMI, timeline.NvidiaApps, timeline.NvidiaDmon, timeline.NvidiaPmon}}, {"kernel", []timeline.Kind{timeline.KernelLog}}} {
		var mine []*timeline.Timeline
		for _, p := range parts {
			for _, k := range of.kinds {
				if p.Sources[0].Kind == k && hasNaive(p) {
					mine = append(mine, p)
				}
			}
		}
		if len(mine) == 0 {
			continue
		}
		clock := shared
		if zone != nil {
			clock = given
		} else if of.name == "logs" {
			if c, ok := pairs(db, mine); ok {
				clock = c
				shared = timeline.Clock{Offset: c.Offset, How: timeline.ZoneShared}
			}
		}
		clock.Of = of.name
		for _, p := range mine {
			shift(p, clock, zone)
		}
		clocks = append(clocks, clock)
	}
	return clocks
}

// giveYears completes the times without a year by the latest full time in any input. Where there is
// none, those events have no time.
func giveYears(parts []*timeline.Timeline) {
	var last time.Time
	for _, p := range parts {
		see := func(t *time.Time) {
			if !timeline.NoYear(*t) && t.After(last) {
				last = *t
			}
		}
		eachTime(p, see)
		for _, s := range p.Studies {
			for i := range s.Trials {
				see(&s.Trials[i].Start)
				see(&s.Trials[i].End)
			}
		}
	}
	for _, p := range parts {
		for i := range p.Events {
			switch e := &p.Events[i]; {
			case !timeline.NoYear(e.Time):
			case last.IsZero():
				e.Time, e.Quality = time.Time{}, timeline.TimeUnknown
			default:
				e.Time = timeline.NearestYear(e.Time, last)
			}
		}
	}
}

func hasNaive(p *timeline.Timeline) bool {
	found := false
	eachTime(p, func(t *time.Time) { found = found || !t.IsZero() && t.Location() == timeline.Naive })
	return found
}

// pairs compares the ends of trials in the logs with those in the database.
func pairs(db, logs []*timeline.Timeline) (timeline.Clock, bool) {
	const step, slop = 15 * time.Minute, 2 * time.Second
	ends := map[int][]time.Time{}
	for _, p := range db {
		for _, s := range p.Studies {
			for _, t := range s.Trials {
				if !t.End.IsZero() {
					ends[t.Number] = append(ends[t.Number], t.End)
				}
			}
		}
	}
	votes, total := map[time.Duration]int{}, 0
	for _, p := range logs {
		for _, e := range p.Events {
			if e.Kind != timeline.TrialEnd || e.Quality != timeline.TimeStated || e.Time.Location() != timeline.Naive {
				continue
			}
			matched := false
			for _, end := range ends[e.Trial] {
				d := e.Time.Sub(end)
				if o := d.Round(step); (d-o).Abs() <= slop && o.Abs() <= 14*time.Hour {
					votes[o]++
					matched = true
				}
			}
			if matched {
				total++
			}
		}
	}
	best, n, tied := time.Duration(0), 0, false
	for o, v := range votes {
		switch {
		case v > n:
			best, n, tied = o, v, false
		case v == n:
			tied = true
		}
	}
	if n < minPairs || tied {
		return timeline.Clock{}, false
	}
	return timeline.Clock{Offset: best, How: timeline.ZonePairs, Trials: n, Others: total - n}, true
}

// shift places every naive time of a part.
func shift(p *timeline.Timeline, c timeline.Clock, zone *time.Location) {
	eachTime(p, func(t *time.Time) {
		switch {
		case t.IsZero() || t.Location() != timeline.Naive:
		case zone != nil:
			*t = time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), zone).UTC()
		default:
			*t = t.Add(-c.Offset).UTC()
		}
	})
}

func eachTime(p *timeline.Timeline, f func(*time.Time)) {
	for i := range p.Events {
		e := &p.Events[i]
		f(&e.Time)
		f(&e.After)
		f(&e.Before)
	}
	for i := range p.Processes {
		f(&p.Processes[i].Start)
		f(&p.Processes[i].End)
	}
	for i := range p.Allocs {
		f(&p.Allocs[i].Time)
	}
	for i := range p.GPUs {
		for j := range p.GPUs[i].Time {
			f(&p.GPUs[i].Time[j])
		}
	}
	for i := range p.Tenants {
		for j := range p.Tenants[i].Time {
			f(&p.Tenants[i].Time[j])
		}
	}
}
