package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lab is where the runs take place: a directory, the program to measure, and
// the report that grows.
type lab struct {
	dir      string
	wrap     string // cursor-wrap
	self     string // this program
	quick    bool
	progress io.Writer
	report   *report
}

// home replaces the caller's: the run must neither touch what a user keeps
// there nor be slowed by it.
func (l *lab) home() string   { return filepath.Join(l.dir, "home") }
func (l *lab) logDir() string { return filepath.Join(l.dir, "logs") }
func (l *lab) stats() string  { return filepath.Join(l.dir, "stats") }

func (l *lab) close() {
	if err := os.RemoveAll(l.dir); err != nil {
		fmt.Fprintln(l.progress, "bench:", err)
	}
}

// command is one process of a pipeline.
type command struct {
	argv []string
	env  []string
	code int // with which it must exit
}

// flow is what the end of a pipeline sees of it.
type flow struct {
	fd  int // to read from, until end of file
	pid int // the contender
}

// cost is what one run of a pipeline took.
type cost struct {
	wall time.Duration // from before the first start to the contender's exit
	cpu  time.Duration // user and system time of all processes, orphans included
	left leftover
}

// leftover is what still lived when the contender had ended.
type leftover struct {
	count int
	took  time.Duration // until the last of them was gone
}

// runLimit bounds one run of one contender: more than ten times the slowest
// that was seen.
const runLimit = 2 * time.Minute

// run starts the pipeline, source first and contender last, gives its output
// to sink, and returns when every process that it started has ended, each with
// the code that it must exit with. With one command, that is source and contender in one, which is how
// a wrapper with its agent looks from outside.
func (l *lab) run(ctx context.Context, pipeline []command, sink func(flow) error) (c cost, err error) {
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	// A file, not a pipe of ours: nobody would have to stand by and drain it.
	stderr, err := os.CreateTemp(l.dir, "stderr-")
	if err != nil {
		return c, err
	}
	defer func() {
		if err != nil {
			err = withTail(err, stderr.Name())
		}
		stderr.Close()
		os.Remove(stderr.Name())
	}()
	before, err := cpuOf(unix.RUSAGE_CHILDREN)
	if err != nil {
		return c, err
	}
	out, in, err := newPipe()
	if err != nil {
		return c, err
	}
	defer out.Close()

	began := time.Now()
	cmds, err := l.start(pipeline, in, stderr)
	done, killed := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(killed)
		killUntil(done, cmds)
	})
	if err == nil {
		err = sink(flow{fd: int(out.Fd()), pid: cmds[len(cmds)-1].Process.Pid})
	}
	if err != nil {
		cancel() // whoever is running has no reader any more
	}
	for i := len(cmds) - 1; i >= 0; i-- {
		werr := cmds[i].Wait()
		if i == len(cmds)-1 {
			c.wall = time.Since(began)
		}
		if werr == nil && pipeline[i].code != 0 {
			werr = fmt.Errorf("exit status 0, not %d", pipeline[i].code)
		}
		if werr != nil && cmds[i].ProcessState.ExitCode() != pipeline[i].code {
			err = errors.Join(err, fmt.Errorf("%s: %w", filepath.Base(cmds[i].Path), werr))
		}
	}
	var rerr error
	c.left, rerr = reapRest(5 * time.Second)
	if rerr != nil {
		cancel()
		_, kerr := reapRest(5 * time.Second) // the killing has begun
		rerr = errors.Join(rerr, kerr)
	}
	close(done)
	if !stop() {
		<-killed // or it would go on to the next run's processes
	}
	after, cerr := cpuOf(unix.RUSAGE_CHILDREN)
	c.cpu = after - before
	return c, errors.Join(err, rerr, cerr)
}

// start connects and starts the commands, the last one first, so that nobody
// waits for a reader. It takes over out.
func (l *lab) start(pipeline []command, out, stderr *os.File) ([]*exec.Cmd, error) {
	cmds := make([]*exec.Cmd, 0, len(pipeline))
	for i := len(pipeline) - 1; i >= 0; i-- {
		cmd := exec.Command(pipeline[i].argv[0], pipeline[i].argv[1:]...)
		cmd.Dir = l.dir
		cmd.Env = append(l.environ(), pipeline[i].env...)
		cmd.Stdout, cmd.Stderr = out, stderr
		var next *os.File
		if i > 0 {
			in, w, err := newPipe()
			if err != nil {
				out.Close()
				return cmds, err
			}
			cmd.Stdin, next = in, w
		}
		err := cmd.Start()
		out.Close()
		if in, ok := cmd.Stdin.(*os.File); ok {
			in.Close()
		}
		if err != nil {
			if next != nil {
				next.Close()
			}
			return cmds, err
		}
		cmds = append([]*exec.Cmd{cmd}, cmds...)
		out = next
	}
	return cmds, nil
}

// environ is the caller's, without what would change how cursor-wrap behaves
// from one machine to the next.
func (l *lab) environ() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "CURSOR_WRAP") && !strings.HasPrefix(kv, "HOME=") {
			env = append(env, kv)
		}
	}
	return append(env, "HOME="+l.home())
}

// newPipe is a pipe of pipeBytes with ordinary blocking ends.
func newPipe() (r, w *os.File, err error) {
	r, w, err = os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	// os.Pipe leaves both ends to the runtime's poller, and a child would
	// inherit that.
	err = errors.Join(
		unix.SetNonblock(int(r.Fd()), false),
		unix.SetNonblock(int(w.Fd()), false),
		enlargePipe(int(w.Fd()), pipeBytes),
	)
	if err != nil {
		r.Close()
		w.Close()
		return nil, nil, fmt.Errorf("make a pipe of %d bytes: %w", pipeBytes, err)
	}
	return r, w, nil
}

// killUntil ends what a run started: the commands themselves, and as a
// subreaper whatever they leave to us, again and again until done.
func killUntil(done <-chan struct{}, cmds []*exec.Cmd) {
	own := make(map[int]bool)
	for _, cmd := range cmds {
		own[cmd.Process.Pid] = true
	}
	for {
		for _, cmd := range cmds {
			_ = cmd.Process.Kill() // "already finished" is what we want
		}
		for _, pid := range children(os.Getpid()) {
			if !own[pid] {
				_ = unix.Kill(pid, unix.SIGKILL) // ours to reap, so the pid is still its own
			}
		}
		select {
		case <-done:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// reapRest collects the orphans that came to us. All commands must have been
// waited for: it takes any child.
func reapRest(limit time.Duration) (left leftover, err error) {
	began := time.Now()
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		switch {
		case err == unix.EINTR:
		case err == unix.ECHILD:
			return left, nil
		case err != nil:
			return left, fmt.Errorf("reap: %w", err)
		case pid > 0:
			left.count++
			left.took = time.Since(began)
		case time.Since(began) > limit:
			return left, fmt.Errorf("processes outlived the run: %v", children(os.Getpid()))
		default:
			time.Sleep(time.Millisecond)
		}
	}
}

// withTail adds the last thing that a run said on stderr.
func withTail(err error, path string) error {
	b, rerr := os.ReadFile(path)
	b = bytes.TrimSpace(b)
	if rerr != nil || len(b) == 0 {
		return err
	}
	if len(b) > 400 {
		b = b[len(b)-400:]
	}
	return fmt.Errorf("%w; stderr: %s", err, b)
}

// drain reads the end of a pipeline to its end.
func drain(fd int, each func([]byte) error) error {
	buf := make([]byte, pipeBytes)
	for {
		n, err := readSome(fd, buf)
		if err != nil {
			return fmt.Errorf("read the output: %w", err)
		}
		if n == 0 {
			return nil
		}
		if err := each(buf[:n]); err != nil {
			return err
		}
	}
}
