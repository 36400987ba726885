package trainlog

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"postmortem/ingest/timeline"
)

// A unit is what a progress line counts.
type unit int

const (
	bars unit = iota // progress bars, which begin anew at every epoch
	steps
	epochs
	units
)

// counters are the words that a training loop counts by.
var counters = []string{"epoch", "step", "global_step", "iteration", "iters", "iter", "it", "batch", "update", "round", "episode"}

// A count is how far a training loop says it is.
type count struct {
	unit   unit
	n      float64
	at     int // where it begins
	end    int
	figure bool // whether a figure stands beside it, as in a line of a training loop
}

// countReach is how far into a line a count begins.
const countReach = 100

// countIn finds the first count in a line: a counter's word after a boundary, at most three signs, a
// number.
func countIn(s string) (count, bool) {
	for i := 0; i < len(s) && i < countReach; i++ {
		if i > 0 && strings.IndexByte(" \t[(|:,", s[i-1]) < 0 || strings.IndexByte("egibsur", s[i]|0x20) < 0 {
			continue
		}
		for _, word := range counters {
			if len(s)-i < len(word) || !strings.EqualFold(s[i:i+len(word)], word) {
				continue
			}
			j := i + len(word)
			if j < len(s) && s[j]|0x20 == 's' {
				j++
			}
			for k := 0; k < 3 && j < len(s) && !isWordByte(s[j]); k++ {
				j++
			}
			end := j
			for end < len(s) && (isDigit(s[end]) || s[end] == '.' && end > j && end+1 < len(s) && isDigit(s[end+1])) {
				end++
			}
			if end == j || end < len(s) && isWordByte(s[end]) {
				continue
			}
			n, err := strconv.ParseFloat(s[j:end], 64)
			if err != nil {
				continue
			}
			c := count{steps, n, i, end, hasFigure(s[:i]) || hasFigure(s[end:])}
			if word == "epoch" {
				c.unit = epochs
			}
			return c, true
		}
	}
	return count{}, false
}

func isCount(s string) bool {
	_, ok := countIn(s)
	return ok
}

// progresses says whether a line shows a training loop going on.
func progresses(s string) bool {
	c, ok := countIn(s)
	return ok && c.figure
}

func isWordByte(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' }

// hasFigure says whether a measured value stands in a text: a number with a point, a share, a rate, or the
// word for one.
func hasFigure(s string) bool {
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case (c == '.' || c == '/') && isDigit(s[i-1]) && i+1 < len(s) && isDigit(s[i+1]), c == '%' && isDigit(s[i-1]):
			return true
		}
	}
	return containsAny(s, "oss", "LOSS", "acc", "Acc", "ppl", "lr", "it/s", "s/it", "amples", "okens", "eward", "score", "time", "Time", "nan", "NaN")
}

// ended is a word that says a run ended well. A trial or epoch that is done is not the run.
var (
	ended = regexp.MustCompile(`(?i)\b(?:training|train|trainer\.fit|fit|fine-?tuning|pre-?training|run|job|script|experiment|optimi[sz]ation|sweep|everything|all (?:\d+ )?(?:epochs|trials|jobs|runs|done|tasks)|main)\b\W{0,3}(?:is |has |was |run |process |loop |job )?\b(?:complete[d]?|finished|done|ended|stopped|succeeded|successful(?:ly)?)\b|^\W*(?:all )?(?:done|finished|completed|success)\W*$|\bfinished (?:training|with 0 errors|successfully|running)|\bcompleted (?:successfully|training)|\bsuccessfully (?:completed|finished|trained)|` + "`Trainer\\.fit` stopped: `max_\\w+=\\d+` reached|'train_runtime'|\\bexit(?:ed)?(?: with)? (?:code|status):? 0\\b")
	not   = regexp.MustCompile(`(?i)\b(?:fail|failed|failure|abort|aborted|crash|crashed|not|un\w+|incomplete|early|interrupted|killed|error)\b`)

	// begins is a word that says a run begins, where one before it is over.
	begins = regexp.MustCompile(`(?i)^\s*(?:[+$>] )?(?:(?:python3?|torchrun|accelerate|deepspeed|srun|bash|sh) \S+|\W*(?:re)?(?:start|launch|begin|resum)(?:ing|ed)?\b.{0,40}\b(?:training|run|job|experiment|attempt|from|worker|process|trainer)\b|\W*(?:run|attempt|job|restart|launch)\W{0,2}#?\d+\b|\W*(?:new|next) (?:run|attempt|job)\b|.{0,30}\bresum(?:ing|ed) from\b|.{0,60}will restart worker group|.{0,40}Rendezvous'ing worker group|.{0,20}\bjob (?:id|started)\b)`)
)

// heading is what a logger puts before its text: clock, level, names.
var heading = regexp.MustCompile(`^(?:\W*\d\d:\d\d:\d\d(?:[.,]\d+)?\W*)?(?:\W*(?:[\w.]+\W+)?(?:INFO|DEBUG|NOTICE|TRACE)\W*)?(?:[\w./]+(?::[\w<>]+)*[\]:|>-]+ *(?:- )?)?`)

// containsAny keeps the expressions away from most lines.
func containsAny(s string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// progressLine takes a line that shows the training going on.
func (w *lane) progressLine(l *logLine) bool {
	if l.level >= warning || strings.HasPrefix(l.msg, "wandb:") {
		return false
	}
	c, ok := countIn(l.msg)
	if !ok || !c.figure {
		return false
	}
	w.advance(l, c.unit, c.n, c.at-len(heading.FindString(l.msg)) < 4)
	w.lossIn(l)
	return true
}

// lossIn looks for a loss that is no number, or is one again.
func (w *lane) lossIn(l *logLine) {
	if !w.nan && !containsAny(l.msg, "nan", "NaN", "NAN", "inf", "Inf") {
		return
	}
	if x := trainLoss.FindStringSubmatch(l.msg); x != nil {
		if f, ok := number(x[1]); ok {
			w.loss(l, f)
		}
	}
}

// endLine takes a line that says the run ended well.
func (w *lane) endLine(l *logLine) bool {
	if l.level >= warning || len(l.msg) > 300 || !containsAny(l.msg, "omplete", "OMPLETE", "inished", "INISHED", "one", "ONE", "nded", "topped", "ucce", "UCCE", "xit", "train_runtime") || !ended.MatchString(l.msg) || not.MatchString(ended.ReplaceAllString(l.msg, "")) {
		return false
	}
	w.finish(l.no)
	return true
}

// finish notes that the process said it ended well.
func (w *lane) finish(line int) {
	w.begin(line)
	w.tl.Processes[w.proc].Finished = line
	w.over = true
}

// beginLine begins a new run where the one before is over and the line says that one begins.
func (w *lane) beginLine(l *logLine) {
	if w.lane == "" && !w.trials && l.level < failing && len(l.msg) < 300 && w.troubled() && (begins.MatchString(l.msg) || w.isBanner(l.text)) {
		w.nextRun(l.no)
	}
}

// troubled says whether the run may be over: a writer failed and has not gone on, or said it ended.
func (w *lane) troubled() bool {
	return w.dead || w.over || len(w.pending) > 0 || w.tb != nil || w.rankFailed
}

// nextRun begins a new run: in this file everything that follows is another life of the processes.
func (w *lane) nextRun(line int) {
	w.closeLanes(line - 1)
	w.parser.run++
	w.parser.rankFailed = false
	w.newProcess(line, -1)
}

// advance notes a sign of progress. What was not survived before cannot have been the end of this
// process, unless the count shows that another run begins. firm says that the line is about the count:
// a summary that mentions an earlier epoch begins no run.
func (w *lane) advance(l *logLine, u unit, n float64, firm bool) {
	line := l.no
	w.begin(line)
	pr := &w.tl.Processes[w.proc]
	last, seen := w.count[u], w.counted[u]
	back := firm && seen && n < last && !w.mixed && (u == epochs || u == steps && !w.counted[epochs])
	if w.tb != nil && w.tb.frames && w.tb.indent >= 0 {
		w.mixed = true // between the lines of a process that is dying
	}
	if seen && firm && u != bars && n < last && n > 1 && !w.dead {
		if w.backs++; w.backs > 1 {
			w.mixed = true
		}
	}
	dead := w.dead || w.lane == "" && back && w.troubled() // a rank's death ends the others
	if pr.Exited || !w.trials && (dead && (back || w.stopped) || w.over && back) {
		w.nextRun(line)
		pr = &w.tl.Processes[w.proc]
	}
	if firm || n > last {
		w.count[u], w.counted[u] = n, true
	}
	if pr.FirstProgress == 0 {
		pr.FirstProgress = line
	}
	if u != bars || !seen || n != last { // a bar that is drawn once more shows nothing
		pr.LastProgress = line
	}
	plain := !l.stamped && l.level == noLevel
	kept := w.pending[:0]
	for _, f := range w.pending {
		e, last, seen := &w.tl.Events[f.event], f.count[u], f.counted[u]
		switch {
		case e.Form == timeline.FormMetric, e.Fatal && w.mixed:
			kept = append(kept, f) // only a finite loss ends the one, and nothing the other
		case e.Fatal && (!seen && u != bars && plain || seen && n <= last && u != bars || !firm), !firm && n <= last, u == bars && seen && n == last:
			// A count that is no further was printed by the dying process: a bar that is closed, a summary. And
			// what print writes into a file comes only when the process ends, after its traceback.
			kept = append(kept, f)
		default:
			e.Resumed = line
		}
	}
	w.pending = kept
	if len(kept) == 0 {
		w.dead, w.raised = false, false
	}
}

// loss watches for the loss that is no number.
func (w *lane) loss(l *logLine, f float64) {
	bad := math.IsNaN(f) || math.IsInf(f, 0)
	switch {
	case bad && !w.nan:
		w.failure(l, w.cat.Class("numeric/nan-loss"), timeline.FormMetric, l.msg)
	case !bad && w.nan:
		w.pending = slices.DeleteFunc(w.pending, func(f waiting) bool {
			e := &w.tl.Events[f.event]
			if e.Form != timeline.FormMetric {
				return false
			}
			e.Resumed = l.no
			return true
		})
	}
	w.nan = bad
}

// A loss has diverged when it was divergedFactor times its minimum in divergedEpochs epochs in a row.
const (
	divergedFactor = 10
	divergedEpochs = 3
)

// diverging watches the loss of epochs; those of single steps are too noisy to tell.
func (w *lane) diverging(l *logLine, f float64) {
	switch {
	case math.IsNaN(f) || f <= 0:
	case w.lowest == 0 || f < w.lowest:
		w.lowest, w.high = f, 0
	case f < divergedFactor*w.lowest:
		w.high = 0
	default:
		if w.high++; w.high == divergedEpochs {
			w.failure(l, w.cat.Class("numeric/diverged"), timeline.FormMetric, l.msg)
		}
	}
}

// bannerLines is how many of a file's first lines may tell that a later run begins.
const bannerLines = 3

// keepBanner keeps the shape of one of the file's first lines; what fails or counts is no banner. events is
// how many there were before the line.
func (p *parser) keepBanner(text string, events int) {
	fails := func(e timeline.Event) bool { return e.Kind == timeline.Failure }
	if p.headed++; p.headed > bannerLines || slices.ContainsFunc(p.tl.Events[events:], fails) || p.cat.MatchNative(text) != nil {
		return
	}
	if len(text) >= 8 && !strings.HasPrefix(text, " ") && !strings.Contains(text, tracebackHead) && !strings.Contains(text, "%|") && !isCount(text) {
		p.banner = append(p.banner, shapeOf(text))
	}
}

func (p *parser) isBanner(text string) bool {
	return len(p.banner) > 0 && len(text) >= 8 && slices.Contains(p.banner, shapeOf(text))
}
