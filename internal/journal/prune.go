package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Prune throws away the logs in dir that are older than keep by their
// modification time, and flagged ones older than keepFlagged, with their flags;
// 0 keeps for ever. It never touches a log that a living process writes, nor
// anything but regular files named as logs and their flags. An old log without
// an end has lost its wrapper before that could flag it: it gets a flag now and
// is kept as long as the others. One that has an end and no flag went well, or
// somebody has acknowledged it by removing the flag.
//
// removed names every file that is gone, flags included. err joins what could
// not be looked at or removed; the rest is done all the same. Several may prune
// at once.
func Prune(dir string, now time.Time, keep, keepFlagged time.Duration) (removed []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	p := pruner{now: now, keep: keep, keepFlagged: keepFlagged}
	p.note(err)
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, logPrefix) {
			continue
		}
		if strings.HasSuffix(name, logSuffix) {
			p.note(p.log(filepath.Join(dir, name)))
		} else if log, is := strings.CutSuffix(name, flagSuffix); is && strings.HasSuffix(log, logSuffix) {
			p.note(p.orphan(filepath.Join(dir, log)))
		}
	}
	if err := errors.Join(p.failed...); err != nil {
		return p.removed, fmt.Errorf("prune session logs: %w", err)
	}
	return p.removed, nil
}

type pruner struct {
	now               time.Time
	keep, keepFlagged time.Duration
	removed           []string
	failed            []error
}

// note keeps an error for the end. A file that vanished was somebody else's to
// remove.
func (p *pruner) note(err error) {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.failed = append(p.failed, err)
	}
}

// over reports whether a file has outlived limit.
func (p *pruner) over(info fs.FileInfo, limit time.Duration) bool {
	return limit > 0 && p.now.Sub(info.ModTime()) > limit
}

// log decides about one log.
func (p *pruner) log(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || !p.over(info, p.keep) && !p.over(info, p.keepFlagged) {
		return nil
	}
	isFlagged, err := exists(path + flagSuffix)
	if err != nil || isFlagged && !p.over(info, p.keepFlagged) || !isFlagged && !p.over(info, p.keep) {
		return err
	}
	// It may go, unless it lives. The lock is held until it is gone, so that no
	// other pruner decides about it at the same time.
	f, err := openDead(path, info)
	if f == nil {
		return err
	}
	defer f.Close()
	if !isFlagged && !p.over(info, p.keepFlagged) && !ended(f) {
		return writeFlag(path, "killed", p.now, false)
	}
	if err := p.remove(path); err != nil {
		return err
	}
	if isFlagged {
		return p.remove(path + flagSuffix)
	}
	return nil
}

// orphan removes an old flag whose log is gone.
func (p *pruner) orphan(log string) error {
	if there, err := exists(log); there || err != nil {
		return err
	}
	info, err := os.Lstat(log + flagSuffix)
	if err != nil || !info.Mode().IsRegular() || !p.over(info, p.keepFlagged) {
		return err
	}
	return p.remove(log + flagSuffix)
}

func (p *pruner) remove(path string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	p.removed = append(p.removed, path)
	return nil
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// openDead opens and locks the log that info describes. It returns no file when
// a living process holds the log, or when the name means another file by now.
func openDead(path string, info fs.FileInfo) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	err = flock(f, unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		// After the lock: what was true before may have changed.
		var opened, named fs.FileInfo
		opened, err = f.Stat()
		if err == nil {
			named, err = os.Lstat(path)
		}
		if err == nil && os.SameFile(opened, named) && os.SameFile(opened, info) && opened.ModTime().Equal(info.ModTime()) {
			return f, nil
		}
	}
	_ = f.Close() // it was only read
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, err
}

// ended reports whether the log's last record is the end of its run, however
// that came out.
func ended(f *os.File) bool {
	var r infoReader
	rec, ok := r.last(f)
	return ok && rec.Msg == runEnd
}
