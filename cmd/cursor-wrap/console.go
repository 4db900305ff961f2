package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	consoleQueue = 256         // writes that may wait for a slow reader of stderr
	consoleWait  = time.Second // for that reader at the end
)

// console writes to stderr without ever blocking whoever writes: what a reader
// does not take in time is dropped there. The session log has it all.
type console struct {
	queue chan []byte
	done  chan struct{}

	mu      sync.Mutex
	dropped int
	midLine bool // the agent's stderr has not ended its line
}

func newConsole(w io.Writer) *console {
	c := &console{queue: make(chan []byte, consoleQueue), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		for b := range c.queue {
			_, _ = w.Write(b) // nobody is left to tell
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
	line := "cursor-wrap: " + msg + "\n"
	if c.midLine {
		line, c.midLine = "\n"+line, false
	}
	c.put([]byte(line))
}

// tell writes lines that were asked for, as they are.
func (c *console) tell(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put([]byte(text))
}

func (c *console) put(b []byte) {
	select {
	case c.queue <- b:
	default:
		c.dropped++
	}
}

// close waits, but not for ever, until all is written. Nothing may be written
// afterwards.
func (c *console) close() {
	close(c.queue)
	select {
	case <-c.done:
	case <-time.After(consoleWait):
	}
}
