package trainlog

import (
	"regexp"
	"strings"

	"postmortem/ingest/timeline"
)

// pidField is where a logger puts the process's number after the time: [4711], (pid=4711), pid 4711, or
// the bare number when its level follows.
var pidField = regexp.MustCompile(`^[\] \t|:-]*(?:[\[(](?:pid[ =:]*)?(\d{2,7})[\])]|pid[ =:]+(\d{2,7})\b|(\d{2,7}) +\[?(?:DEBUG|INFO|WARN|ERROR|CRITICAL|FATAL)|[\w.-]+ [\w./-]+\[(\d{1,7})\]: )`)

// pidPatience is after how many stamped lines without a process's number none is looked for any more.
const pidPatience = 200

// pidOf finds the number of the process that wrote a stamped line.
func pidOf(text string) (pid string, stamped bool) {
	st, ok := findStamp(text)
	if !ok {
		return "", false
	}
	for _, g := range pidField.FindStringSubmatch(text[st.end:]) {
		if g != "" && isDigit(g[0]) {
			pid = g
		}
	}
	return pid, true
}

// speaker is the writer of a line without a prefix. The first process that numbers its lines is the main
// one; lines of another number are its own, and so are the lines without a time that follow them. A new
// number after the main process's end is the next run's.
func (p *parser) speaker(line int, text string) *lane {
	main := p.lanes[""]
	if p.mainPID == "" && p.unnumbered > pidPatience || strings.IndexByte(text, ':') < 0 && p.speaking == nil {
		return main
	}
	pid, stamped := pidOf(text)
	if pid != "" && pid != p.mainPID {
		main.closeBlocks(line - 1) // whether it died shows only then
	}
	switch {
	case !stamped && p.speaking != nil:
		return p.speaking
	case !stamped:
		return main
	case pid == "":
		p.unnumbered++
	case p.mainPID == "":
		p.mainPID = pid
	case pid != p.mainPID && (main.dead || main.over) && !main.trials:
		p.mainPID = pid
		main.nextRun(line)
	case pid != p.mainPID:
		p.speaking = p.writer(timeline.PIDLane + pid)
		return p.speaking
	}
	p.speaking = nil
	return main
}
