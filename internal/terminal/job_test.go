package terminal

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// modesIn finds the lines of stty -g around a run of talk.
func modesIn(shown string) []string {
	return regexp.MustCompile("[0-9a-f]+(:[0-9a-f]+){20,}").FindAllString(shown, -1)
}

// stty has the shell print the modes, whenever it prompts.
func (p *person) stty() string {
	p.t.Helper()
	p.types("stty -g; echo do''ne\n")
	return p.sees("done")
}

func TestEveryWayOutUnderAShell(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, keys, sees string }{
		{"end of file", "\x04", "left with EOF"},
		{"interrupt", "\x03", "left with"},
		{"quit", "\x1c", "left with"},
		{"panic", "panic\r", "asked for it"},
		{"a turn", "turn\r\x04", "left with EOF"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := inShell(t)
			p.types("talk\n")
			shown := p.sees("> ")
			for _, k := range strings.SplitAfter(row.keys, "\r") {
				p.types(k)
				if k == "turn\r" {
					shown += p.sees("at work")
					p.types("\x03")
					shown += p.sees("key interrupt") + p.sees("> ")
				}
			}
			shown += p.sees(row.sees) + p.sees("shell$ ")
			if m := modesIn(shown); len(m) != 2 || m[0] != m[1] {
				t.Errorf("%q", shown)
			}
		})
	}
}

func TestTermination(t *testing.T) {
	t.Parallel()
	for _, keys := range []string{"", "turn\r"} {
		p := inShell(t)
		shown := p.stty()
		p.types(talkEnv + "=1 '" + os.Args[0] + "' 2>&1\n")
		p.sees("> ")
		p.types(keys)
		if keys != "" {
			p.sees("at work")
		}
		pids, err := exec.Command("pgrep", "-P", fmt.Sprint(p.shell)).Output()
		if err != nil {
			t.Skip("no pgrep")
		}
		if err := exec.Command("kill", strings.TrimSpace(string(pids))).Run(); err != nil {
			t.Fatal(err)
		}
		p.sees("shell$ ")
		shown += p.stty()
		if m := modesIn(shown); len(m) != 2 || m[0] != m[1] {
			t.Errorf("%q", shown)
		}
	}
}

func TestSuspendAndGoOn(t *testing.T) {
	t.Parallel()
	for _, term := range []string{"xterm", "dumb"} {
		p := inShell(t)
		p.types("export TERM=" + term + " " + talkEnv + "=1\n")
		p.sees("shell$ ")
		shown := p.stty()
		p.types("'" + os.Args[0] + "' 2>&1\n")
		p.sees("> ")
		p.types("half\x1a")
		p.sees("Stopped")
		p.sees("shell$ ")
		shown += p.stty()
		p.types("fg\n")
		if p.sees("> "); term == "xterm" {
			p.sees("half")
			p.types("\x15")
		}
		p.types("turn\r")
		suspendInTurn(p, term)
		p.sees("shell$ ")
		shown += p.stty()
		p.types("bg\n")
		p.sees("paused: true")
		shown += p.stty()
		p.types("fg\n")
		p.waitsForKeys()
		p.types("\x03")
		p.sees("key interrupt")
		p.sees("> ")
		p.types("\x04")
		p.sees("shell$ ")
		shown += p.stty()
		m := modesIn(shown)
		for i := range m {
			if len(m) != 5 || m[i] != m[0] {
				t.Errorf("%s: %q in %q", term, m, shown)
				break
			}
		}
	}
}

func suspendInTurn(p *person, term string) {
	p.t.Helper()
	if term == "xterm" {
		p.sees("at work")
	}
	p.waitsForKeys()
	p.types("\x1a")
	p.sees("key suspend")
	p.sees("Stopped")
}

// TestInTmux: what a person sees, as a terminal of the real world draws it.
func TestInTmux(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux, which draws the terminal here")
	}
	dir, err := os.MkdirTemp("", "cw") // the names of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "tmux")
	tmux := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("tmux", append([]string{"-S", socket}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %q: %s", args, out)
		}
		return strings.TrimRight(string(out), "\n ")
	}
	tmux("-f", "/dev/null", "new-session", "-d", "-x", "40", "-y", "12", "LC_ALL=C.UTF-8 "+talkEnv+"=1 '"+os.Args[0]+"'")
	defer func() { _ = exec.Command("tmux", "-S", socket, "kill-server").Run() }() // it may have ended with the program
	wants := func(want string) {
		t.Helper()
		var got string
		for late := time.Now().Add(patience); time.Now().Before(late); {
			if got = tmux("capture-pane", "-p"); got == want {
				return
			}
		}
		t.Fatalf("%s\n--- instead of\n%s", got, want)
	}
	wants(">")
	tmux("send-keys", "-l", "漢字かな交じり文をここに書いて四十桁で折り返す所")
	tmux("send-keys", "Home")
	tmux("send-keys", "-l", "X")
	wants("> X漢字かな交じり文をここに書いて四十桁\nで折り返す所")
	tmux("resize-window", "-x", "21")
	wants("> X漢字かな交じり文を\nここに書いて四十桁で\n折り返す所")
	tmux("resize-window", "-x", "60")
	wants("> X漢字かな交じり文をここに書いて四十桁で折り返す所")
	tmux("send-keys", "C-e", "C-u")
	wants(">")
	tmux("send-keys", "-l", "turn")
	tmux("send-keys", "Enter")
	wants("> turn\nat work")
	tmux("send-keys", "C-c")
	wants("> turn\nkey interrupt\n>")
}
