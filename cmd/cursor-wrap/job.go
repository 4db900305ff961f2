package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"cursor-wrap/internal/format"
	"cursor-wrap/internal/journal"
	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/process"
	"cursor-wrap/internal/session"
	"cursor-wrap/internal/supervise"
	"cursor-wrap/internal/terminal"
)

// job is a run under way: one log, one session of one turn or many.
type job struct {
	*options
	std   stdio
	now   func() time.Time
	log   *journal.Log
	con   *console
	id    string
	early *early
	extra []string // agent flags from behind the --
	stop  chan syscall.Signal

	began time.Time
	desk  *desk
	entry *entry

	person *person  // nil where nobody sits at a terminal
	aside  []string // what is said of the processes of a hang, below the text that tells of it
}

// run runs the session and says how it was.
func (j *job) run(first string) int {
	j.desk = &desk{job: j}
	j.entry = j.register(first)
	pruned := make(chan struct{})
	go func() {
		defer close(pruned)
		j.sweep()
		if _, err := journal.Prune(j.logDir, j.now(), j.retention, j.flagged); err != nil {
			j.log.Record(j.now(), slog.LevelWarn, "prune_failed", slog.String("error", err.Error()))
		}
	}()
	j.recordStart(len(first))
	report := session.Run(j.config(first))
	j.desk.blame(&report)
	if j.person != nil {
		j.person.end()
	}
	<-pruned
	if !j.print && j.person == nil && report.Turns == 0 && report.Outcome == supervise.Success {
		report.Outcome, report.ExitCode = supervise.Usage, supervise.ExitCode(supervise.Usage, 0)
		report.Message = "no prompt on stdin, one a line, nor as an argument"
	}
	j.summarize(&report)
	j.recordEnd(&report)
	j.publish(report.Outcome)
	j.entry.close(&report)
	return report.ExitCode
}

// config is the session that this run is.
func (j *job) config(first string) session.Config {
	c := session.Config{
		First: first, Resume: j.resume, Talks: !j.print, Run: j.turn, Stop: j.stop, Say: j.con.say,
		Restarts:  session.Restarts{Most: j.restarts, Prompt: j.restartPrompt, Untouched: j.untouched, Unsafe: j.restartUnsafe},
		Restarted: j.recordRestart,
	}
	switch {
	case j.print:
	case j.person != nil:
		c.Next, c.Command = j.person.next, j.command
		c.Interrupts = func(sig syscall.Signal) bool { return sig == syscall.SIGINT }
	default:
		lines := terminal.Lines(j.std.in)
		c.Next = lines.Next
	}
	return c
}

// turn runs one turn.
func (j *job) turn(t session.Turn, goesOn session.GoesOn) supervise.Report {
	control := j.desk.begins(t.Restart)
	var unfollow func()
	c := supervise.Config{
		Launch: func(ctx context.Context) (supervise.Child, error) {
			a, err := j.launch(ctx, t.Resume)
			if err != nil {
				return supervise.Child{}, err
			}
			if t := a.Terminal(); t != nil {
				unfollow = follow(t, j.size)
			}
			j.desk.works(a)
			look := a.Sampler()
			return supervise.Child{Agent: a, Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr, Sample: look.Sample, Sampled: look.Close, Pause: a.Pause, Resume: a.Resume}, nil
		},
		Prompt: []byte(t.Prompt), Policy: j.policy, Tick: j.policy.Tick, KillGrace: j.killGrace,
		SessionID: t.Resume, Log: turnLog{j.log, j}, Out: j.output(), Silent: !j.synthetic, Stderr: j.con, Say: j.say,
		Stop: j.stop, Now: j.now, Slept: process.Suspended, GoesOn: goesOn, Control: control,
	}
	if j.person != nil {
		j.person.begin(&c)
		defer j.person.rests()
	}
	report := supervise.Run(c)
	j.desk.ends(&report)
	j.entry.rests()
	if unfollow != nil {
		unfollow()
	}
	for _, msg := range j.aside {
		j.con.say(msg)
	}
	j.aside = nil
	return report
}

// turnLog is the log of a turn, from which we learn the session, too.
type turnLog struct {
	*journal.Log
	j *job
}

func (l turnLog) SetSession(id string) error {
	l.j.desk.names(id)
	err := l.Log.SetSession(id)
	l.j.entry.names(id, l.Path())
	return err
}

// output is where a turn's stream goes.
func (j *job) output() format.Output {
	var out io.Writer = j.std.out
	if j.person != nil && j.person.shows {
		out = j.person.term
	}
	switch j.outputFormat {
	case "json":
		return format.NewResult(out)
	case "text":
		return format.NewText(out, j.textOptions(j.std.out, j.now))
	}
	return format.NewStream(out)
}

// say is what a turn tells a person. Where they read the text, that it hung
// stands there, and what its processes did belongs below it.
func (j *job) say(msg string) {
	reads := j.outputFormat == "text" && term.IsTerminal(int(j.std.out.Fd()))
	switch {
	case reads && strings.HasPrefix(msg, "hang detected"):
	case reads && strings.HasPrefix(msg, "  "):
		j.aside = append(j.aside, msg)
	default:
		j.con.say(msg)
	}
}

func (j *job) size() process.Size { return terminalSize(j.std.err, j.std.in) }

// launch starts the agent of a turn.
func (j *job) launch(ctx context.Context, resume string) (*process.Agent, error) {
	path, err := findAgent(ctx, j.agentBin, os.Getenv("PATH"))
	if err != nil {
		return nil, err
	}
	args := j.agentArgs(resume, j.extra)
	a, err := j.early.start(process.Spec{
		Path: path, Args: args, Env: environ(j.id), Stderr: process.Mode(j.stderr), Size: j.size(),
		ID: j.id, Containment: process.Containment(j.containment), Limits: j.limits, Spare: j.spare, Adopted: j.recordAdopted,
	})
	if err != nil {
		return nil, err
	}
	j.entry.works(a)
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		resolved = path
	}
	j.log.Record(j.now(), slog.LevelInfo, "spawn",
		slog.Int("pid", a.PID()), slog.Int("guard_pid", a.GuardPID()), slog.String("containment", a.Held),
		slog.String("path", path), slog.String("resolved", resolved), slog.Any("args", process.Masked(args)))
	return a, nil
}

// recordRestart: a turn that hung is about to be tried again.
func (j *job) recordRestart(t session.Turn, r *supervise.Report, wait time.Duration) {
	j.log.Record(j.now(), slog.LevelWarn, "restart",
		slog.Int("attempt", t.Restart), slog.Int("most", j.restarts), slog.String("resume", t.Resume),
		slog.Int64("wait_ms", wait.Milliseconds()), slog.String("after", r.Message))
	j.con.say(fmt.Sprintf("trying again in %s, attempt %d of %d", monitor.Span(wait), t.Restart, j.restarts))
	if j.person != nil {
		j.person.term.Status("Ctrl-C gives up")
	}
}
