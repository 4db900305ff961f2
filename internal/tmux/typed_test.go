package tmux

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cursor-wrap/internal/registry"
)

// shellsHere are shells as a person has them, without their settings.
var shellsHere = map[string][]string{
	"bash": {"bash", "--norc", "-i"}, "dash": {"dash", "-i"}, "zsh": {"zsh", "-f", "-i"}, "fish": {"fish", "--no-config", "-i"},
	"tcsh": {"tcsh", "-f"}, "ksh": {"ksh", "-i"}, "mksh": {"mksh", "-i"}, "busybox": {"busybox", "ash", "-i"},
}

func (r *rig) screen(name string) string {
	return r.tmux("capture-pane", "-p", "-J", "-t", r.pane(name))
}

// shell makes a session with an interactive shell that takes commands, in a
// state directory that is hard to spell.
func (r *rig) shell(words []string) {
	r.Helper()
	r.dir = filepath.Join(r.dir, `it's "$HOME" \! `+"`x`"+` ü;`)
	r.session("s", words...)
	r.does("echo begun")
}

// does has the shell run a command to its end.
func (r *rig) does(command string) {
	r.Helper()
	mark := filepath.Join(filepath.Dir(r.dir), "done")
	_ = os.Remove(mark)
	r.types("s", "sh -c '"+command+"; code=$?; touch "+mark+"; exit $code'")
	r.exists(mark)
	r.runs("s", 0)
}

func TestTheShellIsAskedForAnExitStatus(t *testing.T) {
	t.Parallel()
	for name, words := range shellsHere {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(words[0]); err != nil {
				t.Skip("no such shell here")
			}
			r := newRig(t)
			r.shell(words)
			ask := Options{CaptureExit: true}
			r.does("(exit 3)")
			before := r.screen("s")
			r.looks("s", Options{}).is(t, registry.Completed, childless, unknown)
			if now := r.screen("s"); now != before {
				t.Errorf("something was typed unasked: %s", now)
			}
			r.looks("s", ask).is(t, registry.Failed, childless, 3)
			r.looks("s", ask).is(t, registry.Failed, childless, 3)
			r.looks("s", Options{}).is(t, registry.Failed, childless, 3)
			if n := strings.Count(r.screen("s"), "exit_status"); n != 1 {
				t.Errorf("it was asked %d times: %s", n, r.screen("s"))
			}
			r.types("s", "sleep 1000")
			r.runs("s", 1)
			r.looks("s", ask).is(t, registry.Idle, unchanged, unknown)
			r.interrupts("s")
			r.does("true")
			r.looks("s", ask).is(t, registry.Completed, childless, 0)
		})
	}
}

// What a person has typed and not sent is not sent by us.
func TestHalfACommandIsNotSent(t *testing.T) {
	t.Parallel()
	for name, words := range shellsHere {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(words[0]); err != nil {
				t.Skip("no such shell here")
			}
			r := newRig(t)
			trap := filepath.Join(r.dir, "trap")
			r.shell(words)
			r.does("(exit 4)")
			r.tmux("send-keys", "-t", r.pane("s"), "-l", "touch "+trap)
			r.shows("s", "touch "+trap[:20])
			r.looks("s", Options{CaptureExit: true}).is(t, registry.Failed, childless, 4)
			if _, err := os.Stat(trap); err == nil {
				t.Error("it was sent")
			}
		})
	}
}

// Who does not wait for commands is not asked.
func TestOnlyAShellAtItsPromptIsAsked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	file := filepath.Join(r.dir, "read")
	r.session("script", "/bin/sh", "-c", "echo ready; read x; echo $x >"+file+"; sleep 1000")
	r.shows("script", "ready")
	l := r.looks("script", Options{CaptureExit: true})
	l.is(t, registry.Completed, childless, unknown)
	if !strings.Contains(l.Note, "script") {
		t.Errorf("note %q", l.Note)
	}
	r.session("mode", "/bin/sh", "-i")
	r.shows("mode", "$")
	r.tmux("copy-mode", "-t", r.pane("mode"))
	if l := r.looks("mode", Options{CaptureExit: true}); l.Exit != nil || !strings.Contains(l.Note, "copy mode") {
		t.Errorf("%+v", l)
	}
	r.tmux("send-keys", "-t", r.pane("mode"), "-X", "cancel", then, "set-option", "-w", "-t", r.pane("mode"), "synchronize-panes", "on")
	if l := r.looks("mode", Options{CaptureExit: true}); l.Exit != nil || !strings.Contains(l.Note, "alone") {
		t.Errorf("%+v", l)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a script was typed to")
	}
}

func TestWhoTakesCommands(t *testing.T) {
	for line, takes := range map[string]bool{
		"sh": true, "-zsh": true, "bash --login": true, "bash -il": true, "bash --norc -i": true, "bash --rcfile x -i": true, "fish": true,
		"sh x.sh": false, "sh -c exit": false, "bash -lc exit": false, "bash -ic exit": false, "bash --norc x.sh": false, "": false,
	} {
		if interactive(strings.Fields(line)) != takes {
			t.Errorf("%q", line)
		}
	}
}
