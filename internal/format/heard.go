package format

import (
	"cmp"
	"encoding/json"
	"strings"
)

// Said is what a line of the assistant, or of its thinking, says.
type Said struct {
	Text   string
	Parent string // the call of the subagent that says it; empty for the agent
	Piece  bool   // a piece of what comes again as a whole
	Called bool   // a model step says it that goes on to call a tool
}

// ReadSaid reads such a line. What it does not know it leaves empty.
func ReadSaid(line []byte) Said {
	var f struct {
		Text    string          `json:"text"`
		Content json.RawMessage `json:"content"`
		Message struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
		Stamp  json.RawMessage `json:"timestamp_ms"`
		Called json.RawMessage `json:"model_call_id"`
		P1     json.RawMessage `json:"parent_tool_use_id"`
		P2     json.RawMessage `json:"parent_tool_call_id"`
		P3     json.RawMessage `json:"parent_call_id"`
		P4     json.RawMessage `json:"parentToolCallId"`
	}
	_ = json.Unmarshal(line, &f) // as far as it is one: members of other types are left out
	said := Said{Called: f.Called != nil, Piece: f.Stamp != nil && f.Called == nil}
	said.Text = cmp.Or(content(f.Message.Content), content(f.Content), f.Text)
	for _, v := range []json.RawMessage{f.P1, f.P2, f.P3, f.P4} {
		if v == nil {
			continue
		}
		if said.Parent = strings.TrimSpace(str(v)); said.Parent != "" {
			break
		}
	}
	return said
}

// ReadOutcome says how the completion of a call on a line went: whether it
// failed, what there is to tell about it ("exit 1", "timed out"), and the exit
// code of a command that has one.
func ReadOutcome(line []byte, tool string) (failed bool, details []string, exit *int) {
	b := readBody(line, tool)
	kind, says, text := outcome(b.result)
	v := judge(tool, kind, says, text)
	if code, ok := says.number("exitCode"); ok {
		n := int(code)
		exit = &n
	}
	return v.failed, v.details, exit
}

// Speech is what one says in the stream, told apart from what is only said
// again. It comes whole; with --stream-partial-output it comes in pieces first
// and then once or twice again as a whole. Nothing of it is kept to notice that,
// only a tally.
type Speech struct {
	all    tally // what was new since the last tool call
	since  tally // what of it came in pieces, and not yet as a whole
	before tally // the same, from before that tool call
	pieces int   // that all is made of
}

// longPiece is how long a piece must be to be taken for a repetition.
const longPiece = 32

// Fresh returns what is new in what was said, and whether its beginning was
// heard before. Of a piece all is new, unless it repeats all of the pieces
// before it.
func (y *Speech) Fresh(said *Said) (news string, known bool) {
	s := said.Text
	if said.Piece {
		if y.pieces > 1 && y.all.n >= longPiece && y.all.is(s) {
			return "", true
		}
		y.since.add(s)
		y.take(s)
		return s, false
	}
	s, known = y.rest(s)
	y.since, y.before = tally{}, tally{}
	if strings.TrimSpace(s) == "" {
		return "", known
	}
	if known {
		s = strings.TrimLeft(s, " \t\n")
	}
	y.take(s)
	return s, known
}

func (y *Speech) take(s string) {
	y.all.add(s)
	y.pieces++
}

// rest returns what of a whole message was not heard yet.
func (y *Speech) rest(s string) (rest string, known bool) {
	for _, t := range []tally{y.since, y.all, y.before} {
		if t.is(s) {
			return "", true
		}
	}
	for _, t := range []tally{y.all, y.since} {
		if rest, ok := t.in(s); ok {
			return rest, true
		}
	}
	return s, false
}

// Tool notes that a tool call begins: what comes whole is counted from there.
func (y *Speech) Tool() {
	if y.since.n > 0 {
		y.before = y.since
	}
	y.all, y.since, y.pieces = tally{}, tally{}, 0
}

// tally is a sum over text, less its white space: wholes are trimmed.
type tally struct {
	n   int
	sum uint64
}

func (y *tally) add(s string) {
	for i := range len(s) {
		y.next(s[i])
	}
}

func (y *tally) next(c byte) {
	if c > ' ' {
		y.n++
		y.sum = (y.sum ^ uint64(c)) * 1099511628211 // FNV-1a
	}
}

// in reports whether s begins with what was tallied, and returns the rest.
func (y tally) in(s string) (rest string, ok bool) {
	var x tally
	i := 0
	for ; i < len(s) && x.n < y.n; i++ {
		x.next(s[i])
	}
	return s[i:], x == y && y.n > 0
}

func (y tally) is(s string) bool {
	rest, ok := y.in(s)
	return ok && strings.TrimSpace(rest) == ""
}
