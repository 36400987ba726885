package trainlog

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"
)

// A logLine is a line as the recognisers see it.
type logLine struct {
	no      int
	text    string // without launcher prefix and escape codes
	msg     string // text after the stamp; text itself when there is none
	stamped bool
	time    time.Time
	level   level
	ends    bool // set by a recogniser: a trial or process ends here
}

// A recogniser knows one form of line. The literal is looked for first, so that a line costs a few
// substring searches and a pattern only where it may match.
type recogniser struct {
	needs string
	re    *regexp.Regexp
	take  func(w *lane, l *logLine, m []string)
}

// recognisers are tried in order; the first that matches takes the line.
var recognisers []recogniser

func init() { // a variable of its own would refer to itself through wouldRecognise
	r := func(needs, re string, take func(w *lane, l *logLine, m []string)) {
		recognisers = append(recognisers, recogniser{needs, regexp.MustCompile(re), take})
	}
	nothing := func(*lane, *logLine, []string) {}

	// Optuna's own lines (optuna/study/study.py and _optimize.py, 1.0 to 5.0rc1).
	r("rial", `(?:^|[\]:|-] )Trial (\d+) finished with values?: (.*?)(?: and parameters: .*)?$`, (*lane).trialFinished)
	r("inished trial#", `(?:^|[\]:|-] )Finished trial#(\d+) (?:resulted in|with) value: (.*)$`, (*lane).trialFinished)
	r(" pruned", `(?:^|[\]:|-] )Trial (\d+) pruned\.? ?(.*)$`, (*lane).trialPruned)
	r("TrialState.PRUNED", `Setting status of trial#(\d+) as TrialState\.PRUNED\.? ?(.*)$`, (*lane).trialPruned)
	r("TrialState.FAIL", `Setting status of trial#(\d+) as TrialState\.FAIL (because .*)$`, (*lane).trialFailed)
	r(" failed", `(?:^|[\]:|-] )Trial (\d+) failed with value (.*)$`, (*lane).trialFailedAgain)
	r(" failed", `(?:^|[\]:|-] )Trial (\d+) failed(?: with parameters: .*?)?,? (because .*)$`, (*lane).trialFailed)
	r("study", `A new study created (?:in .* )?with name: (.*)$`, (*lane).studyOpened)
	r("Using an existing study", "Using an existing study with (?:name '|`study_name=')(.*?)'", (*lane).studyOpened)

	// The blocks of the seeds.
	r("TRIAL", `^TRIAL (\d+)\b`, (*lane).trialBegins)
	r("ERROR]", `^\[(?:CUDA )?ERROR\] Trial (\d+)\b`, (*lane).handlerBegins)
	r("====", `^=+$`, func(w *lane, _ *logLine, _ []string) { w.inCfg = false })
	r("[GPU RESET]", `^\[GPU RESET\] (?:(\d+) )?`, func(w *lane, l *logLine, m []string) {
		w.event(timeline.GPUReset, l).Number, _ = strconv.Atoi(m[1])
	})
	r("best model saved", `^New best model saved`, nothing)
	r("rror during", `^Warning: Error during .*?: (.*)$`, (*lane).cleanupError)

	// Allocator figures, in any common spelling. Before epoch lines, which may carry them too.
	r("llocated", `(?i)\b(?:memory_)?allocated[=: ]+\d`, (*lane).allocator)

	r("|", summaryRule, nothing)
	r("memory summary", summaryHead, (*lane).summaryBegins)
	r("OOMs: ", summaryCount, (*lane).summaryCounts)
	r(" memory ", summaryRow, (*lane).summaryFigure)
	r("|", summaryOther, nothing)

	// Progress.
	r("poch", `(?i)^\W*epoch[ :\[]+(\d+)(?:\s*/\s*(\d+))?(.*)$`, (*lane).epoch)
	r("{'", `^\{'(?:loss|eval_loss|train_loss|train_runtime|eval_runtime)'.*\}$`, (*lane).hfDict)
	bar := func(w *lane, l *logLine, m []string) {
		n, _ := strconv.ParseFloat(m[1], 64)
		w.advance(l, bars, n, true)
		w.lossIn(l)
	}
	r("%|", `\d+%\|.*\| *([\d.]+)\w?/\S+ \[`, bar)
	r("it/s", `(\d+)/\d+ (?:\[[^\]]*it/s|.*[\d.]+it/s)`, bar)
	r("s/it", `(\d+)/\d+ \[[^\]]*s/it`, bar)

	// Supervisors: the seeds' own, and supervisord.
	r("starting worker", `starting worker (\S+)(?: \(restart (\d+)\))?`, (*lane).supervisorStarts)
	r("exited with status", `(?:worker (\S+) )?exited with status (-?\d+)`, (*lane).supervisorExit)
	r("spawned: ", `spawned: '(.*)' with pid (\d+)`, (*lane).supervisordStarts)
	r("exited: ", `exited: (\S+) \(exit status (\d+)`, (*lane).supervisorExit)
	r("terminated by SIG", `exited: (\S+) \(terminated by SIG(\w+)`, (*lane).supervisordSignal)
	status := func(w *lane, l *logLine, m []string) { w.exit(l, m[1]) }
	r("exit status ", `^exit status (\d+)$`, status)
	r("xit", `(?i)^(?:srun: error: \S+ tasks? \S+ |\W*error: |##\[error\])?[^:]{0,60}\b(?:exited|exits|exit|completed|finished|ended)\b.{0,20}?\b(?:code|status)\b[ :=]+(-?\d+)(?:\.| \(.*\))?$`, status)
	r("return code", `\bexits? with return code = (-?\d+)$`, status)
	r("make", `^make(?:\[\d+\])?: \*\*\* .*Error (\d+)$`, status)
	r("worker ", `^worker (\S+): finished`, nothing)

	// Settings: environment echoes and version banners.
	r("=", `^(?:export )?((?:PYTORCH|CUDA|TORCH|TORCHINDUCTOR|NCCL|GLOO|OMP|MKL|CUBLAS|NVIDIA|XLA|JAX|TF|TRITON|HF|TRANSFORMERS|OPTUNA|SLURM)_?[A-Z0-9_]*)=(.*)$`, (*lane).setting)
	for _, key := range []string{"torch_compile", "compile_mode", "gradient_checkpointing", "memory_optimized", "mixed_precision", "batch_size", "num_workers", "world_size", "epochs"} {
		r(key, `^(`+key+`(?:_mode)?)\s*[:=]\s*["']?([\w.+-]+)["']?$`, (*lane).setting) // a configuration that is echoed
	}
	r("torch ", `\b(?:torch|pytorch)[ =:]+v?(\d+\.\d+[\w.+]*)`, (*lane).banner)

	r(" from ", `^#\d+ \S+ from \S+:\d+$`, nothing) // a stack that C++ prints

	// What belongs to the line above.
	r("Warning", `^(?:\S+:\d+: )?\w*Warning: `, func(w *lane, _ *logLine, _ []string) { w.inWrn = true })
}

// wouldRecognise says whether a line means something of its own, so that it ends a message above it.
func (w *lane) wouldRecognise(text string) bool {
	for _, r := range recognisers {
		if strings.Contains(text, r.needs) && r.re.MatchString(text) {
			return true
		}
	}
	return w.cat.MatchNative(text) != nil || text[0] != ' ' && (progresses(text) || ended.MatchString(text)) || levelOf(text) == info
}

// recognise hands the line to the first recogniser that knows it.
func (w *lane) recognise(l *logLine) bool {
	w.beginLine(l)
	if l.level == noLevel && aloneLine.MatchString(l.msg) && w.exceptionAlone(l) {
		return true
	}
	for _, r := range recognisers {
		if !strings.Contains(l.msg, r.needs) {
			continue
		}
		if m := r.re.FindStringSubmatch(l.msg); m != nil {
			w.begin(l.no)
			r.take(w, l, m)
			return true
		}
	}
	return w.errorLine(l) || w.endLine(l) || w.progressLine(l) || l.level == info || w.continuation(l)
}

// continuation says whether the line only goes on with what stands above it.
func (w *lane) continuation(l *logLine) bool {
	indented := l.text[0] == ' ' || l.text[0] == '\t'
	switch {
	case w.inCfg && indented:
		return true
	case w.inWrn && indented:
		w.inWrn = false
		return true
	case boilerplate(l.text):
		return true
	case w.inMsg && !l.stamped:
		return true
	}
	return false
}

func (w *lane) trialBegins(l *logLine, m []string) {
	n, _ := strconv.Atoi(m[1])
	w.trial, w.failed, w.trials = n, timeline.NoTrial, true
	w.inCfg = true
	w.tl.Processes[w.proc].LastProgress = l.no
	w.event(timeline.TrialBegin, l).Trial = n
}

func (w *lane) trialEnds(l *logLine, number string, state timeline.State, text string) *timeline.Event {
	n, _ := strconv.Atoi(number)
	l.ends, w.trials = true, true
	if state == timeline.Complete {
		w.tl.Processes[w.proc].LastProgress = l.no
	}
	e := w.event(timeline.TrialEnd, l)
	e.Trial, e.State, e.Text = n, state, firstLine(text)
	if w.trial == n || w.trial == timeline.NoTrial {
		w.trial = timeline.NoTrial
	}
	w.failed = timeline.NoTrial
	return e
}

func (w *lane) trialFinished(l *logLine, m []string) {
	w.trialEnds(l, m[1], timeline.Complete, m[2])
}

// trialPruned also keeps an error that the pruning message quotes: crashes hide behind PRUNED.
func (w *lane) trialPruned(l *logLine, m []string) {
	end := w.trialEnds(l, m[1], timeline.Pruned, m[2])
	n := end.Trial
	if cl := w.cat.Match(m[2], ""); cl != nil {
		e := w.failure(l, cl, timeline.FormOptuna, m[2])
		e.Trial = n
	}
}

// reprError is a Python exception as repr() prints it, the way Optuna quotes it.
var reprError = regexp.MustCompile(`^([A-Za-z_][\w.]*)\((.*?)\)\.?$`)

func (w *lane) trialFailed(l *logLine, m []string) {
	end := w.trialEnds(l, m[1], timeline.Fail, m[2])
	n := end.Trial
	w.failed = n
	text := strings.TrimPrefix(m[2], "because of the following error: ")
	cl := w.cat.Match(text, "")
	if q := reprError.FindStringSubmatch(text); q != nil {
		msg := strings.Trim(q[2], `'",`)
		cl = w.cat.MatchException(q[1], msg, "")
		text = q[1] + ": " + msg
	}
	if cl == nil {
		cl = w.cat.Class(failure.Unknown)
	}
	e := w.failure(l, cl, timeline.FormOptuna, text)
	e.Trial = n
}

// trialFailedAgain is the second of the two lines that Optuna 3.1 and later write about one failure.
func (w *lane) trialFailedAgain(l *logLine, m []string) {
	n, _ := strconv.Atoi(m[1])
	l.ends = true
	if w.failed == n {
		return
	}
	w.trialFailed(l, []string{"", m[1], "with value " + m[2]})
}

func (w *lane) studyOpened(l *logLine, m []string) {
	e := w.event(timeline.StudyOpened, l)
	e.Value = m[1]
	if w.tl.Streams[0].Study == "" {
		w.tl.Streams[0].Study = m[1]
	}
}

func (w *lane) handlerBegins(l *logLine, m []string) {
	n, _ := strconv.Atoi(m[1])
	w.block = &handlerBlock{trial: n, from: l.no}
}

func (w *lane) cleanupError(l *logLine, m []string) {
	if cl := w.cat.Match(m[1], ""); cl != nil {
		w.failure(l, cl, timeline.FormCleanup, m[1])
		w.inMsg = true
	}
}

func (w *lane) supervisorStarts(l *logLine, m []string) {
	restart := -1
	if m[2] != "" {
		restart, _ = strconv.Atoi(m[2])
	}
	w.starts(l, m[1], 0, restart)
}

func (w *lane) supervisordStarts(l *logLine, m []string) {
	pid, _ := strconv.Atoi(m[2])
	w.starts(l, m[1], pid, -1)
}

// starts begins a new process, unless the current one has shown nothing yet.
func (w *lane) starts(l *logLine, worker string, pid, restart int) {
	pr := &w.tl.Processes[w.proc]
	if pr.From.Line != l.no || pr.PID != 0 {
		pr = w.newProcess(l.no, restart)
	}
	pr.Restart, pr.PID = restart, pid
	if l.stamped {
		pr.Start = l.time
	}
	w.name(worker)
	e := w.event(timeline.ProcessStart, l)
	e.Key, e.Number, e.PID = worker, restart, pid
}

// name gives the stream the name that the log itself uses.
func (w *lane) name(worker string) {
	if s := &w.tl.Streams[0]; !s.Stated && worker != "" {
		s.Name, s.Stated = worker, true
	}
}

func (w *lane) supervisorExit(l *logLine, m []string) { w.exit(l, m[2]) }

func (w *lane) supervisordSignal(l *logLine, m []string) {
	status := map[string]string{"KILL": "137", "TERM": "143", "SEGV": "139", "ABRT": "134", "INT": "130"}[m[2]]
	if status == "" {
		status = "128"
	}
	w.exit(l, status)
}

func (w *lane) exit(l *logLine, status string) {
	l.ends = true
	e := w.event(timeline.ProcessExit, l)
	e.Number, _ = strconv.Atoi(status)
	pr := &w.tl.Processes[w.proc]
	pr.Exited, pr.ExitStatus, pr.ExitLine = true, e.Number, l.no
	w.over = true
	if e.Number == 0 {
		pr.Finished = l.no
	}
}

func (w *lane) setting(l *logLine, m []string) {
	e := w.event(timeline.Setting, l)
	e.Key, e.Value = m[1], m[2]
}

var (
	bannerPart = regexp.MustCompile(`^([A-Za-z][\w.-]*)[ =:]+v?(\d+\.\d+[\w.+]*)$`)
	pidPart    = regexp.MustCompile(`\bpid[ =:]*(\d+)`)
	workerPart = regexp.MustCompile(`\bworker[ =:]+(\S+)`)
)

// banner is the line in which a process says what it runs on; it may also give pid and worker.
func (w *lane) banner(l *logLine, _ []string) {
	if m := pidPart.FindStringSubmatch(l.msg); m != nil {
		pid, _ := strconv.Atoi(m[1])
		pr := &w.tl.Processes[w.proc]
		if pr.PID != 0 && pr.PID != pid {
			pr = w.newProcess(l.no, -1)
		}
		pr.PID = pid
	}
	if m := workerPart.FindStringSubmatch(l.msg); m != nil {
		w.name(m[1])
	}
	for _, part := range strings.Split(l.msg, "|") {
		part = strings.TrimSpace(part)
		if m := bannerPart.FindStringSubmatch(part); m != nil {
			e := w.event(timeline.Setting, l)
			e.Key, e.Value = strings.ToLower(m[1]), m[2]
		} else if strings.HasPrefix(part, "NVIDIA ") || strings.HasPrefix(part, "AMD ") {
			e := w.event(timeline.Setting, l)
			e.Key, e.Value = "gpu", part
		}
	}
}
