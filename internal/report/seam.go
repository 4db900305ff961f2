package report

import "slices"

// seam finds the secrets that are said in pieces. Each line with a piece of one
// shows nothing of it by itself, so the line as a whole is hidden.
type seam struct {
	text   []byte  // the end of what was said
	pieces []piece // that it is made of
}

// piece is what one line added.
type piece struct{ at, event int }

// seamMost is how much text is gathered before it is looked through.
const seamMost = 8 << 10

func (s *seam) add(r *reader, text string, event int) {
	s.pieces = append(s.pieces, piece{len(s.text), event})
	s.text = append(s.text, text...)
	if len(s.text) < seamMost {
		return
	}
	s.look(r)
	keep := max(2*r.mask.longest, 512) // what begins in it may go on
	if keep >= len(s.text) {
		return
	}
	cut := len(s.text) - keep
	s.text = append(s.text[:0], s.text[cut:]...)
	first := max(s.within(cut), 0)
	s.pieces = append(s.pieces[:0], s.pieces[first:]...)
	for i := range s.pieces {
		s.pieces[i].at = max(s.pieces[i].at-cut, 0)
	}
}

// within is the piece in which a place lies.
func (s *seam) within(at int) int {
	i, found := slices.BinarySearchFunc(s.pieces, at, func(p piece, at int) int { return p.at - at })
	if !found {
		i--
	}
	return i
}

// look hides the lines over which a secret goes.
func (s *seam) look(r *reader) {
	if len(s.pieces) < 2 {
		return
	}
	for _, span := range r.mask.spans(s.text, false) {
		from, to := s.within(span[0]), s.within(span[1]-1)
		if from < 0 || from == to {
			continue
		}
		for _, p := range s.pieces[from : to+1] {
			r.story.Events[p.event].Raw = []byte(`{"masked":"` + hidden + `, a piece of a secret"}`)
		}
	}
}
