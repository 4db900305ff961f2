package supervise

import (
	"encoding/json"
	"log/slog"
	"syscall"
	"time"

	"cursor-wrap/internal/process"
)

// onSignal ends the turn; a second signal leaves the polite step out.
func (t *turn) onSignal(sig syscall.Signal) {
	t.told(sig)
	name := process.SignalName(sig)
	t.Log.Record(t.Now(), slog.LevelWarn, "signal", slog.String("signal", name), slog.Int("count", t.signals))
	t.end(&cause{outcome: Stopped, message: "stopped by " + name, signal: sig})
	t.hasten()
	t.giveUp()
}

// told notes a signal. An interruption may be of this turn alone, and hides no
// other signal.
func (t *turn) told(sig syscall.Signal) {
	t.signals++
	if t.report.Told == 0 || sig != syscall.SIGINT {
		t.report.Told = sig
	}
}

// hasten leaves the polite step out once we were told to stop a second time.
func (t *turn) hasten() {
	if t.signals > 1 {
		select {
		case t.hurry <- struct{}{}:
		default:
		}
	}
}

func (t *turn) onLimit(x process.Exceeded) {
	t.Log.Record(t.Now(), slog.LevelError, "limit_exceeded", attrs(x)...)
	t.Say("ending the agent: " + x.Summary)
	t.end(&cause{outcome: Failed, subtype: "no_result", message: x.Summary, reason: x})
}

// end starts the ladder, once. The first cause stands; nil is for an agent that
// left by itself or has said its result.
func (t *turn) end(c *cause) {
	if t.cause == nil {
		t.cause = c
	}
	if t.ladder {
		return
	}
	t.ladder = true
	t.goOn(t.Now())
	go func() { t.torn <- t.child.End(process.NewLadder(t.KillGrace), t.hurry) }()
}

// onTorn: nobody of the tree is left, so what is in the pipes now is all there
// will be, whoever else may hold them.
func (t *turn) onTorn(td process.Teardown) {
	t.teardown = &td
	t.report.Teardown = td
	t.Log.Record(t.Now(), slog.LevelInfo, "teardown",
		slog.String("exit", td.Exit.String()),
		slog.Int64("took_ms", td.Took.Milliseconds()),
		slog.String("by", td.By), slog.Bool("proof", td.Proof), slog.String("cgroup", td.Cgroup),
		procs("ended", td.Ended), procs("left", td.Left), procs("spared", td.Spared))
	t.pump.stop()
	t.giveUp()
}

// procs spares a run that ends with nobody left the time that encoding/json
// takes to learn the type.
func procs(key string, list []process.Ended) slog.Attr {
	const most = 1000 // a record has to stay writable; who is beyond it is one of many alike
	list = list[:min(len(list), most)]
	if len(list) == 0 {
		return slog.Any(key, json.RawMessage("[]"))
	}
	return slog.Any(key, list)
}

// giveUp bounds the wait for a reader who does not read, once we were told to
// stop and nothing else is left to do.
func (t *turn) giveUp() {
	if t.signals > 0 && t.teardown != nil && t.abandon == nil {
		t.abandon = time.After(abandonAfter)
	}
}

// join ends what runs beside the owner. Somebody who still looks at the tree is
// not waited for.
func (t *turn) join() {
	if done := t.child.Sampled; done != nil && t.looking {
		go func() { <-t.looks; done() }()
	} else if done != nil {
		done()
	}
	_ = t.child.Stdin.Close() // the writer may have done it
	t.drain.stop()
	<-t.drain.done
	_ = t.child.Stderr.Close()
	if !t.leftover {
		_ = t.child.Stdout.Close()
		process.Release(t.pump.buf)
	}
	t.report.Counts.Stderr = t.drain.bytes
}
