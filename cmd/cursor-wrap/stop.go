package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"cursor-wrap/internal/tmux"
)

// newStop is the subcommand that ends a session.
func newStop(stdio, *int, *early) *cobra.Command {
	p := &place{}
	var now bool
	var most time.Duration
	c := &cobra.Command{
		Use:   "stop NAME",
		Short: "End the run in a tmux session that start made, and close the session",
		Long: `stop tells the run to end, as SIGTERM does, waits until it has torn its tree
down, and closes the session with all that is in it. It prints the exit code of
the run. A session that start has not made it leaves alone.`,
		Args:              oneName,
		ValidArgsFunction: p.complete,
		RunE: func(c *cobra.Command, args []string) error {
			if err := p.resolve(c.Flags()); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(context.Background(), most)
			defer cancel()
			if err := p.stop(ctx, args[0], now, c.OutOrStdout()); err != nil {
				return fmt.Errorf("stop %s: %w", args[0], err)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&now, "now", false, "leave the polite step of the teardown out")
	duration(c.Flags(), &most, "timeout", 2*time.Minute, "how long the run may take to end")
	p.register(c.Flags())
	return c
}

func (p *place) stop(ctx context.Context, name string, now bool, out io.Writer) error {
	r, err := p.record(ctx, name)
	if err != nil {
		return err
	}
	done, err := tmux.Stop(ctx, r, now)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w; try again, or with --now or a longer --timeout", err)
	}
	if err != nil {
		return err
	}
	if p.asJSON {
		return json.NewEncoder(out).Encode(done)
	}
	exit := "exit code unknown"
	if done.Exit != nil {
		exit = fmt.Sprintf("exit code %d", *done.Exit)
	}
	switch {
	case done.Ran:
		fmt.Fprintf(out, "%s is stopped, %s\n", name, exit)
	case done.Closed:
		fmt.Fprintf(out, "%s was closed before, %s\n", name, exit)
	default:
		fmt.Fprintf(out, "%s had ended before, %s; its session is closed\n", name, exit)
	}
	return nil
}

// record is what is known of a session that start made, even if the wrapper has
// not begun there.
func (p *place) record(ctx context.Context, name string) (tmux.Record, error) {
	r, err := tmux.Find(p.dir, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	all, err := tmux.New(p.socket).Sessions(ctx)
	if err != nil {
		return r, err
	}
	folder := tmux.Folder(p.dir, name)
	if session := tmux.In(all, folder); session != nil {
		return tmux.Record{Name: name, Socket: session.Socket, Folder: folder}, nil
	}
	if tmux.Named(all, name) != nil {
		return r, fmt.Errorf("tmux has a session of that name that start has not made; tmux kill-session -t %s would end it", pasted("="+name))
	}
	return r, p.unknown()
}
