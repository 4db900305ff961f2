package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"cursor-wrap/internal/display"
	"cursor-wrap/internal/journal"
	"cursor-wrap/internal/monitor"
)

// lastLogs is how many logs a terminal shows where nobody said how many.
const lastLogs = 20

// logs is the subcommand that shows what runs there were and how they came
// out, and takes the flags off those that somebody has looked at.
type logs struct {
	options
	std     stdio
	flagged bool
	ack     bool
	all     bool
	asJSON  bool
	last    int // -1: not chosen
}

func newLogs(std stdio, _ *int, _ *early) *cobra.Command {
	l := &logs{std: std}
	c := &cobra.Command{
		Use:   "logs [flags] [ID...]",
		Short: "List the session logs and how their runs came out, flagged ones first",
		Long: `logs lists the session logs: those of runs that did not succeed and that nobody
has acknowledged first, marked with !, and the newest first among each.

An ID is a run's id, the agent's id of a session, the unique beginning of
either, or a path. "running" is a log whose run lives, "killed" one without an
end whose run does not.`,
		Example: `  cursor-wrap logs
  cursor-wrap logs --flagged
  cursor-wrap logs --ack 0a1b2c
  cursor-wrap logs --ack --all
  cursor-wrap logs --json | jq -r '.[] | select(.outcome == "hang") | .log'`,
		ValidArgsFunction: completeLogs,
		RunE:              l.run,
	}
	f := c.Flags()
	f.SortFlags = false
	f.BoolVar(&l.flagged, "flagged", false, "only those that are flagged")
	f.BoolVar(&l.ack, "ack", false, "acknowledge: take the flags off the named ones, or with --all off all of them")
	f.BoolVar(&l.all, "all", false, "all of them, however many")
	f.IntVarP(&l.last, "last", "n", -1, fmt.Sprintf("at most so many; 0 is all (default %d on a terminal, else all)", lastLogs))
	f.BoolVar(&l.asJSON, "json", false, "as a JSON array")
	l.registerFolders(f)
	return c
}

func (l *logs) run(c *cobra.Command, ids []string) error {
	if err := l.checkCall(c, ids); err != nil {
		return err
	}
	if err := l.chooseLogDir(); err != nil {
		return usagef("name the folder with --log-dir", "%v", err)
	}
	found, err := l.find(ids)
	if err != nil {
		return err
	}
	if l.ack {
		return l.acknowledge(found)
	}
	if l.flagged {
		found = slices.DeleteFunc(found, func(i journal.Info) bool { return !i.Flagged })
	}
	slices.SortStableFunc(found, flaggedFirst)
	shown := found
	if l.last > 0 && l.last < len(found) {
		shown = found[:l.last]
	}
	if l.asJSON {
		return l.writeJSON(shown)
	}
	if err := l.writeTable(shown); err != nil {
		return err
	}
	l.hint(shown, found)
	return nil
}

// checkCall refuses what contradicts itself, and chooses how many are shown.
func (l *logs) checkCall(c *cobra.Command, ids []string) error {
	const see = "see cursor-wrap logs --help"
	switch {
	case l.ack && len(ids) == 0 && !l.all:
		return usagef("name the runs, or acknowledge every flagged one with --ack --all", "logs --ack: nothing is named")
	case l.ack && len(ids) > 0 && l.all:
		return usagef("leave one of the two out", "logs --ack: %q is named, and --all is given", ids[0])
	case c.Flags().Changed("last") && l.last < 0:
		return usagef("use 0 for all", "--last %d: negative", l.last)
	case c.Flags().Changed("last") && l.all:
		return usagef(see, "--last and --all contradict each other")
	case slices.Contains(ids, ""):
		return usagef(see, "logs: an empty id")
	}
	if l.last < 0 && !l.all && !l.asJSON && len(ids) == 0 && term.IsTerminal(int(l.std.out.Fd())) {
		l.last = lastLogs
	}
	return nil
}

// find are the logs that are named, or all of the folder.
func (l *logs) find(ids []string) ([]journal.Info, error) {
	if len(ids) == 0 {
		all, err := journal.List(l.logDir)
		if err != nil {
			err = fmt.Errorf("%w; make the folder readable, or name another one with --log-dir", err)
		}
		return all, err
	}
	var found []journal.Info
	for _, id := range ids {
		some, err := journal.FindAll(l.logDir, id)
		if err != nil {
			return nil, findError(err)
		}
		for _, i := range some {
			if !slices.ContainsFunc(found, func(have journal.Info) bool { return have.Path == i.Path }) {
				found = append(found, i)
			}
		}
	}
	return found, nil
}

// findError adds to an error of journal.Find what to try next.
func findError(err error) error {
	if _, ok := errors.AsType[*journal.AmbiguousError](err); ok {
		return fmt.Errorf("%w; give more of the id", err)
	}
	if errors.Is(err, journal.ErrUnknown) {
		return fmt.Errorf("%w; see cursor-wrap logs", err)
	}
	return err
}

// acknowledge takes the flags off.
func (l *logs) acknowledge(found []journal.Info) error {
	var done []journal.Info
	var failed []error
	for _, i := range found {
		err := fs.ErrNotExist
		if i.Flagged {
			err = journal.Acknowledge(i.Path)
		}
		switch {
		case err == nil:
			i.Flagged = false
			done = append(done, i)
		case !errors.Is(err, fs.ErrNotExist):
			failed = append(failed, err)
		case !l.all:
			l.say("not flagged: " + display.Line(i.Path, " "))
		}
	}
	if l.asJSON {
		failed = append(failed, l.writeJSON(done))
	} else {
		for _, i := range done {
			fmt.Fprintf(l.std.out, "acknowledged %s, %s: %s\n", shortID(&i), outcome(&i), display.Line(i.Path, " "))
		}
		if l.all && len(found) > 0 && len(done)+len(failed) == 0 || len(found) == 0 {
			l.say("no flagged log in " + display.Line(l.logDir, " "))
		}
	}
	return errors.Join(failed...)
}

// hint says on stderr what the table does not show.
func (l *logs) hint(shown, found []journal.Info) {
	switch {
	case len(found) == 0 && l.flagged:
		l.say("no flagged log in " + display.Line(l.logDir, " "))
	case len(found) == 0:
		l.say("no session log in " + display.Line(l.logDir, " "))
	case len(shown) < len(found):
		flagged := 0
		for _, i := range found {
			if i.Flagged {
				flagged++
			}
		}
		l.say(fmt.Sprintf("%d of %s shown, %d flagged; -n 0 shows all", len(shown), plural(int64(len(found)), "log"), flagged))
	}
}

func (l *logs) say(msg string) { fmt.Fprintln(l.std.err, "cursor-wrap:", msg) }

// flaggedFirst is the order of the list.
func flaggedFirst(a, b journal.Info) int {
	switch {
	case a.Flagged && !b.Flagged:
		return -1
	case b.Flagged && !a.Flagged:
		return 1
	}
	return b.Start.Compare(a.Start)
}

// logEntry is a log in JSON. What is not known is null, or empty.
type logEntry struct {
	RunID     string         `json:"run_id"`
	Session   string         `json:"session_id"`
	Outcome   string         `json:"outcome"`
	ExitCode  *int           `json:"exit_code"`
	Message   string         `json:"message"`
	Started   monitor.Millis `json:"started"`
	Ended     monitor.Millis `json:"ended"`
	Took      *int64         `json:"took_ms"`
	Turns     *int           `json:"turns"`
	Calls     *int64         `json:"calls"`
	Restarts  *int           `json:"restarts"`
	Workspace string         `json:"workspace"`
	Dir       string         `json:"cwd"`
	Version   string         `json:"version"`
	PID       int            `json:"pid"`
	Flagged   bool           `json:"flagged"`
	Running   bool           `json:"running"`
	Size      int64          `json:"size_bytes"`
	Modified  monitor.Millis `json:"modified"`
	Log       string         `json:"log"`
	Error     string         `json:"error,omitempty"`
}

func entryOf(i *journal.Info) logEntry {
	e := logEntry{
		RunID: i.RunID(), Session: i.Session, Outcome: i.Outcome(), Started: monitor.Millis{Time: i.Start},
		Workspace: i.Workspace(), Flagged: i.Flagged, Running: i.Live,
		Size: i.Size, Modified: monitor.Millis{Time: i.Modified}, Log: i.Path,
	}
	if h := i.Head; h != nil {
		e.Dir, e.Version, e.PID = h.Dir, h.Version, h.PID
	}
	if end := i.End; end != nil {
		e.ExitCode, e.Message, e.Took = &end.ExitCode, end.Message, &end.Took
		e.Turns, e.Calls, e.Restarts = &end.Turns, &end.Counts.Calls, &end.Restarts
		e.Ended.Time = end.At
	}
	if i.Err != nil {
		e.Error = i.Err.Error()
	}
	return e
}

func (l *logs) writeJSON(list []journal.Info) error {
	all := make([]logEntry, len(list))
	for n := range list {
		all[n] = entryOf(&list[n])
	}
	enc := json.NewEncoder(l.std.out)
	enc.SetIndent("", "  ")
	return enc.Encode(all)
}

func (l *logs) writeTable(list []journal.Info) error {
	if len(list) == 0 {
		return nil
	}
	columns := 0
	if term.IsTerminal(int(l.std.out.Fd())) {
		columns = int(terminalSize(l.std.out).Cols)
	}
	_, err := io.WriteString(l.std.out, logTable(list, time.Now(), columns, !utf8Locale(os.Getenv)))
	return err
}

// completeLogs are the ids of runs that have a log, and how they came out, for
// the shell. Where a path is begun the shell completes that.
func completeLogs(c *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const most = 100
	if strings.ContainsAny(begun, "/.") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var o options
	for name, value := range map[string]*string{"log-dir": &o.logDir, "state-dir": &o.stateDir} {
		if f := c.Flags().Lookup(name); f != nil {
			*value = f.Value.String()
		}
	}
	if o.chooseLogDir() != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	all, err := journal.List(o.logDir)
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var list []cobra.Completion
	for n := len(all) - 1; n >= 0 && len(list) < most; n-- {
		i := &all[n]
		for _, id := range []string{i.RunID(), i.Session} {
			if id != "" && id == display.Line(id, " ") && strings.HasPrefix(id, begun) {
				about := fmt.Sprintf("%s, %s, %s", outcome(i), i.Start.Format("01-02 15:04"), display.Line(i.Workspace(), " "))
				list = append(list, cobra.CompletionWithDesc(id, about))
				break
			}
		}
	}
	return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
