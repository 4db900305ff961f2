package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What the first records of a log can look like.
func begun(run, cwd, workspace string) string {
	return fmt.Sprintf(`{"time":"2026-11-21T19:07:44.123Z","level":"INFO","msg":"run_start","ts":1,"run_id":%q,"pid":99999999,"cwd":%q,"workspace":%q}`+"\n", run, cwd, workspace)
}

const full = `{"time":"2026-11-21T19:08:44.123Z","level":"INFO","msg":"run_end","ts":1,"outcome":"error","exit_code":1,"message":"m","session_id":"chat","took_ms":60000,"turns":2,"restarts":1,"counts":{"lines":3,"bytes":4,"calls":5}}` + "\n"

// only is the one log of a folder.
func only(t *testing.T, dir string) Info {
	t.Helper()
	list, err := List(dir)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d logs, %v", len(list), err)
	}
	return list[0]
}

func TestListTellsHowARunCameOut(t *testing.T) {
	long := strings.Repeat("x", tailFirst)
	for _, tt := range []struct {
		name, log, flag        string
		outcome, run, where    string
		flagged, has, isBroken bool
	}{
		{name: "success", log: begun("r1", "/w", "") + good, outcome: "success", run: "r1", where: "/w", has: true},
		{name: "flagged", log: begun("r1", "/w", "/v") + failed, flag: "{}", outcome: "hang", run: "r1", where: "/v", flagged: true, has: true},
		{name: "a relative workspace", log: begun("r1", "/w", "sub/../v") + good, outcome: "success", run: "r1", where: "/w/v", has: true},
		{name: "no newline at the end", log: begun("r1", "/w", "") + strings.TrimSuffix(good, "\n"), outcome: "success", run: "r1", where: "/w", has: true},
		{name: "killed", log: begun("r1", "/w", "") + other, outcome: Killed, run: "r1", where: "/w"},
		{name: "torn at the end", log: begun("r1", "/w", "") + good[:len(good)-4], outcome: Killed, run: "r1", where: "/w"},
		{name: "an end in the middle", log: begun("r1", "/w", "") + good + other, outcome: Killed, run: "r1", where: "/w"},
		{name: "the end was lost, the flag was not", log: begun("r1", "/w", "") + other, flag: `{"outcome":"error"}`, outcome: "error", run: "r1", where: "/w", flagged: true},
		{name: "a flag that says nothing", log: begun("r1", "/w", "") + other, flag: "\x00\xff", outcome: Killed, run: "r1", where: "/w", flagged: true},
		{name: "empty", log: "", outcome: Killed},
		{name: "without a head", log: good, outcome: "success", has: true},
		{name: "something before the head", log: other + other + begun("r1", "/w", "") + good, outcome: "success", run: "r1", where: "/w", has: true},
		{name: "a torn line before the head", log: "{\"time\n" + begun("r1", "/w", "") + good, outcome: "success", run: "r1", where: "/w", has: true},
		{name: "a head that is long", log: begun("r1", "/"+long, "") + good, outcome: "success", run: "r1", where: "/" + long, has: true},
		{name: "an end that is long", log: begun("r1", "/w", "") + strings.Replace(failed, `"hang"`, `"hang","message":"`+long+`"`, 1), outcome: "hang", run: "r1", where: "/w", has: true},
		{name: "an agent that writes our words", log: begun("r1", "/w", "") + forged, outcome: Killed, run: "r1", where: "/w"},
		{name: "an agent that writes our words first", log: strings.Replace(forged, "run_end", "run_start", 1) + good, outcome: "success", has: true},
		{name: "an end of other types", log: begun("r1", "/w", "") + strings.Replace(good, `"outcome":"success"`, `"outcome":7,"exit_code":"x"`, 1), outcome: "", run: "r1", where: "/w", has: true},
		{name: "something else", log: "notes\nand more\n", outcome: Unreadable, isBroken: true},
		{name: "a line without an end", log: strings.Repeat("x", 2*headMax), outcome: Unreadable, isBroken: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "cursor-wrap-1700000000123-chat-1.jsonl")
			put(t, path, tt.log, time.Hour)
			if tt.flag != "" {
				put(t, path+flagSuffix, tt.flag, time.Hour)
			}
			i := only(t, dir)
			if got := i.Outcome(); got != tt.outcome || i.RunID() != tt.run || i.Workspace() != tt.where || i.Flagged != tt.flagged || (i.End != nil) != tt.has || (i.Err != nil) != tt.isBroken {
				t.Errorf("%s, run %q in %q, flagged %t, end %v, %v", got, i.RunID(), i.Workspace(), i.Flagged, i.End, i.Err)
			}
			if i.Path != path || i.Session != "chat-1" || i.Start.UnixMilli() != 1700000000123 || i.Size != int64(len(tt.log)) || !i.Modified.Equal(now.Add(-time.Hour)) || i.Live {
				t.Errorf("%+v", i)
			}
		})
	}
}

func TestListReadsTheEnd(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, fileName(5, noID)), begun("r1", "/w", "")+full, 0)
	i := only(t, dir)
	e := i.End
	if e == nil || e.Outcome != "error" || e.ExitCode != 1 || e.Message != "m" || e.Took != 60_000 || e.Turns != 2 || e.Restarts != 1 || e.Counts.Lines != 3 || e.Counts.Calls != 5 {
		t.Errorf("%+v", e)
	}
	if i.Session != "chat" || e.At.UTC().Format(time.TimeOnly) != "19:08:44" || i.Head.PID != 99999999 {
		t.Errorf("%+v", i)
	}
}

func TestListSeesWhoLives(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, Options{Dir: dir})
	l.Record(start, slog.LevelInfo, "run_start", slog.String("run_id", "r1"))
	l.Flush()
	if i := only(t, dir); !i.Live || i.Outcome() != Running || i.RunID() != "r1" || i.Session != "" {
		t.Errorf("%+v", i)
	}
	l.Close()
	if i := only(t, dir); i.Live || i.Outcome() != Killed {
		t.Errorf("%+v", i)
	}
}

// Several who list at the same time do not take each other for the run.
func TestListBesideOthers(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, fileName(1, "s")), begun("r1", "/w", "")+other, 0)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				if list, err := List(dir); err != nil || len(list) != 1 || list[0].Outcome() != Killed {
					t.Errorf("%v: %+v", err, list)
					return
				}
			}
		})
	}
	all.Wait()
}

// A log that gets its session's name meanwhile is no error.
func TestListWhileALogIsRenamed(t *testing.T) {
	dir := t.TempDir()
	old, young := filepath.Join(dir, fileName(1, "a")), filepath.Join(dir, fileName(1, "b"))
	put(t, old, begun("r1", "/w", "")+good, 0)
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-over:
				return
			default:
				_ = os.Rename(old, young)
				_ = os.Rename(young, old)
			}
		}
	}()
	defer func() { close(over); <-done }()
	for range 200 {
		if _, err := List(dir); err != nil {
			t.Fatal(err)
		}
	}
}

func TestListPassesOverWhatIsNoLog(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"notes.jsonl", "cursor-wrap-1.json", "cursor-wrap-1-s.jsonl.bak", ".running-x", "cursor-wrap-1-s.jsonl" + flagSuffix} {
		put(t, filepath.Join(dir, name), good, 0)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "cursor-wrap-2-fifo.jsonl"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "cursor-wrap-3-dir.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "cursor-wrap-4-link.jsonl")); err != nil {
		t.Fatal(err)
	}
	if list, err := List(dir); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	odd := filepath.Join(dir, "cursor-wrap-\x1b[2J\xff\n.jsonl")
	put(t, odd, good, time.Hour)
	if i := only(t, dir); i.Path != odd || i.Session != "" || !i.Start.Equal(now.Add(-time.Hour)) {
		t.Errorf("%+v", i)
	}
}

func TestListOfNoFolder(t *testing.T) {
	if list, err := List(filepath.Join(t.TempDir(), "none")); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	put(t, file, "", 0)
	if _, err := List(file); err == nil {
		t.Error("a file was listed")
	}
}

// runs are three runs of two sessions.
func runs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, fileName(1, "5f6c-one")), begun("aa11", "/w", "")+good, 0)
	put(t, filepath.Join(dir, fileName(2, "5f6c-one")), begun("aa22", "/w", "")+good, 0)
	put(t, filepath.Join(dir, fileName(3, "77ab-two")), begun("bb33", "/w", "")+good, 0)
	put(t, filepath.Join(dir, fileName(4, "bb-three")), other, 0)
	return dir
}

// errAny is an error of which nothing more is known.
var errAny = errors.New("any")

func TestFind(t *testing.T) {
	dir := runs(t)
	outside := filepath.Join(t.TempDir(), "run.jsonl")
	put(t, outside, begun("cc44", "/w", "")+good, 0)
	for _, tt := range []struct {
		id    string
		found string // the starts of those that FindAll finds
		one   error  // of Find
	}{
		{"aa11", "1", nil},
		{"aa2", "2", nil},
		{"b", "", new(AmbiguousError)},
		{"bb3", "3", nil},
		{"bb-", "4", nil},
		{"77ab-two", "3", nil},
		{"7", "3", nil},
		{"aa", "", new(AmbiguousError)},
		{"5f6c", "1 2", new(AmbiguousError)},
		{"5f6c-one", "1 2", new(AmbiguousError)},
		{"aa111", "", ErrUnknown},
		{"", "", ErrUnknown},
		{"A", "", ErrUnknown},
		{"..", "", ErrUnknown},
		{fileName(3, "77ab-two"), "3", nil},
		{filepath.Join(dir, fileName(2, "5f6c-one")), "2", nil},
		{outside, "run", nil},
		{outside + "x", "", fs.ErrNotExist},
		{"/", "", errAny},
	} {
		all, err := FindAll(dir, tt.id)
		var got []string
		for _, i := range all {
			name := strings.TrimPrefix(filepath.Base(i.Path), logPrefix)
			got = append(got, name[:strings.IndexAny(name, "-.")])
		}
		if strings.Join(got, " ") != tt.found || (err == nil) != (tt.found != "") {
			t.Errorf("FindAll %q: %v, %v", tt.id, got, err)
		}
		_, err = Find(dir, tt.id)
		_, ambiguous := errors.AsType[*AmbiguousError](err)
		_, want := errors.AsType[*AmbiguousError](tt.one)
		switch {
		case ambiguous != want, (err == nil) != (tt.one == nil):
			t.Errorf("Find %q: %v", tt.id, err)
		case tt.one == ErrUnknown || tt.one == fs.ErrNotExist:
			if !errors.Is(err, tt.one) {
				t.Errorf("Find %q: %v", tt.id, err)
			}
		}
	}
}

// A path in the present folder is one, too, where it is no id.
func TestFindInTheFolderThatWeAreIn(t *testing.T) {
	dir, here := runs(t), t.TempDir()
	t.Chdir(here)
	put(t, filepath.Join(here, "aa11"), "", 0)
	put(t, filepath.Join(here, "mine"), good, 0)
	put(t, filepath.Join(here, "mine.jsonl"), good, 0)
	for id, want := range map[string]string{"aa11": filepath.Join(dir, fileName(1, "5f6c-one")), "mine": "mine", "mine.jsonl": "mine.jsonl"} {
		if i, err := Find(dir, id); err != nil || i.Path != want {
			t.Errorf("%s: %q, %v", id, i.Path, err)
		}
	}
}

func TestFindDoesNotWaitForAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if i, err := Find(t.TempDir(), pipe); err != nil || i != (Info{Path: pipe}) {
		t.Errorf("%+v, %v", i, err)
	}
}

func TestAnAmbiguousErrorNamesTheNewest(t *testing.T) {
	dir := t.TempDir()
	for n := range 8 {
		put(t, filepath.Join(dir, fileName(int64(n), "s")), begun(fmt.Sprint("run", n), "/w", "")+good, 0)
	}
	_, err := Find(dir, "run")
	const want = `"run" is 8 runs: run7, run6, run5, run4, run3 and 3 more`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestAcknowledge(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, fileName(1, "s"))
	put(t, path, failed, 0)
	put(t, path+flagSuffix, "x", 0)
	if err := Acknowledge(path); err != nil || only(t, dir).Flagged {
		t.Errorf("%v, %q", err, names(t, dir))
	}
	if err := Acknowledge(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a second time: %v", err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{filepath.Base(path)}) {
		t.Errorf("left %q", got)
	}
}

// Ten thousand logs, each with the beginning and the end of a real one.
func BenchmarkList(b *testing.B) {
	dir := b.TempDir()
	log := []byte(begun("aa11", "/w", "") + strings.Repeat(other, 100) + full)
	for n := range 10_000 {
		if err := os.WriteFile(filepath.Join(dir, fileName(int64(n), "s")), log, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if list, err := List(dir); err != nil || len(list) != 10_000 {
			b.Fatal(len(list), err)
		}
	}
}

// A log of a terabyte is told from its two ends.
func TestListDoesNotReadTheMiddle(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, fileName(1, "s"))
	put(t, path, begun("r1", "/w", ""), 0)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size = 1 << 40
	if _, err := f.WriteAt([]byte("\n"+full), size); err != nil {
		t.Skip("no files with holes here:", err)
	}
	if i := only(t, dir); i.Outcome() != "error" || i.RunID() != "r1" || i.Size < size {
		t.Errorf("%+v", i)
	}
}
