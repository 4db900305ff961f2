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
	args = route(args)
	root := newRoot(std, &code, e, args[0])
	root.SetArgs(args)
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

// subcommand is one beside run, which is made only where it is called: a run
// need not pay for the flags of all the others.
type subcommand struct {
	name string
	make func(stdio, *int, *early) *cobra.Command
}

// subcommands are all of them.
func subcommands() []subcommand {
	return []subcommand{
		{"ps", newPS}, {"inspect", newInspect}, {"tail", newTail}, {"pause", newPause}, {"unpause", newUnpause},
		{"kill", newKill}, {"wait", newWait}, {"logs", newLogs}, {"report", newReport}, {"replay", newReplay},
		{"start", newStart}, {"attach", newAttach}, {"stop", newStop}, {"__session", newPane},
		{"gc", newGC}, {"doctor", newDoctor}, {"version", newVersion},
	}
}

// general are the first words that are about all subcommands.
var general = []string{"-h", "--help", "help", "completion", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}

// route makes everything a run that does not begin with the name of a
// subcommand, so that a prompt may be any word: cursor-wrap -p ps.
func route(args []string) []string {
	if len(args) == 0 {
		return []string{"run"}
	}
	if args[0] == "--version" {
		return append([]string{"version"}, args[1:]...)
	}
	if args[0] == "run" || slices.Contains(general, args[0]) || isSubcommand(args[0]) {
		return args
	}
	return append([]string{"run"}, args...)
}

func isSubcommand(word string) bool {
	return slices.ContainsFunc(subcommands(), func(s subcommand) bool { return s.name == word })
}

const rootExample = `  # In a CI job, where cursor-agent -p stood:
  cursor-wrap -p "fix the failing test" --trust

  # The prompt from a file, at most twenty minutes, the result line alone:
  cursor-wrap -p --max-duration 20m --output-format json < prompt.md

  # Shorter patience, and a flag for the agent that this program does not know:
  cursor-wrap -p --idle-timeout 30s "list the open questions" -- --some-agent-flag

  # What would other thresholds have said about a recorded run?
  cursor-wrap replay --idle-timeout 2m ~/.cursor-wrap/logs/cursor-wrap-*.jsonl`

// newRoot makes the program for a call that begins with that word.
func newRoot(std stdio, code *int, e *early, first string) *cobra.Command {
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
	for _, sub := range subcommands() {
		if sub.name == first || slices.Contains(general, first) {
			root.AddCommand(sub.make(std, code, e))
		}
	}
	return root
}

// noArgs refuses arguments where a subcommand takes none.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("see "+c.CommandPath()+" --help", "%s takes no arguments, not %q", c.CommandPath(), args[0])
	}
	return nil
}
