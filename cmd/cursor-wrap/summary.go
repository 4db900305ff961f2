package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/registry"
	"cursor-wrap/internal/session"
	"cursor-wrap/internal/supervise"
)

// summarize says on stderr how the run was: a line after a prompt, a few after
// a conversation.
func (j *job) summarize(r *session.Report) {
	if r.Outcome != supervise.Success || !j.quiet {
		j.con.say(strings.Join(j.summary(r), j.between()))
	}
	if r.Advice != "" {
		j.con.say("try: " + r.Advice)
	}
}

func (j *job) between() string {
	if j.print {
		return "; "
	}
	return "\n  "
}

// summary is what a run came to, the outcome first and the log last.
func (j *job) summary(r *session.Report) []string {
	head := string(r.Outcome)
	if r.Message != "" {
		message, witness, _ := strings.Cut(r.Message, "; ")
		if r.Outcome != supervise.Hang || witness == "" {
			message = r.Message
		}
		head += ": " + message // the tree's side of a hang was told when it was found
	}
	all := []string{head}
	if !j.quiet {
		work := fmt.Sprintf("%s, %s", monitor.Span(r.Took), plural(r.Counts.Calls, "call"))
		if !j.print {
			work = plural(int64(r.Turns), "turn") + ", " + work
		}
		if r.Restarts > 0 {
			work += ", " + plural(int64(r.Restarts), "restart")
		}
		work += ", longest silence " + monitor.Span(r.Silence).String()
		all = append(all, work)
		if t := r.Tokens; t.Input+t.Output > 0 {
			all = append(all, fmt.Sprintf("%d tokens in, %d out", t.Input+t.CacheRead+t.CacheWrite, t.Output))
		}
		if r.Ended > 0 {
			all = append(all, plural(int64(r.Ended), "process")+" ended")
		}
	}
	return append(all, "log: "+j.log.Path())
}

// statusText is the answer to /status.
func (j *job) statusText() string {
	t, err := j.desk.Tree(context.Background())
	return fmt.Sprintf("run      %s\nsession  %s\nturns    %d\nlog      %s\nagent    %s\n",
		j.id, cmp.Or(t.Session, "none yet"), t.Turn, j.log.Path(), agentTree(&t, err))
}

// agentTree lists the processes of the agent that works.
func agentTree(t *registry.Tree, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case t.Activity == nil:
		return "not running; each turn starts one of its own"
	case t.Activity.Blind != "":
		return t.Activity.Blind
	}
	list := make([]string, len(t.Activity.Procs))
	for i := range t.Activity.Procs {
		list[i] = t.Activity.Procs[i].Story()
	}
	return strings.Join(list, "\n         ")
}

func plural(n int64, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "s"):
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
