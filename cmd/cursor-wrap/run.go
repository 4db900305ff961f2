package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"cursor-wrap/internal/format"
	"cursor-wrap/internal/journal"
	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/process"
	"cursor-wrap/internal/supervise"
)

// markerEnv marks the agent's tree as ours: "carries our run's id" is a hint
// for people and for cleaning up, never a licence to kill.
const markerEnv = envPrefix + "RUN"

// newRun makes a run of the root command and adds its explicit form, so that a
// prompt may be the name of a subcommand.
func newRun(root *cobra.Command, std stdio, code *int, e *early) {
	o := &options{}
	o.register(root.Flags())
	root.RunE = func(c *cobra.Command, args []string) error {
		prompts, extra := args, []string(nil)
		if n := c.ArgsLenAtDash(); n >= 0 {
			prompts, extra = args[:n], args[n:]
		}
		if err := fromEnv(c.Flags(), os.LookupEnv); err != nil {
			return err
		}
		var err error
		*code, err = o.run(prompts, extra, std, e)
		return err
	}
	explicit := &cobra.Command{
		Use:     "run [flags] [prompt] [-- agent-flags...]",
		Short:   "Run the agent on one prompt (what happens without a subcommand, too)",
		Example: rootExample,
		Args:    cobra.ArbitraryArgs,
		RunE:    root.RunE,
	}
	explicit.Flags().SortFlags = false
	explicit.Flags().AddFlagSet(root.Flags())
	root.AddCommand(explicit)
}

// run is one headless run. An error means that no agent was started because
// the call was wrong; everything else is told by the exit code.
func (o *options) run(prompts, extra []string, std stdio, e *early) (int, error) {
	if err := o.check(); err != nil {
		return 0, err
	}
	if !o.print {
		return 0, usagef("pass -p", "without -p a run would be a conversation, which this version does not have")
	}
	prompt, err := readPrompt(prompts, std.in)
	if err != nil {
		return 0, err
	}
	con := newConsole(std.err)
	defer con.close()

	now := supervise.NewClock()
	log, err := o.openLog(now(), con)
	if err != nil {
		return 0, usagef("make it writable, or choose another folder with --log-dir", "%v", err)
	}
	r := &headless{options: o, now: now, log: log, con: con, id: e.id, early: e, extra: extra, unfollow: func() {}}
	r.size = func() process.Size { return terminalSize(std.err, std.in) }
	return r.run(prompt, std.out), nil
}

func (o *options) openLog(start time.Time, con *console) (*journal.Log, error) {
	if err := o.chooseLogDir(); err != nil {
		return nil, err
	}
	level, err := o.level()
	if err != nil {
		return nil, err
	}
	return journal.Open(journal.Options{
		Dir: o.logDir, Start: start, Sync: journal.Sync(o.logSync), Level: level, Warn: con.say,
	})
}

func (o *options) chooseLogDir() error {
	if o.logDir != "" {
		return nil
	}
	dir, err := home()
	o.logDir = filepath.Join(dir, "logs")
	return err
}

// headless is a run under way.
type headless struct {
	*options
	now   func() time.Time
	log   *journal.Log
	con   *console
	id    string
	early *early

	running *running
	extra   []string // agent flags from behind the --

	size     func() process.Size // of the user's terminal
	unfollow func()              // stops following it
}

func (h *headless) run(prompt []byte, stdout *os.File) int {
	h.running = holdRunning(h.logDir, h.id)
	defer h.running.release()
	pruned := make(chan struct{})
	go func() {
		defer close(pruned)
		h.sweep()
		if _, err := journal.Prune(h.logDir, h.now(), h.retention, h.flagged); err != nil {
			h.log.Record(h.now(), slog.LevelWarn, "prune_failed", slog.String("error", err.Error()))
		}
	}()
	h.recordStart(len(prompt))
	var out format.Output = format.NewStream(stdout)
	switch h.outputFormat {
	case "json":
		out = format.NewResult(stdout)
	case "text":
		out = format.NewText(stdout, h.textOptions(stdout, h.now))
	}
	report := supervise.Run(supervise.Config{
		Launch: h.launch, Prompt: prompt, Policy: h.policy, Tick: h.policy.Tick, KillGrace: h.killGrace,
		SessionID: h.resume, Log: h.log, Out: out, Silent: !h.synthetic, Stderr: h.con, Say: h.con.say,
		Stop: stopSignals(), Now: h.now, Slept: process.Suspended,
	})
	h.unfollow()
	<-pruned
	h.tell(report)
	h.recordEnd(report)
	return report.ExitCode
}

// sweep clears up after runs whose wrapper and guard were killed together.
func (h *headless) sweep() {
	leaves, died := buryDead(h.logDir)
	for _, l := range process.Sweep(leaves...) {
		h.log.Record(h.now(), slog.LevelWarn, "leftover", slog.Any("leftover", l))
		if len(l.Ended) > 0 || l.Error != "" {
			h.con.say(l.String())
		}
	}
	if !died {
		return
	}
	if marked := process.Marked(markerEnv); len(marked) > 0 {
		h.log.Record(h.now(), slog.LevelWarn, "marked", slog.Any("processes", marked))
		h.con.say(told(marked))
	}
}

func (h *headless) launch(ctx context.Context) (supervise.Child, error) {
	path, err := findAgent(ctx, h.agentBin, os.Getenv("PATH"))
	if err != nil {
		return supervise.Child{}, err
	}
	args := h.agentArgs(h.extra)
	a, err := h.early.start(process.Spec{Path: path, Args: args, Env: environ(h.id), Stderr: process.Mode(h.stderr), Size: h.size(),
		ID: h.id, Containment: process.Containment(h.containment), Limits: h.limits, Spare: h.spare, Adopted: h.recordAdopted})
	if err != nil {
		return supervise.Child{}, err
	}
	if t := a.Terminal(); t != nil {
		h.unfollow = follow(t, h.size)
	}
	h.running.note(a.Leaf())
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		resolved = path
	}
	h.log.Record(h.now(), slog.LevelInfo, "spawn",
		slog.Int("pid", a.PID()), slog.Int("guard_pid", a.GuardPID()), slog.String("containment", a.Held), slog.String("path", path), slog.String("resolved", resolved), slog.Any("args", process.Masked(args)))
	return supervise.Child{Agent: a, Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr, Sample: a.Sampler().Sample}, nil
}

// tell is what a person or a CI log reads on stderr: nothing after a success.
func (h *headless) tell(r supervise.Report) {
	if r.Outcome == supervise.Success {
		return
	}
	h.con.say(fmt.Sprintf("%s: %s; log: %s", r.Outcome, r.Message, h.log.Path()))
	if r.Advice != "" {
		h.con.say("try: " + r.Advice)
	}
}

// recordAdopted: an orphan of the tree has ended.
func (h *headless) recordAdopted(e process.Ended) {
	h.log.Record(h.now(), slog.LevelDebug, "adopted_exit", slog.Any("process", e))
}

func (h *headless) recordStart(prompt int) {
	dir, err := os.Getwd()
	if err != nil {
		dir = ""
	}
	h.log.Record(h.now(), slog.LevelInfo, "run_start",
		slog.String("run_id", h.id), slog.String("version", versionString()), slog.Int("pid", os.Getpid()),
		slog.String("cwd", dir), slog.String("workspace", h.workspace), slog.String("resume", h.resume),
		slog.Int("prompt_bytes", prompt), slog.String("output_format", h.outputFormat), slog.String("log_sync", h.logSync), slog.String("stderr", h.stderr),
		policyGroup(h.policy))
}

// policyGroup is the policy as monitor.Policy writes it, without the time that
// encoding/json takes to learn the type.
func policyGroup(p monitor.Policy) slog.Attr {
	ms := func(key string, d time.Duration) slog.Attr { return slog.Int64(key, d.Milliseconds()) }
	return slog.Group("policy",
		ms("startup_timeout_ms", p.Startup), ms("idle_timeout_ms", p.Idle), ms("tool_grace_ms", p.ToolGrace),
		ms("tool_timeout_ms", p.Tool), ms("background_timeout_ms", p.Background),
		ms("reconnect_timeout_ms", p.Reconnect), ms("exit_grace_ms", p.ExitGrace), ms("max_duration_ms", p.Max),
		slog.Bool("confirm", p.Confirm), ms("tick_interval_ms", p.Tick), ms("confirm_window_ms", p.Window), ms("busy_grace_ms", p.Busy))
}

func (h *headless) recordEnd(r supervise.Report) {
	var self syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &self) // cannot fail for ourselves
	exit := r.Teardown.Exit
	lostRecords, lostBytes := h.log.Lost()
	level, err := h.level()
	if err != nil || level < slog.LevelInfo {
		level = slog.LevelInfo
	}
	h.log.Record(h.now(), level, "run_end", // whatever the level: a log without it is that of a wrapper that was killed
		slog.String("outcome", string(r.Outcome)), slog.Int("exit_code", r.ExitCode), slog.String("message", r.Message),
		slog.String("session_id", r.SessionID), slog.Int64("took_ms", r.Took.Milliseconds()), slog.Group("counts", slog.Int64("lines", r.Counts.Lines), slog.Int64("bytes", r.Counts.Bytes), slog.Int64("calls", r.Counts.Calls),
			slog.Int64("unmatched_completions", r.Counts.Unmatched), slog.Int64("stderr_bytes", r.Counts.Stderr)),
		slog.Int64("lost_records", lostRecords), slog.Int64("lost_bytes", lostBytes),
		slog.Group("agent", slog.Int("exit_code", exit.Code), slog.String("signal", process.SignalName(exit.Signal)),
			slog.Int64("cpu_ms", (exit.User+exit.System).Milliseconds()), slog.Int64("max_rss_bytes", exit.MaxRSS)),
		slog.Group("wrapper", slog.Int64("cpu_ms", (self.Utime.Nano()+self.Stime.Nano())/1e6),
			slog.Int64("max_rss_bytes", process.PeakMemory())))
	if r.Outcome != supervise.Success {
		if err := h.log.Flag(string(r.Outcome), h.now()); err != nil {
			h.con.say(err.Error())
		}
	}
	if err := h.log.Close(); err != nil {
		h.con.say(err.Error())
	}
}

func newRunID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails, crypto/rand says
	return hex.EncodeToString(b[:])
}
