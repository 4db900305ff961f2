package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// exchange is one request and its answer. A connection has one.
type exchange struct {
	server  *server
	conn    *net.UnixConn
	peer    int    // uid
	strange string // why the peer may ask nothing
	req     *request
	asked   atomic.Bool // the request is whole, or refused
	begun   bool        // something of the answer has been sent
}

// endpoint is what a path answers to one method.
type endpoint struct {
	method string
	path   string
	about  string
	query  []string // the names that may stand in it
	stays  bool     // it may take as long as the run
	serve  func(*exchange, context.Context) error
}

// endpoints is what there is. It is filled at the start, because the index is
// one of them.
var endpoints []endpoint

func init() {
	endpoints = []endpoint{
		{"GET", "/", "this index", nil, false, (*exchange).index},
		{"GET", "/run", "who runs, and since when", nil, false, (*exchange).showEntry},
		{"GET", "/status", "where the run stands", nil, false, (*exchange).status},
		{"GET", "/tree", "the agent's processes", nil, false, (*exchange).tree},
		{"GET", "/events", "the records of the session log; follow=1 goes on with it; from=start, now, or a byte", []string{"follow", "from"}, true, (*exchange).events},
		{"GET", "/metrics", "numbers for Prometheus", nil, false, (*exchange).metrics},
		{"GET", "/wait", "how the run came out, when it has", nil, true, (*exchange).wait},
		{"POST", "/kill", "end the run; now=1 leaves the polite step out", []string{"now"}, false, (*exchange).kill},
		{"POST", "/pause", "freeze the agent's processes", nil, false, (*exchange).pause},
		{"POST", "/unpause", "let them go on", nil, false, (*exchange).unpause},
	}
}

// recover makes an answer of a panic, if none was begun: whoever asks does not
// end a run.
func (x *exchange) recover() {
	if p := recover(); p != nil && !x.begun {
		_ = x.fail(refuse(500, "the answer failed: %v", p))
	}
}

// serve reads the request and answers it.
func (x *exchange) serve() {
	stop := x.reading(x.server.pace.read)
	req, err := readRequest(x.conn)
	stop()
	x.asked.Store(true)
	x.req = req
	switch {
	case errors.As(err, new(*refusal)):
	case err != nil:
		return // nobody waits for an answer, or it was too long in coming
	case x.strange != "":
		err = refuse(403, "%s", x.strange)
	default:
		err = x.route()
	}
	if err != nil && !x.begun {
		_ = x.fail(err) // who cannot be told has gone
	}
	x.part()
}

// reading bounds how long the peer is read from: so long, and not past the end
// of the run.
func (x *exchange) reading(d time.Duration) (stop func() bool) {
	_ = x.conn.SetReadDeadline(time.Now().Add(d))
	return context.AfterFunc(x.server.over, func() { _ = x.conn.SetReadDeadline(time.Unix(1, 0)) })
}

// part closes the connection so that the peer gets to read all of the answer:
// one that is closed with something unread in it is reset.
func (x *exchange) part() {
	if x.conn.CloseWrite() != nil {
		return
	}
	defer x.reading(x.server.pace.drain)()
	_, _ = io.Copy(io.Discard, io.LimitReader(x.conn, 1<<20))
}

// route finds the endpoint and lets it answer.
func (x *exchange) route() error {
	found := slices.IndexFunc(endpoints, func(e endpoint) bool { return e.path == x.req.path })
	switch {
	case x.req.path == "*":
		return x.options("GET, HEAD, POST, OPTIONS")
	case found < 0:
		return x.missing()
	}
	e := &endpoints[found]
	allow := e.method + ", OPTIONS"
	if e.method == "GET" {
		allow = "GET, HEAD, OPTIONS"
	}
	switch {
	case x.req.method == "OPTIONS":
		return x.options(allow)
	case x.req.method != e.method && (x.req.method != "HEAD" || e.method != "GET"):
		return &refusal{code: 405, reason: x.req.path + " takes " + allow, allow: allow}
	}
	for name, values := range x.req.query {
		if !slices.Contains(e.query, name) || len(values) > 1 {
			return refuse(400, "%s does not take %q, or not twice", e.path, name)
		}
	}
	if !e.stays {
		ctx, done := context.WithTimeout(x.server.ctx, x.server.pace.answer)
		defer done()
		return e.serve(x, ctx)
	}
	return x.stay(e)
}

// stay serves what takes as long as the peer stays, which somebody has to
// watch meanwhile.
func (x *exchange) stay(e *endpoint) error {
	select {
	case x.server.stays <- struct{}{}:
		defer func() { <-x.server.stays }()
	default:
		return refuse(503, "%d follow or wait already; end one of them", staying)
	}
	ctx, leave := context.WithCancel(x.server.ctx)
	defer leave()
	_ = x.conn.SetReadDeadline(time.Time{})
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = io.Copy(io.Discard, x.conn) // until the peer leaves, or says no more, or we do
		for ctx.Err() == nil && !hungUp(x.conn) {
		}
		leave()
	}()
	defer func() {
		_ = x.conn.SetReadDeadline(time.Unix(1, 0))
		leave()
		<-left
	}()
	return e.serve(x, ctx)
}

// hungUp waits a moment for the peer to close the connection. One that has only
// said all that it will say still reads.
func hungUp(conn *net.UnixConn) (yes bool) {
	const moment = 50 // milliseconds
	raw, err := conn.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd)}} // of a hang-up is always told (poll(2))
		n, _ := unix.Poll(fds, moment)
		yes = n > 0
	})
	return yes || err != nil
}

// flag is a parameter that is given or not.
func (x *exchange) flag(name string) (bool, error) {
	switch x.req.query.Get(name) {
	case "1", "true":
		return true, nil
	case "", "0", "false":
		return false, nil
	}
	return false, refuse(400, "%s is 1 or 0", name)
}

// reasons are the phrases of the status codes that are used.
var reasons = map[int]string{
	200: "OK", 202: "Accepted", 204: "No Content", 400: "Bad Request", 403: "Forbidden", 404: "Not Found",
	405: "Method Not Allowed", 409: "Conflict", 411: "Length Required", 413: "Content Too Large",
	416: "Range Not Satisfiable", 417: "Expectation Failed", 431: "Request Header Fields Too Large",
	500: "Internal Server Error", 503: "Service Unavailable", 504: "Gateway Timeout", 505: "HTTP Version Not Supported",
}

// head begins an answer.
func head(code int, fields ...string) []byte {
	b := fmt.Appendf(nil, "HTTP/1.1 %d %s\r\n", code, reasons[code])
	b = fmt.Appendf(b, "Date: %s\r\n", time.Now().UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"))
	for i := 0; i+1 < len(fields); i += 2 {
		b = append(b, fields[i]+": "+fields[i+1]+"\r\n"...)
	}
	return append(b, "Cache-Control: no-store\r\nConnection: close\r\n\r\n"...)
}

// write sends a piece of the answer, and gives up when the peer does not read.
func (x *exchange) write(b []byte) error {
	x.begun = true
	_ = x.conn.SetWriteDeadline(time.Now().Add(x.server.pace.write))
	_, err := x.conn.Write(b)
	return err
}

// answer sends a whole answer.
func (x *exchange) answer(code int, contentType string, body []byte, more ...string) error {
	fields := append([]string{"Content-Type", contentType, "Content-Length", strconv.Itoa(len(body))}, more...)
	b := head(code, fields...)
	if x.req == nil || x.req.method != "HEAD" {
		b = append(b, body...)
	}
	return x.write(b)
}

// json sends a value.
func (x *exchange) json(code int, v any, more ...string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // commands are to be read
	if err := enc.Encode(v); err != nil {
		return err
	}
	return x.answer(code, "application/json", b.Bytes(), more...)
}

// fail sends an error.
func (x *exchange) fail(err error) error {
	r, ok := errors.AsType[*refusal](err)
	switch {
	case ok:
	case errors.Is(err, context.DeadlineExceeded):
		r = refuse(504, "the run took too long to answer")
	case errors.Is(err, context.Canceled):
		r = refuse(503, "the run is ending")
	default:
		r = refuse(500, "%v", err)
	}
	body := map[string]any{"error": r.reason}
	if r.allow != "" {
		return x.json(r.code, body, "Allow", r.allow)
	}
	return x.json(r.code, body)
}

func (x *exchange) options(allow string) error { return x.write(head(204, "Allow", allow)) }

// paths lists the endpoints.
func paths() map[string]string {
	list := map[string]string{}
	for _, e := range endpoints {
		list[e.method+" "+e.path] = e.about
	}
	return list
}

func (x *exchange) missing() error {
	return x.json(404, map[string]any{"error": strconv.Quote(x.req.path) + " is not here", "paths": paths()})
}

func (x *exchange) index(context.Context) error {
	return x.json(200, map[string]any{"run_id": x.server.run.Entry().RunID, "paths": paths()})
}

func (x *exchange) showEntry(context.Context) error { return x.json(200, x.server.run.Entry()) }

func (x *exchange) status(ctx context.Context) error {
	s, err := x.server.backend.Status(ctx)
	if err != nil {
		return err
	}
	return x.json(200, s)
}

func (x *exchange) tree(ctx context.Context) error {
	t, err := x.server.backend.Tree(ctx)
	if err != nil {
		return err
	}
	return x.json(200, t)
}

func (x *exchange) metrics(ctx context.Context) error {
	s, err := x.server.backend.Status(ctx)
	if err != nil {
		return err
	}
	return x.answer(200, metricsType, appendMetrics(nil, x.server.run.Entry(), &s))
}

func (x *exchange) kill(context.Context) error {
	now, err := x.flag("now")
	if err != nil {
		return err
	}
	if err := x.server.backend.Kill(x.peer, now); err != nil {
		return conflict(err)
	}
	return x.json(202, map[string]any{"run_id": x.server.run.Entry().RunID, "ending": true, "now": now})
}

func (x *exchange) pause(ctx context.Context) error {
	return x.freeze(ctx, x.server.backend.Pause)
}

func (x *exchange) unpause(ctx context.Context) error {
	return x.freeze(ctx, x.server.backend.Unpause)
}

// freeze changes the state and answers with the new one.
func (x *exchange) freeze(ctx context.Context, do func(context.Context, int) error) error {
	if err := do(ctx, x.peer); err != nil {
		return conflict(err)
	}
	return x.status(ctx)
}

// conflict is why something cannot be at this moment.
func conflict(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	return refuse(409, "%s", strings.TrimSpace(err.Error()))
}

// wait answers when the run is over. A HEAD learns what it would be.
func (x *exchange) wait(ctx context.Context) error {
	if x.req.method == "HEAD" {
		return x.write(head(200, "Content-Type", "application/json"))
	}
	select {
	case <-x.server.over.Done():
		return x.json(200, x.server.ending)
	case <-ctx.Done():
		return ctx.Err()
	}
}
