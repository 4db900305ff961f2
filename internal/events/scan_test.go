package events

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf16"
)

func valid(line []byte) bool {
	s := scanner{line: line}
	return s.scan()
}

func checkValid(t *testing.T, line []byte) {
	t.Helper()
	if got, want := valid(line), json.Valid(line); got != want {
		t.Fatalf("%.300q: valid %t, json.Valid says %t", line, got, want)
	}
}

func TestStrictness(t *testing.T) {
	for _, line := range []string{
		``, ` `, `{`, `}`, `{}`, `{ }`, `[ ]`, `[]`, `[`, `]`, `{]`, `[}`, `{}}`, `[[]`, `{"a":[}`, `[{]}`,
		`{"a"}`, `{"a":}`, `{"a":1,}`, `{,"a":1}`, `{"a" 1}`, `{"a":1 "b":2}`, `{a:1}`, `{'a':1}`, `{1:2}`, `{"a"::1}`,
		`{"a":1}x`, `{"a":1} `, `{"a":1},`, `{}{}`, `[1,]`, `[,1]`, `[1 2]`, `[1,,2]`, `[1,2]`, `[ 1 , 2 ]`, `,`, `:`,
		`0`, `-0`, `-`, `+1`, `01`, `-01`, `1.`, `.1`, `1.0`, `1.e1`, `1e`, `1e+`, `1e-`, `1e+5`, `1E5`, `1e5.5`, `0e0`, `00`, `0x1`, `1_0`, `--1`, `Infinity`, `NaN`,
		`[0]`, `[-]`, `[01]`, `[1.]`, `[1e]`, `{"a":-}`, `{"a":1.5e-9}`, `{"a":1.5e-9x}`,
		`true`, `tru`, `truex`, `True`, `false`, `fals`, `null`, `nul`, `nulll`, `[true,false,null]`, `{"a":tru}`, `{"a":nulx}`,
		`"`, `""`, `"a`, `"\"`, `"\\"`, `"\x"`, `"\u"`, `"\u12"`, `"\u123"`, `"\u1234"`, `"\u123g"`, `"\uABCD\uabcd"`, `"\U1234"`, `"\"`, `"\/\b\f\n\r\t"`, `"\a"`, `"\'"`, `"\u00`, `"\`,
		"\"\t\"", "\"\x00\"", "\"\x1f\"", "\"\x7f\"", "\"\xff\"", "\"\u2028\"", "\ufeff{}", "{}\x00", "\v{}", "{}\f", "\u00a0{}", "{\"a\":\u00a01}", "[1\n,\r2\t]",
	} {
		checkValid(t, []byte(line))
		checkValid(t, []byte(`{"key":`+line+`}`))
		checkValid(t, []byte(`{"key":[`+line+`],"b":{"c":`+line+`}}`))
	}
}

// Eight bytes are looked at together: each of them has to be looked at.
func TestEveryByteAtEveryPlaceOfAString(t *testing.T) {
	for length := range 25 {
		line := []byte(`{"k":"` + strings.Repeat("a", length) + `"}`)
		for place := range length {
			for c := range 256 {
				line[6+place] = byte(c)
				checkValid(t, line)
				if s := (scanner{line: line}); s.scan() && (s.seen&nonASCII != 0) != (c > 0x7f) {
					t.Fatalf("%q: seen %x", line, s.seen)
				}
			}
			line[6+place] = 'a'
		}
	}
}

// A subtraction borrows from the byte above it.
func TestEveryPairOfBytesInAString(t *testing.T) {
	line := []byte(`["abcdefghijklmnop"]`)
	for a := range 256 {
		for b := range 256 {
			line[4], line[5] = byte(a), byte(b)
			checkValid(t, line)
		}
	}
}

func TestEveryByteAfterABackslash(t *testing.T) {
	for c := range 256 {
		for _, rest := range []string{"", "1", "0020", "00g0", "00G0", "0:00", "/000", "00`0", "@000"} {
			checkValid(t, []byte("[\"\\"+string([]byte{byte(c)})+rest+"\"]"))
			checkValid(t, []byte("[\"\\"+string([]byte{byte(c)})+rest))
		}
	}
}

func TestNestingLimit(t *testing.T) {
	for _, unit := range []struct {
		open, inner, shut string
		levels            int // that one of it opens
	}{
		{`[`, ``, `]`, 1}, {`{"a":`, `1`, `}`, 1}, {`[{"a":`, `[]`, `}]`, 2}, {`{"a":[{"b":0},`, `{}`, `,1]}`, 2},
	} {
		for _, depth := range []int{1, 2, 63, 64, 65, 127, 128, 129, 1000, 9998, 9999, 10000, 10001, 20000} {
			n := depth / unit.levels
			open, shut := strings.Repeat(unit.open, n), strings.Repeat(unit.shut, n)
			checkValid(t, []byte(open+unit.inner+shut))
			checkValid(t, []byte(open+unit.inner+shut+unit.shut))
			checkValid(t, []byte(open+unit.inner+strings.TrimSuffix(shut, unit.shut)))
			checkValid(t, []byte(open+unit.inner+strings.TrimSuffix(shut, unit.shut)+`)`))
			checkValid(t, []byte(`{"a":`+open+unit.inner+shut+`}`))
		}
	}
}

// A writer of random JSON; the same seed writes the same.
type randomJSON struct {
	*rand.Rand
	b []byte
}

func (r *randomJSON) pick(from ...string) { r.b = append(r.b, from[r.IntN(len(from))]...) }

func (r *randomJSON) space() {
	if r.IntN(8) == 0 {
		r.pick(" ", "\t", "\r", "\n", "  ")
	}
}

func (r *randomJSON) str() {
	r.b = append(r.b, '"')
	for range r.IntN(12) {
		r.pick("a", "type", "ToolCall", "args", "xyz01234", " ", "é", "日本", "😀", `\n`, `\"`, `\\`, `\u0041`, `\ud83d\ude00`, `\ud800`, "{", "]", ":", "\xff")
	}
	r.b = append(r.b, '"')
}

func (r *randomJSON) key() {
	if r.IntN(2) == 0 {
		r.str()
		return
	}
	r.pick(`"type"`, `"subtype"`, `"call_id"`, `"tool_call"`, `"t\u0079pe"`, `"shellToolCall"`, `"args"`, `"result"`, `"timeout"`, `"message"`, `"content"`, `"text"`, `"session_id"`, `"Type"`)
}

func (r *randomJSON) val(depth int) {
	r.space()
	switch n := r.IntN(10); {
	case n < 2 && depth > 0:
		r.list('[', ']', func() { r.val(depth - 1) })
	case n < 5 && depth > 0:
		r.list('{', '}', func() { r.key(); r.space(); r.b = append(r.b, ':'); r.val(depth - 1) })
	case n < 7:
		r.str()
	case n < 8:
		r.pick(`"tool_call"`, `"completed"`, `"started"`, `"user"`, `"result"`, `"success"`, `"system"`, `"init"`, `"task_notification"`)
	default:
		r.pick("0", "-1", "30000", "1.5", "-0.25e+10", "1E9", "true", "false", "null", `"12"`)
	}
	r.space()
}

func (r *randomJSON) list(open, shut byte, element func()) {
	r.b = append(r.b, open)
	for i := range r.IntN(5) {
		if i > 0 {
			r.b = append(r.b, ',')
		}
		r.space()
		element()
	}
	r.b = append(r.b, shut)
}

// mutate breaks the text in up to three places, or not at all.
func (r *randomJSON) mutate() {
	const likely = "{}[]\",:\\u0019-+.eE tfn\x00\x1f\xe2\n"
	for range r.IntN(4) {
		if len(r.b) == 0 {
			return
		}
		i, c := r.IntN(len(r.b)), likely[r.IntN(len(likely))]
		switch r.IntN(4) {
		case 0:
			r.b[i] = c
		case 1:
			r.b = append(r.b[:i], r.b[i+1:]...)
		case 2:
			r.b = append(r.b[:i+1], r.b[i:]...)
			r.b[i] = c
		case 3:
			if r.IntN(4) == 0 {
				r.b = r.b[:i]
			}
		}
	}
}

func TestRandomJSONAgainstTheLibrary(t *testing.T) {
	cases := 200_000
	if testing.Short() {
		cases = 20_000
	}
	r, good := randomJSON{Rand: rand.New(rand.NewPCG(1, 2))}, 0
	for range cases {
		r.b = r.b[:0]
		r.list('{', '}', func() { r.key(); r.b = append(r.b, ':'); r.val(4) })
		r.mutate()
		compare(t, r.b)
		if valid(r.b) {
			good++
		}
	}
	if good < cases/5 || good > cases*4/5 {
		t.Errorf("%d of %d were valid: the test is lopsided", good, cases)
	}
}

// escapeAll spells every character of s as \u escapes.
func escapeAll(s string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&b, `\u%04x`, u)
	}
	return `"` + b.String() + `"`
}
