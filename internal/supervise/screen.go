package supervise

import (
	"bytes"
	"unicode/utf8"
)

// screen reads what was written for a terminal, and keeps what a person would
// have read there in the end: no escape sequences and no control characters
// but line feeds and tabs; of a line that was written over, the last state. It
// keeps its place in a sequence between two calls. The zero screen is ready.
type screen struct {
	state  state
	params []byte // of the control sequence, as far as they matter
	back   bool   // the cursor is at the beginning of the line: what comes replaces it
	lead   bool   // within a string: the last byte began a C1 control
}

// state is a place in the grammar of ECMA-48, section 5.
type state byte

const (
	ground    state = iota
	escape          // ESC
	charset         // ESC and an intermediate byte
	sequence        // CSI and its parameters
	str             // OSC, DCS and the like, up to their terminator
	strEscape       // ESC in one
)

// paramsMost is how many bytes of parameters are kept, which tells the few
// sequences that move or erase from all others.
const paramsMost = 2

// show appends to dst what b leaves to read. The present line is the last one
// of dst, and may be taken back.
func (s *screen) show(dst, b []byte) []byte {
	for len(b) > 0 {
		if n := printable(b); s.state == ground && n > 0 {
			dst = append(s.place(dst), b[:n]...)
			b = b[n:]
			continue
		}
		dst = s.take(dst, b[0])
		b = b[1:]
	}
	return dst
}

// printable is how many bytes at the beginning of b are ASCII and no controls.
func printable(b []byte) int {
	for i, c := range b {
		if c < 0x20 || c >= 0x7f {
			return i
		}
	}
	return len(b)
}

// place makes room for a character.
func (s *screen) place(dst []byte) []byte {
	if s.back {
		s.back = false
		return dst[:lineStart(dst)]
	}
	return dst
}

func lineStart(b []byte) int { return bytes.LastIndexByte(b, '\n') + 1 }

func (s *screen) take(dst []byte, c byte) []byte {
	switch {
	case c == '\n': // no sequence outlives its line: a cut one must not swallow all that follows
		s.state, s.back, s.lead = ground, false, false
		return append(dst, c)
	case c == 0x18 || c == 0x1a: // CAN and SUB end every sequence
		s.state, s.lead = ground, false
		return dst
	case c == 0x1b && s.state == str:
		s.state, s.lead = strEscape, false
		return dst
	case c == 0x1b:
		s.state = escape
		return dst
	}
	switch s.state {
	case escape:
		return s.takeEscape(dst, c)
	case charset, sequence:
		return s.takeSequence(dst, c)
	case str:
		if c == 0x07 || s.lead && c == 0x9c { // BEL, or ST as one character
			s.state = ground
		}
		s.lead = s.state == str && c == 0xc2
		return dst
	case strEscape:
		s.state = escape // ST; or a new sequence, which ends the string as well
		return s.takeEscape(dst, c)
	}
	return s.takeGround(dst, c)
}

// takeEscape takes what follows ESC.
func (s *screen) takeEscape(dst []byte, c byte) []byte {
	switch {
	case c < 0x20 || c == 0x7f:
		return dst
	case c < 0x30:
		s.state, s.params = charset, s.params[:0]
	case c == '[':
		s.begin(sequence)
	case c == ']', c == 'P', c == 'X', c == '^', c == '_': // OSC, DCS, SOS, PM, APC
		s.begin(str)
	case c < 0x80:
		s.state = ground
	default:
		s.state = ground
		return s.takeGround(dst, c)
	}
	return dst
}

func (s *screen) begin(at state) { s.state, s.params, s.lead = at, s.params[:0], false }

// takeSequence takes the parameters of a sequence and its end.
func (s *screen) takeSequence(dst []byte, c byte) []byte {
	last := byte(0x40)
	if s.state == charset {
		last = 0x30
	}
	switch {
	case c < 0x20 || c == 0x7f:
		return dst
	case c >= 0x80: // nothing that belongs to a sequence
		s.state = ground
		return s.takeGround(dst, c)
	case c < last:
		if len(s.params) < paramsMost {
			s.params = append(s.params, c)
		}
		return dst
	}
	controls := s.state == sequence
	s.state = ground
	if controls {
		return s.control(dst, c)
	}
	return dst
}

// control heeds the sequences by which a line is written over: the cursor to
// the first column, and the line erased.
func (s *screen) control(dst []byte, final byte) []byte {
	switch param := string(s.params); {
	case final == 'G' && (param == "" || param == "0" || param == "1"):
		s.back = true
	case final == 'K' && (param == "2" || s.back && (param == "" || param == "0")):
		return dst[:lineStart(dst)]
	}
	return dst
}

func (s *screen) takeGround(dst []byte, c byte) []byte {
	switch {
	case c == '\r':
		s.back = true
		return dst
	case c == '\b':
		return s.erase(dst)
	case c != '\t' && (c < 0x20 || c == 0x7f):
		return dst
	case c >= 0x80 && c < 0xa0 && !s.back && bytes.HasSuffix(dst, []byte{0xc2}):
		// A C1 control as UTF-8 has it, whatever stood between its two bytes.
		dst = dst[:len(dst)-1]
		switch c {
		case 0x9b:
			s.begin(sequence)
		case 0x9d, 0x90, 0x98, 0x9e, 0x9f:
			s.begin(str)
		}
		return dst
	}
	return append(s.place(dst), c)
}

// erase takes the last character of the line back, as whoever steps back
// writes over it.
func (s *screen) erase(dst []byte) []byte {
	if s.back || len(dst) == 0 || bytes.HasSuffix(dst, []byte("\n")) {
		return dst
	}
	_, n := utf8.DecodeLastRune(dst)
	return dst[:len(dst)-n]
}
