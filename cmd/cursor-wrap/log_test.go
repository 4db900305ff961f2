package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestALogThatCannotBeOpenedIsAUsageErrorBeforeTheAgentStarts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{
		"the folder is a file":       file,
		"below a file":               file + "/logs",
		"no folder can be made here": "/proc/no/such/folder",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run1(t, call{agent: built.stub, args: []string{"--log-dir", dir}}).wants(64).says("--log-dir")
			if _, err := os.Stat(r.dir + "/argv"); err == nil {
				t.Error("the agent was started")
			}
			if len(r.stdout) != 0 {
				t.Errorf("stdout %q", r.stdout)
			}
		})
	}
}

func TestAFolderWithoutWritePermissionIsAUsageError(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("nothing is forbidden to root")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	run1(t, call{agent: built.stub, args: []string{"--log-dir", dir}}).wants(64).says("permission denied", "--log-dir")
}

func TestAFullDiskNeverEndsTheRun(t *testing.T) {
	t.Parallel()
	// The limit on the size of files stands for a disk that fills up while the run is under way.
	full := []string{"/bin/sh", "-c", `ulimit -f 64 && exec "$@"`, "sh"}
	r := run1(t, call{scenario: lines("init", "user", "flood 20000", "say Done.", "result"), via: full}).wants(0)
	if n := bytes.Count(r.stdout, []byte("\n")); n != 20_004 {
		t.Errorf("%d lines on stdout", n)
	}
	if n := strings.Count(r.said, "records are being lost"); n != 1 {
		t.Errorf("%d warnings: %s", n, r.said)
	}
	r.says(r.logs) // its name may be another by the end
	text, err := os.ReadFile(r.logFile())
	if err != nil {
		t.Fatal(err)
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1] // what came last was cut by the limit
	for line := range bytes.Lines(whole) {
		if !json.Valid(line) {
			t.Errorf("torn in the middle: %.200q", line)
		}
	}
	if got := len(text); got < 16<<10 {
		t.Errorf("only %d bytes of the log were kept", got)
	}
}

func TestTenRunsAtOnceShareAFolder(t *testing.T) {
	t.Parallel()
	logs := t.TempDir()
	var runs []*program
	for i := range 10 {
		c := call{scenario: lines("init", fmt.Sprintf("say run number %d", i), "touch $DIR/there", "wait-file $DIR/go", "result"),
			args: []string{"--log-dir", logs}, env: []string{fmt.Sprintf("FAKEAGENT_SESSION=session-%d", i)}}
		runs = append(runs, start(t, c))
	}
	for _, p := range runs {
		p.awaitFile("there")
	}
	for _, p := range runs {
		p.write("go", "")
	}
	for i, p := range runs {
		r := p.finish().wants(0)
		files, err := filepath.Glob(fmt.Sprintf("%s/cursor-wrap-*-session-%d.jsonl", logs, i))
		if err != nil || len(files) != 1 {
			t.Fatalf("logs of run %d: %v %v", i, files, err)
		}
		r.logs = filepath.Join(t.TempDir(), "its own")
		if err := os.Mkdir(r.logs, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(files[0], filepath.Join(r.logs, filepath.Base(files[0]))); err != nil {
			t.Fatal(err)
		}
		same(t, "replay --raw", r.replay("--raw"), r.stdout)
	}
	rest, err := os.ReadDir(logs)
	if err != nil || len(rest) != 0 {
		t.Errorf("beside the ten logs there are %v %v", rest, err)
	}
}

func TestLogsAreForTheirOwnerAlone(t *testing.T) {
	t.Parallel()
	r := run1(t, call{scenario: "no-result.txt", via: []string{"/bin/sh", "-c", `umask 0; exec "$@"`, "sh"}}).wants(1)
	for path, want := range map[string]fs.FileMode{r.logs: 0o700, r.logFile(): 0o600, r.logFile() + ".flagged": 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s: mode %o, want %o", filepath.Base(path), got, want)
		}
	}
}

func TestTheDefaultFolderIsInTheHomeFolder(t *testing.T) {
	t.Parallel()
	p := start(t, call{bare: true, args: []string{"-p", "x", "--agent-bin", built.stub}})
	p.logs = filepath.Join(p.dir, ".cursor-wrap", "logs")
	p.finish().wants(0).end()
}

func TestTheSessionsIDIsInTheLogsName(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"5f6c1c0e-7a53-4a39-8f43-7a6b1f0a9d11": "5f6c1c0e-7a53-4a39-8f43-7a6b1f0a9d11",
		"../../x":                              "",
		"a/b\\c\x01 d":                         "",
		"..":                                   "",
		strings.Repeat("long", 500):            "",
		"ünïcode":                              "",
	} {
		t.Run(id[:min(len(id), 20)], func(t *testing.T) {
			t.Parallel()
			r := run1(t, call{scenario: "good.txt", env: []string{"FAKEAGENT_SESSION=" + id}}).wants(0)
			name := filepath.Base(r.logFile())
			if want != "" && !strings.HasSuffix(name, "-"+want+".jsonl") || !strings.HasPrefix(name, "cursor-wrap-") || len(name) > 200 {
				t.Errorf("the log is called %q", name)
			}
			if strings.HasSuffix(name, "unknown.jsonl") {
				t.Errorf("the log was not renamed: %q", name)
			}
			if e := r.end(); e.SessionID != id {
				t.Errorf("session %q", e.SessionID)
			}
			entries, err := os.ReadDir(r.logs)
			if err != nil || len(entries) != 1 {
				t.Errorf("%v %v", entries, err)
			}
		})
	}
}

func TestOldLogsGoAndFlaggedOnesStayLonger(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	const success = `{"time":"2026-01-01T00:00:00.000Z","level":"INFO","msg":"run_end","ts":1767225600000,"outcome":"success","exit_code":0}` + "\n"
	for _, tt := range []struct {
		name    string
		age     time.Duration
		flagged bool
		args    []string
		stays   bool
	}{
		{name: "young", age: 6 * day, stays: true},
		{name: "old", age: 8 * day},
		{name: "old and flagged", age: 8 * day, flagged: true, stays: true},
		{name: "very old and flagged", age: 91 * day, flagged: true},
		{name: "shorter retention", age: 2 * day, args: args("--log-retention=1d")},
		{name: "shorter retention of flagged ones", age: 3 * day, flagged: true, args: args("--flagged-retention=48h")},
		{name: "kept for ever", age: 400 * day, args: args("--log-retention=0"), stays: true},
		{name: "flagged ones for ever", age: 400 * day, flagged: true, args: args("--flagged-retention=0"), stays: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			logs := t.TempDir()
			old := filepath.Join(logs, "cursor-wrap-1767225600000-old.jsonl")
			other := filepath.Join(logs, "notes.jsonl")
			when := time.Now().Add(-tt.age)
			for _, file := range []string{old, old + ".flagged", other} {
				if file == old+".flagged" && !tt.flagged {
					continue
				}
				if err := os.WriteFile(file, []byte(success), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(file, when, when); err != nil {
					t.Fatal(err)
				}
			}
			run1(t, call{agent: built.stub, args: append(tt.args, "--log-dir", logs)}).wants(0)
			for file, want := range map[string]bool{old: tt.stays, old + ".flagged": tt.stays && tt.flagged, other: true} {
				if _, err := os.Stat(file); (err == nil) != want {
					t.Errorf("%s: %v, want it there: %t", filepath.Base(file), err, want)
				}
			}
		})
	}
}

func TestARunThatDidNotSucceedIsFlagged(t *testing.T) {
	t.Parallel()
	for scenario, want := range map[string]string{"good.txt": "", "no-result.txt": "error", "is-error.txt": "error", "h04-no-output.txt": "hang"} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			r := run1(t, call{scenario: scenario, args: args("--startup-timeout=2s")})
			flag, err := os.ReadFile(r.logFile() + ".flagged")
			if want == "" && err == nil || want != "" && !strings.Contains(string(flag), `"`+want+`"`) {
				t.Errorf("flag %q %v, want %q", flag, err, want)
			}
		})
	}
}

func TestLogLevelsAndSyncs(t *testing.T) {
	t.Parallel()
	for _, sync := range []string{"always", "written", "none"} {
		t.Run(sync, func(t *testing.T) {
			t.Parallel()
			r := run1(t, call{scenario: "good.txt", args: args("--log-sync=" + sync)}).wants(0)
			same(t, "replay --raw", r.replay("--raw"), r.stdout)
		})
	}
	t.Run("info keeps no raw events", func(t *testing.T) {
		t.Parallel()
		r := run1(t, call{scenario: "good.txt", args: args("--log-level=info")}).wants(0)
		r.end()
		if n := len(r.all("raw_event")) + len(r.all("raw_part")); n != 0 {
			t.Errorf("%d raw records", n)
		}
	})
	t.Run("a success at level warn is not taken for a failure later", func(t *testing.T) {
		t.Parallel()
		r := run1(t, call{scenario: "good.txt", args: args("--log-level=warn")}).wants(0)
		old := time.Now().Add(-8 * 24 * time.Hour)
		if err := os.Chtimes(r.logFile(), old, old); err != nil {
			t.Fatal(err)
		}
		log := r.logFile()
		run1(t, call{agent: built.stub, args: []string{"--log-dir", r.logs}}).wants(0)
		if _, err := os.Stat(log + ".flagged"); err == nil {
			t.Error("it was flagged as killed")
		}
	})
}
