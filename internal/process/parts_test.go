package process

import (
	"fmt"
	"os"
	ossignal "os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func forever() { select {} }

// ready says who is what it should be.
func ready(name string) { fmt.Println(name, os.Getpid()) }

// quick keeps the race detector from holding a program's exit up for a second.
const quick = "GORACE=atexit_sleep_ms=0"

// bare is the environment of those who have thrown theirs away.
var bare = []string{quick}

// fork starts another part with our stdin, stdout and stderr.
func fork(env []string, attr *syscall.SysProcAttr, words ...string) int {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	pid, err := syscall.ForkExec(self, append([]string{self, partArg}, words...), &syscall.ProcAttr{
		Env: env, Files: []uintptr{0, os.Stdout.Fd(), 2}, Sys: attr,
	})
	if err != nil {
		panic(err)
	}
	return pid
}

// spawn starts a part as a kind of child, as in "setsid:deaf" or "wait": in a
// session of its own; as a daemon, without a parent or an environment; stopped.
func spawn(kind string) {
	how, part, ok := strings.Cut(kind, ":")
	if !ok {
		how, part = "", kind
	}
	words := strings.Split(part, ",")
	attr := &syscall.SysProcAttr{}
	switch how {
	case "setsid":
		attr.Setsid = true
	case "daemon":
		attr.Setsid = true
		pid := fork(os.Environ(), attr, append([]string{"orphaner"}, words...)...)
		_, _ = syscall.Wait4(pid, nil, 0, nil)
		return
	case "stopped":
		attr.Setsid = true
		pid := fork(os.Environ(), attr, words...)
		_, _ = syscall.Wait4(pid, nil, syscall.WUNTRACED, nil)
		fmt.Println("stopped", pid)
		return
	}
	fork(os.Environ(), attr, words...)
}

// stdinEnds waits until the other end of stdin is closed.
func stdinEnds() { _, _ = os.Stdin.Read(make([]byte, 1)) }

func init() {
	parts["exit"] = func(args []string) {
		code, _ := strconv.Atoi(args[0])
		os.Exit(code)
	}
	parts["die"] = func(args []string) {
		sig, _ := strconv.Atoi(args[0])
		_ = unix.Kill(os.Getpid(), unix.Signal(sig))
		forever()
	}
	parts["identity"] = func([]string) {
		sid, _ := unix.Getsid(0)
		fmt.Println(os.Getpid(), unix.Getpgrp(), sid)
	}
	parts["flags"] = func([]string) {
		var out []any
		for fd := range 3 {
			flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
			if err != nil {
				flags = -1
			}
			out = append(out, flags&unix.O_NONBLOCK)
		}
		fmt.Println(out...)
	}
	parts["wait"] = func([]string) {
		ready("wait")
		forever()
	}
	parts["deaf"] = func([]string) {
		ossignal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		ready("deaf")
		forever()
	}
	// asked is deaf, too, but says when it was asked to leave.
	parts["asked"] = func([]string) {
		term := make(chan os.Signal, 1)
		ossignal.Notify(term, syscall.SIGTERM)
		ready("asked")
		for range term {
			fmt.Println("term", os.Getpid())
		}
	}
	parts["halt"] = func([]string) {
		_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
		forever()
	}
	// parent starts the children that it is told to and leaves when its stdin
	// ends.
	parts["parent"] = func(kinds []string) {
		for _, kind := range kinds {
			spawn(kind)
		}
		ready("parent")
		stdinEnds()
	}
	// orphaner leaves a child without a parent and without an environment.
	parts["orphaner"] = func(words []string) {
		fork(bare, nil, words...)
	}
	parts["burn"] = func([]string) {
		var ru unix.Rusage
		for ru.Utime.Nano() < int64(50*time.Millisecond) {
			_ = unix.Getrusage(unix.RUSAGE_SELF, &ru)
		}
	}
	// bystander is a stranger: it leaves when its stdin ends.
	parts["bystander"] = func([]string) {
		ready("bystander")
		stdinEnds()
	}
}
