package process

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pipeSize is asked for on the agent's stdout, in bytes. The pipe is the queue
// that fills while a batch is synced; a Node agent writes to it synchronously
// and stops when it is full. 1 MiB is what Linux allows everybody.
const pipeSize = 1 << 20

// Spec says what to start. The directory is the caller's own.
type Spec struct {
	Path string   // of the binary, as resolved
	Args []string // without argv[0]
	Env  []string // the whole environment
}

// Agent is a started agent: the leader of a session and of a process group of
// its own. It stays a zombie, and so keeps its pid and its group's id from
// being reused, until End has reaped it.
type Agent struct {
	Stdin  *os.File
	Stdout *Pipe
	Stderr *Pipe

	leader Proc
	table  func(pgid int) ([]Proc, error)
	exited chan struct{}

	reaped bool // End's alone, as is status
	status Exit
}

// Exit is how the agent ended.
type Exit struct {
	Code   int            // exit code, -1 if a signal ended it
	Signal syscall.Signal // 0 if it exited
	User   time.Duration  // CPU time, its waited-for children included
	System time.Duration
	MaxRSS int64 // bytes, the largest of it and its waited-for children
}

// String is what a person would say: "exit 1", "killed by SIGTERM".
func (e Exit) String() string {
	if e.Signal != 0 {
		return "killed by " + unix.SignalName(e.Signal)
	}
	return fmt.Sprintf("exit %d", e.Code)
}

// Start starts the agent with pipes on all three standard files. The error
// names the path and wraps the cause.
func Start(s Spec) (*Agent, error) {
	var ours, theirs [3]*os.File
	defer func() {
		for _, f := range theirs {
			if f != nil {
				f.Close()
			}
		}
	}()
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ours[:])
			return nil, fmt.Errorf("start %s: %w", s.Path, err)
		}
		ours[i], theirs[i] = r, w
		if i == 0 {
			ours[i], theirs[i] = w, r
		}
	}
	enlarge(ours[1], pipeSize)

	pid, err := fork(s, theirs)
	if err != nil {
		closeAll(ours[:])
		return nil, fmt.Errorf("start %s: %w", s.Path, err)
	}
	a := &Agent{
		Stdin:  ours[0],
		Stdout: &Pipe{ours[1]},
		Stderr: &Pipe{ours[2]},
		leader: identify(pid),
		table:  group,
		exited: make(chan struct{}),
	}
	go func() {
		defer close(a.exited)
		awaitExit(pid)
	}()
	return a, nil
}

// fork hands the child blocking ends of its pipes: Fd clears O_NONBLOCK, which
// an agent does not expect to inherit.
func fork(s Spec, files [3]*os.File) (int, error) {
	return syscall.ForkExec(s.Path, append([]string{s.Path}, s.Args...), &syscall.ProcAttr{
		Env:   s.Env,
		Files: []uintptr{files[0].Fd(), files[1].Fd(), files[2].Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// PID is the agent's pid, and the id of its session and process group.
func (a *Agent) PID() int { return a.leader.PID }

// Exited is closed when the agent's own process has ended; its descendants may
// be alive, and its pipes open.
func (a *Agent) Exited() <-chan struct{} { return a.exited }

func (a *Agent) hasExited() bool {
	select {
	case <-a.exited:
		return true
	default:
		return false
	}
}

// awaitExit returns when the process has ended and leaves it a zombie
// (waitid(2), WNOWAIT), so that its pid still is its own.
func awaitExit(pid int) {
	for {
		err := waitNoReap(pid)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// wait reaps the agent, once, and says how it ended. Only End calls it.
func (a *Agent) wait() Exit {
	if a.reaped {
		return a.status
	}
	a.reaped = true
	var ws syscall.WaitStatus
	var ru syscall.Rusage
	for {
		_, err := syscall.Wait4(a.leader.PID, &ws, 0, &ru)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			a.status = Exit{Code: -1} // SIGCHLD is ignored by our parent's wish: the status is lost
			return a.status
		}
	}
	a.status = Exit{
		Code:   ws.ExitStatus(),
		User:   time.Duration(ru.Utime.Nano()),
		System: time.Duration(ru.Stime.Nano()),
		MaxRSS: MaxRSS(&ru),
	}
	if ws.Signaled() {
		a.status.Signal = ws.Signal()
	}
	return a.status
}
