package trainlog

import "regexp"

// A level is how serious a line says it is.
type level int

const (
	noLevel level = iota
	info          // and below
	warning
	failing // ERROR and above
)

var levels = map[string]level{
	"TRACE": info, "DEBUG": info, "INFO": info, "NOTICE": info, "WARN": warning, "WARNING": warning,
	"ERROR": failing, "CRITICAL": failing, "FATAL": failing, "SEVERE": failing,
}

// sinceBoot is how a kernel line begins.
var sinceBoot = regexp.MustCompile(`^\[ *\d+\.\d{6}\] `)

// levelReach is how far into a line its level stands.
const levelReach = 120

// levelOf finds the first level word in capitals, or the letter with which glog, Optuna and PyTorch begin.
func levelOf(s string) level {
	if l := letterLevel(s); l != noLevel {
		return l
	}
	if sinceBoot.MatchString(s) {
		return noLevel // the kernel calls a hung task INFO
	}
	found := noLevel
	for i := 0; i < len(s) && i < levelReach; {
		if !isLetter(s[i]) {
			i++
			continue
		}
		j := i
		for j < len(s) && (isLetter(s[j]) || s[j] == '_') {
			j++
		}
		if l := levels[s[i:j]]; l != noLevel && (i == 0 || s[i-1] != '_' && s[i-1] != '=') {
			// A logger that wraps another's line has a level and a time of its own.
			if found == noLevel || i > 1 && s[i-1] == ' ' && isDigit(s[i-2]) {
				found = l
			}
		}
		i = j
	}
	return found
}

// letterLevel reads "E1120 19:38:35", "[E1120 …", "[W 2026-11-20 …" and "[E ProcessGroupNCCL.cpp…".
func letterLevel(s string) level {
	bracket := len(s) > 0 && s[0] == '['
	if bracket {
		s = s[1:]
	}
	if len(s) < 3 {
		return noLevel
	}
	if !(isDigit(s[1]) && isDigit(s[2])) && !(bracket && s[1] == ' ') {
		return noLevel
	}
	switch s[0] {
	case 'I', 'D', 'V':
		return info
	case 'W':
		return warning
	case 'E', 'F', 'C':
		return failing
	}
	return noLevel
}
