package tmux

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"cursor-wrap/internal/process"
)

// shellTime is how long a shell may take to answer.
const shellTime = 2 * time.Second

// forgetExit: something runs again.
func (m *memory) forgetExit() {
	if m.Asked || m.Exit != nil {
		m.Asked, m.Exit = false, nil
		_ = os.Remove(filepath.Join(m.folder, exitFile)) // it is removed again before the next question
	}
}

// askExit is the exit status of what was typed into a shell and is over: as it
// is known, or as the shell tells when it may be asked. It is asked once for
// each command, and its answer read from a file: a screen can show anything.
func (s *Server) askExit(ctx context.Context, m *memory, shell process.Proc, may bool) (exit *int, note string) {
	switch {
	case m.Exit != nil:
	case m.Asked: // it may have answered since
		m.Exit = exitStatus(m.folder)
	case may:
		if err := s.typeQuestion(ctx, m, shell); err != nil {
			return nil, "exit status not asked for: " + err.Error()
		}
		if m.Exit = m.awaitAnswer(ctx); m.Exit == nil {
			return nil, fmt.Sprintf("the shell has not told its exit status within %v", shellTime)
		}
	}
	return m.Exit, ""
}

// typeQuestion types the question. What the person has typed and not sent goes
// first, or it would be sent with it.
func (s *Server) typeQuestion(ctx context.Context, m *memory, shell process.Proc) error {
	text, err := question(shell, filepath.Join(m.folder, exitFile))
	if err != nil {
		return err
	}
	now, err := s.capture(ctx, m.Pane)
	switch {
	case err != nil:
		return err
	case now.mode:
		return fmt.Errorf("the pane is in copy mode")
	case !now.typed:
		return fmt.Errorf("what is typed would not go to this pane alone")
	}
	if err := os.MkdirAll(m.folder, 0o700); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(m.folder, exitFile)); err != nil && !os.IsNotExist(err) {
		return err
	}
	m.Asked = true
	_, err = s.ask(ctx, "send-keys", "-t", m.Pane, "C-u", then,
		"send-keys", "-t", m.Pane, "-l", "--", word(text), then, "send-keys", "-t", m.Pane, "Enter")
	return err
}

// question is what makes a shell write the exit status into a file. The blank
// before it keeps it out of the history of shells that are told to.
func question(shell process.Proc, path string) (string, error) {
	name := strings.TrimPrefix(filepath.Base(shell.Command), "-")
	variable := map[string]string{
		"sh": "$?", "bash": "$?", "rbash": "$?", "dash": "$?", "ash": "$?", "busybox": "$?", "zsh": "$?", "ksh": "$?", "ksh93": "$?",
		"mksh": "$?", "lksh": "$?", "oksh": "$?", "pdksh": "$?", "yash": "$?", "posh": "$?",
		"fish": "$status", "csh": "$status", "tcsh": "$status", "bsd-csh": "$status",
	}[name]
	switch {
	case variable == "":
		return "", fmt.Errorf("%s is no shell that is known", name)
	case !interactive(process.Argv(shell.PID)):
		return "", fmt.Errorf("%s runs a script, it takes no commands", name)
	case strings.ContainsFunc(path, unicode.IsControl):
		return "", fmt.Errorf("%q cannot be typed", path)
	}
	return " echo " + variable + " > " + quote(name, path), nil
}

// interactive tells by its command line whether a shell takes commands from the
// terminal: it has no script and no command, or was told so.
func interactive(argv []string) bool {
	if len(argv) == 0 {
		return false
	}
	short := func(letter string) bool {
		return slices.ContainsFunc(argv[1:], func(a string) bool {
			return len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.Contains(a, letter)
		})
	}
	operand := func(a string) bool { return !strings.HasPrefix(a, "-") && a != argv[0] }
	return !short("c") && (short("i") || !slices.ContainsFunc(argv[1:], operand))
}

// quote is a path as one word of a shell.
func quote(shell, path string) string {
	switch shell {
	case "fish":
		path = strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(path)
	case "csh", "tcsh", "bsd-csh": // which looks for its history within quotes, too
		path = strings.NewReplacer(`'`, `'\''`, `!`, `\!`).Replace(path)
	default:
		path = strings.ReplaceAll(path, `'`, `'\''`)
	}
	return "'" + path + "'"
}

// awaitAnswer waits for the whole line.
func (m *memory) awaitAnswer(ctx context.Context) *int {
	ctx, cancel := context.WithTimeout(ctx, shellTime)
	defer cancel()
	for {
		if exit := exitStatus(m.folder); exit != nil || ctx.Err() != nil {
			return exit
		}
		pause(ctx, 5*time.Millisecond)
	}
}
