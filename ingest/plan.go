package ingest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"postmortem/ingest/timeline"
)

// A job is one input and the format it is read as.
type job struct {
	in     Input
	format Format
	found  bool // in a folder, not named by the user
}

// headSize is how much of a file is looked at to tell its format.
const headSize = 64 << 10

func formatOf(kind timeline.Kind) Format {
	return Formats[slices.IndexFunc(Formats, func(f Format) bool { return f.Kind == kind })]
}

// plan lists what is to be read, in the order given, each file once.
func plan(req Request) (jobs []job, skipped []timeline.Skipped, err error) {
	seen := map[string]bool{}
	add := func(in Input, f Format, found bool) {
		if abs, err := filepath.Abs(in.Path); err == nil && in.Path != "" {
			if seen[abs] {
				return
			}
			seen[abs] = true
		}
		jobs = append(jobs, job{in, f, found})
	}
	var errs []error
	for _, path := range req.Paths {
		if path == "-" {
			add(Input{Name: "standard input", r: req.Stdin}, formatOf(timeline.TrainLog), false)
			continue
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			errs = append(errs, &InputError{path, plain(err)})
		case info.IsDir():
			skips, err := folder(path, func(in Input, f Format) { add(in, f, true) })
			skipped = append(skipped, skips...)
			errs = append(errs, err)
		default:
			f, err := tell(path, true)
			if err != nil {
				errs = append(errs, &InputError{path, err})
				continue
			}
			add(Input{Name: path, Path: path}, f, false)
		}
	}
	for _, path := range req.Databases {
		path = strings.TrimPrefix(path, "sqlite:///")
		if scheme, _, ok := strings.Cut(path, "://"); ok {
			errs = append(errs, &InputError{scheme + "://…", errors.New("this version reads SQLite files only")})
			continue
		}
		if _, err := os.Stat(path); err != nil {
			errs = append(errs, &InputError{path, plain(err)})
			continue
		}
		add(Input{Name: path, Path: path}, formatOf(timeline.OptunaSQLite), false)
	}
	for _, g := range []struct {
		globs []string
		kind  timeline.Kind
	}{{req.Logs, timeline.TrainLog}, {req.GPUs, timeline.NvidiaSMI}, {req.KernelLogs, timeline.KernelLog}} {
		for _, glob := range g.globs {
			paths, err := filepath.Glob(glob)
			if _, statErr := os.Stat(glob); statErr == nil {
				paths, err = []string{glob}, nil // a name that holds glob characters
			}
			if err == nil && len(paths) == 0 {
				err = errors.New("no such file")
			}
			if err != nil {
				errs = append(errs, &InputError{glob, err})
				continue
			}
			for _, p := range paths {
				f := formatOf(g.kind)
				if told, err := tell(p, true); err == nil && g.kind == timeline.NvidiaSMI && told.Kind == timeline.NvidiaDmon {
					f = told
				}
				add(Input{Name: p, Path: p}, f, false)
			}
		}
	}
	return jobs, skipped, errors.Join(errs...)
}

// folder adds the inputs of a folder and of those below it, by name. Hidden files and folders are
// passed over, as are the companions of a database.
func folder(root string, add func(Input, Format)) ([]timeline.Skipped, error) {
	var skipped []timeline.Skipped
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(root, path)
		if relErr != nil {
			rel = path
		}
		rel = filepath.ToSlash(rel)
		skip := func(why timeline.SkipReason) { skipped = append(skipped, timeline.Skipped{Name: rel, Why: why}) }
		switch name := filepath.Base(path); {
		case err != nil && path == root:
			return &InputError{root, plain(err)}
		case err != nil:
			skip(timeline.SkipUnreadable)
			return nil
		case path != root && strings.HasPrefix(name, "."):
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case strings.HasSuffix(name, "-wal"), strings.HasSuffix(name, "-shm"), strings.HasSuffix(name, "-journal"):
			return nil
		case d.IsDir():
			return nil
		case !d.Type().IsRegular() && d.Type()&fs.ModeSymlink == 0:
			return nil // a pipe or device in a folder is nobody's log
		}
		f, err := tell(path, false)
		var why skipError
		switch {
		case errors.As(err, &why):
			skip(timeline.SkipReason(why))
		case err != nil:
			skip(timeline.SkipUnreadable)
		default:
			add(Input{Name: rel, Path: path}, f)
		}
		return nil
	})
	return skipped, err
}

type skipError timeline.SkipReason

func (e skipError) Error() string {
	switch timeline.SkipReason(e) {
	case timeline.SkipEmpty:
		return "the file is empty"
	}
	return "this is no database, log or dump that this program reads"
}

// tell says which format a file has by its content. A file that was named by the user is taken as a
// log when it is text and nothing else.
func tell(path string, named bool) (Format, error) {
	f, err := os.Open(path)
	if err != nil {
		return Format{}, plain(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return Format{}, skipError(timeline.SkipNotAnInput)
	}
	head := make([]byte, headSize)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return Format{}, plain(err)
	}
	head = head[:n]
	if n == 0 {
		return Format{}, skipError(timeline.SkipEmpty)
	}
	for _, format := range Formats {
		if format.Sniff(head) {
			return format, nil
		}
	}
	if named && bytes.IndexByte(head, 0) < 0 {
		return formatOf(timeline.TrainLog), nil
	}
	return Format{}, skipError(timeline.SkipNotAnInput)
}
