package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"postmortem/analyze"
	"postmortem/ingest"
	"postmortem/ingest/failure"
	"postmortem/report"

	"github.com/spf13/cobra"
)

func compareCommand() *cobra.Command {
	f := &reportFlags{}
	cmd := &cobra.Command{
		Use:   "compare BEFORE AFTER | compare LOG…",
		Short: "Say whether a fix worked, or which option is best",
		Long: `compare sets a run against an earlier one: per class of failure what share of the finished trials it took
before and after, and whether the difference is one; what differs between the runs, and whether the effect can
be told to one change.

BEFORE and AFTER are run folders or Optuna databases, read as postmortem report reads them.

Given logs, or one folder of them, compare takes each for one way to run the same training, and recommends the
fastest that finished. A dump of nvidia-smi that has the log's name up to its first dot belongs to it.`,
		Example: `  postmortem compare runs/2026-11-19 runs/2026-11-20
  postmortem compare before/ after/ -o compare.html
  postmortem compare options/*.log`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.compare(cmd, args) },
	}
	f.addTime(cmd)
	f.addOutput(cmd)
	cmd.Flags().StringVar(&f.card, "capacity", "", "size of another card, such as 15GiB: the room that options leave there")
	return cmd
}

func (f *reportFlags) compare(cmd *cobra.Command, args []string) error {
	targets, err := f.targets(cmd)
	if err != nil {
		return err
	}
	color, err := useColor(cmd, f.color)
	if err != nil {
		return err
	}
	doc := report.Document{Findings: &analyze.Findings{}, Version: version(), Color: color && (f.out == "" || f.color == "always")}
	groups, err := optionGroups(args)
	if err != nil {
		return err
	}
	if groups != nil {
		doc.Comparison, doc.Catalogue, err = f.options(cmd, groups)
	} else {
		doc.Comparison, doc.Catalogue, err = f.runs(cmd, args)
	}
	if err != nil {
		return err
	}
	return f.writeAll(cmd, targets, doc)
}

// runs compares two runs.
func (f *reportFlags) runs(cmd *cobra.Command, args []string) (*analyze.Comparison, *failure.Catalogue, error) {
	var runs []*analyze.RunSummary
	var cat *failure.Catalogue
	for _, path := range args {
		req, err := f.request(cmd, []string{path})
		if err != nil {
			return nil, nil, err
		}
		tl, err := ingest.Read(cmd.Context(), req)
		if err != nil {
			return nil, nil, err
		}
		s := analyze.Summarize(shortName(path, args), tl, req.Catalogue)
		if s.Trials == 0 {
			return nil, nil, exitError{exitInput, fmt.Sprintf("%s: no finished trial in it to compare; give a folder with an Optuna storage", path)}
		}
		runs, cat = append(runs, s), req.Catalogue
	}
	return analyze.Compare(runs[0], runs[1]), cat, nil
}

// shortName is the last part of a path, if it tells it from the others.
func shortName(path string, all []string) string {
	base := filepath.Base(filepath.Clean(path))
	same := 0
	for _, p := range all {
		if filepath.Base(filepath.Clean(p)) == base {
			same++
		}
	}
	if same > 1 {
		return path
	}
	return base
}

// options compares ways to run the same training.
func (f *reportFlags) options(cmd *cobra.Command, groups []optionGroup) (*analyze.Comparison, *failure.Catalogue, error) {
	capacity, err := memorySize(f.card)
	if err != nil {
		return nil, nil, err
	}
	var list []analyze.Option
	var cat *failure.Catalogue
	for _, g := range groups {
		req, err := f.request(cmd, nil)
		if err != nil {
			return nil, nil, err
		}
		req.Logs, req.GPUs, cat = []string{g.log}, g.dumps, req.Catalogue
		tl, err := ingest.Read(cmd.Context(), req)
		if err != nil {
			return nil, nil, err
		}
		list = append(list, analyze.ReadOption(g.name, tl, req.Catalogue, capacity))
	}
	return analyze.CompareOptions(list), cat, nil
}

// An optionGroup is a log and what belongs to it.
type optionGroup struct {
	name, log string
	dumps     []string
}

// optionGroups tells options from runs: two folders or databases are runs, logs and one folder of logs are
// options. It returns nil for runs.
func optionGroups(args []string) ([]optionGroup, error) {
	var logs []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case err != nil:
			return nil, &ingest.InputError{Name: arg, Err: errors.New("no such file or folder")}
		case info.IsDir() && len(args) > 1, strings.HasSuffix(arg, ".db"):
			if len(args) != 2 {
				return nil, errors.New("compare two runs, or any number of logs")
			}
			return nil, nil
		case info.IsDir():
			found, err := filepath.Glob(filepath.Join(arg, "*.log"))
			if err == nil && len(found) == 0 {
				return nil, &ingest.InputError{Name: arg, Err: errors.New("no *.log in it, and there is nothing to compare it with")}
			}
			logs = append(logs, found...)
		default:
			logs = append(logs, arg)
		}
	}
	var out []optionGroup
	for _, log := range logs {
		stem, _, _ := strings.Cut(filepath.Base(log), ".")
		g := optionGroup{name: stem, log: log}
		beside, err := filepath.Glob(filepath.Join(filepath.Dir(log), stem+".*"))
		if err != nil {
			return nil, err
		}
		for _, b := range beside {
			if strings.HasSuffix(b, ".csv") {
				g.dumps = append(g.dumps, b)
			}
		}
		out = append(out, g)
	}
	return out, nil
}
