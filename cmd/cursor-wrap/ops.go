package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cursor-wrap/internal/registry"
)

// askTime is how long a run is waited for that is asked something.
const askTime = 5 * time.Second

// ops is what the subcommands about runs that live have in common.
type ops struct {
	options
	std    stdio
	code   *int
	asJSON bool
	all    bool // those that are over, too
	panes  panes
	named  []row // sessions of tmux that were asked for by name
}

// command makes a subcommand of runs that live. It completes their ids.
func (o *ops) command(c *cobra.Command) *cobra.Command {
	c.Flags().SortFlags = false
	o.registerFolders(c.Flags())
	c.Flags().BoolVar(&o.asJSON, "json", false, "as JSON")
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := fromEnv(c.Flags(), os.LookupEnv); err != nil {
			return err
		}
		return run(c, args)
	}
	if c.ValidArgsFunction == nil {
		c.ValidArgsFunction = o.complete
	}
	return c
}

// ids wants at least one id, and at most that many.
func ids(most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return usagef("cursor-wrap ps lists them", "%s wants the id of a run", c.CommandPath())
		case len(args) > most:
			return usagef("name it alone", "%s takes one id, not %d", c.CommandPath(), len(args))
		}
		return nil
	}
}

// many is no limit to the ids that a subcommand takes.
const many = 1 << 20

func (o *ops) dir() (string, error) {
	dir, err := stateIn(o.stateDir)
	if err != nil {
		return "", usagef("name the folder with --state-dir", "%v", err)
	}
	return dir, nil
}

// find is the run with that id, if it lives.
func (o *ops) find(id string) (registry.Entry, error) {
	dir, err := o.dir()
	if err != nil {
		return registry.Entry{}, err
	}
	e, err := registry.Find(dir, id)
	if unknown, ok := errors.AsType[*registry.UnknownError](err); ok && unknown.Dead == nil {
		err = fmt.Errorf("%w, cursor-wrap logs those that are over", err)
	}
	return e, err
}

// each does something with every named run, and tells all that went wrong.
func (o *ops) each(names []string, do func(registry.Entry) error) error {
	var failed []error
	for _, name := range names {
		e, err := o.find(name)
		if err == nil {
			err = do(e)
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return joined(failed)
}

// joined is one error of many, in one line each; the first one's kind stands.
func joined(failed []error) error {
	failed = slices.DeleteFunc(failed, func(err error) bool { return err == nil })
	if len(failed) < 2 {
		return errors.Join(failed...)
	}
	lines := make([]string, len(failed))
	for i, err := range failed {
		lines[i] = err.Error()
	}
	return errors.New(strings.Join(lines, "\ncursor-wrap: "))
}

// complete offers the ids of the runs that live, each with what it is.
func (o *ops) complete(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	dir, err := o.dir()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	live, _ := registry.List(dir) // none are none
	var offers []string
	for _, e := range live {
		offers = append(offers, e.RunID+"\t"+shortPath(e.Workspace)+" "+e.Prompt)
		if e.Session != "" {
			offers = append(offers, e.Session+"\tsession of "+e.RunID)
		}
	}
	return offers, cobra.ShellCompDirectiveNoFileComp
}

func asking() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), askTime)
}

// writeJSON writes a value for programs.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
