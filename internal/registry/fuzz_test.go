package registry

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// greedy counts what is taken from it.
type greedy struct {
	in    io.Reader
	taken int
}

func (g *greedy) Read(p []byte) (int, error) {
	n, err := g.in.Read(p)
	g.taken += n
	return n, err
}

// FuzzRequest: whatever is sent, the parser takes no more than it may, and what
// it lets pass is a request that somebody could have meant.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		"GET /status HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /events?follow=1&from=start HTTP/1.0\r\n\r\n",
		"POST /kill?now=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc",
		"POST /kill HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"OPTIONS * HTTP/1.1\nHost: x\n\n",
		"GET http://u:p@x/%2e%2e/a?b=%zz#c HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n",
		"\x16\x03\x01", "", "GET", "GET /\x00 HTTP/1.1\r\n\r\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in := &greedy{in: strings.NewReader(text)}
		req, err := readRequest(in)
		if in.taken > headMax+bodyMax {
			t.Errorf("%d bytes are taken", in.taken)
		}
		if err != nil {
			if r, ok := errors.AsType[*refusal](err); ok && (reasons[r.code] == "" || r.reason == "") {
				t.Errorf("refused with %d, %q", r.code, r.reason)
			}
			return
		}
		if !isToken(req.method) || req.body < 0 || req.body > bodyMax || req.path == "" || req.path[0] != '/' && req.path != "*" {
			t.Errorf("%+v", req)
		}
		if first, _, _ := strings.Cut(text, "\n"); !strings.Contains(first, "HTTP/1.") || !strings.HasPrefix(strings.TrimSpace(first), req.method+" ") {
			t.Errorf("%q is read as %+v", first, req)
		}
	})
}
