package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// defaultLife bounds every process of a scenario that does not set its own bound with "life".
const defaultLife = 90 * time.Second

type stdinMode int

const (
	stdinRead    stdinMode = iota // to EOF before the first step, as the real agent does
	stdinIgnored                  // left open and never read
	stdinClosed                   // closed unread
)

// scenario is a file that was read and checked whole, before its first step.
type scenario struct {
	stdin stdinMode
	life  time.Duration
	steps []step
}

// step is one line of it.
type step struct {
	where string // file:line
	act   action
}

// action does what a line says. It is called with the floor held and returns with it held.
type action func(*agent) error

// compiler turns lines into steps, and remembers what later lines may refer to.
type compiler struct {
	file  string
	lines []string
	next  int // index of the line to be read next
	scene scenario
	calls map[string]*callKind // tool calls that were started so far
}

func loadScenario(file string) (*scenario, error) {
	if file == "" {
		return nil, fmt.Errorf("no scenario: pass --scenario FILE or set FAKEAGENT_SCENARIO")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parseScenario(file, string(text))
}

func parseScenario(file, text string) (*scenario, error) {
	c := &compiler{
		file:  file,
		lines: strings.Split(text, "\n"),
		scene: scenario{life: defaultLife},
		calls: make(map[string]*callKind),
	}
	steps, err := c.block("")
	c.scene.steps = steps
	return &c.scene, err
}

// block reads lines up to the one that says terminator, or, with none, to the end of the file.
func (c *compiler) block(terminator string) ([]step, error) {
	var steps []step
	opened := c.where()
	for c.next < len(c.lines) {
		line := strings.TrimLeft(c.lines[c.next], " \t")
		c.next++
		where := c.where()
		word := strings.TrimSpace(line)
		switch {
		case word == "" || word[0] == '#':
			continue
		case word == "end" && terminator == "":
			return nil, fmt.Errorf("%s: end without repeat or when", where)
		case word == terminator:
			return steps, nil
		}
		act, err := c.line(line, len(steps) == 0)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		if act != nil {
			steps = append(steps, step{where: where, act: act})
		}
	}
	if terminator != "" {
		return nil, fmt.Errorf("%s: no end", opened)
	}
	return steps, nil
}

// where names the line that was read last.
func (c *compiler) where() string { return fmt.Sprintf("%s:%d", c.file, c.next) }

// line compiles one line; a line that only changes the scenario itself has no action.
func (c *compiler) line(line string, first bool) (action, error) {
	if strings.HasPrefix(line, "{") {
		return func(a *agent) error { return a.write([]byte(a.fillIn(line) + "\n")) }, nil
	}
	name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	rest = strings.TrimSpace(rest)
	switch name {
	case "stdin":
		if !first {
			return nil, fmt.Errorf("stdin must stand before the first step")
		}
		return nil, c.setStdin(rest)
	case "life":
		life, err := time.ParseDuration(rest)
		c.scene.life = life
		return nil, err
	case "repeat":
		return c.repeat(rest)
	case "when":
		return c.when(rest)
	case "on":
		return c.on(rest)
	}
	d, known := directives[name]
	if !known {
		return nil, fmt.Errorf("unknown directive %q", name)
	}
	act, err := d.compile(c, rest)
	if err != nil {
		return nil, fmt.Errorf("%w (usage: %s)", err, strings.TrimSpace(name+" "+d.usage))
	}
	return act, nil
}

func (c *compiler) setStdin(mode string) error {
	switch mode {
	case "ignore":
		c.scene.stdin = stdinIgnored
	case "close":
		c.scene.stdin = stdinClosed
	default:
		return fmt.Errorf("stdin %q: want ignore or close", mode)
	}
	return nil
}

func (c *compiler) repeat(rest string) (action, error) {
	count, err := parseCount(rest)
	if err != nil {
		return nil, err
	}
	steps, err := c.block("end")
	if err != nil {
		return nil, err
	}
	return func(a *agent) error {
		for range count {
			if err := a.play(steps); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// when plays a block for some starts of the agent only.
func (c *compiler) when(rest string) (action, error) {
	var holds func(*agent) bool
	switch what, text, _ := strings.Cut(rest, " "); {
	case rest == "fresh":
		holds = func(a *agent) bool { return a.opts.resume == "" }
	case rest == "resumed":
		holds = func(a *agent) bool { return a.opts.resume != "" }
	case what == "asked" && text != "":
		holds = func(a *agent) bool { return strings.Contains(a.prompt, text) }
	default:
		return nil, fmt.Errorf("when %q: want fresh, resumed or asked TEXT", rest)
	}
	steps, err := c.block("end")
	if err != nil {
		return nil, err
	}
	return func(a *agent) error {
		if !holds(a) {
			return nil
		}
		return a.play(steps)
	}, nil
}

func (c *compiler) on(rest string) (action, error) {
	name, line, _ := strings.Cut(rest, " ")
	sig, err := parseSignal(name)
	if err != nil {
		return nil, err
	}
	where := c.where()
	act, err := c.line(strings.TrimSpace(line), false)
	if err != nil {
		return nil, err
	}
	if act == nil {
		return nil, fmt.Errorf("on %s: want one directive that does something", name)
	}
	return func(a *agent) error {
		a.heed(sig, step{where: where, act: act})
		return nil
	}, nil
}

// path is name with the environment expanded, seen from the scenario's folder.
func (c *compiler) path(name string) string {
	name = os.ExpandEnv(name)
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(c.file), name)
}
