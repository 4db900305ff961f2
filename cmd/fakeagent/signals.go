package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// politeExit is how long a signal waits for the line that is being written. The real agent is gone
// about 15 ms after SIGTERM, its stdout cut at a line, and so is this one, unless its reader does not
// read: then the line is cut after this time.
const politeExit = 200 * time.Millisecond

// reactions is what the scenario wants done when a signal comes. An empty list means: ignore it.
type reactions struct {
	mu    sync.Mutex
	steps map[os.Signal][]step
}

// heed makes the agent answer sig with one more step, or, with none, not at all.
func (a *agent) heed(sig syscall.Signal, steps ...step) {
	r := &a.reactions
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.steps == nil {
		r.steps = make(map[os.Signal][]step)
	}
	r.steps[sig] = append(r.steps[sig], steps...)
	// Caught and dropped, never set to SIG_IGN: that would be inherited by every child.
	signal.Notify(a.signals, sig)
}

func (a *agent) heedSignals() {
	for sig := range a.signals {
		a.reactions.mu.Lock()
		steps, known := a.reactions.steps[sig]
		a.reactions.mu.Unlock()
		if !known {
			a.abort(sig)
			continue
		}
		a.floor.Lock()
		if err := a.play(steps); err != nil {
			a.end(a.exitCode(err))
			return // with the floor: nothing is written after the end
		}
		a.floor.Unlock()
	}
}

// abort does what the real agent does when nobody scripted anything.
func (a *agent) abort(sig os.Signal) {
	for deadline := time.Now().Add(politeExit); !a.floor.TryLock() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if sig == syscall.SIGINT {
		fmt.Fprintln(a.stderr, "Aborting operation...")
	}
	a.end(128 + int(sig.(syscall.Signal)))
}

// parseSignal knows signals by name, with or without SIG.
func parseSignal(name string) (syscall.Signal, error) {
	sig := unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG"))
	if sig == 0 {
		return 0, fmt.Errorf("unknown signal %q", name)
	}
	return sig, nil
}

// die ends this process by sig. The Go runtime catches most signals and turns some into an exit code,
// so the process becomes a shell first, which has them all at their defaults. The pid stays.
func die(sig syscall.Signal) error {
	if sig == syscall.SIGKILL || sig == syscall.SIGSTOP {
		return syscall.Kill(os.Getpid(), sig)
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		return err
	}
	signal.Reset(sig)
	suicide := fmt.Sprintf("ulimit -c 0; kill -%d $$", int(sig))
	return syscall.Exec(shell, []string{"sh", "-c", suicide}, os.Environ())
}
