package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"cursor-wrap/internal/display"
	"cursor-wrap/internal/events"
	"cursor-wrap/internal/format"
	"cursor-wrap/internal/journal"
	"cursor-wrap/internal/registry"
)

func newTail(std stdio, code *int, _ *early) *cobra.Command {
	o := &ops{std: std, code: code}
	var fromStart, noFollow, plain bool
	c := o.command(&cobra.Command{
		Use:   "tail ID",
		Short: "Follow what an agent says and does",
		Long: `tail follows a run until it ends: as text for a person, or with --json the records
of its session log as they are written, the agent's events and our decisions. Of a run
that is over it shows all of the log.`,
		Args: ids(1),
		RunE: func(_ *cobra.Command, args []string) error {
			stream, err := o.events(args[0], fromStart, !noFollow)
			if err != nil {
				return err
			}
			defer stream.Close()
			if o.asJSON {
				_, err = io.Copy(std.out, stream)
			} else {
				text := options{plain: plain}
				err = showText(std.out, text.textOptions(std.out, nil), stream)
			}
			return quietly(err)
		},
	})
	c.Flags().BoolVar(&fromStart, "from-start", false, "from the start of the run, and not from now on")
	c.Flags().BoolVar(&noFollow, "no-follow", false, "up to now only")
	c.Flags().BoolVar(&plain, "plain", false, "without colours, and Markdown as it was written")
	return c
}

// quietly is for a reader who has left, or who has seen enough.
func quietly(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// events are the records of a run's log, until it ends or we are interrupted.
// Of a run that is over they are all there are.
func (o *ops) events(id string, fromStart, follow bool) (io.ReadCloser, error) {
	e, err := o.find(id)
	if err != nil {
		log, unknown := o.openFound(id, o.std.in)
		if unknown != nil {
			return nil, err
		}
		return log, nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	stream, err := registry.Dial(e).Events(ctx, fromStart, follow)
	if err != nil {
		stop()
		return nil, err
	}
	return &stoppable{stream, stop}, nil
}

// stoppable ends the wait for signals with the stream.
type stoppable struct {
	io.ReadCloser
	stop func()
}

func (s *stoppable) Close() error {
	s.stop()
	return s.ReadCloser.Close()
}

// showText shows records of a log as the run itself would have shown them, and
// what was decided. A follower who came late has seen no beginning of what
// comes.
func showText(w io.Writer, o format.TextOptions, log io.Reader) error {
	t := format.NewText(w, o)
	var joined []byte
	for rec, err := range journal.Read(log) {
		if _, torn := errors.AsType[*journal.TornError](err); torn {
			continue
		}
		if err != nil {
			return err
		}
		if !rec.IsRaw() {
			if said := decided(&rec); said != "" {
				fmt.Fprintf(w, "cursor-wrap: %s\n", display.Line(said, " "))
			}
			continue
		}
		if !rec.End || len(joined) > 0 {
			if joined = append(joined, rec.Raw...); !rec.End {
				continue
			}
			rec.Raw, joined = joined, nil
		}
		ev := events.Parse(rec.Raw)
		t.Line(rec.Raw, &ev)
		if err := t.Forward(nil); err != nil {
			return err
		}
	}
	return t.Finish(nil)
}

// decided is a decision in words, if it is one that a reader of the text should
// know of.
func decided(rec *journal.Record) string {
	var f struct {
		Summary, Message, Outcome, Signal string
		Attempt                           int
		ExitCode                          int `json:"exit_code"`
	}
	_ = json.Unmarshal(rec.Fields, &f) // uids are numbers, and none of ours here
	switch rec.Msg {
	case "suspected":
		return "past its deadline, but waited for: " + f.Summary
	case "suspicion_lifted":
		return "it goes on"
	case "hang_detected":
		return "hang detected: " + f.Summary
	case "duration_exceeded":
		return f.Summary
	case "restart":
		return fmt.Sprintf("trying again, attempt %d", f.Attempt)
	case "signal":
		return "told to stop by " + f.Signal
	case "paused", "unpaused", "killed":
		return rec.Msg
	case "run_end":
		return ended(registry.Ending{Outcome: f.Outcome, ExitCode: f.ExitCode, Message: f.Message})
	}
	return ""
}
