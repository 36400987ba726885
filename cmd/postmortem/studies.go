package main

import (
	"errors"

	"postmortem/analyze"
	"postmortem/ingest"
	"postmortem/report"

	"github.com/spf13/cobra"
)

func studiesCommand() *cobra.Command {
	f := &inputFlags{}
	cmd := &cobra.Command{
		Use:     "studies --db FILE",
		Short:   "List the studies of a storage",
		Long:    "studies lists a storage's studies: name, directions, trials by state, first and last activity.",
		Example: "  postmortem studies --db optuna.db",
		RunE: func(cmd *cobra.Command, args []string) error {
			req, err := f.request(cmd, args)
			if err != nil {
				return err
			}
			if len(args)+len(req.Databases) == 0 {
				return errors.New("give a storage with --db")
			}
			req.AllowEmpty = true
			tl, err := ingest.Read(cmd.Context(), req)
			if err != nil {
				return err
			}
			d := report.Document{Findings: analyze.Run(tl, req.Catalogue), Catalogue: req.Catalogue, Version: version()}
			return report.Studies(cmd.OutOrStdout(), d)
		},
	}
	f.add(cmd)
	return cmd
}
