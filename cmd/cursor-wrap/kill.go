package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"cursor-wrap/internal/journal"
	"cursor-wrap/internal/process"
	"cursor-wrap/internal/registry"
	"cursor-wrap/internal/tmux"
)

// endTime is how long the end of a run is waited for that was told to end: the
// polite step, the kill, and the log.
const endTime = time.Minute

func newKill(std stdio, code *int, _ *early) *cobra.Command {
	o := &ops{std: std, code: code}
	var now bool
	c := o.command(&cobra.Command{
		Use:   "kill ID...",
		Short: "End a run and every process of its agent",
		Long: `kill ends a run as SIGTERM to its wrapper would: all processes of the agent's
tree are asked to end, and killed if they do not. It waits until they are gone
and says how the run came out; the run's own exit code is 143.

With --now nobody is waited for who does not end at once. Where the wrapper itself
does not answer, --now ends the wrapper, and its guard then ends the tree.`,
		Args: ids(many),
		RunE: func(_ *cobra.Command, args []string) error {
			return o.each(args, func(e registry.Entry) error { return o.kill(&e, now) })
		},
	})
	c.Flags().BoolVar(&now, "now", false, "wait for nobody who does not end at once")
	return c
}

// killed is what came of one.
type killed struct {
	ID string `json:"id"`
	registry.Ending
}

func (o *ops) kill(e *registry.Entry, now bool) error {
	c := registry.Dial(*e)
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	type answer struct {
		ending registry.Ending
		err    error
	}
	over := make(chan answer, 1)
	go func() { // before it is told, or it may be gone
		ending, err := c.Wait(ctx)
		over <- answer{ending, err}
	}()
	ask, done := asking()
	defer done()
	if err := c.Kill(ask, now); err != nil {
		if !now || errors.Is(err, fs.ErrPermission) {
			return advised(err, "cursor-wrap kill --now ends a wrapper that does not answer")
		}
		return o.force(ctx, e)
	}
	a := <-over
	if a.err == nil {
		return o.tellKilled(e.RunID, a.ending)
	}
	// Nobody could say how it came out: too many asked, or the wrapper was killed.
	if err := o.gone(ctx, e); err != nil {
		return err
	}
	return o.over(cmp.Or(e.Log, e.RunID), fmt.Errorf("run %s has ended, and nobody knows how: %w", e.RunID, a.err))
}

// gone waits until the wrapper has ended.
func (o *ops) gone(ctx context.Context, e *registry.Entry) error {
	for process.Alive(e.PID, e.Start) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("run %s was told to end and has not; cursor-wrap kill --now waits for nobody", e.RunID)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

func advised(err error, try string) error {
	if errors.Is(err, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("%w; %s", err, try)
}

func (o *ops) tellKilled(id string, ending registry.Ending) error {
	if o.asJSON {
		return writeJSON(o.std.out, killed{id, ending})
	}
	_, err := fmt.Fprintf(o.std.out, "%s: %s\n", id, ended(ending))
	return err
}

// ended is how a run came out, for a person.
func ended(e registry.Ending) string {
	s := fmt.Sprintf("%s, exit code %d", e.Outcome, e.ExitCode)
	if e.ExitCode < 0 {
		s = e.Outcome
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// force ends a wrapper that does not answer. Its guard is told by the kernel,
// and ends the tree.
func (o *ops) force(ctx context.Context, e *registry.Entry) error {
	switch uid := process.Owner(e.PID); {
	case !e.Here():
		return fmt.Errorf("run %s does not answer, and is of another pid namespace or machine; end it there", e.RunID)
	case uid >= 0 && uid != e.UID:
		return fmt.Errorf("run %s does not answer, and process %d is not its user's; it is left alone", e.RunID, e.PID)
	}
	if err := process.Signal(e.PID, e.Start, syscall.SIGKILL); err != nil {
		return fmt.Errorf("run %s does not answer, and its wrapper %d could not be killed: %w", e.RunID, e.PID, err)
	}
	for process.Alive(e.Guard.PID, e.Guard.Start) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("run %s: its wrapper is killed, but its guard %d is still at work", e.RunID, e.Guard.PID)
		case <-time.After(10 * time.Millisecond):
		}
	}
	sweepDead(o.stateDir)
	return o.tellKilled(e.RunID, registry.Ending{Outcome: "killed", ExitCode: -1, Message: "its wrapper did not answer and was killed" + byGuard(e)})
}

// byGuard says who has ended the tree, if there was one.
func byGuard(e *registry.Entry) string {
	if e.Guard.PID == 0 {
		return ""
	}
	return "; its guard has ended the tree"
}

func newPause(std stdio, code *int, _ *early) *cobra.Command {
	o := &ops{std: std, code: code}
	return o.command(&cobra.Command{
		Use:   "pause ID...",
		Short: "Freeze an agent and its processes; the time counts for no deadline",
		Args:  ids(many),
		RunE: func(_ *cobra.Command, args []string) error {
			return o.each(args, func(e registry.Entry) error {
				return o.tellState(&e, "paused", registry.Dial(e).Pause)
			})
		},
	})
}

func newUnpause(std stdio, code *int, _ *early) *cobra.Command {
	o := &ops{std: std, code: code}
	return o.command(&cobra.Command{
		Use:   "unpause ID...",
		Short: "Let a paused agent go on",
		Args:  ids(many),
		RunE: func(_ *cobra.Command, args []string) error {
			return o.each(args, func(e registry.Entry) error {
				return o.tellState(&e, "goes on", registry.Dial(e).Unpause)
			})
		},
	})
}

func (o *ops) tellState(e *registry.Entry, what string, do func(context.Context) error) error {
	ctx, cancel := asking()
	defer cancel()
	if err := do(ctx); err != nil {
		return err
	}
	if o.asJSON {
		return writeJSON(o.std.out, map[string]any{"id": e.RunID, "paused": what == "paused"})
	}
	_, err := fmt.Fprintf(o.std.out, "%s: %s\n", e.RunID, what)
	return err
}

func newWait(std stdio, code *int, _ *early) *cobra.Command {
	o := &ops{std: std, code: code}
	var timeout time.Duration
	c := o.command(&cobra.Command{
		Use:   "wait ID",
		Short: "Wait until a run is over, and exit as it did",
		Args:  ids(1),
		RunE: func(_ *cobra.Command, args []string) error {
			e, err := o.find(args[0])
			if err != nil {
				return o.over(args[0], err)
			}
			ctx, cancel := context.Background(), context.CancelFunc(func() {})
			if timeout > 0 {
				ctx, cancel = context.WithTimeout(ctx, timeout)
			}
			defer cancel()
			return o.wait(ctx, &e)
		},
	})
	duration(c.Flags(), &timeout, "timeout", 0, "give up after that long; 0 is never")
	return c
}

// wait waits, and makes the run's exit code ours.
func (o *ops) wait(ctx context.Context, e *registry.Entry) error {
	ending, err := registry.Dial(*e).Wait(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("run %s is not over", e.RunID)
	case err != nil: // it may have ended before we asked
		return o.over(cmp.Or(e.Log, e.RunID), fmt.Errorf("run %s: %w; its log is %s", e.RunID, err, e.Log))
	}
	*o.code = ending.ExitCode
	return o.tellKilled(e.RunID, ending)
}

// over tells of a run that is over already, as far as its log knows; otherwise
// the error stands.
func (o *ops) over(id string, otherwise error) error {
	if dir, err := o.dir(); err == nil {
		if r, err := tmux.Find(dir, id); err == nil && r.Exit != nil {
			*o.code = *r.Exit
			_, err := fmt.Fprintf(o.std.out, "%s: exit code %d\n", id, *r.Exit)
			return err
		}
	}
	i, err := o.findLog(id)
	if _, ambiguous := errors.AsType[*journal.AmbiguousError](err); ambiguous {
		return err
	}
	if err != nil || i.End == nil {
		return otherwise
	}
	*o.code = i.End.ExitCode
	return o.tellKilled(i.RunID(), registry.Ending{Outcome: i.End.Outcome, ExitCode: i.End.ExitCode, Message: i.End.Message})
}
