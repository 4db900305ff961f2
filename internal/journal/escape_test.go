package journal

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"
)

// Every byte at every place of a step.
func TestCleanFindsTheFirst(t *testing.T) {
	for at := range 24 {
		for c := range 256 {
			s := bytes.Repeat([]byte{'a'}, 24)
			s[at] = byte(c)
			want := 24
			if c < 0x20 || c == '"' || c == '\\' {
				want = at
			}
			if got := clean(s); got != want {
				t.Fatalf("byte %#x at %d: %d", c, at, got)
			}
			// Beside a later one, and beside bytes with the top bit set.
			for i := range s {
				if i > at {
					s[i] = '"'
				} else if i < at {
					s[i] = 0xff
				}
			}
			if want == 24 && at < 23 {
				want = at + 1
			}
			if got := clean(s); got != want {
				t.Fatalf("byte %#x at %d among others: %d, want %d", c, at, got, want)
			}
		}
	}
}

// FuzzEscape: what encoding/json reads from the string is what went in.
func FuzzEscape(f *testing.F) {
	for _, s := range shapes {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		escaped := appendText(nil, in)
		back, ok := unescape(nil, escaped)
		if !ok || !bytes.Equal(back, in) {
			t.Fatalf("%q came back as %q, %v", in, back, ok)
		}
		if !utf8.Valid(in) {
			return
		}
		var s string
		if err := json.Unmarshal([]byte(`"`+string(escaped)+`"`), &s); err != nil || s != string(in) {
			t.Fatalf("%q: encoding/json reads %q, %v", in, s, err)
		}
	})
}
