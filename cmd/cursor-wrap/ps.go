package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"cursor-wrap/internal/journal"
	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/registry"
	"cursor-wrap/internal/supervise"
	"cursor-wrap/internal/tree"
)

// row is a line of ps.
type row struct {
	ID     string         `json:"id"`
	Status registry.State `json:"status"`
	Why    string         `json:"why,omitempty"`       // the status, where it needs words
	Exit   *int           `json:"exit_code,omitempty"` // of what is over, where it is known
	Error  string         `json:"error,omitempty"`

	Session  string         `json:"session_id"`
	Phase    string         `json:"phase"`
	Paused   bool           `json:"paused"`
	Held     bool           `json:"held"`    // nobody reads its stdout, or its log's disk stands still
	Stopped  bool           `json:"stopped"` // the agent, or who runs its calls, by a signal
	Calls    []monitor.Call `json:"open_calls"`
	Behind   []monitor.Call `json:"background"`
	Silence  monitor.Span   `json:"silence_ms"`
	Limit    monitor.Span   `json:"limit_ms"`
	Deadline monitor.Millis `json:"deadline"` // 0: there is none
	Left     monitor.Span   `json:"left_ms"`  // until the deadline; negative past it

	Processes int            `json:"processes"`
	Percent   float64        `json:"cpu_percent"`
	CPU       monitor.Span   `json:"cpu_ms"`
	Memory    int64          `json:"memory_bytes"`
	Workspace string         `json:"workspace"`
	Started   monitor.Millis `json:"started"`
	Age       monitor.Span   `json:"age_ms"`
	PID       int            `json:"pid"`
	Log       string         `json:"log"`
	Tmux      string         `json:"tmux,omitempty"`
}

func newPS(std stdio, code *int, _ *early) *cobra.Command {
	o := &ops{std: std, code: code}
	var watch bool
	var every = 2 * time.Second
	c := o.command(&cobra.Command{
		Use:   "ps [ID...]",
		Short: "List the agents that run, with what each waits for",
		Long: `ps lists the runs of this user that live: what each is doing, for how long its
open call has been under way and how long it declared to take, for how long
nothing has come from it, and how much is left until that is judged a hang.

The status is working where something came from the agent a moment ago or its
processes are at work, and idle where not: it waits for a prompt, for the model,
for a tool, is paused, or hangs.

Sessions of tmux are told in the same words. A session that is closed, or whose
shell is dead, has failed. One whose shell has no child is completed, or failed
where its exit status is known and not 0. With children it is working where its
screen has changed since the last look, and idle where not.`,
		Example: `  cursor-wrap ps
  cursor-wrap ps --watch
  cursor-wrap ps --json | jq -r '.[] | select(.left_ms < 0) | .id'`,
		RunE: func(_ *cobra.Command, args []string) error {
			if watch {
				return o.watch(args, every)
			}
			return o.list(std.out, args, screenOf(std.out))
		},
	})
	c.Flags().BoolVarP(&o.all, "all", "a", false, "those that are over, too, the newest last")
	c.Flags().BoolVar(&o.panes.every, "tmux", false, "all sessions of the tmux server, too, and not only those of start")
	c.Flags().StringVar(&o.panes.socket, "tmux-socket", "", "path or name of that server's socket (default that of tmux)")
	c.Flags().BoolVar(&o.panes.captureExit, "capture-exit", false, "ask the shell of a pane for the exit status of what a person ran there; types into that shell")
	c.Flags().BoolVarP(&watch, "watch", "w", false, "repaint until interrupted")
	duration(c.Flags(), &every, "interval", every, "between two repaints")
	return c
}

// list writes what there is.
func (o *ops) list(w io.Writer, names []string, s screen) error {
	rows, err := o.rows(names)
	if err != nil && rows == nil {
		return err
	}
	if o.asJSON {
		return cmp.Or(writeJSON(w, rows), err)
	}
	if len(rows) == 0 {
		fmt.Fprintln(w, "no agent runs")
		return err
	}
	cells := make([][]string, len(rows))
	for i := range rows {
		cells[i] = rows[i].cells()
	}
	writeTable(w, s, psColumns, cells)
	return err
}

var psColumns = []column{
	{title: "ID", gives: 6, plain: true}, {title: "STATUS"}, {title: "SESSION", gives: 8, plain: true, drop: 1}, {title: "PHASE"}, {title: "OPEN CALL", gives: 24},
	{title: "SILENT", right: true}, {title: "LEFT", right: true}, {title: "PROCS", right: true, drop: 4}, {title: "CPU", right: true, drop: 5},
	{title: "MEM", right: true, drop: 3}, {title: "AGE", right: true, drop: 2}, {title: "WORKSPACE", gives: 9, drop: 6},
}

// sessionShown is how much of a session's id is enough to tell it.
const sessionShown = 8

func (r *row) cells() []string {
	silent, left := blank, blank
	if r.Limit > 0 {
		silent = ticked(r.Silence)
	}
	if !r.Deadline.IsZero() {
		left = ticked(r.Left)
	}
	phase := r.Phase
	switch {
	case r.Paused:
		phase = "paused"
	case r.Held:
		phase = "held"
	case r.Stopped:
		phase = "stopped"
	}
	procs := blank
	if r.Processes >= 0 {
		procs = fmt.Sprint(r.Processes)
	}
	session := r.Session
	if len(session) > sessionShown {
		session = session[:sessionShown]
	}
	return []string{
		cmp.Or(r.Tmux, r.ID), string(r.Status), cmp.Or(session, blank), cmp.Or(phase, blank), cmp.Or(r.Error, r.call(), r.Why, blank),
		silent, left, procs, percentOf(r.Percent), bytesOf(r.Memory), ticked(r.Age), cmp.Or(shortPath(r.Workspace), blank),
	}
}

// call is the first open call, or piece of background work, with how long it has
// been under way.
func (r *row) call() string {
	calls := r.Calls
	if len(calls) == 0 {
		calls = r.Behind
	}
	if len(calls) == 0 {
		return ""
	}
	c := &calls[0]
	s := ticked(c.Elapsed)
	if c.Declared > 0 {
		s += "/" + allowed(c.Declared)
	}
	s += " " + cmp.Or(c.Argument, c.Tool)
	if more := len(calls) - 1; more > 0 {
		s = fmt.Sprintf("%s (+%d)", s, more)
	}
	return s
}

// rows asks all runs at once. One that does not answer is a row that says so.
func (o *ops) rows(names []string) ([]row, error) {
	entries, err := o.entries(names)
	if err != nil && entries == nil {
		return nil, err
	}
	past, lost := o.past(names)
	ctx, cancel := asking()
	defer cancel()
	rows := make([]row, len(entries)) // none are an empty list, for whoever reads it as JSON
	var all sync.WaitGroup
	for i := range entries {
		all.Go(func() { rows[i] = o.row(ctx, &entries[i]) })
	}
	all.Wait()
	slices.SortStableFunc(rows, func(a, b row) int { return a.Started.Compare(b.Started.Time) })
	rows = slices.DeleteFunc(rows, func(r row) bool { return r.ID == "" })
	var unseen error
	if len(names) == 0 {
		rows, unseen = o.withPanes(ctx, rows)
	} else {
		rows = append(rows, o.named...)
	}
	return append(append([]row{}, past...), rows...), errors.Join(err, lost, unseen)
}

// past are the runs that are over, as far as they are wanted.
func (o *ops) past(names []string) ([]row, error) {
	if !o.all || len(names) > 0 {
		return nil, nil
	}
	if err := o.chooseLogDir(); err != nil {
		return nil, usagef("name the folder with --log-dir", "%v", err)
	}
	logs, err := journal.List(o.logDir)
	logs = slices.DeleteFunc(logs, func(i journal.Info) bool { return i.Live })
	if !o.asJSON && len(logs) > lastLogs {
		logs = logs[len(logs)-lastLogs:]
	}
	rows := make([]row, len(logs))
	for n := range logs {
		rows[n] = pastRow(&logs[n])
	}
	return rows, err
}

// pastRow is a run that is over.
func pastRow(i *journal.Info) row {
	r := row{
		ID: cmp.Or(i.RunID(), filepath.Base(i.Path)), Status: registry.Failed, Why: i.Outcome(), Session: i.Session, Phase: "over", Calls: []monitor.Call{}, Behind: []monitor.Call{},
		Percent: tree.Unknown, CPU: tree.Unknown, Memory: tree.Unknown, Processes: 0,
		Workspace: i.Workspace(), Started: monitor.Millis{Time: i.Start}, Age: monitor.Span(time.Since(i.Start)), Log: i.Path,
	}
	if e := i.End; e != nil {
		if e.Outcome == string(supervise.Success) {
			r.Status = registry.Completed
		}
		r.Why, r.Exit = ended(registry.Ending{Outcome: e.Outcome, ExitCode: e.ExitCode, Message: e.Message}), &e.ExitCode
	}
	return r
}

// entries are the named runs, or all of them.
func (o *ops) entries(names []string) ([]registry.Entry, error) {
	dir, err := o.dir()
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		dead, err := registry.Sweep(dir)
		if err != nil {
			return nil, err
		}
		flagDead(dead)
		live, err := registry.List(dir)
		return append([]registry.Entry{}, live...), err
	}
	found, failed := []registry.Entry{}, []error(nil)
	ctx, cancel := asking()
	defer cancel()
	o.named = nil
	for _, name := range names {
		e, err := o.find(name)
		if err == nil {
			found = append(found, e)
		} else if r, ok := o.pane(ctx, dir, name); ok {
			o.named = append(o.named, r)
		} else {
			failed = append(failed, err)
		}
	}
	return found, joined(failed)
}

// row is what a run says of itself. One that ended meanwhile has no id.
func (o *ops) row(ctx context.Context, e *registry.Entry) row {
	r := row{
		ID: e.RunID, Status: registry.Idle, Session: e.Session, Phase: "", Calls: []monitor.Call{}, Behind: []monitor.Call{},
		Processes: tree.Unknown, Percent: tree.Unknown, CPU: tree.Unknown, Memory: tree.Unknown,
		Workspace: e.Workspace, Started: e.At, Age: monitor.Span(time.Since(e.At.Time)), PID: e.PID, Log: e.Log, Tmux: e.Tmux,
	}
	s, err := registry.Dial(*e).Status(ctx)
	if err != nil {
		if _, gone := o.find(e.RunID); gone != nil {
			return row{}
		}
		r.Error = err.Error()
		return r
	}
	r.Status, r.Session, r.Phase, r.Paused = s.State, cmp.Or(s.Session, e.Session), s.Phase, !s.Paused.IsZero()
	r.Processes, r.Percent, r.CPU, r.Memory = s.Tree.Processes, s.Tree.Percent, s.Tree.CPU, s.Tree.Memory
	r.Log, r.Held = cmp.Or(s.Log, e.Log), !s.Held.IsZero()
	if p := s.Reason; p != nil {
		r.Calls, r.Behind, r.Silence, r.Limit, r.Deadline = p.OpenCalls, p.Background, p.Silence, p.Limit, p.Deadline
		if !p.Deadline.IsZero() {
			r.Left = monitor.Span(p.Deadline.Sub(p.At.Time))
		}
		r.Stopped = p.Evidence != nil && p.Evidence.Tree != nil && len(p.Evidence.Tree.Stopped) > 0
	}
	return r
}

// watch repaints until it is interrupted. Where stdout is no terminal, each
// picture stands below the one before.
func (o *ops) watch(names []string, every time.Duration) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	paints := term.IsTerminal(int(o.std.out.Fd()))
	tick := time.NewTicker(max(every, 100*time.Millisecond))
	defer tick.Stop()
	for {
		var b bytes.Buffer
		err := o.list(&b, names, screenOf(o.std.out))
		if err != nil {
			return err
		}
		if _, err := o.std.out.WriteString(o.painted(b.String(), paints)); err != nil {
			return err
		}
		select {
		case <-stop:
			return nil
		case <-tick.C:
		}
	}
}

// painted is a picture that takes the place of the one before: each line is
// cleared behind its end, and the screen below the last, so that nothing
// flickers.
func (o *ops) painted(text string, paints bool) string {
	if !paints || o.asJSON {
		return text + "\n"
	}
	head := fmt.Sprintf("cursor-wrap ps  %s\n\n", time.Now().Format(time.TimeOnly))
	lines := strings.Split(head+text, "\n")
	if rows := int(terminalSize(o.std.out).Rows); rows > 1 && len(lines) > rows {
		lines = lines[:rows]
	}
	return "\x1b[H" + strings.Join(lines, "\x1b[K\n") + "\x1b[J"
}
