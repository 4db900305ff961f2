//go:build linux

package main

import (
	"errors"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// nursery reaps whatever becomes a child of this process: the caller, a
// bystander, and, because this process is a subreaper, everything that the
// supervisor leaves behind. Nothing is reaped but under its lock, so that a
// child's pid is the child's as long as the lock is held.
type nursery struct {
	mu       sync.Mutex
	friends  []int // children of our own
	harmed   int   // friends that did not end as they should
	mate     int   // a bystander, the caller's child
	watched  int   // the supervisor, the caller's child; 0 before and after
	leftDead int   // what it had not reaped when it ended

	changed chan struct{} // holds a token after somebody was reaped
}

func newNursery() *nursery { return &nursery{changed: make(chan struct{}, 1)} }

// start starts a friend and notes it before it can be reaped.
func (n *nursery) start(argv []string, attr *syscall.ProcAttr) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	pid, err := syscall.ForkExec(argv[0], argv, attr)
	if err == nil {
		n.friends = append(n.friends, pid)
	}
	return pid, err
}

// watch names the supervisor, which its caller leaves unreaped, and the
// bystander beside it. Both come to us when the caller is ended.
func (n *nursery) watch(supervisor, mate int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watched, n.mate = supervisor, mate
}

// run reaps until there is no child. Start it after the first one.
func (n *nursery) run() {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil: // ECHILD
			return
		}
		n.reap()
		select {
		case n.changed <- struct{}{}:
		default:
		}
	}
}

func (n *nursery) reap() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.adoptMate()
	dead := deadChildren()
	if p, err := readStat(n.watched); n.watched != 0 && err == nil && p.dead() {
		// The kernel hands on a dead process's children, dead ones included, in
		// the moment of its death: they are all in this list.
		dead = deadChildren()
		n.noteLeftDead(dead)
	}
	for _, pid := range dead {
		var status unix.WaitStatus
		if got, _ := unix.Wait4(pid, &status, unix.WNOHANG, nil); got != pid {
			continue
		}
		if i := slices.Index(n.friends, pid); i >= 0 {
			n.friends = slices.Delete(n.friends, i, i+1)
			if status != 0 {
				n.harmed++ // see caller.c
			}
		}
	}
}

// adoptMate makes the caller's bystander a friend of ours once the caller has
// been ended.
func (n *nursery) adoptMate() {
	if n.mate != 0 && slices.Contains(children(), n.mate) {
		n.friends = append(n.friends, n.mate)
		n.mate = 0
	}
}

// leaves is called when the supervisor has just ended: what is dead and
// unreaped at that moment, it has left to whoever comes after it.
func (n *nursery) leaves() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.watched != 0 {
		n.noteLeftDead(deadChildren())
	}
}

func (n *nursery) noteLeftDead(dead []int) {
	n.adoptMate() // or it counts
	for _, pid := range dead {
		if pid != n.watched && !slices.Contains(n.friends, pid) {
			n.leftDead++
		}
	}
	n.watched = 0
}

func deadChildren() []int {
	return slices.DeleteFunc(children(), func(pid int) bool {
		p, err := readStat(pid)
		return err != nil || !p.dead()
	})
}

// strangers are the children that we have not started.
func (n *nursery) strangers() []int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.others()
}

func (n *nursery) others() []int {
	n.adoptMate()
	return slices.DeleteFunc(children(), func(pid int) bool { return slices.Contains(n.friends, pid) })
}

// killStrangers ends the children that nobody should have left to us. They are
// our own and unreaped: their pids cannot be anybody else's.
func (n *nursery) killStrangers() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, pid := range n.others() {
		_ = unix.Kill(pid, unix.SIGKILL) // a zombie does not mind
	}
}

// resume continues a friend that was stopped; pid names it or the bystander
// that is the caller's.
func (n *nursery) resume(pid int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.friends, pid) && pid != n.mate {
		return
	}
	if p, err := readStat(pid); err == nil && p.state == 'T' {
		_ = unix.Kill(pid, unix.SIGCONT)
	}
}

// killFriends is for the end, when they were asked and have not left.
func (n *nursery) killFriends() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, pid := range n.friends {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// alone reports whether every friend has left.
func (n *nursery) alone() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.adoptMate()
	return len(n.friends) == 0
}
