package supervise

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func shown(text string) string {
	var s screen
	return string(s.show(nil, []byte(text)))
}

func TestScreen(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "",
		"plain\ttext\n":           "plain\ttext\n",
		"grüße, “ĀÂ€😀”":           "grüße, “ĀÂ€😀”",
		"\x1b[31mred\x1b[0m":      "red",
		"\x1b[1;38;5;196mx\x1b[m": "x",
		"\x1b[?25lhidden cursor":  "hidden cursor",
		"\x1b]0;title\x07x":       "x",
		"\x1b]0;title “é”\x1b\\x": "x",
		"\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\": "link",
		"\x1bP+q544e\x1b\\x":                       "x",
		"\x1b_Gf=100;AAAA\x1b\\x":                  "x",
		"\x1b(B\x1b[mx":                            "x",
		"\x1b7\x1b8\x1bcx":                         "x",
		"\x1b\x1b[31mx":                            "x",
		"\x1b]0;a\x1b[31mx":                        "x",
		"\x1b[31\x18x":                             "x",
		"\x1b]0;never ended\nnext":                 "\nnext",
		"\x1b[31\nnext":                            "\nnext",
		"\x1b[31é":                                 "é",
		"\x1bé":                                    "é",
		"\u009b31mx":                               "x",
		"\u009d0;title\u009cx":                     "x",
		"a\u0085b":                                 "ab",
		"a\xc2\x1b[m\x85b":                         "ab",
		"a\x00\a\v\f\x7fb":                         "ab",
		"\xff\xfe":                                 "\xff\xfe",
		"line\r\n":                                 "line\n",
		"line\r\r\n":                               "line\n",
		"10%\r20%\r30%\n":                          "30%\n",
		"a\n10%\r100%":                             "a\n100%",
		"10%\r":                                    "10%",
		"10%\r\x1b[Kdone":                          "done",
		"10%\r\x1b[K\n":                            "\n",
		"10%\x1b[K\n":                              "10%\n",
		"⠋ load\x1b[2K\x1b[1G⠙ load\x1b[2K\x1b[Gdone\n": "done\n",
		"a\x1b[12Gb": "ab",
		"abx\b \bc":  "abc",
		"é\b \bc":    "c",
		"a\n\bb":     "a\nb",
	} {
		if got := shown(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}

func FuzzScreen(f *testing.F) {
	for _, seed := range []string{
		"\x1b[31mred\x1b[0m\r\n", "\x1b]0;title\x07\x1b]8;;u\x1b\\x", "\xc2\x9b31m\xc2\x1b[m\x9b", "10%\r\x1b[K20%\x1b[2K\x1b[1Gé\b\b\n",
		"\x1bPq#0\x1b\\ \x1b(B \x18\x1a", "\u009d0;t\u009c",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var whole, bytewise screen
		got := whole.show(nil, in)
		var slow []byte
		for i := range in {
			slow = bytewise.show(slow, in[i:i+1])
		}
		if !bytes.Equal(got, slow) {
			t.Errorf("at once %q, byte by byte %q", got, slow)
		}
		for len(got) > 0 {
			r, n := utf8.DecodeRune(got)
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				t.Errorf("%q is shown: %q", r, slow)
			}
			got = got[n:]
		}
		if len(slow) > len(in) || bytes.Count(slow, []byte("\n")) != bytes.Count(in, []byte("\n")) {
			t.Errorf("lines were lost or made up: %q", slow)
		}
		if utf8.Valid(in) && !utf8.Valid(slow) {
			t.Errorf("%q was torn", slow)
		}
		if plainText := strings.Map(func(r rune) rune {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				return -1
			}
			return r
		}, string(in)); utf8.Valid(in) && plainText == string(in) && string(slow) != plainText {
			t.Errorf("text without controls became %q", slow)
		}
	})
}
