package main

import (
	"log/slog"
	"os"
	"syscall"
	"time"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/process"
	"cursor-wrap/internal/session"
	"cursor-wrap/internal/supervise"
)

// sweep clears up after runs whose wrapper and guard were killed together.
func (j *job) sweep() {
	left, died := sweepDead(j.stateDir)
	for _, l := range left {
		j.log.Record(j.now(), slog.LevelWarn, "leftover", slog.Any("leftover", l))
		if len(l.Ended) > 0 || l.Error != "" {
			j.con.say(l.String())
		}
	}
	if !died {
		return
	}
	if marked := process.Marked(markerEnv); len(marked) > 0 {
		j.log.Record(j.now(), slog.LevelWarn, "marked", slog.Any("processes", marked))
		j.con.say(told(marked))
	}
}

// recordAdopted: an orphan of the tree has ended.
func (j *job) recordAdopted(e process.Ended) {
	j.log.Record(j.now(), slog.LevelDebug, "adopted_exit", slog.Any("process", e))
}

func (j *job) recordStart(prompt int) {
	dir, err := os.Getwd()
	if err != nil {
		dir = ""
	}
	j.log.Record(j.now(), slog.LevelInfo, "run_start",
		slog.String("run_id", j.id), slog.String("version", versionString()), slog.Int("pid", os.Getpid()),
		slog.String("cwd", dir), slog.String("workspace", j.workspace), slog.String("resume", j.resume),
		slog.Int("prompt_bytes", prompt), slog.String("output_format", j.outputFormat), slog.String("log_sync", j.logSync), slog.String("stderr", j.stderr),
		policyGroup(j.policy))
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

func (j *job) recordEnd(r *session.Report) {
	var self syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &self) // cannot fail for ourselves
	exit := r.Teardown.Exit
	lostRecords, lostBytes := j.log.Lost()
	level, err := j.level()
	if err != nil || level < slog.LevelInfo {
		level = slog.LevelInfo
	}
	j.log.Record(j.now(), level, "run_end", // whatever the level: a log without it is that of a wrapper that was killed
		slog.String("outcome", string(r.Outcome)), slog.Int("exit_code", r.ExitCode), slog.String("message", r.Message),
		slog.String("session_id", r.SessionID), slog.Int64("took_ms", r.Took.Milliseconds()),
		slog.Int("turns", r.Turns), slog.Int("restarts", r.Restarts), slog.Int64("longest_silence_ms", r.Silence.Milliseconds()), slog.Group("counts", slog.Int64("lines", r.Counts.Lines), slog.Int64("bytes", r.Counts.Bytes), slog.Int64("calls", r.Counts.Calls),
			slog.Int64("unmatched_completions", r.Counts.Unmatched), slog.Int64("stderr_bytes", r.Counts.Stderr)),
		slog.Int64("lost_records", lostRecords), slog.Int64("lost_bytes", lostBytes),
		slog.Group("agent", slog.Int("exit_code", exit.Code), slog.String("signal", process.SignalName(exit.Signal)),
			slog.Int64("cpu_ms", (exit.User+exit.System).Milliseconds()), slog.Int64("max_rss_bytes", exit.MaxRSS)),
		slog.Group("wrapper", slog.Int64("cpu_ms", (self.Utime.Nano()+self.Stime.Nano())/1e6),
			slog.Int64("max_rss_bytes", process.PeakMemory())))
	if r.Outcome != supervise.Success {
		if err := j.log.Flag(string(r.Outcome), j.now()); err != nil {
			j.con.say(err.Error())
		}
	}
	if err := j.log.Close(); err != nil {
		j.con.say(err.Error())
	}
}
