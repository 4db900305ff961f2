package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// hung is the exit code of a run that ended with a verdict.
const hung = 2

// oneTick is how late a hang may be ended, in ms.
var oneTick = atMost(float64(tick.Milliseconds()), 0)

// hangs are the quiet ones, each a second after it began.
var hangs = []struct {
	shape
	kind  string // of the verdict
	flags []string
}{
	{shape{name: "silence", members: 10}, "idle", []string{"--idle-timeout=1s"}},
	{shape{name: "a tool call", members: 10, says: callLine(700 * time.Millisecond)}, "tool", []string{"--tool-grace=300ms"}},
}

// hang is how long after its deadline an agent that hangs is dead.
func (l *lab) hang(ctx context.Context) error {
	r := l.report
	if !canWatch {
		r.note("hang: left out, the last death cannot be seen here")
		return nil
	}
	agent, made, err := l.treeAgent(ctx)
	if err != nil {
		return err
	}
	var names []string
	if err := l.withLogs(func() error {
		names, err = l.keepers(ctx, agent)
		return err
	}); err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == tiniGroup })
	rounds := pick(l.quick, 3, 20)
	byHang := make(map[string]samples)
	for _, h := range hangs {
		l.say("hang: %s: a rehearsal, then %d rounds of %d contenders", h.name, rounds, len(names))
		byHang[h.name], err = l.rounds(ctx, "hang, "+h.name, 0, rounds, l.keeping(names, h.flags...),
			func(ctx context.Context, c contender, _ int) (v map[string]float64, err error) {
				err = l.withLogs(func() error {
					v, err = l.outwait(ctx, c, agent, h.shape, h.kind)
					return err
				})
				return v, err
			})
		if err != nil {
			return err
		}
	}
	r.section("hang", fmt.Sprintf("from the deadline of an agent (%s) that hangs quietly with ten silent children, %d rounds", made, rounds))
	for _, h := range hangs {
		r.reportHang(h.name, names, byHang[h.name])
	}
	r.flush()
	return nil
}

func (r *report) reportHang(hang string, names []string, all samples) {
	for _, row := range []struct {
		what, key string
		worst     *target
	}{
		{"verdict", "verdict", nil},
		{"agent dead, by the log", "logged", nil},
		{"agent and children gone", "gone", oneTick},
		{"our exit", "exited", nil},
	} {
		for _, name := range names {
			r.value(hang+": "+row.what, name, "ms", all.of(name, row.key), nil)
		}
		for _, name := range names {
			var worst []float64
			if xs := all.of(name, row.key); len(xs) > 0 {
				worst = []float64{slices.Max(xs)}
			}
			r.value(hang+": "+row.what+", worst", name, "ms", worst, row.worst)
		}
	}
}

// outwait lets a contender find out that its agent hangs. All times are from
// the deadline that the log names, in ms; the log's are whole ones.
func (l *lab) outwait(ctx context.Context, c contender, agent string, s shape, kind string) (map[string]float64, error) {
	life, err := l.lifeLine()
	if err != nil {
		return nil, err
	}
	defer life.close()
	source := command{argv: []string{agent}, env: append(s.env(), life.env()), code: hung}
	var told time.Time
	var e ending
	spent, err := l.run(ctx, c.pipeline(source), func(f flow) error {
		if err := awaitLines(f.fd, initLine+s.says); err != nil {
			return err
		}
		told = time.Now()
		var err error
		if e, err = watchEnd(f.pid, life.fd, told); err != nil {
			return err
		}
		return drain(f.fd, func([]byte) error { return nil })
	})
	if err != nil {
		return nil, err
	}
	if e.survivors > 0 || spent.left.count > 0 {
		return nil, fmt.Errorf("%d survivors, %d dead processes unreaped", e.survivors, spent.left.count)
	}
	verdict, err := l.record("hang_detected")
	if err != nil {
		return nil, err
	}
	exits, err := l.records("agent_exit")
	if err != nil {
		return nil, err
	}
	if verdict.Kind != kind || verdict.Evidence.Finding != "confirmed" {
		return nil, fmt.Errorf("a verdict of kind %q, finding %q", verdict.Kind, verdict.Evidence.Finding)
	}
	since := func(d time.Duration) float64 {
		return float64(told.Add(d).Sub(time.UnixMilli(verdict.Deadline))) / float64(time.Millisecond)
	}
	v := map[string]float64{
		"verdict": float64(verdict.TS - verdict.Deadline),
		"gone":    since(e.gone),
		"exited":  since(e.exited),
	}
	if len(exits) == 1 {
		v["logged"] = float64(exits[0].TS - verdict.Deadline)
	} else {
		l.report.note("%s: %d records agent_exit in the log of a run that hung, not one", c.name, len(exits))
	}
	return v, nil
}

// record is what the bench has to know of a record of the session log.
type record struct {
	Msg      string `json:"msg"`
	TS       int64  `json:"ts"`       // Unix ms
	Deadline int64  `json:"deadline"` // likewise
	Kind     string `json:"kind"`
	Evidence struct {
		Finding string `json:"finding"`
	} `json:"evidence"`
}

// record is the only one of that name in the only log.
func (l *lab) record(msg string) (record, error) {
	all, err := l.records(msg)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%d records %s in the log, not one", len(all), msg)
	}
	if err != nil {
		return record{}, err
	}
	return all[0], nil
}

// records are those of that name in the only log.
func (l *lab) records(msg string) (all []record, err error) {
	logs, err := filepath.Glob(filepath.Join(l.logDir(), "*.jsonl"))
	if err != nil || len(logs) != 1 {
		return nil, errors.Join(err, fmt.Errorf("%d logs, not one", len(logs)))
	}
	b, err := os.ReadFile(logs[0])
	if err != nil {
		return nil, err
	}
	named := []byte(`"msg":"` + msg + `"`)
	for line := range bytes.Lines(b) {
		if !bytes.Contains(line, named) {
			continue
		}
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("read the log: %w", err)
		}
		if r.Msg == msg {
			all = append(all, r)
		}
	}
	return all, nil
}
