package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// patience is how long a fact may take; nothing waits for it to pass.
const patience = 40 * time.Second

const scenarios = "../../testdata/scenarios"

// What the tests run, built once.
var built struct {
	wrap, fakeagent string // the program and the scripted agent
	recorder, stub  string // agents around the scripted one, see below
	stranger        string // somebody else's agent
	silent          string // an agent that is gone at once, without a word
	sleeper         string // says a line and stays, whatever its arguments are
	dumb            string // takes long to say its version
}

// recorder is the scripted agent with its stdout recorded by somebody else than the program under
// test. The agent keeps its pid, its exit code and its stdin; tee sits in its process group and stays
// until everybody who could write is gone, so it must not heed polite signals.
const recorder = `#!/bin/sh
mkfifo "$SHIM_DIR/fifo" || exit 97
(trap '' TERM INT HUP QUIT; exec tee "$SHIM_DIR/recorded") <"$SHIM_DIR/fifo" &
exec "$SHIM_AGENT" "$@" >"$SHIM_DIR/fifo"
`

// stub writes down how it was called and succeeds.
const stub = `#!/bin/sh
if [ "$1" = --version ]; then echo "${SHIM_VERSION-2026.01.28-fd13201}"; exit 0; fi
printf '%s\0' "$@" >"$SHIM_DIR/argv"
env -0 >"$SHIM_DIR/env"
cat >"$SHIM_DIR/prompt"
echo '{"type":"system","subtype":"init","session_id":"stub","model":"Auto"}'
echo '{"type":"result","subtype":"success","duration_ms":1,"is_error":false,"result":"ok","session_id":"stub"}'
`

const stranger = `#!/bin/sh
echo "agent 1.2.3"
`

const sleeper = `#!/bin/sh
printf '%s\n' "$SHIM_SAY"
while :; do sleep 60; done
`

func TestMain(m *testing.M) {
	flag.Parse()
	// Most of the time of most tests is a wait for an agent that is silent: more of them than there
	// are cores fit side by side.
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", "8"); err != nil {
			os.Exit(complain(err))
		}
	}
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "cursor-wrap-test")
	if err != nil {
		return complain(err)
	}
	defer os.RemoveAll(dir)
	if err := build(dir); err != nil {
		return complain(err)
	}
	return m.Run()
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func build(dir string) error {
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	race := fmt.Sprintf("-race=%t", underRace)
	for _, args := range [][]string{{"build", race, "-o", dir, "."}, {"build", "-o", dir, "../fakeagent"}} {
		cmd := exec.Command("go", args...)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("go %v: %w", args, err)
		}
	}
	built.wrap, built.fakeagent = filepath.Join(dir, "cursor-wrap"), filepath.Join(dir, "fakeagent")
	// All scripts are there before the first test starts: one that is still open for writing in
	// somebody's fork cannot be executed.
	for _, script := range []struct {
		path       *string
		name, text string
	}{
		{&built.recorder, "recorder", recorder},
		{&built.stub, "stub", stub},
		{&built.stranger, "stranger", stranger},
		{&built.sleeper, "sleeper", sleeper},
		{&built.dumb, "dumb", "#!/bin/sh\n: >\"$SHIM_DIR/asked\"\nsleep 20\n"},
		{&built.silent, "silent", "#!/bin/sh\nexit 0\n"},
	} {
		*script.path = filepath.Join(dir, script.name)
		if err := os.WriteFile(*script.path, []byte(script.text), 0o755); err != nil {
			return err
		}
	}
	return nil
}
