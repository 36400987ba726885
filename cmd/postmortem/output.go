package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// writeFile writes a file whole or not at all: into a temporary file beside it, flushed to the disk,
// then renamed over it. A symbolic link, or a file that is no report, is not overwritten without force.
func writeFile(path string, data []byte, force bool) (err error) {
	if !force {
		if err := mayOverwrite(path); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".postmortem-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// ours are words that stand near the beginning or end of everything that this program writes.
var ours = [][]byte{[]byte("postmortem"), []byte(`"schema_version"`), []byte("\x89PNG")}

func mayOverwrite(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file; --force replaces it", path)
	case info.Size() == 0:
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 8<<10))
	if err != nil {
		return err
	}
	tail := make([]byte, min(info.Size(), 8<<10))
	if _, err := f.ReadAt(tail, info.Size()-int64(len(tail))); err != nil && err != io.EOF {
		return err
	}
	for _, w := range ours {
		if bytes.Contains(head, w) || bytes.Contains(tail, w) {
			return nil
		}
	}
	return fmt.Errorf("%s is no report of postmortem's; --force overwrites it", path)
}

func onTerminal(cmd *cobra.Command) bool {
	w, ok := cmd.OutOrStdout().(*os.File)
	return ok && term.IsTerminal(int(w.Fd()))
}

// useColor reads --color.
func useColor(cmd *cobra.Command, when string) (bool, error) {
	switch when {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto":
		return os.Getenv("NO_COLOR") == "" && onTerminal(cmd), nil
	}
	return false, fmt.Errorf("--color %q: there are auto, always, never", when)
}
