package tmux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"cursor-wrap/internal/process"
)

// Stopped is what came of a session that was stopped.
type Stopped struct {
	Record
	Ran    bool // the wrapper lived and was told to end
	Closed bool // the session was closed before
}

// paneTime is how long the shell of a session that is closed is waited for.
const paneTime = 2 * time.Second

// hurryEvery is how long a wrapper has between two signals of an end in a
// hurry. Two that come together count as one.
const hurryEvery = 100 * time.Millisecond

// Stop ends the run of a session of ours, waits until it is gone, and closes
// the session. The tree is torn down by the wrapper, which is told twice if now
// is true and leaves the polite step out then. Where it does not end before the
// context does, everything stays as it is.
func Stop(ctx context.Context, r Record, now bool) (Stopped, error) {
	s := New(r.Socket)
	done := Stopped{Record: r, Ran: process.Alive(r.PID, r.Start)}
	if err := end(ctx, r, now); err != nil {
		return done, err
	}
	all, err := s.Sessions(ctx)
	if err != nil {
		return done, err
	}
	session := In(all, r.Folder)
	done.Closed = session == nil
	if session != nil {
		if err := s.close(ctx, session, &r); err != nil {
			return done, err
		}
	}
	done.Exit = exitStatus(r.Folder)
	return done, os.RemoveAll(r.Folder)
}

// close closes a session and waits until the shell of its pane, which is hung up
// on, has left.
func (s *Server) close(ctx context.Context, session *Session, r *Record) error {
	shell, gone := process.Find(session.PanePID)
	if gone == nil && !session.Dead {
		l := Look{Record: r, Exit: exitStatus(r.Folder)}
		_ = s.settle(ctx, &l, shell) // at worst the exit code is not known
	}
	if _, err := s.ask(ctx, "kill-session", "-t", session.ID); err != nil && !errors.Is(err, errNoServer) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, paneTime)
	defer cancel()
	for gone == nil && process.Alive(shell.PID, shell.Start) && ctx.Err() == nil {
		pause(ctx, 5*time.Millisecond)
	}
	return nil
}

// end tells the wrapper to end and waits until it has. SIGCONT, so that one
// that was suspended can.
func end(ctx context.Context, r Record, now bool) error {
	told := 0
	for process.Alive(r.PID, r.Start) {
		if told == 0 || now {
			told++
			err := process.Signal(r.PID, r.Start, syscall.SIGTERM, syscall.SIGCONT)
			if err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("process %d: %w", r.PID, err)
			}
		}
		for began := 0 * time.Millisecond; began < hurryEvery && process.Alive(r.PID, r.Start); began += 5 * time.Millisecond {
			if ctx.Err() != nil {
				return fmt.Errorf("process %d has not ended: %w", r.PID, ctx.Err())
			}
			pause(ctx, 5*time.Millisecond)
		}
	}
	return nil
}
