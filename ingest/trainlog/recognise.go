package trainlog

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"postmortem/ingest/timeline"
)

// A logLine is a line as the recognisers see it.
type logLine struct {
	no      int
	text    string // without launcher prefix and escape codes
	msg     string // text after the stamp; text itself when there is none
	stamped bool
	time    time.Time
	ends    bool // set by a recogniser: a trial or process ends here
}

// A recogniser knows one form of line. The literal is looked for first, so that a line costs a few
// substring searches and a pattern only where it may match.
type recogniser struct {
	needs string
	re    *regexp.Regexp
	take  func(p *parser, l *logLine, m []string)
}

// recognisers are tried in order; the first that matches takes the line.
var recognisers []recogniser

func init() { // a variable of its own would refer to itself through wouldRecognise
	r := func(needs, re string, take func(p *parser, l *logLine, m []string)) {
		recognisers = append(recognisers, recogniser{needs, regexp.MustCompile(re), take})
	}
	nothing := func(*parser, *logLine, []string) {}

	// Optuna's own lines (optuna/study/study.py and _optimize.py, 1.0 to 5.0rc1).
	r("rial", `(?:^|[\]:|-] )Trial (\d+) finished with values?: (.*?)(?: and parameters: .*)?$`, (*parser).trialFinished)
	r("inished trial#", `(?:^|[\]:|-] )Finished trial#(\d+) (?:resulted in|with) value: (.*)$`, (*parser).trialFinished)
	r(" pruned", `(?:^|[\]:|-] )Trial (\d+) pruned\.? ?(.*)$`, (*parser).trialPruned)
	r("TrialState.PRUNED", `Setting status of trial#(\d+) as TrialState\.PRUNED\.? ?(.*)$`, (*parser).trialPruned)
	r("TrialState.FAIL", `Setting status of trial#(\d+) as TrialState\.FAIL (because .*)$`, (*parser).trialFailed)
	r(" failed", `(?:^|[\]:|-] )Trial (\d+) failed with value (.*)$`, (*parser).trialFailedAgain)
	r(" failed", `(?:^|[\]:|-] )Trial (\d+) failed(?: with parameters: .*?)?,? (because .*)$`, (*parser).trialFailed)
	r("study", `A new study created (?:in .* )?with name: (.*)$`, (*parser).studyOpened)
	r("Using an existing study", "Using an existing study with (?:name '|`study_name=')(.*?)'", (*parser).studyOpened)

	// The blocks of the seeds.
	r("TRIAL", `^TRIAL (\d+)\b`, (*parser).trialBegins)
	r("ERROR]", `^\[(?:CUDA )?ERROR\] Trial (\d+)\b`, (*parser).handlerBegins)
	r("====", `^=+$`, func(p *parser, _ *logLine, _ []string) { p.inCfg = false })
	r("[GPU RESET]", `^\[GPU RESET\] (?:(\d+) )?`, func(p *parser, l *logLine, m []string) {
		p.event(timeline.GPUReset, l).Number, _ = strconv.Atoi(m[1])
	})
	r("best model saved", `^New best model saved`, nothing)
	r("rror during", `^Warning: Error during .*?: (.*)$`, (*parser).cleanupError)

	// Allocator figures, in any common spelling. Before epoch lines, which may carry them too.
	r("llocated", `(?i)\b(?:memory_)?allocated[=: ]+\d`, (*parser).allocator)

	// Progress.
	r("poch", `(?i)^\W*epoch[ :\[]+(\d+)(?:\s*/\s*(\d+))?(.*)$`, (*parser).epoch)
	r("{'", `^\{'(?:loss|eval_loss|train_loss|train_runtime|eval_runtime)'.*\}$`, (*parser).hfDict)
	r("%|", `\d+%\|.*\| *\S+/\S+ \[`, nothing)
	r("it/s", `\d+/\d+ \[[^\]]*it/s`, nothing)
	r("loss", `(?i)\bstep[ =:]*\d+.*\bloss[ =:]+[\d.na-]+`, nothing)

	// Supervisors: the seeds' own, and supervisord.
	r("starting worker", `starting worker (\S+)(?: \(restart (\d+)\))?`, (*parser).supervisorStarts)
	r("exited with status", `(?:worker (\S+) )?exited with status (-?\d+)`, (*parser).supervisorExit)
	r("spawned: ", `spawned: '(.*)' with pid (\d+)`, (*parser).supervisordStarts)
	r("exited: ", `exited: (\S+) \(exit status (\d+)`, (*parser).supervisorExit)
	r("terminated by SIG", `exited: (\S+) \(terminated by SIG(\w+)`, (*parser).supervisordSignal)
	r("exit status ", `^exit status (\d+)$`, func(p *parser, l *logLine, m []string) { p.exit(l, m[1]) })
	r("worker ", `^worker (\S+): finished`, nothing)

	// Settings: environment echoes and version banners.
	r("=", `^(?:export )?((?:PYTORCH|CUDA|TORCH|TORCHINDUCTOR|NCCL|GLOO|OMP|MKL|CUBLAS|NVIDIA|XLA|JAX|TF|TRITON|HF|TRANSFORMERS|OPTUNA|SLURM)_?[A-Z0-9_]*)=(.*)$`, (*parser).setting)
	r("torch ", `\b(?:torch|pytorch)[ =:]+v?(\d+\.\d+[\w.+]*)`, (*parser).banner)

	// Ordinary messages of a logger. Warnings and errors that nobody knows are shown instead.
	r("INFO", `^(?:\W*)INFO\b`, nothing)
	r("DEBUG", `^(?:\W*)DEBUG\b`, nothing)

	// What belongs to the line above.
	r("Warning", `^(?:\S+:\d+: )?\w*Warning: `, func(p *parser, _ *logLine, _ []string) { p.inWrn = true })
}

// wouldRecognise says whether a line means something of its own, so that it ends a message above it.
func (p *parser) wouldRecognise(text string) bool {
	for _, r := range recognisers {
		if strings.Contains(text, r.needs) && r.re.MatchString(text) {
			return true
		}
	}
	return p.cat.MatchNative(text) != nil
}

// recognise hands the line to the first recogniser that knows it.
func (p *parser) recognise(l *logLine) bool {
	for _, r := range recognisers {
		if !strings.Contains(l.msg, r.needs) {
			continue
		}
		if m := r.re.FindStringSubmatch(l.msg); m != nil {
			p.begin(l.no)
			r.take(p, l, m)
			return true
		}
	}
	return p.errorLine(l) || p.continuation(l)
}

// errorLine takes a line that is error text without a traceback.
func (p *parser) errorLine(l *logLine) bool {
	if cl := p.cat.MatchNative(l.text); cl != nil {
		p.native(l, cl.ID)
		return true
	}
	if m := aloneLine.FindStringSubmatch(l.msg); m != nil {
		text := m[1]
		if m[2] != "" {
			text += ": " + m[2]
		}
		p.failure(l, p.cat.MatchException(m[1], m[2]), timeline.FormException, text)
		p.inMsg = true
		return true
	}
	// A stamped warning or error that quotes a known failure is a program's report of one.
	if l.stamped && hasLevel(l.text) {
		if cl := p.cat.Match(l.msg); cl != nil {
			p.failure(l, cl, timeline.FormHandler, l.msg)
			p.inMsg = true
			return true
		}
	}
	return false
}

// native adds a native error line; a kernel prints the same assertion once per thread, which is one.
func (p *parser) native(l *logLine, class string) {
	if n := len(p.tl.Events); n > 0 {
		if e := &p.tl.Events[n-1]; e.Kind == timeline.Failure && e.Form == timeline.FormNative && e.Class == class && max(e.EndLine, e.Pos.Line) == l.no-1 {
			e.EndLine = l.no
			return
		}
	}
	p.failure(l, p.cat.Class(class), timeline.FormNative, l.text)
}

func hasLevel(text string) bool {
	for _, w := range []string{"WARN", "ERROR", "CRITICAL", "FATAL", "[W ", "[E "} {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// continuation says whether the line only goes on with what stands above it.
func (p *parser) continuation(l *logLine) bool {
	indented := l.text[0] == ' ' || l.text[0] == '\t'
	switch {
	case p.inCfg && indented:
		return true
	case p.inWrn && indented:
		p.inWrn = false
		return true
	case cudaBoilerplate(l.text):
		return true
	case p.inMsg && !l.stamped:
		return true
	}
	return false
}

func (p *parser) trialBegins(l *logLine, m []string) {
	n, _ := strconv.Atoi(m[1])
	p.trial, p.failed = n, timeline.NoTrial
	p.inCfg = true
	p.event(timeline.TrialBegin, l).Trial = n
}

func (p *parser) trialEnds(l *logLine, number string, state timeline.State, text string) *timeline.Event {
	n, _ := strconv.Atoi(number)
	l.ends = true
	e := p.event(timeline.TrialEnd, l)
	e.Trial, e.State, e.Text = n, state, firstLine(text)
	if p.trial == n || p.trial == timeline.NoTrial {
		p.trial = timeline.NoTrial
	}
	p.failed = timeline.NoTrial
	return e
}

func (p *parser) trialFinished(l *logLine, m []string) {
	p.trialEnds(l, m[1], timeline.Complete, m[2])
}

// trialPruned also keeps an error that the pruning message quotes: crashes hide behind PRUNED.
func (p *parser) trialPruned(l *logLine, m []string) {
	end := p.trialEnds(l, m[1], timeline.Pruned, m[2])
	n := end.Trial
	if cl := p.cat.Match(m[2]); cl != nil {
		e := p.failure(l, cl, timeline.FormOptuna, m[2])
		e.Trial = n
	}
}

// reprError is a Python exception as repr() prints it, the way Optuna quotes it.
var reprError = regexp.MustCompile(`^([A-Za-z_][\w.]*)\((.*?)\)\.?$`)

func (p *parser) trialFailed(l *logLine, m []string) {
	end := p.trialEnds(l, m[1], timeline.Fail, m[2])
	n := end.Trial
	p.failed = n
	text := strings.TrimPrefix(m[2], "because of the following error: ")
	cl := p.cat.Match(text)
	if q := reprError.FindStringSubmatch(text); q != nil {
		msg := strings.Trim(q[2], `'",`)
		cl = p.cat.MatchException(q[1], msg)
		text = q[1] + ": " + msg
	}
	if cl == nil {
		cl = p.cat.Class("unknown")
	}
	e := p.failure(l, cl, timeline.FormOptuna, text)
	e.Trial = n
}

// trialFailedAgain is the second of the two lines that Optuna 3.1 and later write about one failure.
func (p *parser) trialFailedAgain(l *logLine, m []string) {
	n, _ := strconv.Atoi(m[1])
	l.ends = true
	if p.failed == n {
		return
	}
	p.trialFailed(l, []string{"", m[1], "with value " + m[2]})
}

func (p *parser) studyOpened(l *logLine, m []string) {
	e := p.event(timeline.StudyOpened, l)
	e.Value = m[1]
	if p.tl.Streams[0].Study == "" {
		p.tl.Streams[0].Study = m[1]
	}
}

func (p *parser) handlerBegins(l *logLine, m []string) {
	n, _ := strconv.Atoi(m[1])
	p.block = &handlerBlock{trial: n, from: l.no}
}

func (p *parser) cleanupError(l *logLine, m []string) {
	if cl := p.cat.Match(m[1]); cl != nil {
		p.failure(l, cl, timeline.FormCleanup, m[1])
		p.inMsg = true
	}
}

func (p *parser) supervisorStarts(l *logLine, m []string) {
	restart := -1
	if m[2] != "" {
		restart, _ = strconv.Atoi(m[2])
	}
	p.starts(l, m[1], 0, restart)
}

func (p *parser) supervisordStarts(l *logLine, m []string) {
	pid, _ := strconv.Atoi(m[2])
	p.starts(l, m[1], pid, -1)
}

// starts begins a new process, unless the current one has shown nothing yet.
func (p *parser) starts(l *logLine, worker string, pid, restart int) {
	pr := &p.tl.Processes[p.proc]
	if pr.From.Line != l.no || pr.PID != 0 {
		pr = p.newProcess(l.no, restart)
	}
	pr.Restart, pr.PID = restart, pid
	if l.stamped {
		pr.Start = l.time
	}
	p.name(worker)
	e := p.event(timeline.ProcessStart, l)
	e.Key, e.Number, e.PID = worker, restart, pid
}

// name gives the stream the name that the log itself uses.
func (p *parser) name(worker string) {
	if s := &p.tl.Streams[0]; !s.Stated && worker != "" {
		s.Name, s.Stated = worker, true
	}
}

func (p *parser) supervisorExit(l *logLine, m []string) { p.exit(l, m[2]) }

func (p *parser) supervisordSignal(l *logLine, m []string) {
	status := map[string]string{"KILL": "137", "TERM": "143", "SEGV": "139", "ABRT": "134", "INT": "130"}[m[2]]
	if status == "" {
		status = "128"
	}
	p.exit(l, status)
}

func (p *parser) exit(l *logLine, status string) {
	l.ends = true
	e := p.event(timeline.ProcessExit, l)
	e.Number, _ = strconv.Atoi(status)
	pr := &p.tl.Processes[p.proc]
	pr.Exited, pr.ExitStatus = true, e.Number
}

func (p *parser) setting(l *logLine, m []string) {
	e := p.event(timeline.Setting, l)
	e.Key, e.Value = m[1], m[2]
}

var (
	bannerPart = regexp.MustCompile(`^([A-Za-z][\w.-]*)[ =:]+v?(\d+\.\d+[\w.+]*)$`)
	pidPart    = regexp.MustCompile(`\bpid[ =:]*(\d+)`)
	workerPart = regexp.MustCompile(`\bworker[ =:]+(\S+)`)
)

// banner is the line in which a process says what it runs on; it may also give pid and worker.
func (p *parser) banner(l *logLine, _ []string) {
	if m := pidPart.FindStringSubmatch(l.msg); m != nil {
		pid, _ := strconv.Atoi(m[1])
		pr := &p.tl.Processes[p.proc]
		if pr.PID != 0 && pr.PID != pid {
			pr = p.newProcess(l.no, -1)
		}
		pr.PID = pid
	}
	if m := workerPart.FindStringSubmatch(l.msg); m != nil {
		p.name(m[1])
	}
	for _, part := range strings.Split(l.msg, "|") {
		part = strings.TrimSpace(part)
		if m := bannerPart.FindStringSubmatch(part); m != nil {
			e := p.event(timeline.Setting, l)
			e.Key, e.Value = strings.ToLower(m[1]), m[2]
		} else if strings.HasPrefix(part, "NVIDIA ") || strings.HasPrefix(part, "AMD ") {
			e := p.event(timeline.Setting, l)
			e.Key, e.Value = "gpu", part
		}
	}
}
