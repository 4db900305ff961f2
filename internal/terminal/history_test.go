package terminal

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

func openTestHistory(t *testing.T, file string, most int) *history {
	t.Helper()
	return openHistory(file, most, func(msg string) { t.Error(msg) })
}

func TestHistoryIsKept(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state", "history", "x.jsonl")
	h := openTestHistory(t, file, 0)
	for _, entry := range []string{"one", "two\nlines <&>", "two\nlines <&>", "three"} {
		if err := h.add(entry); err != nil {
			t.Fatal(err)
		}
	}
	again := openTestHistory(t, file, 0)
	if !slices.Equal(again.entries, []string{"one", "two\nlines <&>", "three"}) || again.entry(1) != "three" {
		t.Errorf("%q", again.entries)
	}
	for name, mode := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.jsonl")
	h := openTestHistory(t, file, 10)
	for i := range 25 {
		if err := h.add(fmt.Sprint("entry ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if got := openTestHistory(t, file, 1000).entries; len(got) != 10 || got[9] != "entry 24" {
		t.Errorf("%q", got)
	}
	for i := range 30 {
		if err := h.add(fmt.Sprint(i) + strings.Repeat("x", entryBytes/3)); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.add(strings.Repeat("y", entryBytes)); err != nil || h.entry(1)[0] != 'y' {
		t.Errorf("too long for the file, not for the session: %v", err)
	}
	if info, err := os.Stat(file); err != nil || info.Size() > historyBytes {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
}

func TestHistoryOfConcurrentSessions(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.jsonl")
	var all sync.WaitGroup
	for s := range 8 {
		all.Go(func() {
			h := openTestHistory(t, file, 200) // the last ones find it full
			for i := range 40 {
				if err := h.add(fmt.Sprintf("%d/%d", s, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got := openTestHistory(t, file, 1000).entries
	slices.Sort(got)
	if n := len(slices.Compact(got)); n != 200 {
		t.Errorf("%d entries", n)
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".history-*"))
	if len(left) > 0 {
		t.Error("left behind:", left)
	}
}

func TestHistorySurvivesACutLine(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.jsonl")
	if err := os.WriteFile(file, []byte("\"one\"\n\"cut o"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := openTestHistory(t, file, 0).add("two"); err != nil {
		t.Fatal(err)
	}
	if got := openTestHistory(t, file, 0).entries; !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("%q", got)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Error("others can read it", err)
	}
}

func TestHistoryFileGoesByThePhysicalFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	a, b, c := HistoryFile("/s", dir), HistoryFile("/s", link+"/."), HistoryFile("/s", filepath.Dir(dir))
	if a != b || a == c || filepath.Dir(a) != "/s/history" {
		t.Error(a, b, c)
	}
}
