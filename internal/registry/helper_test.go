package registry

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/process"
)

// partArg makes the test binary play a part instead of testing.
const partArg = "__part"

// partLife is how long a part lives at most, whatever the test forgets.
const partLife = 60 * time.Second

// patient is how long a test waits for a fact before it gives up.
const patient = 30 * time.Second

// parts are what the test binary can play, by name.
var parts = map[string]func(args []string){
	// run registers itself and waits for its end.
	"run": func(args []string) {
		if _, err := Register(args[0], self(args[1])); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("ready")
		select {}
	},
	// server does the same and answers.
	"server": func(args []string) {
		r, err := Register(args[0], self(args[1]))
		if err := errors.Join(err, r.Serve(&fake{})); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("ready")
		select {}
	},
	// stranger asks what it must not get.
	"stranger": func(args []string) {
		conn, err := net.Dial("unix", args[0])
		if err != nil {
			fmt.Println("dial:", err)
			return
		}
		fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\n\r\n", args[1])
		in := bufio.NewScanner(conn)
		for in.Scan() {
			fmt.Println(in.Text())
		}
	},
	// impostor sits at a socket.
	"impostor": func(args []string) {
		if _, err := net.Listen("unix", args[0]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("ready")
		select {}
	},
	// client asks as the subcommands do.
	"client": func(args []string) {
		_, err := Dial(Entry{RunID: "3f2a", UID: 0, Socket: args[0]}).Status(context.Background())
		fmt.Println(err)
	},
	// list lists as another user.
	"list": func(args []string) {
		_, err := List(args[0])
		fmt.Println(err)
	},
	// register registers as another user.
	"register": func(args []string) {
		_, err := Register(args[0], self("other"))
		fmt.Println(err)
	},
}

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == partArg {
		time.AfterFunc(partLife, func() { os.Exit(99) })
		parts[os.Args[2]](os.Args[3:])
		os.Exit(0)
	}
	code := m.Run()
	if left := goroutines(); code == 0 && left != "" {
		fmt.Println("left by the tests:", left)
		code = 1
	}
	os.Exit(code)
}

// goroutines are those of the package that still run, once those had time to
// leave that are about to.
func goroutines() string {
	buf := make([]byte, 1<<20)
	var left []string
	for by := time.Now().Add(5 * time.Second); time.Now().Before(by); time.Sleep(time.Millisecond) {
		left = nil
		for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "registry.(*server)") || strings.Contains(g, "registry.(*exchange)") || strings.Contains(g, "registry.(*stream)") {
				left = append(left, g)
			}
		}
		if left == nil {
			return ""
		}
	}
	return strings.Join(left, "\n\n")
}

// part is how the test binary plays one.
func part(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	if parts[words[0]] == nil {
		t.Fatalf("no part %q", words[0])
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(path, append([]string{partArg}, words...)...)
	c.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	c.Stderr = os.Stderr
	return c
}

// perform starts a part, waits until it is ready and ends it with the test.
func perform(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	return begin(t, part(t, words...))
}

func begin(t *testing.T, c *exec.Cmd) *exec.Cmd {
	t.Helper()
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shoot(c) })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%v: %q, %v", c.Args, line, err)
	}
	return c
}

// shoot kills a part that the test has started, and waits for it.
func shoot(c *exec.Cmd) {
	_ = c.Process.Kill()
	_ = c.Wait()
}

// nobodyUID is an ordinary user.
const nobodyUID = 65534

// asNobody runs a part as somebody else, and returns what it says.
func asNobody(t *testing.T, words ...string) string {
	t.Helper()
	out, err := nobodys(t, words...).Output()
	if err != nil {
		t.Fatalf("%v: %v", words, err)
	}
	return string(out)
}

// nobodys is how somebody else plays a part.
func nobodys(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be somebody else")
	}
	c := part(t, words...)
	text, err := os.ReadFile(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	dir := shortDir(t)
	c.Path = filepath.Join(dir, "registry.test")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(c.Path, text, 0o755)); err != nil {
		t.Fatal(err)
	}
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyUID, Gid: nobodyUID}}
	return c
}

// self is an entry of this process.
func self(id string) Entry {
	start, _ := process.Identity(os.Getpid())
	host, _ := os.Hostname()
	return Entry{
		Host:  host,
		RunID: id, Version: "1", PID: os.Getpid(), Start: start, Namespace: process.Namespace(), Boot: process.Boot(),
		UID: os.Geteuid(), At: monitor.Millis{Time: time.UnixMilli(1770000000000)}, Args: []string{"-p"}, Dir: "/", Workspace: "/w",
	}
}

// shortDir is a folder with a short path, in which a socket finds its place.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "reg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func register1(t *testing.T, dir string, e Entry) *Run {
	t.Helper()
	r, err := Register(dir, e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(Ending{}) })
	return r
}

// fake is a run behind a socket.
type fake struct {
	mu     sync.Mutex
	status Status
	asked  []string // what was asked of it, in order
	fails  error
	panics bool
	blocks bool // until the context ends
	grown  chan struct{}
}

func (f *fake) note(format string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.panics {
		panic("the backend is out of its mind")
	}
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
	return f.fails
}

func (f *fake) Status(ctx context.Context) (Status, error) {
	if f.blocks {
		<-ctx.Done()
		return Status{}, ctx.Err()
	}
	err := f.note("status")
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status, err
}

func (f *fake) Tree(ctx context.Context) (Tree, error) {
	s, err := f.Status(ctx)
	return Tree{Status: s, Containment: "tree"}, err
}

func (f *fake) Kill(by int, now bool) error             { return f.note("kill by %d, now %v", by, now) }
func (f *fake) Pause(_ context.Context, by int) error   { return f.note("pause by %d", by) }
func (f *fake) Unpause(_ context.Context, by int) error { return f.note("unpause by %d", by) }

func (f *fake) Grown() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.grown == nil {
		f.grown = make(chan struct{})
	}
	return f.grown
}

// grow tells that the log has grown.
func (f *fake) grow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.grown != nil {
		close(f.grown)
	}
	f.grown = nil
}

// served is a run with its server and an ordinary HTTP client.
type served struct {
	*Run
	backend *fake
	http    *http.Client
	log     *os.File
}

// serve registers a run in a fresh folder and serves it; set changes the
// server before it begins.
func serve(t *testing.T, b *fake, set func(*server)) *served {
	t.Helper()
	dir := shortDir(t)
	log, err := os.Create(filepath.Join(dir, "log.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	e := self("3f2a")
	e.Log = log.Name()
	r := register1(t, filepath.Join(dir, "s"), e)
	if set == nil {
		set = func(*server) {}
	}
	tune = set
	defer func() { tune = func(*server) {} }()
	if err := r.Serve(b); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", r.Entry().Socket)
	}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = log.Close()
	})
	return &served{r, b, &http.Client{Transport: transport, Timeout: patient}, log}
}

// dial is a bare connection to the run.
func (s *served) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", s.Entry().Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patient))
	return conn
}

// write appends to the log and tells so.
func (s *served) write(t *testing.T, text string) {
	t.Helper()
	if _, err := s.log.WriteString(text); err != nil {
		t.Fatal(err)
	}
	s.backend.grow()
}
