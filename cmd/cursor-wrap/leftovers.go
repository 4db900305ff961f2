package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"cursor-wrap/internal/process"
)

// runningPrefix begins the name of the empty file that a run holds locked in
// the log folder for as long as it lives.
const runningPrefix = ".running-"

// running is that file of a run that lives. Nil is one that could not be made;
// the log has the same folder and tells what is wrong with it.
type running struct{ f *os.File }

// holdRunning marks a run as living, by a lock that dies with it.
func holdRunning(dir, id string) *running {
	f, err := os.OpenFile(filepath.Join(dir, runningPrefix+id), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		_ = f.Close()
		return nil
	}
	return &running{f}
}

// note writes down the cgroup of the present turn: who comes after us may be in
// another one.
func (r *running) note(leaf string) {
	if r != nil {
		_ = r.f.Truncate(0)
		_, _ = r.f.WriteAt([]byte(leaf), 0) // without it only our own cgroup is looked through
	}
}

func (r *running) release() {
	if r != nil {
		_ = os.Remove(r.f.Name())
		_ = r.f.Close()
	}
}

// buryDead removes the marks of runs that nobody holds, and returns the
// cgroups that stand in them. It reports whether there was any: then, and only
// then, it is worth while to look through every process of the machine.
func buryDead(dir string) (leaves []string, died bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, false
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), runningPrefix) {
			continue
		}
		if leaf, dead := bury(filepath.Join(dir, e.Name())); dead {
			died = true
			leaves = append(leaves, leaf)
		}
	}
	return leaves, died
}

// bury removes the mark of a run if nobody holds it.
func bury(path string) (leaf string, dead bool) {
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return "", false
	}
	b, _ := io.ReadAll(f)
	return string(b), !errors.Is(os.Remove(path), os.ErrNotExist)
}

// told is what a person reads of processes that carry a dead run's mark.
func told(marked []process.Proc) string {
	return "left by a dead run, by the look of their environment, and not ended: " + process.List(marked)
}
