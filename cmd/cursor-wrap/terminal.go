package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"cursor-wrap/internal/process"
)

// terminalSize is the size of the first of the files that is a terminal and
// has one; zero if none is.
func terminalSize(files ...*os.File) process.Size {
	for _, f := range files {
		if cols, rows, err := term.GetSize(int(f.Fd())); err == nil && rows > 0 && cols > 0 {
			return process.Size{Rows: uint16(rows), Cols: uint16(cols)}
		}
	}
	return process.Size{}
}

// follow keeps the agent's terminal at the size of the user's until stop
// returns.
func follow(t *process.Terminal, size func() process.Size) (stop func()) {
	winch := make(chan os.Signal, 1)
	signal.Notify(winch, syscall.SIGWINCH)
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			// Once unasked: it may have changed since the agent's was made. A
			// terminal that is closed by now needs no size.
			_ = t.Resize(size())
			select {
			case <-winch:
			case <-over:
				return
			}
		}
	}()
	return func() {
		signal.Stop(winch)
		close(over)
		<-done
	}
}
