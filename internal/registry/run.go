package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// Run is our own run in the registry. The methods of a nil Run do nothing: a
// run whose state folder cannot be written goes on without an entry.
type Run struct {
	folder string // absolute
	root   *os.Root
	lockFD int // not an os.File, which would give the lock up when nobody uses it

	mu    sync.Mutex
	entry Entry
	over  bool // nothing is written any more

	server *server // by mu; nil before Serve
	once   sync.Once
}

// Register writes the entry of this run below the state folder dir, with the
// path of its socket and our uid filled in, and holds a lock there until Close, or until
// the process ends in whatever way.
func Register(dir string, e Entry) (*Run, error) {
	r, err := register(dir, e)
	if err != nil {
		return nil, fmt.Errorf("register the run: %w", err)
	}
	return r, nil
}

func register(dir string, e Entry) (*Run, error) {
	if !validID(e.RunID) {
		return nil, fmt.Errorf("%q is no run id", e.RunID)
	}
	dir, err := filepath.Abs(dir) // the folder that we are in may change
	if err != nil {
		return nil, err
	}
	runs := filepath.Join(dir, runsName)
	// What the state folder allows to whom is its owner's choice; below, nobody
	// else has rights.
	if err := errors.Join(ownFolder(dir), ownFolder(runs)); err != nil {
		return nil, err
	}
	if err := os.Chmod(runs, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(runs)
	if err != nil {
		return nil, err
	}
	r := &Run{folder: filepath.Join(runs, e.RunID), root: root, entry: e}
	if r.lockFD, err = hold(root, e.RunID); err != nil {
		_ = root.Close()
		return nil, err
	}
	r.entry.UID = os.Geteuid() // whom the socket answers
	r.entry.Socket, err = placeSocket(r.folder, e.RunID)
	if err == nil {
		err = r.write()
	}
	if err != nil {
		_ = r.leave() // the first error tells more
		return nil, err
	}
	return r, nil
}

// hold makes the folder of a run and locks it. A folder that a dead run of that
// id has left is taken over.
func hold(root *os.Root, id string) (fd int, err error) {
	for range 10 {
		if err := root.Mkdir(id, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return -1, err
		} else if err != nil {
			if err := takeOver(root, id); err != nil {
				return -1, err
			}
		}
		f, state := try(root, id, os.O_RDWR|os.O_CREATE, unix.LOCK_EX)
		switch state {
		case held:
			return -1, fmt.Errorf("run %s is registered already", id)
		case missing, replaced:
			continue // somebody clears up after an older run of that id
		}
		if f == nil {
			return -1, fmt.Errorf("%s: the lock cannot be opened", filepath.Join(root.Name(), id))
		}
		// The lock belongs to what the descriptors share, and lives as long as
		// one of them.
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		_ = f.Close()
		return fd, err
	}
	return -1, fmt.Errorf("%s: it is removed as often as it is made", filepath.Join(root.Name(), id))
}

// takeOver looks whether a folder that is there already can become ours.
func takeOver(root *os.Root, id string) error {
	info, err := root.Lstat(id)
	if err != nil {
		return gone(err)
	}
	path := filepath.Join(root.Name(), id)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is no folder", path)
	case owner(info) != os.Geteuid():
		return fmt.Errorf("%s belongs to uid %d and not to us, uid %d", path, owner(info), os.Geteuid())
	}
	e, err := load(root, id)
	if err == nil && lives(root, &e) {
		return fmt.Errorf("run %s is registered already", id)
	}
	if err == nil {
		removePrivate(e)
	}
	return root.Chmod(id, 0o700)
}

// write replaces the record in one step.
func (r *Run) write() error {
	b, err := json.Marshal(&r.entry)
	if err != nil {
		return err
	}
	half := filepath.Join(r.entry.RunID, halfName)
	if err := r.root.RemoveAll(half); err != nil { // of a process that was killed in between
		return err
	}
	f, err := r.root.OpenFile(half, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = r.root.Rename(half, filepath.Join(r.entry.RunID, recordName))
	}
	if err != nil {
		_ = r.root.Remove(half)
	}
	return err
}

// Entry is how the entry stands at this moment.
func (r *Run) Entry() Entry {
	if r == nil {
		return Entry{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entry
}

// Update changes the entry, on the disk in one step. The run id and the socket
// stay. What asks on the socket gets the new one even where it cannot be
// written.
func (r *Run) Update(change func(*Entry)) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return nil
	}
	id, socket := r.entry.RunID, r.entry.Socket
	change(&r.entry)
	r.entry.RunID, r.entry.Socket = id, socket
	if err := r.write(); err != nil {
		return fmt.Errorf("update the record of the run: %w", err)
	}
	return nil
}

// Serve answers on the run's socket until Close.
func (r *Run) Serve(b Backend) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || r.server != nil {
		return errors.New("serve the run's socket: it is over, or served already")
	}
	s, err := newServer(r, b, r.entry.Socket)
	if err != nil {
		return fmt.Errorf("serve the run's socket: %w", err)
	}
	r.server = s
	return nil
}

// Close tells whoever waits how the run came out, lets answers end that are
// under way, as long as that takes no time to speak of, and removes every
// trace. The log is closed by then, so that those who follow it get all of it.
// Nothing of the server is left on return, as long as the backend returns when
// its context ends.
func (r *Run) Close(e Ending) {
	if r == nil {
		return
	}
	r.once.Do(func() {
		r.mu.Lock()
		r.over = true
		s := r.server
		r.mu.Unlock()
		if s != nil {
			s.close(e)
		}
		_ = r.leave() // what is left is swept by the next run
	})
}

// leave removes the run's folder and gives its lock back.
func (r *Run) leave() error {
	removePrivate(r.entry)
	err := clearRun(r.root, r.entry.RunID)
	_ = unix.Close(r.lockFD)
	_ = r.root.Close()
	return err
}
