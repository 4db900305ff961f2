package main

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// throughputTargets are shares of tee's MB/s, and the memory that a wrapper
// may need at most. Those of huge are what a line of 16 MiB, held and parsed,
// costs with room to grow.
var throughputTargets = map[string]struct{ written, always, peak *target }{
	"small": {atLeast(0.45, 0.6), atLeast(0.25, 0.4), atMost(16, 6)},
	"mix":   {atLeast(0.5, 0.9), atLeast(0.3, 0.55), atMost(16, 6)},
	"huge":  {atLeast(0.35, 0.6), atLeast(0.3, 0.45), atMost(64, 0)},
}

// alwaysOfRef is what understanding the stream may cost beside not looking.
var alwaysOfRef = atLeast(0.6, 0)

// throughput forwards one input as fast as it goes.
func (l *lab) throughput(ctx context.Context, name string) error {
	l.say("%s: writing the input", name)
	in, err := generate(name, l.quick, filepath.Join(l.dir, name))
	if err != nil {
		return err
	}
	defer os.Remove(in.path)
	if err := syncFilesystem(l.dir); err != nil {
		return err
	}
	cs := l.contenders(cat, tee, written, always, refgroup)
	rounds := pick(l.quick, 3, 11)
	if name == "huge" {
		rounds = pick(l.quick, 3, 7)
	}
	l.say("%s: a rehearsal that compares the bytes, then %d rounds of %d contenders", name, rounds, len(cs))
	all, err := l.rounds(ctx, name, 0, rounds, cs, func(ctx context.Context, c contender, round int) (v map[string]float64, err error) {
		err = l.withLogs(func() error {
			v, err = l.forward(ctx, c, in, round == 0)
			return err
		})
		return v, err
	})
	if err != nil {
		return err
	}
	l.report.section("throughput/"+name, fmt.Sprintf("%d lines, %.0f MB, %d rounds", in.lines, float64(in.bytes)/1e6, rounds))
	l.reportThroughput(name, cs, all)
	l.report.flush()
	return nil
}

func (l *lab) reportThroughput(name string, cs []contender, all samples) {
	limits := throughputTargets[name]
	r := l.report
	for _, c := range cs {
		var t *target
		switch c.name {
		case written:
			t = limits.written
		case always:
			t = limits.always
		}
		r.ratio("throughput", c.name, "MB/s", all.of(c.name, "MB/s"), tee, all.of(tee, "MB/s"), t)
	}
	r.ratio("throughput", always, "MB/s", all.of(always, "MB/s"), refgroup, all.of(refgroup, "MB/s"), alwaysOfRef)
	for _, c := range cs {
		r.ratio("CPU", c.name, "s", all.of(c.name, "cpu"), tee, all.of(tee, "cpu"), nil)
	}
	for _, c := range cs {
		var t *target
		if c.name == written || c.name == always {
			t = limits.peak
		}
		r.value("peak memory", c.name, "MiB", all.of(c.name, "peak"), t)
	}
}

// forward runs one contender over the input and checks that it did its work.
func (l *lab) forward(ctx context.Context, c contender, in input, compare bool) (map[string]float64, error) {
	if err := os.Remove(l.stats()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err // an old one would pass for this run's
	}
	source := l.source("file", inputEnv+"="+in.path, statsEnv+"="+l.stats())
	s := &counter{want: in.bytes, compare: compare}
	spent, err := l.run(ctx, c.pipeline(source), s.read)
	if err != nil {
		return nil, err
	}
	if s.bytes != in.bytes || compare && s.crc != in.crc {
		return nil, fmt.Errorf("forwarded %d bytes (checksum %08x) of %d (%08x)", s.bytes, s.crc, in.bytes, in.crc)
	}
	if err := l.checkLog(c, in.bytes); err != nil {
		return nil, err
	}
	stats, err := readStats(l.stats())
	if err != nil {
		return nil, err
	}
	if stats.pipe != 0 && stats.pipe != pipeBytes {
		l.report.note("%s gives its source a pipe of %d bytes, not of %d", c.name, stats.pipe, pipeBytes)
	}
	l.report.outlived(c.name, spent.left)
	v := map[string]float64{
		"MB/s": float64(in.bytes) / 1e6 / spent.wall.Seconds(),
		"cpu":  (spent.cpu - stats.cpu).Seconds(),
	}
	if s.peak > 0 {
		v["peak"] = float64(s.peak) / (1 << 20)
	}
	return v, nil
}

// counter is the sink: it counts what arrives and watches the contender's
// memory.
type counter struct {
	want    int64
	compare bool

	bytes int64
	crc   uint32
	peak  int64
}

// peakEvery is how often the sink looks at the contender's memory: what it
// looks at only grows, so the last look, at the last byte, is what counts. The
// others are for a contender that is quicker to leave than we are to look.
const peakEvery = 20 * time.Millisecond

func (s *counter) read(f flow) error {
	looked := time.Now()
	return drain(f.fd, func(chunk []byte) error {
		s.bytes += int64(len(chunk))
		if s.compare {
			s.crc = crc32.Update(s.crc, checksum, chunk)
		}
		if now := time.Now(); now.Sub(looked) > peakEvery || s.bytes >= s.want {
			looked = now
			s.look(f.pid)
		}
		return nil
	})
}

// look reads the peak from the process itself. The rusage of a finished child
// will not do: it holds the peak of its own children too, and of the process
// that forked it, which is the bench.
func (s *counter) look(pid int) {
	if m, ok := memoryOf(pid); ok {
		s.peak = max(s.peak, m.peak)
	}
}
