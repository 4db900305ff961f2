package supervise

import (
	"bytes"

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
		i := bytes.IndexByte(p.buf[scan:p.end], '\n')
		if i < 0 {
			break
		}
		p.line(scan+i, "\n")
		scan += i + 1
		p.tail = scan
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

// line takes the present line, which ends before buf[end] with eol.
func (p *pump) line(end int, eol string) {
	if !p.long && p.tooLong(end) {
		p.pieces(end) // it came too fast to be noticed before its end
	}
	line := p.buf[p.tail:end]
	if eol == "\n" && len(line) > 0 && line[len(line)-1] == '\r' {
		line, eol = line[:len(line)-1], "\r\n"
	}
	ev := &p.ev // not a local one: behind an interface that would be an allocation a line
	switch {
	case p.long:
		p.long, *ev = false, p.head
		p.log.Part(line, true, eol)
		p.out.Part(line, ev, true)
	case p.sent > p.tail: // a pause has split it: its first part is out
		*ev = events.Parse(line)
		p.rest(line, eol)
		p.out.Line(line, ev)
	default:
		*ev = events.Parse(line)
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
		p.line(p.end, "")
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
