package tree

import "strings"

// grade is how well a command line fits a call.
type grade int

// The grades.
const (
	stranger  grade = iota
	mentioned       // somewhere in the whole of it
	contained       // within one argument: a shell that was told more than the command
	exact           // it is the last argument, as of bash -c, or the whole of it
)

// pattern is a call's command, as it is looked for.
type pattern struct {
	text string
	cut  bool // the command goes on where the text ends
}

// maxCommand is how many runes of a command a call keeps.
const maxCommand = 200

func newPattern(command string) pattern {
	runes := 0
	for range command {
		runes++
	}
	text, marked := strings.CutSuffix(command, "…")
	return pattern{folded(text), marked || runes >= maxCommand}
}

// grade compares arguments with the call's command. White space is nothing to go
// by: the one who told of the call may have folded it.
func (p pattern) grade(argv []string) grade {
	if p.text == "" || len(argv) == 0 {
		return stranger
	}
	joined := folded(strings.Join(argv, " "))
	if p.is(joined) || p.is(folded(argv[len(argv)-1])) {
		return exact
	}
	for _, arg := range argv {
		if p.within(folded(arg)) {
			return contained
		}
	}
	if p.within(joined) {
		return mentioned
	}
	return stranger
}

func (p pattern) is(s string) bool {
	return s == p.text || p.cut && strings.HasPrefix(s, p.text)
}

// within finds the command in s, but not inside of a word: the call "ls" is not
// run by "node tools.js".
func (p pattern) within(s string) bool {
	for from := 0; ; {
		i := strings.Index(s[from:], p.text)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(p.text)
		if apart(s, i) && (p.cut || apart(s, end)) {
			return true
		}
		from = i + 1
	}
}

// apart reports whether no word goes on across s[i].
func apart(s string, i int) bool {
	return i == 0 || i == len(s) || !wordy(s[i-1]) || !wordy(s[i])
}

func wordy(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c >= 0x80:
		return true
	}
	return c == '_' || c == '-' || c == '.'
}

// folded has one blank for any white space, none at the ends, and no quotes: the
// shell takes them away from what it executes.
func folded(s string) string { return strings.Join(strings.Fields(unquote.Replace(s)), " ") }

var unquote = strings.NewReplacer(`"`, "", "'", "", `\`, "")
