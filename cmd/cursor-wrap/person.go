package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
	ascii bool // it does not understand UTF-8

	stopping atomic.Bool // the turn was told to end, and that is what is shown

	turn sync.Mutex    // held while a turn is begun or ended
	over chan struct{} // closed at the end of the turn; nil outside turns
	done chan struct{} // closed when its keys are read no more
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
		Warn: func(msg string) { j.con.say(msg) }, Now: j.now, Command: j.meanwhile,
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
	j.person = &person{job: j, term: t, shows: shows, ascii: o.ASCII}
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

// next reads a prompt, below everything that was said.
func (p *person) next() (string, error) {
	p.end()
	p.con.settle()
	text, err := p.term.ReadPrompt("> ")
	switch {
	case errors.Is(err, terminal.ErrInterrupt):
		return "", session.ErrInterrupt
	case errors.Is(err, terminal.ErrHangup):
		return "", session.ErrHangup
	case errors.Is(err, terminal.ErrQuit):
		return "", session.ErrQuit
	}
	return text, err
}

// begin prepares a turn, or another attempt at it: keys become signals to it,
// and it is shown.
func (p *person) begin(c *supervise.Config) {
	p.turn.Lock()
	defer p.turn.Unlock()
	if p.over == nil {
		p.over, p.done = make(chan struct{}), make(chan struct{})
		p.term.Begin()
		go p.keys()
	}
	p.stopping.Store(false)
	c.Show = func(r *monitor.Reason) {
		if !p.stopping.Load() {
			p.term.Status(statusLine(r, p.columns(), p.ascii))
		}
	}
	if p.options.stderr == string(process.StderrPTY) {
		c.Asks = p.asks()
	}
}

// works is the agent that works: somebody to pause, and to answer. Nil while
// none does.
func (p *person) works() *process.Agent {
	_, a := p.desk.present()
	return a
}

// columns is how many the status line may have.
func (p *person) columns() int {
	width, _ := p.term.Size()
	return width - 1
}

// rests: nobody works any more. The keys stay ours until the next prompt, so
// that an interruption ends the time before another attempt, too.
func (p *person) rests() {
	p.term.Forward(nil)
	p.term.Status("")
}

// end gives the keys back to the prompt.
func (p *person) end() {
	p.turn.Lock()
	defer p.turn.Unlock()
	if p.over == nil {
		return
	}
	close(p.over)
	<-p.done
	p.over = nil
	p.term.Status("")
	p.term.End()
}

// keys takes what the person asks for while the agent works.
func (p *person) keys() {
	defer close(p.done)
	defer p.orClose()
	for over := p.over; ; {
		select {
		case <-over:
			return
		case k := <-p.term.Keys():
			switch k {
			case terminal.Interrupt:
				p.send(syscall.SIGINT)
				p.ending()
			case terminal.Quit:
				p.send(syscall.SIGQUIT)
			case terminal.Hangup:
				p.send(syscall.SIGHUP)
			case terminal.Suspend:
				p.suspend(p.works())
			}
		}
	}
}

// ending says that the key was heard. The status stays until the turn is over.
func (p *person) ending() {
	if p.works() != nil {
		p.stopping.Store(true)
		p.term.Status("ending the turn; Ctrl-C again ends it hard")
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
		switch err := a.Pause(); {
		case errors.Is(err, process.ErrPaused):
			a = nil // by somebody else, who will let it go on
		case err != nil:
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
		if a := p.works(); a != nil && a.Terminal() != nil {
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

// meanwhile takes a command that is typed while the agent works.
func (j *job) meanwhile(line string) bool {
	switch line {
	case "/help":
		j.con.tell(helpText)
	case "/status":
		go j.con.tell(j.statusText()) // to look at processes can take long
	default:
		return false
	}
	return true
}

const helpText = `/help      this
/status    the session, its turns, its log, the agent
/quit      leave, as Ctrl-D does at an empty prompt

Anything else goes to the agent. A \ at the end of a line goes on to the next
one; a paste of many lines is one prompt; the arrows go through the history.

While the agent works: Ctrl-C ends the turn, twice ends it hard; Ctrl-Z pauses
it, and fg goes on; what a tool asks on its terminal you can answer.
`
