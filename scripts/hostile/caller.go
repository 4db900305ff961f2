//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// end is how the supervisor ended, and when.
type end struct {
	status string
	at     instant
}

// beside is what stands beside the tree and must not be touched. The caller
// has a session of its own and starts the supervisor in it; the keeper, which
// adopts orphans as an init does, is in another one. (Were the adopter in the
// same session, the kernel would not see the process group of a dead
// supervisor's tree as orphaned, and would not hang up its stopped members.)
type beside struct {
	caller int
	mate   proc // a bystander in the caller's process group
	loner  int  // one in a session of its own
	stdin  []*os.File
	told   *bufio.Scanner
}

// tells reads a word and its numbers from the caller.
func (b *beside) tells(word string) (x, y int64, err error) {
	if !b.told.Scan() {
		return 0, 0, fmt.Errorf("the caller ended before it said %q", word)
	}
	f := strings.Fields(b.told.Text())
	if len(f) != 3 || f[0] != word {
		return 0, 0, fmt.Errorf("the caller said %q, not %q", b.told.Text(), word)
	}
	x, err = strconv.ParseInt(f[1], 10, 64)
	if err == nil {
		y, err = strconv.ParseInt(f[2], 10, 64)
	}
	return x, y, err
}

// startBystander starts the one in a session of its own. It stands on return.
func (k *keeper) startBystander() error {
	in, stdin, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	ready, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	k.beside.stdin = append(k.beside.stdin, stdin)
	k.beside.loner, err = k.nursery.start(k.Agent, &syscall.ProcAttr{
		Dir:   "/",
		Env:   append(k.environ(), "HOSTILE_BYSTANDER=1"),
		Files: []uintptr{in.Fd(), out.Fd(), out.Fd()},
		Sys:   k.sys(),
	})
	out.Close()
	if err != nil {
		return err
	}
	var word [1]byte
	if _, err := io.ReadFull(ready, word[:]); err != nil {
		return fmt.Errorf("does not stand: %w", err)
	}
	return nil
}

// startCaller starts the caller, which starts the other bystander and then the
// supervisor.
func (k *keeper) startCaller() error {
	in, stdin, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	told, tell, err := os.Pipe()
	if err != nil {
		return err
	}
	defer tell.Close()
	k.beside.stdin = append(k.beside.stdin, stdin)
	k.beside.told = bufio.NewScanner(told)

	kind, open := "HOSTILE_CALLER=files", k.openFiles
	if k.Ending == "hangup" {
		kind, open = "HOSTILE_CALLER=terminal", k.openTerminal
	}
	stdio, err := open()
	if err != nil {
		return err
	}
	attr := &syscall.ProcAttr{Dir: k.Dir, Env: append(k.environ(), kind), Sys: k.sys()}
	for _, f := range append([]*os.File{in, nil, os.Stderr, tell}, stdio...) {
		if f == nil {
			f = tell // a caller has no stdout
		}
		attr.Files = append(attr.Files, f.Fd())
	}
	argv := append([]string{k.Agent[0], strconv.Itoa(len(k.Agent))}, k.Agent...)
	k.beside.caller, err = k.nursery.start(append(argv, k.Argv...), attr)
	for _, f := range stdio {
		f.Close()
	}
	return err
}

// openFiles are the supervisor's stdin, stdout and stderr.
func (k *keeper) openFiles() ([]*os.File, error) {
	in, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	out, err := os.Create(filepath.Join(k.Dir, "out"))
	if err != nil {
		return nil, err
	}
	errs, err := os.Create(filepath.Join(k.Dir, "err"))
	return []*os.File{in, out, errs}, err
}

// startSupervisor has it started, and watches it from then on.
func (k *keeper) startSupervisor() error {
	if err := k.startCaller(); err != nil {
		return err
	}
	pid, _, err := k.beside.tells("bystander")
	if err != nil {
		return err
	}
	if k.beside.mate, err = readStat(int(pid)); err != nil {
		return fmt.Errorf("bystander: %w", err)
	}
	if pid, _, err = k.beside.tells("supervisor"); err != nil {
		return err
	}
	k.nursery.watch(int(pid), k.beside.mate.pid)
	// Its caller does not reap it before we say so: the pid is its own.
	p, err := readStat(int(pid))
	if err != nil {
		return err
	}
	k.pid, k.start = p.pid, p.start
	if k.pidfd, err = unix.PidfdOpen(p.pid, 0); err != nil {
		return fmt.Errorf("pidfd: %w", err)
	}
	go k.awaitEnd()
	return nil
}

// awaitEnd waits for the caller's word that the supervisor has ended. When the
// caller itself was ended, the kernel says that it has, and nobody how.
func (k *keeper) awaitEnd() {
	code, at, err := k.beside.tells("exit")
	e := end{status(unix.WaitStatus(code)), instant(at)}
	if err != nil {
		fds := []unix.PollFd{{Fd: int32(k.pidfd), Events: unix.POLLIN}}
		for n, err := unix.Poll(fds, -1); n < 1 && errors.Is(err, unix.EINTR); {
			n, err = unix.Poll(fds, -1)
		}
		e = end{"unknown", now()}
	}
	k.nursery.leaves()
	k.exited <- e
}

// dismiss lets them go, and counts those that did not leave by themselves: any
// signal that can be caught ended them, and who was stopped is continued, which
// is such a signal.
func (k *keeper) dismiss() (harmed int, err error) {
	for _, pid := range []int{k.beside.caller, k.beside.mate.pid, k.beside.loner} {
		k.nursery.resume(pid)
	}
	for _, stdin := range k.beside.stdin {
		stdin.Close()
	}
	if !k.within(k.nursery.alone) {
		k.nursery.killFriends()
		if !k.within(k.nursery.alone) {
			return 0, errors.New("the bystanders do not leave")
		}
	}
	k.nursery.mu.Lock()
	defer k.nursery.mu.Unlock()
	return k.nursery.harmed, nil
}
