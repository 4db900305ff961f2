package report

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// blockSize is how much one block holds before it is packed: enough to pack
// well, little enough to be unpacked while somebody waits for one line of it.
const blockSize = 256 << 10

// effort is how hard is tried to pack well: a little. The usual effort makes a
// page a tenth smaller and takes five times as long.
const effort = 2

// store is a list of records that the page carries along, packed in blocks. A
// browser unpacks a block when somebody asks for a record of it, so that a
// hundred thousand of them cost nothing until then.
type store struct {
	name  string
	count int
	at    func(i int) any // as JSON
}

func (s store) write(w *bufio.Writer) {
	var block bytes.Buffer
	first := 0
	for i := range s.count {
		line, err := json.Marshal(s.at(i))
		if err != nil { // none of the types can
			line = []byte("null")
		}
		block.Write(line)
		block.WriteByte('\n')
		if block.Len() >= blockSize || i == s.count-1 {
			s.pack(w, first, block.Bytes())
			block.Reset()
			first = i + 1
		}
	}
}

func (s store) pack(w *bufio.Writer, first int, lines []byte) {
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, effort) // there is such a level
	z.Write(lines)                               // a Buffer takes everything
	z.Close()
	el("script", attr{"type", "text/plain"}, attr{"data-store", s.name}, num("data-first", first),
		verbatim(base64.StdEncoding.EncodeToString(packed.Bytes()))).write(w)
	w.WriteByte('\n')
}

// record is one line of the agent, as the page carries it.
type record struct {
	At   string `json:"at"`
	Rel  string `json:"rel"`
	Name string `json:"name"`
	Raw  string `json:"raw"`
	Size string `json:"size"`           // of the whole line
	More string `json:"more,omitempty"` // what was clipped
}

func (p *page) events() part {
	return store{"events", len(p.Events), func(i int) any {
		e := &p.Events[i]
		r := record{At: clock(e.At), Rel: p.rel(e.At), Name: e.Name, Raw: legible(e.Raw), Size: bytesOf(int64(e.Size))}
		if more := e.Size - len(e.Raw); more > 0 {
			r.More = fmt.Sprintf("%s of this line are not in the report; the log has them.", bytesOf(int64(more)))
		}
		return r
	}}
}

// legible shows the bytes that are no text as what they are. The rest is left
// to the page, which shows a line as it came.
func legible(raw []byte) string {
	if utf8.Valid(raw) {
		return string(raw)
	}
	var b strings.Builder
	for len(raw) > 0 {
		r, size := utf8.DecodeRune(raw)
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\x%02x`, raw[0])
		} else {
			b.Write(raw[:size])
		}
		raw = raw[size:]
	}
	return b.String()
}

// thing is what stands behind a bar, a mark or a row of a table.
type thing struct {
	Kind  string      `json:"kind"` // Call, Silence, Turn, Signal
	Title string      `json:"title"`
	Facts [][2]string `json:"facts"`
	Text  string      `json:"text,omitempty"`
	First int         `json:"first"` // of its events; -1 for none
	Last  int         `json:"last"`
	Ends  bool        `json:"ends,omitempty"` // what lies between the two belongs to others
}

func (t *thing) fact(name, value string) {
	if value != "" {
		t.Facts = append(t.Facts, [2]string{name, value})
	}
}

func (p *page) things() part {
	return store{"things", p.turns() + len(p.Turns), func(i int) any {
		switch {
		case i < p.marks():
			return p.itemThing(&p.Items[i])
		case i < p.verdicts():
			return p.markThing(&p.Marks[i-p.marks()])
		case i < p.turns():
			return p.verdictThing(&p.Verdicts[i-p.verdicts()])
		}
		return p.turnThing(i - p.turns())
	}}
}

// Things are numbered: the items, then the marks, the verdicts and the turns.
func (p *page) marks() int    { return len(p.Items) }
func (p *page) verdicts() int { return p.marks() + len(p.Marks) }
func (p *page) turns() int    { return p.verdicts() + len(p.Verdicts) }

func (p *page) itemThing(it *Item) thing {
	t := thing{Kind: kindOf(it), Title: it.Title, Text: it.Detail, First: it.First, Last: it.Last,
		Ends: it.Lane == Tool || it.Lane == Background}
	t.fact("Took", length(it.Start, it.End))
	t.fact("From", p.rel(it.Start)+", "+clock(it.Start))
	t.fact("To", p.rel(it.End)+", "+clock(it.End))
	t.fact("Status", fated(it))
	if it.Lane == Tool || it.Declared > 0 {
		t.fact("Declared wait", declared(it))
	}
	if !it.Deadline.IsZero() {
		t.fact("Deadline", p.rel(it.Deadline)+", "+clock(it.Deadline))
	}
	if len(p.Turns) > 1 {
		t.fact("Turn", count(int64(it.Turn+1)))
	}
	t.fact("Call", it.Call)
	return t
}

func (p *page) markThing(m *Mark) thing {
	t := thing{Kind: "Moment", Title: m.What, Text: m.Text, First: -1, Last: -1}
	t.fact("At", p.rel(m.At)+", "+clock(m.At))
	t.fact("Level", m.Level)
	return t
}

func (p *page) verdictThing(v *Verdict) thing {
	t := thing{Kind: "Verdict", Title: v.What, First: -1, Last: -1}
	t.fact("At", p.rel(v.At)+", "+clock(v.At))
	if r := v.Reason; r != nil {
		t.Text = r.Summary
		t.fact("Kind", string(r.Kind))
		t.fact("Phase", string(r.Phase))
		t.fact("Silence", r.Silence.String())
		t.fact("Rests on", r.Witness)
	}
	return t
}

func (p *page) turnThing(n int) thing {
	turn := &p.Turns[n]
	t := thing{Kind: "Turn " + count(int64(n+1)), Title: turn.Outcome, Text: turn.Prompt, First: -1, Last: -1}
	t.fact("Took", length(turn.Start, turn.End))
	t.fact("From", p.rel(turn.Start)+", "+clock(turn.Start))
	t.fact("To", p.rel(turn.End)+", "+clock(turn.End))
	t.fact("Message", turn.Message)
	if turn.Restart > 0 {
		t.fact("Attempt", count(int64(turn.Restart+1)))
	}
	return t
}

// maxPoints is how many samples and deadlines the page knows to tell of under
// the pointer.
const maxPoints = 4000

// chart is what the script needs to say what was at a moment. Times are
// milliseconds since the start of the picture.
type chart struct {
	Start     int64        `json:"start"` // of the picture, Unix milliseconds
	Zero      int64        `json:"zero"`  // what is counted from
	Span      int64        `json:"span"`
	Samples   [][4]float64 `json:"samples"`   // time, percent, processes, tools
	Deadlines [][2]int64   `json:"deadlines"` // time, until; 0 for none
	Phases    []string     `json:"phases"`    // of the deadlines
}

func (p *page) chart() part {
	c := chart{Start: p.start.UnixMilli(), Zero: p.zero.UnixMilli(), Span: p.span.Milliseconds(), Samples: [][4]float64{}, Deadlines: [][2]int64{}, Phases: []string{}}
	for i := 0; i < len(p.Samples); i += 1 + len(p.Samples)/maxPoints {
		s := &p.Samples[i]
		c.Samples = append(c.Samples, [4]float64{p.millis(s.At.UnixMilli()), s.Percent, float64(s.Alive), float64(s.Tools)})
	}
	for i := 0; i < len(p.Deadlines); i += 1 + len(p.Deadlines)/maxPoints {
		d := &p.Deadlines[i]
		until := int64(0)
		if !d.Until.IsZero() {
			until = d.Until.UnixMilli() - c.Start
		}
		c.Deadlines = append(c.Deadlines, [2]int64{d.At.UnixMilli() - c.Start, until})
		c.Phases = append(c.Phases, short(string(d.Phase), 40))
	}
	b, err := json.Marshal(c) // escapes <, > and &
	if err != nil {           // a percentage that is no number
		b = []byte("null")
	}
	return el("script", attr{"type", "application/json"}, id("chart"), verbatim(b))
}

func (p *page) millis(unix int64) float64 { return float64(unix - p.start.UnixMilli()) }
