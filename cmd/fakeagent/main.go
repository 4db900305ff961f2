// Command fakeagent stands in for cursor-agent in tests, in the demo and in the bench. It takes the
// same command line and plays a scenario: a text file that says line by line what the agent writes,
// how long it is silent, which processes it leaves behind and how it ends. It reports nothing of its
// own on stdout, decides nothing, and every process of it ends by itself.
//
// testdata/scenarios/README.md lists the directives; testdata/scenarios holds the scenarios.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// version has the shape that the real agent prints, so that a check by pattern accepts it.
const version = "2026.09.28-fa4e000"

const (
	exitRefused     = 1  // what the real agent answers to every wrong command line
	exitBadScenario = 70 // EX_SOFTWARE: the test is wrong, not the program under test
	exitOutlived    = 99 // the life limit struck; a test that sees it has a scenario that is too long
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == childArgument {
		os.Exit(runChild(os.Args[2:]))
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(args []string, stdin, stdout, stderr *os.File) int {
	born := time.Now()
	opts, err := parseArguments(args)
	if err != nil {
		fmt.Fprintf(stderr, "error: %v\n", err)
		return exitRefused
	}
	if opts.version {
		fmt.Fprintln(stdout, version)
		return 0
	}
	if err := opts.check(); err != nil {
		fmt.Fprintf(stderr, "error: %v\n", err)
		return exitRefused
	}
	scene, err := loadScenario(opts.scenario)
	if err != nil {
		fmt.Fprintf(stderr, "fakeagent: %v\n", err)
		return exitBadScenario
	}

	a := newAgent(opts, stdout, stderr)
	a.death = born.Add(scene.life)
	// A reader that went away must show as EPIPE, as in the real agent, and not end us by SIGPIPE.
	signal.Ignore(syscall.SIGPIPE)
	signal.Notify(a.signals, syscall.SIGTERM, syscall.SIGINT)
	go a.heedSignals()
	go a.perform(scene, stdin)

	// The script may be stuck in a read, in a write or in a loop: whoever ends the run does not wait for it.
	select {
	case code := <-a.ended:
		return code
	case <-time.After(time.Until(a.death)):
		return exitOutlived
	}
}

// perform reads the prompt, plays the scenario and ends the run.
func (a *agent) perform(scene *scenario, stdin *os.File) {
	err := a.readPrompt(scene.stdin, stdin)
	// Never given back: nothing is written after the end.
	a.floor.Lock()
	if err == nil {
		err = a.play(scene.steps)
	}
	a.end(a.exitCode(err))
}

func (a *agent) readPrompt(mode stdinMode, stdin *os.File) error {
	if mode == stdinClosed {
		stdin.Close()
	}
	if a.opts.prompt != "" {
		a.prompt = a.opts.prompt
		return nil
	}
	if mode != stdinRead {
		return nil
	}
	text, err := io.ReadAll(stdin)
	a.prompt = string(text)
	return err
}

// exitCode says how the process ends after err came out of the steps.
func (a *agent) exitCode(err error) int {
	var exit exitRequest
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	case errors.Is(err, syscall.EPIPE):
		fmt.Fprintln(a.stderr, "Error: write EPIPE")
		return exitRefused
	}
	fmt.Fprintf(a.stderr, "fakeagent: %v\n", err)
	return exitBadScenario
}
