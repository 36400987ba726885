package main

import (
	"fmt"
	"strings"

	"postmortem/ingest/failure"
	"postmortem/report"

	"github.com/spf13/cobra"
)

func classesCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "classes [ID]",
		Short: "List the failure catalogue, or tell all of one class",
		Long: `classes lists the failure classes that reports name. With an ID it tells all of one: what it means, the
texts that name it, what causes it, what to do, how to see that it helped, and what each advice rests on.

--classes FILE adds classes of your own (TOML, the form of ingest/failure/catalogue.toml).`,
		Example: `  postmortem classes
  postmortem classes cuda/out-of-memory`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cat, err := catalogue(file)
			if err != nil {
				return err
			}
			terminal, err := report.NewTerminal(cmd.OutOrStdout(), cat, false)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return terminal.Classes()
			}
			return writeClass(terminal, cat, args[0])
		},
	}
	cmd.Flags().StringVar(&file, "classes", "", "TOML file with classes of your own, asked before the built-in ones")
	return cmd
}

// writeClass tells all of one class; for an id that is none it names those that are near.
func writeClass(terminal *report.Terminal, cat *failure.Catalogue, id string) error {
	if cl := cat.Class(id); cl.ID == id {
		return terminal.Class(cl)
	}
	var near []string
	_, name, _ := strings.Cut(id, "/")
	for _, cl := range cat.Classes {
		if strings.Contains(cl.ID, id) || name != "" && strings.HasSuffix(cl.ID, "/"+name) {
			near = append(near, cl.ID)
		}
	}
	if len(near) > 0 {
		return fmt.Errorf("no class %q; there is %s", id, strings.Join(near, ", "))
	}
	return fmt.Errorf("no class %q; postmortem classes lists them", id)
}
