// Command postmortem tells what killed a training run.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"time"

	"postmortem/ingest"

	"github.com/spf13/cobra"
)

// The exit statuses, as scripts know them.
const (
	exitOK          = 0
	exitUsage       = 2
	exitInput       = 3
	exitSkipped     = 4 // with --strict, part of the input was not understood
	exitInterrupted = 130
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is main with its surroundings given.
func run(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	cmd := root()
	cmd.SetArgs(args)
	cmd.SetIn(in)
	cmd.SetOut(out)
	cmd.SetErr(errOut)
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		select { // time to remove temporary files; a read from a terminal never returns
		case <-done:
		case <-time.After(500 * time.Millisecond):
		}
		return exitInterrupted
	}
	if err == nil {
		return exitOK
	}
	status, quiet := statusOf(ctx, err)
	if !quiet {
		fmt.Fprintln(errOut, "postmortem: "+err.Error())
	}
	return status
}

// An exitError ends the program with a status.
type exitError struct {
	status int
	msg    string // "" to say nothing more
}

func (e exitError) Error() string { return e.msg }

// statusOf finds the exit status that an error calls for.
func statusOf(ctx context.Context, err error) (status int, quiet bool) {
	var ex exitError
	var in *ingest.InputError
	switch {
	case ctx.Err() != nil:
		return exitInterrupted, true
	case errors.As(err, &ex):
		return ex.status, ex.msg == ""
	case errors.As(err, &in), errors.Is(err, ingest.ErrNothing):
		return exitInput, false
	}
	return exitUsage, false
}

// version is the module's version where the binary was built from one, else the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	return "devel"
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "postmortem",
		Short: "Tell what killed a training run",
		Long: `postmortem reads an Optuna storage, the workers' logs, nvidia-smi dumps and the kernel log,
puts them on one time axis and reports how many trials were lost and to what.

  postmortem report RUNFOLDER -o report.html
  postmortem report --study criteria --db optuna.db --log 'worker*.log' --gpu nvidia_smi.csv
  postmortem explain train.log

A folder is sorted out by what its files contain. Nothing that is read is changed, and nothing is
sent anywhere.

Exit status: 0 the report is written, 2 usage error, 3 an input cannot be read or nothing in it could be
understood, 4 with --strict when part of the input was not understood, 130 interrupted.
Results go to standard output, everything else to standard error.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(reportCommand(), explainCommand(), compareCommand(), studiesCommand(), riskCommand(), classesCommand(), versionCommand())
	return cmd
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "postmortem", version())
			return err
		},
	}
}
