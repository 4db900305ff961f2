package main

import (
	"bufio"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"cursor-wrap/internal/display"
)

// shownLogs are the lines of the list on a terminal of 80 columns.
func shownLogs(t *testing.T, folder string, words ...string) (lines []string, r *ran) {
	t.Helper()
	keyboard, terminal := openTerminal(t)
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	read := make(chan []string)
	go func() {
		var all []string
		for s := bufio.NewScanner(keyboard); s.Scan() && s.Text() != "that was it"; {
			all = append(all, s.Text())
		}
		read <- all
	}()
	r = run1(t, call{bare: true, prompt: "-", stdout: terminal, args: append([]string{"logs", "--log-dir", folder}, words...)}).wants(0)
	fmt.Fprintln(terminal, "that was it")
	return <-read, r
}

func TestLogsOnATerminal(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for n := range 25 {
		putLog(t, folder, int64(n), fmt.Sprintf("%012x", n), "5f6c1c0e-7a53-4a39-8f43-7a6b1f0a9d11", "survivors", n == 3)
	}
	shown, r := shownLogs(t, folder)
	if len(shown) != 2*lastLogs+1 || !strings.HasPrefix(shown[1], "! ") || !strings.Contains(shown[1], " 000000000003 ") {
		t.Errorf("%d lines:\n%s", len(shown), strings.Join(shown, "\n"))
	}
	r.says("20 of 25 logs", "1 flagged", "-n 0")
	for n, line := range shown {
		isPath := n > 0 && n%2 == 0
		if w := display.Width(strings.TrimSpace(line)); w > 80 && !isPath || isPath != strings.HasPrefix(line, "  /") {
			t.Errorf("line %d of %d columns: %q", n, w, line)
		}
	}
	if all, _ := shownLogs(t, folder, "-n", "0"); len(all) != 51 {
		t.Errorf("-n 0: %d lines", len(all))
	}
	if all, _ := shownLogs(t, folder, "--last=2"); len(all) != 5 {
		t.Errorf("--last=2: %d lines", len(all))
	}
	if all, _ := shownLogs(t, folder, "--json"); strings.Count(strings.Join(all, "\n"), "run_id") != 25 {
		t.Errorf("--json: %d lines", len(all))
	}
	if n := strings.Count(string(logged(t, folder).stdout), "\n"); n != 26 {
		t.Errorf("into a pipe: %d lines", n)
	}
}
