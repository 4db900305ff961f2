package registry

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
)

// What a request may come to.
const (
	headMax = 16 << 10 // request line and headers
	bodyMax = 64 << 10 // which is skipped
)

// request is the head of an HTTP request, as far as anybody here asks.
type request struct {
	method string
	path   string
	query  url.Values
	old    bool // HTTP/1.0, which knows no chunks
	body   int64
	asks   bool // whether to send the body (Expect)
}

// refusal is an answer that says why not.
type refusal struct {
	code   int
	reason string
	allow  string // of a 405
}

func (r *refusal) Error() string { return r.reason }

func refuse(code int, format string, args ...any) *refusal {
	return &refusal{code: code, reason: fmt.Sprintf(format, args...)}
}

// errSilent is a connection on which nothing was asked.
var errSilent = errors.New("nothing was asked")

// readRequest reads one request and skips its body. An error is a *refusal,
// errSilent, or what the connection failed with.
func readRequest(conn io.Reader) (*request, error) {
	limit := &io.LimitedReader{R: conn, N: headMax}
	in := bufio.NewReader(limit)
	req, err := readHead(textproto.NewReader(in))
	switch {
	case err == nil:
	case errors.As(err, new(*refusal)):
		return nil, err
	case limit.N == 0:
		return nil, refuse(431, "the request's head is longer than %d bytes", headMax)
	default:
		return nil, err
	}
	if req.asks {
		return req, nil // the answer comes instead of the body
	}
	limit.N += req.body
	if _, err := in.Discard(int(req.body)); err != nil {
		return nil, err
	}
	return req, nil
}

func readHead(in *textproto.Reader) (*request, error) {
	line, err := in.ReadLine()
	if err != nil {
		if err == io.EOF && line == "" {
			return nil, errSilent
		}
		return nil, err
	}
	req, err := parseLine(line)
	if err != nil {
		return nil, err
	}
	header, err := in.ReadMIMEHeader()
	if _, malformed := errors.AsType[textproto.ProtocolError](err); malformed {
		return nil, refuse(400, "a header that is none")
	}
	if err != nil {
		return nil, err
	}
	return req, req.obey(header)
}

// parseLine reads the request line (RFC 9112, 3).
func parseLine(line string) (*request, error) {
	method, rest, _ := strings.Cut(line, " ")
	target, version, ok := strings.Cut(rest, " ")
	if !ok || !isToken(method) || target == "" {
		return nil, refuse(400, "the first line is no request of HTTP/1.1")
	}
	req := &request{method: method, old: version == "HTTP/1.0"}
	switch {
	case len(version) != len("HTTP/1.1") || !strings.HasPrefix(version, "HTTP/"):
		return nil, refuse(400, "the first line is no request of HTTP/1.1")
	case !req.old && version != "HTTP/1.1":
		return nil, refuse(505, "only HTTP/1.1 is spoken here")
	case method == "OPTIONS" && target == "*":
		req.path = "*"
		return req, nil
	}
	u, err := url.ParseRequestURI(target)
	if err != nil || !plain(target) || u.Scheme != "" && u.Scheme != "http" || u.Opaque != "" {
		return nil, refuse(400, "the target of the request is no path")
	}
	if req.path = u.Path; req.path == "" {
		req.path = "/"
	}
	if req.query, err = url.ParseQuery(u.RawQuery); err != nil {
		return nil, refuse(400, "the query cannot be read")
	}
	return req, nil
}

// isToken reports whether s can be the name of a method.
func isToken(s string) bool {
	return s != "" && len(s) <= 32 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") == ""
}

// plain reports whether there is nothing in s but visible ASCII.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// obey takes from the header what concerns us: how long the body is.
func (req *request) obey(header textproto.MIMEHeader) error {
	if hosts := header["Host"]; len(hosts) > 1 || len(hosts) == 0 && !req.old {
		return refuse(400, "the request has no Host, or several")
	}
	if len(header["Transfer-Encoding"]) > 0 {
		return refuse(411, "a body must come with its Content-Length; none is needed")
	}
	for i, length := range header["Content-Length"] {
		n, err := strconv.ParseUint(length, 10, 63)
		if err != nil || strings.HasPrefix(length, "+") || i > 0 && length != header["Content-Length"][0] {
			return refuse(400, "the Content-Length is no length")
		}
		if n > bodyMax {
			return refuse(413, "a body may have %d bytes; none is needed", bodyMax)
		}
		req.body = int64(n)
	}
	switch expect := header.Get("Expect"); {
	case expect == "":
	case !strings.EqualFold(expect, "100-continue"):
		return refuse(417, "nothing but 100-continue can be expected")
	default:
		req.asks = req.body > 0
	}
	return nil
}
