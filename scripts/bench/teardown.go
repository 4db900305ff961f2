package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The supervisors that are told to end an agent's tree.
const (
	tiniGroup = "tini -g"
	inTree    = "cursor-wrap tree"
	inCgroup  = "cursor-wrap cgroup"
)

// terminated is the exit code of a supervisor that SIGTERM has ended.
const terminated = 128 + int(unix.SIGTERM)

var (
	aloneTarget    = atMost(5, 0)
	obedientTarget = atMost(20, 0)
	flatTargets    = map[string]*target{inTree: atMost(3, 2.2), inCgroup: atMost(3, 1.3)}
	deafTargets    = map[string]*target{inTree: atMost(20, 10), inCgroup: atMost(20, 5)}
	nobodyLeft     = map[string]*target{inTree: atMost(0, 0), inCgroup: atMost(0, 0)}
)

// trees are what is torn down. Without a grace the kill step begins at once:
// what a deaf tree then takes, from the signal on, is the kill step and the way
// there.
var trees = []struct {
	shape
	flags         []string
	rounds, quick int
}{
	{shape{name: "alone"}, nil, 50, 10},
	{shape{name: "flat", members: 100}, nil, 25, 7},
	{shape{name: "half deaf", members: 100, deaf: true}, []string{"--kill-grace=0s"}, 9, 3},
	{shape{name: "obedient", leaves: true}, nil, 50, 10},
}

// teardown is how long it takes to end an agent and all that it has started.
func (l *lab) teardown(ctx context.Context) error {
	r := l.report
	if !canWatch {
		r.note("teardown: left out, whoever is orphaned cannot be found here")
		return nil
	}
	agent, made, err := l.treeAgent(ctx)
	if err != nil {
		return err
	}
	byTree := make(map[string]samples)
	var names []string
	err = l.withLogs(func() error {
		if names, err = l.keepers(ctx, agent); err != nil {
			return err
		}
		for _, t := range trees {
			rounds := pick(l.quick, t.quick, t.rounds)
			l.say("teardown: %s: a rehearsal, then %d rounds of %d contenders, the agent %s", t.name, rounds, len(names), made)
			byTree[t.name], err = l.rounds(ctx, "teardown, "+t.name, 0, rounds, l.keeping(names, t.flags...),
				func(ctx context.Context, c contender, _ int) (map[string]float64, error) {
					return l.end(ctx, c, agent, t.shape)
				})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.section("teardown", fmt.Sprintf("SIGTERM to the supervisor of an agent (%s) and its children", made))
	l.reportTeardown(names, byTree)
	r.flush()
	return nil
}

func (l *lab) reportTeardown(names []string, byTree map[string]samples) {
	r := l.report
	rows := func(tree, what, key string, t map[string]*target) {
		for _, name := range names {
			xs := byTree[tree].of(name, key)
			switch peer := byTree[tree].of(tiniGroup, key); {
			case len(xs) == 0 && name == tiniGroup: // it leaves survivors, or has failed
			case tree == "flat" && len(peer) > 0:
				r.ratio(tree+", "+what, name, "ms", xs, tiniGroup, peer, t[name])
			case tree == "flat": // the targets are of the ratio
				r.value(tree+", "+what, name, "ms", xs, nil)
			default:
				r.value(tree+", "+what, name, "ms", xs, t[name])
			}
		}
	}
	const gone, exited = "signal to last death", "signal to exit"
	rows("alone", gone, "gone", nil)
	rows("alone", exited, "exited", map[string]*target{inTree: aloneTarget, inCgroup: aloneTarget})
	rows("flat", gone, "gone", flatTargets)
	rows("flat", exited, "exited", nil)
	rows("half deaf", gone, "gone", deafTargets)
	rows("half deaf", exited, "exited", nil)
	for _, name := range names {
		xs := byTree["half deaf"].of(name, "survivors")
		if len(xs) > 0 { // a single survivor in a single round is one too many
			xs = []float64{slices.Max(xs)}
		}
		r.value("half deaf, survivors after 2 s, worst round", name, "processes", xs, nobodyLeft[name])
	}
	rows("obedient", "its exit to ours", "after", map[string]*target{inTree: obedientTarget, inCgroup: obedientTarget})
}

// keepers names the contenders that there can be on this machine.
func (l *lab) keepers(ctx context.Context, agent string) (names []string, err error) {
	if _, err := exec.LookPath("tini"); err == nil {
		names = append(names, tiniGroup)
	} else {
		l.report.note("tini: not installed")
	}
	names = append(names, inTree, inCgroup)
	probe := l.keeping([]string{inCgroup})[0].pipeline(command{argv: []string{agent}, env: shape{leaves: true}.env()})
	_, err = l.run(ctx, probe, func(f flow) error { return drain(f.fd, func([]byte) error { return nil }) })
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && strings.Contains(err.Error(), "no cgroup"):
		l.report.note("%s: left out, no cgroup of version 2 is writable here", inCgroup)
		names = names[:len(names)-1]
	}
	return names, nil // any other error is one of the contender's, in its first round
}

// keeping are the contenders of these names around an agent, with these flags
// more for cursor-wrap.
func (l *lab) keeping(names []string, flags ...string) []contender {
	wrapped := func(containment string) func(command) []command {
		return func(agent command) []command {
			agent.argv = l.wrapArgv(agent.argv[0], append(slices.Clone(flags), "--containment="+containment)...)
			return []command{agent}
		}
	}
	all := []contender{
		{name: tiniGroup, pipeline: func(agent command) []command {
			agent.argv = []string{"tini", "-s", "-g", "--", agent.argv[0]}
			return []command{agent}
		}},
		{name: inTree, pipeline: wrapped("tree")},
		{name: inCgroup, pipeline: wrapped("cgroup")},
	}
	return slices.DeleteFunc(all, func(c contender) bool { return !slices.Contains(names, c.name) })
}

// end lets a contender end one tree.
func (l *lab) end(ctx context.Context, c contender, agent string, s shape) (map[string]float64, error) {
	life, err := l.lifeLine()
	if err != nil {
		return nil, err
	}
	defer life.close()
	source := command{argv: []string{agent}, env: append(s.env(), life.env())}
	if !s.leaves {
		source.code = terminated
	}
	var e ending
	spent, err := l.run(ctx, c.pipeline(source), func(f flow) (err error) {
		told := time.Now()
		if !s.leaves {
			if err := awaitLines(f.fd, initLine+s.says); err != nil {
				return err
			}
			told = time.Now()
			if err := unix.Kill(f.pid, unix.SIGTERM); err != nil {
				return fmt.Errorf("tell it to end: %w", err)
			}
		}
		if e, err = watchEnd(f.pid, life.fd, told); err != nil {
			return err
		}
		return drain(f.fd, func([]byte) error { return nil })
	})
	if err != nil {
		return nil, err
	}
	if e.survivors == 0 && spent.left.count > 0 && c.name != tiniGroup {
		return nil, fmt.Errorf("left %d dead processes unreaped", spent.left.count)
	}
	if e.survivors > 0 && !s.deaf {
		return nil, fmt.Errorf("%d survivors", e.survivors)
	}
	return e.values(), nil
}

// ending is how a tree and its supervisor ended, from the moment when it was
// told to.
type ending struct {
	gone      time.Duration // the last of the tree died; nothing if some had to be ended by us
	exited    time.Duration // the supervisor
	survivors int
}

func (e ending) values() map[string]float64 {
	const ms = float64(time.Millisecond)
	v := map[string]float64{"exited": float64(e.exited) / ms, "survivors": float64(e.survivors)}
	if e.survivors == 0 {
		v["gone"] = float64(e.gone) / ms
		v["after"] = float64(e.exited-e.gone) / ms
	}
	return v
}

// lifeLine is a FIFO that a tree holds open for writing, and we for reading.
type lifeLine struct {
	path string
	fd   int
}

func (l *lab) lifeLine() (*lifeLine, error) {
	path := filepath.Join(l.dir, "life")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("make %s: %w", path, err)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		os.Remove(path)
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return &lifeLine{path, fd}, nil
}

func (l *lifeLine) env() string { return lifeEnv + "=" + l.path }

func (l *lifeLine) close() {
	unix.Close(l.fd)
	os.Remove(l.path)
}

// awaitLines reads the agent's first lines, which must be its only ones.
func awaitLines(fd int, want string) error {
	var got []byte
	buf := make([]byte, 4096)
	for len(got) < len(want) {
		n, err := readSome(fd, buf)
		if err != nil {
			return fmt.Errorf("wait for its first lines: %w", err)
		}
		if n == 0 {
			return errors.New("ended before it was told to")
		}
		got = append(got, buf[:n]...)
	}
	if string(got) != want {
		return fmt.Errorf("said %q, not %q", got, want)
	}
	return nil
}
