package supervise

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cursor-wrap/internal/events"
	"cursor-wrap/internal/format"
	"cursor-wrap/internal/process"
)

// sized is a thinking line of n bytes, without its end.
func sized(n int) []byte {
	const head, tail = `{"type":"thinking","subtype":"delta","text":"`, `"}`
	return []byte(head + strings.Repeat("x", n-len(head)-len(tail)) + tail)
}

// around are the cuts that matter for a line about as long as can be held: its
// newline comes with its end, alone, or after a pause.
func around(line []byte) map[string][]chunk {
	last := len(line) - 100
	return map[string][]chunk{
		"newline with the end":   {{line[:last], 0}, {append(bytes.Clone(line[last:]), '\n'), 0}},
		"newline alone":          {{line, 0}, {[]byte("\n"), 0}},
		"newline after a pause":  {{line, time.Second}, {[]byte("\n"), 0}},
		"a pause before the end": {{line[:last], time.Second}, {append(bytes.Clone(line[last:]), '\n'), 0}},
		"CR LF with the end":     {{line[:last], 0}, {append(bytes.Clone(line[last:]), '\r', '\n'), 0}},
	}
}

// TestLongestLine: at the limit every byte still comes through, and the line is
// one event, whatever its kind.
func TestLongestLine(t *testing.T) {
	for _, n := range []int{events.MaxLine - 1, events.MaxLine, events.MaxLine + 1} {
		for name, chunks := range around(sized(n)) {
			t.Run(fmt.Sprintf("%d %s", n-events.MaxLine, name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := carry(t, nil, chunks)
					input := join(chunks)
					if !bytes.Equal(c.sink.got, input) || !bytes.Equal(c.log.raw, input) || len(c.lines) != 1 {
						t.Errorf("%d bytes forwarded, %d logged, want %d; %d events", len(c.sink.got), len(c.log.raw), len(input), len(c.lines))
					}
					if c.lines[0].Name() != "thinking/delta" {
						t.Errorf("event %s", c.lines[0].Name())
					}
				})
			})
		}
	}
}

// The limit is the line's length and not where a read happened to end; a replay
// sees only the length.
func TestLimitIsTheLength(t *testing.T) {
	for n, want := range map[int]events.Kind{events.MaxLine: events.Thinking, events.MaxLine + 1: events.Oversize} {
		for name, chunks := range around(sized(n)) {
			t.Run(fmt.Sprintf("%d %s", n-events.MaxLine, name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if got := carry(t, nil, chunks).lines[0].Kind; got != want {
						t.Errorf("kind %d, want %d", got, want)
					}
				})
			})
		}
	}
}

// TestPausedLongResult: the beginning that a pause let through belongs to the
// result that --output-format json prints.
func TestPausedLongResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line := `{"type":"result","subtype":"success","is_error":false,"result":"` + strings.Repeat("x", events.MaxLine+3<<20) + `"}`
		src, got := newWire(), &bytes.Buffer{}
		out := format.NewResult(got)
		p := newPump(reserve(t), src, &book{}, out, NewClock())
		go p.run()
		go func() {
			_, _ = src.Write([]byte(line[:1000]))
			time.Sleep(time.Second)
			_, _ = src.Write([]byte(line[1000:] + "\n"))
			src.end()
		}()
		var c carried
		c.collect(t, p)
		if err := out.Finish(nil); err != nil || got.String() != line+"\n" {
			t.Errorf("%v, %d bytes, want %d", err, got.Len(), len(line)+1)
		}
	})
}

// endless is a source of one line that is made as it is read.
type endless struct {
	head string
	left int
	tail string
}

func (e *endless) Read(b []byte) (int, error) {
	if e.head != "" {
		n := copy(b, e.head)
		e.head = e.head[n:]
		return n, nil
	}
	if e.left > 0 {
		n := min(len(b), e.left, 64<<10)
		for i := range b[:n] {
			b[i] = 'x'
		}
		e.left -= n
		return n, nil
	}
	if e.tail == "" {
		return 0, io.EOF
	}
	n := copy(b, e.tail)
	e.tail = e.tail[n:]
	return n, nil
}

func (*endless) SetReadDeadline(time.Time) error { return nil }
func (*endless) Buffered() (int, error)          { return 0, nil }

// tally counts what is logged and forwarded, and keeps nothing of it.
type tally struct{ logged, forwarded, parts, lines, batch, largest int }

func (*tally) Begin(time.Time)                                  {}
func (c *tally) Line(line []byte, eol string, _ events.Storage) { c.count(line, eol); c.lines++ }
func (c *tally) Part(piece []byte, _ bool, eol string)          { c.count(piece, eol); c.parts++ }
func (c *tally) Commit()                                        { c.batch = 0 }
func (c *tally) count(b []byte, eol string) {
	c.logged += len(b) + len(eol)
	c.batch += len(b)
	c.largest = max(c.largest, c.batch)
}

func (c *tally) Write(b []byte) (int, error) {
	if c.forwarded += len(b); c.forwarded > c.logged {
		panic("forwarded before it was logged")
	}
	return len(b), nil
}

// TestEndlessLine: a line of 40 MiB costs no more memory than one of 16, and a
// result among such lines is still a result.
func TestEndlessLine(t *testing.T) {
	const size = 40 << 20
	src := &endless{`{"type":"result","subtype":"success","is_error":false,"result":"`, size, `"}` + "\n" + thinkLine}
	total := len(src.head) + size + len(src.tail)
	count := &tally{}
	p := newPump(reserve(t), src, count, format.NewStream(count), NewClock())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	go p.run()
	var c carried
	c.collect(t, p)
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("%d bytes of heap for one line", grown)
	}
	if count.forwarded != total || count.logged != total {
		t.Errorf("%d bytes forwarded, %d logged, want %d", count.forwarded, count.logged, total)
	}
	if count.largest > pieceSize {
		t.Errorf("%d bytes at once in the log, want %d at most", count.largest, pieceSize)
	}
	if len(c.lines) != 2 || c.lines[0].Kind != events.Oversize || c.lines[0].Ended == nil || c.lines[1].Kind != events.Thinking {
		t.Errorf("events %+v", c.lines)
	}
	if c.halves < 24 {
		t.Errorf("only %d signs of life during the line", c.halves)
	}
}

// realPump is a pump on a pipe of the kernel's.
func realPump(t *testing.T) (*pump, *carried, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	c := &carried{log: &book{}}
	c.sink = &sink{book: c.log}
	p := newPump(reserve(t), &process.Pipe{File: r}, c.log, format.NewStream(c.sink), NewClock())
	return p, c, w
}

// TestStopDrains: what was written before stop is read, although somebody still
// holds the pipe; and nothing is waited for.
func TestStopDrains(t *testing.T) {
	for _, n := range []int{0, 1, 4096, 60_000} {
		p, c, w := realPump(t)
		input := bytes.Repeat([]byte("0123456\n"), n/8+1)[:n]
		if _, err := w.Write(input); err != nil {
			t.Fatal(err)
		}
		p.stop()
		go p.run()
		c.collect(t, p)
		if !bytes.Equal(c.sink.got, input) || !bytes.Equal(c.log.raw, input) {
			t.Errorf("%d bytes forwarded, %d logged, want %d", len(c.sink.got), len(c.log.raw), n)
		}
	}
}

// TestStopWhileSomebodyWrites: a holder who never stops writing does not keep us.
func TestStopWhileSomebodyWrites(t *testing.T) {
	for range 20 {
		stopWhileWriting(t)
	}
}

// And of what he wrote before stop nothing is lost.
func TestStopLosesNothing(t *testing.T) {
	for range 300 {
		if forwarded, before := stopWhileWriting(t); forwarded < before {
			t.Fatalf("%d bytes forwarded, %d were written before stop", forwarded, before)
		}
	}
}

// overtaken is a source on which the second half of stop, the deadline, comes
// after the pump has seen the first, the flag.
type overtaken struct{ *wire }

func (o overtaken) Buffered() (int, error) {
	_ = o.SetReadDeadline(time.Unix(1, 0))
	return o.wire.Buffered()
}

func TestStopIsOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := carried{log: &book{}}
		c.sink = &sink{book: c.log}
		src := overtaken{newWire()}
		_, _ = src.Write([]byte(okLine))
		p := newPump(reserve(t), src, c.log, format.NewStream(c.sink), NewClock())
		p.stopping.Store(true)
		go p.run()
		c.collect(t, p)
		if string(c.sink.got) != okLine {
			t.Errorf("forwarded %q", c.sink.got)
		}
	})
}

// growing is a pipe whose holder writes on while it is drained.
type growing struct{ *wire }

func (g growing) Buffered() (int, error) {
	n, err := g.wire.Buffered()
	_, _ = g.Write([]byte("and on\n"))
	return n, err
}

// What a holder writes after stop is not waited for, and not read either.
func TestStopDrainsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := carried{log: &book{}}
		c.sink = &sink{book: c.log}
		src := growing{newWire()}
		_, _ = src.Write([]byte(okLine))
		p := newPump(reserve(t), src, c.log, format.NewStream(c.sink), NewClock())
		p.stop()
		go p.run()
		c.collect(t, p)
		if string(c.sink.got) != okLine {
			t.Errorf("forwarded %q", c.sink.got)
		}
	})
}

// stopWhileWriting says how much was forwarded, and how much was written when
// stop was called.
func stopWhileWriting(t *testing.T) (forwarded, before int64) {
	t.Helper()
	p, c, w := realPump(t)
	var written atomic.Int64
	quit, quitted, busy := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(quitted)
		for i := 0; ; i++ {
			select {
			case <-quit:
				return
			default:
			}
			n, err := fmt.Fprintf(w, "%d some line of a holder\n", i)
			written.Add(int64(n))
			if err != nil {
				return
			}
			if i == 1000 {
				close(busy)
			}
		}
	}()
	go p.run()
	stopped := make(chan int64)
	go func() {
		<-busy
		before := written.Load()
		p.stop()
		stopped <- before
	}()
	c.collect(t, p) // hangs if stop does not stop
	before = <-stopped
	close(quit)
	p.src.(*process.Pipe).Close() // lets a full pipe's writer go
	<-quitted
	if !bytes.Equal(c.sink.got, c.log.raw) {
		t.Error("the log holds something else")
	}
	return int64(len(c.sink.got)), before
}
