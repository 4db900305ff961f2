package terminal

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// stopWait is how long a stop that was asked for may take to come. It never
// comes where nobody could wake us: the kernel stops no orphaned group.
const stopWait = time.Second

// takeSignals passes on what is not told as a key.
func (t *Terminal) takeSignals() {
	defer t.orRestore()
	for {
		select {
		case <-t.closing:
			return
		case s := <-t.signals:
			t.takeSignal(s)
		}
	}
}

func (t *Terminal) takeSignal(s os.Signal) {
	switch s {
	case unix.SIGWINCH:
		t.screen.resizeSoon()
		t.input.wake(resized)
	case unix.SIGCONT:
		if t.stopped.CompareAndSwap(true, false) {
			t.continued <- struct{}{}
			return
		}
		t.input.wake(resumed)
	}
}

// Suspend stops us as the suspend key stops any job: the terminal is put back,
// the process group stops, the shell prompts. It returns when the shell lets us
// go on, in front or in the background, and says how long that took. Where no
// shell waits for us it returns soon. Nobody may ever catch SIGTSTP: the runtime
// does not give a caught one its default action back, and we would not stop.
func (t *Terminal) Suspend() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	turn := t.used.Load() == watching
	if turn {
		t.stopWatch()
	}
	t.screen.away()
	took := t.stop()
	t.modes.learn()
	if turn {
		t.startWatch()
	}
	t.screen.forget()
	return took
}

// stop stops the process group: whoever shares a pipeline with us would have
// been stopped by the key, too, and the shell waits for all of them.
func (t *Terminal) stop() (took time.Duration) {
	began := t.now()
	t.stopped.Store(true)
	_ = unix.Kill(0, unix.SIGTSTP) // we may always signal ourselves
	select {
	case <-t.continued:
	case <-time.After(stopWait):
		if !t.stopped.CompareAndSwap(true, false) {
			<-t.continued
		}
	}
	return t.now().Sub(began)
}

func (t *Terminal) now() time.Time {
	if t.o.Now == nil {
		return time.Time{}
	}
	return t.o.Now()
}
