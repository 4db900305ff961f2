//go:build linux

package main

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

const header = "tree        ending      of left zomb help byst  cgrp  death ms   exit ms  status"

// line is an outcome for people.
func line(o outcome) string {
	name := fmt.Sprintf("%-11s %-9s", o.Tree, o.Ending)
	switch {
	case o.Skipped != "":
		return name + "   – " + o.Skipped
	case o.Failed != "":
		return name + "   FAILED " + short(o.Failed)
	}
	text := fmt.Sprintf("%s %4d %4d %4d %4d %4d %5d %9s %9s  %s", name, o.Of, o.Survivors, o.Zombies,
		o.Helpers, o.Bystanders, len(o.Cgroups), ms(o.DeathMS), ms(o.ExitMS), o.Status)
	return strings.TrimSpace(text + "  " + few(slices.Concat(o.Who, o.HelperWho, o.Cgroups)))
}

// short is the beginning of a text.
func short(text string) string {
	const enough = 160
	if runes := []rune(text); len(runes) > enough {
		return string(runes[:enough]) + "…"
	}
	return text
}

// few are the first of a list.
func few(list []string) string {
	const enough = 4
	if len(list) > enough {
		return strings.Join(list[:enough], ", ") + ", …"
	}
	return strings.Join(list, ", ")
}

func ms(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.1f", *v)
}

// allClean is the verdict on a supervisor.
func allClean(outcomes []outcome) bool {
	for _, o := range outcomes {
		if o.Skipped == "" && !o.clean() {
			return false
		}
	}
	return true
}

// tally adds up outcomes.
type tally struct {
	runs, clean, skipped, failed                     int
	survivors, zombies, helpers, bystanders, cgroups int
	deaths                                           []float64
}

func count(outcomes []outcome) tally {
	var t tally
	for _, o := range outcomes {
		switch {
		case o.Skipped != "":
			t.skipped++
			continue
		case o.Failed != "":
			t.failed++
		}
		t.runs++
		if o.clean() {
			t.clean++
		}
		t.survivors += o.Survivors
		t.zombies += o.Zombies
		t.helpers += o.Helpers
		t.bystanders += o.Bystanders
		t.cgroups += len(o.Cgroups)
		// A hang has no moment of its own: the wrapper looks now and then.
		if o.DeathMS != nil && o.Ending != "hang" {
			t.deaths = append(t.deaths, *o.DeathMS)
		}
	}
	slices.Sort(t.deaths)
	return t
}

// quantile is of sorted numbers.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func summary(outcomes []outcome) string {
	t := count(outcomes)
	text := fmt.Sprintf("%d of %d runs clean: %d survivors, %d zombies, %d helpers, %d bystanders, %d cgroups; "+
		"last death after %.1f ms median, %.1f p95, %.1f max", t.clean, t.runs, t.survivors, t.zombies, t.helpers,
		t.bystanders, t.cgroups, quantile(t.deaths, 0.5), quantile(t.deaths, 0.95), quantile(t.deaths, 1))
	if t.failed > 0 {
		text += fmt.Sprintf("; %d failed", t.failed)
	}
	if t.skipped > 0 {
		text += fmt.Sprintf("; %d left out", t.skipped)
	}
	return text
}

// peers are the supervisors that the table compares with, where installed.
func peers() []supervisor {
	var found []supervisor
	for _, line := range []string{"timeout -k 1 60 {}", "tini -s -g -- {}", "dumb-init -- {}"} {
		if _, err := exec.LookPath(strings.Fields(line)[0]); err != nil {
			continue
		}
		if s, err := parseSupervisor(line); err == nil {
			found = append(found, s)
		}
	}
	return found
}

// markdown is the table of the README: a row an ending, a column a supervisor,
// in each the trees of which nobody was left alive, and who was of the others.
func markdown(outcomes []outcome, bound time.Duration) string {
	var names, ends []string
	cells := map[[2]string][]outcome{}
	for _, o := range outcomes {
		if !slices.Contains(names, o.Supervisor) {
			names = append(names, o.Supervisor)
		}
		if !slices.Contains(ends, o.Ending) {
			ends = append(ends, o.Ending)
		}
		key := [2]string{o.Ending, o.Supervisor}
		cells[key] = append(cells[key], o)
	}
	var b strings.Builder
	b.WriteString("| ending |")
	for _, name := range names {
		fmt.Fprintf(&b, " `%s` |", name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(names)) + "\n")
	for _, e := range ends {
		fmt.Fprintf(&b, "| %s |", e)
		for _, name := range names {
			fmt.Fprintf(&b, " %s |", survived(cells[[2]string{e, name}]))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "\nTrees of which nobody is alive %s after the supervisor's end, and the processes alive of the others.\n", bound)
	return b.String()
}

// survived is a cell of the table.
func survived(outcomes []outcome) string {
	none, runs, alive := 0, 0, 0
	for _, o := range outcomes {
		if o.Skipped != "" || o.Failed != "" {
			continue
		}
		runs++
		alive += o.Survivors
		if o.Survivors == 0 {
			none++
		}
	}
	switch {
	case runs == 0:
		return "–"
	case alive == 0:
		return fmt.Sprintf("**%d of %d**", none, runs)
	}
	return fmt.Sprintf("%d of %d, %d alive", none, runs, alive)
}
