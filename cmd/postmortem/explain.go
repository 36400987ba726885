package main

import (
	"errors"
	"fmt"
	"os"

	"postmortem/analyze"
	"postmortem/ingest"
	"postmortem/ingest/failure"
	"postmortem/report"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

type explainFlags struct {
	class      string
	classes    string
	exitStatus int
	kernelLogs []string
	format     string
	tz         string
	color      string
}

func explainCommand() *cobra.Command {
	f := &explainFlags{}
	cmd := &cobra.Command{
		Use:   "explain [FILE…|-]",
		Short: "Name the failure in a log or a pasted message",
		Long: `explain reads each FILE by itself and says how the process that wrote it ended, of what, at which line,
what to change and how to see that it helped. "-", or no FILE, reads standard input: a pasted message of one
line is enough. A file that holds several runs is judged by the last.

What a log cannot know can be given: --exit-status (137 is a kill, whoever sent it) and --kernel-log (dmesg,
which knows the sender).

With --format json it prints one object a line, one line a file, in the order given.`,
		Example: `  postmortem explain worker3.log
  postmortem explain --exit-status 137 --kernel-log dmesg.log train.log
  postmortem explain --format json runs/*/train.log
  postmortem explain --class cuda/device-side-assert`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.class, "class", "", "explain this class of the catalogue instead of a file")
	fs.StringVar(&f.classes, "classes", "", "TOML file with classes of your own, asked before the built-in ones")
	fs.IntVar(&f.exitStatus, "exit-status", 0, "exit status of the process, as a shell (137) or Python (-9) gives it")
	fs.StringArrayVar(&f.kernelLogs, "kernel-log", nil, "dmesg or journalctl -k output, a file or a pattern")
	fs.StringVar(&f.format, "format", "text", "text or json")
	fs.StringVar(&f.tz, "tz", "", "zone of times that have none, e.g. Asia/Seoul (default: UTC)")
	fs.StringVar(&f.color, "color", "auto", "auto, always or never: colour in the text form; auto is on a terminal unless NO_COLOR is set")
	return cmd
}

func (f *explainFlags) run(cmd *cobra.Command, args []string) error {
	if f.format != "text" && f.format != "json" {
		return fmt.Errorf("--format %q: there are text, json", f.format)
	}
	cat, err := catalogue(f.classes)
	if err != nil {
		return err
	}
	color, err := useColor(cmd, f.color)
	if err != nil {
		return err
	}
	terminal, err := report.NewTerminal(cmd.OutOrStdout(), cat, color)
	if err != nil {
		return err
	}
	if f.class != "" {
		return writeClass(terminal, cat, f.class)
	}
	req := ingest.LogRequest{KernelLogs: f.kernelLogs, Stdin: cmd.InOrStdin(), Catalogue: cat}
	if req.Zone, err = zone(f.tz); err != nil {
		return err
	}
	if cmd.Flags().Changed("exit-status") {
		req.ExitStatus = &f.exitStatus
	}
	if len(args) == 0 {
		args = []string{"-"}
		if in, ok := cmd.InOrStdin().(*os.File); ok && term.IsTerminal(int(in.Fd())) {
			fmt.Fprintln(cmd.ErrOrStderr(), "reading standard input: paste the message, then press Ctrl-D (Ctrl-Z on Windows)")
		}
	}
	var errs []error
	for _, path := range args {
		req.Path = path
		tl, err := ingest.ReadLog(cmd.Context(), req)
		if err != nil { // the others are explained all the same
			errs = append(errs, err)
			continue
		}
		x := analyze.Explain(tl, cat)
		if f.format == "json" {
			err = report.ExplainJSON(cmd.OutOrStdout(), x)
		} else {
			err = terminal.Explain(x)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// catalogue is the built-in one, with a user's classes before it when there are any.
func catalogue(path string) (*failure.Catalogue, error) {
	if path == "" {
		return failure.Default(), nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--classes %w", err)
	}
	return failure.Default().With(path, data)
}
