package supervise

import (
	"io"
	"os"
	"runtime"
	"sync"
	"time"
)

// wire is a pipe in memory: a writer never waits, and a read returns what one
// write brought, so that a test chooses the chunks. Its deadlines run by the
// clock of the bubble.
type wire struct {
	mu     sync.Mutex
	cond   *sync.Cond
	chunks [][]byte
	ended  bool // by the writer
	closed bool // by the reader
	until  time.Time
	alarm  *time.Timer
	hidden bool                 // Buffered answers, but a read waits: the pump was not scheduled yet
	asked  func()               // what asking for Buffered costs the owner
	slow   func() time.Duration // how long a read takes to return with its bytes
}

func newWire() *wire {
	w := &wire{}
	w.cond = sync.NewCond(&w.mu)
	return w
}

func (w *wire) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.chunks = append(w.chunks, append([]byte(nil), b...))
	w.cond.Broadcast()
	return len(b), nil
}

// end is the writer's close.
func (w *wire) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.cond.Broadcast()
}

// hide makes reads wait although there is something to read.
func (w *wire) hide(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hidden = on
	w.cond.Broadcast()
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.read(b)
	if n > 0 && w.slow != nil {
		time.Sleep(w.slow())
	}
	return n, err
}

func (w *wire) read(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		switch {
		case w.closed:
			return 0, os.ErrClosed
		case !w.until.IsZero() && !time.Now().Before(w.until):
			return 0, os.ErrDeadlineExceeded
		case len(w.chunks) > 0 && !w.hidden:
			n := copy(b, w.chunks[0])
			if w.chunks[0] = w.chunks[0][n:]; len(w.chunks[0]) == 0 {
				w.chunks = w.chunks[1:]
			}
			return n, nil
		case len(w.chunks) == 0 && w.ended:
			return 0, io.EOF
		}
		w.cond.Wait()
	}
}

func (w *wire) SetReadDeadline(at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.alarm != nil {
		w.alarm.Stop()
		w.alarm = nil
	}
	w.until = at
	if !at.IsZero() {
		w.alarm = time.AfterFunc(time.Until(at), func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.cond.Broadcast()
		})
	}
	return nil
}

func (w *wire) Buffered() (int, error) {
	if w.asked != nil {
		w.asked()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, c := range w.chunks {
		n += len(c)
	}
	return n, nil
}

func (w *wire) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.cond.Broadcast()
	return nil
}

func (w *wire) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// sink is the reader of our stdout. It can stop reading, and it can leave.
type sink struct {
	mu     sync.Mutex
	book   *book // checks that nothing comes before it is in the log
	got    []byte
	writes []int         // their sizes
	at     []time.Time   // and when they came
	gate   chan struct{} // while set, a write waits until it is closed
	refuse error
	quit   bool // a write that waited ends its goroutine: the process has exited
}

func (s *sink) Write(b []byte) (int, error) {
	s.mu.Lock()
	gate := s.gate
	s.mu.Unlock()
	if gate != nil {
		<-gate
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quit {
		runtime.Goexit()
	}
	if s.refuse != nil {
		return 0, s.refuse
	}
	s.book.forwarded(b)
	s.got = append(s.got, b...)
	s.writes = append(s.writes, len(b))
	s.at = append(s.at, time.Now())
	return len(b), nil
}

// block makes writes wait until the returned function is called.
func (s *sink) block() (release func()) {
	gate := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate = gate
	return func() {
		s.mu.Lock()
		s.gate = nil
		s.mu.Unlock()
		close(gate)
	}
}

func (s *sink) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = err
}

func (s *sink) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.got)
}
