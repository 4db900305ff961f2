package registry

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestEventsFrom(t *testing.T) {
	s := serve(t, &fake{}, nil)
	long := strings.Repeat("x", 3*blockSize)
	s.write(t, "one\n"+long+"\n\nthree\nhalf")
	for from, want := range map[string]string{
		"":                                     "one\n" + long + "\n\nthree\n",
		"?from=start":                          "one\n" + long + "\n\nthree\n",
		"?from=0":                              "one\n" + long + "\n\nthree\n",
		"?from=1":                              long + "\n\nthree\n",
		"?from=4":                              long + "\n\nthree\n",
		"?from=5":                              "\nthree\n",
		fmt.Sprintf("?from=%d", 4+len(long)+2): "three\n",
		fmt.Sprintf("?from=%d", 4+len(long)+3): "",
		fmt.Sprintf("?from=%d", 4+len(long)+9): "",
		"?from=now":                            "",
		"?follow=0":                            "one\n" + long + "\n\nthree\n",
	} {
		resp, body := s.ask(t, "GET", "/events"+from)
		if body != want || resp.Header.Get("Content-Type") != "application/x-ndjson" || len(resp.TransferEncoding) != 1 {
			t.Errorf("%s: %d bytes, %.80q, want %d; %v", from, len(body), body, len(want), resp.Header)
		}
	}
}

// TestFollow: everybody gets every line once, in order and whole, while the log
// grows in pieces, is renamed, and is closed.
func TestFollow(t *testing.T) {
	s := serve(t, &fake{}, nil)
	var want strings.Builder
	line := func(n int) string { return fmt.Sprintf("{\"n\":%d,\"x\":%q}\n", n, strings.Repeat("y", n*37%3000)) }
	for n := range 200 {
		want.WriteString(line(n))
		s.write(t, line(n))
	}
	before := want.Len()
	var all sync.WaitGroup
	for i := range 6 {
		fromStart := i%2 == 0
		events, err := Dial(s.Entry()).Events(t.Context(), fromStart, true)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			defer events.Close()
			b, err := io.ReadAll(events)
			whole := want.String()
			if !fromStart {
				whole = whole[before:]
			}
			if string(b) != whole || err != nil {
				t.Errorf("from the start %v: %d bytes, %v, want %d", fromStart, len(b), err, len(whole))
			}
		})
	}
	resp, err := s.http.Get("http://run/events?follow=1&from=start")
	if err != nil {
		t.Fatal(err)
	}
	all.Go(func() { // and net/http sees the same
		defer resp.Body.Close()
		if b, err := io.ReadAll(resp.Body); string(b) != want.String() || err != nil {
			t.Errorf("net/http: %d bytes, %v, want %d", len(b), err, want.Len())
		}
	})
	if err := os.Rename(s.log.Name(), s.log.Name()+"-named"); err != nil {
		t.Fatal(err)
	}
	for n := range 2000 {
		text := line(n)
		want.WriteString(text)
		s.write(t, text[:n%len(text)])
		s.write(t, text[n%len(text):])
	}
	want.WriteString("last\n")
	if _, err := s.log.WriteString("last\nhalf"); err != nil { // nobody says that it has grown
		t.Fatal(err)
	}
	s.Close(Ending{})
	all.Wait()
}

// TestFollowGrowing: who follows a log gets each line when it is there.
func TestFollowGrowing(t *testing.T) {
	s := serve(t, &fake{}, nil)
	events, err := Dial(s.Entry()).Events(t.Context(), false, true)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	in := bufio.NewReader(events)
	for n := range 100 {
		want := fmt.Sprintf("line %d\n", n)
		s.write(t, want)
		if got, err := in.ReadString('\n'); got != want || err != nil {
			t.Fatalf("%q, %v, want %q", got, err, want)
		}
	}
}

// TestFollowAfterTheEnd: a log that says for ever that it has grown does not
// keep anybody busy.
func TestFollowAfterTheEnd(t *testing.T) {
	b := &fake{grown: make(chan struct{})}
	close(b.grown)
	looks := counted{Backend: b}
	s := serve(t, b, func(s *server) { s.backend = &looks })
	events, err := Dial(s.Entry()).Events(t.Context(), true, true)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	looks.wait(t, 10)
	began := time.Now()
	looks.wait(t, 20)
	if time.Since(began) < 500*time.Millisecond {
		t.Error("the log is looked at again and again")
	}
}

type counted struct {
	Backend
	mu sync.Mutex
	n  int
}

func (c *counted) Grown() <-chan struct{} {
	c.mu.Lock()
	c.n++
	c.mu.Unlock()
	return c.Backend.Grown()
}

func (c *counted) wait(t *testing.T, n int) {
	t.Helper()
	for by := time.Now().Add(patient); ; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		got := c.n
		c.mu.Unlock()
		if got >= n {
			return
		}
		if time.Now().After(by) {
			t.Fatalf("%d looks, not %d", got, n)
		}
	}
}

// TestEventsOfTheDead: an end that nobody has said is no end.
func TestEventsOfTheDead(t *testing.T) {
	dir := shortDir(t)
	c := perform(t, "server", dir, "3f2a")
	e, err := Find(dir, "3f2a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(e).Events(t.Context(), true, true); err == nil || !strings.Contains(err.Error(), "session log cannot be opened") {
		t.Errorf("a run without a log: %v", err)
	}
	shoot(c)
	for text, want := range map[string]error{
		"3\r\nabc\r\n0\r\n\r\n": nil, "3;x=y\r\nabc\r\n0\r\n\r\n": nil, "3\r\nabc\r\n": io.ErrUnexpectedEOF, "3\r\nab": io.ErrUnexpectedEOF, "3\r\nabc": io.ErrUnexpectedEOF,
		"3\r\nabc\r\n0": io.ErrUnexpectedEOF, "x\r\nabc": io.ErrUnexpectedEOF, "3\r\nabcd\r\n0\r\n\r\n": io.ErrUnexpectedEOF, "": io.ErrUnexpectedEOF, "-3\r\nabc": io.ErrUnexpectedEOF,
	} {
		b, err := io.ReadAll(&chunks{in: bufio.NewReader(strings.NewReader(text))})
		if !errors.Is(err, want) || (err == nil) != (want == nil) || err == nil && string(b) != "abc" {
			t.Errorf("%q: %q, %v", text, b, err)
		}
	}
	if b, err := io.ReadAll(&exactly{in: strings.NewReader("ab"), left: 3}); err != io.ErrUnexpectedEOF {
		t.Errorf("%q, %v", b, err)
	}
}

// TestLogIsRenamed: the log is found by the name that the run knows, where the
// entry does not know it yet.
func TestLogIsRenamed(t *testing.T) {
	b := &fake{}
	s := serve(t, b, nil)
	s.write(t, "one\n")
	b.status.Log = s.log.Name() + "-named"
	if err := os.Rename(s.log.Name(), b.status.Log); err != nil {
		t.Fatal(err)
	}
	if _, body := s.ask(t, "GET", "/events"); body != "one\n" {
		t.Error(body)
	}
	if err := s.Update(func(e *Entry) { e.Log = "/dev/zero" }); err != nil {
		t.Fatal(err)
	}
	if resp, body := s.ask(t, "GET", "/events"); resp.StatusCode != 503 || !strings.Contains(body, "no regular file") {
		t.Errorf("%s %s", resp.Status, body)
	}
}

// TestWhoLeaves gives the place back.
func TestWhoLeaves(t *testing.T) {
	s := serve(t, &fake{}, nil)
	ctx, leave := context.WithCancel(t.Context())
	events, err := Dial(s.Entry()).Events(ctx, true, true)
	if err != nil {
		t.Fatal(err)
	}
	s.staying(t, 1)
	leave()
	if _, err := io.ReadAll(events); err == nil {
		t.Error("it ended as if it were over")
	}
	_ = events.Close()
	s.staying(t, 0)
}
