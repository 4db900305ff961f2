package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The ways to look at a tree.
const (
	ofMembers = "gopsutil members" // told who they are, and with its boot time cached
	ofAll     = "gopsutil walk"    // as it comes: parent, times, status and I/O of all processes
)

// ways are the benchmarks of them in internal/process.
var ways = []struct{ name, benchmark string }{
	{inTree, "tree"},
	{inCgroup, "cgroup"},
	{ofMembers, "members_by_gopsutil"},
	{ofAll, "all_by_gopsutil"},
}

// sizes are the trees that are looked at, under the names that their benchmarks
// have. The targets are of the CPU time in µs.
var sizes = []struct {
	about, benchmark string
	cpu              *target
}{
	{"10 members", "10", nil},
	{"100 members", "100", atMost(1500, 1000)},
	{"1,000 members", "1000", nil},
	{"10 beside 3,000", "10_beside_3000", atMost(250, 100)},
	{"1,000 beside 3,000", "1000_beside_3000", nil},
}

// tick is how often a silent agent's processes are looked at by default.
const tick = 5 * time.Second

// sample is what one look at an agent's processes costs. The sampler is no
// program and the bench knows nothing of its package, so the package's own
// benchmarks are run, by a child.
func (l *lab) sample(ctx context.Context) error {
	r := l.report
	if !canWatch {
		r.note("sample: left out, its benchmarks are for Linux")
		return nil
	}
	rounds := pick(l.quick, 1, 5)
	l.say("sample: %d rounds of %d trees", rounds, len(sizes))
	tests, err := buildBenchmarks(ctx, l.dir)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		r.fail("sample: %v", err)
		return nil
	}
	bySize := make(map[string]samples)
	for round := 1; round <= rounds; round++ {
		for _, size := range sizes {
			if bySize[size.benchmark] == nil {
				bySize[size.benchmark] = make(samples)
			}
			err := l.benchmark(ctx, tests, size.benchmark, bySize[size.benchmark])
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				r.fail("sample: %s, round %d: %v", size.about, round, err)
			}
		}
	}
	r.section("sample", fmt.Sprintf("one look at a tree of sleeping processes, by the benchmarks of internal/process, %d rounds", rounds))
	for _, size := range sizes {
		r.reportSample(size.about, bySize[size.benchmark], size.cpu)
	}
	r.flush()
	return nil
}

// buildBenchmarks builds them as the program is built: without cgo.
func buildBenchmarks(ctx context.Context, dir string) (path string, err error) {
	path = filepath.Join(dir, "process.test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", path, "cursor-wrap/internal/process")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the benchmarks (does the bench run in its repository?): %w: %s", err, bytes.TrimSpace(out))
	}
	return path, nil
}

// benchmark looks at one tree in every way, in turn, and adds what that cost.
func (l *lab) benchmark(ctx context.Context, tests, size string, all samples) error {
	names := make([]string, len(ways))
	for i, way := range ways {
		names[i] = way.benchmark
	}
	child := command{argv: []string{tests, "-test.run=^$", "-test.benchtime=300ms",
		"-test.bench=^BenchmarkSample$/^" + size + "$/^(" + strings.Join(names, "|") + ")$"}}
	var out []byte
	_, err := l.run(ctx, []command{child}, func(f flow) error {
		return drain(f.fd, func(chunk []byte) error {
			out = append(out, chunk...)
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	for line := range strings.Lines(string(out)) {
		name, values, ok := parseBenchmark(line)
		i := slices.IndexFunc(ways, func(w struct{ name, benchmark string }) bool {
			return name == "BenchmarkSample/"+size+"/"+w.benchmark
		})
		if !ok || i < 0 {
			continue
		}
		way := ways[i].name
		if all[way] == nil {
			all[way] = make(map[string][]float64)
		}
		for unit, v := range values {
			all[way][unit] = append(all[way][unit], v)
		}
	}
	if len(all[inTree]["cpu-µs/op"]) == 0 || len(all[ofAll]["cpu-µs/op"]) == 0 {
		return fmt.Errorf("no figures in %q", out)
	}
	return nil
}

// parseBenchmark reads a line of the testing package: the name, without the
// number of processors at its end, and the values by their units.
func parseBenchmark(line string) (name string, values map[string]float64, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 4 || len(fields)%2 != 0 || !strings.HasPrefix(fields[0], "Benchmark") {
		return "", nil, false
	}
	name = fields[0]
	if at := strings.LastIndexByte(name, '-'); at >= 0 {
		if _, err := strconv.Atoi(name[at+1:]); err == nil {
			name = name[:at]
		}
	}
	values = make(map[string]float64)
	for i := 2; i < len(fields); i += 2 {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return "", nil, false
		}
		values[fields[i+1]] = v
	}
	return name, values, true
}

func (r *report) reportSample(size string, all samples, cpu *target) {
	scaled := func(way, unit string, by float64) []float64 {
		var xs []float64
		for _, x := range all.of(way, unit) {
			xs = append(xs, x*by)
		}
		return xs
	}
	row := func(what, way, unit string, xs []float64, t *target) {
		if len(xs) > 0 {
			r.value(size+": "+what, way, unit, xs, t)
		}
	}
	for _, way := range ways {
		t := cpu
		switch way.name {
		case ofMembers, ofAll:
			t = nil
		case inCgroup:
			if len(all[inCgroup]) == 0 {
				r.note("%s: left out of the samples, no cgroup of version 2 is writable here", inCgroup)
			}
		}
		row("CPU", way.name, "µs", all.of(way.name, "cpu-µs/op"), t)
	}
	for _, way := range []string{inTree, ofAll} {
		row("time", way, "µs", scaled(way, "ns/op", 1e-3), nil)
	}
	for _, way := range []string{inTree, ofAll} {
		row("allocations", way, "", all.of(way, "allocs/op"), nil)
	}
	for _, way := range []string{inTree, ofAll} {
		row("allocated", way, "KiB", scaled(way, "B/op", 1./1024), nil)
	}
	for _, way := range []string{inTree, ofAll} {
		row("of a core, once in 5 s", way, "%", scaled(way, "cpu-µs/op", 100/float64(tick.Microseconds())), nil)
	}
}
