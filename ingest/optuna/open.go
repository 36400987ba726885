// Package optuna reads Optuna studies from SQLite files of every schema from Optuna 1.0 to 5.0rc1.
//
// What the schemas differ in is told by their columns, never by the version that the file claims:
// an old file that a newer Optuna merely tried to open has empty new tables beside its live old ones.
package optuna

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the SQL driver "sqlite"
)

// magic is how every SQLite database begins (https://www.sqlite.org/fileformat.html, section 1.3).
const magic = "SQLite format 3\x00"

// Sniff says whether a file that begins with head is a SQLite database.
func Sniff(head []byte) bool { return strings.HasPrefix(string(head), magic) }

// A database is a SQLite file opened so that neither the file nor its folder is changed.
type database struct {
	*sql.DB
	temp string // folder of the private copy, "" when the file itself is open
	note string
}

// Close closes the database and removes its private copy.
func (d *database) Close() error {
	err := d.DB.Close()
	if d.temp != "" {
		err = errors.Join(err, os.RemoveAll(d.temp))
	}
	return err
}

// open opens the file read-only. A database with a write-ahead log or a hot journal can only be read
// rightly by a program that may write beside it (immutable=1 loses rows or shows uncommitted ones),
// so such a file is copied with its companions to a temporary folder and opened there.
func open(ctx context.Context, path string) (*database, error) {
	head := make([]byte, 100)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	n, err := io.ReadFull(f, head)
	f.Close()
	switch {
	case n == 0 && err == io.EOF:
		return nil, errors.New("the file is empty; an Optuna database was expected")
	case !Sniff(head[:n]):
		return nil, errors.New("this is no SQLite database")
	case n < 100:
		return nil, fmt.Errorf("the SQLite database is cut off after %d bytes; copy it again", n)
	}
	d := &database{}
	target, mode := path, "ro"
	wal := head[18] == 2 || head[19] == 2 // file format version 2 is write-ahead log
	if wal || exists(path+"-journal") || exists(path+"-wal") {
		if d.temp, err = copyWithCompanions(path); err != nil {
			return nil, err
		}
		target, mode = filepath.Join(d.temp, "copy.db"), "rw"
		d.note = "read from a private copy, since it has a write-ahead log or a journal"
		if wal && !exists(path+"-wal") {
			d.note += "; its -wal file is not here: rows that were not yet checkpointed, if any, are missing"
		}
	}
	abs, err := filepath.Abs(target)
	if err != nil {
		d.removeTemp()
		return nil, err
	}
	q := url.Values{"mode": {mode}, "_pragma": {"busy_timeout(5000)", "trusted_schema(0)", "cell_size_check(1)"}}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(abs), RawQuery: q.Encode()}
	d.DB, err = sql.Open("sqlite", u.String())
	if err != nil {
		d.removeTemp()
		return nil, err
	}
	d.SetMaxOpenConns(1)
	if err := d.PingContext(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *database) removeTemp() {
	if d.temp != "" {
		os.RemoveAll(d.temp)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// copyWithCompanions copies the database and its -wal and -journal, if any, and returns the folder.
// The -shm file is left out: SQLite makes it anew from the log.
func copyWithCompanions(path string) (dir string, err error) {
	dir, err = os.MkdirTemp("", "postmortem-db-*")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	for _, suffix := range []string{"", "-wal", "-journal"} {
		if suffix != "" && !exists(path+suffix) {
			continue
		}
		if err := copyFile(filepath.Join(dir, "copy.db"+suffix), path+suffix); err != nil {
			return "", err
		}
	}
	return dir, nil
}

func copyFile(dst, src string) (err error) {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(dst, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}
