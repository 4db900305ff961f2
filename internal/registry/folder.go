package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// What stands in the state folder: run/<run id>/ with these files.
const (
	runsName   = "run"
	recordName = "run.json"
	halfName   = ".run.json" // until it is whole
	lockName   = "lock"
	socketName = "socket"
)

// recordMax bounds how much of a record is read; a few kilobytes are usual.
const recordMax = 1 << 20

// halfMadeFor is how long a run may take from its folder to its record.
const halfMadeFor = time.Minute

// errHalfMade is a record that is not there, or cannot be made sense of.
var errHalfMade = errors.New("no record of a run")

// validID keeps an id from leading out of the folder, or hiding in it.
func validID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	return strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// ownFolder makes a folder of ours. One that is somebody else's is refused: its
// owner could put there what it likes.
func ownFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if uid := owner(info); uid != os.Geteuid() {
		return fmt.Errorf("%s belongs to uid %d and not to us, uid %d", path, uid, os.Geteuid())
	}
	return nil
}

func owner(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

// openRuns opens the folder of all runs. Where there is none, there is no
// error either. Nothing that is done in it can lead out of it, whoever owns it.
func openRuns(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(filepath.Join(dir, runsName))
	switch {
	case err == nil:
		return root, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	}
	return nil, denied(dir, err)
}

// denied says whom a folder belongs to that we may not read.
func denied(dir string, err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("read the records of runs: %w", err)
	}
	for _, path := range []string{filepath.Join(dir, runsName), dir, filepath.Dir(dir)} {
		if info, statErr := os.Stat(path); statErr == nil {
			return fmt.Errorf("read the records of runs: %w: %s belongs to uid %d; only its owner and root may", err, path, owner(info))
		}
	}
	return fmt.Errorf("read the records of runs: %w", err)
}

// readDir lists the entries of a folder below root.
func readDir(root *os.Root, name string) ([]fs.DirEntry, error) {
	d, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.ReadDir(-1)
}

// load reads the record of a run. What is no such record is errHalfMade; a
// folder that has left is fs.ErrNotExist.
func load(root *os.Root, id string) (Entry, error) {
	f, err := root.OpenFile(filepath.Join(id, recordName), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		if _, gone := root.Lstat(id); gone != nil {
			return Entry{}, gone
		}
		return Entry{}, fmt.Errorf("%w: %v", errHalfMade, err) // that the file is missing does not mean that the run has left
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return Entry{}, errHalfMade // a pipe would hold us up
	}
	b, err := io.ReadAll(io.LimitReader(f, recordMax+1))
	if err != nil || len(b) > recordMax {
		return Entry{}, errHalfMade
	}
	var e Entry
	if err := json.Unmarshal(b, &e); err != nil || e.RunID != id || e.UID != owner(info) {
		return Entry{}, errHalfMade // root acts on records, and nobody speaks for another
	}
	return e, nil
}

// lock is what trying the lock of a run came to.
type lock uint8

const (
	free     lock = iota // nobody holds it; we do now
	held                 // somebody does
	missing              // there is none
	untold               // the file system has no locks, or we may not
	replaced             // it was removed while we took it: somebody else has cleared up
)

// try takes the lock of a run without waiting. The file, when there is one, is
// the caller's to close, which gives the lock back.
func try(root *os.Root, id string, flags, how int) (*os.File, lock) {
	name := filepath.Join(id, lockName)
	f, err := root.OpenFile(name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing
	}
	if err != nil {
		return nil, untold
	}
	state := untold
	switch err := flock(int(f.Fd()), how|unix.LOCK_NB); err {
	case nil:
		state = free
	case unix.EWOULDBLOCK:
		state = held
	}
	if state == held {
		_ = f.Close()
		return nil, held
	}
	// After the lock: what was true before may have changed.
	opened, err := f.Stat()
	named, namedErr := root.Lstat(name)
	if err != nil || namedErr != nil || !os.SameFile(opened, named) {
		_ = f.Close()
		return nil, replaced
	}
	return f, state
}

// flock ends only by an answer: a signal of the runtime may interrupt it.
func flock(fd, how int) error {
	for {
		if err := unix.Flock(fd, how); err != unix.EINTR {
			return err
		}
	}
}

// clearRun removes the folder of a run whose lock the caller holds: the lock
// last, so that whoever comes meanwhile sees either the lock or nothing.
func clearRun(root *os.Root, id string) error {
	entries, err := readDir(root, id)
	if err != nil {
		return gone(err)
	}
	for _, name := range append([]string{recordName}, names(entries)...) { // the record first: from then on nobody lists it
		if name == lockName {
			continue
		}
		if err := gone(root.RemoveAll(filepath.Join(id, name))); err != nil {
			return err
		}
	}
	return errors.Join(gone(root.Remove(filepath.Join(id, lockName))), gone(root.Remove(id)))
}

func names(entries []fs.DirEntry) []string {
	list := make([]string, len(entries))
	for i, e := range entries {
		list[i] = e.Name()
	}
	return list
}

// gone lets pass that what was to be removed is not there.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
