package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const (
	bare = "bare"
	tini = "tini"
)

// startupTarget is for two processes, each a start of the whole program.
var startupTarget = atMost(3, 2.2)

// startup is what a run costs whose agent ends at once: start, log, result,
// teardown.
func (l *lab) startup(ctx context.Context) error {
	agent, made, err := l.instantAgent(ctx)
	if err != nil {
		return err
	}
	rounds := pick(l.quick, 60, 100)
	cs := l.launchers()
	l.say("startup: a rehearsal, then %d rounds of %d contenders, the agent %s", rounds, len(cs), made)
	var all samples
	// One log directory for all: cursor-wrap looks through it when it starts,
	// and on a real machine it is not empty.
	err = l.withLogs(func() (err error) {
		all, err = l.rounds(ctx, "startup", 0, rounds, cs, func(ctx context.Context, c contender, _ int) (map[string]float64, error) {
			return l.launch(ctx, c, agent)
		})
		return err
	})
	if err != nil {
		return err
	}
	r := l.report
	r.section("startup", fmt.Sprintf("an agent that ends at once (%s), %d rounds", made, rounds))
	for _, c := range cs {
		if len(cs) < 4 { // no tini to compare with
			r.value("start to exit", c.name, "ms", all.of(c.name, "ms"), nil)
			continue
		}
		var t *target
		if c.name == written || c.name == always {
			t = startupTarget
		}
		r.ratio("start to exit", c.name, "ms", all.of(c.name, "ms"), tini, all.of(tini, "ms"), t)
	}
	r.flush()
	if len(cs) < 4 {
		r.note("tini: not installed")
	}
	return nil
}

// launchers are the contenders of this section. They get the agent as their
// source; whoever does not wrap it hands it the arguments that a wrapper would.
func (l *lab) launchers() []contender {
	args := []string{"--print", "--output-format", "stream-json", "--force"}
	plain := func(before ...string) func(command) []command {
		return func(agent command) []command {
			return []command{{argv: append(append(before, agent.argv[0]), args...)}}
		}
	}
	cs := []contender{{name: bare, pipeline: plain()}}
	if path, err := exec.LookPath("tini"); err == nil {
		cs = append(cs, contender{name: tini, pipeline: plain(path, "-s", "--")})
	}
	return append(cs, l.contenders(written, always)...)
}

func (l *lab) launch(ctx context.Context, c contender, agent string) (map[string]float64, error) {
	var got int
	spent, err := l.run(ctx, c.pipeline(command{argv: []string{agent}}), func(f flow) error {
		return drain(f.fd, func(chunk []byte) error {
			got += len(chunk)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	if want := len(initLine) + len(resultLine); got != want {
		return nil, fmt.Errorf("forwarded %d bytes of %d", got, want)
	}
	l.report.outlived(c.name, spent.left)
	return map[string]float64{"ms": spent.wall.Seconds() * 1e3}, nil
}

// instantAgent makes an agent that starts and ends as fast as a process can:
// in C where there is a compiler, because a Go runtime's start would be most
// of what is measured.
func (l *lab) instantAgent(ctx context.Context) (path, made string, err error) {
	path = filepath.Join(l.dir, "agent")
	// Builtins only: a fork would double what is measured.
	script := "#!/bin/sh\nwhile read -r line; do :; done\nprintf %s '" + initLine + resultLine + "'\n"
	made, err = build(ctx, path, fmt.Sprintf(agentC, initLine+resultLine), script)
	return path, made, err
}

// build makes a program in C, or the script where there is no compiler, and
// says which.
func build(ctx context.Context, path, c, script string) (made string, err error) {
	text := path + ".c"
	if err := os.WriteFile(text, []byte(c), 0o600); err != nil {
		return "", err
	}
	if exec.CommandContext(ctx, "cc", "-O2", "-o", path, text).Run() == nil {
		return "written in C", nil
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	err = os.WriteFile(path, []byte(script), 0o700)
	return "a shell script for want of a C compiler", errors.Join(err, os.Chmod(path, 0o700))
}

// agentC reads its prompt to the end and answers. %q of these lines is a C
// string too: they hold nothing but ASCII, quotes and newlines.
const agentC = `#include <unistd.h>
static const char answer[] = %q;
int main(void) {
	char prompt[4096];
	while (read(0, prompt, sizeof prompt) > 0) {}
	return write(1, answer, sizeof answer - 1) != sizeof answer - 1;
}
`
