package registry

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"cursor-wrap/internal/process"
)

// ErrLives is why a record is not removed.
var ErrLives = errors.New("the run lives")

// boot and namespace do not change while we live.
var (
	boot      = sync.OnceValue(process.Boot)
	namespace = sync.OnceValue(process.Namespace)
)

// here reports whether the pids of an entry mean to us what they meant to the
// run: the same boot of the same machine, and the same pid namespace.
func (e *Entry) here() bool {
	return e.Boot != "" && e.Start != 0 && e.Boot == boot() && e.Namespace == namespace()
}

// Here reports whether the pids of the entry mean to us what they meant to the
// run.
func (e *Entry) Here() bool { return e.here() }

// elsewhere reports whether the run was on another machine, whose locks need not
// be seen here: that nobody holds one says nothing.
func (e *Entry) elsewhere() bool {
	host, err := os.Hostname()
	return e.Boot != boot() && (err != nil || e.Host != host)
}

// foreignFor is how long the record of a run on another machine is kept that
// nobody can be seen to hold.
const foreignFor = 30 * 24 * time.Hour

// untellable reports whether nobody here can say if a run lives.
func untellable(root *os.Root, e *Entry) bool {
	info, err := root.Lstat(e.RunID)
	return e.elsewhere() && err == nil && time.Since(info.ModTime()) < foreignFor
}

// running reports whether the very process that wrote the entry can be seen.
func (e *Entry) running() bool {
	if !e.here() {
		return false
	}
	start, ok := process.Identity(e.PID)
	return ok && start == e.Start
}

// lives reports whether a run does. Who cannot be seen may still hold the lock,
// which other pid namespaces and, on some file systems, other machines see too.
// Where there are no locks, only what can be seen to be dead is.
func lives(root *os.Root, e *Entry) bool {
	if e.running() {
		return true
	}
	// Shared, so that two who look do not take each other for the run.
	f, state := try(root, e.RunID, os.O_RDONLY, unix.LOCK_SH)
	if f != nil {
		_ = f.Close()
	}
	return state == held || state == untold && !e.here()
}

// survey is what stands in the folder of all runs.
type survey struct {
	root       *os.Root // nil without a folder
	live, dead []Entry  // oldest first
	halfMade   []string // folders without a record that makes sense
}

func (s *survey) close() {
	if s.root != nil {
		_ = s.root.Close()
	}
}

func look(dir string) (*survey, error) {
	root, err := openRuns(dir)
	if root == nil {
		return &survey{}, err
	}
	s := &survey{root: root}
	entries, err := readDir(root, ".")
	if err != nil {
		s.close()
		return nil, denied(dir, err)
	}
	for _, d := range entries {
		if id := d.Name(); d.IsDir() && validID(id) {
			s.sort(id)
		}
	}
	for _, list := range [][]Entry{s.live, s.dead} {
		slices.SortFunc(list, func(a, b Entry) int {
			return cmp.Or(a.At.Compare(b.At.Time), cmp.Compare(a.RunID, b.RunID))
		})
	}
	return s, nil
}

func (s *survey) sort(id string) {
	e, err := load(s.root, id)
	switch {
	case errors.Is(err, errHalfMade):
		s.halfMade = append(s.halfMade, id)
	case err != nil: // it has left meanwhile
	case lives(s.root, &e):
		s.live = append(s.live, e)
	case untellable(s.root, &e): // left to its own machine
	default:
		s.dead = append(s.dead, e)
	}
}

// List is the runs that live, oldest first. What cannot be read, or is not
// whole yet, is left out; a folder that is missing holds none.
func List(dir string) (live []Entry, err error) {
	s, err := look(dir)
	if err != nil {
		return nil, err
	}
	defer s.close()
	return s.live, nil
}

// Dead is the runs that have ended without removing their records, oldest
// first. What is left in their leaves is to be ended before the records go.
func Dead(dir string) ([]Entry, error) {
	s, err := look(dir)
	if err != nil {
		return nil, err
	}
	defer s.close()
	return s.dead, nil
}

// Sweep removes the records of dead runs, but for those whose leaf is still
// there: somebody may run in it, whom process.Sweep ends. It returns all the
// dead; Removed tells which records are gone. Those that somebody else removes
// at the same time are left out. err joins what could not be removed; the rest
// is done all the same.
func Sweep(dir string) (dead []Entry, err error) {
	s, err := look(dir)
	if err != nil {
		return nil, err
	}
	defer s.close()
	var failed []error
	for _, e := range s.dead {
		if !leafThere(e.Leaf) {
			err := bury(s.root, e.RunID)
			if errors.Is(err, fs.ErrNotExist) {
				continue // somebody else was faster
			}
			failed = append(failed, told(err))
			e.Removed = err == nil
		}
		dead = append(dead, e)
	}
	for _, id := range s.halfMade {
		failed = append(failed, told(gone(bury(s.root, id))))
	}
	return dead, errors.Join(failed...)
}

// told leaves out what is no failure: that a run lives after all.
func told(err error) error {
	if err == nil || errors.Is(err, ErrLives) {
		return nil
	}
	return fmt.Errorf("remove the record of a dead run: %w", err)
}

// remove removes the record of a dead run, whatever is left of it; ErrLives if
// the run is not dead. One that is gone already is no error.
func remove(dir string, e Entry) error {
	if !validID(e.RunID) {
		return fmt.Errorf("remove the record of a run: %q is no run id", e.RunID)
	}
	root, err := openRuns(dir)
	if root == nil {
		return err
	}
	defer root.Close()
	if err := gone(bury(root, e.RunID)); err != nil {
		return fmt.Errorf("remove the record of run %s: %w", e.RunID, err)
	}
	return nil
}

func leafThere(leaf string) bool {
	if leaf == "" {
		return false
	}
	_, err := os.Lstat(leaf)
	return !errors.Is(err, fs.ErrNotExist)
}

// bury removes the folder of a run that is dead, under its lock. It looks again
// once it has the lock; fs.ErrNotExist if there is nothing to remove any more.
func bury(root *os.Root, id string) error {
	if err := removable(root, id); err != nil {
		return err
	}
	f, state := lockDead(root, id)
	if f != nil {
		defer f.Close()
	}
	switch state {
	case held:
		return ErrLives
	case missing, replaced:
		return fs.ErrNotExist
	}
	e, err := load(root, id)
	switch {
	case errors.Is(err, errHalfMade):
		if state == untold {
			return ErrLives // nothing proves the contrary
		}
		return clearRun(root, id)
	case err != nil:
		return err
	case e.running() || state == untold && !e.here() || untellable(root, &e):
		return ErrLives
	}
	removePrivate(e)
	return clearRun(root, id)
}

// removable is nil for a folder with a record, and for one without that has
// stood for so long that no run is about to write it. The lock of any other is
// not to be touched, not even for an instant: its run would not get it.
func removable(root *os.Root, id string) error {
	_, err := load(root, id)
	switch {
	case errors.Is(err, errHalfMade) && old(root, id):
		return nil
	case errors.Is(err, errHalfMade):
		return ErrLives
	}
	return err
}

// lockDead takes the lock of a run that seems to be dead. Others who sweep, or
// only look, hold it for an instant.
func lockDead(root *os.Root, id string) (f *os.File, state lock) {
	for range 20 {
		if f, state = try(root, id, os.O_RDWR, unix.LOCK_EX); state != held {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	// Where the lock is missing and the record is not, nobody is clearing up,
	// who removes the record first. A file that is made beside somebody who is
	// would keep the folder from going.
	if state == missing && removable(root, id) == nil {
		return try(root, id, os.O_RDWR|os.O_CREATE, unix.LOCK_EX)
	}
	return f, state
}

// old reports whether the folder of a run has stood for longer than a run takes
// to write its record.
func old(root *os.Root, id string) bool {
	info, err := root.Lstat(id)
	return err == nil && time.Since(info.ModTime()) > halfMadeFor
}
