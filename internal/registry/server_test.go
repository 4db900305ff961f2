package registry

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cursor-wrap/internal/monitor"
)

// ask is one request by net/http, and its answer.
func (s *served) ask(t *testing.T, method, path string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://run"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp, string(b)
}

func TestEndpoints(t *testing.T) {
	b := &fake{status: Status{RunID: "3f2a", Session: "s-<1>", Phase: "tools", State: Working}}
	s := serve(t, b, nil)
	entry, _ := json.Marshal(s.Entry())
	for _, row := range []struct {
		method, path string
		code         int
		holds        string
		asked        string
	}{
		{"GET", "/", 200, `"GET /status"`, ""},
		{"GET", "/run", 200, string(entry), ""},
		{"GET", "/status", 200, `"session_id":"s-<1>"`, "status"},
		{"GET", "/tree", 200, `"containment":"tree"`, "status"},
		{"GET", "/metrics", 200, "\ncursor_wrap_up 1\n", "status"},
		{"GET", "/events", 200, "", ""},
		{"POST", "/kill", 202, `"now":false`, fmt.Sprintf("kill by %d, now false", os.Getuid())},
		{"POST", "/kill?now=1", 202, `"now":true`, fmt.Sprintf("kill by %d, now true", os.Getuid())},
		{"POST", "/pause", 200, `"run_id":"3f2a"`, fmt.Sprintf("pause by %d,status", os.Getuid())},
		{"POST", "/unpause", 200, `"run_id":"3f2a"`, fmt.Sprintf("unpause by %d,status", os.Getuid())},
		{"GET", "/kill", 405, `"error":"/kill takes POST, OPTIONS"`, ""},
		{"HEAD", "/kill", 405, "", ""},
		{"POST", "/status", 405, `"error":`, ""},
		{"DELETE", "/", 405, `"error":`, ""},
		{"GET", "/none", 404, `"POST /kill"`, ""},
		{"GET", "/status/", 404, `"error":`, ""},
		{"POST", "/kill?now=maybe", 400, `"error":"now is 1 or 0"`, ""},
		{"POST", "/kill?soon=1", 400, `"error":`, ""},
		{"GET", "/status?x=1", 400, `"error":`, ""},
		{"GET", "/events?from=-1", 400, `"error":`, ""},
		{"GET", "/events?from=1", 416, `"error":"the log has 0 bytes"`, ""},
		{"HEAD", "/status", 200, "", "status"},
		{"HEAD", "/events?follow=1", 200, "", ""},
		{"HEAD", "/wait", 200, "", ""},
		{"OPTIONS", "/status", 204, "", ""},
	} {
		b.asked = nil
		resp, body := s.ask(t, row.method, row.path)
		if resp.StatusCode != row.code || !strings.Contains(body, row.holds) || strings.Join(b.asked, ",") != row.asked {
			t.Errorf("%s %s: %s %s, asked %v", row.method, row.path, resp.Status, body, b.asked)
		}
		checkHead(t, row.method, row.path, resp, body)
	}
}

// checkHead looks at what every answer has.
func checkHead(t *testing.T, method, path string, resp *http.Response, body string) {
	t.Helper()
	kind := resp.Header.Get("Content-Type")
	switch {
	case method == "OPTIONS":
		if resp.Header.Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", method, path)
		}
		return
	case kind == "application/json" && method != "HEAD" && !json.Valid([]byte(body)):
		t.Errorf("%s %s: %s", method, path, body)
	case kind == "":
		t.Errorf("%s %s: no Content-Type", method, path)
	case method == "HEAD" && body != "":
		t.Errorf("%s %s has a body", method, path)
	case (resp.StatusCode == 405) != (resp.Header.Get("Allow") != ""):
		t.Errorf("%s %s: Allow is %q", method, path, resp.Header.Get("Allow"))
	}
	if !resp.Close || resp.ProtoMinor != 1 || resp.Header.Get("Date") == "" {
		t.Errorf("%s %s: %v", method, path, resp.Header)
	}
	if _, err := http.ParseTime(resp.Header.Get("Date")); err != nil {
		t.Error(err)
	}
}

func TestBackendFails(t *testing.T) {
	b := &fake{fails: errors.New("between turns there is nothing to freeze")}
	s := serve(t, b, func(s *server) { s.pace.answer = 50 * time.Millisecond })
	for _, path := range []string{"/pause", "/unpause", "/kill"} {
		if resp, body := s.ask(t, "POST", path); resp.StatusCode != 409 || body != `{"error":"between turns there is nothing to freeze"}`+"\n" {
			t.Errorf("%s: %s %s", path, resp.Status, body)
		}
	}
	if resp, body := s.ask(t, "GET", "/status"); resp.StatusCode != 500 || !strings.Contains(body, "nothing to freeze") {
		t.Errorf("%s %s", resp.Status, body)
	}
	b.panics = true
	if resp, body := s.ask(t, "GET", "/tree"); resp.StatusCode != 500 || !strings.Contains(body, "out of its mind") {
		t.Errorf("%s %s", resp.Status, body)
	}
	b.panics, b.fails, b.blocks = false, nil, true
	if resp, body := s.ask(t, "GET", "/status"); resp.StatusCode != 504 {
		t.Errorf("%s %s", resp.Status, body)
	}
	b.blocks = false
	if resp, body := s.ask(t, "GET", "/status"); resp.StatusCode != 200 {
		t.Errorf("%s %s", resp.Status, body)
	}
}

// raw sends bytes and reads what comes back until the connection ends. The
// error is how it ended if it was cut off.
func (s *served) raw(t *testing.T, text string) (string, error) {
	t.Helper()
	conn := s.dial(t)
	go func() { _, _ = io.WriteString(conn, text) }() // it may be cut short
	b, err := io.ReadAll(conn)
	return string(b), err
}

func TestRequests(t *testing.T) {
	s := serve(t, &fake{}, func(s *server) { s.pace.read = 300 * time.Millisecond })
	const host = "Host: x\r\n\r\n"
	for text, want := range map[string]string{
		"GET /run HTTP/1.1\r\n" + host:                                                    "200 OK",
		"GET /run HTTP/1.0\r\n\r\n":                                                       "200 OK",
		"GET http://x/run HTTP/1.1\r\n" + host:                                            "200 OK",
		"OPTIONS * HTTP/1.1\r\n" + host:                                                   "204 No Content",
		"POST /kill HTTP/1.1\r\nContent-Length: 3\r\n" + host + "abc":                     "202 Accepted",
		"POST /kill HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 60000\r\n" + host: "202 Accepted",
		"GET /run HTTP/1.1\r\n\r\n":                                                       "400 ",
		"GET /run HTTP/1.1\r\nHost: y\r\n" + host:                                         "400 ",
		"GET  /run HTTP/1.1\r\n" + host:                                                   "400 ",
		"GET /run\r\n" + host:                                                             "400 ",
		"get /run HTTP/1.1\r\n" + host:                                                    "400 ",
		"GET run HTTP/1.1\r\n" + host:                                                     "400 ",
		"GET /\x01 HTTP/1.1\r\n" + host:                                                   "400 ",
		"GET /%zz HTTP/1.1\r\n" + host:                                                    "400 ",
		"GET /run?%zz HTTP/1.1\r\n" + host:                                                "400 ",
		"GET /run HTTP/1.1\r\nno header\r\n" + host:                                       "400 ",
		"GET /run HTTP/1.1\r\n folded: x\r\n" + host:                                      "400 ",
		"GET /run HTTP/2.0\r\n" + host:                                                    "505 ",
		"POST /kill HTTP/1.1\r\nContent-Length: -1\r\n" + host:                            "400 ",
		"POST /kill HTTP/1.1\r\nContent-Length: +1\r\n" + host:                            "400 ",
		"POST /kill HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n" + host:        "400 ",
		"POST /kill HTTP/1.1\r\nContent-Length: 99999999\r\n" + host:                      "413 ",
		"POST /kill HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + host:                    "411 ",
		"POST /kill HTTP/1.1\r\nExpect: coffee\r\n" + host:                                "417 ",
		"GET /run HTTP/1.1\r\nX: " + strings.Repeat("x", headMax) + "\r\n" + host:         "431 ",
		"GET /" + strings.Repeat("x", headMax*4) + " HTTP/1.1\r\n" + host:                 "431 ",
		"GET /run HTTP/1.1\r\n" + strings.Repeat("A: b\r\n", headMax) + host:              "431 ",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x00", headMax):  "431 ",
		"":                          "", // nothing was asked within the time
		"GET /run HTTP/1.1\r\nHost": "400 ",
		"POST /kill HTTP/1.1\r\nContent-Length: 3\r\n" + host + "a": "",
	} {
		got, err := s.raw(t, text)
		if want != "" && err != nil {
			t.Errorf("%.80q: the answer is cut off: %v", text, err)
		}
		if want == "" && got != "" || want != "" && !strings.HasPrefix(got, "HTTP/1.1 "+want) {
			t.Errorf("%.80q: %.200q, want %q", text, got, want)
		}
		if _, body, _ := strings.Cut(got, "\r\n\r\n"); strings.HasPrefix(want, "4") && !strings.HasPrefix(body, `{"error":"`) {
			t.Errorf("%.80q: %.200q", text, got)
		}
	}
}

// TestManyAtOnce: a question finds its place however many others there are, and
// those who stay are so many and no more.
func TestManyAtOnce(t *testing.T) {
	s := serve(t, &fake{}, func(s *server) { s.pace.read = time.Hour })
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			if resp, body := s.ask(t, "GET", "/status"); resp.StatusCode != 200 {
				t.Errorf("%s %s", resp.Status, body)
			}
		})
	}
	all.Wait()
	follow := func() (net.Conn, string) {
		conn := s.dial(t)
		_, _ = io.WriteString(conn, "GET /events?follow=1 HTTP/1.1\r\nHost: x\r\n\r\n")
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return conn, line
	}
	var stay []net.Conn
	for range staying {
		conn, line := follow()
		if !strings.Contains(line, "200") {
			t.Fatal(line)
		}
		stay = append(stay, conn)
	}
	if _, line := follow(); !strings.Contains(line, "503") {
		t.Errorf("one more: %s", line)
	}
	for range 40 {
		s.dial(t) // and asks nothing
	}
	if resp, body := s.ask(t, "GET", "/status"); resp.StatusCode != 200 {
		t.Errorf("%s %s", resp.Status, body)
	}
	_ = stay[0].Close()
	for by := time.Now().Add(patient); ; { // its place is free once that was seen
		_, line := follow()
		if strings.Contains(line, "200") {
			break
		}
		if time.Now().After(by) {
			t.Fatal("a place is not given back")
		}
	}
}

// TestWhoDoesNotRead is left after a while, and holds nobody up.
func TestWhoDoesNotRead(t *testing.T) {
	s := serve(t, &fake{}, func(s *server) { s.pace.write = 100 * time.Millisecond })
	s.write(t, strings.Repeat(strings.Repeat("x", 999)+"\n", 5000))
	conn := s.dial(t)
	_, _ = io.WriteString(conn, "GET /events?follow=1&from=start HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	s.serving(t, 0)
	if b, _ := io.ReadAll(conn); len(b) > 4_000_000 || strings.HasSuffix(string(b), "0\r\n\r\n") {
		t.Errorf("%d bytes, as if that were all", len(b))
	}
}

func TestStrangers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be somebody else")
	}
	b := &fake{}
	s := serve(t, b, nil)
	socket := s.Entry().Socket
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if said := asNobody(t, "stranger", socket, "GET /status"); !strings.Contains(said, "permission denied") {
		t.Errorf("the folder lets others in: %s", said)
	}
	want := "permission denied: it belongs to uid 0; only its owner and root may"
	if said := asNobody(t, "client", socket); said != "run 3f2a: "+want+"\n" {
		t.Errorf("client: %q", said)
	}
	for _, dir := range []string{filepath.Dir(socket), filepath.Dir(filepath.Dir(socket)), s.folder + "/../..", s.folder + "/../../.."} {
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(socket, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"GET /status", "GET /run", "GET /events?from=start", "GET /wait", "POST /kill", "POST /pause", "GET /none"} {
		said := asNobody(t, "stranger", socket, path)
		if !strings.HasPrefix(said, "HTTP/1.1 403 Forbidden\n") || !strings.HasSuffix(said, `{"error":"`+want+`"}`+"\n") {
			t.Errorf("%s: %s", path, said)
		}
	}
	if said := asNobody(t, "client", socket); said != "run 3f2a: "+want+"\n" {
		t.Errorf("client: %q", said)
	}
	if b.asked != nil {
		t.Errorf("the backend was asked: %v", b.asked)
	}
	if resp, _ := s.ask(t, "GET", "/status"); resp.StatusCode != 200 {
		t.Error(resp.Status)
	}
}

// TestImpostor: who sits at a dead run's socket is not believed.
func TestImpostor(t *testing.T) {
	dir := shortDir(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	e := self("3f2a")
	e.Socket = filepath.Join(dir, "socket")
	begin(t, nobodys(t, "impostor", e.Socket))
	if _, err := Dial(e).Status(t.Context()); err == nil || !strings.Contains(err.Error(), "uid 65534 sits at its socket, and not its owner") {
		t.Error(err)
	}
}

func TestWait(t *testing.T) {
	s := serve(t, &fake{}, nil)
	want := Ending{Outcome: "idle", ExitCode: 124, Message: "it hung"}
	type end struct {
		e   Ending
		err error
	}
	ends := make(chan end)
	for range 5 {
		go func() {
			e, err := Dial(s.Entry()).Wait(context.Background())
			ends <- end{e, err}
		}()
	}
	s.staying(t, 5)
	s.Close(want)
	for range 5 {
		if got := <-ends; got.e != want || got.err != nil {
			t.Errorf("%+v", got)
		}
	}
	if e, err := Dial(s.Entry()).Status(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "run 3f2a does not answer: ") {
		t.Errorf("%v, %v", e, err)
	}
}

// staying waits until so many stay.
func (s *served) staying(t *testing.T, n int) {
	t.Helper()
	for by := time.Now().Add(patient); len(s.server.stays) != n; time.Sleep(time.Millisecond) {
		if time.Now().After(by) {
			t.Fatalf("%d stay, not %d", len(s.server.stays), n)
		}
	}
}

// serving waits until so many connections are served.
func (s *served) serving(t *testing.T, n int) {
	t.Helper()
	for by := time.Now().Add(patient); ; time.Sleep(time.Millisecond) {
		s.server.mu.Lock()
		got := len(s.server.conns)
		s.server.mu.Unlock()
		if got == n {
			return
		}
		if time.Now().After(by) {
			t.Fatalf("%d are served, not %d", got, n)
		}
	}
}

// TestWaitForTheDead: who waits for a run that is killed learns that it is gone.
func TestWaitForTheDead(t *testing.T) {
	dir := shortDir(t)
	c := perform(t, "server", dir, "3f2a")
	e, err := Find(dir, "3f2a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(e).Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	soon, done := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer done()
	if _, err := Dial(e).Wait(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a run that lives: %v", err)
	}
	gone := make(chan error)
	go func() {
		_, err := Dial(e).Wait(context.Background())
		gone <- err
	}()
	shoot(c)
	if err := <-gone; !errors.Is(err, ErrGone) || !strings.HasPrefix(err.Error(), "run 3f2a: ") {
		t.Errorf("while it was killed: %v", err)
	}
	if _, err := Dial(e).Wait(t.Context()); !errors.Is(err, ErrGone) {
		t.Errorf("after it was killed: %v", err)
	}
}

func TestClient(t *testing.T) {
	silence := monitor.Span(3 * time.Second)
	b := &fake{status: Status{RunID: "3f2a", Reason: &monitor.Reason{Silence: silence}}}
	s := serve(t, b, nil)
	c := Dial(s.Entry())
	ctx := t.Context()
	if got, err := c.Status(ctx); err != nil || got.RunID != "3f2a" || got.Reason.Silence != silence {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := c.Tree(ctx); err != nil || got.Containment != "tree" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := c.whole(ctx, "GET", "/metrics"); err != nil || !strings.Contains(string(got), "cursor_wrap_up 1\n") {
		t.Errorf("%s, %v", got, err)
	}
	b.asked = nil
	if err := errors.Join(c.Kill(ctx, false), c.Kill(ctx, true), c.Pause(ctx), c.Unpause(ctx)); err != nil {
		t.Error(err)
	}
	me := os.Getuid()
	if want := []string{fmt.Sprintf("kill by %d, now false", me), fmt.Sprintf("kill by %d, now true", me), fmt.Sprintf("pause by %d", me), "status", fmt.Sprintf("unpause by %d", me), "status"}; !slices.Equal(b.asked, want) {
		t.Errorf("%q", b.asked)
	}
	b.fails = errors.New("it is not paused")
	err := c.Unpause(ctx)
	if refused, ok := errors.AsType[*RefusedError](err); !ok || refused.Code != 409 || err.Error() != "run 3f2a: it is not paused" {
		t.Errorf("%v", err)
	}
	b.fails, b.blocks = nil, true
	soon, done := context.WithTimeout(ctx, 50*time.Millisecond)
	defer done()
	if _, err := c.Status(soon); !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "run 3f2a does not answer: ") {
		t.Errorf("%v", err)
	}
}

// TestCloseIsSoon: neither those who say nothing, nor those who do not read, nor
// a backend that is slow hold the end up, and nothing of the server is left.
func TestCloseIsSoon(t *testing.T) {
	b := &fake{blocks: true}
	s := serve(t, b, nil)
	for range 3 {
		s.dial(t)
	}
	conn := s.dial(t)
	if _, err := io.WriteString(conn, "GET /status HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	s.write(t, strings.Repeat(strings.Repeat("x", 999)+"\n", 5000))
	deaf := s.dial(t)
	_, _ = io.WriteString(deaf, "GET /events?from=start HTTP/1.1\r\nHost: x\r\n\r\n")
	s.serving(t, 5)
	s.staying(t, 1)
	s.Close(Ending{})
	if left := goroutines(); left != "" {
		t.Error(left)
	}
	if err := s.Serve(b); err == nil {
		t.Error("it is served after its end")
	}
}

func TestCurl(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("no curl")
	}
	s := serve(t, &fake{status: Status{RunID: "3f2a"}}, nil)
	s.write(t, "{\"a\":1}\n{\"b\":2}\n{\"half")
	big := filepath.Join(shortDir(t), "big")
	if err := os.WriteFile(big, make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"http://x/status"}, `{"run_id":"3f2a"`},
		{[]string{"--http1.0", "http://x/events"}, "{\"a\":1}\n{\"b\":2}\n"},
		{[]string{"http://x/events?from=8"}, "{\"b\":2}\n"},
		{[]string{"-XPOST", "http://x/kill"}, `{"ending":true`},
		{[]string{"-d", "a=b", "http://x/pause"}, `{"run_id":"3f2a"`},
		{[]string{"-I", "http://x/metrics"}, "HTTP/1.1 200 OK\r\n"},
		{[]string{"-H", "X: " + strings.Repeat("x", 20000), "http://x/status"}, `{"error":"the request's head`},
		{[]string{"--data-binary", "@" + big, "http://x/kill"}, `{"error":"a body may have`},
	} {
		out, err := exec.Command(curl, append([]string{"-sS", "--max-time", "30", "--unix-socket", s.Entry().Socket}, row.args...)...).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), row.want) {
			t.Errorf("%.80q: %v, %s", row.args, err, out)
		}
	}
}

func TestPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	s := serve(t, &fake{status: Status{RunID: "3f2a"}}, nil)
	s.write(t, "{\"a\":1}\n")
	const script = `
import http.client, socket, sys, json
class Conn(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])
def ask(method, path, body=None):
    c = Conn("run", timeout=30)
    c.request(method, path, body)
    r = c.getresponse()
    return r.status, r.read().decode()
assert json.loads(ask("GET", "/status")[1])["run_id"] == "3f2a"
assert ask("GET", "/events") == (200, '{"a":1}\n')
assert ask("POST", "/kill", "x" * 1000)[0] == 202
assert ask("HEAD", "/tree") == (200, "")
assert ask("GET", "/none")[0] == 404
`
	if out, err := exec.Command(python, "-c", script, s.Entry().Socket).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
