package process

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pauseTime bounds the search for a fixpoint of stopped processes.
const pauseTime = time.Second

// ErrPaused says that the tree is paused already.
var ErrPaused = errors.New("it is paused already")

// Pause stops the agent's tree until Resume: its cgroup is frozen where there
// is one; elsewhere every process of it is stopped, until nobody new is found.
// Whoever gets ErrPaused has not paused it, and leaves it to others to resume.
func (a *Agent) Pause() error {
	a.pausing.Lock()
	defer a.pausing.Unlock()
	if a.frozen {
		return ErrPaused
	}
	if a.leaf != nil && a.leaf.freeze(true) == nil {
		a.frozen = true
		for over := time.Now().Add(pauseTime); !a.leaf.frozen() && time.Now().Before(over); {
			time.Sleep(time.Millisecond) // who waits for a disk stops when it has come
		}
		return nil
	}
	err := a.stopAll()
	if a.frozen = err == nil; !a.frozen {
		_ = a.letGo() // it was not all of it, so it is none
	}
	return err
}

// stopAll stops every process of the tree by a signal.
func (a *Agent) stopAll() error {
	a.paused = map[procID]Proc{}
	s := a.Sampler()
	defer s.Close()
	for over := time.Now().Add(pauseTime); time.Now().Before(over); {
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
			if signalProc(p, syscall.SIGSTOP) == nil {
				a.paused[p.id()] = p
				fresh++
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

func (a *Agent) letGo() error {
	var failed error
	for _, p := range a.paused {
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
