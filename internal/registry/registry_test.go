package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func ids(list []Entry) []string {
	names := []string{}
	for _, e := range list {
		names = append(names, e.RunID)
	}
	return names
}

func expect(t *testing.T, what string, got []Entry, err error, want ...string) {
	t.Helper()
	if err != nil || !slices.Equal(ids(got), append([]string{}, want...)) {
		t.Errorf("%s: %v, %v; want %v", what, ids(got), err, want)
	}
}

func TestRegister(t *testing.T) {
	dir := filepath.Join(shortDir(t), "a", "state")
	r := register1(t, dir, self("3f2a"))
	folder := filepath.Join(dir, "run", "3f2a")
	for path, want := range map[string]fs.FileMode{
		dir: 0o700, filepath.Dir(folder): 0o700, folder: 0o700, folder + "/run.json": 0o600, folder + "/lock": 0o600,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want mode %o", path, info, err, want)
		}
	}
	live, err := List(dir)
	expect(t, "list", live, err, "3f2a")
	want, _ := json.Marshal(r.Entry())
	if got, _ := json.Marshal(live[0]); string(got) != string(want) || live[0].Socket != folder+"/socket" {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if _, err := Register(dir, self("3f2a")); err == nil || !strings.Contains(err.Error(), "registered already") {
		t.Errorf("the same id again: %v", err)
	}
	r.Close(Ending{})
	if left, err := os.ReadDir(filepath.Join(dir, "run")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := r.Update(func(*Entry) {}); err != nil {
		t.Error(err)
	}
	r.Close(Ending{})
	live, err = List(dir)
	expect(t, "after the end", live, err)
}

func TestNil(t *testing.T) {
	var r *Run
	if err := errors.Join(r.Update(func(*Entry) { t.Error("called") }), r.Serve(&fake{})); err != nil {
		t.Error(err)
	}
	r.Close(Ending{})
	if e := r.Entry(); e.RunID != "" {
		t.Error(e)
	}
}

// TestUpdate: whoever reads meanwhile sees one entry or the other, whole.
func TestUpdate(t *testing.T) {
	dir := shortDir(t)
	r := register1(t, dir, self("3f2a"))
	long := strings.Repeat("x", 100_000)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 50 {
				if err := r.Update(func(e *Entry) { e.Session, e.Prompt, e.RunID = fmt.Sprint(i, n), long[:n*1000], "other" }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for reads := 0; ; reads++ {
		live, err := List(dir)
		if expect(t, "while it is written", live, err, "3f2a"); t.Failed() {
			t.FailNow()
		}
		select {
		case <-done:
			if live, _ := List(dir); live[0].Session != r.Entry().Session || live[0].Session == "" {
				t.Errorf("%q stands there, and it is %q", live[0].Session, r.Entry().Session)
			}
			return
		default:
		}
	}
}

// write puts a record there as a run would leave it that is dead.
func write(t *testing.T, dir, id string, text []byte) {
	t.Helper()
	folder := filepath.Join(dir, "run", id)
	if err := errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(folder+"/lock", nil, 0o600), os.WriteFile(folder+"/run.json", text, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func writeEntry(t *testing.T, dir string, e Entry) {
	t.Helper()
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, e.RunID, text)
}

// aged makes a folder look older than any that is half made.
func aged(t *testing.T, dir, id string) {
	t.Helper()
	then := time.Now().Add(-halfMadeFor - time.Second)
	if err := os.Chtimes(filepath.Join(dir, "run", id), then, then); err != nil {
		t.Fatal(err)
	}
}

func there(dir, id string) bool {
	_, err := os.Lstat(filepath.Join(dir, "run", id))
	return err == nil
}

func TestDeadOrAlive(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*Entry)
		lock   bool
		lives  bool
	}{
		"we":                                   {func(*Entry) {}, false, true},
		"another process of our pid":           {func(e *Entry) { e.Start++ }, false, false},
		"a pid that nobody has":                {func(e *Entry) { e.PID = 1 << 30 }, false, false},
		"another boot":                         {func(e *Entry) { e.Boot = "other" }, false, false},
		"another machine that shares the lock": {func(e *Entry) { e.Boot = "other" }, true, true},
		"another pid namespace, dead":          {func(e *Entry) { e.Namespace++ }, false, false},
		"another pid namespace, alive":         {func(e *Entry) { e.Namespace++ }, true, true},
		"no boot is told, dead":                {func(e *Entry) { e.Boot = "" }, false, false},
		"no boot is told, alive":               {func(e *Entry) { e.Boot = "" }, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := shortDir(t)
			e := self("3f2a")
			row.change(&e)
			writeEntry(t, dir, e)
			if row.lock {
				f, err := os.Open(filepath.Join(dir, "run", "3f2a", "lock"))
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
					t.Fatal(err)
				}
			}
			live, err := List(dir)
			dead, deadErr := Dead(dir)
			if err = errors.Join(err, deadErr); err != nil || len(live)+len(dead) != 1 || len(live) == 1 != row.lives {
				t.Errorf("live %v, dead %v, %v", ids(live), ids(dead), err)
			}
			if err := remove(dir, e); errors.Is(err, ErrLives) != row.lives || there(dir, "3f2a") != row.lives {
				t.Errorf("removed: %v", err)
			}
			if err := remove(dir, e); err != nil && !row.lives {
				t.Errorf("removed again: %v", err)
			}
		})
	}
}

// TestAnotherMachine: of a run on another machine that shares the folder, but not
// the locks, nobody here can say anything. It is left alone, but not for ever.
func TestAnotherMachine(t *testing.T) {
	dir := shortDir(t)
	e := self("3f2a")
	e.Boot, e.Host = "other", "far-away"
	writeEntry(t, dir, e)
	live, err := List(dir)
	expect(t, "list", live, err)
	dead, err := Sweep(dir)
	expect(t, "sweep", dead, err)
	if err := remove(dir, e); !errors.Is(err, ErrLives) || !there(dir, "3f2a") {
		t.Errorf("removed: %v", err)
	}
	then := time.Now().Add(-foreignFor - time.Second)
	if err := os.Chtimes(filepath.Join(dir, "run", "3f2a"), then, then); err != nil {
		t.Fatal(err)
	}
	dead, err = Sweep(dir)
	expect(t, "long ago", dead, err, "3f2a")
	if there(dir, "3f2a") {
		t.Error("it is kept for ever")
	}
}

// TestForgedRecord: root believes no record that speaks for somebody else.
func TestForgedRecord(t *testing.T) {
	dir := shortDir(t)
	e := self("3f2a")
	e.UID++
	writeEntry(t, dir, e)
	live, err := List(dir)
	expect(t, "list", live, err)
}

// TestKilled: a run that was killed is dead, and nothing of it is left.
func TestKilled(t *testing.T) {
	dir := shortDir(t)
	r := register1(t, dir, self("lives"))
	c := perform(t, "run", dir, "3f2a")
	live, err := List(dir)
	expect(t, "list", live, err, "3f2a", "lives")
	dead, err := Sweep(dir)
	expect(t, "sweep of the living", dead, err)
	if err := c.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// Nobody has waited for it: it is a zombie.
	var died []Entry
	for by := time.Now().Add(patient); len(died) == 0 && err == nil && time.Now().Before(by); {
		died, err = Dead(dir)
	}
	expect(t, "dead", died, err, "3f2a")
	live, err = List(dir)
	expect(t, "list", live, err, "lives")
	if _, err := Find(dir, "3f"); err == nil || !strings.Contains(err.Error(), "is dead") {
		t.Error(err)
	}
	dead, err = Sweep(dir)
	if expect(t, "sweep", dead, err, "3f2a"); !dead[0].Removed || there(dir, "3f2a") || !there(dir, "lives") {
		t.Errorf("%+v", dead)
	}
	dead, err = Sweep(dir)
	expect(t, "sweep again", dead, err)
	if r.Entry().RunID != "lives" {
		t.Error(r.Entry())
	}
}

// TestLeaf: a record stays as long as somebody may be left in the cgroup.
func TestLeaf(t *testing.T) {
	dir := shortDir(t)
	e := self("3f2a")
	e.Start++
	e.Leaf = filepath.Join(dir, "leaf")
	if err := os.Mkdir(e.Leaf, 0o700); err != nil {
		t.Fatal(err)
	}
	writeEntry(t, dir, e)
	dead, err := Sweep(dir)
	if expect(t, "sweep", dead, err, "3f2a"); dead[0].Removed || dead[0].Leaf != e.Leaf || !there(dir, "3f2a") {
		t.Errorf("%+v", dead)
	}
	_ = os.Remove(e.Leaf)
	dead, err = Sweep(dir)
	if expect(t, "sweep", dead, err, "3f2a"); !dead[0].Removed || there(dir, "3f2a") {
		t.Errorf("%+v", dead)
	}
}

func TestHalfMade(t *testing.T) {
	dir := shortDir(t)
	other, _ := json.Marshal(self("other"))
	wrecks := map[string][]byte{"empty": nil, "garbage": []byte("{\"run_id\":\"gar"), "array": []byte("[]"), "misnamed": other}
	for id, text := range wrecks {
		write(t, dir, id, text)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "run", "bare"), 0o700), os.Mkdir(filepath.Join(dir, "run", ".hidden"), 0o700),
		os.WriteFile(filepath.Join(dir, "run", "file"), nil, 0o600), os.Mkdir(filepath.Join(dir, "run", "pipe"), 0o700),
		unix.Mkfifo(filepath.Join(dir, "run", "pipe", "run.json"), 0o600), os.Symlink("/etc", filepath.Join(dir, "run", "link"))); err != nil {
		t.Fatal(err)
	}
	all := []string{"empty", "garbage", "array", "misnamed", "bare", "pipe"}
	f, err := os.Open(filepath.Join(dir, "run", "garbage", "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	live, err := List(dir)
	expect(t, "list", live, err)
	dead, err := Sweep(dir)
	expect(t, "sweep", dead, err)
	for _, id := range all {
		if !there(dir, id) {
			t.Errorf("%s is gone; it may be about to become a run", id)
		}
		aged(t, dir, id)
	}
	dead, err = Sweep(dir)
	expect(t, "sweep", dead, err)
	for _, id := range all {
		if there(dir, id) != (id == "garbage") { // which is somebody's who lives
			t.Errorf("%s is there: %v", id, there(dir, id))
		}
	}
	for _, id := range []string{".hidden", "file", "link"} {
		if !there(dir, id) {
			t.Errorf("%s is gone, which is none of ours", id)
		}
	}
}

// TestMeeting: runs that begin, sweep and end at once do not meet.
func TestMeeting(t *testing.T) {
	dir := shortDir(t)
	keep := register1(t, dir, self("keep"))
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			for n := range 15 {
				id := fmt.Sprintf("run-%d-%d", i, n)
				corpse := self(fmt.Sprintf("dead-%d-%d", i, n))
				corpse.Start++
				writeEntry(t, dir, corpse)
				r, err := Register(dir, self(id))
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := Sweep(dir); err != nil {
					t.Error(err)
				}
				if live, err := List(dir); err != nil || !slices.Contains(ids(live), id) || !slices.Contains(ids(live), "keep") {
					t.Errorf("%s: %v, %v", id, ids(live), err)
				}
				if err := r.Update(func(e *Entry) { e.Session = "s" }); err != nil {
					t.Error(err)
				}
				r.Close(Ending{})
				if there(dir, id) {
					t.Errorf("%s is left", id)
				}
			}
		})
	}
	all.Wait()
	live, err := List(dir)
	expect(t, "at the end", live, err, "keep")
	if _, err := Sweep(dir); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(filepath.Join(dir, "run"))
	if err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := keep.Update(func(e *Entry) { e.Session = "s" }); err != nil {
		t.Error(err)
	}
}

// TestSameID: of many that want the same id at once, beside sweepers, one gets it.
func TestSameID(t *testing.T) {
	dir := shortDir(t)
	for range 20 {
		corpse := self("3f2a")
		corpse.Start++
		writeEntry(t, dir, corpse)
		var all sync.WaitGroup
		var mu sync.Mutex
		var got []*Run
		for range 5 {
			all.Go(func() {
				if r, err := Register(dir, self("3f2a")); err == nil {
					mu.Lock()
					got = append(got, r)
					mu.Unlock()
				}
			})
			all.Go(func() { _, _ = Sweep(dir) })
		}
		all.Wait()
		if live, err := List(dir); len(got) > 1 || len(live) != len(got) {
			t.Fatalf("%d got it; the list has %v, %v", len(got), ids(live), err)
		}
		for _, r := range got {
			r.Close(Ending{})
		}
	}
}

func TestLongPath(t *testing.T) {
	dir := filepath.Join(shortDir(t), strings.Repeat("x", socketMax))
	temp := shortDir(t)
	t.Setenv("TMPDIR", temp)
	r := register1(t, dir, self("3f2a"))
	socket := r.Entry().Socket
	info, err := os.Stat(filepath.Dir(socket))
	if err != nil || info.Mode().Perm() != 0o700 || filepath.Dir(filepath.Dir(socket)) != temp {
		t.Fatalf("%s: %v, %v", socket, info, err)
	}
	if err := r.Serve(&fake{}); err != nil {
		t.Fatal(err)
	}
	live, err := List(dir)
	if expect(t, "list", live, err, "3f2a"); live[0].Socket != socket {
		t.Errorf("%s", live[0].Socket)
	}
	if _, err := Dial(live[0]).Status(t.Context()); err != nil {
		t.Error(err)
	}
	r.Close(Ending{})
	empty(t, temp)

	c := perform(t, "server", dir, "dead")
	live, err = List(dir)
	expect(t, "list", live, err, "dead")
	shoot(c)
	dead, err := Sweep(dir)
	expect(t, "sweep", dead, err, "dead")
	empty(t, temp)
}

func empty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in %s: %v, %v", dir, left, err)
	}
}

// TestPathsInRecords: what stands in a record leads no removal astray.
func TestPathsInRecords(t *testing.T) {
	temp := shortDir(t)
	for name, mode := range map[string]fs.FileMode{
		"cursor-wrap-3f2a-12": 0o755, "cursor-wrap-other-12": 0o700, "cursor-wrap-3f2a-x": 0o700, "mine": 0o700,
	} {
		dir := shortDir(t)
		folder := filepath.Join(temp, name)
		if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(folder+"/socket", nil, 0o600), os.Chmod(folder, mode)); err != nil {
			t.Fatal(err)
		}
		e := self("3f2a")
		e.Start++
		e.Socket = folder + "/socket"
		writeEntry(t, dir, e)
		dead, err := Sweep(dir)
		expect(t, name, dead, err, "3f2a")
		if _, err := os.Stat(e.Socket); err != nil {
			t.Errorf("%s: the socket is gone: %v", name, err)
		}
	}
	if err := remove(temp, Entry{RunID: "../mine"}); err == nil {
		t.Error("an id that leads out of the folder")
	}
}

func TestFolders(t *testing.T) {
	if _, err := Register(shortDir(t), self("../x")); err == nil {
		t.Error("an id that leads out of the folder")
	}
	loose := shortDir(t)
	if err := errors.Join(os.Mkdir(loose+"/run", 0o777), os.Chmod(loose+"/run", 0o777), os.Chmod(loose, 0o777)); err != nil {
		t.Fatal(err)
	}
	register1(t, loose, self("3f2a"))
	for path, want := range map[string]fs.FileMode{loose: 0o777, loose + "/run": 0o700} {
		if info, _ := os.Stat(path); info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", path, info.Mode().Perm(), want)
		}
	}
	file := shortDir(t) + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := Register(file, self("3f2a")); err == nil || r != nil {
		t.Errorf("a file for a folder: %v, %v", r, err)
	}
	live, err := List(filepath.Join(shortDir(t), "none"))
	expect(t, "no folder", live, err)
	dead, err := Sweep(filepath.Join(shortDir(t), "none"))
	expect(t, "no folder", dead, err)
}

func TestOthersFolder(t *testing.T) {
	dir := shortDir(t)
	register1(t, dir, self("3f2a"))
	want := fmt.Sprintf("belongs to uid %d; only its owner and root may", os.Geteuid())
	if said := asNobody(t, "list", dir); !strings.Contains(said, want) || !strings.Contains(said, "permission denied") {
		t.Errorf("list: %s", said)
	}
	if said := asNobody(t, "register", dir); !strings.Contains(said, "belongs to uid 0 and not to us, uid 65534") {
		t.Errorf("register: %s", said)
	}
	if err := os.Chown(dir, nobodyUID, nobodyUID); err != nil {
		t.Fatal(err)
	}
	if _, err := Register(dir, self("other")); err == nil || !strings.Contains(err.Error(), "belongs to uid 65534") {
		t.Errorf("register: %v", err)
	}
}

func TestFind(t *testing.T) {
	dir := shortDir(t)
	for i, row := range [][3]string{{"aa11", "s-one", ""}, {"aa22", "s-two", "night"}, {"bb", "aa11-session", ""}, {"bbcc", "same", ""}, {"dd", "same", ""}} {
		e := self(row[0])
		e.Session, e.Tmux = row[1], row[2]
		e.At.Time = e.At.Add(time.Duration(i) * time.Second)
		register1(t, dir, e)
	}
	for id, want := range map[string]string{
		"aa11": "aa11", "aa2": "aa22", "s-o": "aa11", "s-two": "aa22", "night": "aa22", "bb": "bb", "bbc": "bbcc", "aa11-": "bb", "d": "dd",
		"aa": "aa11 aa22 bb", "s-": "aa11 aa22", "same": "bbcc dd", "sa": "bbcc dd", "": "", "nigh": "", "zz": "",
	} {
		e, err := Find(dir, id)
		got := e.RunID
		if many, ok := errors.AsType[*AmbiguousError](err); ok {
			got = strings.Join(ids(many.Matches), " ")
			for _, m := range many.Matches {
				if !strings.Contains(err.Error(), m.RunID) {
					t.Error(err)
				}
			}
		} else if unknown, ok := errors.AsType[*UnknownError](err); ok != (want == "") || ok && unknown.ID != id {
			t.Errorf("%q: %v", id, err)
		}
		if got != want {
			t.Errorf("%q: %q, %v; want %q", id, got, err, want)
		}
	}
}
