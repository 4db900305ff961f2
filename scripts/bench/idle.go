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

// atWork is an agent in the middle of a long tool call of which nothing is to be
// seen or heard: a supervisor that suspects silence has to look at it all the time.
var atWork = shape{members: 10, says: callLine(time.Hour)}

// idle is what a supervisor costs while its agent is silent.
func (l *lab) idle(ctx context.Context) error {
	window := pick(l.quick, 2*tick, 4*tick)
	rounds := pick(l.quick, 1, 2)
	agent, _, err := l.treeAgent(ctx)
	if err != nil {
		return err
	}
	var names []string
	err = l.withLogs(func() error {
		names, err = l.keepers(ctx, agent)
		return err
	})
	if err != nil {
		return err
	}
	l.say("idle: %d rounds of %d contenders, %v each", rounds, len(names), settled+window)
	all, err := l.rounds(ctx, "idle", 1, rounds, l.keeping(names),
		func(ctx context.Context, c contender, _ int) (v map[string]float64, err error) {
			err = l.withLogs(func() error {
				v, err = l.rest(ctx, c, agent, window)
				return err
			})
			return v, err
		})
	if err != nil {
		return err
	}
	l.report.section("idle", fmt.Sprintf("a silent agent in a tool call of an hour, with ten silent children; front and guard together over %v, %d rounds", window, rounds))
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
		{"wake-ups", "wakes", "/h", nil},
		{"looks at the agent's processes", "looks", "/h", nil},
		{"resident", "resident", "MiB", idleBoth},
		{"resident, the front alone", "front", "MiB", idleFront},
		{"resident, shared pages by share (Pss)", "pss", "MiB", nil},
		{"peak so far, the front alone", "peak", "MiB", nil},
	} {
		for _, name := range names {
			t := row.target
			if name == tiniGroup {
				if row.key == "looks" {
					continue
				}
				t = nil
			}
			l.report.value(row.what, name, row.unit, all.of(name, row.key), t)
		}
	}
}

// settled is when what is done but once is over: the start, and the first two
// looks at the agent's processes, which learn who they are. It is in the middle
// between two looks.
const settled = 5 * tick / 2

// rest watches a contender over the window and then tells it to end.
func (l *lab) rest(ctx context.Context, c contender, agent string, window time.Duration) (map[string]float64, error) {
	v := make(map[string]float64)
	source := command{argv: []string{agent}, env: atWork.env(), code: terminated}
	spent, err := l.run(ctx, c.pipeline(source), func(f flow) error {
		if err := awaitLines(f.fd, initLine+atWork.says); err != nil {
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
			v["wakes"] = float64(after.wakes-before.wakes) / took.Hours()
		}
		if c.name != tiniGroup {
			looks, err := l.looks(began, took)
			if err != nil {
				return err
			}
			v["looks"] = float64(looks) / took.Hours()
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

// looks is how often the agent's processes were looked at in a window. A
// supervisor that did not look is not what is measured here.
func (l *lab) looks(began time.Time, took time.Duration) (n int, err error) {
	all, err := l.records("sample")
	if err != nil {
		return 0, err
	}
	for _, r := range all {
		if d := time.UnixMilli(r.TS).Sub(began); d >= 0 && d < took {
			n++
		}
	}
	if want := int(took/tick) - 1; n < want {
		return n, fmt.Errorf("looked %d times in %v", n, took)
	}
	return n, nil
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
