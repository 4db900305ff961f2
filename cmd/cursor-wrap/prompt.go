package main

import (
	"bytes"
	"io"
	"os"

	"golang.org/x/term"
)

// readPrompt is the prompt from the argument, or stdin to its end.
func readPrompt(args []string, stdin *os.File) ([]byte, error) {
	const try = "give one as an argument, or on stdin"
	switch len(args) {
	case 0:
	case 1:
		if len(bytes.TrimSpace([]byte(args[0]))) == 0 {
			return nil, usagef(try, "the prompt is empty")
		}
		return []byte(args[0]), nil
	default:
		return nil, usagef("quote it, so that it is one argument; flags for the agent go after --",
			"more than one prompt: %q and %q", args[0], args[1])
	}
	if term.IsTerminal(int(stdin.Fd())) {
		return nil, usagef(try, "no prompt")
	}
	prompt, err := io.ReadAll(stdin)
	if err != nil {
		return nil, usagef(try, "no prompt: read stdin: %v", bare(err))
	}
	if len(bytes.TrimSpace(prompt)) == 0 {
		return nil, usagef(try, "the prompt on stdin is empty")
	}
	return prompt, nil
}
