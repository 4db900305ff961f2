//go:build linux

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// supervisor is a command line that a tree is put under.
type supervisor struct {
	name   string
	argv   []string // "{}" stands for the agent's command line
	ours   bool
	judges bool // ours: it asks the tree before it calls a silence a hang

	containment string // of ours: as in --containment
}

const placeholder = "{}"

// agentFlags are what cursor-wrap gives its agent; everybody else does the
// same, so that the bystanders look like the agent.
var agentFlags = []string{"--print", "--output-format", "stream-json", "--force"}

// parseSupervisor reads a command line; an agent that is not placed in it goes
// to its end.
func parseSupervisor(line string) (supervisor, error) {
	argv := strings.Fields(line)
	if len(argv) == 0 {
		return supervisor{}, fmt.Errorf("-supervisor is empty")
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return supervisor{}, err
	}
	s := supervisor{name: strings.TrimSpace(strings.ReplaceAll(line, placeholder, "")), argv: argv}
	s.argv[0] = path
	if !slices.Contains(argv, placeholder) {
		s.argv = append(s.argv, placeholder)
	}
	return s, nil
}

// wrapper is cursor-wrap itself. What it can be told is read from its help, so
// that the suite also runs against older ones.
func wrapper(path, containment string) (supervisor, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return supervisor{}, err
	}
	help, err := exec.Command(path, "--help").CombinedOutput()
	if err != nil {
		return supervisor{}, fmt.Errorf("%s --help: %w", path, err)
	}
	s := supervisor{name: "cursor-wrap", argv: []string{path}, ours: true, containment: containment}
	if containment != "" {
		s.name += " " + containment
		s.argv = append(s.argv, "--containment="+containment)
	}
	s.judges = slices.Contains(strings.Fields(string(help)), "--confirm")
	return s, nil
}

// tuning is how the wrapper is told to behave.
type tuning struct {
	grace string // --kill-grace; empty leaves the wrapper's own
	idle  time.Duration
}

// line is the command line for one run.
func (s supervisor) line(agent []string, c cell, dir string, t tuning) []string {
	if !s.ours {
		var argv []string
		for _, arg := range s.argv {
			if arg == placeholder {
				argv = append(argv, agent...)
			} else {
				argv = append(argv, arg)
			}
		}
		return argv
	}
	argv := append(slices.Clone(s.argv), "-p", "--agent-bin", agent[0],
		"--log-dir", filepath.Join(dir, "logs"), "--log-sync", "none")
	if t.grace != "" {
		argv = append(argv, "--kill-grace", t.grace)
	}
	switch c.Ending {
	case "hang":
		argv = append(argv, "--idle-timeout", t.idle.String(), "--tick-interval", "50ms")
		if s.judges {
			// A restless tree is busy: a hang for the stream alone.
			argv = append(argv, "--confirm=off")
		}
	case "linger":
		argv = append(argv, "--exit-grace", t.idle.String())
	}
	return append(argv, "hostile")
}
