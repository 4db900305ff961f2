package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// directive is one word of the scenario language. compile checks the rest of its line before anything
// runs, so that a scenario with a mistake in its last line fails at once.
type directive struct {
	usage   string
	compile func(c *compiler, rest string) (action, error)
}

// directives holds all but stdin, life, repeat, when and on, which concern the scenario itself.
var directives = map[string]directive{
	// what the stream says
	"init":          {"", plain((*agent).sayInit)},
	"user":          {"[OTHER TEXT]", text((*agent).sayUser)},
	"think":         {"[TEXT]", text((*agent).think)},
	"think-delta":   {"TEXT", text((*agent).thinkDelta)},
	"say":           {"TEXT", text((*agent).sayFinal)},
	"say-midturn":   {"TEXT", text((*agent).sayMidturn)},
	"result":        {"[TEXT]", text((*agent).sayResult)},
	"tool":          {"start|done|background|reject|deny|fail ID ...", compileTool},
	"notify":        {"TASKID STATUS TITLE", compileNotify},
	"reconnecting":  {"N", numbered((*agent).sayReconnecting)},
	"retrying":      {"N", numbered((*agent).sayRetrying)},
	"resuming":      {"N", numbered((*agent).sayResuming)},
	"reconnected":   {"", plain((*agent).sayReconnected)},
	"raw":           {`"QUOTED BYTES"`, compileRaw(func(a *agent, b []byte) error { return a.write(b) })},
	"fill":          {"BYTES", sized((*agent).fill)},
	"flood":         {"COUNT", numbered((*agent).flood)},
	"play":          {"FILE [real|xN|fast]", compilePlay},
	"mirror":        {"on|off", compileMirror},
	"stderr":        {`TEXT | raw "QUOTED" | fill BYTES`, compileStderr},
	"close":         {"stdout|stderr", compileClose},
	"sleep":         {"DURATION", timed((*agent).pause)},
	"burn":          {"DURATION", timed((*agent).burn)},
	"receive":       {"DURATION", timed((*agent).receive)},
	"wait-file":     {"PATH", compileWaitFile},
	"touch":         {"PATH", compileTouch},
	"spawn":         {"KIND DURATION [ARGV...]", compileSpawn},
	"wait-children": {"", plain((*agent).waitChildren)},
	"ignore":        {"SIGNAL", compileIgnore},
	"linger":        {"", plain((*agent).linger)},
	"exit":          {"N", compileExit},
	"die":           {"SIGNAL", compileDie},
}

// The constructors below fit an agent's method to a line with one kind of argument.

func plain(do func(*agent) error) func(*compiler, string) (action, error) {
	return func(_ *compiler, rest string) (action, error) {
		if rest != "" {
			return nil, fmt.Errorf("unexpected %q", rest)
		}
		return do, nil
	}
}

func text(do func(*agent, string) error) func(*compiler, string) (action, error) {
	return func(_ *compiler, rest string) (action, error) {
		return func(a *agent) error { return do(a, rest) }, nil
	}
}

func numbered(do func(*agent, int) error) func(*compiler, string) (action, error) {
	return func(_ *compiler, rest string) (action, error) {
		n, err := parseCount(rest)
		return func(a *agent) error { return do(a, n) }, err
	}
}

func sized(do func(*agent, int) error) func(*compiler, string) (action, error) {
	return func(_ *compiler, rest string) (action, error) {
		n, err := parseSize(rest)
		return func(a *agent) error { return do(a, n) }, err
	}
}

func timed(do func(*agent, time.Duration) error) func(*compiler, string) (action, error) {
	return func(_ *compiler, rest string) (action, error) {
		d, err := time.ParseDuration(rest)
		return func(a *agent) error { return do(a, d) }, err
	}
}

func compileNotify(_ *compiler, rest string) (action, error) {
	words := strings.SplitN(rest, " ", 3)
	if len(words) < 3 {
		return nil, fmt.Errorf("too few words")
	}
	return func(a *agent) error { return a.sayNotification(words[0], words[1], words[2]) }, nil
}

func compileRaw(do func(*agent, []byte) error) func(*compiler, string) (action, error) {
	return func(_ *compiler, rest string) (action, error) {
		s, err := strconv.Unquote(rest)
		return func(a *agent) error { return do(a, []byte(s)) }, err
	}
}

func compileMirror(_ *compiler, rest string) (action, error) {
	if rest != "on" && rest != "off" {
		return nil, fmt.Errorf("unexpected %q", rest)
	}
	return func(a *agent) error {
		a.mirror = rest == "on"
		return nil
	}, nil
}

func compileStderr(c *compiler, rest string) (action, error) {
	toStderr := func(a *agent, b []byte) error {
		_, err := a.stderr.Write(b)
		return err
	}
	word, argument, _ := strings.Cut(rest, " ")
	switch word {
	case "raw":
		return compileRaw(toStderr)(c, argument)
	case "fill":
		return sized((*agent).fillStderr)(c, argument)
	}
	return func(a *agent) error { return toStderr(a, []byte(rest+"\n")) }, nil
}

func compileClose(_ *compiler, rest string) (action, error) {
	switch rest {
	case "stdout":
		return func(a *agent) error { return a.stdout.Close() }, nil
	case "stderr":
		return func(a *agent) error { return a.stderr.Close() }, nil
	}
	return nil, fmt.Errorf("unexpected %q", rest)
}

func compileWaitFile(c *compiler, rest string) (action, error) {
	if rest == "" {
		return nil, fmt.Errorf("no path")
	}
	return func(a *agent) error {
		a.away(func() {
			for missing(c.path(rest)) {
				time.Sleep(2 * time.Millisecond)
			}
		})
		return nil
	}, nil
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return err != nil
}

func compileTouch(c *compiler, rest string) (action, error) {
	if rest == "" {
		return nil, fmt.Errorf("no path")
	}
	return func(*agent) error {
		f, err := os.OpenFile(c.path(rest), os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		return f.Close()
	}, nil
}

func compileIgnore(_ *compiler, rest string) (action, error) {
	sig, err := parseSignal(rest)
	return func(a *agent) error {
		a.heed(sig)
		return nil
	}, err
}

func compileExit(_ *compiler, rest string) (action, error) {
	code, err := strconv.ParseUint(rest, 10, 8)
	return func(*agent) error { return exitRequest(code) }, err
}

func compileDie(_ *compiler, rest string) (action, error) {
	sig, err := parseSignal(rest)
	return func(a *agent) error {
		if err := die(sig); err != nil {
			return err
		}
		return a.linger() // the signal is on its way
	}, err
}

// parseCount reads a number that is not negative.
func parseCount(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err
}

// parseSize reads a number of bytes; K and M are 1024 and 1024*1024.
func parseSize(s string) (int, error) {
	unit := 1
	if digits, found := strings.CutSuffix(s, "K"); found {
		s, unit = digits, 1<<10
	} else if digits, found := strings.CutSuffix(s, "M"); found {
		s, unit = digits, 1<<20
	}
	n, err := parseCount(s)
	if err == nil && n > math.MaxInt32/unit {
		err = fmt.Errorf("%q is too large", s)
	}
	return n * unit, err
}

func (a *agent) pause(d time.Duration) error {
	a.sleep(d)
	return nil
}

// linger never returns; signals are still answered, and the life limit still holds.
func (a *agent) linger() error {
	a.away(func() { select {} })
	return nil
}

// burn keeps one core busy.
func (a *agent) burn(d time.Duration) error {
	a.away(func() { spin(time.Now().Add(d)) })
	return nil
}

func spin(until time.Time) {
	for time.Now().Before(until) {
	}
}
