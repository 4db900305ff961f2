package supervise

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cursor-wrap/internal/events"
	"cursor-wrap/internal/format"
	"cursor-wrap/internal/journal"
	"cursor-wrap/internal/process"
)

// chunk is one write of the agent and how long it takes until the next one.
type chunk struct {
	bytes []byte
	pause time.Duration
}

// carried is what came out of a pump.
type carried struct {
	log    *book
	sink   *sink
	lines  []events.Event // without the Partial ones
	halves int
	most   int // events in the largest batch
}

// carry sends chunks through a pump, in a bubble that the caller made.
func carry(t *testing.T, rec Recorder, chunks []chunk) carried {
	t.Helper()
	c := carried{log: &book{}}
	c.sink = &sink{book: c.log}
	if rec == nil {
		rec = c.log
	} else {
		c.log.synthetic = true // another log keeps the order
	}
	src := newWire()
	p := newPump(reserve(t), src, rec, format.NewStream(c.sink), NewClock())
	go p.run()
	go func() {
		for _, ch := range chunks {
			_, _ = src.Write(ch.bytes)
			time.Sleep(ch.pause)
		}
		src.end()
	}()
	c.collect(t, p)
	return c
}

// told stands for a line whose event was left out in favour of a later one.
var told = events.Event{Kind: 255}

// collect is the owner: it takes the batches to the last one.
func (c *carried) collect(t *testing.T, p *pump) {
	t.Helper()
	var last time.Time
	for b := range p.batches {
		if b.at.Before(last) {
			t.Errorf("a batch of %s after one of %s", b.at, last)
		}
		last = b.at
		c.most = max(c.most, len(b.events))
		for _, s := range b.events {
			if s.lines == 0 {
				c.halves++
			}
			for i := range s.lines {
				if i < s.lines-1 { // of a row of plain events only the last is told
					c.lines = append(c.lines, told)
					continue
				}
				c.lines = append(c.lines, s.Event)
			}
		}
		p.spare <- b
	}
}

// split cuts input into chunks with pauses, by chance.
func split(rnd *rand.Rand, input []byte) []chunk {
	pauses := []time.Duration{0, 0, 0, time.Millisecond, 4 * time.Millisecond, pauseGrace, 6 * time.Millisecond, time.Second}
	var chunks []chunk
	for len(input) > 0 {
		n := 1 + rnd.IntN(len(input))
		if rnd.IntN(2) == 0 {
			n = 1 + rnd.IntN(min(len(input), 7))
		}
		chunks = append(chunks, chunk{input[:n], pauses[rnd.IntN(len(pauses))]})
		input = input[n:]
	}
	return chunks
}

// lineEvents is what the lines of input mean, one by one.
func lineEvents(input []byte) []events.Event {
	var all []events.Event
	for len(input) > 0 {
		line, rest, found := bytes.Cut(input, []byte("\n"))
		if found {
			line = bytes.TrimSuffix(line, []byte("\r"))
		}
		all = append(all, events.Parse(line))
		input = rest
	}
	return all
}

// check compares what came out with what went in.
func (c *carried) check(t *testing.T, input []byte, raw []byte) {
	t.Helper()
	if !bytes.Equal(c.sink.got, input) {
		t.Errorf("forwarded %.200q\nwant %.200q", c.sink.got, input)
	}
	if !bytes.Equal(raw, input) {
		t.Errorf("logged %.200q\nwant %.200q", raw, input)
	}
	if c.log.early != "" {
		t.Error(c.log.early)
	}
	want := lineEvents(input)
	if len(c.lines) != len(want) {
		t.Fatalf("%d events, want %d", len(c.lines), len(want))
	}
	for i := range want {
		if got := c.lines[i]; got == told {
			if !plain(&want[i]) {
				t.Errorf("line %d: %v %s was not told", i, want[i].Kind, want[i].Name())
			}
		} else if got.Kind != want[i].Kind || got.Name() != want[i].Name() || got.Storage != want[i].Storage {
			t.Errorf("line %d: %v %s, want %v %s", i, got.Kind, got.Name(), want[i].Kind, want[i].Name())
		}
	}
}

// noise is a stream of everything that an agent was ever seen to write, and of
// what it was not.
func noise(rnd *rand.Rand) []byte {
	words := []string{
		initLine, thinkLine, startLine, okLine, "\n", "\n", "\r\n", "\r", "\x00", "\xff\xfe", "é", "\u2028",
		"plain text", "{", `{"type":"assistant"}`, `{"a":"` + strings.Repeat("x", 300) + `"}`, "\"", "\\", "\r\r\n", "\n\n\n",
	}
	var b []byte
	for range rnd.IntN(30) {
		b = append(b, words[rnd.IntN(len(words))]...)
	}
	return b
}

// TestPumpIsTransparent: whatever the bytes, the chunks and the pauses.
func TestPumpIsTransparent(t *testing.T) {
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		input := noise(rnd)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := carry(t, nil, split(rnd, input))
				c.check(t, input, c.log.raw)
			})
		})
	}
}

// TestPumpThroughJournal: the same with the real log, read back.
func TestPumpThroughJournal(t *testing.T) {
	dir := t.TempDir()
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		input := noise(rnd)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, err := journal.Open(journal.Options{Dir: dir, Start: time.Now(), Sync: journal.None, Level: slog.LevelDebug})
				if err != nil {
					t.Fatal(err)
				}
				c := carry(t, log, split(rnd, input))
				if err := log.Close(); err != nil {
					t.Fatal(err)
				}
				f, err := os.Open(log.Path())
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				var raw bytes.Buffer
				if _, err := journal.WriteRaw(&raw, f); err != nil {
					t.Fatal(err)
				}
				c.check(t, input, raw.Bytes())
			})
		})
	}
}

// TestHalfLines: what the agent wrote is forwarded a moment after it paused,
// newline or not, and the line is one event when it is whole.
func TestHalfLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := carry(t, nil, []chunk{
			{[]byte("ab"), 3 * time.Millisecond}, {[]byte("cd"), time.Second},
			{[]byte("ef"), time.Second}, {[]byte("\nxy\nz"), time.Second}, {[]byte("\n"), 0},
		})
		c.check(t, []byte("abcdef\nxy\nz\n"), c.log.raw)
		var got []string
		from := 0
		for i, n := range c.sink.writes {
			got = append(got, fmt.Sprintf("%s %q", c.sink.at[i].Sub(began), c.sink.got[from:from+n]))
			from += n
		}
		want := `8ms "abcd", 1.008s "ef", 2.003s "\nxy\n", 2.008s "z", 3.003s "\n"`
		if strings.Join(got, ", ") != want {
			t.Errorf("forwarded %s\nwant %s", strings.Join(got, ", "), want)
		}
		if c.halves != 3 {
			t.Errorf("%d signs of life without a line, want 3", c.halves)
		}
	})
}

// An agent that never pauses for long but never ends its line either is not to
// be held back until it does.
func TestTrickleIsForwarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var chunks []chunk
		for range 2500 {
			chunks = append(chunks, chunk{[]byte("."), 4 * time.Millisecond})
		}
		c := carry(t, nil, chunks)
		if first := c.sink.at[0].Sub(began); first > time.Second {
			t.Errorf("the first byte was forwarded after %s", first)
		}
	})
}

// TestSplitEnding: a pause between CR and LF neither loses nor moves a byte,
// and the line is parsed without either.
func TestSplitEnding(t *testing.T) {
	line := strings.TrimSuffix(okLine, "\n")
	for _, chunks := range [][]chunk{
		{{[]byte(line + "\r\n"), 0}},
		{{[]byte(line + "\r"), 0}, {[]byte("\n"), 0}},
		{{[]byte(line + "\r"), time.Second}, {[]byte("\n"), 0}},
		{{[]byte(line), time.Second}, {[]byte("\r"), time.Second}, {[]byte("\n"), 0}},
		{{[]byte(line), time.Second}, {[]byte("\r\n"), 0}},
		{{[]byte(line + "\r"), time.Second}, {[]byte("\nx\r"), time.Second}, {[]byte("\n"), time.Second}},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := carry(t, nil, chunks)
			c.check(t, join(chunks), c.log.raw)
			if ended := c.lines[0].Ended; ended == nil || ended.IsError {
				t.Errorf("%d chunks: the result was not seen", len(chunks))
			}
		})
	}
}

func join(chunks []chunk) []byte {
	var b []byte
	for _, c := range chunks {
		b = append(b, c.bytes...)
	}
	return b
}

// TestManyEmptyLines: a chunk of nothing but newlines is handed over in pieces.
func TestManyEmptyLines(t *testing.T) {
	input := bytes.Repeat([]byte("\n"), 1_000_000)
	synctest.Test(t, func(t *testing.T) {
		c := carry(t, nil, []chunk{{input, 0}})
		if !bytes.Equal(c.sink.got, input) || !bytes.Equal(c.log.raw, input) || len(c.lines) != len(input) {
			t.Errorf("%d bytes, %d logged, %d events", len(c.sink.got), len(c.log.raw), len(c.lines))
		}
		if c.most > most {
			t.Errorf("a batch of %d events", c.most)
		}
	})
}

func FuzzPump(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(noise(rand.New(rand.NewPCG(seed, 3))), seed)
	}
	f.Add([]byte("a\r\n\r\nb\r"), uint64(1))
	f.Fuzz(func(t *testing.T, input []byte, seed uint64) {
		synctest.Test(t, func(t *testing.T) {
			c := carry(t, nil, split(rand.New(rand.NewPCG(seed, 4)), input))
			c.check(t, input, c.log.raw)
		})
	})
}

// reserve is the pump's buffer for the time of a test.
func reserve(t testing.TB) []byte {
	t.Helper()
	buf, err := process.Reserve(bufSize)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Release(buf) })
	return buf
}
