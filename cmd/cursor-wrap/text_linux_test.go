package main

import (
	"io"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// onTerminal is what the program writes on a terminal of so many columns.
func onTerminal(t *testing.T, columns uint16, env []string, more ...string) string {
	t.Helper()
	keyboard, terminal := openTerminal(t)
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
	shown := make(chan string)
	go func() {
		b, _ := io.ReadAll(keyboard) // ends with an error, when nobody has the terminal open any more
		shown <- strings.ReplaceAll(string(b), "\r\n", "\n")
	}()
	c := call{scenario: "play-sibling-keys.txt", env: env, stdout: terminal}
	c.args = append([]string{"--output-format=text"}, more...)
	run1(t, c).wants(0)
	terminal.Close()
	return <-shown
}

// TestTextOnATerminal has colours and Markdown there, and only there.
func TestTextOnATerminal(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name  string
		env   []string
		args  []string
		plain bool
	}{
		{"colours", []string{"TERM=xterm-256color", "NO_COLOR="}, nil, false},
		{"NO_COLOR", []string{"TERM=xterm-256color", "NO_COLOR=1"}, nil, true},
		{"dumb", []string{"TERM=dumb", "NO_COLOR="}, nil, true},
		{"--plain", []string{"TERM=xterm-256color", "NO_COLOR="}, []string{"--plain"}, true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got := onTerminal(t, 80, append(row.env, inUTF8...), row.args...)
			if strings.Contains(got, "\x1b[") == row.plain || strings.Contains(got, "I'll read `notes.txt`") != row.plain {
				t.Errorf("%q", got)
			}
		})
	}
	t.Run("narrow", func(t *testing.T) {
		t.Parallel()
		got := onTerminal(t, 20, append([]string{"TERM=dumb"}, inUTF8...))
		if !strings.Contains(got, "\n⏳ `wc -l notes.txt`\n✓ read …s.txt (0.2s)\n✓ `wc -l…` (0.8s,…)\n") {
			t.Errorf("%q", got)
		}
	})
}
