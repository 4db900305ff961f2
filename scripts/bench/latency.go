package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
)

var (
	writtenAboveCat = atMost(60, 20)
	alwaysLatency   = atMost(1.25, 1.05)
)

// latency is what an event waits for on its way, at a pace that no contender
// finds hard: 200 events a second of 200 bytes.
func (l *lab) latency(ctx context.Context) error {
	rounds, events := pick(l.quick, 2, 5), pick(l.quick, 150, 600)
	cs := l.contenders(direct, cat, tee, written, always, refgroup)
	l.say("latency: %d rounds of %d contenders, %d events each", rounds, len(cs), events)
	all, err := l.rounds(ctx, "latency", 1, rounds, cs, func(ctx context.Context, c contender, _ int) (v map[string]float64, err error) {
		err = l.withLogs(func() error {
			v, err = l.delay(ctx, c, events)
			return err
		})
		return v, err
	})
	if err != nil {
		return err
	}
	l.report.section("latency", fmt.Sprintf("%d events/s of %d B, %d rounds of %d events", 1e9/pace, pacedLine, rounds, events))
	l.reportLatency(cs, all)
	l.report.flush()
	return nil
}

func (l *lab) reportLatency(cs []contender, all samples) {
	r := l.report
	for _, c := range cs {
		r.value("p50", c.name, "µs", all.of(c.name, "p50"), nil)
	}
	r.ratio("p50", always, "µs", all.of(always, "p50"), refgroup, all.of(refgroup, "p50"), alwaysLatency)
	for _, c := range cs {
		if c.name == direct || c.name == cat {
			continue
		}
		var t *target
		if c.name == written {
			t = writtenAboveCat
		}
		r.value("p50 above cat", c.name, "µs", byRound(all.of(c.name, "p50"), all.of(cat, "p50"), minus), t)
	}
	for _, c := range cs {
		r.value("p99", c.name, "µs", all.of(c.name, "p99"), nil)
	}
}

// delay runs one contender behind the paced source.
func (l *lab) delay(ctx context.Context, c contender, events int) (map[string]float64, error) {
	var took []float64
	source := l.source("paced", eventsEnv+"="+strconv.Itoa(events))
	spent, err := l.run(ctx, c.pipeline(source), func(f flow) error {
		var err error
		took, err = arrivals(f.fd, events)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(took) != events {
		return nil, fmt.Errorf("%d events arrived of %d", len(took), events)
	}
	if err := l.checkLog(c, int64(len(initLine)+events*pacedLine+len(resultLine))); err != nil {
		return nil, err
	}
	l.report.outlived(c.name, spent.left)
	slices.Sort(took)
	return map[string]float64{"p50": percentile(took, 50), "p99": percentile(took, 99)}, nil
}

// arrivals reads the events and returns, in microseconds, how long each was on
// its way. An event arrives with the last byte of its line.
func arrivals(fd, expect int) ([]float64, error) {
	took := make([]float64, 0, expect)
	var rest []byte
	err := drain(fd, func(chunk []byte) error {
		now, err := monotonic() // before anything else is done with the chunk
		if err != nil {
			return err
		}
		rest = append(rest, chunk...)
		for {
			line, after, found := bytes.Cut(rest, []byte("\n"))
			if !found {
				return nil
			}
			if sent, ok := stamp(line); ok {
				took = append(took, float64(now-sent)/1e3)
			}
			rest = after
		}
	})
	return took, err
}
