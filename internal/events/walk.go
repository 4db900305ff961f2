package events

import (
	"encoding/json"
	"unicode/utf8"
)

// The functions here read bytes that the scanner has found to be valid JSON. A
// value is handed around as the bytes from its first one on, and others may
// follow: its end is looked for only by who needs it, so that nobody runs over
// a whole file merely to look past it. An absent value is empty.

// walk goes through the members of an object or the elements of an array; any
// other value has none.
//
//	for w := walkOver(v); w.next(); {
//		use(w.key, w.value)
//	}
type walk struct {
	key   []byte // decoded; nil in an array
	value []byte

	b  []byte // from the opening bracket on
	at int    // where value begins in b, 0 before the first
}

func walkOver(v []byte) walk {
	if len(v) == 0 || v[0] != '{' && v[0] != '[' {
		return walk{}
	}
	return walk{b: v}
}

// next goes on to the next member or element and reports whether there is one.
// Only here is the value before it stepped over.
func (w *walk) next() bool {
	if w.b == nil {
		return false
	}
	i := 1
	if w.at > 0 {
		end, _ := skipValue(w.b, w.at, 0)
		if i = skipSpace(w.b, end); w.b[i] == ',' {
			i++
		}
	}
	i = skipSpace(w.b, i)
	if w.b[i] == '}' || w.b[i] == ']' {
		*w = walk{}
		return false
	}
	w.at = i
	if w.b[0] == '{' {
		end, value, seen := skipKey(w.b, i)
		w.key, w.at = w.b[i+1:end-1], value
		if seen != 0 {
			w.key = []byte(unquote(w.b[i:end]))
		}
	}
	w.value = w.b[w.at:]
	return true
}

// member returns the last value of a key.
func member(v []byte, key string) (value []byte) {
	for w := walkOver(v); w.next(); {
		if string(w.key) == key {
			value = w.value
		}
	}
	return value
}

func isObject(v []byte) bool { return len(v) > 0 && v[0] == '{' }

func isTrue(v []byte) bool { return len(v) > 0 && v[0] == 't' }

func isFalse(v []byte) bool { return len(v) > 0 && v[0] == 'f' }

// text returns the string v, decoded, and "" for any other value.
func text(v []byte) string {
	if len(v) == 0 || v[0] != '"' {
		return ""
	}
	end, seen := skipString(v, 1)
	if seen == 0 {
		return string(v[1 : end-1])
	}
	return unquote(v[:end])
}

// unquote decodes a whole string, quotes included.
func unquote(quoted []byte) string {
	var s string
	// It cannot fail: what comes here is a valid string. Bytes that are not
	// UTF-8 become U+FFFD, as in every other JSON library.
	_ = json.Unmarshal(quoted, &s)
	return s
}

// scalar returns a string decoded and a number as it is written: ids come as
// either.
func scalar(v []byte) string {
	if n := number(v); n != nil {
		return string(n)
	}
	return text(v)
}

// number returns the bytes of the number that v begins with, and nil where it
// begins with none. Only here v may be anything.
func number(v []byte) []byte {
	if len(v) == 0 || v[0] != '-' && !digit(v[0]) {
		return nil
	}
	end := skipNumber(v, 0)
	if end < 0 {
		return nil
	}
	return v[:end]
}

// clip returns a scalar's first runes, without decoding all of a long one: a
// command may hold a whole file.
func clip(v []byte, runes int) string {
	if len(v) > 0 && v[0] == '"' {
		v = shorten(v, runes)
	}
	return firstRunes(scalar(v), runes)
}

// shorten returns a string that begins as v does for at least so many runes.
func shorten(v []byte, runes int) []byte {
	const longest = len(`\ud83d\ude00`) // one rune
	end := 1
	for enough := longest * (runes + 1); v[end] != '"'; {
		if end > enough {
			return append(v[:end:end], '"')
		}
		switch {
		case v[end] != '\\':
			end++
		case v[end+1] == 'u':
			end += len(`\ud83d`)
		default:
			end += len(`\n`)
		}
	}
	return v[:end+1]
}

func firstRunes(s string, runes int) string {
	if len(s) <= runes || utf8.RuneCountInString(s) <= runes {
		return s
	}
	for i := range s {
		if runes == 0 {
			return s[:i]
		}
		runes--
	}
	return s
}
