package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrUnknown says that no log has such an id.
var ErrUnknown = errors.New("no session log of that id")

// AmbiguousError says that several runs have such an id.
type AmbiguousError struct {
	ID   string
	Logs []Info
}

func (e *AmbiguousError) Error() string {
	const most = 5
	var ids []string
	for i := range e.Logs {
		ids = append(ids, firstOf(e.Logs[i].RunID(), filepath.Base(e.Logs[i].Path)))
	}
	more := ""
	if len(ids) > most {
		more = fmt.Sprintf(" and %d more", len(ids)-most)
		ids = ids[len(ids)-most:]
	}
	slices.Reverse(ids) // the newest first
	return fmt.Sprintf("%q is %d runs: %s%s", e.ID, len(e.Logs), strings.Join(ids, ", "), more)
}

// Find is the one log that id names: a run's id, the agent's id of a session,
// the unique beginning of either, a log's file name, or a path. A path need
// not be in dir, nor a regular file: of a pipe nothing is read, and nothing but
// Path is set. The error is an ErrUnknown, an *AmbiguousError, which a session
// is that was resumed by a later run, or tells why the folder cannot be read.
func Find(dir, id string) (Info, error) {
	found, err := FindAll(dir, id)
	switch {
	case err != nil:
		return Info{}, err
	case len(found) > 1:
		return Info{}, &AmbiguousError{id, found}
	}
	return found[0], nil
}

// FindAll is Find for a session that may have several logs, one for each run
// that went on with it; the oldest comes first. There is at least one where the
// error is nil.
func FindAll(dir, id string) ([]Info, error) {
	if strings.ContainsRune(id, filepath.Separator) {
		return findPath(id)
	}
	if strings.HasSuffix(id, logSuffix) {
		if found, err := findPath(id); !errors.Is(err, fs.ErrNotExist) {
			return found, err
		}
	}
	all, err := List(dir)
	if err != nil {
		return nil, err
	}
	if found, err := match(all, id); found != nil || err != nil {
		return found, err
	}
	if id != "" {
		if found, err := findPath(id); err == nil {
			return found, nil
		}
	}
	return nil, fmt.Errorf("%w: %q in %s", ErrUnknown, id, dir)
}

// findPath is the log at a path.
func findPath(path string) ([]Info, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	i := Info{Path: path}
	switch {
	case info.IsDir():
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("is a directory")}
	case info.Mode().IsRegular():
		if i.Flagged, err = exists(path + flagSuffix); err != nil {
			return nil, err
		}
		var r infoReader
		if r.read(&i, 0); i.Err != nil && i.Modified.IsZero() {
			return nil, i.Err
		}
	}
	return []Info{i}, nil
}

// match are the logs that id names: by a whole id, or else by the beginning of
// one run's, or of one session's.
func match(all []Info, id string) ([]Info, error) {
	if id == "" {
		return nil, nil
	}
	var whole, part []Info
	owners := map[string]bool{} // of part: sessions, and runs that have none
	for _, i := range all {
		run := i.RunID()
		switch {
		case run == id || i.Session == id || filepath.Base(i.Path) == id:
			whole = append(whole, i)
		case run != "" && strings.HasPrefix(run, id):
			part = append(part, i)
			owners["run "+run] = true
		case i.Session != "" && strings.HasPrefix(i.Session, id):
			part = append(part, i)
			owners["session "+i.Session] = true
		}
	}
	switch {
	case whole != nil:
		return whole, nil
	case len(owners) > 1:
		return nil, &AmbiguousError{id, part}
	}
	return part, nil
}

// Acknowledge takes the flag off a log, so that it goes when the others of its
// age do. The error is fs.ErrNotExist where there was none.
func Acknowledge(log string) error {
	if err := os.Remove(log + flagSuffix); err != nil {
		return fmt.Errorf("acknowledge session log: %w", err)
	}
	return nil
}
