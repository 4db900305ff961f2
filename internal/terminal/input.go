package terminal

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// news is what a reader of keys is woken for, apart from keys.
type news uint32

const (
	resized news = 1 << iota // the terminal has another size
	resumed                  // we were stopped and go on
	leaving                  // whoever waits for the reader wants it to end
	ended                    // Close
)

// input reads a terminal until it is woken.
type input struct {
	fd    int
	r, w  *os.File // a byte in it wakes the reader
	rfd   int
	flags atomic.Uint32

	mu     sync.Mutex
	users  int
	closed bool
}

func newInput(fd int) (*input, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &input{fd: fd, r: r, w: w, rfd: int(r.Fd())}, nil
}

// wake tells the reader, who may come later only.
func (i *input) wake(n news) {
	if i.flags.Or(uint32(n)) != 0 {
		return // the byte is there already
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.closed || i.users > 0 {
		_, _ = i.w.Write([]byte{0}) // it holds one byte at most
	}
}

// enter is called by whoever is going to read, leave afterwards: the pipe is
// kept for them.
func (i *input) enter() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return ErrClosed
	}
	i.users++
	return nil
}

func (i *input) leave() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.users--
	i.release()
}

func (i *input) close() {
	i.wake(ended)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	i.release()
}

func (i *input) release() {
	if i.closed && i.users == 0 {
		_, _ = i.r.Close(), i.w.Close()
	}
}

// read waits for keys or news, at most d where that is not below zero. deaf
// waits for news only. io.EOF is what the terminal's end-of-file key gives in
// line mode, and what a terminal that is gone may give.
func (i *input) read(b []byte, d time.Duration, deaf bool) (n int, got news, err error) {
	fd := i.fd
	if deaf {
		fd = -1
	}
	keys, woken, err := readable(fd, i.rfd, d)
	switch {
	case errors.Is(err, unix.EINTR):
		return 0, 0, nil
	case err != nil:
		return 0, 0, err
	case woken:
		return 0, i.take(), nil
	case !keys:
		return 0, 0, nil
	}
	switch n, err = unix.Read(i.fd, b); {
	case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		return 0, 0, nil
	case errors.Is(err, unix.EIO):
		return 0, 0, ErrHangup
	case err == nil && n == 0:
		return 0, 0, io.EOF
	}
	return max(n, 0), 0, err
}

// take empties the pipe before the flags, so that what is told in between is
// not lost.
func (i *input) take() news {
	var b [1]byte
	_, _ = unix.Read(i.rfd, b[:])
	return news(i.flags.Swap(0))
}
