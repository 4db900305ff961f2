package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"cursor-wrap/internal/process"
)

// runningPrefix begins the name of the empty file that a run holds locked in
// the log folder for as long as it lives.
const runningPrefix = ".running-"

// holdRunning marks this run as living, by a lock that dies with it. It
// reports whether another run has died without taking its mark away: then, and
// only then, it is worth while to look through every process of the machine.
func holdRunning(dir, id string) (release func(), died bool) {
	path := filepath.Join(dir, runningPrefix+id)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	release = func() {
		if f != nil {
			_ = os.Remove(path)
			_ = f.Close()
		}
	}
	if err != nil {
		return release, false // the log has the same folder and tells what is wrong with it
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return release, false
	}
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, runningPrefix) && name != runningPrefix+id {
			died = removeIfDead(filepath.Join(dir, name)) || died
		}
	}
	return release, died
}

// removeIfDead removes the mark of a run that nobody holds.
func removeIfDead(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return false
	}
	return !errors.Is(os.Remove(path), os.ErrNotExist)
}

// told is what a person reads of processes that carry a dead run's mark.
func told(marked []process.Proc) string {
	return "left by a dead run, by the look of their environment, and not ended: " + process.List(marked)
}
