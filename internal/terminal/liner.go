package terminal

import (
	"errors"
	"io"
	"strings"
)

// liner is a prompt on a terminal that understands nothing: the kernel edits
// the line.
type liner struct {
	*Terminal
	prompt, more string
	text         string
}

func (p *liner) read() (string, error) {
	if err := p.modes.set(lineMode); err != nil {
		return "", err
	}
	p.screen.freshLine()
	for {
		p.ask()
		line, err := p.line()
		switch {
		case errors.Is(err, errAnew):
		case errors.Is(err, ErrInterrupt) && p.text+line != "":
			p.text = ""
		case errors.Is(err, io.EOF) && !blank(p.text+line):
			return p.text + line, nil
		case err != nil:
			return "", err
		default:
			e := editor{text: p.text + line}
			again := e.continues()
			if p.text = e.text; !again && !blank(p.text) {
				return p.text, nil
			}
		}
	}
}

func (p *liner) ask() {
	i := strings.LastIndexByte(p.text, '\n') + 1
	prompt := p.prompt
	if i > 0 {
		prompt = p.more
	}
	if blank(p.text) {
		p.text = ""
	}
	_, _ = p.Write([]byte(prompt + p.text[min(i, len(p.text)):])) // reading will say that the terminal is gone
}

// errAnew: the prompt has to be shown once more.
var errAnew = errors.New("the prompt was lost")

// line reads a line without its end. Interrupt and suspend end one, too, see
// lineMode.
func (p *liner) line() (string, error) {
	var line strings.Builder
	buf := make([]byte, 4096)
	for {
		n, got, err := p.input.read(buf, -1, false)
		if err == nil {
			err = p.news(got)
		}
		if err != nil {
			return line.String(), p.ending(err)
		}
		line.Write(buf[:n])
		text := line.String()
		if text == "" {
			continue
		}
		head := text[:len(text)-1]
		switch text[len(text)-1] {
		case '\n':
			return strings.ToValidUTF8(head, "\uFFFD"), nil
		case p.decoder.special.interrupt:
			p.endLine()
			return head, ErrInterrupt
		case p.decoder.special.suspend:
			p.endLine()
			return "", p.suspend()
		}
	}
}

func (p *liner) endLine() { _, _ = p.Write([]byte{'\n'}) } // reading will say that the terminal is gone

// ending tells the end-of-file key from the end of the terminal.
func (p *liner) ending(err error) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	if p.modes.gone() {
		return ErrHangup
	}
	p.endLine()
	return io.EOF
}

func (p *liner) suspend() error {
	p.modes.restore()
	p.Suspend()
	return p.news(resumed)
}

func (p *liner) news(got news) error {
	switch {
	case got&ended != 0:
		return ErrClosed
	case got&resumed == 0:
		return nil
	}
	if err := p.modes.set(lineMode); err != nil {
		return err
	}
	return errAnew
}
