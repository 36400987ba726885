package main

import (
	"errors"
	"fmt"
	"strings"

	"postmortem/analyze"
	"postmortem/ingest"
	"postmortem/report"

	"github.com/spf13/cobra"
)

func riskCommand() *cobra.Command {
	in := &inputFlags{}
	var params []string
	format := "text"
	cmd := &cobra.Command{
		Use:   "risk [PATH…] -p NAME=VALUE…",
		Short: "Say how likely a trial with given hyperparameters is to die",
		Long: `risk weighs proposed hyperparameters by what a study's trials died of: by the rules that the report finds,
and where none applies, by the rate of all trials outside of the known regions. Hyperparameters that are not given stay
open: the chance is then that of the trials that agree in the others.

Inputs are those of postmortem report; the more logs, the better the causes are known.`,
		Example: `  postmortem risk --db optuna.db -p train.batch_size=64 -p model.name=bert-large-uncased
  postmortem risk nightly/ --study criteria -p train.loss=focal --format json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			req, err := in.request(cmd, args)
			if err != nil {
				return err
			}
			if len(args)+len(req.Databases) == 0 {
				return errors.New("give a run folder, or a storage with --db")
			}
			values, err := proposal(params)
			if err != nil {
				return err
			}
			write, err := riskWriter(format)
			if err != nil {
				return err
			}
			tl, err := ingest.Read(cmd.Context(), req)
			if err != nil {
				return err
			}
			if len(tl.Studies) != 1 {
				return fmt.Errorf("there are %d studies: name one with --study", len(tl.Studies))
			}
			risk, err := analyze.Propose(tl, req.Catalogue, tl.Studies[0].Name, values)
			if err != nil {
				return err
			}
			return write(cmd.OutOrStdout(), risk, req.Catalogue)
		},
	}
	in.add(cmd)
	in.addLogs(cmd)
	cmd.Flags().StringArrayVarP(&params, "param", "p", nil, "a hyperparameter and its value, NAME=VALUE; may be repeated")
	cmd.Flags().StringVar(&format, "format", format, "text or json")
	return cmd
}

// proposal reads NAME=VALUE pairs.
func proposal(params []string) (map[string]string, error) {
	out := map[string]string{}
	for _, p := range params {
		name, v, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("-p %s: write NAME=VALUE", p)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("-p %s is given twice", name)
		}
		out[name] = v
	}
	if len(out) == 0 {
		return nil, errors.New("give at least one hyperparameter with -p NAME=VALUE")
	}
	return out, nil
}

func riskWriter(format string) (report.RiskWriter, error) {
	switch format {
	case "text":
		return report.RiskText, nil
	case "json":
		return report.RiskJSON, nil
	}
	return nil, fmt.Errorf("--format %q: there are text, json", format)
}
