package main

import (
	"cmp"
	"fmt"
	"strings"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/process"
	"cursor-wrap/internal/session"
	"cursor-wrap/internal/supervise"
	"cursor-wrap/internal/tree"
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
	j.mu.Lock()
	id, turns := cmp.Or(j.session, j.resume, "none yet"), j.turns
	j.mu.Unlock()
	return fmt.Sprintf("session  %s\nturns    %d\nlog      %s\nagent    %s\n", id, turns, j.log.Path(), j.agentTree())
}

// agentTree lists the processes of the agent that works.
func (j *job) agentTree() string {
	var a *process.Agent
	if j.person != nil {
		a = j.person.agent.Load()
	}
	if a == nil {
		return "not running; each turn starts one of its own"
	}
	s := a.Sampler()
	defer s.Close()
	snap := s.Sample(j.now(), false, true)
	var w tree.Watch
	seen := w.Next(&snap, nil)
	if seen.Blind != "" {
		return seen.Blind
	}
	list := make([]string, len(seen.Procs))
	for i := range seen.Procs {
		list[i] = seen.Procs[i].Story()
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
