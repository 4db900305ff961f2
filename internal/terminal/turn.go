package terminal

import "time"

// Key is what a person can ask for while the agent works.
type Key int

const (
	Interrupt Key = iota + 1 // Ctrl-C
	Suspend                  // Ctrl-Z: the tree is paused, and then Terminal.Suspend is called
	Quit                     // Ctrl-\
	Hangup                   // the terminal is gone
)

func (k Key) String() string {
	return map[Key]string{Interrupt: "interrupt", Suspend: "suspend", Quit: "quit", Hangup: "hangup"}[k]
}

const (
	keysMost    = 16                     // that wait for the session; more say nothing new
	escapeRest  = 500 * time.Millisecond // after which ESC was the Escape key
	inFrontRest = 250 * time.Millisecond // between two looks whether a job in the background is in front again
)

// Keys is where what the person asks for arrives, between Begin and End.
func (t *Terminal) Keys() <-chan Key { return t.keys }

// Begin starts a turn: keys arrive on Keys, and text that is typed is kept for
// the next prompt, or forwarded. Nothing is echoed.
func (t *Terminal) Begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.used.Load() != idle || t.input.enter() != nil {
		return
	}
	for len(t.keys) > 0 {
		<-t.keys // of the turn before
	}
	t.startWatch()
}

// End ends a turn, and the forwarding with it.
func (t *Terminal) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.used.Load() != watching {
		return
	}
	t.stopWatch()
	t.Forward(nil)
	t.input.leave()
}

// startWatch starts the reader of a turn.
func (t *Terminal) startWatch() {
	t.used.Store(watching)
	t.watch, t.leave = make(chan struct{}), make(chan struct{})
	go t.watchKeys(t.inFront(), t.watch, t.leave)
}

func (t *Terminal) stopWatch() {
	close(t.leave)
	t.input.wake(leaving)
	<-t.watch
	if t.modes.foreground() {
		t.screen.order(pasteOff)
	}
	t.modes.restore()
	t.used.Store(idle)
	t.watch = nil
}

// inFront sets the modes of a turn, where the terminal is ours, and reports
// whether it is.
func (t *Terminal) inFront() bool {
	t.taken.Store(t.modes.foreground() && t.modes.set(turnMode) == nil)
	if t.taken.Load() {
		t.screen.order(pasteOn)
	}
	return t.taken.Load()
}

// watchKeys reads keys until it is told to leave. In the background it reads
// none, for the kernel would stop us, and looks now and then whether we are in
// front again: a shell says nothing to a job that it did not have to wake.
func (t *Terminal) watchKeys(front bool, done, leave chan struct{}) {
	defer close(done)
	defer t.orRestore()
	buf := make([]byte, 4096)
	t.typed(nil, false) // what came with the last prompt
	for {
		n, got, err := t.input.read(buf, t.patience(front), !front)
		select {
		case <-leave:
			return
		default:
		}
		switch {
		case got&ended != 0:
			return
		case err != nil: // io.EOF, too: there is no other end of a terminal
			t.send(Hangup)
			return
		}
		if got&resumed != 0 || !front {
			front = t.again(front)
		}
		t.typed(buf[:n], n == 0 && got == 0)
	}
}

// again takes the terminal back after a stop or a time in the background, once
// it is ours.
func (t *Terminal) again(was bool) (front bool) {
	if !t.modes.foreground() {
		return false
	}
	if !was {
		t.modes.forget()
		t.modes.learn()
	}
	front = t.inFront()
	t.screen.forget()
	return front
}

func (t *Terminal) patience(front bool) time.Duration {
	switch {
	case !front:
		return inFrontRest
	case t.decoder.waiting():
		return escapeRest
	}
	return -1
}

// typed takes what was typed; nothing for a while ends a half key.
func (t *Terminal) typed(p []byte, quiet bool) {
	if quiet {
		t.decoder.give()
	}
	t.decoder.feed(p)
	for ev, ok := t.decoder.next(); ok; ev, ok = t.decoder.next() {
		switch ev.act {
		case interrupt:
			t.send(Interrupt)
		case quit:
			t.send(Quit)
		case suspend:
			t.send(Suspend)
		default:
			t.typing.keep(ev)
		}
	}
}

func (t *Terminal) send(k Key) {
	select {
	case t.keys <- k:
	default: // the session has enough to do
	}
}
