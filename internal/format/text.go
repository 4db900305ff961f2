package format

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"cursor-wrap/internal/display"
	"cursor-wrap/internal/events"
)

// TextOptions say what the text is written for. The zero value is a pipe.
type TextOptions struct {
	Width    func() int       // columns of the terminal, asked anew for every line; nil or 0: do not cut
	Color    bool             // it understands colours
	Markdown bool             // lay out the agent's Markdown instead of showing its source
	ASCII    bool             // it does not understand UTF-8: our own signs are ASCII
	Now      func() time.Time // for how long a call took where the stream does not say; nil: not told
}

// Text writes what a person wants to read of the stream: what the agent says,
// what it does, how that went. Everything in it is neutralised: a command
// cannot repaint the terminal that it is shown on.
type Text struct {
	w    io.Writer
	o    TextOptions
	sign signs
	out  bytes.Buffer // ready to be written

	last    written // what stands above the next line
	main    voice
	child   voice // of a subagent, where one speaks in the stream
	calls   map[string]*openCall
	steps   map[string]bool // the subagents of which the stream has shown what they did
	cwd     string          // of the agent; paths below it are shown without it
	attempt string          // to connect, the last that was shown
	spoke   bool            // the agent has said something in this turn
	long    int64           // bytes of the long line that is passing
}

// written is what stands above the next line.
type written uint8

const (
	nothing written = iota // or an empty line
	ours                   // a line of ours
	speech                 // what the agent said
)

// signs are what our lines begin with.
type signs struct {
	pending, done, failed, trouble, behind, warning, more, newline, dash, minus string
}

var (
	utf8Signs  = signs{"⏳", "✓", "✗", "✗", "⇣", "⚠", "…", "⏎", "—", "−"}
	asciiSigns = signs{"...", "ok", "failed", "!", "&", "!", "...", `\n`, "-", "-"}
)

// NewText returns an Output that writes readable text on w.
func NewText(w io.Writer, o TextOptions) *Text {
	t := &Text{w: w, o: o, sign: utf8Signs, calls: map[string]*openCall{}, steps: map[string]bool{}}
	if o.ASCII {
		t.sign = asciiSigns
	}
	t.main.t, t.child.t = t, t
	t.child.indent = "  "
	return t
}

// Line makes ready what is to be shown of a line.
func (t *Text) Line(line []byte, ev *events.Event) {
	switch {
	case ev.Kind == events.Assistant:
		t.assistant(line)
		return
	case ev.Kind == events.Unknown && ev.Type == "text":
		t.main.hear(&Said{Text: content(object(line)["text"]), Piece: true})
		return
	}
	t.main.pause()
	t.child.pause()
	switch ev.Kind {
	case events.ToolStarted:
		t.started(line, ev.Call)
	case events.ToolCompleted:
		t.completed(line, ev.Call)
	case events.Text:
		t.foreign(line)
	case events.Init:
		t.cwd = head(str(object(line)["cwd"]))
	case events.TaskNotification:
		t.notified(line, ev.Task)
	case events.BackgroundTimeout:
		t.aborted(line)
	case events.Connection, events.Retry:
		t.reconnecting(line)
	case events.Result:
		t.result(line, ev.Ended.IsError)
	case events.System, events.Unknown:
		t.other(line, ev)
	}
	if ev.Progress() {
		t.attempt = ""
	}
}

// Part counts the bytes of a line that is too long to be held.
func (t *Text) Part(piece []byte, ev *events.Event, last bool) {
	t.long += int64(len(piece))
	if !last {
		return
	}
	t.say(t.paint(faint, "(a line of "+size(t.long)+" left out)"))
	t.long = 0
	if ev.Ended != nil {
		t.endTurn()
	}
}

// Forward writes what is ready. The bytes themselves are not for people.
func (t *Text) Forward([]byte) error { return t.flush() }

// Finish writes the rest, and the failure.
func (t *Text) Finish(f *Failure) error {
	if f != nil {
		t.failure(f)
	}
	t.endTurn()
	return t.flush()
}

// keep is how much room for text stays with us between writes.
const keep = 64 << 10

func (t *Text) flush() error {
	if t.out.Len() == 0 {
		return nil
	}
	_, err := t.w.Write(t.out.Bytes())
	if t.out.Reset(); t.out.Cap() > keep {
		t.out = bytes.Buffer{}
	}
	return err
}

// width is how many columns a line may have; 0 is as many as it wants.
func (t *Text) width() int {
	if t.o.Width == nil {
		return 0
	}
	return max(t.o.Width(), 0)
}

// say writes a line of ours, which is clean and short enough.
func (t *Text) say(line string) {
	t.main.end()
	t.child.end()
	if t.last == speech {
		t.out.WriteByte('\n')
	}
	t.out.WriteString(line)
	t.out.WriteByte('\n')
	t.last = ours
}

// space is called before the agent says something.
func (t *Text) space() {
	if t.last != nothing {
		t.out.WriteByte('\n')
	}
	t.last, t.spoke = speech, true
}

// endTurn leaves an empty line behind it.
func (t *Text) endTurn() {
	t.main.reset()
	t.child.reset()
	clear(t.calls)
	clear(t.steps)
	t.spoke = false
	if t.last != nothing {
		t.out.WriteByte('\n')
		t.last = nothing
	}
}

// colours of ours, as parameters of an SGR sequence. Those of the sixteen that
// can be read on dark and on light.
const (
	green  = "32"
	red    = "31"
	yellow = "33"
	faint  = "2"
)

func (t *Text) paint(colour, s string) string {
	if !t.o.Color || s == "" {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

// clean makes one harmless line of s, at most so many columns wide.
func (t *Text) clean(s string, columns int) string {
	return display.Cut(display.Line(head(s), t.sign.newline), columns, t.sign.more)
}

// head is as much of s as can be of interest in one line, so that a command of
// a megabyte is not worked on.
func head(s string) string {
	if len(s) <= 4*maxLabel {
		return s
	}
	return strings.ToValidUTF8(s[:4*maxLabel], "")
}

func size(n int64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%d MB", (n+5e5)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%d kB", (n+500)/1e3)
	}
	return fmt.Sprintf("%d bytes", n)
}
