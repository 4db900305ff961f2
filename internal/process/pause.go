package process

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pauseTime bounds the search for a fixpoint of stopped processes.
const pauseTime = time.Second

// What keeps a tree from being paused.
var (
	ErrPaused = errors.New("it is paused already")
	ErrEnding = errors.New("it is being ended")
)

// Pause stops the agent's tree until Resume: its cgroup is frozen where there
// is one; elsewhere every process of it is stopped, until nobody new is found.
// Whoever gets ErrPaused has not paused it, and leaves it to others to resume.
func (a *Agent) Pause() error {
	a.pausing.Lock()
	defer a.pausing.Unlock()
	if a.frozen {
		return ErrPaused
	}
	err := a.stop()
	if a.ending.Load() { // which thaws before it waits; what came behind it would be waited for
		err = ErrEnding
	}
	if a.frozen = err == nil; !a.frozen {
		_ = a.letGo() // it was not all of it, so it is none
	}
	return err
}

// stop stops all of the tree.
func (a *Agent) stop() error {
	if a.leaf == nil || a.leaf.freeze(true) != nil {
		return a.stopAll()
	}
	for over := time.Now().Add(pauseTime); !a.leaf.frozen() && a.leaf.populated() && !a.ending.Load() && time.Now().Before(over); {
		time.Sleep(time.Millisecond) // who waits for a disk stops when it has come
	}
	return nil
}

// stopAll stops every process of the tree by a signal.
func (a *Agent) stopAll() error {
	a.paused = map[procID]Proc{}
	s := a.Sampler()
	defer s.Close()
	for over := time.Now().Add(pauseTime); time.Now().Before(over) && !a.ending.Load(); {
		snap := s.Sample(time.Time{}, false, false)
		if snap.Blind != "" {
			return errors.New(snap.Blind)
		}
		fresh, moving := 0, 0
		for i := range snap.Rows {
			r := &snap.Rows[i]
			p := Proc{PID: r.PID, Start: r.Start, State: string(r.State)}
			_, asked := a.paused[p.id()]
			switch {
			case asked && (r.State == 'R' || r.State == 'S'):
				moving++ // the signal is on its way
				continue
			case asked || r.State == 'T' || p.State == "Z" || p.State == "X":
				continue // who is stopped already is not ours to let go on
			}
			switch err := signalProc(p, syscall.SIGSTOP); {
			case err == nil:
				a.paused[p.id()] = p
				fresh++
			case !errors.Is(err, unix.ESRCH):
				return fmt.Errorf("%d %s cannot be stopped: %w", r.PID, r.Name, err)
			}
		}
		switch {
		case fresh > 0:
		case moving == 0:
			return nil
		default:
			time.Sleep(time.Millisecond)
		}
	}
	return errors.New("it does not stop")
}

// Resume lets the tree go on that Pause has stopped; one that is not paused
// goes on anyway.
func (a *Agent) Resume() error {
	a.pausing.Lock()
	defer a.pausing.Unlock()
	if !a.frozen {
		return nil
	}
	a.frozen = false
	return a.letGo()
}

// letGo continues the youngest first: a shell that sees its child stopped would
// take it for a job in the background.
func (a *Agent) letGo() error {
	var failed error
	paused := slices.SortedFunc(maps.Values(a.paused), func(p, q Proc) int {
		return cmp.Or(cmp.Compare(q.Start, p.Start), cmp.Compare(q.PID, p.PID))
	})
	for _, p := range paused {
		if err := signalProc(p, syscall.SIGCONT); err != nil && !errors.Is(err, unix.ESRCH) {
			failed = err
		}
	}
	a.paused = nil
	if a.leaf != nil {
		failed = errors.Join(failed, a.leaf.freeze(false))
	}
	return failed
}
