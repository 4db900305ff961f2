package terminal

import (
	"bytes"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// column follows where output leaves the cursor on its line.
type column struct {
	x     int
	begun bool // something stands on the line
	lost  bool // where the cursor is cannot be told before the next line
	state parsing
}

// parsing is how far an escape sequence has come.
type parsing byte

const (
	ground parsing = iota
	escaped
	inSequence // ESC [
	inString   // ESC ] and its like, up to BEL or ESC \
	stringEscape
)

// feed takes output. Only what follows its last line end matters.
func (c *column) feed(p []byte, width int) {
	if i := bytes.LastIndexByte(p, '\n'); i >= 0 {
		*c = column{}
		p = p[i+1:]
	}
	for len(p) > 0 && !c.lost {
		c.begun = true
		if c.state != ground || p[0] < 0x20 || p[0] == del {
			c.byte(p[0], width)
			p = p[1:]
			continue
		}
		if p[0] < utf8.RuneSelf && (len(p) == 1 || p[1] < utf8.RuneSelf) {
			c.advance(1, width)
			p = p[1:]
			continue
		}
		p = c.wide(p, width)
	}
}

// wide takes one character that is not ASCII. One that is cut may go on in the
// next write.
func (c *column) wide(p []byte, width int) []byte {
	if !utf8.FullRune(p) {
		c.lost = true
		return nil
	}
	_, rest, w, _ := uniseg.FirstGraphemeCluster(p, -1)
	c.advance(w, width)
	return rest
}

func (c *column) advance(w, width int) {
	if c.x+w > width {
		c.x = 0
	}
	c.x += w
}

func (c *column) byte(b byte, width int) {
	switch c.state {
	case ground:
		c.control(b, width)
	case escaped:
		c.afterEscape(b)
	case inSequence:
		if b >= 0x40 && b <= 0x7e {
			c.state = ground
			c.lost = b != 'm' && b != 'K' // the others may move the cursor
		}
	case inString, stringEscape:
		c.inString(b)
	}
}

func (c *column) control(b byte, width int) {
	switch b {
	case '\r':
		c.x = 0
	case '\t':
		c.x = min((c.x/8+1)*8, width-1)
	case esc:
		c.state = escaped
	case '\b', '\v', '\f':
		c.lost = true
	}
}

func (c *column) afterEscape(b byte) {
	switch b {
	case '[':
		c.state = inSequence
	case ']', 'P', '_', '^', 'X':
		c.state = inString
	default:
		c.lost = true
	}
}

func (c *column) inString(b byte) {
	switch {
	case b == 0x07, b == '\\' && c.state == stringEscape:
		c.state = ground
	case b == esc:
		c.state = stringEscape
	default:
		c.state = inString
	}
}

// sure reports whether the cursor can be brought back to where it is. Behind
// the last cell of a row it cannot.
func (c *column) sure(width int) bool { return !c.lost && c.state == ground && c.x < width }
