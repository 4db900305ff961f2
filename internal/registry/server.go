package registry

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// pace is how long things may take. A test has other ones.
type pace struct {
	read   time.Duration // of a request
	crowd  time.Duration // the same, while others find no place
	answer time.Duration // of the backend, to a question that is no waiting
	write  time.Duration // that a write may block
	drain  time.Duration // of the answers that are under way at the end
	force  time.Duration // of those that were cut off then
}

var usual = pace{
	read: 5 * time.Second, crowd: 250 * time.Millisecond, answer: 10 * time.Second, write: 10 * time.Second,
	drain: 200 * time.Millisecond, force: time.Second,
}

// How many connections there are at a time. Those that stay may not take up the
// whole of it, so that a question always finds a place; others than the owner,
// who get here only where the folder was opened for them, have their own few.
const (
	connections = 32
	staying     = 24
	strangers   = 4
)

// server answers on a run's socket. One goroutine accepts; each connection has
// one of its own, and one request.
type server struct {
	run      *Run
	backend  Backend
	listener *net.UnixListener
	pace     pace

	places, stays, strange chan struct{} // a value for each that is taken

	over   context.Context // done when the run is
	end    context.CancelFunc
	ending Ending // set before that

	ctx  context.Context // of every answer; it outlives over by what answers are given to end
	stop context.CancelFunc

	mu    sync.Mutex
	conns map[*exchange]time.Time // since when
	all   sync.WaitGroup
}

// tune is for tests.
var tune = func(*server) {}

func newServer(r *Run, b Backend, path string) (*server, error) {
	if err := os.Remove(path); gone(err) != nil { // of a dead run of that id
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, err
	}
	s := &server{
		run: r, backend: b, listener: l, pace: usual,
		places: make(chan struct{}, connections), stays: make(chan struct{}, staying), strange: make(chan struct{}, strangers),
		conns: map[*exchange]time.Time{},
	}
	s.over, s.end = context.WithCancel(context.Background())
	s.ctx, s.stop = context.WithCancel(context.Background())
	tune(s)
	s.all.Add(1)
	go s.accept()
	return s, nil
}

// accept takes connections until the listener is closed.
func (s *server) accept() {
	defer s.all.Done()
	for s.place() {
		conn, err := s.listener.AcceptUnix()
		if err != nil {
			<-s.places
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// No descriptors left, most likely: it passes.
			select {
			case <-time.After(50 * time.Millisecond):
			case <-s.over.Done():
				return
			}
			continue
		}
		s.all.Add(1)
		go s.receive(conn)
	}
}

// place waits for a free place; false when the run is over.
func (s *server) place() bool {
	for {
		crowded := time.NewTimer(s.pace.crowd)
		select {
		case s.places <- struct{}{}:
			crowded.Stop()
			return true
		case <-s.over.Done():
			crowded.Stop()
			return false
		case <-crowded.C:
			s.hurry(time.Now())
		}
	}
}

// hurry ends the connections on which nothing whole has been asked for a while.
func (s *server) hurry(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for x, since := range s.conns {
		if !x.asked.Load() && now.Sub(since) >= s.pace.crowd {
			_ = x.conn.SetReadDeadline(time.Unix(1, 0))
		}
	}
}

// receive serves one connection, and gives its place back.
func (s *server) receive(conn *net.UnixConn) {
	defer s.all.Done()
	defer func() { <-s.places }()
	defer conn.Close()
	x := &exchange{server: s, conn: conn}
	s.mu.Lock()
	s.conns[x] = time.Now()
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.conns, x)
		s.mu.Unlock()
	}()
	defer x.recover()
	if x.peer, x.strange = s.peer(conn); x.strange != "" {
		select {
		case s.strange <- struct{}{}:
			defer func() { <-s.strange }()
		default:
			return
		}
	}
	x.serve()
}

// peer is the uid at the other end, and why it may not ask.
func (s *server) peer(conn *net.UnixConn) (uid int, why string) {
	uid, err := connPeer(conn)
	switch {
	case err != nil:
		return -1, "permission denied: who asks cannot be seen: " + err.Error()
	case uid != 0 && uid != os.Geteuid():
		return uid, denial(os.Geteuid())
	}
	return uid, ""
}

func connPeer(conn *net.UnixConn) (uid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	var peerErr error
	err = raw.Control(func(fd uintptr) { uid, peerErr = peerOf(int(fd)) })
	return uid, errors.Join(err, peerErr)
}

// close ends the server; see Run.Close.
func (s *server) close(e Ending) {
	s.ending = e
	s.end()
	_ = s.listener.Close() // which removes the socket
	ended := make(chan struct{})
	go func() {
		s.all.Wait()
		close(ended)
	}()
	if within(ended, s.pace.drain) {
		s.stop()
		return
	}
	s.stop()
	s.mu.Lock()
	for x := range s.conns {
		_ = x.conn.Close()
	}
	s.mu.Unlock()
	within(ended, s.pace.force) // a backend that does not return is not ours to end
}

func within(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
