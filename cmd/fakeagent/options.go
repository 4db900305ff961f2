package main

import (
	"fmt"
	"os"
	"strings"
)

// options is the command line of the real agent, as far as a wrapper passes it on.
type options struct {
	print        bool
	version      bool
	partial      bool
	outputFormat string
	resume       string
	model        string
	workspace    string
	apiKey       string
	scenario     string
	prompt       string // a positional argument: it replaces stdin, which is then never read
}

// parseArguments takes what the real agent takes, and refuses the rest in its words.
func parseArguments(args []string) (options, error) {
	opts := options{outputFormat: "text", scenario: os.Getenv("FAKEAGENT_SCENARIO")}
	ignored := ""
	values := map[string]*string{
		"--output-format": &opts.outputFormat,
		"--resume":        &opts.resume,
		"--model":         &opts.model,
		"--workspace":     &opts.workspace,
		"--api-key":       &opts.apiKey,
		"--scenario":      &opts.scenario,
		"--mode":          &ignored,
		"--sandbox":       &ignored,
		"--header":        &ignored,
		"-H":              &ignored,
	}
	var words []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		name, value, joined := strings.Cut(arg, "=")
		target := values[name]
		switch {
		case arg == "--":
			words = append(words, args[i+1:]...)
			i = len(args)
		case arg == "-p" || arg == "--print":
			opts.print = true
		case arg == "--version":
			opts.version = true
		case arg == "--stream-partial-output":
			opts.partial = true
		case arg == "-f" || arg == "--force" || arg == "--yolo" || arg == "--trust" || arg == "--approve-mcps":
			// Permissions: nothing here asks for any.
		case target != nil && joined:
			*target = value
		case target != nil && i+1 < len(args):
			i++
			*target = args[i]
		case target != nil:
			return opts, fmt.Errorf("option '%s <value>' argument missing", name)
		case len(arg) > 1 && arg[0] == '-':
			return opts, fmt.Errorf("unknown option '%s'", name)
		default:
			words = append(words, arg)
		}
	}
	opts.prompt = strings.Join(words, " ")
	return opts, nil
}

// check refuses the modes in which the real agent would not write a stream.
func (o options) check() error {
	switch {
	case !o.print:
		return fmt.Errorf("fakeagent has no interactive mode: pass --print")
	case o.outputFormat == "text" || o.outputFormat == "json":
		return fmt.Errorf("fakeagent writes no %s: pass --output-format stream-json", o.outputFormat)
	case o.outputFormat != "stream-json":
		return fmt.Errorf("option '--output-format <format>' argument '%s' is invalid. "+
			"Allowed choices are text, json, stream-json", o.outputFormat)
	}
	return nil
}
