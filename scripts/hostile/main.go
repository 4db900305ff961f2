//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == keeperArg {
		if err := keep(os.Args[2], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "hostile keeper:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// nobody owns nothing, on every Linux.
const nobody = 65534

// options is what the command line says.
type options struct {
	supervisor  string
	wrap        string
	containment string
	user        string
	trees       string
	endings     string
	rounds      int
	parallel    int
	bound       time.Duration
	short       bool
	table       bool
	json        string
	keep        bool
	tuning      tuning
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("hostile", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.supervisor, "supervisor", "", "the `COMMAND` to test instead of cursor-wrap; {} stands for the agent")
	flags.StringVar(&o.wrap, "wrap", "bin/cursor-wrap", "the cursor-wrap to test")
	flags.StringVar(&o.containment, "containment", "", "cursor-wrap's --containment: auto, tree, cgroup, pidns, or several, separated by commas")
	flags.StringVar(&o.tuning.grace, "grace", "200ms", "cursor-wrap's --kill-grace; empty leaves its own")
	flags.DurationVar(&o.tuning.idle, "idle", 300*time.Millisecond, "cursor-wrap's --idle-timeout for the ending hang")
	flags.StringVar(&o.user, "user", "", "nobody: supervisor and tree as that user (root only)")
	flags.StringVar(&o.trees, "trees", "", "only these, separated by commas")
	flags.StringVar(&o.endings, "endings", "", "only these, separated by commas; linger and KILLBOTH only when named")
	flags.IntVar(&o.rounds, "repeat", 1, "how often each run is made")
	flags.IntVar(&o.parallel, "j", 1, "runs at the same time")
	flags.DurationVar(&o.bound, "bound", 3*time.Second, "when survivors are counted: after the supervisor's exit, or its kill")
	flags.BoolVar(&o.short, "short", false, "TERM and KILL only, two at a time: about 20 seconds where nothing is left")
	flags.BoolVar(&o.table, "table", false, "compare with timeout, tini and dumb-init, and print markdown")
	flags.BoolVar(&o.keep, "keep", false, "keep the folders of runs that left something, with stderr and logs")
	flags.StringVar(&o.json, "json", "", "write every outcome to `FILE`")
	flags.Usage = func() {
		fmt.Fprintf(stderr, "usage: hostile [flags]\n\ntrees: %s\nendings: %s; and %s\n\n", strings.Join(treeNames(), " "),
			strings.Join(endings, " "), strings.Join(rare, " "))
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.short {
		o.parallel = max(o.parallel, 2)
		if o.endings == "" {
			o.endings = "TERM,KILL"
		}
	}
	return o, nil
}

func run(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	var ok bool
	if err == nil {
		ok, err = o.test(stdout)
	}
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "hostile:", err)
		return 1
	case !ok:
		return 1
	}
	return 0
}

// test makes the runs and reports whether the supervisors under test left
// nothing.
func (o options) test(stdout io.Writer) (bool, error) {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	names, err := pick(o.trees, treeNames(), nil)
	if err != nil {
		return false, fmt.Errorf("-trees: %w", err)
	}
	ends, err := pick(o.endings, endings, rare)
	if err != nil {
		return false, fmt.Errorf("-endings: %w", err)
	}
	r, err := o.runner()
	if err != nil {
		return false, err
	}
	defer r.leave(stdout)
	tested, err := o.tested(r.lab)
	if err != nil {
		return false, err
	}
	r.report = func(out outcome) { fmt.Fprintln(stdout, line(out)) }
	var outcomes []outcome
	each := func(list []supervisor) {
		for _, s := range list {
			fmt.Fprintf(stdout, "%s\n%s\n", s.name, header)
			made := r.all(ctx, s, r.cells(s, names, ends, o.rounds))
			fmt.Fprintf(stdout, "%s: %s\n\n", s.name, summary(made))
			outcomes = append(outcomes, made...)
		}
	}
	each(tested)
	ok := allClean(outcomes)
	if o.table {
		each(peers())
		fmt.Fprint(stdout, markdown(outcomes, o.bound))
	}
	if o.json != "" {
		if err := writeJSON(o.json, outcomes); err != nil {
			return false, err
		}
	}
	return ok, ctx.Err()
}

func (o options) runner() (*runner, error) {
	r := &runner{uid: -1, tuning: o.tuning, bound: o.bound, parallel: o.parallel, keep: o.keep}
	if o.user != "" {
		if os.Getuid() != 0 {
			return nil, errors.New("-user: only root can become somebody else")
		}
		r.uid = nobody
		if n, err := strconv.Atoi(o.user); err == nil {
			r.uid = n
		} else if o.user != "nobody" {
			return nil, fmt.Errorf("-user %s: use nobody or a number", o.user)
		}
	}
	if err := adopt(); err != nil {
		return nil, fmt.Errorf("become a subreaper: %w", err)
	}
	sweep()
	var err error
	r.lab, err = newLab()
	return r, err
}

// leave removes the lab, or what of it is not to be kept.
func (r *runner) leave(stdout io.Writer) {
	if kept, _ := filepath.Glob(filepath.Join(r.lab.dir, "run-*")); len(kept) > 0 { // the pattern is well-formed
		fmt.Fprintf(stdout, "kept %s\n", r.lab.dir)
		return
	}
	_ = r.lab.remove() // in the directory for temporary files
}

// tested are the supervisors under test: the wrapper, once for each way to
// contain that was asked for, or the one that was named.
func (o options) tested(l *lab) ([]supervisor, error) {
	if o.supervisor != "" {
		s, err := parseSupervisor(o.supervisor)
		return []supervisor{s}, err
	}
	path, err := l.keepCopy(o.wrap, "cursor-wrap")
	if err != nil {
		return nil, fmt.Errorf("%w; build it, or name it with -wrap", err)
	}
	var list []supervisor
	for containment := range strings.SplitSeq(o.containment, ",") {
		s, err := wrapper(path, containment)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

func writeJSON(file string, outcomes []outcome) error {
	b, err := json.MarshalIndent(outcomes, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}
