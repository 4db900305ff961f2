//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// errNoGuard: nothing stands between the supervisor and the agent.
var errNoGuard = fmt.Errorf("no guard: %w", errSkipped)

// times are the moments of an ending.
type times struct {
	ending instant // from which deaths are timed
	bound  bool    // the bound begins now, not with the supervisor's exit
	killed bool    // the supervisor had no chance to reap
}

// end makes the ending happen.
func (k *keeper) end(guard int) (times, error) {
	switch k.Ending {
	case "result", "linger":
		return k.release("result", 0)
	case "hang":
		return k.release("silent", k.Idle)
	case "hangup":
		t := times{ending: now()}
		return t, k.pty.Close()
	case "INT":
		return k.signal(unix.SIGINT)
	case "TERM":
		return k.signal(unix.SIGTERM)
	case "HUP":
		return k.signal(unix.SIGHUP)
	case "KILL":
		t, err := k.signal(unix.SIGKILL)
		t.bound, t.killed = true, true
		return t, err
	case "TERMKILL":
		t, err := k.signal(unix.SIGTERM)
		if err != nil {
			return t, err
		}
		time.Sleep(30 * time.Millisecond) // the ending is defined so
		_, _ = k.signal(unix.SIGKILL)     // it may have ended by now
		t.bound, t.killed = true, true
		return t, nil
	case "KILLGUARD":
		return k.killGuard(guard, false)
	case "KILLBOTH":
		return k.killGuard(guard, true)
	}
	return times{}, fmt.Errorf("no ending %s", k.Ending)
}

func (k *keeper) signal(s unix.Signal) (times, error) {
	t := times{ending: now()}
	if err := unix.PidfdSendSignal(k.pidfd, s, nil, 0); err != nil {
		return t, fmt.Errorf("signal the supervisor: %w", err)
	}
	return t, nil
}

// killGuard kills the agent's parent, and at the same moment the supervisor
// if both.
func (k *keeper) killGuard(guard int, both bool) (times, error) {
	if guard == 0 {
		return times{}, errNoGuard
	}
	fd, err := unix.PidfdOpen(guard, 0)
	if err != nil {
		return times{}, fmt.Errorf("open the guard: %w", err)
	}
	defer unix.Close(fd)
	if k.findGuard() != guard {
		return times{}, errors.New("the guard is not the agent's parent any more")
	}
	t := times{ending: now(), bound: both, killed: both}
	if both {
		if _, err := k.signal(unix.SIGKILL); err != nil {
			return t, err
		}
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		return t, fmt.Errorf("kill the guard: %w", err)
	}
	return t, nil
}

// release lets the agent go on and waits for its word that it did. The ending
// is that moment, and for a silence the moment when it has lasted long enough.
func (k *keeper) release(word string, after time.Duration) (times, error) {
	f, err := os.OpenFile(filepath.Join(k.Dir, "go"), os.O_RDWR, 0)
	if err != nil {
		return times{}, err
	}
	defer f.Close()
	if _, err := f.Write([]byte{'g'}); err != nil {
		return times{}, err
	}
	select {
	case line := <-k.said:
		at, ok := number(line, word)
		if !ok {
			return times{}, fmt.Errorf("the agent said %q", line)
		}
		return times{ending: instant(at) + instant(after)}, nil
	case <-time.After(20 * time.Second):
		return times{}, errors.New("the agent did not go on")
	case <-k.abort:
		return times{}, errInterrupted
	}
}

// wait waits until nobody is left: the tree is dead, the supervisor has ended
// and left no child. It gives up when the bound is over, which begins now or
// with the supervisor's exit.
func (k *keeper) wait(bounded bool) error {
	limit := k.Patience
	if bounded {
		limit = k.Bound
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case k.eof = <-k.lastDead:
		case k.ended = <-k.exited:
			if !bounded {
				timer.Reset(k.Bound)
			}
		case <-k.nursery.changed:
		case <-timer.C:
			return nil
		case <-k.abort:
			return errInterrupted
		}
		if k.eof != 0 && k.ended.at != 0 && len(k.nursery.strangers()) == 0 {
			return nil
		}
	}
}

// count fills in what is left.
func (k *keeper) count(out *outcome, t times) {
	tree := map[int]bool{}
	if k.eof == 0 {
		var left []proc
		for range 3 {
			// One look misses who hands on to a new process while it lasts.
			if seen := holders(k.fifo); len(seen) > len(left) {
				left = seen
			}
		}
		for _, p := range left {
			tree[p.pid] = true
			out.Who = append(out.Who, p.String())
		}
		out.Survivors = len(tree)
		// The kernel's word counts even when nobody can be seen.
		select {
		case k.eof = <-k.lastDead:
			out.Survivors = 0
		default:
			out.Survivors = max(out.Survivors, 1)
		}
	}
	if !t.killed {
		k.nursery.mu.Lock()
		out.Zombies = k.nursery.leftDead
		k.nursery.mu.Unlock()
	}
	ours := []int{k.beside.caller, k.beside.mate.pid, k.beside.loner}
	for _, p := range descendants(os.Getpid()) {
		switch {
		case tree[p.pid] || slices.Contains(ours, p.pid):
		case p.pid == k.pid && p.dead(): // its caller keeps it so
		case p.dead() && p.ppid != os.Getpid():
			out.Zombies++
		case !p.dead() && k.stays(p):
			out.Helpers++
			out.HelperWho = append(out.HelperWho, p.String())
		}
	}
	out.Cgroups = k.cgroup.left(k.pid, k.start)
	if k.eof != 0 {
		out.DeathMS = millis(k.eof.since(t.ending))
	}
	out.Status = "alive"
	if k.ended.at != 0 {
		out.ExitMS = millis(k.ended.at.since(t.ending))
		out.Status = k.ended.status
	}
}

// stays tells a helper from a process of the tree that is just being born or
// dying, and holds nothing at that moment.
func (k *keeper) stays(p proc) bool {
	for range 5 {
		time.Sleep(10 * time.Millisecond)
		again, err := readStat(p.pid)
		if err != nil || again.start != p.start || again.dead() || holds(p.pid, k.fifo, "*") {
			return false
		}
	}
	return true
}

// clean ends all that is left of the run, by force, and lets the bystanders go.
func (k *keeper) clean(out *outcome) error {
	if k.life < 0 {
		return nil
	}
	// Relays and hydras look at this word and leave (tree.h: stop).
	if f, err := os.OpenFile(filepath.Join(k.Dir, "shared"), os.O_WRONLY, 0); err == nil {
		_, _ = f.WriteAt([]byte{1, 1, 1, 1}, 0) // then they end with the rest, below
		f.Close()
	}
	if k.pidfd >= 0 {
		_ = unix.PidfdSendSignal(k.pidfd, unix.SIGKILL, nil, 0) // most have ended
	}
	if !k.within(k.killed) {
		return errors.New("some of the tree could not be ended: it ends by itself")
	}
	var err error
	if out.Bystanders, err = k.dismiss(); err != nil {
		return err
	}
	return k.cgroup.remove(k.pid, k.start)
}

// killed ends who is left of the tree, and reports that nobody is. Children
// come again and again: each death hands us the next ones.
func (k *keeper) killed() bool {
	left := holders(k.fifo)
	for _, p := range left {
		killHolder(p, k.fifo)
	}
	k.nursery.killStrangers()
	return len(left) == 0 && len(k.nursery.strangers()) == 0
}

// within tries until it is so, for some seconds.
func (k *keeper) within(so func() bool) bool {
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); {
		if so() {
			return true
		}
		time.Sleep(3 * time.Millisecond)
	}
	return false
}

// millis is for the report: rounded to the microsecond.
func millis(d time.Duration) *float64 {
	ms := float64(d.Microseconds()) / 1000
	return &ms
}

// status is how a process ended, for people.
func status(w unix.WaitStatus) string {
	if w.Signaled() {
		return unix.SignalName(w.Signal())
	}
	return strconv.Itoa(w.ExitStatus())
}
