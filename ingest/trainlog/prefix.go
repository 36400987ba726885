package trainlog

import (
	"encoding/json"
	"regexp"
	"strings"
)

// lanePrefixes are what launchers, schedulers and log drivers put before the lines of one of several
// writers, by the prefix's first byte; group 1 names the writer.
var lanePrefixes = map[byte][]*regexp.Regexp{
	'[': {
		regexp.MustCompile(`^\[((?:rank|default|local_rank|worker|gpu|node|proc|process|task|replica|pid|actor)[ _=:#-]?\d{1,7})\](?:: ?|\s+|$)`), // torchrun, and programs' own
		regexp.MustCompile(`^\[(\d{1,5},\d{1,5})\]<std(?:out|err)>: ?`),                                                                           // mpirun --tag-output
		regexp.MustCompile(`^\[(pod/[^\]\s]+)\](?: |$)`),                                                                                          // kubectl logs --prefix
	},
	'(': {regexp.MustCompile(`^\(((?:\w+ )?pid=\d+(?:, ip=[\d.]+)?)\)(?: |$)`)}, // Ray
	'0': {regexp.MustCompile(`^ ?(\d{1,4}):(?: |$)`)},                           // srun --label
	'a': {
		regexp.MustCompile(`^([A-Za-z][\w.-]{0,40}\d{1,4}) {1,20}\|(?: |$)`),                                             // docker compose
		regexp.MustCompile(`(?i)^((?:rank|gpu|local_rank|process|node|replica|actor)[ _=#-]?\d{1,4})(?: ?[:|>](?: |$))`), // programs' own
	},
}

// splitLane takes the writer's name off a line; "" when the line does not carry one. A time that a log
// driver put before it stays with the text.
func splitLane(s string) (lane, rest string) {
	if s == "" {
		return "", s
	}
	kind := s[0]
	switch {
	case isLetter(kind):
		kind = 'a'
		if !strings.ContainsAny(s[:min(len(s), 60)], "|:>") {
			return "", s
		}
	case isDigit(kind), kind == ' ' && len(s) > 1 && isDigit(s[1]):
		kind = '0'
	}
	for _, re := range lanePrefixes[kind] {
		if m := re.FindStringSubmatchIndex(s); m != nil && !isCount(s[m[2]:m[3]]) { // "epoch1 | …" is no writer
			return s[m[2]:m[3]], s[m[1]:]
		}
	}
	return "", s
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// barEnd finds the end of a tqdm bar: what follows it on its line was written by something else.
var barEnd = regexp.MustCompile(`\d+%\|[^|]*\| *\S+/\S+ \[[^\]]*\]`)

// unglue parts a progress bar from the text that was printed behind it without a new line.
func unglue(s string) []string {
	if strings.IndexByte(s, '|') < 0 || strings.IndexByte(s, '%') < 0 {
		return []string{s}
	}
	all := barEnd.FindAllStringIndex(s, -1)
	if len(all) == 0 {
		return []string{s}
	}
	end := all[len(all)-1][1]
	if rest := strings.TrimSpace(s[end:]); rest == "" || !strings.Contains(rest, " ") && !strings.HasSuffix(rest, ":") {
		return []string{s}
	}
	return []string{s[:end], strings.TrimPrefix(s[end:], " ")}
}

// A record is a log line that was wrapped in JSON.
type record struct {
	lines []string // its text; a traceback brings several
	time  stamp    // written by a log driver; not set for a program's own JSON, whose time leads the text
	timed bool
}

// unwrap takes the text out of a JSON line: a log driver's ({"log":…,"stream":…,"time":…}) or a
// program's own ({"level":…,"message":…,"exc_info":…}).
func unwrap(s string) (record, bool) {
	if len(s) < 2 || s[0] != '{' || s[len(s)-1] != '}' || s[1] != '"' && s[1] != ' ' {
		return record{}, false
	}
	var m map[string]any
	if json.Unmarshal([]byte(s), &m) != nil {
		return record{}, false
	}
	get := func(keys ...string) string {
		for _, k := range keys {
			if v, ok := m[k].(string); ok && v != "" {
				return v
			}
		}
		return ""
	}
	if text, ok := m["log"].(string); ok {
		r := record{lines: []string{strings.TrimRight(text, "\r\n")}}
		r.time, r.timed = findStamp(get("time", "timestamp"))
		return r, true
	}
	msg := get("message", "msg", "event", "text")
	exc := get("exc_info", "exception", "traceback", "stack_trace", "stacktrace", "exc_text", "stack")
	if msg == "" && exc == "" {
		return record{}, false
	}
	head := strings.TrimSpace(get("time", "timestamp", "ts", "asctime", "@timestamp") + " " + strings.ToUpper(get("level", "levelname", "severity", "lvl")) + " " + msg)
	return record{lines: strings.Split(strings.TrimRight(head+"\n"+exc, "\n"), "\n")}, true
}
