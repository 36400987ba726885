package analyze

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"
)

// errorAttributes are the attributes in which programs record what killed a trial; fail_reason is
// Optuna's own, up to 2.3.
var errorAttributes = []string{"cuda_error_msg", "fail_reason", "error_msg", "error_message", "error", "exception", "traceback", "failure"}

// attributeIncidents takes what a trial recorded about its own end. An error that the trial's log
// also holds is the same incident.
func (r *run) attributeIncidents() {
	byTrial := map[trialRef]*incident{}
	for _, in := range r.found {
		for _, ref := range in.trials {
			if in.outcome == Lost || byTrial[ref] == nil {
				byTrial[ref] = in
			}
		}
	}
	r.eachTrial(func(s *timeline.Study, t *timeline.Trial) {
		e, ok := r.attributeError(s, t)
		if !ok {
			return
		}
		if in := byTrial[trialRef{s.Name, t.Number}]; in != nil {
			in.outcome = Lost
			in.echo(e)
			return
		}
		r.found = append(r.found, newIncident(e))
	})
}

// attributeError reads a trial's error attributes, if it ended badly and they are its own: a retried
// trial inherits its ancestor's.
func (r *run) attributeError(s *timeline.Study, t *timeline.Trial) (timeline.Event, bool) {
	if t.State != timeline.Pruned && t.State != timeline.Fail || guarded(t) {
		return timeline.Event{}, false
	}
	text := ""
	for _, key := range errorAttributes {
		if text == "" {
			text = timeline.AttrText(t.UserAttrs, key)
		}
		if text == "" {
			text = timeline.AttrText(t.SystemAttrs, key)
		}
	}
	typ := timeline.AttrText(t.UserAttrs, "cuda_error_type", "error_type", "exception_type")
	cuda := timeline.AttrText(t.UserAttrs, "cuda_error") == "true"
	if reason := timeline.AttrText(t.UserAttrs, "prune_reason"); text == "" && typ == "" && isCrashText(reason) {
		text, cuda = reason, cuda || strings.Contains(strings.ToLower(reason), "cuda")
	}
	if text == "" && typ == "" && !cuda || inherited(s, t, text) {
		return timeline.Event{}, false
	}
	class := failure.Unknown
	if cl := r.cat.Match(text, ""); cl != nil {
		class = cl.ID
	} else if typ != "" {
		class = r.cat.MatchException(typ, text, "").ID
	} else if cuda {
		class = "cuda/unknown-error"
	}
	e := timeline.Event{Kind: timeline.Failure, Form: timeline.FormAttribute, Class: class, Pos: t.Pos, Stream: t.Stream, Process: t.Process,
		Study: s.Name, Trial: t.Number, Link: timeline.Stated, Time: t.End, Quality: timeline.TimeStated}
	if t.End.IsZero() {
		e.Quality = timeline.TimeUnknown
	}
	e.Facts = r.cat.Class(class).ReadFacts(text)
	e.Text, _, _ = strings.Cut(cmp.Or(text, typ), "\n")
	return e, true
}

// crashWords mark a pruning reason that is a crash's.
var crashWords = []string{"error", "oom", "exception", "crash", "nan"}

func isCrashText(s string) bool {
	s = strings.ToLower(s)
	return slices.ContainsFunc(strings.FieldsFunc(s, func(r rune) bool { return r == '_' || r == '-' || r == ' ' || r == ':' }), func(w string) bool { return slices.Contains(crashWords, w) }) ||
		strings.Contains(s, "out of memory")
}

// inherited says whether a retried trial's error text is its ancestor's.
func inherited(s *timeline.Study, t *timeline.Trial, text string) bool {
	n, err := strconv.Atoi(timeline.AttrText(t.SystemAttrs, "failed_trial"))
	if err != nil || t.State == timeline.Fail {
		return false
	}
	i := slices.IndexFunc(s.Trials, func(o timeline.Trial) bool { return o.Number == n })
	return i >= 0 && text != "" && timeline.AttrText(s.Trials[i].UserAttrs, "cuda_error_msg") == text
}
