package main

import (
	"os"
	"os/signal"
	"syscall"
)

// stopSignals delivers the signals that end a run. They are caught and never
// ignored, because an ignored signal would be ignored by the agent too; but a
// hang-up that nohup made us ignore stays ignored.
func stopSignals() chan syscall.Signal {
	stop := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT}
	if !signal.Ignored(syscall.SIGHUP) {
		stop = append(stop, syscall.SIGHUP)
	}
	in := make(chan os.Signal, 8)
	signal.Notify(in, stop...)

	// A reader of stdout who has left, and a log over the file size limit, are
	// errors of a write (EPIPE, EFBIG), not deaths of the program.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGXFSZ)

	out := make(chan syscall.Signal, 8)
	go func() {
		for s := range in {
			out <- s.(syscall.Signal)
		}
	}()
	return out
}
