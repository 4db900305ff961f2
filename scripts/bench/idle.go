package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var idleTarget = atMost(12, 5)

// idle is what a wrapper holds while its agent thinks. The guard is a process
// of its own and is shown, but the target is the front's.
func (l *lab) idle(ctx context.Context) error {
	const silence = 2 * time.Second
	rounds := pick(l.quick, 1, 3)
	cs := l.contenders(written, always)
	l.say("idle: %d rounds of %d contenders, %v each", rounds, len(cs), silence)
	all, err := l.rounds(ctx, "idle", 1, rounds, cs, func(ctx context.Context, c contender, _ int) (v map[string]float64, err error) {
		err = l.withLogs(func() error {
			v, err = l.rest(ctx, c, silence)
			return err
		})
		return v, err
	})
	if err != nil {
		return err
	}
	r := l.report
	r.section("idle", fmt.Sprintf("an agent that is silent after its init for %v, %d rounds", silence, rounds))
	for _, c := range cs {
		r.value("resident", c.name, "MiB", all.of(c.name, "now"), idleTarget)
		r.value("peak so far", c.name, "MiB", all.of(c.name, "peak"), nil)
		if guard := all.of(c.name, "others"); guard != nil {
			r.value("resident, its other processes", c.name, "MiB", guard, nil)
		}
	}
	r.flush()
	return nil
}

// rest looks at the wrapper when three quarters of the silence are over.
func (l *lab) rest(ctx context.Context, c contender, silence time.Duration) (map[string]float64, error) {
	v := make(map[string]float64)
	source := l.source("silent", silentEnv+"="+silence.String())
	got := 0
	spent, err := l.run(ctx, c.pipeline(source), func(f flow) error {
		return drain(f.fd, func(chunk []byte) error {
			if got == 0 {
				time.Sleep(silence * 3 / 4)
				holdings(f.pid, v)
			}
			got += len(chunk)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	if got != len(initLine)+len(resultLine) {
		return nil, errors.New("the init or the result is missing")
	}
	l.report.outlived(c.name, spent.left)
	return v, nil
}

func holdings(pid int, v map[string]float64) {
	const mib = 1 << 20
	m, ok := memoryOf(pid)
	if !ok {
		return
	}
	v["now"], v["peak"] = float64(m.now)/mib, float64(m.peak)/mib
	for _, child := range children(pid) {
		if m, ok := memoryOf(child); ok && sameProgram(pid, child) {
			v["others"] += float64(m.now) / mib
		}
	}
}
