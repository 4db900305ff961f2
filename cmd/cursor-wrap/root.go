package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"cursor-wrap/internal/display"
	"cursor-wrap/internal/supervise"
)

// stdio is the world's three files, handed down so that nothing below main
// touches os.Stdin and its like.
type stdio struct {
	in, out, err *os.File
}

// failure is an error with the exit code and the next step that belong to it.
type failure struct {
	code int
	msg  string
	try  string // what to try next; may be empty
}

func (f *failure) Error() string {
	if f.try == "" {
		return f.msg
	}
	return f.msg + "; " + f.try
}

// usagef is an error in how the program was called.
func usagef(try, format string, args ...any) error {
	return &failure{code: supervise.ExitCode(supervise.Usage, 0), msg: fmt.Sprintf(format, args...), try: try}
}

// run is the program: it returns the exit code.
func run(args []string, std stdio) (code int) {
	defer func() {
		if r := recover(); r != nil { // or the exit code would be that of a hang
			fmt.Fprintf(std.err, "cursor-wrap: internal error: %v\n%s", r, debug.Stack())
			code = supervise.ExitCode(supervise.Failed, 0)
		}
	}()
	e := prepareEarly(args)
	defer e.discard()
	root := newRoot(std, &code, e)
	root.SetArgs(route(root, args))
	err := root.Execute()
	if err == nil {
		return code
	}
	fmt.Fprintf(std.err, "cursor-wrap: %s\n", display.Clean(err.Error())) // what is named in it may be called anything
	if f, ok := errors.AsType[*failure](err); ok {
		return f.code
	}
	return supervise.ExitCode(supervise.Failed, 0)
}

// route makes everything a run that does not begin with the name of a
// subcommand, so that a prompt may be any word: cursor-wrap -p ps.
func route(root *cobra.Command, args []string) []string {
	if len(args) == 0 {
		return []string{"run"}
	}
	first := args[0]
	known := []string{"-h", "--help", "help", "completion", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}
	if first == "--version" {
		return append([]string{"version"}, args[1:]...)
	}
	isCommand := func(c *cobra.Command) bool { return c.Name() == first }
	if slices.Contains(known, first) || slices.ContainsFunc(root.Commands(), isCommand) {
		return args
	}
	return append([]string{"run"}, args...)
}

const rootExample = `  # In a CI job, where cursor-agent -p stood:
  cursor-wrap -p "fix the failing test" --trust

  # The prompt from a file, at most twenty minutes, the result line alone:
  cursor-wrap -p --max-duration 20m --output-format json < prompt.md

  # Shorter patience, and a flag for the agent that this program does not know:
  cursor-wrap -p --idle-timeout 30s "list the open questions" -- --some-agent-flag

  # What would other thresholds have said about a recorded run?
  cursor-wrap replay --idle-timeout 2m ~/.cursor-wrap/logs/cursor-wrap-*.jsonl`

func newRoot(std stdio, code *int, e *early) *cobra.Command {
	root := &cobra.Command{
		Use:   "cursor-wrap [flags] [prompt] [-- agent-flags...]",
		Short: "Runs cursor-agent headless to a certain end",
		Long: `cursor-wrap runs cursor-agent headless: it hands it the prompt, repeats its
stream-json output byte for byte, logs every event and every decision, ends it
when it hangs, and never takes "no result" for success.

A subcommand is recognised as the very first word only; everything else is a
run, and "cursor-wrap run" is its explicit form.

Every flag can be set in the environment too, as CURSOR_WRAP_ and its name in
capitals (CURSOR_WRAP_IDLE_TIMEOUT=2m); a flag on the command line wins.

Exit codes: 0 a result; 1 an error result, no result, or no start; 2 a hang;
3 a result, but something could not be ended; 64 usage; 124 --max-duration;
128+n ended by signal n (141: the reader of stdout left).`,
		Example:           rootExample,
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
		Args:              cobra.ArbitraryArgs,
	}
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef("see "+c.CommandPath()+" --help; flags of the agent that are not listed there go after --", "%v", err)
	})
	newRun(root, std, code, e)
	root.AddCommand(newPS(std, code), newInspect(std, code), newTail(std, code), newPause(std, code), newUnpause(std, code), newKill(std, code), newWait(std, code),
		newReplay(std, code), newReport(std), newLogs(std), newGC(), newDoctor(std, code), newVersion(),
		newStart(std, e), newAttach(), newStop(), newPane(std, code, e))
	return root
}

// noArgs refuses arguments where a subcommand takes none.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("see "+c.CommandPath()+" --help", "%s takes no arguments, not %q", c.CommandPath(), args[0])
	}
	return nil
}
