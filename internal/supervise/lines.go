package supervise

import (
	"bytes"
	"slices"

	"cursor-wrap/internal/events"
	"cursor-wrap/internal/process"
)

// take records the lines that the last n bytes complete, and forwards all of
// them at once.
func (p *pump) take(n int) {
	scan := p.end
	p.end += n
	p.cur.bytes += n
	whole := false
	for {
		scan = p.split(scan)
		if len(p.ends) == 0 {
			break
		}
		p.parse()
		for i, end := range p.ends {
			p.line(end, "\n", &p.parsed[i])
			p.tail = end + 1
		}
		whole = true
		if len(p.cur.events) >= most {
			p.commit(p.tail)
			at := p.cur.at
			p.hand()
			p.begin(at)
		}
	}
	if whole {
		p.commit(p.tail)
	} else if n > 0 {
		p.saw(&events.Event{Kind: events.Partial}, 0)
	}
	if p.long || p.tooLong(p.end) {
		p.pieces(p.end)
	}
	p.compact()
}

// split finds the ends of the next lines, at most as many as go into a batch,
// and returns where to go on looking.
func (p *pump) split(scan int) int {
	p.ends = p.ends[:0]
	for len(p.ends) < most {
		i := bytes.IndexByte(p.buf[scan:p.end], '\n')
		if i < 0 {
			return p.end
		}
		p.ends = append(p.ends, scan+i)
		scan += i + 1
	}
	return scan
}

// parse reads the lines that split has found. Nothing may be logged before it
// is known to be valid, so with a full pipe this is what everybody waits for:
// two share it then. A few lines are not worth the hand-over.
func (p *pump) parse() {
	n := len(p.ends)
	p.parsed = slices.Grow(p.parsed[:0], n)[:n]
	last := p.ends[n-1]
	if last-p.tail < shareFrom || n < 2 || p.help == nil {
		parseLines(p.buf, p.tail, p.ends, p.parsed)
		return
	}
	half, _ := slices.BinarySearch(p.ends, p.tail+(last-p.tail)/2)
	half = max(half, 1)
	p.help <- share{p.buf, p.ends[half-1] + 1, p.ends[half:], p.parsed[half:]}
	parseLines(p.buf, p.tail, p.ends[:half], p.parsed[:half])
	<-p.helped
}

// share is a part of the lines of a batch.
type share struct {
	buf    []byte
	from   int
	ends   []int
	parsed []events.Event
}

func parseLines(buf []byte, from int, ends []int, parsed []events.Event) {
	for i, end := range ends {
		line := buf[from:end]
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		parsed[i] = events.Parse(line)
		from = end + 1
	}
}

// helper parses what it is given; it lives as long as the pump runs.
func (p *pump) helper() {
	for s := range p.help {
		parseLines(s.buf, s.from, s.ends, s.parsed)
		p.helped <- struct{}{}
	}
}

// line takes the present line, which ends before buf[end] with eol and says ev.
func (p *pump) line(end int, eol string, ev *events.Event) {
	if !p.long && p.tooLong(end) {
		p.pieces(end) // it came too fast to be noticed before its end
	}
	line := p.buf[p.tail:end]
	if eol == "\n" && len(line) > 0 && line[len(line)-1] == '\r' {
		line, eol = line[:len(line)-1], "\r\n"
	}
	switch {
	case p.long:
		p.long, *ev = false, p.head
		p.log.Part(line, true, eol)
		p.out.Part(line, ev, true)
	case p.sent > p.tail: // a pause has split it: its first part is out
		p.rest(line, eol)
		p.out.Line(line, ev)
	default:
		p.log.Line(line, eol, ev.Storage)
		p.out.Line(line, ev)
	}
	if ev.Kind == events.Text && len(line) > 0 {
		p.text = append(p.text[:0], line[:min(len(line), errorsMax)]...)
	}
	p.saw(ev, 1)
}

// tooLong reports whether the present line, as far as the given index, cannot be
// held; a carriage return may belong to its ending.
func (p *pump) tooLong(end int) bool {
	n := end - p.tail
	if n > 0 && p.buf[end-1] == '\r' {
		n--
	}
	return n > events.MaxLine
}

// saw puts an event into the batch.
func (p *pump) saw(ev *events.Event, lines int) {
	list := p.cur.events
	if n := len(list); n > 0 && plain(ev) && plain(&list[n-1].Event) {
		if ev.Kind != events.Partial {
			list[n-1].Event = *ev
		}
		list[n-1].lines += lines
		return
	}
	p.cur.events = append(list, seen{*ev, lines})
}

// rest records what of a line a pause has not let through already.
func (p *pump) rest(line []byte, eol string) {
	end := p.tail + len(line)
	if p.sent > end { // the pause came between CR and LF
		end, eol = p.sent, "\n"
	}
	p.log.Part(p.buf[p.sent:end], true, eol)
}

// commit puts the records on their way to the disk and then, and only then,
// forwards the bytes up to the given index.
func (p *pump) commit(to int) {
	p.log.Commit()
	p.cur.logged = p.now()
	if p.outErr == nil && to > p.sent {
		if err := p.out.Forward(p.buf[p.sent:to]); err != nil {
			p.outErr, p.cur.err = err, err
		}
	}
	p.sent = max(p.sent, to)
}

// pieces passes on what there is, up to the given index, of a line that is too
// long to be held.
func (p *pump) pieces(end int) {
	if !p.long {
		p.long = true
		p.head = events.ParseHead(p.buf[p.tail:min(p.tail+headSize, end)])
		p.out.Part(p.buf[p.tail:max(p.sent, p.tail)], &p.head, false) // what a pause has let through already
	}
	for from := max(p.sent, p.tail); from < end; from = p.sent {
		to := min(from+pieceSize, end)
		piece := p.buf[from:to]
		p.log.Begin(p.cur.at)
		p.log.Part(piece, false, "")
		p.out.Part(piece, &p.head, false)
		p.commit(to)
	}
	p.tail = end
}

// flush passes on the beginning of a line whose writer has paused. It was
// received when its last bytes were, which was told already.
func (p *pump) flush() {
	p.begin(p.recv)
	p.log.Part(p.buf[p.sent:p.end], false, "")
	p.commit(p.end)
	p.hand()
}

// finish takes the last line, which has no end.
func (p *pump) finish() {
	if p.end > p.tail || p.long {
		p.log.Begin(p.cur.at)
		ev := events.Parse(p.buf[p.tail:p.end])
		p.line(p.end, "", &ev)
		p.tail = p.end
		p.commit(p.end)
	}
}

// compact moves the beginning of a line to the front of the buffer, so that
// there always is room for a whole read behind it.
func (p *pump) compact() {
	used := p.end
	n := copy(p.buf, p.buf[p.tail:p.end])
	p.sent, p.end, p.tail = p.sent-p.tail, n, 0
	if n == 0 && used > 4*readSize {
		process.Forget(p.buf[readSize:used])
	}
}
