package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"cursor-wrap/internal/display"
)

const (
	consoleQueue = 256         // writes that may wait for a slow reader of stderr
	consoleWait  = time.Second // for that reader at the end
)

// console writes to stderr without ever blocking whoever writes: what a reader
// does not take in time is dropped there. The session log has it all.
type console struct {
	queue chan piece
	done  chan struct{}

	columns func() int // of the terminal that a person reads it on; nil: lines stay whole
	ascii   bool       // it does not understand UTF-8

	mu      sync.Mutex
	dropped int
	midLine bool // the agent's stderr has not ended its line
	closed  bool
}

// piece is one write, or who waits for those before it.
type piece struct {
	text []byte
	wait chan struct{}
}

func newConsole(w io.Writer) *console {
	c := &console{queue: make(chan piece, consoleQueue), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		for p := range c.queue {
			if p.wait != nil {
				close(p.wait)
				continue
			}
			_, _ = w.Write(p.text) // nobody is left to tell
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.dropped > 0 {
			fmt.Fprintf(w, "cursor-wrap: %d writes to stderr were dropped because nobody read it; the session log has them\n", c.dropped)
		}
	}()
	return c
}

// Write passes on what the agent says on its stderr.
func (c *console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(b) > 0 {
		c.put(append([]byte(nil), b...))
		c.midLine = b[len(b)-1] != '\n'
	}
	return len(b), nil
}

// say writes a line of our own.
func (c *console) say(msg string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	line := "cursor-wrap: " + msg
	if c.ascii {
		line = strings.ReplaceAll(line, "…", "...")
	}
	if c.columns != nil {
		line = fold(line, c.columns())
	}
	line += "\n"
	if c.midLine {
		line, c.midLine = "\n"+line, false
	}
	c.put([]byte(line))
}

// command writes a line that is for a machine, as it is.
func (c *console) command(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.midLine {
		line, c.midLine = "\n"+line, false
	}
	c.put([]byte(line + "\n"))
}

// fold breaks lines between words; what goes on is indented. A word that is
// longer than a line stays where it is, and whole, so that a path can still be
// copied.
func fold(text string, columns int) string {
	const indent = "  "
	var b strings.Builder
	if columns == 0 { // it does not know
		return text
	}
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		at := 0
		for j, word := range strings.Split(line, " ") {
			w := display.Width(word)
			switch {
			case j == 0:
			case at > len(indent) && at+1+w >= columns && len(indent)+w < columns:
				b.WriteString("\n" + indent)
				at = len(indent)
			default:
				b.WriteByte(' ')
				at++
			}
			b.WriteString(word)
			at += w
		}
	}
	return b.String()
}

// tell writes lines that were asked for, as they are.
func (c *console) tell(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put([]byte(text))
}

func (c *console) put(b []byte) {
	if c.closed {
		return
	}
	select {
	case c.queue <- piece{text: b}:
	default:
		c.dropped++
	}
}

// settle waits, but not for ever, until all is written that was said so far.
func (c *console) settle() {
	wait := make(chan struct{})
	c.mu.Lock()
	ended := c.closed
	if !ended {
		select {
		case c.queue <- piece{wait: wait}:
		default:
			ended = true // it is behind by far, and its reader does not read
		}
	}
	c.mu.Unlock()
	if ended {
		return
	}
	select {
	case <-wait:
	case <-time.After(consoleWait):
	}
}

// close waits, but not for ever, until all is written. What is written
// afterwards is lost.
func (c *console) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	close(c.queue)
	select {
	case <-c.done:
	case <-time.After(consoleWait):
	}
}
