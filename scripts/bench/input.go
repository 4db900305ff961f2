package main

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"strings"
)

const (
	session    = "5f0c1d2e-7a4b-4c3d-9e8f-0123456789ab"
	model      = `"model_call_id":"59ff63a6-195e-463f-89ce-f26a820987bf-0-c94p"`
	initLine   = `{"type":"system","subtype":"init","apiKeySource":"login","cwd":"/home/user/project","session_id":"` + session + `","model":"Auto","permissionMode":"default"}` + "\n"
	resultLine = `{"type":"result","subtype":"success","duration_ms":5123,"duration_api_ms":5123,"is_error":false,"result":"Done.","session_id":"` + session + `"}` + "\n"
	tail       = `,"session_id":"` + session + `","timestamp_ms":1784819288883}` + "\n"
)

// input is a generated stream: it begins with an init and ends with a result,
// so that a wrapper around its source has every reason to exit 0.
type input struct {
	path  string
	bytes int64
	lines int
	crc   uint32
}

// checksum is Castagnoli, which the processor computes: reading stays cheap.
var checksum = crc32.MakeTable(crc32.Castagnoli)

// generate writes the input called name. The same name and size give the same
// bytes on every machine.
func generate(name string, quick bool, path string) (input, error) {
	switch name {
	case "small":
		return generateWith(path, func(s *script) { s.small(pick(quick, 200_000, 1_000_000)) })
	case "mix":
		return generateWith(path, func(s *script) { s.mix(pick(quick, 1_650, 6_650)) })
	case "huge":
		return generateWith(path, func(s *script) { s.huge(pick(quick, 5, 20)) })
	}
	return input{}, fmt.Errorf("no input is called %q", name)
}

// generateWith writes an input that says what it is told to.
func generateWith(path string, say func(*script)) (in input, err error) {
	f, err := os.Create(path)
	if err != nil {
		return in, err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	count := &counting{}
	s := &script{
		Writer: bufio.NewWriterSize(io.MultiWriter(f, count), 1<<20),
		rng:    rand.New(rand.NewPCG(1, 2)),
	}
	s.WriteString(initLine)
	say(s)
	s.WriteString(resultLine)
	if err := s.Flush(); err != nil {
		return in, err
	}
	return input{path: path, bytes: count.bytes, lines: count.lines, crc: count.crc}, nil
}

func pick[T any](quick bool, small, full T) T {
	if quick {
		return small
	}
	return full
}

// counting remembers what went by.
type counting struct {
	bytes int64
	lines int
	crc   uint32
}

func (c *counting) Write(b []byte) (int, error) {
	c.bytes += int64(len(b))
	c.lines += bytes.Count(b, []byte("\n"))
	c.crc = crc32.Update(c.crc, checksum, b)
	return len(b), nil
}

// script writes events. Errors stay in the Writer until Flush.
type script struct {
	*bufio.Writer
	rng  *rand.Rand
	at   int // the next line of code to quote
	call int // calls made so far
}

// small is what a model that thinks aloud emits: many short deltas.
func (s *script) small(n int) {
	for range n {
		s.thinking()
	}
}

const deltaLine = 172

func (s *script) thinking() {
	const head = `{"type":"thinking","subtype":"delta","text":"`
	from := s.rng.IntN(len(prose) - deltaLine)
	s.WriteString(head)
	s.WriteString(prose[from : from+deltaLine-len(head)-len(`"`)-len(tail)])
	s.WriteString(`"` + tail)
}

// mix is a session: in each step the model thinks, says something, runs a
// command, reads a file and edits one. 20 events and about 31 KB a step.
func (s *script) mix(steps int) {
	for range steps {
		for range 12 {
			s.thinking()
		}
		s.WriteString(`{"type":"thinking","subtype":"completed"` + tail)
		s.WriteString(`{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"`)
		s.WriteString(prose[:250+s.rng.IntN(200)])
		s.WriteString(`"}]},` + model + tail)
		s.shell(s.size(200, 5_500))
		s.read(s.size(1_000, 35_000))
		s.edit(s.size(350, 8_000))
	}
}

// steps is a long run of small steps, 20 events each: thoughts, a word, a call.
func (s *script) steps(n int) {
	for range n {
		for range 17 {
			s.thinking()
		}
		s.WriteString(`{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"`)
		s.WriteString(prose[:100])
		s.WriteString(`"}]},` + model + tail)
		s.shell(s.size(200, 500))
	}
}

// size is mostly small and sometimes nearly low+span, as results are.
func (s *script) size(low, span int) int {
	u := s.rng.Float64()
	return low + int(float64(span)*u*u*u)
}

// huge is a handful of edits of one very large file.
func (s *script) huge(n int) {
	for range n {
		s.pair("editToolCall", `{"path":"src/generated.go"}`, func() {
			s.WriteString(`{"success":{"path":"src/generated.go","linesAdded":1,"linesRemoved":1,"afterFullFileContent":"`)
			s.code(32 << 20)
			s.WriteString(`"}}`)
		})
	}
}

func (s *script) shell(n int) {
	args := `{"command":"go test ./internal/... 2>&1 | tail -n 40","workingDirectory":"","timeout":30000,` +
		`"simpleCommands":["go","tail"],"hasInputRedirect":false,"hasOutputRedirect":true,` +
		`"parsingResult":{"parsingFailed":false,"executableCommands":[{"name":"go","args":[{"type":"word","value":"test"},` +
		`{"type":"word","value":"./internal/..."}],"fullText":"go test ./internal/..."}],"hasRedirects":true,` +
		`"hasCommandSubstitution":false,"redirects":[]},"fileOutputThresholdBytes":"40000","isBackground":false,` +
		`"skipApproval":false,"timeoutBehavior":"TIMEOUT_BEHAVIOR_BACKGROUND","hardTimeout":86400000}`
	s.pair("shellToolCall", args, func() {
		from := s.at
		s.WriteString(`{"success":{"command":"go test ./internal/... 2>&1 | tail -n 40","workingDirectory":"","exitCode":0,"signal":"","stdout":"`)
		s.code(n)
		s.at = from // the same output again, as the agent writes it
		s.WriteString(`","stderr":"","executionTime":1479,"interleavedOutput":"`)
		s.code(n)
		s.WriteString(`","localExecutionTimeMs":280},"isBackground":false}`)
	})
}

func (s *script) read(n int) {
	s.pair("readToolCall", `{"path":"/home/user/project/internal/server/handler.go"}`, func() {
		s.WriteString(`{"success":{"content":"`)
		s.code(n)
		s.WriteString(`","isEmpty":false,"exceededLimit":false,"totalLines":412,"fileSize":9821,` +
			`"path":"/home/user/project/internal/server/handler.go","readRange":{"startLine":1,"endLine":412},` +
			`"relatedCursorRulePaths":[],"relatedCursorRules":[]}}`)
	})
}

func (s *script) edit(n int) {
	var stream strings.Builder
	whole := script{Writer: bufio.NewWriter(&stream), at: s.at}
	whole.code(n)
	whole.Flush() // into memory: cannot fail
	text := stream.String()
	s.pair("editToolCall", `{"path":"/home/user/project/main.go","streamContent":"`+text+`"}`, func() {
		s.WriteString(`{"success":{"path":"/home/user/project/main.go","linesAdded":7,"linesRemoved":3,"diffString":"--- a/main.go\n+++ b/main.go\n@@ -1,9 +1,13 @@\n`)
		s.code(min(n, 1_000))
		s.WriteString(`","beforeFullFileContent":"`)
		s.code(n)
		s.WriteString(`","afterFullFileContent":"` + text + `","message":"Wrote contents to main.go"}}`)
	})
}

// pair writes the start and the completion of one call. The id holds an
// escaped newline and the call has siblings that are no tools, as in captures:
// both are what a quick scan trips over.
func (s *script) pair(tool, args string, result func()) {
	id := fmt.Sprintf(`call-bb11656a-e59e-4356-9866-%012d-0\nfc_35bc3e26-1dfc-9c07-b668-4c50a744b8f9_0`, s.call)
	s.call++
	for _, subtype := range []string{"started", "completed"} {
		s.WriteString(`{"type":"tool_call","subtype":"` + subtype + `","call_id":"` + id + `","tool_call":{"` + tool + `":{"args":` + args)
		if subtype == "completed" {
			s.WriteString(`,"result":`)
			result()
		}
		s.WriteString(`},"hookAdditionalContexts":[],"toolCallId":"` + id + `","startedAtMs":"1784819289745"`)
		if subtype == "completed" {
			s.WriteString(`,"completedAtMs":"1784819289937"`)
		}
		s.WriteString(`},` + model + tail)
	}
}

// code quotes about n bytes of source text, whole lines, escaped as JSON.
func (s *script) code(n int) {
	for n > 0 {
		line := source[s.at%len(source)]
		s.at++
		s.WriteString(line)
		n -= len(line)
	}
}

// prose is plain text without anything to escape.
var prose = strings.Repeat("The handler closes the body twice when the client goes away early, so I will look at "+
	"who owns it first, then write a test that fails, and only then move the deferred call. ", 8)

// source is text that must be escaped about as often as real code must.
var source = []string{
	`// serve answers one request; it owns the body from here on — see RFC 9110, §9.\n`,
	`func (h *Handler) serve(w http.ResponseWriter, r *http.Request) error {\n`,
	`\tif r.Method != \"POST\" && r.Method != \"PUT\" {\n`,
	`\t\treturn fmt.Errorf(\"method %q is not allowed\", r.Method)\n`,
	`\t}\n`,
	`\tbody, err := io.ReadAll(io.LimitReader(r.Body, maxBody))\n`,
	`\tif err != nil {\n`,
	`\t\treturn fmt.Errorf(\"read body: %w\", err)\n`,
	`\t}\n`,
	`\n`,
	`\tfor i, field := range bytes.Split(body, []byte{'\\n'}) {\n`,
	`\t\th.log.Info(\"field\", \"index\", i, \"bytes\", len(field), \"path\", \"C:\\\\srv\\\\data\")\n`,
	`\t}\n`,
	`\treturn json.NewEncoder(w).Encode(map[string]any{\"ok\": true, \"naïve\": \"日本\"})\n`,
	`}\n`,
}
