//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// job is one run, as the runner gives it to a keeper.
type job struct {
	cell
	Argv     []string // the supervisor's command line
	Agent    []string // the agent's, for the bystanders
	Dir      string   // of this run, made by the runner
	Delegate bool     // the run's cgroup belongs to its user
	Bound    time.Duration
	Patience time.Duration // how long the supervisor may take to end
	Idle     time.Duration // its idle timeout, for the ending hang
}

// keeper makes one run.
type keeper struct {
	job
	fifo     string // name of the FIFO that the tree holds
	nursery  *nursery
	cgroup   *cgroup
	said     chan string // lines of the agent
	pty      *os.File    // the master, for the ending hangup
	pidfd    int         // of the supervisor
	pid      int
	start    uint64
	lastDead chan instant // the moment of the last death
	eof      instant
	abort    <-chan struct{}
	life     int // the FIFO's read end
	beside   beside
	exited   chan end // the supervisor's end
	ended    end      // and what was received
}

// errSkipped is a tree that cannot be made here, which the tree maker says.
var errSkipped = errors.New("cannot be made here")

var errInterrupted = errors.New("interrupted")

// keep is the keeper's main: a job as its argument, the outcome on stdout. Its
// stdin is the runner's life: when that closes, it cleans up and leaves.
func keep(arg string, stdin io.Reader, stdout io.Writer) error {
	var j job
	if err := json.Unmarshal([]byte(arg), &j); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	abort := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // its end is all that matters
		close(abort)
	}()
	k := &keeper{job: j, nursery: newNursery(), abort: abort, pidfd: -1, life: -1,
		said: make(chan string, 16), exited: make(chan end, 1), lastDead: make(chan instant, 1)}
	out := k.run()
	return json.NewEncoder(stdout).Encode(out)
}

func (k *keeper) run() outcome {
	out := outcome{cell: k.cell}
	err := k.play(&out)
	if cerr := k.clean(&out); cerr != nil {
		err = errors.Join(err, cerr)
	}
	switch {
	case errors.Is(err, errSkipped):
		out.Skipped = strings.TrimSuffix(err.Error(), ": "+errSkipped.Error())
	case err != nil:
		out.Failed = err.Error()
	}
	return out
}

// play is the run: start, stand, end, count.
func (k *keeper) play(out *outcome) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	if err := k.prepare(); err != nil {
		return err
	}
	if err := k.startBystander(); err != nil {
		return fmt.Errorf("bystander: %w", err)
	}
	go k.nursery.run()
	if err := k.startSupervisor(); err != nil {
		return fmt.Errorf("start %s: %w", k.Argv[0], err)
	}
	if err := k.awaitReady(out); err != nil {
		return err
	}
	guard := k.findGuard()
	t, err := k.end(guard)
	if err != nil {
		return err
	}
	err = k.wait(t.bound)
	if err == nil {
		k.count(out, t)
	}
	return err
}

// prepare makes what the tree needs in the folder of the run.
func (k *keeper) prepare() error {
	k.fifo = fmt.Sprintf("life-%d-%d", os.Getpid(), now())
	for _, name := range []string{k.fifo, "say", "go"} {
		path := filepath.Join(k.Dir, name)
		if err := unix.Mkfifo(path, 0o600); err != nil {
			return fmt.Errorf("make FIFO: %w", err)
		}
		if k.UID >= 0 {
			if err := os.Chown(path, k.UID, k.UID); err != nil {
				return err
			}
		}
	}
	var err error
	k.life, err = unix.Open(filepath.Join(k.Dir, k.fifo), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open FIFO: %w", err)
	}
	go k.watchLife()
	// Opened for writing too, so that it never comes to an end.
	say, err := os.OpenFile(filepath.Join(k.Dir, "say"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	go func() {
		lines := bufio.NewScanner(say)
		for lines.Scan() {
			k.said <- lines.Text()
		}
	}()
	k.cgroup = newCgroup(k.UID, k.Delegate)
	return nil
}

// watchLife waits for the kernel's word that nobody holds the FIFO any more. A
// FIFO that nobody has held yet does not count as such (poll(2): POLLHUP).
func (k *keeper) watchLife() {
	fds := []unix.PollFd{{Fd: int32(k.life)}}
	for {
		n, err := unix.Poll(fds, -1)
		if n > 0 && fds[0].Revents&unix.POLLHUP != 0 {
			k.lastDead <- now()
			return
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// environ is the supervisor's environment.
func (k *keeper) environ() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "CURSOR_WRAP_") && !strings.HasPrefix(kv, "HOSTILE_") && !strings.HasPrefix(kv, "HOME=") {
			env = append(env, kv)
		}
	}
	env = append(env, "HOME="+k.Dir, "HOSTILE_RUN="+k.Dir, "HOSTILE_LIFE="+k.fifo,
		"HOSTILE_TREE="+k.Tree, "HOSTILE_END="+k.Ending)
	return append(env, k.cgroup.environ()...)
}

// sys is for what stands beside the tree: as its user, in a session of its own.
func (k *keeper) sys() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if k.UID >= 0 {
		attr.Credential = &syscall.Credential{Uid: uint32(k.UID), Gid: uint32(k.UID)}
	}
	return attr
}

// awaitReady waits for the tree's word that it stands.
func (k *keeper) awaitReady(out *outcome) error {
	timeout := time.NewTimer(30 * time.Second)
	defer timeout.Stop()
	select {
	case line := <-k.said:
		if why, ok := strings.CutPrefix(line, "cannot "); ok {
			return fmt.Errorf("%s: %w", why, errSkipped)
		}
		of, ok := number(line, "ready")
		if !ok {
			return fmt.Errorf("the tree said %q", line)
		}
		out.Of = int(of)
		return nil
	case e := <-k.exited:
		return fmt.Errorf("the supervisor ended (%s) before the tree stood%s", e.status, k.lastWords())
	case <-timeout.C:
		return fmt.Errorf("the tree does not stand after 30s%s", k.lastWords())
	case <-k.abort:
		return errInterrupted
	}
}

// lastWords is the end of what the supervisor wrote to stderr.
func (k *keeper) lastWords() string {
	b, err := os.ReadFile(filepath.Join(k.Dir, "err"))
	text := strings.TrimSpace(string(b))
	if err != nil || text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	return ": " + lines[len(lines)-1]
}

// findGuard is the agent's parent, 0 when that is the supervisor itself.
func (k *keeper) findGuard() int {
	f, err := os.Open(filepath.Join(k.Dir, "agent.lock"))
	if err != nil {
		return 0
	}
	defer f.Close()
	// The kernel names the lock's owner as our pid namespace numbers it.
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock); err != nil || lock.Type == unix.F_UNLCK || lock.Pid <= 0 {
		return 0
	}
	agent, err := readStat(int(lock.Pid))
	if err != nil || agent.ppid == k.pid || !below(agent.ppid, os.Getpid()) {
		return 0
	}
	return agent.ppid
}

// below reports whether a process descends from another. A supervisor may have
// its agent started by a service that was there before: that is no guard.
func below(pid, ancestor int) bool {
	for pid > 1 && pid != ancestor {
		p, err := readStat(pid)
		if err != nil || p.ppid == ancestor {
			return err == nil
		}
		pid = p.ppid
	}
	return false
}

// number reads the line "ready 4", or "result" and the moment of it.
func number(line, word string) (int64, bool) {
	text, ok := strings.CutPrefix(line, word+" ")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}
