//go:build linux

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// tree is a shape that the tree maker knows.
type tree struct {
	name string
	root bool // needs root
	cg   bool // needs a writable cgroup v2
}

var trees = []tree{
	{name: "none"}, {name: "wide"}, {name: "deep"}, {name: "dfork"}, {name: "nohup"},
	{name: "setsid"}, {name: "daemon"}, {name: "stealth"}, {name: "nosig"}, {name: "stopped"},
	{name: "leave"}, {name: "holdpipe"}, {name: "zombies"}, {name: "ptybg"}, {name: "subreaper"},
	{name: "cloneparent"}, {name: "zleader"}, {name: "vfork"}, {name: "traced"},
	{name: "setuid", root: true}, {name: "pidns", root: true}, {name: "lastwords"},
	{name: "storm"}, {name: "stormsid"}, {name: "stormfast"}, {name: "hydra"}, {name: "hydrafast"},
	{name: "cgmove", root: true, cg: true}, {name: "nestcg", root: true, cg: true}, {name: "mixed"},
}

// endings in the order of a report. The rare ones are not in a run unless they
// are asked for.
var (
	endings = []string{"result", "hang", "INT", "TERM", "HUP", "hangup", "KILL", "TERMKILL", "KILLGUARD"}
	rare    = []string{"linger", "KILLBOTH"}
)

// oursOnly are endings that need a supervisor which judges the stream.
var oursOnly = []string{"hang", "linger"}

// cell is one run: who, what, how.
type cell struct {
	Supervisor string `json:"supervisor"`
	UID        int    `json:"uid"` // who runs supervisor and tree; -1 is us
	Tree       string `json:"tree"`
	Ending     string `json:"ending"`
	Round      int    `json:"round"`
}

// outcome is what a run left.
type outcome struct {
	cell
	Of         int      `json:"of"` // processes of the tree, the agent included
	Survivors  int      `json:"survivors"`
	Who        []string `json:"who,omitempty"`
	Zombies    int      `json:"zombies"`
	Helpers    int      `json:"helpers"`
	HelperWho  []string `json:"helper_who,omitempty"`
	Bystanders int      `json:"bystanders"`
	Cgroups    []string `json:"cgroups,omitempty"`
	DeathMS    *float64 `json:"death_ms"` // from the ending to the last death
	ExitMS     *float64 `json:"exit_ms"`  // to the supervisor's exit
	Status     string   `json:"status,omitempty"`
	Skipped    string   `json:"skipped,omitempty"`
	Failed     string   `json:"failed,omitempty"`
}

// clean reports whether the run left nothing.
func (o outcome) clean() bool {
	return o.Failed == "" && o.Survivors == 0 && o.Zombies == 0 && o.Helpers == 0 &&
		o.Bystanders == 0 && len(o.Cgroups) == 0
}

// pick are the names of a comma-separated list, in the order of the known
// ones; all of the default ones for an empty list.
func pick(list string, defaults, more []string) ([]string, error) {
	if list == "" {
		return defaults, nil
	}
	given := strings.Split(list, ",")
	known := slices.Concat(defaults, more)
	for _, name := range given {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("%q is not known; use %s", name, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(known, func(name string) bool { return !slices.Contains(given, name) }), nil
}

func treeNames() []string {
	var names []string
	for _, t := range trees {
		names = append(names, t.name)
	}
	return names
}

// lacking says what a tree needs and this run does not have.
func lacking(name string, dropped bool) string {
	i := slices.IndexFunc(trees, func(t tree) bool { return t.name == name })
	t := trees[i]
	if t.root && (dropped || os.Getuid() != 0) {
		return "needs root"
	}
	if _, _, ok := findCgroup(); t.cg && !ok {
		return "needs cgroup v2"
	}
	return ""
}
