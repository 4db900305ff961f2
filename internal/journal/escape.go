package journal

import (
	"encoding/binary"
	"math/bits"
)

// appendText appends s as the inside of a JSON string. Only what JSON forbids
// is escaped, so that unescape gives back every byte: everything else, U+2028
// and DEL included, stands as it is. s is valid UTF-8.
func appendText(dst, s []byte) []byte {
	const hex = "0123456789abcdef"
	for {
		n := clean(s)
		dst = append(dst, s[:n]...)
		if n == len(s) {
			return dst
		}
		switch c := s[n]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		s = s[n+1:]
	}
}

// clean is the length of the beginning of s that needs no escape.
func clean(s []byte) int {
	n := 0
	for ; len(s)-n >= 8; n += 8 {
		if hit := special(binary.LittleEndian.Uint64(s[n:])); hit != 0 {
			return n + bits.TrailingZeros64(hit)/8
		}
	}
	for ; n < len(s); n++ {
		if c := s[n]; c < 0x20 || c == '"' || c == '\\' {
			break
		}
	}
	return n
}

// special sets the top bit of the first of eight bytes that is a quote, a
// backslash or a control character. Bits above that one mean nothing: the
// subtractions borrow from their neighbours.
func special(w uint64) uint64 {
	const (
		ones  = 0x0101010101010101
		tops  = 0x80 * ones
		quote = '"' * ones
		slash = '\\' * ones
	)
	q, b := w^quote, w^slash
	return ((w-0x20*ones)&^w | (q-ones)&^q | (b-ones)&^b) & tops
}
