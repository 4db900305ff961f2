package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// What the front and its guard may need together, and the front alone.
var (
	idleCPU      = atMost(1.5, 0.4)
	idleSwitches = atMost(8, 2)
	idleBoth     = atMost(20, 0)
	idleFront    = atMost(12, 5)
)

// idle is what a supervisor costs while its agent thinks.
func (l *lab) idle(ctx context.Context) error {
	window := pick(l.quick, 6*time.Second, 20*time.Second)
	rounds := pick(l.quick, 1, 2)
	agent, _, err := l.treeAgent(ctx)
	if err != nil {
		return err
	}
	var names []string
	var all samples
	err = l.withLogs(func() error {
		if names, err = l.keepers(ctx, agent); err != nil {
			return err
		}
		l.say("idle: %d rounds of %d contenders, %v each", rounds, len(names), window)
		all, err = l.rounds(ctx, "idle", 1, rounds, l.keeping(names, "--idle-timeout=10m"),
			func(ctx context.Context, c contender, _ int) (map[string]float64, error) {
				return l.rest(ctx, c, agent, window)
			})
		return err
	})
	if err != nil {
		return err
	}
	l.report.section("idle", fmt.Sprintf("a silent agent with ten silent children, front and guard together over %v, %d rounds", window, rounds))
	l.reportIdle(names, all)
	l.report.flush()
	return nil
}

func (l *lab) reportIdle(names []string, all samples) {
	for _, row := range []struct {
		what, key, unit string
		target          *target
	}{
		{"CPU", "cpu", "s/h", idleCPU},
		{"context switches", "switches", "/s", idleSwitches},
		{"resident", "resident", "MiB", idleBoth},
		{"resident, the front alone", "front", "MiB", idleFront},
		{"resident, shared pages by share (Pss)", "pss", "MiB", nil},
		{"peak so far, the front alone", "peak", "MiB", nil},
	} {
		for _, name := range names {
			t := row.target
			if name == tiniGroup {
				t = nil
			}
			l.report.value(row.what, name, row.unit, all.of(name, row.key), t)
		}
	}
}

// rest watches a contender over the window and then tells it to end.
func (l *lab) rest(ctx context.Context, c contender, agent string, window time.Duration) (map[string]float64, error) {
	// What the start has left to do, a collection of garbage for one, is over
	// by then.
	const settled = 2 * time.Second
	v := make(map[string]float64)
	source := command{argv: []string{agent}, env: shape{members: 10}.env(), code: terminated}
	spent, err := l.run(ctx, c.pipeline(source), func(f flow) error {
		if err := awaitLine(f.fd); err != nil {
			return err
		}
		if err := sleep(ctx, settled); err != nil {
			return err
		}
		both := own(f.pid)
		before, began := effortOf(both), time.Now()
		if err := sleep(ctx, window); err != nil {
			return err
		}
		after, took := effortOf(both), time.Since(began)
		if before != nil && after != nil {
			v["cpu"] = (after.cpu - before.cpu).Seconds() / took.Hours()
			v["switches"] = float64(after.switches-before.switches) / took.Seconds()
		}
		holdings(both, v)
		if err := unix.Kill(f.pid, unix.SIGTERM); err != nil {
			return fmt.Errorf("tell it to end: %w", err)
		}
		return drain(f.fd, func([]byte) error { return nil })
	})
	if err != nil {
		return nil, err
	}
	l.report.outlived(c.name, spent.left)
	return v, nil
}

// own are the processes of a supervisor itself: the front, and the guard if it
// has one.
func own(front int) []int {
	pids := []int{front}
	for _, child := range children(front) {
		if sameProgram(front, child) {
			pids = append(pids, child)
		}
	}
	return pids
}

// holdings adds what they hold. What cannot be read stays unknown.
func holdings(pids []int, v map[string]float64) {
	const mib = 1 << 20
	var now, pss float64
	for i, pid := range pids {
		m, ok := memoryOf(pid)
		if !ok {
			return
		}
		now += float64(m.now) / mib
		if i == 0 {
			v["front"], v["peak"] = now, float64(m.peak)/mib
		}
		if share, ok := proportion(pid); ok {
			pss += float64(share) / mib
		}
	}
	v["resident"] = now
	if pss > 0 {
		v["pss"] = pss
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
