package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOpenMakesPrivateFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	l := openLog(t, Options{Dir: dir})
	if err := l.Flag("hang", start); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fs.FileMode{
		dir:                   fs.ModeDir | 0o700,
		filepath.Dir(dir):     fs.ModeDir | 0o700,
		l.Path():              0o600,
		l.Path() + ".flagged": 0o600,
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
		}
	}
	if want := filepath.Join(dir, "cursor-wrap-1795288064123-unknown.jsonl"); l.Path() != want {
		t.Errorf("the log is %s, want %s", l.Path(), want)
	}
	fd := int(l.file.(*osFile).Fd())
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("the agent would inherit the log: flags %#x, %v", flags, err)
	}
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_APPEND == 0 {
		t.Errorf("not in append mode: flags %#x, %v", flags, err)
	}
}

func TestOpenErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{
		"a file in the way": {Dir: filepath.Join(file, "logs")},
		"no directory":      {},
		"unknown sync":      {Dir: t.TempDir(), Sync: "sometimes"},
	} {
		if l, err := Open(o); err == nil || !strings.HasPrefix(err.Error(), "open session log: ") || l != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(Options{Dir: filepath.Join(file, "logs")}); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("the cause is hidden: %v", err)
	}
}

func TestTenRunsStartAtOnce(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	var mu sync.Mutex
	paths := map[string]bool{}
	for range 10 {
		wg.Go(func() {
			l, err := Open(Options{Dir: dir, Start: start})
			if err != nil {
				t.Error(err)
				return
			}
			l.Record(start, 0, "spawn")
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			paths[l.Path()] = true
		})
	}
	wg.Wait()
	if len(paths) != 10 {
		t.Fatalf("%d logs for ten runs", len(paths))
	}
	for i := range 10 {
		path := filepath.Join(dir, fmt.Sprintf("cursor-wrap-%d-unknown.jsonl", start.UnixMilli()+int64(i)))
		if records, _ := readAll(t, readFile(t, path)); messages(records) != "spawn" {
			t.Errorf("%s holds %s", path, messages(records))
		}
	}
}

func TestSetSession(t *testing.T) {
	for id, want := range map[string]string{
		"e2c1-Az.09_x":              "e2c1-Az.09_x",
		"":                          "unknown",
		"../../etc/x":               ".._.._etc_x",
		"a b\nc\x00":                "a_b_c_",
		"é":                         "__",
		strings.Repeat("long", 100): strings.Repeat("long", 25),
	} {
		l := openLog(t, Options{})
		dir := filepath.Dir(l.Path())
		if err := l.SetSession(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
		if want := filepath.Join(dir, "cursor-wrap-1795288064123-"+want+".jsonl"); l.Path() != want {
			t.Errorf("%q: named %s, want %s", id, l.Path(), want)
		}
		l.Record(start, 0, "after")
		l.Close()
		if records, _ := readAll(t, readFile(t, l.Path())); messages(records) != "after" {
			t.Errorf("%q: what was recorded after the renaming is not there", id)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("%q: %d files", id, len(entries))
		}
	}
}

func TestSetSessionNeverOverwrites(t *testing.T) {
	for name, rename := range map[string]func(from, to string) error{"in one step": renameNew, "checked": renameChecked} {
		dir := t.TempDir()
		a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		for _, path := range []string{a, b} {
			if err := os.WriteFile(path, []byte(path), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := rename(a, b); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", name, err)
		}
		if string(readFile(t, b)) != b {
			t.Errorf("%s: overwritten", name)
		}
		if err := rename(a, filepath.Join(dir, "c")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	l := openLog(t, Options{})
	taken := filepath.Join(filepath.Dir(l.Path()), "cursor-wrap-1795288064123-x.jsonl")
	if err := os.WriteFile(taken, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := l.Path()
	if err := l.SetSession("x"); !errors.Is(err, fs.ErrExist) || l.Path() != before {
		t.Errorf("%v, named %s", err, l.Path())
	}
	if string(readFile(t, taken)) != "theirs" {
		t.Error("overwritten")
	}
}

func TestFlag(t *testing.T) {
	l := openLog(t, Options{})
	for _, outcome := range []string{"hang", "error"} {
		if err := l.Flag(outcome, start); err != nil {
			t.Fatal(err)
		}
	}
	before := l.Path()
	if err := l.SetSession("late"); err != nil || l.Path() != before {
		t.Errorf("a flagged log was renamed: %v, %s", err, l.Path())
	}
	want := `{"ts":1795288064123,"outcome":"hang","log":"cursor-wrap-1795288064123-unknown.jsonl"}` + "\n"
	if got := string(readFile(t, l.Path()+".flagged")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
