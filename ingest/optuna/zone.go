package optuna

import (
	"strings"
	"time"

	"postmortem/ingest/timeline"
)

// Optuna stores trial times as naive local time up to 4.9 and as naive UTC from 5.0rc1 on, with no
// mark in the file; heartbeats are UTC in all versions. A heartbeat is written while its trial runs,
// so an offset between local time and UTC is possible for a trial only if its heartbeat, moved by
// that offset, lies within the trial.

const (
	zoneStep = 15 * time.Minute // every offset in use is a multiple of this
	zoneMax  = 14 * time.Hour
	zoneSlop = 3 * time.Second
)

// FindClock finds the offset of a storage's trial times from its heartbeats, or from the version
// that made it. The second result is false when neither tells.
func FindClock(tl *timeline.Timeline) (timeline.Clock, bool) {
	type score struct{ fits, near int }
	best, bestOffset, witnesses, tied := score{}, time.Duration(0), 0, false
	for _, s := range tl.Studies {
		for i := range s.Trials {
			if hasWitness(&s.Trials[i]) {
				witnesses++
			}
		}
	}
	if witnesses > 0 {
		for o := -zoneMax; o <= zoneMax; o += zoneStep {
			var sc score
			for _, s := range tl.Studies {
				for i := range s.Trials {
					fits, near := fit(&s.Trials[i], o)
					if fits {
						sc.fits++
					}
					if near {
						sc.near++
					}
				}
			}
			switch {
			case sc.fits > best.fits || sc.fits == best.fits && sc.near > best.near:
				best, bestOffset, tied = sc, o, false
			case sc == best:
				tied = true
			}
		}
		if best.fits > 0 && !tied {
			return timeline.Clock{Of: "database", Offset: bestOffset, How: timeline.ZoneHeartbeats,
				Trials: best.fits, Others: witnesses - best.fits}, true
		}
	}
	for _, src := range tl.Sources {
		for _, n := range src.Notes {
			if v, ok := strings.CutPrefix(n, versionNote); ok && v != "" && v[0] >= '5' && v[0] <= '9' {
				return timeline.Clock{Of: "database", How: timeline.ZoneVersion}, true
			}
		}
	}
	return timeline.Clock{Of: "database", How: timeline.ZoneAssumed}, false
}

func hasWitness(t *timeline.Trial) bool {
	return !t.Heartbeat.IsZero() && !t.Start.IsZero() && !t.End.IsZero()
}

// fit says whether the trial's heartbeat is possible under an offset, and whether it also lies near
// one of the trial's ends, where heartbeats are written.
func fit(t *timeline.Trial, offset time.Duration) (fits, near bool) {
	if !hasWitness(t) {
		return false, false
	}
	afterStart := t.Heartbeat.Sub(t.Start.Add(-offset))
	beforeEnd := t.End.Add(-offset).Sub(t.Heartbeat)
	fits = afterStart >= -zoneSlop && beforeEnd >= -zoneSlop
	return fits, fits && (afterStart < 2*time.Minute || beforeEnd < 2*time.Minute)
}

// Place moves the storage's naive times onto the axis. loc, when not nil, is the zone the user gave
// and overrides clock. A trial that its own heartbeat shows to be in UTC although the storage is not
// (a later Optuna wrote it) is placed by that.
func Place(tl *timeline.Timeline, clock timeline.Clock, loc *time.Location) {
	place := func(t time.Time, offset time.Duration) time.Time {
		if t.IsZero() || t.Location() != timeline.Naive {
			return t
		}
		if loc != nil {
			return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), loc).UTC()
		}
		return t.Add(-offset).UTC()
	}
	for _, s := range tl.Studies {
		for i := range s.Trials {
			t := &s.Trials[i]
			offset := clock.Offset
			if clock.How == timeline.ZoneHeartbeats && hasWitness(t) {
				if ok, _ := fit(t, offset); !ok {
					if utc, _ := fit(t, 0); utc {
						offset = 0
					}
				}
			}
			t.Start, t.End = place(t.Start, offset), place(t.End, offset)
		}
	}
}
