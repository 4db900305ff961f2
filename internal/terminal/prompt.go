package terminal

import (
	"errors"
	"io"
)

var errInUse = errors.New("the terminal is read already")

// ReadPrompt shows a prompt and returns what the person sends: Enter sends,
// a backslash before it, Alt-Enter or a paste make more lines. Blank text is
// not returned. The errors are io.EOF for the end-of-file key at an empty
// prompt, ErrInterrupt for the interrupt key there (before, it clears what was
// written), ErrQuit (a dumb terminal sends SIGQUIT instead), ErrHangup and ErrClosed. The suspend key stops us from
// inside. The modes are changed only while it runs.
func (t *Terminal) ReadPrompt(prompt string) (string, error) {
	if err := t.startPrompt(); err != nil {
		return "", err
	}
	defer t.endPrompt()
	more := "… "
	if t.o.ASCII {
		more = ". "
	}
	var text string
	var err error
	if draft := t.typing.draft(t.history); t.o.Dumb {
		p := liner{Terminal: t, prompt: prompt, more: more, text: draft}
		text, err = p.read()
	} else {
		p := prompter{Terminal: t, prompt: prompt, more: more}
		p.editor.history = t.history
		p.set(draft)
		text, err = p.read()
	}
	if err != nil {
		return "", err
	}
	if err := t.history.add(text); err != nil && !t.warned {
		t.warned = true
		t.warn("the history is not kept: " + err.Error())
	}
	return text, nil
}

func (t *Terminal) startPrompt() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.used.Load() != idle {
		return errInUse
	}
	if err := t.input.enter(); err != nil {
		return err
	}
	t.used.Store(prompting)
	return nil
}

func (t *Terminal) endPrompt() {
	t.modes.restore()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used.Store(idle)
	t.input.leave()
}

// prompter is a prompt with its editor.
type prompter struct {
	*Terminal
	editor
	prompt, more string
	searching    *searching // through the history; nil most of the time
}

func (p *prompter) read() (string, error) {
	if err := p.modes.set(editMode); err != nil {
		return "", err
	}
	p.screen.order(pasteOn)
	defer p.screen.order(pasteOff)
	buf := make([]byte, 4096)
	for {
		text, done, err := p.keysTyped()
		if done || err != nil {
			return text, err
		}
		p.draw()
		if err := p.wait(buf); err != nil {
			p.finish("")
			return "", err
		}
	}
}

// wait waits for keys or news.
func (p *prompter) wait(buf []byte) error {
	n, got, err := p.input.read(buf, p.patience(true), false)
	switch {
	case errors.Is(err, io.EOF):
		return ErrHangup
	case err != nil:
		return err
	case got&ended != 0:
		return ErrClosed
	case got&resumed != 0:
		p.screen.forget()
		return p.modes.set(editMode)
	case got&resized != 0:
		p.screen.resize(p.picture)
	case n == 0:
		p.decoder.give()
	}
	p.decoder.feed(buf[:n])
	return nil
}

// keysTyped does what the keys say that have come.
func (p *prompter) keysTyped() (text string, done bool, err error) {
	for {
		ev, ok := p.decoder.next()
		if !ok {
			return "", false, nil
		}
		if p.searching != nil && p.search(ev) {
			continue
		}
		if text, done, err = p.key(ev); done || err != nil {
			return text, done, err
		}
	}
}

func (p *prompter) key(ev event) (text string, done bool, err error) {
	switch ev.act {
	case enter:
		text, done = p.enter()
		return text, done, nil
	case interrupt:
		return "", false, p.interrupt()
	case quit:
		p.finish(`^\`)
		return "", false, ErrQuit
	case suspend:
		return "", false, p.suspend()
	case eof:
		if p.text == "" {
			p.finish("")
			return "", false, io.EOF
		}
	case clear:
		p.screen.clear()
		return "", false, nil
	case search:
		p.searching = &searching{before: p.editor}
		return "", false, nil
	}
	p.apply(ev)
	return "", false, nil
}

func (p *prompter) enter() (string, bool) {
	if p.continues() {
		return "", false
	}
	p.finish("")
	if blank(p.text) {
		p.reset()
		return "", false
	}
	return p.text, true
}

func (p *prompter) interrupt() error {
	empty := p.text == ""
	p.finish("^C")
	if empty {
		return ErrInterrupt
	}
	p.reset()
	return nil
}

func (p *prompter) reset() {
	p.set("")
	p.at, p.draft = 0, ""
}

// suspend stops us, and goes on with the same text.
func (p *prompter) suspend() error {
	pos := p.pos
	p.finish("")
	p.pos = pos
	p.screen.order(pasteOff)
	p.modes.restore()
	p.Suspend()
	if err := p.modes.set(editMode); err != nil {
		return err
	}
	p.screen.order(pasteOn)
	return nil
}

// finish leaves what is written on the screen and goes to a new line.
func (p *prompter) finish(mark string) {
	p.pos = len(p.text)
	p.draw()
	p.screen.leave(mark)
}

func (p *prompter) draw() {
	width, _ := p.screen.size()
	p.screen.show(p.picture(width))
}

func (p *prompter) picture(width int) picture {
	prompt := p.prompt
	if p.searching != nil {
		prompt = p.searching.prompt()
	}
	return lay(prompt, p.more, p.text, p.pos, width)
}
