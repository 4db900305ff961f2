package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// batch is how much is written at once where only the amount matters.
const batch = 64 << 10

// deltaAround is a thinking event cut in two where its text belongs.
func (a *agent) deltaAround() (before, after []byte) {
	const mark = "?"
	line := encode(object{
		{"type", "thinking"}, {"subtype", "delta"}, {"text", mark},
		{"session_id", a.session}, {"timestamp_ms", nowMs()},
	})
	before, after, _ = bytes.Cut(append(line, '\n'), []byte(mark))
	return before, after
}

// fill writes one thinking event whose line has size bytes, the newline included.
func (a *agent) fill(size int) error {
	before, after := a.deltaAround()
	rest := size - len(before) - len(after)
	if rest < 0 {
		return fmt.Errorf("the shortest line has %d bytes", len(before)+len(after))
	}
	if err := a.write(before); err != nil {
		return err
	}
	if err := pad(a, rest); err != nil {
		return err
	}
	return a.write(after)
}

// fillStderr writes one line of size bytes there, the newline included.
func (a *agent) fillStderr(size int) error {
	if err := pad(a.stderr, max(size-1, 0)); err != nil {
		return err
	}
	_, err := a.stderr.WriteString("\n")
	return err
}

func pad(w io.Writer, size int) error {
	chunk := bytes.Repeat([]byte("x"), min(size, batch))
	for size > 0 {
		n := min(size, len(chunk))
		if _, err := w.Write(chunk[:n]); err != nil {
			return err
		}
		size -= n
	}
	return nil
}

// flood writes count small thinking events with a running number each, whole lines at a time.
func (a *agent) flood(count int) error {
	before, after := a.deltaAround()
	b := make([]byte, 0, batch)
	for i := range count {
		b = append(b, before...)
		b = strconv.AppendInt(b, int64(i), 10)
		b = append(b, after...)
		if i == count-1 || len(b)+len(before)+len(after)+20 > batch {
			if err := a.write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	return nil
}

func compilePlay(c *compiler, rest string) (action, error) {
	words := strings.Fields(rest)
	if len(words) == 0 || len(words) > 2 {
		return nil, fmt.Errorf("want a file and a pace")
	}
	file := c.path(words[0])
	if _, err := os.Stat(file); err != nil {
		return nil, err
	}
	speed := 1.0
	if len(words) == 2 {
		var err error
		if speed, err = parsePace(words[1]); err != nil {
			return nil, err
		}
	}
	return func(a *agent) error { return a.playFile(file, speed) }, nil
}

// parsePace is how many times faster than it was recorded; zero is without any pause.
func parsePace(word string) (float64, error) {
	switch word {
	case "real":
		return 1, nil
	case "fast":
		return 0, nil
	}
	times, found := strings.CutPrefix(word, "x")
	speed, err := strconv.ParseFloat(times, 64)
	if !found || err != nil || speed <= 0 {
		return 0, fmt.Errorf("unknown pace %q", word)
	}
	return speed, nil
}

// playFile writes a recorded stream as it is, byte for byte, at the pace of its own time stamps.
func (a *agent) playFile(file string, speed float64) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if speed == 0 {
		_, err := io.Copy(struct{ io.Writer }{a}, f)
		return err
	}
	var last int64
	for r := bufio.NewReader(f); ; {
		line, err := r.ReadBytes('\n')
		if at := timestampOf(line); at != 0 {
			if last != 0 && at > last {
				a.sleep(time.Duration(float64(at-last) / speed * float64(time.Millisecond)))
			}
			last = at
		}
		if werr := a.write(line); werr != nil {
			return werr
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func timestampOf(line []byte) int64 {
	var stamp struct {
		MS int64 `json:"timestamp_ms"`
	}
	if json.Unmarshal(line, &stamp) != nil {
		return 0
	}
	return stamp.MS
}

// receive takes in bytes over a TCP connection for a while and says nothing: what a model that
// generates a long answer without partial output looks like from outside.
func (a *agent) receive(d time.Duration) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	sender, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return err
	}
	defer sender.Close()
	receiver, err := listener.Accept()
	if err != nil {
		return err
	}
	defer receiver.Close()

	go io.Copy(io.Discard, receiver) // ends when receive returns and closes both ends
	a.away(func() {
		tokens := make([]byte, 2<<10)
		for end := time.Now().Add(d); err == nil && time.Now().Before(end); {
			_, err = sender.Write(tokens)
			time.Sleep(20 * time.Millisecond)
		}
	})
	return err
}
