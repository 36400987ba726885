package trainlog

import (
	"strings"
	"time"

	"postmortem/ingest/timeline"
)

// A stamp is a time found near the start of a line, and where the text after it begins.
type stamp struct {
	time   time.Time // in timeline.Naive unless the stamp has a zone
	noYear bool      // the form has no year: month, day and clock alone
	end    int
}

// stampReach is how far into a line a stamp may begin: loggers put names and levels before it.
const stampReach = 60

// findStamp finds the first stamp in s: Optuna's and Python logging's (2026-11-20 19:45:53,186), ISO
// 8601, [YYYY-MM-DD HH:MM:SS], slashes for dashes, glog (E1120 19:38:35.402948; the C++ of PyTorch does
// not pad the month) and syslog (Nov 20 19:45:56).
func findStamp(s string) (stamp, bool) {
	if strings.IndexByte(s, ':') < 0 {
		return stamp{}, false
	}
	for i := 0; i < len(s) && i < stampReach; i++ {
		if i > 0 && isWord(s[i-1]) {
			continue
		}
		switch c := s[i]; {
		case c >= '1' && c <= '2':
			if st, ok := dateTime(s, i); ok {
				return st, true
			}
		case strings.IndexByte("EWIF", c) >= 0:
			if st, ok := glog(s, i); ok {
				return st, true
			}
		case c >= 'A' && c <= 'Z':
			if st, ok := syslog(s, i); ok {
				return st, true
			}
		}
	}
	return stamp{}, false
}

func isWord(c byte) bool {
	return isWordByte(c) || c == '.' || c == '/'
}

// dateTime reads YYYY-MM-DD?HH:MM:SS with an optional fraction and zone.
func dateTime(s string, i int) (stamp, bool) {
	y, ok1 := digits(s, i, 4)
	mo, ok2 := digits(s, i+5, 2)
	d, ok3 := digits(s, i+8, 2)
	if !ok1 || !ok2 || !ok3 || s[i+4] != s[i+7] || s[i+4] != '-' && s[i+4] != '/' {
		return stamp{}, false
	}
	if j := i + 10; j >= len(s) || s[j] != ' ' && s[j] != 'T' && s[j] != '_' {
		return stamp{}, false
	}
	clock, end, ok := clockTime(s, i+11)
	if !ok || !validDate(mo, d) {
		return stamp{}, false
	}
	loc := timeline.Naive
	if z, zend, ok := zone(s, end); ok {
		loc, end = z, zend
	}
	t := time.Date(y, time.Month(mo), d, 0, 0, 0, 0, loc).Add(clock)
	if loc != timeline.Naive {
		t = t.UTC()
	}
	return stamp{time: t, end: end}, true
}

// glog reads [EWIF](M)MDD HH:MM:SS.fraction.
func glog(s string, i int) (stamp, bool) {
	n := 0
	for i+1+n < len(s) && s[i+1+n] >= '0' && s[i+1+n] <= '9' {
		n++
	}
	if n != 3 && n != 4 || i+1+n >= len(s) || s[i+1+n] != ' ' {
		return stamp{}, false
	}
	mo, _ := digits(s, i+1, n-2)
	d, _ := digits(s, i+n-1, 2)
	clock, end, ok := clockTime(s, i+n+2)
	if !ok || !validDate(mo, d) || end-(i+n+2) < 10 {
		return stamp{}, false
	}
	return stamp{time: time.Date(0, time.Month(mo), d, 0, 0, 0, 0, timeline.Naive).Add(clock), noYear: true, end: end}, true
}

const months = "JanFebMarAprMayJunJulAugSepOctNovDec"

// syslog reads Mon (D)D HH:MM:SS.
func syslog(s string, i int) (stamp, bool) {
	if i+15 > len(s) || s[i+3] != ' ' || s[i+6] != ' ' {
		return stamp{}, false
	}
	m := strings.Index(months, s[i:i+3])
	if m < 0 || m%3 != 0 {
		return stamp{}, false
	}
	d, ok := digits(s, i+4, 2)
	if s[i+4] == ' ' {
		d, ok = digits(s, i+5, 1)
	}
	clock, end, ok2 := clockTime(s, i+7)
	if !ok || !ok2 || !validDate(m/3+1, d) {
		return stamp{}, false
	}
	return stamp{time: time.Date(0, time.Month(m/3+1), d, 0, 0, 0, 0, timeline.Naive).Add(clock), noYear: true, end: end}, true
}

func validDate(month, day int) bool { return month >= 1 && month <= 12 && day >= 1 && day <= 31 }

// clockTime reads HH:MM:SS with a fraction after a point or comma.
func clockTime(s string, i int) (time.Duration, int, bool) {
	h, ok1 := digits(s, i, 2)
	m, ok2 := digits(s, i+3, 2)
	sec, ok3 := digits(s, i+6, 2)
	if !ok1 || !ok2 || !ok3 || s[i+2] != ':' && s[i+2] != '-' || s[i+5] != s[i+2] || h > 23 || m > 59 || sec > 60 {
		return 0, 0, false
	}
	d := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(sec)*time.Second
	i += 8
	if i+1 < len(s) && (s[i] == '.' || s[i] == ',') && s[i+1] >= '0' && s[i+1] <= '9' {
		i++
		for unit := time.Second / 10; i < len(s) && s[i] >= '0' && s[i] <= '9'; i, unit = i+1, unit/10 {
			d += time.Duration(s[i]-'0') * unit
		}
	}
	return d, i, true
}

// zone reads Z, +HH:MM or +HHMM.
func zone(s string, i int) (*time.Location, int, bool) {
	if i >= len(s) {
		return nil, 0, false
	}
	if s[i] == 'Z' {
		return time.UTC, i + 1, true
	}
	if s[i] != '+' && s[i] != '-' {
		return nil, 0, false
	}
	h, ok1 := digits(s, i+1, 2)
	j := i + 3
	if j < len(s) && s[j] == ':' {
		j++
	}
	m, ok2 := digits(s, j, 2)
	if !ok1 || !ok2 || h > 14 || m > 59 {
		return nil, 0, false
	}
	offset := h*3600 + m*60
	if s[i] == '-' {
		offset = -offset
	}
	return time.FixedZone("", offset), j + 2, true
}

func digits(s string, i, n int) (int, bool) {
	if i < 0 || i+n > len(s) {
		return 0, false
	}
	v := 0
	for _, c := range []byte(s[i : i+n]) {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + int(c-'0')
	}
	return v, true
}
