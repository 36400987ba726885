package optuna

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// newestRevision is the newest Alembic revision that this reader was written against (Optuna 3.2 to 5.0rc1).
const newestRevision = "v3.2.0.a"

// ErrForeign is returned for a SQLite database that is not Optuna's.
var ErrForeign = errors.New("this SQLite database holds no Optuna studies (it lacks the tables studies and trials)")

// A schema is the columns of each table, in lower case.
type schema map[string][]string

func (s schema) has(table string, columns ...string) bool {
	have, ok := s[table]
	for _, c := range columns {
		ok = ok && slices.Contains(have, c)
	}
	return ok
}

// tables are the tables that are read. Anything else in the file is none of our business.
var tables = []string{
	"studies", "study_directions", "study_user_attributes", "study_system_attributes",
	"trials", "trial_params", "trial_values", "trial_intermediate_values",
	"trial_user_attributes", "trial_system_attributes", "trial_heartbeats",
	"alembic_version", "version_info",
}

// readSchema lists the columns of Optuna's tables. Views of the same names do not count.
func readSchema(ctx context.Context, db *database) (schema, error) {
	s := schema{}
	rows, err := db.QueryContext(ctx, "SELECT name FROM sqlite_master WHERE type = 'table'")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		if slices.Contains(tables, name) {
			s[name] = nil
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for table := range s {
		cols, err := columns(ctx, db, table)
		if err != nil {
			return nil, err
		}
		s[table] = cols
	}
	if !s.has("studies", "study_id", "study_name") || !s.has("trials", "trial_id", "study_id", "state") {
		return nil, ErrForeign
	}
	return s, nil
}

func columns(ctx context.Context, db *database, table string) ([]string, error) {
	rows, err := db.QueryContext(ctx, "SELECT name FROM pragma_table_info(?)", table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var cols []string
	for rows.Next() {
		var c string
		if err := rows.Scan(&c); err != nil {
			return nil, err
		}
		cols = append(cols, strings.ToLower(c))
	}
	return cols, rows.Err()
}
