package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, mode fs.FileMode, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	rows := []struct {
		name, path string
		want       error
	}{
		{"missing", filepath.Join(dir, "none"), fs.ErrNotExist},
		{"a directory", dir, fs.ErrPermission},
		{"not executable", file("plain", 0o600, "#!/bin/sh\n"), fs.ErrPermission},
		{"no program", file("text", 0o700, "just words\n"), syscall.ENOEXEC},
		{"its interpreter is missing", file("script", 0o700, "#!/no/such/interpreter\n"), fs.ErrNotExist},
		{"empty", "", fs.ErrNotExist},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			before := descriptors(t)
			a, err := Start(Spec{Path: row.path, Env: bare, ID: "test"})
			if a != nil || !errors.Is(err, row.want) {
				t.Errorf("agent %v, error %v, want %v", a, err, row.want)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "start "+row.path+": ") {
				t.Errorf("error %q does not name the path", err)
			}
			if after := descriptors(t); after > before {
				t.Errorf("%d files open, %d before", after, before)
			}
			nobody(t)
		})
	}
}

// descriptors is how many of the low ones are in use.
func descriptors(t *testing.T) int {
	t.Helper()
	n := 0
	for fd := range 256 {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
			n++
		}
	}
	return n
}

// A run leaves no descriptor behind.
func TestDescriptorsAreClosed(t *testing.T) {
	once := func() {
		a := launch(t, "exit", "0")
		<-a.Exited()
		a.over(NewLadder(time.Second))
		for _, f := range []interface{ Close() error }{a.Stdin, a.Stdout, a.Stderr} {
			_ = f.Close()
		}
	}
	once()
	before := descriptors(t)
	once()
	if after := descriptors(t); after > before {
		t.Errorf("%d files open, %d before", after, before)
	}
}

func TestOwnSession(t *testing.T) {
	a := launch(t, "identity")
	n := a.numbers()
	if n[0] != a.PID() || n[1] != a.PID() || n[2] != a.PID() {
		t.Errorf("pid, group and session %v, want %d", n, a.PID())
	}
	if a.leader.PGID != a.PID() || a.leader.Start == 0 {
		t.Errorf("leader %+v", a.leader)
	}
	a.over(NewLadder(time.Second))
}

// An agent does not expect EAGAIN from its stdio.
func TestBlockingStdio(t *testing.T) {
	a := launch(t, "flags")
	if got := a.hear(); got != "0 0 0" {
		t.Errorf("O_NONBLOCK of stdin, stdout, stderr: %s", got)
	}
	a.over(NewLadder(time.Second))
}

// Nobody but the agent holds its ends: whoever does never lets the pipes end.
// The guard lives on meanwhile.
func TestThePipesEndWithTheAgent(t *testing.T) {
	a := launch(t, "parent")
	a.ready(1)
	if err := a.Stdin.Close(); err != nil {
		t.Fatal(err)
	}
	<-a.Exited()
	a.silent(soon())
	if !alive(a.GuardPID()) {
		t.Error("the guard has left before it was told to")
	}
	a.over(NewLadder(time.Second))
}

func TestExits(t *testing.T) {
	rows := []struct {
		part, arg string
		want      Exit
		text      string
	}{
		{"exit", "0", Exit{Code: 0}, "exit 0"},
		{"exit", "1", Exit{Code: 1}, "exit 1"},
		{"exit", "255", Exit{Code: 255}, "exit 255"},
		{"die", "15", Exit{Code: -1, Signal: syscall.SIGTERM}, "killed by SIGTERM"},
		{"die", "9", Exit{Code: -1, Signal: syscall.SIGKILL}, "killed by SIGKILL"},
	}
	for _, row := range rows {
		t.Run(row.text, func(t *testing.T) {
			a := launch(t, row.part, row.arg)
			<-a.Exited()
			if err := unix.Kill(a.PID(), 0); !errors.Is(err, unix.ESRCH) {
				t.Errorf("the agent was not reaped: %v", err)
			}
			td := a.over(NewLadder(time.Second))
			if td.Exit.Code != row.want.Code || td.Exit.Signal != row.want.Signal || td.Exit.String() != row.text {
				t.Errorf("%s (%+v), want %s", td.Exit, td.Exit, row.text)
			}
		})
	}
}

// End may be called in the moment in which the agent ends: the exit is told.
func TestEndMeetsExit(t *testing.T) {
	for range 5 {
		a := launch(t, "parent")
		a.ready(1)
		_ = a.Stdin.Close()
		td := a.over(NewLadder(partLife))
		if td.Exit.Code != 0 && td.Exit.Signal != syscall.SIGTERM {
			t.Errorf("%s, want its own exit or the ladder's", td.Exit)
		}
		if err := unix.Kill(a.PID(), 0); !errors.Is(err, unix.ESRCH) {
			t.Errorf("the agent was not reaped: %v", err)
		}
	}
}

func TestRusage(t *testing.T) {
	a := launch(t, "burn")
	<-a.Exited()
	td := a.over(NewLadder(time.Second))
	if td.Exit.User < 40*time.Millisecond || td.Exit.User > partLife {
		t.Errorf("user time %s", td.Exit.User)
	}
	if td.Exit.MaxRSS < 1<<20 || td.Exit.MaxRSS > 1<<31 {
		t.Errorf("peak memory %d bytes", td.Exit.MaxRSS)
	}
}

func TestBuffered(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	p := &Pipe{r}
	check := func(want int) {
		t.Helper()
		if got, err := p.Buffered(); got != want || err != nil {
			t.Errorf("%d, %v, want %d", got, err, want)
		}
	}
	check(0)
	_, _ = w.WriteString("hello")
	check(5)
	_, _ = p.Read(make([]byte, 2))
	check(3)
	w.Close()
	check(3)
	_, _ = p.Read(make([]byte, 8))
	check(0)
	p.Close()
	if _, err := p.Buffered(); err == nil {
		t.Error("no error of a closed pipe")
	}
}

// A read that waits ends by a deadline that is set meanwhile.
func TestPipeDeadline(t *testing.T) {
	a := launch(t, "wait")
	a.ready(1)
	ended := make(chan error)
	go func() {
		_, err := a.Stdout.Read(make([]byte, 1))
		ended <- err
	}()
	_ = a.Stdout.SetReadDeadline(time.Unix(1, 0))
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	a.over(NewLadder(partLife))
}
