package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"cursor-wrap/internal/journal"
	"cursor-wrap/internal/process"
)

// What should be free where the logs are, in bytes. A long run writes some MiB.
const (
	leastFree = 16 << 20
	goodFree  = 1 << 30
)

// probeLogs does in the folder of the logs what a run does there.
func (d *doctor) probeLogs() process.Finding {
	const advice = "make it writable, or choose another folder with --log-dir"
	if err := d.chooseLogDir(); err != nil {
		return process.Finding{Status: process.Broken, Found: err.Error(), Advice: "set HOME, or choose a folder with --log-dir"}
	}
	made, err := makeFolders(d.logDir)
	defer made.remove()
	if err == nil {
		err = writeAndRemove(d.logDir)
	}
	if err != nil {
		return process.Finding{Status: process.Broken, Found: err.Error(), Advice: advice}
	}
	f := process.Finding{Status: process.Fine, Found: d.logDir}
	if len(made) > 0 {
		f.Found += " can be made"
	}
	if free, total, err := space(d.logDir); err == nil {
		f.Found += fmt.Sprintf(", %s of %s free", bytesShort(free), bytesShort(total))
		switch {
		case free < leastFree:
			f.Status, f.Advice = process.Broken, "make room: a run goes on without its log, but nobody can say afterwards what happened"
		case free < goodFree:
			f.Status, f.Advice = process.Doubtful, "make room, or choose another folder with --log-dir"
		}
	}
	all, err := journal.List(d.logDir)
	if err != nil {
		return process.Finding{Status: process.Doubtful, Found: f.Found + ", " + err.Error(), Advice: "make it readable for this user"}
	}
	flagged := len(slices.DeleteFunc(slices.Clone(all), func(i journal.Info) bool { return !i.Flagged }))
	f.Found += fmt.Sprintf(", %s, %d flagged", plural(int64(len(all)), "log"), flagged)
	if flagged > 0 && f.Advice == "" {
		f.Advice = "look at them with cursor-wrap logs --flagged"
	}
	return f
}

// folders are those that were made, the outermost first.
type folders []string

// makeFolders makes a folder and those above it that are missing, as for a log.
func makeFolders(dir string) (folders, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	var missing folders
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		missing = append(missing, at)
	}
	slices.Reverse(missing)
	for n, at := range missing {
		if err := os.Mkdir(at, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return missing[:n], err
		}
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: dir, Err: unix.ENOTDIR}
	}
	return missing, err
}

// remove takes them away again, unless somebody has put something there
// meanwhile.
func (f folders) remove() {
	for n := len(f) - 1; n >= 0; n-- {
		_ = unix.Rmdir(f[n]) // it is in use by now, which is no business of ours
	}
}

// writeAndRemove writes a file to the disk, as a log is.
func writeAndRemove(dir string) error {
	f, err := os.CreateTemp(dir, ".doctor-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString("cursor-wrap doctor\n")
	return errors.Join(err, f.Sync(), f.Close())
}

// space is how many bytes are free for us where dir is, and how many there are.
func space(dir string) (free, total int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), int64(st.Blocks) * int64(st.Bsize), nil
}

// probeState does what a run does to be seen by the others: it makes a folder
// that is nobody else's, and a socket. A run goes on without.
func (d *doctor) probeState() process.Finding {
	const lacks = "; without it a run goes on, but ps, inspect, kill and the others do not find it"
	unseen := func(found, advice string) process.Finding {
		return process.Finding{Status: process.Doubtful, Found: found, Advice: advice + lacks}
	}
	dir, err := stateIn(d.stateDir)
	if err != nil {
		return unseen(err.Error(), "set HOME")
	}
	dir = filepath.Join(dir, "run")
	made, err := makeFolders(dir)
	defer made.remove()
	if err != nil {
		return unseen(err.Error(), "make it writable")
	}
	var st unix.Stat_t
	switch err := unix.Stat(dir, &st); {
	case err != nil:
		return unseen(err.Error(), "make it readable")
	case int(st.Uid) != os.Geteuid():
		return unseen(fmt.Sprintf("%s belongs to user %d, not to %d", dir, st.Uid, os.Geteuid()), "remove it, or chown it to this user")
	case st.Mode&0o077 != 0:
		return process.Finding{Status: process.Doubtful, Found: fmt.Sprintf("%s is open to others (mode %o)", dir, st.Mode&0o777),
			Advice: "runs are for their owner alone: chmod 700 " + dir}
	}
	own := filepath.Join(dir, newRunID())
	if err := os.Mkdir(own, 0o700); err != nil {
		return unseen(err.Error(), "make it writable")
	}
	defer os.Remove(own)
	where, err := bindSocket(own)
	if err != nil {
		return unseen(fmt.Sprintf("%s: no unix socket can be there: %v", dir, err), "use a home folder on a file system that has sockets, or with a shorter path")
	}
	f := process.Finding{Status: process.Fine, Found: dir}
	if len(made) > 0 {
		f.Found += " can be made"
	}
	if f.Found += ", and a unix socket there"; where != own {
		f.Found += fmt.Sprintf(" stands in %s, because the path is too long for one", filepath.Dir(where))
	}
	return f
}

// bindSocket makes a socket in a folder and removes it. Where the path would be
// too long for one, as unix(7) has it, it is tried in a folder for temporary
// files. where is the folder that it was in.
func bindSocket(dir string) (where string, err error) {
	const name, most = "socket", len(unix.RawSockaddrUnix{}.Path) - 1
	for _, temp := range []string{os.TempDir(), "/tmp"} {
		if len(dir)+len("/"+name) <= most {
			break
		}
		if dir, err = os.MkdirTemp(temp, "cursor-wrap-doctor-"); err != nil {
			return "", err
		}
		defer os.Remove(dir)
	}
	path := filepath.Join(dir, name)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	unix.CloseOnExec(fd)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return "", fmt.Errorf("bind %s: %w", path, err)
	}
	defer os.Remove(path)
	return dir, unix.Listen(fd, 1)
}
