package journal

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// file is what the writer needs of the open log; tests give it worse ones.
type file interface {
	// writev appends the slices as if they were one and says how many bytes
	// arrived. It uses vec up.
	writev(vec [][]byte) (int, error)
	// sync returns when everything that was written is on the disk.
	sync() error
	Close() error
}

// osFile is a real file.
type osFile struct{ *os.File }

// iovMax is how many slices one call takes: IOV_MAX on Linux and on macOS.
const iovMax = 1024

func (f *osFile) writev(vec [][]byte) (int, error) {
	fd := int(f.Fd())
	return writeAll(vec, func(some [][]byte) (int, error) { return unix.Writev(fd, some) })
}

// writeAll calls write until everything is written. A file that is almost full
// takes the beginning and refuses only the rest, so a short write is not yet a
// failure: the next call tells the cause.
func writeAll(vec [][]byte, write func([][]byte) (int, error)) (written int, err error) {
	for len(vec) > 0 {
		n, err := write(vec[:min(len(vec), iovMax)])
		if n > 0 {
			written += n
			vec = drop(vec, n)
		}
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return written, err
		case n <= 0:
			return written, io.ErrShortWrite // else an endless loop
		}
	}
	return written, nil
}

// drop removes the first n bytes.
func drop(vec [][]byte, n int) [][]byte {
	for n > 0 && n >= len(vec[0]) {
		n -= len(vec[0])
		vec = vec[1:]
	}
	if n > 0 {
		vec[0] = vec[0][n:]
	}
	return vec
}

// lockShared says to pruners that the log is in use.
func lockShared(f *os.File) error { return flock(f, unix.LOCK_SH) }

// flock ends only by an answer: a signal of the runtime may interrupt it.
func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if err != unix.EINTR {
			return err
		}
	}
}

// renameChecked renames unless the new name exists, where the system cannot do
// both in one step. Names hold a millisecond and a session id, so the moment
// between the two is no practical danger.
func renameChecked(from, to string) error {
	switch _, err := os.Lstat(to); {
	case err == nil:
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return os.Rename(from, to)
}
