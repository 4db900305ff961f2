package registry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// blockSize is how much of a log is read and sent at a time.
const blockSize = 64 << 10

// events sends the records of the session log.
func (x *exchange) events(ctx context.Context) error {
	follow, err := x.flag("follow")
	if err != nil {
		return err
	}
	log, err := x.openLog(ctx)
	if err != nil {
		return err
	}
	defer log.Close()
	s := &stream{x: x, log: log}
	if err := s.start(x.req.query.Get("from"), follow); err != nil {
		return err
	}
	if err := s.begin(); err != nil || x.req.method == "HEAD" {
		return err
	}
	if err := s.send(ctx, follow); err != nil {
		return err
	}
	return s.end()
}

// openLog opens the log under the name that it has at this moment.
func (x *exchange) openLog(ctx context.Context) (*os.File, error) {
	log, err := openRegular(x.server.run.Entry().Log)
	if errors.Is(err, fs.ErrNotExist) { // it may have been renamed an instant ago
		s, statusErr := x.server.backend.Status(ctx)
		if statusErr != nil {
			return nil, statusErr
		}
		log, err = openRegular(s.Log)
	}
	if err != nil {
		return nil, refuse(503, "the session log cannot be opened: %v", err)
	}
	return log, nil
}

// openRegular opens a file that is nothing but a file.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, errors.Join(err, errors.New(path+" is no regular file"))
	}
	return f, nil
}

// stream sends whole lines of a log.
type stream struct {
	x      *exchange
	log    *os.File
	next   int64 // the first byte that was not sent; a line begins there
	looked int64 // no line ends between next and here
	buf    []byte
	out    []byte // a chunk with its frame
}

// start is where the first line begins that is sent: the end for those who
// follow and do not say, the start for those who want what is there.
func (s *stream) start(from string, follow bool) error {
	s.buf = make([]byte, blockSize)
	size, err := s.size()
	if err != nil {
		return err
	}
	switch {
	case from == "start" || from == "" && !follow:
		return nil
	case from == "now" || from == "":
		s.next, err = s.lastLine(0, size)
		return err
	}
	at, err := strconv.ParseInt(from, 10, 64)
	if err != nil || at < 0 {
		return refuse(400, "from is start, now, or a byte of the log")
	}
	if at > size {
		return refuse(416, "the log has %d bytes", size)
	}
	s.next, err = s.lineFrom(at, size)
	return err
}

func (s *stream) size() (int64, error) {
	info, err := s.log.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// lastLine is where the line begins that is not whole at the end, looking back
// no further than low; low if no line ends after it.
func (s *stream) lastLine(low, end int64) (int64, error) {
	buf := s.buf
	for end > low {
		from := max(low, end-blockSize)
		n, err := s.log.ReadAt(buf[:end-from], from)
		if err != nil && err != io.EOF {
			return low, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		end = from
	}
	return low, nil
}

// lineFrom is where the first line begins at or after a byte; the end of the
// file if none does yet, with which the rest of a line is left out later.
func (s *stream) lineFrom(at, size int64) (int64, error) {
	if at == 0 {
		return 0, nil
	}
	buf := s.buf
	for at--; at < size; {
		n, err := s.log.ReadAt(buf[:min(blockSize, size-at)], at)
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
			return at + int64(i) + 1, nil
		}
		if err != nil && err != io.EOF || n == 0 {
			return at, err
		}
		at += int64(n)
	}
	// In the middle of the last line, which has no end: from its beginning, for
	// there are only whole ones.
	return s.lastLine(0, size)
}

// begin sends the head of the answer.
func (s *stream) begin() error {
	fields := []string{"Content-Type", "application/x-ndjson"}
	if !s.x.req.old {
		fields = append(fields, "Transfer-Encoding", "chunked")
	}
	return s.x.write(head(200, fields...))
}

// send sends the lines that are there and, for those who follow, those that
// come, until the run is over.
func (s *stream) send(ctx context.Context, follow bool) error {
	for nothing := 0; ; {
		grown := s.x.server.backend.Grown() // before the look, so that nothing falls between
		last := !follow || s.x.server.over.Err() != nil
		before := s.next
		if err := s.lines(ctx); err != nil || last {
			return err
		}
		if s.next > before {
			nothing = 0
		} else {
			nothing++
		}
		select {
		case <-grown:
			s.rest(ctx, nothing)
		case <-s.x.server.over.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// rest keeps a log that says it has grown, but has not, from being looked at
// again and again: after its end it says so for ever.
func (s *stream) rest(ctx context.Context, times int) {
	if times < 2 {
		return
	}
	timer := time.NewTimer(min(time.Second, time.Duration(times)*10*time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.x.server.over.Done():
	case <-ctx.Done():
	}
}

// lines sends the whole lines that have not been sent.
func (s *stream) lines(ctx context.Context) error {
	size, err := s.size()
	if err != nil {
		return err
	}
	low := max(s.next, s.looked)
	end, err := s.lastLine(low, size)
	if err != nil {
		return err
	}
	s.looked = max(low, size)
	if end == low {
		return nil // no line has ended
	}
	for s.next < end && ctx.Err() == nil {
		b := s.buf[:min(blockSize, end-s.next)]
		n, err := s.log.ReadAt(b, s.next)
		if n == 0 {
			return err // somebody has cut the log
		}
		if err := s.chunk(b[:n]); err != nil {
			return err
		}
		s.next += int64(n)
	}
	return ctx.Err()
}

func (s *stream) chunk(b []byte) error {
	if s.x.req.old {
		return s.x.write(b)
	}
	s.out = strconv.AppendInt(s.out[:0], int64(len(b)), 16)
	s.out = append(s.out, "\r\n"...)
	s.out = append(s.out, b...)
	s.out = append(s.out, "\r\n"...)
	return s.x.write(s.out)
}

func (s *stream) end() error {
	if s.x.req.old {
		return nil
	}
	return s.x.write([]byte("0\r\n\r\n"))
}
