package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"cursor-wrap/internal/process"
	"cursor-wrap/internal/tmux"
)

// tmuxEnv tells the wrapper the name of the tmux session that start has made
// for it.
const tmuxEnv = envPrefix + "TMUX"

// place is where sessions of tmux are, and what is kept of them.
type place struct {
	dir    string // of the state
	socket string
	asJSON bool
}

func (p *place) register(f *pflag.FlagSet) {
	if f.Lookup("state-dir") == nil {
		registerState(f, &p.dir)
	}
	f.StringVar(&p.socket, "tmux-socket", "", "path or name of the tmux server's socket (default that of tmux)")
	f.BoolVar(&p.asJSON, "json", false, "as one JSON object")
}

// resolve takes what the environment says and what is left open.
func (p *place) resolve(f *pflag.FlagSet) (err error) {
	if err := fromEnv(f, os.LookupEnv); err != nil {
		return err
	}
	if p.dir, err = stateIn(f.Lookup("state-dir").Value.String()); err != nil {
		return usagef("name it with --state-dir", "state directory: %v", err)
	}
	return nil
}

// starting is a call of start, which is read twice: where it was made, so that
// what is wrong with it is said there, and in the session by the wrapper.
type starting struct {
	options
	place
	name           string
	prompts, extra []string
}

func (s *starting) register(f *pflag.FlagSet) {
	s.options.register(f)
	s.place.register(f)
}

// take reads what was given. With a prompt it is a run that prints text, unless
// something else was asked for; without one it is a conversation.
func (s *starting) take(f *pflag.FlagSet) error {
	words := f.Args()
	if n := f.ArgsLenAtDash(); n >= 0 {
		words, s.extra = f.Args()[:n], f.Args()[n:]
	}
	if len(words) == 0 {
		return usagef("give it one: cursor-wrap start NAME [prompt]", "the session needs a name")
	}
	s.name, s.prompts = words[0], words[1:]
	if err := tmux.CheckName(s.name); err != nil {
		return usagef("choose another one; what is to be done comes behind it", "name of the session: %q: %v", s.name, err)
	}
	if err := s.resolve(f); err != nil {
		return err
	}
	if len(s.prompts) > 0 && !f.Changed("print") {
		s.print = true
	}
	if s.print && s.outputFormat == "" {
		s.outputFormat = "text"
	}
	return s.check()
}

// newStart is the subcommand that runs the wrapper in a session of tmux.
func newStart(std stdio, _ *int, e *early) *cobra.Command {
	s := &starting{}
	c := &cobra.Command{
		Use:   "start NAME [flags] [prompt] [-- agent-flags...]",
		Short: "Run in a detached tmux session of that name, which survives this terminal",
		Long: `start runs cursor-wrap in a detached tmux session. With a prompt it is one run
that shows text; without one it is a conversation, to which attach leads. The
flags are those of a run. When the run has ended, a shell keeps the session and
what was said in it.

Environment, folder and limits are those of this call. The exit code is kept;
attach NAME shows the session, stop NAME ends the run and closes it.`,
		Example: `  cursor-wrap start fix "fix the failing test" --trust
  cursor-wrap start review -p --max-duration 2h < prompt.md
  cursor-wrap start talk && cursor-wrap attach talk`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.take(c.Flags()); err != nil {
				return err
			}
			return s.start(e.args[1:], std)
		},
	}
	if e.concerns("start") {
		s.register(c.Flags())
	}
	return c
}

// start makes the session. given is the call as it was made.
func (s *starting) start(given []string, std stdio) error {
	l, err := s.launch(given, std.in)
	if err != nil {
		return err
	}
	server := tmux.New(s.socket)
	if err := server.Available(); err != nil {
		return err
	}
	ctx := context.Background()
	if _, err := findAgent(ctx, s.agentBin, os.Getenv("PATH")); err != nil {
		return err
	}
	p := tmux.Place{Dir: s.dir, Cols: 160, Rows: 48}
	if size := terminalSize(std.out, std.err, std.in); size.Rows > 0 {
		p.Cols, p.Rows = int(size.Cols), int(size.Rows)
	}
	if p.Exe, err = os.Executable(); err != nil {
		return err
	}
	keepToOurselves()
	r, err := server.Start(ctx, p, l)
	if taken, ok := errors.AsType[*tmux.TakenError](err); ok {
		return s.taken(taken)
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", s.name, err)
	}
	return s.tell(r, std)
}

// keepToOurselves keeps what the caller has open beside the three files from a
// tmux server that we may start, which would hold a lock or the end of a pipe
// for as long as it runs.
func keepToOurselves() {
	for fd := 3; fd < 256; fd++ {
		unix.CloseOnExec(fd)
	}
}

// launch is what the wrapper will find in its session.
func (s *starting) launch(given []string, stdin *os.File) (tmux.Launch, error) {
	l := tmux.Launch{Name: s.name, Shown: process.Masked(given), Started: time.Now()}
	var err error
	if s.print {
		var prompt []byte
		if prompt, err = readPrompt(s.prompts, stdin); err == nil && len(s.prompts) == 0 {
			l.Prompt = prompt
		}
	} else if len(s.prompts) > 0 {
		_, err = readPrompt(s.prompts, stdin)
	}
	if err != nil {
		return l, err
	}
	l.Args, l.Env = asBytes(given), asBytes(os.Environ())
	l.Dir, err = os.Getwd()
	return l, err
}

func asBytes(words []string) [][]byte {
	all := make([][]byte, len(words))
	for i, w := range words {
		all[i] = []byte(w)
	}
	return all
}

func (s *starting) taken(err *tmux.TakenError) error {
	if err.Ours {
		return fmt.Errorf("start %s: %w; see it with %s, end it with %s, or choose another name",
			s.name, err, s.call("attach", s.name), s.call("stop", s.name))
	}
	return fmt.Errorf("start %s: %w; choose another name", s.name, err)
}

// tell says what came of it.
func (s *starting) tell(r tmux.Record, std stdio) error {
	if s.asJSON {
		return json.NewEncoder(std.out).Encode(r)
	}
	attach, stop := s.call("attach", s.name), s.call("stop", s.name)
	switch {
	case r.Exit == nil:
		fmt.Fprintf(std.out, "%s runs in tmux\n  see it:  %s\n  end it:  %s\n", s.name, attach, stop)
	case *r.Exit == 0:
		fmt.Fprintf(std.out, "%s has ended already, exit code 0\n  see it:  %s\n  close it:  %s\n", s.name, attach, stop)
	default:
		return fmt.Errorf("start %s: the run has ended at once, exit code %d; %s shows what it said", s.name, *r.Exit, attach)
	}
	return nil
}

// call is another subcommand as it can be pasted into a shell.
func (p *place) call(subcommand, name string) string {
	words := []string{"cursor-wrap", subcommand, pasted(name)}
	if dir, err := home(); err != nil || dir != p.dir {
		words = append(words, "--state-dir", pasted(p.dir))
	}
	return strings.Join(words, " ")
}

// pasted is a word as it stands in a shell.
func pasted(word string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_./@%+,-", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// newPane is what start runs in the session.
func newPane(std stdio, code *int, e *early) *cobra.Command {
	return &cobra.Command{
		Use:    "__session FOLDER",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := tmux.Begin(args[0], os.Getenv)
			if err != nil {
				return fmt.Errorf("start: %w", err)
			}
			if *code, err = perform(l, std, e); err != nil {
				return err
			}
			return tmux.End(args[0], *code)
		},
	}
}

// perform makes the run of a call of start that was made elsewhere.
func perform(l tmux.Launch, std stdio, e *early) (int, error) {
	if err := move(l); err != nil {
		return 0, err
	}
	words := make([]string, len(l.Args))
	for i, w := range l.Args {
		words[i] = string(w)
	}
	s := &starting{}
	f := pflag.NewFlagSet("start", pflag.ContinueOnError)
	s.register(f)
	if err := f.Parse(words); err != nil {
		return 0, err
	}
	if err := s.take(f); err != nil {
		return 0, err
	}
	if l.Prompt != nil {
		s.prompts = []string{string(l.Prompt)}
	}
	e.args = append([]string{"start"}, words...) // what was called is what others are shown
	return s.run(s.prompts, s.extra, std, e)
}

// move takes the folder and the environment of the caller, but for what tells
// of the terminal: that is ours.
func move(l tmux.Launch) error {
	ours := map[string]string{}
	for _, name := range []string{"TERM", "TMUX", "TMUX_PANE", "TERM_PROGRAM", "TERM_PROGRAM_VERSION"} {
		ours[name] = os.Getenv(name)
	}
	ours[tmuxEnv] = l.Name
	os.Clearenv()
	for _, v := range l.Env {
		name, value, _ := strings.Cut(string(v), "=")
		_ = os.Setenv(name, value) // what cannot be set was not there
	}
	for name, value := range ours {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	for _, name := range []string{"COLUMNS", "LINES"} { // of another terminal
		_ = os.Unsetenv(name)
	}
	return os.Chdir(l.Dir)
}
