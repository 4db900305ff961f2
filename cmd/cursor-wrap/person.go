package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/term"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/process"
	"cursor-wrap/internal/session"
	"cursor-wrap/internal/supervise"
	"cursor-wrap/internal/terminal"
	"cursor-wrap/internal/tree"
)

// person is whoever sits at the terminal.
type person struct {
	*job
	term  *terminal.Terminal
	shows bool // stdout is that terminal, too

	agent atomic.Pointer[process.Agent] // of the turn under way; nil before it was started
	over  chan struct{}                 // closed at the end of the turn
	done  chan struct{}                 // closed when its keys are read no more
}

// greet takes the terminal, if there is one to talk at.
func (j *job) greet() error {
	out, shows := j.std.out, true
	if !term.IsTerminal(int(out.Fd())) {
		out, shows = j.std.err, false
		if !term.IsTerminal(int(out.Fd())) {
			out = nil
		}
	}
	o := terminal.Options{
		Color: !j.plain && os.Getenv("NO_COLOR") == "", Dumb: os.Getenv("TERM") == "dumb", ASCII: !utf8Locale(os.Getenv),
		Warn: func(msg string) { j.con.say(msg) }, Now: j.now,
	}
	if dir, err := home(); err == nil {
		o.History = terminal.HistoryFile(dir, j.workspaceDir())
	}
	t, err := terminal.Open(j.std.in, out, o)
	if errors.Is(err, terminal.ErrNotTerminal) {
		return nil
	}
	if err != nil {
		return err
	}
	j.person = &person{job: j, term: t, shows: shows}
	return nil
}

// leave gives the terminal back.
func (j *job) leave() {
	if j.person != nil {
		j.person.term.Close()
	}
}

// errWriter is where we speak: through the terminal where stderr is that one.
func (j *job) errWriter() io.Writer {
	if j.person != nil && term.IsTerminal(int(j.std.err.Fd())) {
		return j.person.term
	}
	return j.std.err
}

// workspaceDir is the folder that the agent works in, without symbolic links.
func (o *options) workspaceDir() string {
	dir := o.workspace
	if dir == "" {
		dir, _ = os.Getwd() // none: the history is that of no folder
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return dir
}

// next reads a prompt.
func (p *person) next() (string, error) {
	text, err := p.term.ReadPrompt("> ")
	switch {
	case errors.Is(err, terminal.ErrInterrupt):
		return "", session.ErrInterrupt
	case errors.Is(err, terminal.ErrHangup):
		return "", session.ErrHangup
	case errors.Is(err, terminal.ErrQuit):
		p.send(syscall.SIGQUIT)
		return "", session.ErrInterrupt
	}
	return text, err
}

// begin prepares a turn: keys become signals to it, and it is shown.
func (p *person) begin(c *supervise.Config) {
	p.agent.Store(nil)
	p.over, p.done = make(chan struct{}), make(chan struct{})
	p.term.Begin()
	go p.keys()
	c.Show = func(r *monitor.Reason) { p.term.Status(statusLine(r)) }
	if p.options.stderr == string(process.StderrPTY) {
		c.Asks = p.asks()
	}
}

// works tells who works: from now on there is somebody to pause, and to answer.
func (p *person) works(a *process.Agent) { p.agent.Store(a) }

// end gives the keys back to the prompt.
func (p *person) end() {
	close(p.over)
	<-p.done
	p.term.Status("")
	p.term.End()
}

// keys takes what the person asks for while the agent works.
func (p *person) keys() {
	defer close(p.done)
	defer p.orClose()
	for {
		select {
		case <-p.over:
			return
		case k := <-p.term.Keys():
			switch k {
			case terminal.Interrupt:
				p.send(syscall.SIGINT)
			case terminal.Quit:
				p.send(syscall.SIGQUIT)
			case terminal.Hangup:
				p.send(syscall.SIGHUP)
			case terminal.Suspend:
				p.suspend(p.agent.Load())
			}
		}
	}
}

// send tells the session to stop; it has room for more than anybody types.
func (p *person) send(sig syscall.Signal) {
	select {
	case p.job.stop <- sig:
	default:
	}
}

// suspend pauses the agent's tree and then us. That our clock finds us late is
// what keeps the pause out of every deadline.
func (p *person) suspend(a *process.Agent) {
	if a != nil {
		if err := a.Pause(); err != nil {
			p.con.say("the agent goes on: " + err.Error())
		}
	}
	p.term.Suspend()
	if a != nil {
		if err := a.Resume(); err != nil {
			p.con.say("the agent does not go on: " + err.Error())
		}
	}
}

// asks shows who waits for an answer on the agent's terminal, and passes on
// what is typed as long as somebody does.
func (p *person) asks() func([]tree.Proc) {
	return func(who []tree.Proc) {
		if len(who) == 0 {
			p.term.Forward(nil)
			return
		}
		p.con.say(who[0].String() + " asks; what you type goes to it")
		if a := p.agent.Load(); a != nil && a.Terminal() != nil {
			p.term.Forward(a.Terminal())
		}
	}
}

// orClose is deferred by every goroutine that a panic could end with the
// terminal in its hands.
func (p *person) orClose() {
	if r := recover(); r != nil {
		p.term.Close()
		panic(r)
	}
}

// command takes /help, /status and /quit; all else goes to the agent.
func (j *job) command(line string) (taken, quit bool) {
	switch strings.TrimSpace(line) {
	case "/help":
		j.con.tell(helpText)
	case "/status":
		j.con.tell(j.statusText())
	case "/quit", "/exit":
		return true, true
	default:
		return false, false
	}
	return true, false
}

const helpText = `/help      this
/status    the session, its turns, its log, the agent
/quit      leave, as Ctrl-D does at an empty prompt

Anything else goes to the agent. A \ at the end of a line goes on to the next
one; a paste of many lines is one prompt; the arrows go through the history.

While the agent works: Ctrl-C ends the turn, twice ends it hard; Ctrl-Z pauses
it, and fg goes on; what a tool asks on its terminal you can answer.
`
