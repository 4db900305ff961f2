// Command bench measures what stands between an agent and its caller: the
// throughput, the latency, the start-up, the teardown and the idle cost of
// cursor-wrap, beside peers that do less (cat, tee, tini) and beside ref_group,
// the least that any program with a durable log must do; what one look at the
// agent's processes costs, beside gopsutil; and how soon a hang is over.
//
//	go run ./scripts/bench -wrap PATH [-quick] [-only NAMES] [-dir DIR] [-json FILE]
//
// All figures of a report come from one run. The contenders take turns
// (A B C A B C …), a ratio is taken within its round, and medians are shown,
// so that a busy machine hurts all of them alike. A missed target is marked and
// never fails the program; it exits 1 when something did not work: a contender
// that failed, bytes that differ, a log that is missing, a process left over.
//
// The bench is its own source, its own ref_group and its own sink. It judges
// nothing that it has not started itself.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

func main() {
	// The bench starts itself as source, agent and ref_group. The environment
	// decides, because an agent does not choose its arguments.
	if role := os.Getenv(roleEnv); role != "" {
		if err := play(role); err != nil {
			fmt.Fprintln(os.Stderr, "bench "+role+":", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// options is what the command line says.
type options struct {
	wrap  string
	quick bool
	only  []string
	dir   string
	json  string
}

// sections are the parts of a run, in their order.
var sections = []string{"small", "mix", "huge", "latency", "startup", "teardown", "idle", "sample", "hang", "report"}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	var only string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.wrap, "wrap", "", "the cursor-wrap to measure (needed)")
	flags.BoolVar(&o.quick, "quick", false, "smaller inputs and fewer rounds: does it work, and roughly how fast")
	flags.StringVar(&only, "only", "", "only these sections, separated by commas: throughput, "+strings.Join(sections, ", "))
	flags.StringVar(&o.dir, "dir", "", "where inputs and logs are written (default: the directory for temporary files)")
	flags.StringVar(&o.json, "json", "", "write the same figures to `FILE`")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.wrap == "" {
		return o, errors.New("-wrap is needed: the path of a built cursor-wrap")
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	for name := range strings.SplitSeq(only, ",") {
		switch {
		case only == "":
			o.only = sections
		case name == "throughput":
			o.only = append(o.only, "small", "mix", "huge")
		case slices.Contains(sections, name):
			o.only = append(o.only, name)
		default:
			return o, fmt.Errorf("-only: no section is called %q", name)
		}
	}
	return o, nil
}

func run(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	r, err := measure(ctx, o, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	if len(r.Failures) > 0 {
		return 1
	}
	return 0
}

// measure does the whole run and leaves nothing behind but the report.
func measure(ctx context.Context, o options, stdout, stderr io.Writer) (*report, error) {
	l, err := newLab(o, stderr)
	if err != nil {
		return nil, err
	}
	defer l.close()
	r := &report{out: stdout, Quick: o.quick, Machine: describe(l.dir)}
	l.report = r
	fmt.Fprintln(stdout, r.Machine)
	for _, name := range sections {
		if !slices.Contains(o.only, name) {
			continue
		}
		if err := l.section(ctx, name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	r.finish()
	if o.json != "" {
		return r, r.save(o.json)
	}
	return r, nil
}

func (l *lab) section(ctx context.Context, name string) error {
	switch name {
	case "latency":
		return l.latency(ctx)
	case "startup":
		return l.startup(ctx)
	case "teardown":
		return l.teardown(ctx)
	case "idle":
		return l.idle(ctx)
	case "sample":
		return l.sample(ctx)
	case "hang":
		return l.hang(ctx)
	case "report":
		return l.pages(ctx)
	}
	return l.throughput(ctx, name)
}

// newLab makes the directory that everything happens in.
func newLab(o options, progress io.Writer) (*lab, error) {
	wrap, err := filepath.Abs(o.wrap)
	if err != nil {
		return nil, fmt.Errorf("-wrap: %w", err)
	}
	if _, err := exec.LookPath(wrap); err != nil {
		return nil, fmt.Errorf("-wrap: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the bench's own executable: %w", err)
	}
	// Without adoption an orphan of a contender would go to init, where its CPU
	// time is lost and nobody sees that it was left behind.
	if err := adoptOrphans(); err != nil {
		return nil, fmt.Errorf("become a subreaper: %w", err)
	}
	dir, err := os.MkdirTemp(o.dir, "cursor-wrap-bench-")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	l := &lab{dir: dir, wrap: wrap, self: self, quick: o.quick, progress: progress}
	if err := os.Mkdir(l.home(), 0o700); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}
