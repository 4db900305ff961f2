package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"cursor-wrap/internal/display"
	"cursor-wrap/internal/process"
	"cursor-wrap/internal/supervise"
)

// checkTimeout is how long one look may take: a folder can lie on a server
// that does not answer. It is longer than a stranger has to say its version.
const checkTimeout = 2 * versionTimeout

// doctor is the subcommand that says beforehand what a run would run into.
type doctor struct {
	options
	std    stdio
	code   *int
	asJSON bool
}

func newDoctor(std stdio, code *int, _ *early) *cobra.Command {
	d := &doctor{std: std, code: code}
	c := &cobra.Command{
		Use:   "doctor [flags]",
		Short: "Check the agent, the machine and the folders that a run needs",
		Long: `doctor looks at everything that a run needs and says of each thing whether it
is there (ok), lacks something that a run can do without (warn), or keeps runs
from working (fail), and what to do about it. It starts no run of the agent,
asks nobody over the network, shows no secret, and leaves nothing behind.

Exit codes: 0 nothing failed; 1 something did.`,
		Example: `  cursor-wrap doctor
  cursor-wrap doctor --agent-bin ~/bin/cursor-agent --workspace ~/project
  cursor-wrap doctor --json | jq -r '.checks[] | select(.status != "ok") | .name'`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return d.run() },
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&d.agentBin, "agent-bin", "", "the agent's binary (default cursor-agent, or Cursor's agent, on the PATH)")
	f.StringVar(&d.workspace, "workspace", "", "the agent's workspace (default the folder that this is called in)")
	d.registerFolders(f)
	f.BoolVar(&d.asJSON, "json", false, "as one JSON object")
	return c
}

// probes are all the looks, in the order in which they are shown.
func (d *doctor) probes(ctx context.Context) []process.Probe {
	for value, name := range map[*string]string{&d.agentBin: "agent-bin", &d.workspace: "workspace"} {
		if *value == "" {
			*value = os.Getenv(envName(name))
		}
	}
	a := &agentProbes{options: &d.options, ctx: ctx}
	list := []process.Probe{
		{Name: "cursor-wrap", Look: probeSelf},
		{Name: "agent", Look: a.binary},
		{Name: "version", Look: a.version},
		{Name: "login", Look: a.login},
		{Name: "trust", Look: a.trust},
		{Name: "logs", Look: d.probeLogs},
		{Name: "state", Look: d.probeState},
		{Name: "tmux", Look: func() process.Finding { return probeTmux(ctx) }},
	}
	exe, err := os.Executable()
	if err != nil {
		exe = os.Args[0]
	}
	return append(list, process.Probes(process.Trial{Path: exe, Args: []string{"version"}})...)
}

func (d *doctor) run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var found []process.Finding
	for _, p := range d.probes(ctx) {
		found = append(found, look(p))
		if ctx.Err() != nil {
			return &failure{code: supervise.ExitCode(supervise.Stopped, syscall.SIGINT), msg: "doctor: interrupted"}
		}
	}
	worst := worstOf(found)
	if worst == process.Broken {
		*d.code = 1
	}
	if d.asJSON {
		enc := json.NewEncoder(d.std.out)
		enc.SetIndent("", "  ")
		return enc.Encode(map[string]any{"status": worst, "checks": found})
	}
	columns := 0
	colour := term.IsTerminal(int(d.std.out.Fd()))
	if colour {
		columns = int(terminalSize(d.std.out).Cols)
		colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	_, err := d.std.out.WriteString(findingsText(found, columns, colour))
	return err
}

// look makes one look, which may take only so long.
func look(p process.Probe) process.Finding {
	done := make(chan process.Finding, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil { // a look must not cost the others
				done <- process.Finding{Status: process.Doubtful, Found: fmt.Sprint("internal error: ", r)}
			}
		}()
		done <- p.Look()
	}()
	var f process.Finding
	select {
	case f = <-done:
	case <-time.After(checkTimeout):
		f = process.Finding{Status: process.Broken, Found: fmt.Sprintf("no answer within %s", checkTimeout), Advice: "a file system or a process does not answer; a run would wait for it, too"}
	}
	f.Name = p.Name
	f.Found, f.Advice = display.Line(f.Found, " "), display.Line(f.Advice, " ")
	return f
}

func worstOf(found []process.Finding) process.Status {
	worst := process.Fine
	for _, f := range found {
		if f.Status == process.Broken || f.Status == process.Doubtful && worst == process.Fine {
			worst = f.Status
		}
	}
	return worst
}

// findingsText is the table for a person. Long lines are folded below
// themselves where the terminal's width is known.
func findingsText(found []process.Finding, columns int, colour bool) string {
	paint := map[process.Status]string{process.Fine: "\x1b[32m", process.Doubtful: "\x1b[33m", process.Broken: "\x1b[31m"}
	name := 0
	count := map[process.Status]int64{}
	for _, f := range found {
		name = max(name, len(f.Name))
		count[f.Status]++
	}
	const status = len(process.Doubtful) // the longest
	indent := strings.Repeat(" ", status+2+name+2)
	var b strings.Builder
	for _, f := range found {
		word := fmt.Sprintf("%-*s", status, f.Status)
		if colour {
			word = paint[f.Status] + word + "\x1b[0m"
		}
		text := f.Found
		if f.Advice != "" {
			text += "\ntry: " + f.Advice
		}
		if columns > 0 {
			text = fold(text, max(columns-len(indent), 20))
		}
		fmt.Fprintf(&b, "%s  %-*s  %s\n", word, name, f.Name, strings.ReplaceAll(text, "\n", "\n"+indent))
	}
	fmt.Fprintf(&b, "\n%d ok, %s, %d failed\n", count[process.Fine], plural(count[process.Doubtful], "warning"), count[process.Broken])
	return b.String()
}

func probeSelf() process.Finding {
	f := process.Finding{Status: process.Fine, Found: fmt.Sprintf("%s %s/%s %s", versionString(), runtime.GOOS, runtime.GOARCH, runtime.Version())}
	exe, err := os.Executable()
	if err != nil {
		f.Status, f.Advice = process.Doubtful, "mount /proc: the guard is started from our own file, and without it by the name that we were called by"
		f.Found += ", " + err.Error()
		return f
	}
	f.Found += ", " + exe
	return f
}
