package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// childArgument makes this binary a child of a scenario. What follows it: kind, duration and any
// further words, which only serve to make the command line look like that of a real tool.
const childArgument = "__fakeagent-child"

func compileSpawn(_ *compiler, rest string) (action, error) {
	words := strings.Fields(rest)
	if len(words) < 2 {
		return nil, fmt.Errorf("too few words")
	}
	k, known := kinds[words[0]]
	if !known || k.inner {
		return nil, fmt.Errorf("unknown kind %q, want one of %s", words[0], kindNames())
	}
	d, err := time.ParseDuration(words[1])
	return func(a *agent) error { return a.spawn(words[0], d, words[2:]) }, err
}

func kindNames() string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		if !kinds[name].inner {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// spawn starts a child and returns once it is what its kind promises: in its session, deaf, stopped,
// orphaned. So nobody who reads the pid file needs to wait for anything else.
func (a *agent) spawn(name string, d time.Duration, argv []string) error {
	d = min(d, time.Until(a.death)) // the life limit binds the children too
	reader, ready, err := os.Pipe()
	if err != nil {
		return err
	}
	defer reader.Close()
	cmd, err := startChild(name, d, argv, ready, a.stdout)
	ready.Close()
	if err != nil {
		return err
	}
	said, err := io.ReadAll(reader) // to the end: each process of the kind writes a line and closes
	if err != nil {
		return err
	}
	k := kinds[name]
	switch {
	case k.leaves:
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("spawn %s: %w", name, err)
		}
	case k.stops:
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil {
			return fmt.Errorf("spawn %s: wait for the stop: %w", name, err)
		}
		// Stopped, it cannot end by itself. When we die first, the kernel wakes it with SIGHUP and
		// SIGCONT, because its process group is then an orphaned one.
		time.AfterFunc(d, func() { cmd.Process.Kill() })
	}
	if !k.leaves {
		a.children.Go(func() { cmd.Wait() }) // how it ends is of no interest, that it is reaped is
	}
	return a.recordChildren(name, string(said))
}

// recordChildren takes "kind pid" lines and appends them to the file that the test named.
func (a *agent) recordChildren(name, said string) error {
	words := strings.Fields(said)
	if len(words) == 0 {
		return fmt.Errorf("spawn %s: it ended before it was ready", name)
	}
	a.lastPid, _ = strconv.Atoi(words[len(words)-1]) // written by announce
	path := os.Getenv("FAKEAGENT_PIDS")
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(said)
	f.Close()
	return err
}

// waitChildren waits until the children have ended, daemons excepted.
func (a *agent) waitChildren() error {
	a.away(a.children.Wait)
	return nil
}

// startChild starts this binary again. Its stdin and stderr are /dev/null; so is its stdout, unless
// its kind holds ours open.
func startChild(name string, d time.Duration, argv []string, ready, stdout *os.File) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	k := kinds[name]
	cmd := exec.Command(self, append([]string{childArgument, name, d.String()}, argv...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: k.session, Setpgid: k.group}
	cmd.ExtraFiles = []*os.File{ready} // descriptor 3, see readyFD
	if k.stdout {
		cmd.Stdout = stdout
	}
	return cmd, cmd.Start()
}
