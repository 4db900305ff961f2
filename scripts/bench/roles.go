package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// The environment by which the bench tells a copy of itself what to be. The
// prefix is not cursor-wrap's own, whose variables may mean something to it.
const (
	roleEnv   = "BENCH_ROLE"
	inputEnv  = "BENCH_INPUT"  // file: what to emit
	eventsEnv = "BENCH_EVENTS" // paced: how many
	silentEnv = "BENCH_SILENT" // silent: for how long
	logEnv    = "BENCH_LOG"    // ref_group: where to log
	statsEnv  = "BENCH_STATS"  // file: where to say what emitting cost
)

// play is one of the bench's parts. Sources take whatever arguments an agent
// gets, and read their prompt to its end before they say a word.
func play(role string) error {
	if role == "ref_group" {
		return refGroup(os.Getenv(logEnv))
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return fmt.Errorf("read the prompt: %w", err)
	}
	switch role {
	case "file":
		if err := emitFile(os.Getenv(inputEnv)); err != nil {
			return err
		}
		return writeStats(os.Getenv(statsEnv))
	case "paced":
		n, err := strconv.Atoi(os.Getenv(eventsEnv))
		if err != nil {
			return err
		}
		return emitPaced(n)
	case "silent":
		d, err := time.ParseDuration(os.Getenv(silentEnv))
		if err != nil {
			return err
		}
		return emitSilence(d)
	}
	return errors.New("no such role")
}

// sourceWrite is the size of the writes that a source makes.
const sourceWrite = 64 << 10

func emitFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, sourceWrite)
	for {
		n, err := f.Read(buf)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := writeAll(unix.Stdout, buf[:n]); err != nil {
			return err
		}
	}
}

// sourceStats is what a source of a file knows about itself.
type sourceStats struct {
	cpu  time.Duration // what emitting cost: not the contender's doing
	pipe int           // bytes that its stdout holds, 0 where unknown
}

// writeStats goes through a file, because a source that is an agent has the
// contender between itself and the bench.
func writeStats(path string) error {
	cpu, err := cpuOf(unix.RUSAGE_SELF)
	if err != nil {
		return err
	}
	return os.WriteFile(path, fmt.Appendf(nil, "%d %d\n", cpu, pipeSize(unix.Stdout)), 0o600)
}

func readStats(path string) (s sourceStats, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return s, fmt.Errorf("the source did not get to its end: %w", err)
	}
	_, err = fmt.Sscanf(string(b), "%d %d", (*int64)(&s.cpu), &s.pipe)
	return s, err
}

// The paced source: one event every pace, each pacedLine bytes with its newline.
const (
	pace      = 5 * time.Millisecond
	pacedLine = 200
)

const (
	stampKey    = `"sent_ns":"`
	stampDigits = 20
)

// emitPaced stamps each event right before it is written, so that a source
// that wakes up late is not counted as the contender's delay.
func emitPaced(n int) error {
	if err := writeAll(unix.Stdout, []byte(initLine)); err != nil {
		return err
	}
	line := pacedEvent()
	at := bytes.Index(line, []byte(stampKey)) + len(stampKey)
	next := time.Now()
	for range n {
		next = next.Add(pace)
		time.Sleep(time.Until(next))
		now, err := monotonic()
		if err != nil {
			return err
		}
		copy(line[at:], fmt.Appendf(nil, "%0*d", stampDigits, now))
		if err := writeAll(unix.Stdout, line); err != nil {
			return err
		}
	}
	return writeAll(unix.Stdout, []byte(resultLine))
}

// pacedEvent is a thinking delta with room for a stamp. The stamp is a string,
// because a JSON number must not begin with zeros.
func pacedEvent() []byte {
	head := `{"type":"thinking","subtype":"delta","text":"`
	tail := `",` + stampKey + string(bytes.Repeat([]byte("0"), stampDigits)) + `",` +
		`"session_id":"` + session + `"}` + "\n"
	text := bytes.Repeat([]byte("x"), pacedLine-len(head)-len(tail))
	return []byte(head + string(text) + tail)
}

// stamp reads the time out of a line of emitPaced; other lines have none.
func stamp(line []byte) (ns int64, ok bool) {
	at := bytes.Index(line, []byte(stampKey))
	if at < 0 || len(line) < at+len(stampKey)+stampDigits {
		return 0, false
	}
	at += len(stampKey)
	ns, err := strconv.ParseInt(string(line[at:at+stampDigits]), 10, 64)
	return ns, err == nil
}

func emitSilence(d time.Duration) error {
	if err := writeAll(unix.Stdout, []byte(initLine)); err != nil {
		return err
	}
	time.Sleep(d)
	return writeAll(unix.Stdout, []byte(resultLine))
}

// pipeBytes is the capacity of every pipe that the bench makes, and the most
// that ref_group reads at once.
const pipeBytes = 1 << 20

// refGroup is the floor for a durable log: take all there is, write it, flush
// it, forward it. It does not look at a byte, so what cursor-wrap takes longer
// is the price of understanding the stream.
func refGroup(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	fd := int(f.Fd())
	buf := make([]byte, pipeBytes)
	for {
		n, err := readSome(unix.Stdin, buf)
		if err != nil || n == 0 {
			return err
		}
		if err := writeAll(fd, buf[:n]); err != nil {
			return err
		}
		if err := flushData(f); err != nil {
			return err
		}
		if err := writeAll(unix.Stdout, buf[:n]); err != nil {
			return err
		}
	}
}

// readSome and writeAll are bare system calls: the runtime's poller would add
// a wake-up to every hop, and hide it inside what is measured.
func readSome(fd int, buf []byte) (int, error) {
	for {
		n, err := unix.Read(fd, buf)
		if err == unix.EINTR {
			continue
		}
		return max(n, 0), err
	}
}

func writeAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// monotonic is a clock that all processes of the machine share; Go's own
// monotonic reading means nothing in another process.
func monotonic() (int64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0, err
	}
	return ts.Nano(), nil
}

// cpuOf is the user and system time of who (RUSAGE_SELF, RUSAGE_CHILDREN).
func cpuOf(who int) (time.Duration, error) {
	var ru unix.Rusage
	if err := unix.Getrusage(who, &ru); err != nil {
		return 0, err
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano()), nil
}
