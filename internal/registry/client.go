package registry

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrGone is a run that died, or was dead already, without saying how it came
// out.
var ErrGone = errors.New("it is gone and did not say how it came out")

// patience is how long an answer may take where the context does not say.
const patience = 15 * time.Second

// answerMax bounds an answer that is read as a whole.
const answerMax = 64 << 20

// Client asks a run. Every call is a connection of its own, and takes as long
// as its context allows, but Events and Wait at most 15 s.
type Client struct{ entry Entry }

// Dial is a client of the run of that entry. It does not connect yet.
func Dial(e Entry) *Client { return &Client{e} }

// denial is what strangers are told, here and by the run itself.
func denial(uid int) string {
	return fmt.Sprintf("permission denied: it belongs to uid %d; only its owner and root may", uid)
}

// RefusedError is an answer of the run that says no.
type RefusedError struct {
	RunID  string
	Code   int // of HTTP; 409 for what cannot be at this moment
	Reason string
}

// Error says which run, and why not.
func (e *RefusedError) Error() string { return "run " + e.RunID + ": " + e.Reason }

// Is makes what the run refuses to strangers fs.ErrPermission.
func (e *RefusedError) Is(target error) bool { return target == fs.ErrPermission && e.Code == 403 }

// late is a deadline that has passed, in words for people.
type late struct{}

func (late) Error() string { return "it took too long" }

func (late) Is(target error) bool { return target == context.DeadlineExceeded }

// silent is a run that does not answer.
func (c *Client) silent(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return &RefusedError{c.entry.RunID, 403, denial(c.entry.UID)}
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		err = late{}
	}
	return fmt.Errorf("run %s does not answer: %w", c.entry.RunID, err)
}

// Status asks where the run stands.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	return s, c.get(ctx, "/status", &s)
}

// Tree asks for the agent's processes.
func (c *Client) Tree(ctx context.Context) (t Tree, err error) {
	return t, c.get(ctx, "/tree", &t)
}

// Kill asks the run to end, and does not wait for it.
func (c *Client) Kill(ctx context.Context, now bool) error {
	path := "/kill"
	if now {
		path += "?now=1"
	}
	_, err := c.whole(ctx, "POST", path)
	return err
}

// Pause freezes the agent's processes.
func (c *Client) Pause(ctx context.Context) error {
	_, err := c.whole(ctx, "POST", "/pause")
	return err
}

// Unpause lets them go on.
func (c *Client) Unpause(ctx context.Context) error {
	_, err := c.whole(ctx, "POST", "/unpause")
	return err
}

// Events reads the records of the session log, line by line, from its start or
// from now on, and goes on with it if it is to follow: until the run ends,
// which is io.EOF, or dies, which is io.ErrUnexpectedEOF.
func (c *Client) Events(ctx context.Context, fromStart, follow bool) (io.ReadCloser, error) {
	path := "/events?from=now"
	if fromStart {
		path = "/events?from=start"
	}
	if follow {
		path += "&follow=1"
	}
	// The first bytes come at once, whatever the log does.
	head, done := context.WithCancelCause(ctx)
	late := time.AfterFunc(patience, func() { done(context.DeadlineExceeded) })
	a, err := c.ask(head, "GET", path)
	if err == nil && !late.Stop() {
		_ = a.Close()
		err = c.silent(context.DeadlineExceeded)
	}
	if err != nil {
		done(nil)
		return nil, err
	}
	a.done = func() { done(nil) }
	return a, nil
}

// Wait waits for the end of the run. The error is ErrGone where it did not say
// how it came out.
func (c *Client) Wait(ctx context.Context) (e Ending, err error) {
	a, err := c.ask(ctx, "GET", "/wait")
	if err == nil {
		defer a.Close()
		err = json.NewDecoder(io.LimitReader(a, answerMax)).Decode(&e)
	}
	switch {
	case err == nil:
		return e, nil
	case ctx.Err() != nil:
		return e, fmt.Errorf("wait for run %s: %w", c.entry.RunID, ctx.Err())
	case cutOff(err), nobody(err) && c.leaves(ctx):
		return e, fmt.Errorf("run %s: %w", c.entry.RunID, ErrGone)
	}
	return e, err
}

// leaves reports whether the run's process is gone, or goes within a moment:
// between the end of its socket and its own lies a little time.
func (c *Client) leaves(ctx context.Context) bool {
	for range 50 {
		if !c.entry.running() {
			return true
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// cutOff is a connection that ended before the answer did.
func cutOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// nobody is a socket that nobody listens on.
func nobody(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// get asks for a value.
func (c *Client) get(ctx context.Context, path string, v any) error {
	b, err := c.whole(ctx, "GET", path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return c.silent(fmt.Errorf("it speaks another language: %w", err))
	}
	return nil
}

// whole asks for something that comes at once.
func (c *Client) whole(ctx context.Context, method, path string) ([]byte, error) {
	if _, limited := ctx.Deadline(); !limited {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, patience)
		defer done()
	}
	a, err := c.ask(ctx, method, path)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	b, err := io.ReadAll(io.LimitReader(a, answerMax))
	if err != nil {
		return nil, c.silent(ended(ctx, err))
	}
	return b, nil
}

// ended is the context's error where that is what has ended a connection.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// reply is the body of an answer that went well.
type reply struct {
	io.Reader
	conn net.Conn
	stop func() bool // of the context's watch
	done func()      // with the context; may be nil
}

// Close ends the connection.
func (r *reply) Close() error {
	r.stop()
	if r.done != nil {
		r.done()
	}
	return r.conn.Close()
}

// ask sends a request and reads the head of its answer.
func (c *Client) ask(ctx context.Context, method, path string) (*reply, error) {
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, c.silent(ended(ctx, err))
	}
	r := &reply{conn: conn}
	r.stop = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	code, err := r.send(method, path)
	if err != nil {
		_ = r.Close()
		return nil, c.silent(ended(ctx, err))
	}
	if code/100 == 2 {
		return r, nil
	}
	defer r.Close()
	var said struct{ Error string }
	b, _ := io.ReadAll(io.LimitReader(r, 1<<16)) // the code says enough
	if json.Unmarshal(b, &said) != nil || said.Error == "" {
		said.Error = fmt.Sprintf("it answers %s with %d", path, code)
	}
	return nil, &RefusedError{c.entry.RunID, code, said.Error}
}

// connect reaches the run, and nobody else: where the run is dead, somebody
// else may sit at the path of its socket by now.
func (c *Client) connect(ctx context.Context) (*net.UnixConn, error) {
	if c.entry.Socket == "" {
		return nil, fs.ErrNotExist
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", c.entry.Socket)
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err // without the path, which says nothing
		}
		return nil, err
	}
	unixConn := conn.(*net.UnixConn) // for "unix" it is
	uid, err := connPeer(unixConn)
	if err == nil && uid != 0 && uid != c.entry.UID {
		err = fmt.Errorf("uid %d sits at its socket, and not its owner, uid %d", uid, c.entry.UID)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return unixConn, nil
}

// send writes the request, and reads the answer up to its body.
func (r *reply) send(method, path string) (code int, err error) {
	text := method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
	if method == "POST" {
		text += "Content-Length: 0\r\n"
	}
	if _, err := io.WriteString(r.conn, text+"\r\n"); err != nil && !errors.Is(err, syscall.EPIPE) {
		return 0, err // who has hung up may have said why
	}
	in := bufio.NewReader(r.conn)
	lines := textproto.NewReader(in)
	line, err := lines.ReadLine()
	if err != nil {
		return 0, err
	}
	version, rest, _ := strings.Cut(line, " ")
	number, _, _ := strings.Cut(rest, " ")
	if code, err = strconv.Atoi(number); err != nil || version != "HTTP/1.1" {
		return 0, errors.New("it speaks another language than HTTP/1.1")
	}
	header, err := lines.ReadMIMEHeader()
	if err != nil {
		return 0, err
	}
	switch length := header.Get("Content-Length"); {
	case header.Get("Transfer-Encoding") == "chunked":
		r.Reader = &chunks{in: in}
	case length != "":
		n, err := strconv.ParseInt(length, 10, 64)
		if err != nil || n < 0 {
			return 0, errors.New("its answer has no length")
		}
		r.Reader = &exactly{in: in, left: n}
	default:
		r.Reader = in
	}
	return code, nil
}

// exactly reads so many bytes; fewer are io.ErrUnexpectedEOF.
type exactly struct {
	in   io.Reader
	left int64
}

func (e *exactly) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n, err := e.in.Read(p[:min(int64(len(p)), e.left)])
	if e.left -= int64(n); e.left > 0 && err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// chunks reads a body in chunks (RFC 9112, 7.1). Only the last chunk ends it.
type chunks struct {
	in   *bufio.Reader
	left int64 // of the present chunk
	open bool  // a chunk has been begun
	err  error
}

func (c *chunks) Read(p []byte) (n int, err error) {
	if c.left == 0 && c.err == nil {
		c.err = c.next()
	}
	if c.err != nil || len(p) == 0 {
		return 0, c.err
	}
	n, err = c.in.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	c.err = err
	return n, err
}

// next reads the head of the next chunk, and the end of the one before.
func (c *chunks) next() error {
	if c.open {
		if end, err := c.line(); err != nil || len(end) > 0 {
			return errors.Join(err, io.ErrUnexpectedEOF)
		}
	}
	line, err := c.line()
	if err != nil {
		return err
	}
	size, _, _ := bytes.Cut(line, []byte(";"))
	n, err := strconv.ParseUint(string(size), 16, 32)
	if err != nil {
		return fmt.Errorf("a chunk has no length: %w", io.ErrUnexpectedEOF)
	}
	if c.left, c.open = int64(n), true; n == 0 {
		return io.EOF
	}
	return nil
}

func (c *chunks) line() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return bytes.TrimRight(line, "\r\n"), err
}
