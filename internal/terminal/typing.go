package terminal

import (
	"io"
	"strings"
	"sync"
)

const (
	aheadMost   = 1 << 20 // bytes that are typed ahead; the rest is dropped
	forwardMost = 256     // pieces that may wait for a tool that does not read
)

// typing is where text goes that is typed in a turn.
type typing struct {
	mu    sync.Mutex
	tool  chan []byte // takes it; nil: it is kept
	ahead []event     // for the next prompt
	bytes int         // of it

	command func(line string) bool // see Options
}

// Forward sends what is typed from now on to w, a tool's terminal, byte for
// byte, but for the keys that are ours; nil, and the end of the turn, keep it
// for the next prompt again. A w that blocks holds nobody up: what it does not
// take is dropped. It must fail once the tool is gone.
func (t *Terminal) Forward(w io.Writer) {
	ty := &t.typing
	ty.mu.Lock()
	defer ty.mu.Unlock()
	if ty.tool != nil {
		close(ty.tool)
		ty.tool = nil
	}
	if w == nil {
		return
	}
	queue := make(chan []byte, forwardMost)
	ty.tool = queue
	go func() {
		for b := range queue {
			if _, err := w.Write(b); err != nil {
				w = io.Discard // it is gone; what was meant for it goes, too
			}
		}
	}()
}

func (ty *typing) keep(ev event) {
	ty.mu.Lock()
	defer ty.mu.Unlock()
	if ty.tool != nil {
		select {
		case ty.tool <- ev.raw:
		default:
		}
		return
	}
	if ev.act == enter && ty.isCommand() {
		ty.ahead, ty.bytes = nil, 0
		return
	}
	if ty.bytes+len(ev.raw) <= aheadMost {
		ty.ahead = append(ty.ahead, ev)
		ty.bytes += len(ev.raw)
	}
}

// commandMost is how many keys a command has at most, corrections included.
const commandMost = 64

// isCommand reports whether what was typed ahead is a command that was taken.
func (ty *typing) isCommand() bool {
	if ty.command == nil || len(ty.ahead) == 0 || len(ty.ahead) > commandMost {
		return false
	}
	return ty.command(strings.TrimSpace(ty.text(&history{})))
}

// text is what was typed ahead.
func (ty *typing) text(h *history) string {
	e := editor{history: h}
	for _, ev := range ty.ahead {
		if ev.act == enter {
			ev.act = newline
		}
		e.apply(ev)
	}
	return e.text
}

// draft is what was typed ahead, as a prompt that is not sent: nobody saw it
// while they wrote it, and it may have been an answer to something that is gone.
func (ty *typing) draft(h *history) string {
	ty.mu.Lock()
	defer ty.mu.Unlock()
	text := ty.text(h)
	ty.ahead, ty.bytes = nil, 0
	if blank(text) {
		return ""
	}
	return strings.TrimRight(text, "\n")
}
