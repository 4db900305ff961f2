package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"cursor-wrap/internal/process"
)

// newGC is the subcommand that clears up after runs whose wrapper and guard
// were killed in the same instant. Every run does the same at its start.
func newGC(stdio, *int, *early) *cobra.Command {
	var asJSON bool
	var o options
	c := &cobra.Command{
		Use:   "gc",
		Short: "End what dead runs have left behind",
		Long: `gc ends the processes in cgroups of runs whose wrapper is dead, and removes the
cgroups. It lists, but does not end, processes that only carry a dead run's mark
in their environment: a copied environment is enough for that.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			left, _ := sweepDead(o.stateDir)
			marked := process.Marked(markerEnv)
			failed := slices.ContainsFunc(left, func(l process.Leftover) bool { return l.Error != "" })
			out := c.OutOrStdout()
			if asJSON {
				return json.NewEncoder(out).Encode(map[string]any{
					"cgroups": append([]process.Leftover{}, left...), "marked": append([]process.Proc{}, marked...),
				})
			}
			for _, l := range left {
				fmt.Fprintln(out, l)
			}
			if len(marked) > 0 {
				fmt.Fprintln(out, told(marked))
			}
			if len(left)+len(marked) == 0 {
				fmt.Fprintln(out, "nothing is left of any run")
			}
			if failed {
				return fmt.Errorf("something could not be cleared; try again as root")
			}
			return nil
		},
	}
	registerState(c.Flags(), &o.stateDir)
	c.Flags().BoolVar(&asJSON, "json", false, "as one JSON object")
	return c
}
