package main

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// said is a stderr record.
type said struct {
	Text    string
	RawText *string `json:"raw_text"`
	RawB64  *string `json:"raw_b64"`
}

// saids are what the log has of the agent's stderr.
func (r *ran) saids() (all []said) {
	r.Helper()
	for _, rec := range r.all("stderr") {
		var s said
		if err := json.Unmarshal(rec.line, &s); err != nil {
			r.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// mode is what run_start says of the agent's stderr.
func (r *ran) mode() string {
	r.Helper()
	var begun struct{ Stderr string }
	r.one("run_start", &begun)
	return begun.Stderr
}

func TestStderrModes(t *testing.T) {
	t.Parallel()
	const coloured = "\x1b[31mred\x1b[0m"
	scenario := lines("init", `stderr raw "\x1b[31mred\x1b[0m\n"`, `stderr raw "\xff\xfe\n"`, "stderr unknown option", "exit 1")
	for mode, want := range map[string]string{
		"pipe":    coloured + "\n\xff\xfe\nunknown option\n",
		"pty":     coloured + "\r\n\xff\xfe\r\nunknown option\r\n",
		"inherit": coloured + "\n\xff\xfe\nunknown option\n",
		"discard": "",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			c := call{scenario: scenario, env: []string{"CURSOR_WRAP_STDERR=" + mode}}
			if mode == "pty" { // both ways to say it
				c.env, c.args = nil, []string{"--stderr", mode}
			}
			r := run1(t, c).wants(1)
			if got, _, _ := strings.Cut(r.said, "cursor-wrap: "); got != want {
				t.Errorf("it says %q, want %q", got, want)
			}
			if r.mode() != mode {
				t.Errorf("run_start has %q", r.mode())
			}
			records, errors := r.saids(), r.result().Errors
			if mode == "inherit" || mode == "discard" {
				if len(records)+len(errors) > 0 {
					t.Errorf("logged %v, told %q", records, errors)
				}
				return
			}
			if len(records) != 3 || records[0].Text != "red" || *records[0].RawText != coloured ||
				*records[1].RawB64 != base64.StdEncoding.EncodeToString([]byte("\xff\xfe")) ||
				records[2].Text != "unknown option" || records[2].RawText != nil {
				t.Errorf("logged %+v", records)
			}
			if len(errors) != 1 || strings.ContainsRune(errors[0], 0x1b) {
				t.Errorf("told %q", errors)
			}
			r.says("try: the agent does not know a flag")
		})
	}
}

func TestTheAgentsTerminalHasTheSizeOfOurs(t *testing.T) {
	t.Parallel()
	keyboard, terminal := openTerminal(t)
	resize := func(rows, cols uint16) {
		t.Helper()
		if err := unix.IoctlSetWinsize(int(keyboard.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols}); err != nil {
			t.Fatal(err)
		}
	}
	resize(33, 99)
	for name, c := range map[string]call{
		"on stderr": {stderr: terminal},
		"on stdin":  {reader: terminal, args: []string{"fix it"}},
	} {
		resize(33, 99)
		c.args = append([]string{"--stderr=pty"}, c.args...)
		p := contain(t, c, `trap 'stty size <&2' WINCH`, `stty size <&2`, `sleep 60 & while :; do wait $!; done`)
		p.readUntil("33 99\n")
		resize(50, 132)
		p.signal(syscall.SIGWINCH)
		p.readUntil("50 132\n")
		p.signal(syscall.SIGTERM)
		if r := p.over(143); r.mode() != "pty" {
			t.Errorf("%s: %s", name, r.mode())
		}
	}
}

func TestWithoutATerminalTheAgentsHas24RowsOf80(t *testing.T) {
	t.Parallel()
	p := contain(t, call{args: []string{"--stderr=pty"}}, `stty size <&2`)
	if r := p.over(1); !strings.HasPrefix(string(r.stdout), "24 80\n") {
		t.Errorf("%.100q", r.stdout)
	}
}

// The tool's question is seen, and asked without end where nobody answers.
// Without a terminal the tool fails at once (h10-waits-for-input.txt).
func TestAQuestionOnTheTerminalIsShown(t *testing.T) {
	t.Parallel()
	const question = "Username for 'https://git.example.invalid': "
	// It lingers: an agent whose tool is ended first would go on to its result, which wins.
	r := run1(t, call{scenario: lines("init", "user", "tool start push shell 500 git push", "spawn asker 30s git push", "linger"),
		args: args("--stderr=pty --max-duration=1s")}).wants(124).says(question)
	if records := r.saids(); len(records) != 1 || records[0].Text != question {
		t.Errorf("logged %v", records)
	}
}

func TestEveryEndingWithATerminalLeavesNobody(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		then string
		args string
		sig  syscall.Signal
		code int
	}{
		"a result": {then: "result", code: 0},
		"hung up":  {then: "die HUP", code: 1}, // which is no end of ours
		"a hang":   {then: "linger", args: "--max-duration=600ms", code: 124},
		"TERM":     {then: "linger", sig: syscall.SIGTERM, code: 143},
		"HUP":      {then: "linger", sig: syscall.SIGHUP, code: 129},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := contain(t, call{scenario: lines(append(crowd, row.then)...),
				args: append(args("--kill-grace=200ms --stderr=pty"), args(row.args)...)})
			c.awaitFile("there")
			if row.sig != 0 {
				c.signal(row.sig)
			}
			if td := c.over(row.code).teardown(); td.By != "guard" || !td.Proof || len(td.Left)+len(td.Spared) != 0 {
				t.Errorf("%+v", td)
			}
		})
	}
}
