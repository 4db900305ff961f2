package terminal

import "strconv"

// put draws a block over the one that is shown, row by row where they differ.
func (s *screen) put(p picture) {
	width, height := s.size()
	p = p.window(height)
	switch {
	case s.shown != nil:
		s.top()
	case !s.column.begun:
		s.buf = append(s.buf, '\r') // whatever others wrote
	default:
		s.below, s.back = s.column.sure(width), s.column.x
		s.buf = append(s.buf, '\n')
		if !s.below {
			s.column = column{} // nobody gets back there
		}
	}
	old := picture{}
	if s.shown != nil {
		old = *s.shown
	}
	for i, r := range p.rows {
		if i > 0 {
			s.buf = append(s.buf, "\r\n"...)
		}
		if i >= len(old.rows) || old.rows[i] != r {
			s.buf = append(append(s.buf, eraseRight...), r.text...)
		}
	}
	if len(old.rows) > len(p.rows) {
		s.buf = append(append(s.buf, "\r\n"+eraseBelow...), "\x1b[A"...)
	}
	at := p
	at.y = len(p.rows) - 1
	s.shown = &at
	s.move(p)
}

// move takes the cursor from where it is in the block to where p has it.
func (s *screen) move(p picture) {
	s.vertical(p.y - s.shown.y)
	s.buf = append(s.buf, '\r')
	s.right(p.x)
	s.shown = &p
}

// top takes the cursor to the beginning of the block.
func (s *screen) top() {
	s.vertical(-s.shown.y)
	s.buf = append(s.buf, '\r')
}

func (s *screen) vertical(n int) {
	switch {
	case n < 0:
		s.buf = append(strconv.AppendInt(append(s.buf, "\x1b["...), int64(-n), 10), 'A')
	case n > 0:
		s.buf = append(strconv.AppendInt(append(s.buf, "\x1b["...), int64(n), 10), 'B')
	}
}

func (s *screen) right(n int) {
	if n > 0 {
		s.buf = append(strconv.AppendInt(append(s.buf, "\x1b["...), int64(n), 10), 'C')
	}
}

// erase takes the block away and the cursor to where output goes on.
func (s *screen) erase() {
	if s.shown == nil {
		return
	}
	s.top()
	s.buf = append(s.buf, eraseBelow...)
	if s.below {
		s.vertical(-1)
		s.right(s.back)
	}
	s.shown, s.below = nil, false
}

// unbreak takes away a block that the terminal may have broken.
func (s *screen) unbreak(width int) {
	s.shown.y, s.shown.x = s.shown.reflowed(width), 0
	if s.below { // and the line above it, too
		s.below, s.column = false, column{}
	}
	s.erase()
}
