package session

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"cursor-wrap/internal/process"
	"cursor-wrap/internal/supervise"
)

// Errors that a reader of prompts may return beside io.EOF, after which the
// session is over like after any other.
var (
	// ErrInterrupt: Ctrl-C where there was nothing to interrupt. The session
	// says how to leave, and asks again.
	ErrInterrupt = errors.New("interrupted")
	// ErrHangup: the terminal is gone.
	ErrHangup = errors.New("the terminal is gone")
	// ErrQuit: the quit key.
	ErrQuit = errors.New("quit")
)

// Turn is what one agent process is started for.
type Turn struct {
	Prompt  string
	Resume  string // the session to go on with; empty for a new one
	Restart int    // which attempt after the first this is
}

// GoesOn says what stands in the stream in the place of a result; see
// supervise.Config.
type GoesOn func(*supervise.Report) (note, message string)

// Config is what a session is run with.
type Config struct {
	First  string // the first prompt; empty asks for it
	Resume string // the session to go on with from the first turn on

	// Talks is set for a conversation: prompts are asked for until there is
	// none. Without it there is the first prompt and nothing else.
	Talks bool
	// Next reads the next prompt; it may block for as long as it likes, in a
	// goroutine that is left behind when the session is told to stop.
	Next func() (string, error)
	// Command takes what looks like a command of ours and reports whether it
	// was one, and whether it ends the session. May be nil.
	Command func(line string) (taken, quit bool)

	// Run runs one turn to the end of its last process.
	Run func(Turn, GoesOn) supervise.Report
	// Interrupts tells whether a turn that was stopped by this signal ends the
	// turn alone.
	Interrupts func(syscall.Signal) bool

	Restarts Restarts
	Stop     <-chan syscall.Signal
	Say      func(string)
	// Restarted is told of each attempt that is about to be made.
	Restarted func(Turn, *supervise.Report, time.Duration)
}

// Report is what a session came to.
type Report struct {
	supervise.Report // of the last turn
	Turns            int
	Restarts         int
	Ended            int // processes that had to be ended
}

// session is the owner's state.
type session struct {
	Config
	resume string
	report Report
}

// Run runs a session to its end.
func Run(c Config) Report {
	s := &session{Config: c, resume: c.Resume}
	s.report.SessionID = c.Resume
	s.report.Outcome = supervise.Success
	prompt := c.First
	for {
		if strings.TrimSpace(prompt) != "" {
			if over := s.turn(prompt); over || !c.Talks {
				return s.report
			}
		}
		var over bool
		if prompt, over = s.ask(); over {
			return s.report
		}
	}
}

// turn runs a prompt, again if it hung and may be repeated, and reports whether
// the session is over.
func (s *session) turn(prompt string) bool {
	t := Turn{Prompt: prompt, Resume: s.resume}
	for {
		r := s.Run(t, func(r *supervise.Report) (string, string) { return s.goesOn(t, r) })
		s.count(&r)
		next, wait, again := s.Restarts.next(t, &r)
		if !again {
			break
		}
		s.Restarted(next, &r, wait)
		s.report.Restarts++
		if sig := s.pause(wait); sig != 0 {
			s.stopped(sig)
			break
		}
		t = next
	}
	s.report.Turns++
	over := s.over()
	if !over && s.report.Outcome == supervise.Stopped {
		s.Say("interrupted")
		// Whoever ends a turn and leaves then, has left and not failed.
		s.report.Outcome, s.report.ExitCode, s.report.Message = supervise.Success, 0, ""
	}
	return over
}

// goesOn is what a failed turn leaves in the stream.
func (s *session) goesOn(t Turn, r *supervise.Report) (note, message string) {
	if next, wait, again := s.Restarts.next(t, r); again {
		return "restart", fmt.Sprintf("%s; attempt %d of %d follows in %s", r.Message, next.Restart, s.Restarts.Most, wait)
	}
	if s.Talks && r.Outcome == supervise.Hang {
		return "hang_detected", r.Message
	}
	return "", ""
}

// count adds a turn to what the session came to.
func (s *session) count(r *supervise.Report) {
	took, silence, tokens := s.report.Took+r.Took, max(s.report.Silence, r.Silence), s.report.Tokens
	counts := s.report.Counts
	id := s.report.SessionID
	s.report.Report = *r
	s.report.Took, s.report.Silence = took, silence
	s.report.Tokens = tokens.Plus(r.Tokens)
	s.report.Counts = counts.Plus(r.Counts)
	s.report.Ended += len(r.Teardown.Ended)
	if r.SessionID == "" {
		s.report.SessionID = id
	}
	s.resume = s.report.SessionID
}

// over reports whether the session ends with this turn. A hang and an
// interruption are not the end of a conversation, nor is a result that is an
// error; anything else is, and being told to stop, however the turn came out.
func (s *session) over() bool {
	r := &s.report
	switch {
	case s.Talks && r.Told != 0 && !s.interrupts(r.Told):
		s.stopped(r.Told)
		return true
	case r.Outcome == supervise.Success, r.Outcome == supervise.Hang:
		return false
	case r.Outcome == supervise.Failed && r.Result:
		return false
	case r.Outcome == supervise.Stopped:
		return !s.interrupts(syscall.Signal(r.ExitCode - 128))
	}
	return true
}

func (s *session) interrupts(sig syscall.Signal) bool {
	return s.Interrupts != nil && s.Interrupts(sig)
}

const leaving = "Ctrl-D or /quit leaves"

// answer is what came of asking for a prompt.
type answer struct {
	text string
	err  error
}

// ask waits for the next prompt and reports whether there is none.
func (s *session) ask() (prompt string, over bool) {
	if s.late() {
		return "", true
	}
	for {
		a, stopped := s.next()
		if stopped {
			return "", true
		}
		switch {
		case errors.Is(a.err, ErrInterrupt):
			s.Say(leaving)
			continue
		case a.err != nil:
			s.ends(a.err)
			return "", true
		}
		if s.Command != nil {
			if taken, quit := s.Command(a.text); quit {
				return "", true
			} else if taken {
				continue
			}
		}
		return a.text, false
	}
}

// next waits for an answer, unless it is told to stop.
func (s *session) next() (a answer, stopped bool) {
	answers := make(chan answer, 1)
	go func() {
		text, err := s.Next()
		answers <- answer{text, err}
	}()
	for {
		select {
		case a = <-answers:
			return a, false
		case sig := <-s.Stop:
			if !s.interrupts(sig) {
				s.stopped(sig)
				return answer{}, true
			}
			s.Say(leaving)
		}
	}
}

// late drops the interruptions that came when their turn was over already, and
// reports whether the session was told to stop.
func (s *session) late() bool {
	for {
		select {
		case sig := <-s.Stop:
			if !s.interrupts(sig) {
				s.stopped(sig)
				return true
			}
		default:
			return false
		}
	}
}

// ends tells why there is no next prompt.
func (s *session) ends(err error) {
	switch {
	case errors.Is(err, io.EOF):
	case errors.Is(err, ErrHangup):
		s.stopped(syscall.SIGHUP)
	case errors.Is(err, ErrQuit):
		s.stopped(syscall.SIGQUIT)
	default:
		s.fail("read the prompt: " + err.Error())
	}
}

// pause waits, unless it is told to stop.
func (s *session) pause(d time.Duration) syscall.Signal {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return 0
	case sig := <-s.Stop:
		return sig
	}
}

func (s *session) stopped(sig syscall.Signal) {
	s.report.Outcome, s.report.ExitCode = supervise.Stopped, supervise.ExitCode(supervise.Stopped, sig)
	s.report.Message = "stopped by " + process.SignalName(sig)
}

func (s *session) fail(message string) {
	s.report.Outcome, s.report.ExitCode = supervise.Failed, supervise.ExitCode(supervise.Failed, 0)
	s.report.Message = message
}
