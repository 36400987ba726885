package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"postmortem/analyze"
	"postmortem/ingest"
	"postmortem/report"

	"github.com/spf13/cobra"
)

type reportFlags struct {
	inputFlags
	out     string
	formats []string
	strict  bool
	quiet   bool
	force   bool
	color   string
	card    string
}

func reportCommand() *cobra.Command {
	f := &reportFlags{}
	cmd := &cobra.Command{
		Use:   "report [PATH…]",
		Short: "Read a run, find out what killed its trials, write the report",
		Long: `report reads everything into one timeline, analyses it and writes the report.

A PATH is a file or a folder; what each file is, its content tells, not its name. "-" reads a log from
standard input. Inputs can also be named one by one with --db, --log, --gpu and --kernel-log.

Without -o the report goes to standard output: a summary on a terminal, Markdown elsewhere. -o FILE takes
the format from the name (.html, .md, .json, .txt); -o DIR writes each --format into the folder.`,
		Example: `  postmortem report nightly/ -o report.html
  postmortem report --study criteria --db optuna.db
  postmortem report --db optuna.db --log 'worker*.log' --gpu nvidia_smi.csv --kernel-log dmesg.log --format markdown`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.add(cmd)
	f.addLogs(cmd)
	f.addOutput(cmd)
	cmd.Flags().BoolVar(&f.strict, "strict", false, "exit with 4 when part of the input was not understood")
	cmd.Flags().StringVar(&f.card, "capacity", "", "size of another card, such as 24GiB: how many workers of this run would fit there")
	return cmd
}

// addOutput adds the flags that say what is written where.
func (f *reportFlags) addOutput(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVarP(&f.out, "out", "o", "", "file or folder to write to (default: standard output)")
	fs.StringArrayVar(&f.formats, "format", nil, "html, markdown, json or text; may be repeated when -o is a folder")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "say nothing on standard error but errors")
	fs.StringVar(&f.color, "color", "auto", "auto, always or never: colour in the text form; auto is on a terminal unless NO_COLOR is set")
	fs.BoolVar(&f.force, "force", false, "overwrite a file that is no report of ours, or a symbolic link")
}

func (f *reportFlags) run(cmd *cobra.Command, args []string) error {
	req, err := f.request(cmd, args)
	if err != nil {
		return err
	}
	if len(args)+len(req.Databases)+len(req.Logs)+len(req.GPUs)+len(req.KernelLogs) == 0 {
		return errors.New("nothing to read: give a run folder or --db, --log, --gpu, --kernel-log (see postmortem report --help)")
	}
	targets, err := f.targets(cmd)
	if err != nil {
		return err
	}
	color, err := useColor(cmd, f.color)
	if err != nil {
		return err
	}
	capacity, err := memorySize(f.card)
	if err != nil {
		return err
	}
	tl, err := ingest.Read(cmd.Context(), req)
	if err != nil {
		return err
	}
	color = color && (f.out == "" || f.color == "always")
	findings := analyze.RunWith(tl, req.Catalogue, analyze.Asked{CapacityBytes: capacity})
	doc := report.Document{Findings: findings, Catalogue: req.Catalogue, Version: version(), Color: color}
	if err := f.writeAll(cmd, targets, doc); err != nil {
		return err
	}
	return f.account(findings)
}

// writeAll writes a document in every form that was asked for.
func (f *reportFlags) writeAll(cmd *cobra.Command, targets []target, doc report.Document) error {
	for _, t := range targets {
		if err := t.write(cmd, doc, f.force); err != nil {
			return err
		}
		if t.path != "" && !f.quiet {
			fmt.Fprintln(cmd.ErrOrStderr(), "wrote", t.path)
		}
	}
	return nil
}

// memorySize reads a size of memory with its unit; 0 for none.
func memorySize(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	for _, u := range []struct {
		name  string
		bytes float64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"TiB", 1 << 40}, {"GB", 1e9}, {"MB", 1e6}, {"TB", 1e12}} {
		if n, ok := strings.CutSuffix(s, u.name); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(n), 64)
			if err == nil && v > 0 && v*u.bytes < 1<<60 {
				return int64(v * u.bytes), nil
			}
		}
	}
	return 0, fmt.Errorf("--capacity %s: write a number and a unit, such as 24GiB", s)
}

// account ends a --strict run with its status when something was left over.
func (f *reportFlags) account(d *analyze.Findings) error {
	n := 0
	for _, i := range d.Inputs {
		n += i.NotUnderstood
	}
	if f.strict && n+len(d.Skipped) > 0 {
		return exitError{exitSkipped, fmt.Sprintf("--strict: %d lines were not understood and %d files not read", n, len(d.Skipped))}
	}
	return nil
}

// A target is one report to write; path "" is standard output.
type target struct {
	renderer report.Renderer
	path     string
}

func rendererNamed(name string) (report.Renderer, error) {
	i := slices.IndexFunc(report.Renderers, func(r report.Renderer) bool { return r.Name == name })
	if i < 0 {
		var names []string
		for _, r := range report.Renderers {
			names = append(names, r.Name)
		}
		return report.Renderer{}, fmt.Errorf("--format %q: there are %s", name, strings.Join(names, ", "))
	}
	return report.Renderers[i], nil
}

// targets decides what is written where.
func (f *reportFlags) targets(cmd *cobra.Command) ([]target, error) {
	var rs []report.Renderer
	for _, name := range f.formats {
		r, err := rendererNamed(name)
		if err != nil {
			return nil, err
		}
		rs = append(rs, r)
	}
	info, err := os.Stat(f.out)
	isDir := f.out != "" && (err == nil && info.IsDir() || strings.HasSuffix(f.out, string(filepath.Separator)))
	switch {
	case isDir:
		if len(rs) == 0 {
			rs = report.Renderers[:1]
		}
		var ts []target
		for _, r := range rs {
			ts = append(ts, target{r, filepath.Join(f.out, "report"+r.Ext)})
		}
		return ts, nil
	case len(rs) > 1:
		return nil, errors.New("several --format need -o FOLDER/")
	case len(rs) == 1:
		return []target{{rs[0], f.out}}, nil
	case f.out != "":
		ext := strings.ToLower(filepath.Ext(f.out))
		if ext == ".htm" {
			ext = ".html"
		}
		for _, r := range report.Renderers {
			if r.Ext == ext {
				return []target{{r, f.out}}, nil
			}
		}
		return nil, fmt.Errorf("-o %s: the name does not tell the format; add --format", f.out)
	}
	name := "markdown"
	if onTerminal(cmd) {
		name = "text"
	}
	r, err := rendererNamed(name)
	return []target{{r, ""}}, err
}

// write renders into memory first, so that a failure leaves an older report as it was.
func (t target) write(cmd *cobra.Command, doc report.Document, force bool) error {
	var buf bytes.Buffer
	if t.path == "" {
		if err := t.renderer.Render(&buf, doc, nil); err != nil {
			return err
		}
		_, err := io.Copy(cmd.OutOrStdout(), &buf)
		return err
	}
	dir := filepath.Dir(t.path)
	if err := t.renderer.Render(&buf, doc, func(name string, data []byte) error {
		return writeFile(filepath.Join(dir, filepath.FromSlash(name)), data, force)
	}); err != nil {
		return err
	}
	return writeFile(t.path, buf.Bytes(), force)
}
