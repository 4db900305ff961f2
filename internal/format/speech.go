package format

import (
	"strings"

	"cursor-wrap/internal/display"
	"cursor-wrap/internal/markdown"
)

// voice is one that speaks in the stream: the agent, or a subagent.
type voice struct {
	t      *Text
	indent string
	parent string
	Speech

	open   bool // a paragraph has begun
	broken bool // something other came since: the next piece begins another
	gap    string
	laid   *markdown.Stream
}

// assistant takes a line that the agent says.
func (t *Text) assistant(line []byte) {
	said := ReadSaid(line)
	v, other := &t.main, &t.child
	if said.Parent != "" {
		v, other = other, v
		t.inStream(said.Parent)
		if said.Parent != v.parent {
			v.reset()
			v.parent = said.Parent
		}
	}
	other.end()
	v.hear(&said)
}

// hear shows what is new in what was said.
func (v *voice) hear(said *Said) {
	s, known := v.Fresh(said)
	if said.Piece {
		if s != "" {
			v.show(s)
		}
		return
	}
	if s != "" {
		v.broken = v.broken || known || said.Called
		v.show(s)
	}
	if said.Called || known {
		v.pause()
	}
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
