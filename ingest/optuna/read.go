package optuna

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"postmortem/ingest/lines"
	"postmortem/ingest/timeline"
)

// Read reads every study of a SQLite file. The file, its folder and its times are left as they are.
// Times come in the location timeline.Naive, heartbeats in UTC; Place puts them on the axis. A row that
// cannot be read becomes a Problem; an error is returned only when no study can be read at all.
// src is the index that places in the result refer to.
func Read(ctx context.Context, path string, src int) (*timeline.Timeline, error) {
	db, err := open(ctx, path)
	if err != nil {
		return nil, explain(err)
	}
	defer db.Close()
	sch, err := readSchema(ctx, db)
	if err != nil {
		return nil, explain(err)
	}
	r := &reader{ctx: ctx, db: db, schema: sch, src: src, problems: map[string]*timeline.Problem{},
		byID: map[int64]*timeline.Trial{}, dists: map[string]*timeline.Distribution{}}
	if st, err := os.Stat(path); err == nil {
		r.account.Bytes = st.Size()
	}
	r.account.Kind = timeline.OptunaSQLite
	if db.note != "" {
		r.account.Notes = append(r.account.Notes, db.note)
	}
	r.readAll()
	return r.finish()
}

// explain turns SQLite's words into what a person can do about it.
func explain(err error) error {
	msg := err.Error()
	switch {
	case strings.Contains(msg, "malformed"), strings.Contains(msg, "disk image"):
		return fmt.Errorf("the database is damaged (%s); copy it again or recover it with sqlite3 .recover", msg)
	case strings.Contains(msg, "not a database"):
		return fmt.Errorf("this is no SQLite database, or an encrypted one (%s)", msg)
	}
	return err
}

type reader struct {
	ctx      context.Context
	db       *database
	schema   schema
	src      int
	account  timeline.Source
	studies  []*timeline.Study
	trials   map[int64][]*timeline.Trial // by study id
	byID     map[int64]*timeline.Trial
	dists    map[string]*timeline.Distribution
	problems map[string]*timeline.Problem
	broken   bool // SQLite itself gave up on part of the file
}

// problem counts a part of the database that was not understood.
func (r *reader) problem(row, msg, text string) {
	r.account.NotUnderstood++
	if p := r.problems[msg]; p != nil {
		p.Count++
		return
	}
	text = lines.Cut(text, 200)
	r.problems[msg] = &timeline.Problem{Pos: timeline.Pos{Source: r.src, Row: row}, Msg: msg, Text: text, Count: 1}
}

// each runs one query and hands every row to f. What SQLite cannot read is a problem, not the end.
func (r *reader) each(table, query string, f func(row []any)) {
	rows, err := r.db.QueryContext(r.ctx, query)
	if err != nil {
		r.broken = true
		r.problem(table, "table "+table+" cannot be read: "+explain(err).Error(), "")
		return
	}
	defer rows.Close()
	cols, err := rows.Columns()
	if err != nil {
		return
	}
	row, ptr := make([]any, len(cols)), make([]any, len(cols))
	for i := range row {
		ptr[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(ptr...); err != nil {
			r.problem(table, "table "+table+" has a row that cannot be read", err.Error())
			continue
		}
		r.account.Lines++
		f(row)
	}
	if err := rows.Err(); err != nil {
		r.broken = true
		r.problem(table, "table "+table+" ends early: "+explain(err).Error(), "")
	}
}

func (r *reader) readAll() {
	r.trials = map[int64][]*timeline.Trial{}
	r.readVersions()
	r.readStudies()
	r.readTrials()
	r.readParams()
	r.readValues()
	r.readIntermediate()
	r.readAttrs("trial_user_attributes", func(id int64, a timeline.Attr) {
		if t := r.byID[id]; t != nil {
			t.UserAttrs = append(t.UserAttrs, a)
		}
	})
	r.readAttrs("trial_system_attributes", r.systemAttr)
	r.readHeartbeats()
}

// systemAttr keeps a trial's system attribute; up to Optuna 1.2 the trial's number is one of them.
func (r *reader) systemAttr(id int64, a timeline.Attr) {
	t := r.byID[id]
	if t == nil {
		return
	}
	if a.Key == "_number" && !r.schema.has("trials", "number") {
		if n, err := strconv.Atoi(a.JSON); err == nil {
			t.Number = n
		}
	}
	t.SystemAttrs = append(t.SystemAttrs, a)
}

func (r *reader) readVersions() {
	if r.schema.has("alembic_version", "version_num") {
		r.each("alembic_version", "SELECT version_num FROM alembic_version", func(row []any) {
			if v := text(row[0]); v > newestRevision {
				r.account.Notes = append(r.account.Notes, fmt.Sprintf("schema revision %.40q is newer than the newest that this program knows (%s); it was read by its columns", v, newestRevision))
			}
		})
	}
	if r.schema.has("version_info", "library_version") {
		r.each("version_info", "SELECT library_version FROM version_info", func(row []any) {
			r.account.Notes = append(r.account.Notes, versionNote+text(row[0]))
		})
	}
}

// versionNote begins the note that names the Optuna which made the database.
const versionNote = "made by Optuna "

func (r *reader) readStudies() {
	q := "SELECT study_id, study_name, NULL FROM studies ORDER BY study_id"
	if r.schema.has("studies", "direction") {
		q = "SELECT study_id, study_name, direction FROM studies ORDER BY study_id"
	}
	byID := map[int64]*timeline.Study{}
	r.each("studies", q, func(row []any) {
		id, ok := integer(row[0])
		if !ok {
			return
		}
		s := &timeline.Study{ID: id, Name: text(row[1]), Source: r.src}
		if d := text(row[2]); d != "" {
			s.Directions = []timeline.Direction{timeline.Direction(d)}
		}
		byID[id] = s
		r.studies = append(r.studies, s)
	})
	if r.schema.has("study_directions", "direction", "study_id", "objective") && !r.schema.has("studies", "direction") {
		r.each("study_directions", "SELECT study_id, direction FROM study_directions ORDER BY study_id, objective", func(row []any) {
			id, _ := integer(row[0])
			if s := byID[id]; s != nil {
				s.Directions = append(s.Directions, timeline.Direction(text(row[1])))
			}
		})
	}
	for _, table := range []string{"study_user_attributes", "study_system_attributes"} {
		if !r.schema.has(table, "study_id", "key", "value_json") {
			continue
		}
		r.each(table, "SELECT study_id, key, value_json FROM "+table+" ORDER BY rowid", func(row []any) {
			id, _ := integer(row[0])
			s := byID[id]
			if s == nil {
				return
			}
			a := timeline.Attr{Key: text(row[1]), JSON: text(row[2])}
			if table == "study_user_attributes" {
				s.UserAttrs = append(s.UserAttrs, a)
			} else {
				s.SystemAttrs = append(s.SystemAttrs, a)
			}
		})
	}
}

func (r *reader) readTrials() {
	number, value := "NULL", "NULL"
	if r.schema.has("trials", "number") {
		number = "number"
	}
	if r.schema.has("trials", "value") {
		value = "value"
	}
	// "||''" keeps the driver from turning naive times into times in UTC.
	q := "SELECT trial_id, study_id, " + number + ", state, " + value + ", datetime_start||'', datetime_complete||'' FROM trials ORDER BY trial_id"
	r.each("trials", q, func(row []any) {
		id, ok := integer(row[0])
		study, ok2 := integer(row[1])
		if !ok || !ok2 {
			r.problem("trials", "a trial has no id or no study", "")
			return
		}
		t := &timeline.Trial{ID: id, Number: int(id), State: timeline.State(text(row[3])), Stream: -1, Process: -1}
		if n, ok := integer(row[2]); ok {
			t.Number = int(n)
		} else if number == "NULL" {
			t.Number = len(r.trials[study]) // until _number says otherwise
		}
		t.Pos = timeline.Pos{Source: r.src, Row: "trials/" + strconv.FormatInt(id, 10)}
		switch t.State {
		case timeline.Complete, timeline.Pruned, timeline.Fail, timeline.Running, timeline.Waiting:
		default:
			r.problem(t.Pos.Row, "a trial has a state that Optuna does not know", string(t.State))
		}
		if f, ok := real(row[4]); ok {
			t.Values = []float64{f}
		}
		t.Start, t.End = r.when(t.Pos.Row, row[5]), r.when(t.Pos.Row, row[6])
		r.trials[study] = append(r.trials[study], t)
		r.byID[id] = t
	})
}

func (r *reader) readParams() {
	r.each("trial_params", "SELECT trial_id, param_name, param_value, distribution_json FROM trial_params ORDER BY trial_id, param_name", func(row []any) {
		id, _ := integer(row[0])
		t := r.byID[id]
		if t == nil {
			return
		}
		doc := text(row[3])
		d, ok := r.dists[doc]
		if !ok {
			var err error
			if d, err = parseDistribution(doc); err != nil {
				r.problem(t.Pos.Row, "a parameter's distribution cannot be read", doc)
				d = &timeline.Distribution{}
			}
			r.dists[doc] = d
		}
		v, ok := real(row[2])
		if !ok {
			v = math.NaN()
		}
		t.Params = append(t.Params, timeline.Param{Name: text(row[1]), Internal: v, Dist: d})
	})
}

func (r *reader) readValues() {
	if !r.schema.has("trial_values", "objective", "value") {
		return // before 2.4 the final value is in trials.value
	}
	typ := "NULL"
	if r.schema.has("trial_values", "value_type") {
		typ = "value_type"
	}
	r.each("trial_values", "SELECT trial_id, value, "+typ+" FROM trial_values ORDER BY trial_id, objective", func(row []any) {
		id, _ := integer(row[0])
		if t := r.byID[id]; t != nil {
			t.Values = append(t.Values, typed(row[1], text(row[2])))
		}
	})
}

func (r *reader) readIntermediate() {
	table, value, typ := "trial_intermediate_values", "intermediate_value", "NULL"
	if r.schema.has("trial_values", "step", "value") { // its meaning before 2.4
		table, value = "trial_values", "value"
	} else if !r.schema.has(table, "step", value) {
		return
	} else if r.schema.has(table, "intermediate_value_type") {
		typ = "intermediate_value_type"
	}
	r.each(table, "SELECT trial_id, step, "+value+", "+typ+" FROM "+table+" ORDER BY trial_id, step", func(row []any) {
		id, _ := integer(row[0])
		step, ok := integer(row[1])
		if t := r.byID[id]; t != nil && ok {
			t.Intermediate = append(t.Intermediate, timeline.Step{Step: step, Value: typed(row[2], text(row[3]))})
		}
	})
}

func (r *reader) readAttrs(table string, f func(id int64, a timeline.Attr)) {
	if !r.schema.has(table, "trial_id", "key", "value_json") {
		return
	}
	r.each(table, "SELECT trial_id, key, value_json FROM "+table+" ORDER BY rowid", func(row []any) {
		if id, ok := integer(row[0]); ok {
			f(id, timeline.Attr{Key: text(row[1]), JSON: text(row[2])})
		}
	})
}

func (r *reader) readHeartbeats() {
	if !r.schema.has("trial_heartbeats", "trial_id", "heartbeat") {
		return
	}
	r.each("trial_heartbeats", "SELECT trial_id, heartbeat||'' FROM trial_heartbeats ORDER BY trial_id", func(row []any) {
		id, _ := integer(row[0])
		t := r.byID[id]
		if t == nil {
			return
		}
		if h := r.when(t.Pos.Row, row[1]); !h.IsZero() {
			t.Heartbeat = time.Date(h.Year(), h.Month(), h.Day(), h.Hour(), h.Minute(), h.Second(), h.Nanosecond(), time.UTC)
		}
	})
}

// finish puts the trials into their studies, by number.
func (r *reader) finish() (*timeline.Timeline, error) {
	tl := &timeline.Timeline{}
	n := 0
	for _, s := range r.studies {
		for _, t := range r.trials[s.ID] {
			s.Trials = append(s.Trials, *t)
		}
		slices.SortStableFunc(s.Trials, func(a, b timeline.Trial) int { return a.Number - b.Number })
		n += len(s.Trials)
		tl.Studies = append(tl.Studies, *s)
	}
	for _, p := range r.problems {
		tl.Problems = append(tl.Problems, *p)
	}
	if len(tl.Studies) == 0 && r.broken {
		return nil, errors.New(tl.Problems[0].Msg)
	}
	slices.SortFunc(tl.Studies, func(a, b timeline.Study) int { return strings.Compare(a.Name, b.Name) })
	r.account.Events = n
	r.account.Understood = r.account.Lines - r.account.NotUnderstood
	tl.Sources = []timeline.Source{r.account}
	return tl, nil
}
