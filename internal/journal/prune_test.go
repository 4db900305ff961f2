package journal

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const day = 24 * time.Hour

// now is when the tests prune.
var now = start

// put makes a file of a given age.
func put(t *testing.T, path, content string, age time.Duration) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// What the last records of a log can look like.
const (
	good   = `{"time":"2026-11-21T19:07:44.123Z","level":"INFO","msg":"run_end","ts":1,"outcome":"success"}` + "\n"
	failed = `{"time":"2026-11-21T19:07:44.123Z","level":"INFO","msg":"run_end","ts":1,"outcome":"hang"}` + "\n"
	other  = `{"time":"2026-11-21T19:07:44.123Z","level":"INFO","msg":"spawn","ts":1}` + "\n"
	forged = `{"time":"2026-11-21T19:07:44.123Z","level":"DEBUG","msg":"raw_event","recv_ts":1,"raw":` + `{"msg":"run_end","outcome":"success"}}` + "\n"
)

func TestPrune(t *testing.T) {
	const log, flagged = "cursor-wrap-1-s.jsonl", "cursor-wrap-1-s.jsonl.flagged"
	type files map[string]string // name -> content
	for _, tt := range []struct {
		name              string
		files             files
		age               time.Duration
		keep, keepFlagged time.Duration
		left              string
	}{
		{"old and successful", files{log: other + good}, 8 * day, 7 * day, 90 * day, ""},
		{"last newline missing", files{log: strings.TrimSuffix(good, "\n")}, 8 * day, 7 * day, 90 * day, ""},
		{"young", files{log: good}, 6 * day, 7 * day, 90 * day, log},
		{"exactly as old as allowed", files{log: good}, 7 * day, 7 * day, 90 * day, log},
		{"from the future", files{log: good}, -8 * day, 7 * day, 90 * day, log},
		{"for ever", files{log: good}, 999 * day, 0, 90 * day, log},
		{"flagged", files{log: failed, flagged: "x"}, 8 * day, 7 * day, 90 * day, log + " " + flagged},
		{"flagged though successful", files{log: good, flagged: "x"}, 8 * day, 7 * day, 90 * day, log + " " + flagged},
		{"flagged and old", files{log: failed, flagged: "x"}, 91 * day, 7 * day, 90 * day, ""},
		{"flagged and old, others for ever", files{log: failed, flagged: "x"}, 91 * day, 0, 90 * day, ""},
		{"flagged for ever", files{log: failed, flagged: "x"}, 999 * day, 7 * day, 0, log + " " + flagged},
		{"killed", files{log: other}, 8 * day, 7 * day, 90 * day, log + " " + flagged},
		{"failed and acknowledged", files{log: failed}, 8 * day, 7 * day, 90 * day, ""},
		{"end in the middle", files{log: good + other}, 8 * day, 7 * day, 90 * day, log + " " + flagged},
		{"torn end", files{log: good[:len(good)-3]}, 8 * day, 7 * day, 90 * day, log + " " + flagged},
		{"an agent that writes our words", files{log: forged}, 8 * day, 7 * day, 90 * day, log + " " + flagged},
		{"empty", files{log: ""}, 8 * day, 7 * day, 90 * day, log + " " + flagged},
		{"killed, young", files{log: other}, 6 * day, 7 * day, 90 * day, log},
		{"killed and old", files{log: other}, 91 * day, 7 * day, 90 * day, ""},
		{"killed, flagged for ever", files{log: other}, 999 * day, 7 * day, 0, log + " " + flagged},
		{"end behind much", files{log: strings.Repeat(other, 9000) + good}, 8 * day, 7 * day, 90 * day, ""},
		{"orphaned flag", files{flagged: "x"}, 8 * day, 7 * day, 90 * day, flagged},
		{"orphaned flag, old", files{flagged: "x"}, 91 * day, 7 * day, 90 * day, ""},
		{"orphaned flag for ever", files{flagged: "x"}, 999 * day, 7 * day, 0, flagged},
		{"other names", files{"notes.jsonl": good, "cursor-wrap-1.json": good, "cursor-wrap-1-s.jsonl.bak": good, "x.flagged": "", "cursor-wrap-x.flagged": ""},
			999 * day, 7 * day, 90 * day, "cursor-wrap-1-s.jsonl.bak cursor-wrap-1.json cursor-wrap-x.flagged notes.jsonl x.flagged"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			var gone []string
			for name, content := range tt.files {
				put(t, filepath.Join(dir, name), content, tt.age)
				if !slices.Contains(strings.Fields(tt.left), name) {
					gone = append(gone, filepath.Join(dir, name))
				}
			}
			removed, err := Prune(dir, now, tt.keep, tt.keepFlagged)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(names(t, dir), " "); got != tt.left {
				t.Errorf("left %q, want %q", got, tt.left)
			}
			slices.Sort(gone)
			slices.Sort(removed)
			if !slices.Equal(removed, gone) {
				t.Errorf("said that %q were removed, want %q", removed, gone)
			}
		})
	}
}

// The log's age counts, not its flag's: a flag may be set much later, and one
// whose log is there is no orphan.
func TestPruneGoesByTheLogsAge(t *testing.T) {
	for _, tt := range []struct {
		log, flag time.Duration // ages
		left      int
	}{
		{91 * day, day, 0},
		{day, 91 * day, 2},
	} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, fileName(1, "s")), failed, tt.log)
		put(t, filepath.Join(dir, fileName(1, "s")+flagSuffix), "x", tt.flag)
		if _, err := Prune(dir, now, 7*day, 90*day); err != nil || len(names(t, dir)) != tt.left {
			t.Errorf("log %v, flag %v: left %q, %v", tt.log, tt.flag, names(t, dir), err)
		}
	}
}

func TestPruneSparesWhatIsNoPlainFile(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "cursor-wrap-1-s.jsonl")
	put(t, outside, good, 999*day)
	if err := os.Symlink(outside, filepath.Join(dir, "cursor-wrap-1-link.jsonl")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "cursor-wrap-1-dir.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(999 * day) // the age of a link and of a directory is the real one
	if removed, err := Prune(dir, later, day, day); err != nil || len(removed) != 0 {
		t.Errorf("removed %q, %v", removed, err)
	}
	if got := len(names(t, dir)); got != 2 {
		t.Errorf("%d files left", got)
	}
	readFile(t, outside)
}

// A run of months is alive, however old its log looks.
func TestPruneSparesTheLiving(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, Options{Dir: dir})
	l.Record(start, 0, "run_end")
	l.Flush()
	if err := l.SetSession("s"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(l.Path(), now.Add(-999*day), now.Add(-999*day)); err != nil {
		t.Fatal(err)
	}
	if removed, err := Prune(dir, now, day, day); err != nil || len(removed) != 0 {
		t.Fatalf("removed %q, %v", removed, err)
	}
	l.Close()
	if err := os.Chtimes(l.Path(), now.Add(-999*day), now.Add(-999*day)); err != nil {
		t.Fatal(err)
	}
	if removed, err := Prune(dir, now, day, day); err != nil || len(removed) != 1 {
		t.Fatalf("after its end: removed %q, %v", removed, err)
	}
}

func TestPruneWithoutADirectory(t *testing.T) {
	if removed, err := Prune(filepath.Join(t.TempDir(), "none"), now, day, day); err != nil || removed != nil {
		t.Errorf("removed %q, %v", removed, err)
	}
}

// Several wrappers start at once and all of them prune.
func TestPruneBesideOthers(t *testing.T) {
	dir := t.TempDir()
	for i := range 200 {
		put(t, filepath.Join(dir, fileName(int64(i), "s")), good, 8*day)
	}
	type result struct {
		removed []string
		err     error
	}
	results := make(chan result)
	for range 8 {
		go func() {
			removed, err := Prune(dir, now, 7*day, 90*day)
			results <- result{removed, err}
		}()
	}
	total := 0
	for range 8 {
		r := <-results
		total += len(r.removed)
		if r.err != nil {
			t.Error(r.err)
		}
	}
	if left := names(t, dir); total != 200-len(left) || len(left) > 0 {
		t.Errorf("%d removed, left %q", total, left)
	}
}
