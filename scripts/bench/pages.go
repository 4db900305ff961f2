package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// pageOpens is how long a browser may take to open the page of a log of a
// hundred thousand events, in seconds.
var pageOpens = atMost(2, 0)

// pages is what it takes to make the report of a long run, and to open it.
func (l *lab) pages(ctx context.Context) error {
	steps := pick(l.quick, 500, 5_000)
	rounds := pick(l.quick, 3, 5)
	return l.withLogs(func() error {
		log, err := l.longLog(ctx, steps)
		if err != nil {
			return err
		}
		page := filepath.Join(l.dir, "report.html")
		defer os.Remove(page)
		l.say("report: %d rounds", rounds)
		all := map[string][]float64{}
		for range rounds {
			if err := l.openPage(ctx, log, page, all); err != nil {
				return err
			}
		}
		r := l.report
		r.section("report", fmt.Sprintf("the page of a log of %d events, %d rounds", 20*steps, rounds))
		r.value("log", "", "MB", all["log"], nil)
		r.value("report LOG", "", "s", all["make"], nil)
		r.value("page", "", "MB", all["page"], nil)
		if len(all["open"]) > 0 {
			r.value("headless Chromium to the whole page, over an empty one", "", "s", all["open"], pageOpens)
		} else {
			r.note("chromium: not installed, or it does not start")
		}
		r.flush()
		return nil
	})
}

// longLog is the session log of a run of so many steps, 20 events each.
func (l *lab) longLog(ctx context.Context, steps int) (path string, err error) {
	l.say("report: writing a log of %d events", 20*steps)
	stream := filepath.Join(l.dir, "events")
	if _, err := generateWith(stream, func(s *script) { s.steps(steps) }); err != nil {
		return "", err
	}
	defer os.Remove(stream)
	agent := filepath.Join(l.dir, "events-agent")
	if err := os.WriteFile(agent, []byte("#!/bin/sh\nexec cat "+stream+"\n"), 0o755); err != nil {
		return "", err
	}
	argv := l.wrapArgv(agent, "--log-sync", "none")
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Dir, c.Env, c.Stdout = l.dir, l.environ(), io.Discard
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("make a log: %w", err)
	}
	logs, err := filepath.Glob(filepath.Join(l.logDir(), "*.jsonl"))
	if err != nil || len(logs) != 1 {
		return "", fmt.Errorf("make a log: there are %d, %w", len(logs), err)
	}
	return logs[0], nil
}

// openPage makes the page once and opens it.
func (l *lab) openPage(ctx context.Context, log, page string, all map[string][]float64) error {
	add := func(what string, x float64) { all[what] = append(all[what], x) }
	began := time.Now()
	if out, err := exec.CommandContext(ctx, l.wrap, "report", "-o", page, log).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	add("make", time.Since(began).Seconds())
	for what, path := range map[string]string{"log": log, "page": page} {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		add(what, float64(info.Size())/1e6)
	}
	blank, err := l.browse(ctx, "about:blank")
	if err != nil {
		return ctx.Err() // without a browser the rest still says something
	}
	whole, err := l.browse(ctx, "file://"+page)
	if err != nil {
		return err
	}
	add("open", (whole - blank).Seconds())
	return nil
}

// browse opens a page in a browser without a window, until it is all there.
func (l *lab) browse(ctx context.Context, url string) (time.Duration, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if _, err := exec.LookPath(name); err != nil {
			continue
		}
		profile, err := os.MkdirTemp(l.dir, "profile-")
		if err != nil {
			return 0, err
		}
		defer os.RemoveAll(profile)
		args := []string{"--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
			"--disable-sync", "--user-data-dir=" + profile, "--dump-dom", url}
		if os.Geteuid() == 0 {
			args = append([]string{"--no-sandbox"}, args...)
		}
		c := exec.CommandContext(ctx, name, args...)
		c.Stdout = io.Discard
		began := time.Now()
		err = c.Run()
		took := time.Since(began)
		if _, rerr := reapRest(5 * time.Second); rerr != nil && err == nil { // its helpers are orphans, and ours
			err = rerr
		}
		return took, err
	}
	return 0, errors.New("no browser")
}
