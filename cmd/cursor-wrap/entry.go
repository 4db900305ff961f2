package main

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"cursor-wrap/internal/display"
	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/process"
	"cursor-wrap/internal/registry"
	"cursor-wrap/internal/report"
	"cursor-wrap/internal/session"
)

// entry is our place in the registry. It is kept beside the run, which waits for
// none of it: a slow disk holds up nobody.
type entry struct {
	job     *job
	changes chan func(*registry.Entry)
	ending  registry.Ending // set before over is closed
	over    chan struct{}
	done    chan struct{}
}

const (
	// unregisterTime is how long the end of a run waits for its entry to be
	// gone; the next run clears up what is left.
	unregisterTime = 2 * time.Second
	// unseenTime is how long a run may last without an entry: one that is over
	// sooner is gone before anybody could ask, and is spared the cost.
	unseenTime = 20 * time.Millisecond
	// changesMax is how many changes may wait for the disk.
	changesMax = 64
)

func (j *job) register(prompt string) *entry {
	e := &entry{job: j, changes: make(chan func(*registry.Entry), changesMax), over: make(chan struct{}), done: make(chan struct{})}
	go e.keep(prompt)
	return e
}

// keep makes the entry, changes it as it is told, and removes it.
func (e *entry) keep(prompt string) {
	defer close(e.done)
	defer func() {
		if r := recover(); r != nil { // what only tells of a run must not end it
			e.record("not_registered", fmt.Errorf("internal error: %v", r))
		}
	}()
	select {
	case <-e.over:
		return
	case <-time.After(unseenTime):
	}
	run, err := e.open(e.job.describe(prompt))
	if err != nil {
		e.record("not_registered", err)
		e.job.con.say("nobody can ask this run: " + err.Error())
	}
	for {
		select {
		case change := <-e.changes:
			if err := run.Update(e.andAll(change)); err != nil {
				e.record("entry_not_written", err)
			}
		case <-e.over:
			run.Close(e.ending)
			return
		}
	}
}

// andAll makes one change of all that wait.
func (e *entry) andAll(first func(*registry.Entry)) func(*registry.Entry) {
	return func(r *registry.Entry) {
		first(r)
		for len(e.changes) > 0 {
			(<-e.changes)(r)
		}
	}
}

func (e *entry) open(first registry.Entry) (*registry.Run, error) {
	dir, err := stateIn(e.job.stateDir)
	if err != nil {
		return nil, err
	}
	run, err := registry.Register(dir, first)
	if err != nil {
		return nil, err
	}
	return run, run.Serve(e.job.desk)
}

func (e *entry) record(msg string, err error) {
	e.job.log.Record(e.job.now(), slog.LevelWarn, msg, slog.String("error", err.Error()))
}

// promptMax is how much of the prompt stands in the entry, in characters.
const promptMax = 200

func (j *job) describe(prompt string) registry.Entry {
	host, _ := os.Hostname() // none is none
	dir, _ := os.Getwd()
	self := process.Self()
	mask := report.NewMask(os.Environ())
	args := process.Masked(j.early.args)
	for i := range args {
		args[i] = mask.Text(args[i])
	}
	return registry.Entry{
		RunID: j.id, Version: versionString(), PID: self.PID, Start: self.Start,
		Namespace: process.Namespace(), Boot: process.Boot(),
		UID: os.Geteuid(), Host: host, At: monitor.Millis{Time: j.began},
		Mode: j.mode(), Args: args, Prompt: mask.Text(beginning(prompt)),
		Dir: dir, Workspace: j.workspaceDir(), Session: j.resume, Log: j.log.Path(), Tmux: os.Getenv(tmuxEnv),
	}
}

// mode is what kind of run this is.
func (j *job) mode() string {
	switch {
	case j.print:
		return "print"
	case j.person != nil:
		return "terminal"
	}
	return "lines"
}

// beginning is the first line of a prompt, as it may be shown.
func beginning(prompt string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(prompt), "\n")
	if len(line) > 4*promptMax {
		line = strings.ToValidUTF8(line[:4*promptMax], "")
	}
	return display.Cut(display.Line(process.Masked([]string{line})[0], " "), promptMax, "…")
}

// later changes the entry, as soon as the disk allows.
func (e *entry) later(change func(*registry.Entry)) {
	select {
	case e.changes <- change:
	default: // the disk has stalled; what is asked of the run itself is true
	}
}

// works notes the agent of a turn. Who comes after us may be in another cgroup
// than its leaf.
func (e *entry) works(a *process.Agent) {
	guard, agent, leaf, held := refTo(a.GuardPID()), refTo(a.PID()), a.Leaf(), a.Held
	e.later(func(r *registry.Entry) { r.Guard, r.Agent, r.Leaf, r.Held = guard, agent, leaf, held })
}

// rests: no agent works any more.
func (e *entry) rests() {
	e.later(func(r *registry.Entry) { r.Guard, r.Agent, r.Leaf = registry.Ref{}, registry.Ref{}, "" })
}

func (e *entry) names(session, log string) {
	e.later(func(r *registry.Entry) { r.Session, r.Log = session, log })
}

// close tells how it was to whoever waits, and leaves no trace.
func (e *entry) close(r *session.Report) {
	e.ending = registry.Ending{Outcome: string(r.Outcome), ExitCode: r.ExitCode, Message: r.Message}
	close(e.over)
	select {
	case <-e.done:
	case <-time.After(unregisterTime):
	}
}

var _ registry.Backend = (*desk)(nil)
