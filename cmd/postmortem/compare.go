package main

import (
	"fmt"

	"postmortem/analyze"
	"postmortem/ingest"
	"postmortem/report"

	"github.com/spf13/cobra"
)

func compareCommand() *cobra.Command {
	f := &reportFlags{}
	cmd := &cobra.Command{
		Use:   "compare BEFORE AFTER",
		Short: "Say whether a fix worked: a run against an earlier one",
		Long: `compare sets a run against an earlier one: per class of failure what share of the finished trials it took
before and after, and whether the difference is one; what differs between the runs, and whether the effect can
be told to one change.

BEFORE and AFTER are run folders or Optuna databases, read as postmortem report reads them.`,
		Example: `  postmortem compare runs/2026-11-19 runs/2026-11-20
  postmortem compare before/ after/ -o compare.html`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.compare(cmd, args) },
	}
	f.addTime(cmd)
	f.addOutput(cmd)
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
	var runs []*analyze.RunSummary
	doc := report.Document{Findings: &analyze.Findings{}, Version: version(), Color: color && (f.out == "" || f.color == "always")}
	for _, path := range args {
		req, err := f.request(cmd, []string{path})
		if err != nil {
			return err
		}
		tl, err := ingest.Read(cmd.Context(), req)
		if err != nil {
			return err
		}
		s := analyze.Summarize(path, tl, req.Catalogue)
		if s.Trials == 0 {
			return exitError{exitInput, fmt.Sprintf("%s: no finished trial in it to compare; give a folder with an Optuna storage", path)}
		}
		runs, doc.Catalogue = append(runs, s), req.Catalogue
	}
	doc.Comparison = analyze.Compare(runs[0], runs[1])
	return f.writeAll(cmd, targets, doc)
}
