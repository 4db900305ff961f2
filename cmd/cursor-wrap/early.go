package main

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cursor-wrap/internal/process"
)

// early is a guard that was started before the command line was read: both
// programs come to themselves at the same time then. It is let go again where
// no run comes of it.
type early struct {
	id    string   // of the run
	args  []string // of the program
	guard *process.Prepared
}

// prepareEarly starts the guard where the arguments look like those of a run.
func prepareEarly(args []string) *early {
	e := &early{id: newRunID(), args: args}
	if likelyRun(args) {
		e.guard, _ = process.Prepare(process.Spec{Env: environ(e.id)}) // if it fails, the run's own attempt tells why
	}
	return e
}

// concerns tells whether the program may have to know the flags of a
// subcommand. There are as many as a run has, which every run would pay for.
func (e *early) concerns(subcommand string) bool {
	return len(e.args) > 0 && (e.args[0] == subcommand || e.args[0] == "help" || strings.HasPrefix(e.args[0], cobra.ShellCompRequestCmd))
}

func likelyRun(args []string) bool {
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	other := func(a string) bool {
		return a == "-h" || a == "--help" || strings.HasPrefix(a, "--containment") || strings.HasPrefix(a, "--stderr")
	}
	return (slices.Contains(args, "-p") || slices.Contains(args, "--print")) &&
		!slices.ContainsFunc(args, other) && os.Getenv(envPrefix+"CONTAINMENT") == "" && os.Getenv(envPrefix+"STDERR") == ""
}

// start starts the agent below the guard that is there, or below a new one.
func (e *early) start(s process.Spec) (*process.Agent, error) {
	if e.guard == nil {
		return process.Start(s)
	}
	guard := e.guard
	e.guard = nil
	return guard.Start(s)
}

// discard lets the guard go that no run came of.
func (e *early) discard() {
	if e.guard != nil {
		e.guard.Discard()
	}
}

// environ is the agent's environment: ours, with the mark of this run in place
// of one that we may run inside of, and without the name of the tmux session,
// which is that of this run and not of one inside of it. A key that was given to us in the
// environment reaches the agent there, and not on a command line that all can
// read.
func environ(id string) []string {
	env := slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, markerEnv+"=") || strings.HasPrefix(s, tmuxEnv+"=")
	})
	for flag, name := range secretEnv {
		if v := os.Getenv(envName(flag)); v != "" {
			env = slices.DeleteFunc(env, func(s string) bool { return strings.HasPrefix(s, name+"=") })
			env = append(env, name+"="+v)
		}
	}
	return append(env, markerEnv+"="+id)
}
