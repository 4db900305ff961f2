package events

import (
	"encoding/binary"
	"math/bits"
)

// The functions here step over one piece of JSON that begins at b[i] and return
// where it ends, or -1 where it is malformed or cut off. They are the hot path:
// every byte of the agent's output goes through them once.

// maxDepth is how deep encoding/json lets values nest. What it refuses may not
// stand unquoted in a log that others read with it.
const maxDepth = 10000

// What skipString tells about the bytes that it looked at.
const (
	nonASCII = 0x8080808080808080 // any of these bits: a byte over 0x7f
	escaped  = 1                  // a backslash, in the string itself
)

const each = 0x0101010101010101 // times a byte: that byte in every lane

// special returns a word whose lowest set bit lies in the first byte of w that
// a string cannot just run over: a quote, a backslash, a control character.
// Bits above the lowest one mean nothing, for a borrow may have set them.
func special(w uint64) uint64 {
	quote, slash := w^each*'"', w^each*'\\'
	return ((quote - each) | (slash - each) | (w - each*' ')) &^ w & nonASCII
}

// skipString steps over a string of which the opening quote has been read. What
// it has seen may include a few bytes behind the string, never ones behind b.
func skipString(b []byte, i int) (end int, seen uint64) {
	esc := uint64(0)
	for {
		for uint(i)+8 <= uint(len(b)) {
			w := binary.LittleEndian.Uint64(b[i:])
			seen |= w
			if m := special(w); m != 0 {
				i += bits.TrailingZeros64(m) / 8
				break
			}
			i += 8
		}
		if uint(i) >= uint(len(b)) {
			return -1, seen & nonASCII
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, seen&nonASCII | esc
		case c == '\\':
			esc = escaped
			if i = skipEscape(b, i+1); i < 0 {
				return -1, seen & nonASCII
			}
		case c < ' ':
			return -1, seen & nonASCII
		default: // fewer than eight bytes are left
			seen |= uint64(c)
			i++
		}
	}
}

// skipEscape steps over what follows a backslash.
func skipEscape(b []byte, i int) int {
	if uint(i) >= uint(len(b)) {
		return -1
	}
	switch b[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		if i+4 < len(b) && hex(b[i+1]) && hex(b[i+2]) && hex(b[i+3]) && hex(b[i+4]) {
			return i + 5
		}
	}
	return -1
}

func hex(c byte) bool { return digit(c) || c|0x20-'a' < 6 }

func digit(c byte) bool { return c-'0' < 10 }

// skipSpace never fails: it returns at the latest the length of b.
func skipSpace(b []byte, i int) int {
	for uint(i) < uint(len(b)) && b[i] <= ' ' {
		if c := b[i]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			break
		}
		i++
	}
	return i
}

// skipKey steps over a key, its colon and the space behind it. It returns the
// end of the key too.
func skipKey(b []byte, i int) (end, value int, seen uint64) {
	if uint(i) >= uint(len(b)) || b[i] != '"' {
		return -1, -1, 0
	}
	end, seen = skipString(b, i+1)
	if end < 0 {
		return -1, -1, seen
	}
	i = skipSpace(b, end)
	if uint(i) >= uint(len(b)) || b[i] != ':' {
		return -1, -1, seen
	}
	return end, skipSpace(b, i+1), seen
}

// skipScalar steps over a number, true, false or null.
func skipScalar(b []byte, i int) int {
	if uint(i) >= uint(len(b)) {
		return -1
	}
	switch b[i] {
	case 't':
		return skipWord(b, i, "true")
	case 'f':
		return skipWord(b, i, "false")
	case 'n':
		return skipWord(b, i, "null")
	}
	return skipNumber(b, i)
}

func skipWord(b []byte, i int, word string) int {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

// skipNumber keeps the grammar of RFC 8259: no plus, no leading zero, digits on
// both sides of a point. What follows the number is its caller's to judge.
func skipNumber(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	if uint(i) < uint(len(b)) && b[i] == '0' {
		i++
	} else if i = skipDigits(b, i); i < 0 {
		return -1
	}
	if uint(i) < uint(len(b)) && b[i] == '.' {
		if i = skipDigits(b, i+1); i < 0 {
			return -1
		}
	}
	if uint(i) < uint(len(b)) && b[i]|0x20 == 'e' {
		i++
		if uint(i) < uint(len(b)) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return skipDigits(b, i)
	}
	return i
}

// skipDigits wants at least one.
func skipDigits(b []byte, i int) int {
	start := i
	for uint(i) < uint(len(b)) && digit(b[i]) {
		i++
	}
	if i == start {
		return -1
	}
	return i
}
