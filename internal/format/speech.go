package format

import (
	"strings"

	"cursor-wrap/internal/display"
	"cursor-wrap/internal/markdown"
)

// voice is one that speaks in the stream: the agent, or a subagent. What it
// says comes whole; with --stream-partial-output it comes in pieces first and
// then once or twice again as a whole. Nothing of it is kept to notice that,
// only a tally.
type voice struct {
	t      *Text
	indent string
	parent string

	all    tally // what was shown since the last tool call
	since  tally // what of it came in pieces, and not yet as a whole
	before tally // the same, from before that tool call
	pieces int   // that all is made of

	open   bool // a paragraph has begun
	broken bool // something other came since: the next piece begins another
	gap    string
	laid   *markdown.Stream
}

// tally is a sum over text, less its white space: wholes are trimmed.
type tally struct {
	n   int
	sum uint64
}

func (y *tally) add(s string) {
	for i := range len(s) {
		y.next(s[i])
	}
}

func (y *tally) next(c byte) {
	if c > ' ' {
		y.n++
		y.sum = (y.sum ^ uint64(c)) * 1099511628211 // FNV-1a
	}
}

// in reports whether s begins with what was tallied, and returns the rest.
func (y tally) in(s string) (rest string, ok bool) {
	var x tally
	i := 0
	for ; i < len(s) && x.n < y.n; i++ {
		x.next(s[i])
	}
	return s[i:], x == y && y.n > 0
}

func (y tally) is(s string) bool {
	rest, ok := y.in(s)
	return ok && strings.TrimSpace(rest) == ""
}

// assistant takes a line that the agent says.
func (t *Text) assistant(line []byte) {
	f := object(line)
	msg := object(f["message"])
	said := content(msg["content"])
	if said == "" {
		said = content(f["content"])
	}
	v, other := &t.main, &t.child
	if parent := f.pick(parents...); parent != "" {
		v, other = other, v
		t.inStream(parent)
		if parent != v.parent {
			v.reset()
			v.parent = parent
		}
	}
	other.end()
	_, stamped := f["timestamp_ms"]
	_, called := f["model_call_id"]
	v.hear(said, stamped && !called, called)
}

// longPiece is how long a piece must be to be taken for a repetition.
const longPiece = 32

// hear shows what is new in s. Of a piece that is all of it, unless it repeats
// all of the pieces before it.
func (v *voice) hear(s string, piece, midTurn bool) {
	if piece {
		if v.pieces > 1 && v.all.n >= longPiece && v.all.is(s) {
			return
		}
		v.since.add(s)
		v.add(s)
		return
	}
	s, known := v.fresh(s)
	v.since, v.before = tally{}, tally{}
	if strings.TrimSpace(s) != "" {
		if known {
			s = strings.TrimLeft(s, " \t\n")
		}
		v.broken = v.broken || known || midTurn
		v.add(s)
	}
	if midTurn || known {
		v.pause()
	}
}

func (v *voice) add(s string) {
	v.all.add(s)
	v.pieces++
	v.show(s)
}

// fresh returns what of a whole message was not shown yet.
func (v *voice) fresh(s string) (rest string, known bool) {
	for _, y := range []tally{v.since, v.all, v.before} {
		if y.is(s) {
			return "", true
		}
	}
	for _, y := range []tally{v.all, v.since} {
		if rest, ok := y.in(s); ok {
			return rest, true
		}
	}
	return s, false
}

// tool notes that a tool call begins: what comes whole is counted from there.
func (v *voice) tool() {
	if v.since.n > 0 {
		v.before = v.since
	}
	v.all, v.since, v.pieces = tally{}, tally{}, 0
}

// pause notes that something other than speech came: what was said is shown
// now, and not when somebody speaks again.
func (v *voice) pause() { v.end() }

func (v *voice) reset() {
	v.end()
	*v = voice{t: v.t, indent: v.indent}
}

// show writes a piece. Line ends are kept back until something follows them.
func (v *voice) show(s string) {
	if v.broken {
		v.end()
	}
	s = display.Clean(s)
	if v.t.o.Markdown {
		v.write(v.layout().Add(s))
		return
	}
	if !v.open {
		s = strings.TrimLeft(s, "\n")
	}
	body := strings.TrimRight(s, " \t\n")
	if body == "" {
		if v.open && len(v.gap) < 64 {
			v.gap += s
		}
		return
	}
	v.write(v.gap + body)
	v.gap = s[len(body):]
}

// write writes what is ready, in a paragraph of its own at the beginning.
func (v *voice) write(s string) {
	if s == "" {
		return
	}
	first := !v.open
	if first {
		v.open = true
		v.t.space()
	}
	switch {
	case v.indent == "":
	case v.laid != nil: // whole lines
		s = v.indent + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n"+v.indent) + "\n"
	default:
		if s = strings.ReplaceAll(s, "\n", "\n"+v.indent); first {
			s = v.indent + s
		}
	}
	v.t.out.WriteString(s)
}

// end ends the paragraph.
func (v *voice) end() {
	v.broken = false
	if v.laid != nil {
		v.write(v.laid.Flush())
		v.open, v.laid = false, nil
		return
	}
	if v.open {
		v.t.out.WriteByte('\n')
	}
	v.open, v.gap = false, ""
}

func (v *voice) layout() *markdown.Stream {
	if v.laid == nil {
		t, room := v.t, len(v.indent)
		v.laid = markdown.NewStream(&markdown.Renderer{
			Width: func() int { return max(t.width()-room, 0) }, Color: t.o.Color, ASCII: t.o.ASCII,
		})
	}
	return v.laid
}
