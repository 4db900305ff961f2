package journal

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"cursor-wrap/internal/events"
)

// The disk is full after every possible byte of a batch, then has room again:
// what is there, what is missing and what is said about it add up.
func TestTornAtEveryByte(t *testing.T) {
	fill := func(l *Log) {
		l.Begin(start)
		l.Line([]byte(`{"type":"thinking"}`), "\n", events.AsJSON)
		l.Line([]byte(`{"b":"`+strings.Repeat("x", copyMax)+`"}`), "\r\n", events.AsJSON)
		l.Line([]byte(`text "}`), "\n", events.AsText)
		l.Commit()
	}
	whole := newMemFile()
	fill(memLog(t, whole, Options{Sync: None, Level: -4}))
	size := len(whole.bytes())

	for room := range size {
		if room > 300 && room < size-300 {
			continue
		}
		f := newMemFile()
		f.room = room
		var warned warnings
		l := memLog(t, f, Options{Sync: None, Level: -4, Warn: warned.add})
		fill(l) // torn
		torn := len(f.bytes())
		fill(l) // refused
		f.grow(40)
		fill(l) // torn inside the notice about the gap
		f.grow(-1)
		fill(l)
		l.Close()

		data := f.bytes()
		if bytes.Contains(data, []byte("\n\n")) || data[0] == '\n' {
			t.Fatalf("room %d: an empty line", room)
		}
		records, _ := readAll(t, data)
		kept := bytes.Count(data[:torn], []byte{'\n'})
		if !bytes.HasSuffix(data[:torn], []byte{'\n'}) && data[torn] == '\n' && torn > 0 && strings.HasSuffix(string(data[:torn]), "}") {
			// Only the newline was lost: the record reads well, though it was counted.
			if recs, bad := readAll(t, data[:torn]); bad == 0 {
				kept = len(recs)
			}
		}
		var want []string
		for range kept {
			want = append(want, rawEvent)
		}
		want = append(want, logGap, rawEvent, rawEvent, rawEvent)
		if got := messages(records); got != strings.Join(want, " ") {
			t.Fatalf("room %d: got %s, want %s\n%.3000s", room, got, want, data)
		}
		lost, lostBytes := l.Lost()
		counted := bytes.Count(data[:torn], []byte{'\n'})
		if want := int64(9 - counted); lost != want {
			t.Fatalf("room %d: %d lost, want %d", room, lost, want)
		}
		if want := int64(3*size - (bytes.LastIndexByte(data[:torn], '\n') + 1)); lostBytes != want {
			t.Fatalf("room %d: %d bytes lost, want %d", room, lostBytes, want)
		}
		gap := fmt.Sprintf(`"records":%d,"raw_records":%d,"bytes":%d,"cause":"no space left on device"`, lost, lost, lostBytes)
		if !bytes.Contains(data, []byte(gap)) {
			t.Fatalf("room %d: %s not in\n%.3000s", room, gap, data)
		}
		if _, err := WriteRaw(new(bytes.Buffer), bytes.NewReader(data)); !errors.Is(err, ErrIncomplete) {
			t.Fatalf("room %d: WriteRaw: %v", room, err)
		}
		if got := warned.all(); len(got) != 1 || got[0] != "session log /logs/test.jsonl: no space left on device; the run goes on, records are being lost" {
			t.Fatalf("room %d: warned %q", room, got)
		}
	}
}

// The notice tells lines from decisions, and a slow disk from a full one.
func TestGapSaysWhatAndWhy(t *testing.T) {
	f := newMemFile()
	f.room = 0
	l := memLog(t, f, Options{Sync: None, Level: -4})
	l.Record(start, 0, "spawn")
	l.Flush()
	f.grow(-1)
	feed(l, []byte("{}\n"), nil)
	l.ioMu.Lock() // the disk does not answer
	for lost := int64(1); lost == 1; lost, _ = l.Lost() {
		l.Record(start, 0, "decision", slog.String("text", strings.Repeat("x", 1000)))
	}
	l.ioMu.Unlock()
	l.Close()
	var gaps []string
	records, _ := readAll(t, f.bytes())
	for _, r := range records {
		if r.Msg == logGap {
			gaps = append(gaps, string(r.Fields))
		}
	}
	if len(gaps) != 2 || !strings.Contains(gaps[0], `"records":1,"raw_records":0,`) || !strings.Contains(gaps[0], "no space left") ||
		!strings.Contains(gaps[1], `"records":1,"raw_records":0,`) || !strings.Contains(gaps[1], errSlow.Error()) {
		t.Errorf("the gaps are %s", gaps)
	}
	var back bytes.Buffer
	if _, err := WriteRaw(&back, bytes.NewReader(f.bytes())); err != nil || back.String() != "{}\n" {
		t.Errorf("no line was lost, but: %v, %q", err, back.String())
	}
}

// One attempt a Commit, however many lines it has.
func TestFailingDiskIsTriedOnceACommit(t *testing.T) {
	f := newMemFile()
	f.room = 0
	l := memLog(t, f, Options{Level: -4})
	for range 3 {
		l.Begin(start)
		for range 100 {
			l.Line([]byte("{}"), "\n", events.AsJSON)
		}
		l.Commit()
	}
	if f.writes != 3 || f.syncs != 0 {
		t.Errorf("%d writes and %d syncs for 3 commits", f.writes, f.syncs)
	}
	if n, _ := l.Lost(); n != 300 {
		t.Errorf("%d lost", n)
	}
}

func TestFullDevice(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	var warned warnings
	l := memLog(t, &osFile{full}, Options{Level: -4, Warn: warned.add})
	feed(l, []byte("{}\nx\n"), []byte{4, 4})
	l.Close()
	if got := warned.all(); len(got) != 1 || !strings.Contains(got[0], "no space left on device") {
		t.Errorf("warned %q", got)
	}
	if n, size := l.Lost(); n != 2 || size == 0 {
		t.Errorf("lost %d, %d bytes", n, size)
	}
}

// sizeLimitEnv makes the test binary the helper of TestFileSizeLimit.
const sizeLimitEnv = "JOURNAL_TEST_SIZE_LIMIT_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(sizeLimitEnv); dir != "" {
		os.Exit(sizeLimitHelper(dir))
	}
	os.Exit(m.Run())
}

// sizeLimitHelper writes more than the kernel lets it, then may write again.
func sizeLimitHelper(dir string) int {
	l, err := Open(Options{Dir: dir, Start: start, Level: -4, Warn: func(msg string) { fmt.Println(msg) }})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		fmt.Println(err)
		return 1
	}
	before := limit.Cur
	set := func(n uint64) {
		limit.Cur = n
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
			fmt.Println(err)
		}
	}
	line := []byte(`{"text":"` + strings.Repeat("x", 1000) + `"}`)
	commit := func() {
		l.Begin(start)
		for range 10 {
			l.Line(line, "\n", events.AsJSON)
		}
		l.Commit()
	}
	set(5001)
	commit()
	commit()
	set(before)
	commit()
	l.Record(start, 0, "run_end")
	n, size := l.Lost()
	fmt.Println("lost", n, size > 0)
	if err := l.Close(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(l.Path())
	return 0
}

// A real failure of a real file, and the recovery from it.
func TestFileSizeLimit(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), sizeLimitEnv+"="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 3 || !strings.HasSuffix(lines[0], ": file too large; the run goes on, records are being lost") || lines[1] != "lost 16 true" {
		t.Fatalf("the helper said\n%s", out)
	}
	data := readFile(t, lines[2])
	records, torn := readAll(t, data)
	want := strings.Repeat("raw_event ", 4) + "log_gap" + strings.Repeat(" raw_event", 10) + " run_end"
	if got := messages(records); got != want || torn != 1 {
		t.Errorf("%d torn, got %s", torn, got)
	}
	if data[5001] != '\n' {
		t.Errorf("the record after the torn one is glued to it: %q", data[4990:5020])
	}
}
