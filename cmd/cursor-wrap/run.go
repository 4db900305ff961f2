package main

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"cursor-wrap/internal/journal"
	"cursor-wrap/internal/process"
	"cursor-wrap/internal/supervise"
)

// markerEnv marks the agent's tree as ours: "carries our run's id" is a hint
// for people and for cleaning up, never a licence to kill.
const markerEnv = envPrefix + "RUN"

// newRun makes a run of the root command and adds its explicit form, so that a
// prompt may be the name of a subcommand.
func newRun(root *cobra.Command, std stdio, code *int, e *early) {
	o := &options{}
	o.register(root.Flags())
	root.RunE = func(c *cobra.Command, args []string) error {
		prompts, extra := args, []string(nil)
		if n := c.ArgsLenAtDash(); n >= 0 {
			prompts, extra = args[:n], args[n:]
		}
		if err := fromEnv(c.Flags(), os.LookupEnv); err != nil {
			return err
		}
		var err error
		*code, err = o.run(prompts, extra, std, e)
		return err
	}
	explicit := &cobra.Command{
		Use:     "run [flags] [prompt] [-- agent-flags...]",
		Short:   "Run the agent on one prompt (what happens without a subcommand, too)",
		Example: rootExample,
		Args:    cobra.ArbitraryArgs,
		RunE:    root.RunE,
	}
	explicit.Flags().SortFlags = false
	explicit.Flags().AddFlagSet(root.Flags())
	root.AddCommand(explicit)
}

// run is one run: a prompt, or a conversation. An error means that no agent was
// started because the call was wrong; everything else is told by the exit code.
func (o *options) run(prompts, extra []string, std stdio, e *early) (int, error) {
	if err := o.check(); err != nil {
		return 0, err
	}
	first, err := o.firstPrompt(prompts, std.in)
	if err != nil {
		return 0, err
	}
	j := &job{options: o, std: std, now: supervise.NewClock(), id: e.id, early: e, extra: extra, stop: stopSignals()}
	j.began = j.now()
	if !o.print {
		if err := j.greet(); err != nil {
			return 0, err
		}
		defer j.leave()
	}
	o.fill(j.person != nil)
	j.con = newConsole(j.errWriter())
	if term.IsTerminal(int(std.err.Fd())) {
		j.con.columns, j.con.ascii = func() int { return int(terminalSize(std.err).Cols) }, !utf8Locale(os.Getenv)
	}
	defer j.con.close()
	if j.log, err = o.openLog(j.began, j.con); err != nil {
		return 0, usagef("make it writable, or choose another folder with --log-dir", "%v", err)
	}
	return j.run(first), nil
}

// firstPrompt is the prompt of the call; a conversation may have none.
func (o *options) firstPrompt(prompts []string, stdin *os.File) (string, error) {
	if !o.print && len(prompts) == 0 {
		return "", nil
	}
	prompt, err := readPrompt(prompts, stdin)
	return string(prompt), err
}

// fill chooses what was left open: a person reads text, and tools that ask
// have somebody to ask.
func (o *options) fill(person bool) {
	if o.outputFormat == "" {
		o.outputFormat = "stream-json"
		if !o.print {
			o.outputFormat = "text"
		}
	}
	if o.stderr == "" {
		o.stderr = string(process.StderrPipe)
		if person {
			o.stderr = string(process.StderrPTY)
		}
	}
	if o.restarts < 0 {
		o.restarts, o.untouched = 0, false
		if !o.print {
			o.restarts, o.untouched = defaultRestarts, true
		}
	}
}

// defaultRestarts is how often a turn of a conversation is tried again that
// hung before any tool had acted.
const defaultRestarts = 3

func (o *options) openLog(start time.Time, con *console) (*journal.Log, error) {
	if err := o.chooseLogDir(); err != nil {
		return nil, err
	}
	level, err := o.level()
	if err != nil {
		return nil, err
	}
	return journal.Open(journal.Options{
		Dir: o.logDir, Start: start, Sync: journal.Sync(o.logSync), Level: level, Warn: con.say,
	})
}

// chooseLogDir is where the logs are: as it was said, in the environment too,
// because that is where a run has put them.
func (o *options) chooseLogDir() error {
	if o.logDir = cmp.Or(o.logDir, os.Getenv(envName("log-dir"))); o.logDir != "" {
		return nil
	}
	dir, err := stateIn(o.stateDir)
	o.logDir = filepath.Join(dir, "logs")
	return err
}

func newRunID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails, crypto/rand says
	return hex.EncodeToString(b[:])
}
