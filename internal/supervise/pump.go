package supervise

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"cursor-wrap/internal/events"
	"cursor-wrap/internal/format"
)

const (
	// readSize is what one read may take. It is the size of the agent's
	// stdout pipe, so that all that arrived while a batch was synced is the
	// next batch.
	readSize = 1 << 20

	// bufSize is room for the longest line that is held, the carriage return
	// that may belong to its ending, and a whole read behind them.
	bufSize = events.MaxLine + 1 + readSize

	// pauseGrace is how long the rest of a line may take before its beginning
	// is passed on without it. A writer that is merely slower than we are
	// delivers the next piece well within it.
	pauseGrace = 5 * time.Millisecond

	// pauseMost is how long the beginning of a line is kept back from one who
	// writes on, but slowly.
	pauseMost = 250 * time.Millisecond

	// pieceSize is how much of an endless line is logged in one record.
	pieceSize = 1 << 20

	// headSize is how much of an endless line is looked at to learn its type.
	headSize = 64 << 10

	// shareFrom is how many bytes of whole lines two parse together.
	shareFrom = 128 << 10

	// most is how many events go into one batch: a megabyte of nothing but
	// newlines must not become a hundred megabytes of events.
	most = 4096

	// held is the shortest stay in a write that is told as a time in which
	// nobody listened; below it is the normal work on a batch.
	held = 50 * time.Millisecond
)

// Source is the agent's stdout.
type Source interface {
	io.Reader
	SetReadDeadline(time.Time) error
	Buffered() (int, error) // bytes that a read would return without waiting
}

// Recorder is the part of the session log that the pump fills. A record is
// written, and by the log's own policy synced, when Commit returns.
type Recorder interface {
	Begin(recv time.Time)
	Line(line []byte, eol string, as events.Storage)
	Part(piece []byte, last bool, eol string)
	Commit()
}

// batch is what one read brought.
type batch struct {
	at     time.Time // received
	until  time.Time // logged and forwarded
	logged time.Time // logged
	events []seen
	bytes  int
	err    error // of stdout, once
}

// seen is an event, or a row of plain ones of which only the last is kept.
type seen struct {
	events.Event
	lines int
}

// plain reports whether an event says no more than that the agent works, so
// that the last of a row of such tells all of them. A stream is nine tenths
// of these.
func plain(ev *events.Event) bool {
	return ev.Call == nil && ev.Task == nil && ev.Ended == nil && ev.Prompt == nil &&
		ev.SessionID == "" && ev.Progress() && ev.Kind != events.BackgroundTimeout
}

// pump carries the stream from the agent to the caller: read what there is,
// find the lines in it, record them, one write to the log, one write to
// stdout, and only then tell the owner. It is one goroutine, because the
// kernel's pipe is all the queue that is needed and each hand-over would cost
// more than the work.
type pump struct {
	src Source
	log Recorder
	out format.Output
	now func() time.Time

	batches chan *batch // what was seen; closed at the end of the stream
	spare   chan *batch // those that the owner has done with

	busy     atomic.Int64 // Unix ms at which the present batch was received; 0 while reading
	stopping atomic.Bool

	buf    []byte
	tail   int            // where the present line begins
	sent   int            // what lies before it was logged and forwarded; tail or beyond
	end    int            // where the bytes end
	long   bool           // the present line is passed on in pieces and not held
	head   events.Event   // what the head of a long line told
	outErr error          // of stdout; from then on the stream is only logged
	crash  error          // set when the pump ended by a panic
	text   []byte         // the beginning of the last line that was not JSON
	ends   []int          // of the lines that are being taken
	parsed []events.Event // what they say
	help   chan share     // to one who parses beside us; nil where there is one processor
	helped chan struct{}
	cur    *batch    // being filled
	recv   time.Time // when the last bytes came
	since  time.Time // since when the beginning of a line is kept back; zero if none is
}

// newPump takes a buffer that has room for the longest line and a whole read.
func newPump(buf []byte, src Source, log Recorder, out format.Output, now func() time.Time) *pump {
	p := &pump{
		src: src, log: log, out: out, now: now, buf: buf,
		batches: make(chan *batch, 1),
		spare:   make(chan *batch, 2),
	}
	p.spare <- &batch{}
	p.spare <- &batch{}
	return p
}

// stop ends the pump once it has read what is in the pipe now, whoever may
// hold its other end. Any goroutine may call it.
func (p *pump) stop() {
	p.stopping.Store(true)
	_ = p.src.SetReadDeadline(time.Unix(1, 0)) // a source without deadlines ends by EOF alone
}

// run returns at the end of the stream.
func (p *pump) run() {
	defer close(p.batches)
	defer func() {
		// A stream that we cannot read is our own failure, and not a reason to
		// leave the agent to itself.
		if r := recover(); r != nil {
			p.crash = fmt.Errorf("internal error: %v\n%s", r, debug.Stack())
		}
	}()
	if runtime.GOMAXPROCS(0) > 1 {
		p.help, p.helped = make(chan share), make(chan struct{})
		go p.helper()
		defer close(p.help)
	}
	for {
		n, err := p.read()
		if p.begin(p.now()); n > 0 {
			p.recv = p.cur.at
		}
		p.take(n)
		if err != nil {
			p.finish()
		}
		p.hand()
		if err != nil {
			return
		}
	}
}

// read waits for the next bytes. While it holds the beginning of a line it
// waits for the rest only a moment before it passes on what there is.
func (p *pump) read() (int, error) {
	impatient := p.end > p.sent
	if impatient {
		until := time.Now().Add(pauseGrace)
		if p.since.IsZero() {
			p.since = time.Now()
		} else if most := p.since.Add(pauseMost); most.Before(until) {
			until = most
		}
		_ = p.src.SetReadDeadline(until)
	} else {
		p.since = time.Time{}
	}
	for {
		if p.stopping.Load() {
			return p.drain()
		}
		n, err := p.src.Read(p.buf[p.end : p.end+readSize])
		late := errors.Is(err, os.ErrDeadlineExceeded)
		if late && n == 0 && impatient {
			p.flush()
			p.since = time.Time{}
		}
		if impatient {
			// Taken back before stopping is looked at: stop sets its flag
			// first and its deadline second, so one of the two is seen.
			_ = p.src.SetReadDeadline(time.Time{})
			impatient = false
		}
		switch {
		case n > 0: // whatever the error is, it comes again
			return n, nil
		case err != nil && !late:
			return 0, err
		}
	}
}

// drain reads what is in the pipe at this moment and no more, so that somebody
// who holds its other end and keeps writing does not keep us.
func (p *pump) drain() (int, error) {
	_ = p.src.SetReadDeadline(time.Time{})
	left, err := p.src.Buffered()
	n := 0
	for left = min(left, readSize); err == nil && n < left; {
		var m int
		m, err = p.src.Read(p.buf[p.end+n : p.end+left])
		n += m
		if errors.Is(err, os.ErrDeadlineExceeded) { // stop sets it after its flag, which we saw before it
			err = p.src.SetReadDeadline(time.Time{})
		}
	}
	return n, io.EOF
}

// begin starts, or goes on with, the batch of what was received at that moment.
func (p *pump) begin(at time.Time) {
	p.busy.Store(at.UnixMilli())
	if p.cur == nil {
		p.cur = <-p.spare
		*p.cur = batch{events: p.cur.events[:0]}
	}
	p.cur.at = at
	p.log.Begin(at)
}

// hand gives the batch to the owner. What it may do to it ends when the owner
// puts it back among the spare ones.
func (p *pump) hand() {
	p.cur.until = p.now()
	if p.cur.logged.IsZero() {
		p.cur.logged = p.cur.until
	}
	p.batches <- p.cur
	p.cur = nil
	p.busy.Store(0)
}
