package main

import (
	"fmt"
	"time"
	_ "time/tzdata" // --tz must work on machines without a zone database

	"postmortem/ingest"

	"github.com/spf13/cobra"
)

// inputFlags are the flags that say what to read.
type inputFlags struct {
	req     ingest.Request
	tz      string
	classes string
}

func (f *inputFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringArrayVar(&f.req.Databases, "db", nil, "Optuna storage: an SQLite file or sqlite:///FILE")
	fs.StringArrayVar(&f.req.Studies, "study", nil, "only this study (default: every study in the storage)")
	f.addTime(cmd)
}

// addTime adds the flag that places times.
func (f *inputFlags) addTime(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.tz, "tz", "", "zone of times that have none, e.g. Asia/Seoul (default: told from heartbeats and logs, else UTC)")
}

func (f *inputFlags) addLogs(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringArrayVar(&f.req.Logs, "log", nil, "training logs, a file or a pattern such as 'worker*.log'")
	fs.StringArrayVar(&f.req.GPUs, "gpu", nil, "nvidia-smi --query-gpu or --query-compute-apps CSV, a file or a pattern")
	fs.StringVar(&f.classes, "classes", "", "TOML file with failure classes of your own, asked before the built-in ones")
	fs.StringArrayVar(&f.req.KernelLogs, "kernel-log", nil, "dmesg or journalctl -k output, a file or a pattern")
}

// request completes what the flags said.
func (f *inputFlags) request(cmd *cobra.Command, paths []string) (ingest.Request, error) {
	req := f.req
	req.Paths = paths
	req.Stdin = cmd.InOrStdin()
	var err error
	if req.Catalogue, err = catalogue(f.classes); err != nil {
		return req, err
	}
	req.Zone, err = zone(f.tz)
	return req, err
}

// zone reads --tz; nil when it was not given.
func zone(name string) (*time.Location, error) {
	if name == "" {
		return nil, nil
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("--tz %q: no such zone; give an IANA name such as Europe/Berlin", name)
	}
	return loc, nil
}
