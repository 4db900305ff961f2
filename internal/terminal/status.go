package terminal

import (
	"sync/atomic"
	"time"
)

const (
	// repaintRest is between two repaints: ten a second are as many as anybody
	// can read.
	repaintRest = 100 * time.Millisecond

	// lineRest is how long a line that has not ended must have been left alone
	// before the status is shown below it. Text that streams in would flicker.
	lineRest = time.Second
)

// status is the line below the output. What it says is set by anybody, and
// painted by the painter and by writes, under the screen's lock.
type status struct {
	text    atomic.Pointer[string]
	resized atomic.Bool // the painter is to look at the size
	poke    chan struct{}
	done    chan struct{} // closed when the screen is
	stopped chan struct{} // closed by the painter

	painted string // what is shown, while it is
	cooling bool   // a repaint was too recently
	paints  int
	writes  int // of output, so far
	noticed int // writes at the painter's last look
}

func (st *status) init() {
	st.poke, st.done, st.stopped = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	st.text.Store(new(string))
}

// ask makes the painter look.
func (st *status) ask() {
	select {
	case st.poke <- struct{}{}:
	default:
	}
}

// again has it painted though it says the same.
func (st *status) again() {
	st.painted = ""
	st.ask()
}

func (s *screen) setStatus(text string) {
	if old := s.status.text.Swap(&text); *old != text {
		s.status.ask()
	}
}

// resizeSoon is for whoever must not wait for the terminal.
func (s *screen) resizeSoon() {
	s.status.resized.Store(true)
	s.status.ask()
}

// paintWhenDue is the painter. It sleeps while nothing changes.
func (s *screen) paintWhenDue() {
	defer close(s.status.stopped)
	defer s.rescue()
	for {
		select {
		case <-s.status.poke:
		case <-s.status.done:
			return
		}
		for rest, paints := s.refresh(-1); rest > 0; rest, paints = s.refresh(paints) {
			select {
			case <-time.After(rest):
			case <-s.status.done:
				return
			}
		}
	}
}

// refresh paints what has changed, if it may, and says when to look again; 0 is
// when somebody asks. rested is the count of paints at the last look, since
// which a rest has passed.
func (s *screen) refresh(rested int) (rest time.Duration, paints int) {
	s.take()
	defer s.give()
	st := &s.status
	if st.resized.Swap(false) && s.shown != nil && s.prompt == nil && !s.closed.Load() {
		width, _ := s.size()
		s.unbreak(width)
	}
	if st.paints == rested {
		st.cooling = false
	}
	switch {
	case st.cooling:
		return repaintRest, st.paints
	case s.closed.Load() || s.prompt != nil || !s.stale():
		return 0, 0
	case s.column.begun && s.shown == nil && st.noticed != st.writes:
		st.noticed = st.writes
		return lineRest, -1
	}
	s.paintStatus()
	_, _ = s.flush() // it is a status
	if !st.cooling {
		return 0, 0
	}
	return repaintRest, st.paints
}

// stale reports whether what is shown is not what is to be shown.
func (s *screen) stale() bool {
	want := *s.status.text.Load()
	if want == "" || s.shown == nil {
		return want != "" || s.shown != nil
	}
	return want != s.status.painted
}

// paintStatus puts the status on the screen, or takes it off.
func (s *screen) paintStatus() {
	text := *s.status.text.Load()
	width, _ := s.size()
	switch {
	case s.dumb:
		return
	case text == "" || s.absent || !s.ours():
		s.erase()
		return
	case s.shown == nil && s.column.begun && !s.column.sure(width):
		return // it waits for the end of the line
	}
	ellipsis := "…"
	if s.ascii {
		ellipsis = "..."
	}
	r := cut(text, width-1, ellipsis)
	x := r.width
	if s.color {
		r.text = "\x1b[2m" + r.text + "\x1b[22m"
	}
	s.put(picture{rows: []row{r}, x: x})
	s.status.painted, s.status.cooling = text, true
	s.status.paints++
}
