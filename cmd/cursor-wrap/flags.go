package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"cursor-wrap/internal/journal"
	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/process"
	"cursor-wrap/internal/session"
)

// envPrefix begins the name of the variable that stands for a flag.
const envPrefix = "CURSOR_WRAP_"

// options are what a run can be told.
type options struct {
	print        bool
	outputFormat string
	plain        bool
	quiet        bool
	policy       monitor.Policy
	killGrace    time.Duration

	stateDir  string
	logDir    string
	logLevel  string
	logSync   string
	retention time.Duration
	flagged   time.Duration
	synthetic bool
	junit     string // files to write at the end
	report    string

	stderr    string
	agentBin  string
	model     string
	workspace string
	force     bool
	resume    string

	restarts      int // -1: not chosen
	restartPrompt string
	restartUnsafe bool
	untouched     bool // only before any tool has acted

	containment string
	spare       []string
	limits      process.Limits

	agentFlags []string // the agent's own, in the order in which they were given
}

func (o *options) register(f *pflag.FlagSet) {
	f.SortFlags = false
	f.BoolVarP(&o.print, "print", "p", false, "run one prompt and exit; without it, hold a conversation")
	f.StringVar(&o.outputFormat, "output-format", "", "what stdout shows (default stream-json with -p, else text): stream-json, the agent's bytes; json, its result line alone; text, what a person wants to read")
	f.BoolVar(&o.plain, "plain", false, "text without colours, and Markdown as it was written")
	f.BoolVar(&o.quiet, "quiet", false, "no summary at the end of a run that succeeded")
	o.registerPolicy(f)
	duration(f, &o.killGrace, "kill-grace", 5*time.Second, "between SIGTERM and SIGKILL")

	o.registerFolders(f)
	f.StringVar(&o.logLevel, "log-level", "debug", "least level that the session log keeps: debug, info, warn, error; raw events are debug")
	f.StringVar(&o.logSync, "log-sync", string(journal.Always), "how far an event is logged before it is forwarded: always, on the disk; written, in the kernel; none, as written but never synced")
	duration(f, &o.retention, "log-retention", 7*24*time.Hour, "age at which a session log goes at the next start; 0 keeps it")
	duration(f, &o.flagged, "flagged-retention", 90*24*time.Hour, "the same for logs of runs that did not succeed")
	f.BoolVar(&o.synthetic, "synthetic-result", true, "end the stream of a failed run with a result line of our own")

	f.StringVar(&o.junit, "junit", "", "file for a JUnit report, written at the end of every run")
	f.StringVar(&o.report, "report", "", "file for an HTML report, written at the end of every run")

	f.StringVar(&o.containment, "containment", string(process.Auto), "what holds the agent's tree: auto, a cgroup where one can be made; cgroup; tree, two subreapers; pidns, a pid namespace")
	f.StringArrayVar(&o.spare, "spare", nil, "leave processes alive whose command line contains this (repeatable)")
	f.IntVar(&o.limits.Procs, "max-procs", 0, "the most processes that the agent's tree may have; 0 is no limit")
	f.Var((*bytesize)(&o.limits.Memory), "max-memory", "the most memory that it may hold, such as 2GiB; 0 is no limit")

	f.StringVar(&o.stderr, "stderr", "", "the agent's stderr (default pty for a conversation at a terminal, else pipe): pipe; pty, a terminal of its own on which tools can ask; inherit, ours, and nothing of it logged; discard")
	f.IntVar(&o.restarts, "max-restarts", -1, "how often a turn that hung is tried again (default 0 with -p; else 3, if no tool had acted); never while a tool that changes something is under way")
	f.StringVar(&o.restartPrompt, "restart-prompt", session.DefaultPrompt, "what an agent is asked that goes on after a hang")
	f.BoolVar(&o.restartUnsafe, "restart-unsafe", false, "try again also where a tool that changes something was under way")
	f.StringVar(&o.agentBin, "agent-bin", "", "the agent's binary (default cursor-agent, or Cursor's agent, on the PATH)")
	f.StringVar(&o.model, "model", "", "the agent's model")
	f.StringVar(&o.workspace, "workspace", "", "the agent's workspace")
	f.BoolVarP(&o.force, "force", "f", true, "let the agent run commands unasked")
	f.BoolVar(&o.force, "yolo", true, "the same as --force")
	f.StringVar(&o.resume, "resume", "", "the id of the chat to go on with")
	o.registerAgent(f)
}

// registerPolicy adds the thresholds; replay has the same ones.
func (o *options) registerPolicy(f *pflag.FlagSet) {
	d := monitor.Default()
	duration(f, &o.policy.Idle, "idle-timeout", d.Idle, "silence with no tool call open; 0 is never, as for all timeouts")
	duration(f, &o.policy.ToolGrace, "tool-grace", d.ToolGrace, "added to the wait that a tool call declares")
	duration(f, &o.policy.Tool, "tool-timeout", d.Tool, "a tool call that declares no wait")
	duration(f, &o.policy.Startup, "startup-timeout", d.Startup, "from the start to the first line")
	duration(f, &o.policy.Background, "background-timeout", d.Background, "silence while background work is unfinished")
	duration(f, &o.policy.Reconnect, "reconnect-timeout", d.Reconnect, "nothing but reconnection attempts")
	duration(f, &o.policy.ExitGrace, "exit-grace", d.ExitGrace, "from the result to the exit of the agent")
	duration(f, &o.policy.Max, "max-duration", d.Max, "the whole run, less the time in which nobody reads our stdout")
	duration(f, &o.policy.Tick, "tick-interval", d.Tick, "the longest that the wrapper sleeps, and from one look at the silent agent's processes to the next")
	o.policy.Confirm = d.Confirm
	f.Var((*confirmation)(&o.policy.Confirm), "confirm", "who decides on a hang: auto, the stream and the agent's processes; off, the stream alone")
	duration(f, &o.policy.Window, "confirm-window", d.Window, "the end of a silence in which the processes must have done nothing")
	duration(f, &o.policy.Busy, "busy-grace", d.Busy, "past its deadline, for an agent whose processes work")
}

// registerAgent adds the agent's own documented flags, which are passed on as
// they are given.
func (o *options) registerAgent(f *pflag.FlagSet) {
	for _, name := range []string{
		"trust", "approve-mcps", "stream-partial-output", "auto-review", "plan", "continue",
		"single-turn", "disable-auto-update", "debug",
	} {
		v := &agentFlag{name: name, isBool: true, list: &o.agentFlags}
		f.VarPF(v, name, "", "passed on to the agent").NoOptDefVal = "true"
	}
	for _, name := range []string{
		"mode", "sandbox", "api-key", "auth-token", "add-dir", "plugin-dir", "exclude-tools",
		"background-shell-timeout", "new-session-id", "data-dir", "conversation-history-file",
	} {
		f.Var(&agentFlag{name: name, list: &o.agentFlags}, name, "passed on to the agent")
	}
	f.VarP(&agentFlag{name: "header", short: "-H", list: &o.agentFlags}, "header", "H", "passed on to the agent")
	f.VarP(&agentFlag{name: "endpoint", short: "-e", list: &o.agentFlags}, "endpoint", "e", "passed on to the agent")
	f.VarP(&agentFlag{name: "worktree", list: &o.agentFlags}, "worktree", "w", "passed on to the agent")
}

// agentFlag is a flag of the agent's. Setting it adds it to the list.
type agentFlag struct {
	name   string
	short  string // how the agent knows it, where not by --name
	isBool bool
	value  string
	list   *[]string
}

func (a *agentFlag) String() string { return a.value }

func (a *agentFlag) Type() string {
	if a.isBool {
		return "bool"
	}
	return "string"
}

func (a *agentFlag) Set(v string) error {
	a.value = v
	name := a.short
	if name == "" {
		name = "--" + a.name
	}
	if !a.isBool {
		*a.list = append(*a.list, name, v)
		return nil
	}
	on, err := strconv.ParseBool(v)
	if err != nil {
		return fmt.Errorf("want true or false")
	}
	if on {
		*a.list = append(*a.list, name)
	}
	return nil
}

// duration registers a flag that also understands days.
func duration(f *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	f.Var((*span)(p), name, usage)
}

// confirmation is whether the tree is asked.
type confirmation bool

func (c *confirmation) Type() string { return "string" }

func (c *confirmation) String() string {
	if *c {
		return "auto"
	}
	return "off"
}

func (c *confirmation) Set(s string) error {
	if s != "auto" && s != "off" {
		return errors.New("want auto or off")
	}
	*c = s == "auto"
	return nil
}

// span is a duration that may be given in days: 90s, 10m, 7d.
type span time.Duration

func (s *span) Type() string { return "duration" }

func (s *span) String() string {
	d := time.Duration(*s)
	switch {
	case d == 0:
		return "0"
	case d%(24*time.Hour) == 0:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d%time.Minute == 0 && d > time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d%time.Second == 0:
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return d.String()
}

func (s *span) Set(v string) error {
	d, err := time.ParseDuration(v)
	if days, ok := strings.CutSuffix(v, "d"); ok {
		var n float64
		n, err = strconv.ParseFloat(days, 64)
		d = time.Duration(n * 24 * float64(time.Hour))
	}
	switch {
	case err != nil:
		return fmt.Errorf("want a duration such as 90s, 10m or 7d")
	case d < 0:
		return fmt.Errorf("a duration cannot be negative")
	}
	*s = span(d)
	return nil
}

// bytesize is a number of bytes that may be given in units: 512MiB, 2G.
type bytesize int64

func (b *bytesize) Type() string { return "size" }

func (b *bytesize) String() string {
	n := int64(*b)
	for _, u := range []struct {
		name string
		size int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= u.size && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

func (b *bytesize) Set(v string) error {
	const want = "want a size such as 512MiB or 2GiB"
	number := strings.TrimRight(v, "KMGTiBkb")
	shift, ok := map[string]int{"": 0, "B": 0, "K": 10, "M": 20, "G": 30, "T": 40}[strings.ToUpper(strings.TrimSuffix(strings.TrimSuffix(v[len(number):], "B"), "i"))]
	n, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || n < 0 || n > 1<<20 && shift == 40 {
		return errors.New(want)
	}
	*b = bytesize(n * float64(int64(1)<<shift))
	return nil
}

// envName is the variable that stands for a flag.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// secretEnv are the flags that the agent takes from its environment, too.
var secretEnv = map[string]string{"api-key": "CURSOR_API_KEY", "auth-token": "CURSOR_AUTH_TOKEN"}

// fromEnv sets every flag that was not given and whose variable is.
func fromEnv(f *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var err error
	f.VisitAll(func(flag *pflag.Flag) {
		name := envName(flag.Name)
		v, ok := lookup(name)
		if !ok || v == "" || flag.Changed || err != nil || flag.Name == "help" || secretEnv[flag.Name] != "" {
			return
		}
		if flag.Name == "yolo" && f.Changed("force") || flag.Name == "force" && f.Changed("yolo") {
			return
		}
		if e := f.Set(flag.Name, v); e != nil {
			err = usagef("correct it or unset it", "environment: %s=%q: %v", name, v, e)
		}
	})
	return err
}

// check refuses what no run can be made of.
func (o *options) check() error {
	switch o.outputFormat {
	case "", "stream-json", "json", "text":
	default:
		return usagef("use stream-json, json or text", "--output-format %q: not known", o.outputFormat)
	}
	if !slices.Contains([]journal.Sync{journal.Always, journal.Written, journal.None}, journal.Sync(o.logSync)) {
		return usagef("use always, written or none", "--log-sync %q: not known", o.logSync)
	}
	if _, err := o.level(); err != nil {
		return usagef("use debug, info, warn or error", "--log-level %q: not known", o.logLevel)
	}
	if !slices.Contains([]process.Containment{process.Auto, process.Cgroup, process.Tree, process.PIDNS}, process.Containment(o.containment)) {
		return usagef("use auto, cgroup, tree or pidns", "--containment %q: not known", o.containment)
	}
	if !slices.Contains([]process.Mode{"", process.StderrPipe, process.StderrPTY, process.StderrInherit, process.StderrDiscard}, process.Mode(o.stderr)) {
		return usagef("use pipe, pty, inherit or discard", "--stderr %q: not known", o.stderr)
	}
	if o.limits.Procs < 0 {
		return usagef("use 0 for no limit", "--max-procs %d: negative", o.limits.Procs)
	}
	if len(o.spare) > 0 && process.Containment(o.containment) == process.PIDNS {
		return usagef("use another containment", "--spare with --containment pidns: a pid namespace takes everybody along")
	}
	if o.limits.Memory > 0 && !process.MemoryLimits {
		return usagef("leave it out", "--max-memory: not on this system")
	}
	if slices.Contains(o.spare, "") {
		return usagef("name a part of a command line", "--spare: empty, it would spare everybody")
	}
	for _, out := range [][2]string{{"--junit", o.junit}, {"--report", o.report}} {
		if out[1] == "" {
			continue
		}
		if err := checkOutput(out[0], out[1]); err != nil {
			return err
		}
	}
	if o.restarts < -1 {
		return usagef("use 0 for none", "--max-restarts %d: negative", o.restarts)
	}
	if o.policy.Tick == 0 {
		return usagef("use a second or more", "--tick-interval 0: the wrapper has to look from time to time")
	}
	return nil
}

func (o *options) level() (slog.Level, error) {
	var l slog.Level
	err := l.UnmarshalText([]byte(o.logLevel))
	return l, err
}

// agentArgs is the agent's command line. The prompt is not on it: it goes to
// stdin, which every version of the agent reads, and nobody else can see.
func (o *options) agentArgs(resume string, extra []string) []string {
	args := []string{"--print", "--output-format", "stream-json"}
	if resume != "" {
		args = append(args, "--resume", resume)
	}
	if o.force {
		args = append(args, "--force")
	}
	if o.model != "" {
		args = append(args, "--model", o.model)
	}
	if o.workspace != "" {
		args = append(args, "--workspace", o.workspace)
	}
	return slices.Concat(args, o.agentFlags, extra)
}

// registerFolders adds the flags that move what we write.
func (o *options) registerFolders(f *pflag.FlagSet) {
	registerState(f, &o.stateDir)
	f.StringVar(&o.logDir, "log-dir", "", "folder of the session logs (default logs in the state folder)")
}

// registerState adds the flag that moves the state folder.
func registerState(f *pflag.FlagSet, dir *string) {
	f.StringVar(dir, "state-dir", "", "folder of what is known of runs (default ~/.cursor-wrap)")
}

// stateIn is the state folder: the given one, or ~/.cursor-wrap.
func stateIn(given string) (string, error) {
	if given = cmp.Or(given, os.Getenv(envName("state-dir"))); given != "" {
		return filepath.Abs(given)
	}
	return home()
}

// home is ~/.cursor-wrap.
func home() (string, error) {
	dir, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return dir + "/.cursor-wrap", nil
}
