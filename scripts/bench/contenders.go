package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// The contenders.
const (
	direct   = "direct"
	cat      = "cat"
	tee      = "tee"
	written  = "cursor-wrap written"
	always   = "cursor-wrap always"
	refgroup = "ref_group"
)

// contender is one way to stand between a source and its reader.
type contender struct {
	name string

	// pipeline puts the contender behind the source; a wrapper starts the
	// source itself, as its agent.
	pipeline func(source command) []command

	// logs says that it leaves the stream in the log directory: at least its
	// bytes, or with exact no byte more.
	logs, exact bool
}

func (l *lab) contenders(names ...string) []contender {
	logFile := filepath.Join(l.logDir(), "log")
	after := func(filter command) func(command) []command {
		return func(source command) []command { return []command{source, filter} }
	}
	wrapped := func(sync string) func(command) []command {
		return func(agent command) []command {
			return []command{{argv: l.wrapArgv(agent.argv[0], "--log-sync="+sync), env: agent.env}}
		}
	}
	all := []contender{
		{name: direct, pipeline: func(source command) []command { return []command{source} }},
		{name: cat, pipeline: after(command{argv: []string{"cat"}})},
		{name: tee, pipeline: after(command{argv: []string{"tee", logFile}}), logs: true, exact: true},
		{name: written, pipeline: wrapped("written"), logs: true},
		{name: always, pipeline: wrapped("always"), logs: true},
		{name: refgroup, pipeline: after(command{
			argv: []string{l.self},
			env:  []string{roleEnv + "=ref_group", logEnv + "=" + logFile},
		}), logs: true, exact: true},
	}
	return slices.DeleteFunc(all, func(c contender) bool { return !slices.Contains(names, c.name) })
}

// wrapArgv is cursor-wrap around an agent, as a CI job calls it.
func (l *lab) wrapArgv(agent string, flags ...string) []string {
	argv := []string{l.wrap, "-p", "--agent-bin", agent, "--log-dir", l.logDir()}
	return append(append(argv, flags...), "bench")
}

// source is the bench itself in one of its roles.
func (l *lab) source(role string, env ...string) command {
	return command{argv: []string{l.self}, env: append(env, roleEnv+"="+role)}
}

// withLogs gives f an empty log directory and takes it away afterwards, dirty
// pages and all, so that the next contender does not flush for this one.
func (l *lab) withLogs(f func() error) error {
	if err := os.Mkdir(l.logDir(), 0o700); err != nil {
		return err
	}
	err := f()
	if rerr := os.RemoveAll(l.logDir()); err == nil {
		err = rerr
	}
	if serr := syncFilesystem(l.dir); err == nil {
		err = serr
	}
	return err
}

// checkLog holds a contender to what it is measured for: who does not log is
// fast without merit.
func (l *lab) checkLog(c contender, bytes int64) error {
	if !c.logs {
		return nil
	}
	var logged int64
	err := filepath.WalkDir(l.logDir(), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			logged += info.Size()
		}
		return err
	})
	if err != nil {
		return err
	}
	if logged < bytes || c.exact && logged != bytes {
		return fmt.Errorf("logged %d bytes of a stream of %d", logged, bytes)
	}
	return nil
}

// samples are the measured values: contender, then what was measured, then
// one value a round.
type samples map[string]map[string][]float64

func (s samples) of(contender, what string) []float64 { return s[contender][what] }

// rounds lets the contenders take turns. A contender that fails is out of the
// section, with all its values, and the others go on. Round 0 is a rehearsal
// and is not counted; counting begins with round 1.
func (l *lab) rounds(ctx context.Context, section string, first, last int, cs []contender,
	measure func(ctx context.Context, c contender, round int) (map[string]float64, error),
) (samples, error) {
	cs = slices.Clone(cs)
	all := make(samples)
	for _, c := range cs {
		all[c.name] = make(map[string][]float64)
	}
	for round := first; round <= last; round++ {
		for i := 0; i < len(cs); i++ {
			c := cs[i]
			values, err := measure(ctx, c, round)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				l.report.fail("%s: %s, round %d: %v", section, c.name, round, err)
				delete(all, c.name)
				cs = slices.Delete(cs, i, i+1)
				i--
				continue
			}
			if round == 0 {
				continue
			}
			for what, v := range values {
				all[c.name][what] = append(all[c.name][what], v)
			}
		}
	}
	return all, nil
}

// say tells whoever waits what is going on.
func (l *lab) say(format string, args ...any) {
	fmt.Fprintf(l.progress, "bench: "+format+"\n", args...)
}
