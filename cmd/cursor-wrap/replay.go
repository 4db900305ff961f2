package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cursor-wrap/internal/journal"
	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/report"
)

// newReplay is the subcommand by which people tune thresholds: what would the
// monitor have said of this run?
func newReplay(std stdio, code *int, _ *early) *cobra.Command {
	var raw, asJSON bool
	var o options
	c := &cobra.Command{
		Use:   "replay [flags] LOG|ID",
		Short: "Run the monitor over a recorded session log, or give the agent's stdout back",
		Long: `replay feeds a session log to the same monitor that judged the run and prints
the phases, the deadlines and the verdict with their times. The thresholds are
the recorded ones; flags, and nothing else, change them.

With --raw it writes the agent's stdout back, byte for byte.`,
		Example: `  cursor-wrap replay run.jsonl
  cursor-wrap replay --idle-timeout 30s --json run.jsonl
  cursor-wrap replay --raw 0a1b2c > stream.jsonl`,
		Args: oneLog,
		RunE: func(c *cobra.Command, args []string) error {
			log, err := o.openFound(args[0], std.in)
			if err != nil {
				return err
			}
			defer log.Close()
			out := bufio.NewWriter(std.out)
			if raw {
				_, err = journal.WriteRaw(out, log)
			} else {
				err = report.Replay(log, adjustment(c.Flags()), printer(out, asJSON))
			}
			if err != nil {
				err = fmt.Errorf("replay %s: %w", args[0], err)
			}
			return errors.Join(err, out.Flush())
		},
	}
	c.ValidArgsFunction = completeLogs
	c.Flags().SortFlags = false
	c.Flags().BoolVar(&raw, "raw", false, "write the agent's stdout back instead")
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	o.registerFolders(c.Flags())
	o.registerPolicy(c.Flags())
	return c
}

// oneLog wants exactly one session log.
func oneLog(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("see "+c.CommandPath()+" --help", "%s takes one session log, not %d", c.Name(), len(args))
	}
	return nil
}

// openFound opens the one log that id names: a path, a run's id, or a session's;
// - is stdin.
func (o *options) openFound(id string, stdin *os.File) (*os.File, error) {
	if id == "-" {
		return stdin, nil
	}
	found, err := o.findLog(id)
	if err != nil {
		return nil, err
	}
	log, err := os.Open(found.Path)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return log, nil
}

// findLog is the one log that id names.
func (o *options) findLog(id string) (journal.Info, error) {
	if err := o.chooseLogDir(); err != nil {
		return journal.Info{}, usagef("name the folder with --log-dir", "%v", err)
	}
	found, err := journal.Find(o.logDir, id)
	if errors.Is(err, fs.ErrNotExist) {
		return found, fmt.Errorf("open log: %w; cursor-wrap logs lists those that there are", err)
	}
	if err != nil {
		return found, findError(err)
	}
	return found, nil
}

// adjustment sets the thresholds that were given on the command line, and
// leaves the recorded ones otherwise.
func adjustment(given *pflag.FlagSet) func(*monitor.Policy) {
	return func(p *monitor.Policy) {
		recorded := options{}
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		recorded.registerPolicy(f)
		recorded.policy = *p
		given.Visit(func(flag *pflag.Flag) {
			if f.Lookup(flag.Name) != nil {
				_ = f.Set(flag.Name, flag.Value.String()) // it was parsed once already
			}
		})
		*p = recorded.policy
	}
}

func printer(w io.Writer, asJSON bool) func(report.Moment) {
	if asJSON {
		enc := json.NewEncoder(w)
		return func(m report.Moment) { _ = enc.Encode(m) } // Flush tells a failed write
	}
	return func(m report.Moment) {
		fmt.Fprintf(w, "%12s  %-8s", "+"+m.Elapsed.String(), m.What)
		if m.What == "phase" {
			fmt.Fprintf(w, "  %s", m.Phase)
			if m.Deadline != nil {
				fmt.Fprintf(w, ", deadline %s later", monitor.Span(m.Deadline.Sub(m.At.Time)))
			}
		}
		if m.Text != "" {
			fmt.Fprintf(w, "  %s", m.Text)
		}
		fmt.Fprintln(w)
	}
}
