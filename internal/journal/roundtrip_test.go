package journal

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"cursor-wrap/internal/events"
)

// feed gives a stream to the log as a pump does: whole lines, or pieces, a
// Commit now and then. cuts decides, one byte a decision.
func feed(l *Log, stream, cuts []byte) {
	next := func() (c byte) {
		if len(cuts) > 0 {
			c, cuts = cuts[0], cuts[1:]
		}
		return c
	}
	recv := start
	l.Begin(recv)
	for len(stream) > 0 {
		line, rest, found := bytes.Cut(stream, []byte{'\n'})
		stream = rest
		eol := ""
		if found {
			eol = "\n"
			if cut, ok := bytes.CutSuffix(line, []byte{'\r'}); ok {
				line, eol = cut, "\r\n"
			}
		}
		c := next()
		if c&1 == 0 {
			l.Line(line, eol, storage(line))
		} else {
			for c&2 != 0 && len(line) > 0 {
				n := int(next()) % (len(line) + 1)
				l.Part(line[:n], false, "")
				line, c = line[n:], next()
			}
			l.Part(line, true, eol)
		}
		if c&4 != 0 {
			l.Commit()
		}
		if c&8 != 0 {
			recv = recv.Add(time.Duration(c) * time.Millisecond)
			l.Begin(recv)
		}
		if c&16 != 0 {
			l.Record(recv, 0, "decision")
		}
	}
	l.Commit()
}

// checkRoundTrip writes a stream into a log and takes it out again.
func checkRoundTrip(t *testing.T, stream, cuts []byte) {
	t.Helper()
	f := newMemFile()
	l := memLog(t, f, Options{Sync: None, Level: -4})
	feed(l, stream, cuts)
	l.Close()
	data := f.bytes()
	checkLines(t, data)
	var back bytes.Buffer
	n, err := WriteRaw(&back, bytes.NewReader(data))
	if err != nil {
		t.Fatalf("WriteRaw: %v", err)
	}
	if !bytes.Equal(back.Bytes(), stream) || n != int64(len(stream)) {
		t.Fatalf("%d bytes:\nin  %.300q\nout %.300q\nlog %.2000s", n, stream, back.Bytes(), data)
	}
	if records, bytes := l.Lost(); records != 0 || bytes != 0 {
		t.Fatalf("lost %d, %d", records, bytes)
	}
}

// shapes are the lines that have broken logs before.
var shapes = []string{
	`{"type":"assistant","message":{"text":"hi"}}`, ` {"a" : 1}	`, `{}`, `[]`, `12`, `"x"`, ``, ` `,
	`plain text`, `quote " backslash \ tab	`, "\x00\x01\x1f\x7f", "nul\x00inside", "\xff\xfe", "half \xe2\x82",
	"\u2028\u2029", `{"u":"` + "\u2028" + `"}`, `{"s":"\u003c\/"}`, `{"a":1,"a":2}`, `{"x":1e400}`, "\ufeff{}",
	`{"torn":`, `{"a":1}}`, `{"a":1} {"b":2}`, "\r", "a\rb", "{\"a\":\r1}", `{"raw":"}","recv_ts":1,"msg":"raw_event"}`,
	`"}`, `\`, `\"`, strings.Repeat(`"`, 9), strings.Repeat("x", 7) + `"`, "é", "\x80", `{"lone":"\ud800"}`,
	`{"time":"2026-11-21T19:07:44.123Z","level":"DEBUG","msg":"log_gap","records":1}`,
	strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000),
}

func TestEveryShapeComesBack(t *testing.T) {
	for _, shape := range shapes {
		for _, eol := range []string{"\n", "\r\n", ""} {
			for _, cuts := range []string{"", "\x01", "\x03\x01\x03\x02\x03\x01"} {
				checkRoundTrip(t, []byte(shape+eol), []byte(cuts))
			}
		}
	}
}

func TestAnyStreamComesBack(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		var stream []byte
		for range r.IntN(40) {
			if s := shapes[r.IntN(len(shapes)-1)]; r.IntN(3) > 0 {
				stream = append(stream, s...)
			} else {
				for range r.IntN(100) {
					stream = append(stream, byte(r.Uint32()))
				}
			}
			stream = append(stream, []string{"\n", "\r\n", "\n\n", ""}[r.IntN(4)]...)
		}
		cuts := make([]byte, 200)
		for i := range cuts {
			cuts[i] = byte(r.Uint32())
		}
		checkRoundTrip(t, stream, cuts)
	}
}

// FuzzRoundTrip: whatever the agent writes and however it is cut, the log is
// JSON, one object a line, and gives back every byte.
func FuzzRoundTrip(f *testing.F) {
	for _, s := range shapes {
		f.Add([]byte(s), []byte{0})
		f.Add([]byte(s+"\r\n"+s+"\n"), []byte{3, 2, 1, 3, 4, 5})
	}
	f.Fuzz(func(t *testing.T, stream, cuts []byte) { checkRoundTrip(t, stream, cuts) })
}

// Long lines take other ways: not copied, in pieces, more slices than one
// system call takes, a batch that is written before its Commit.
func TestLongLinesComeBack(t *testing.T) {
	big := func(n int, unit string) string { return strings.Repeat(unit, n/len(unit)+1) }
	var many strings.Builder
	for range 700 {
		many.WriteString(`{"a":"` + big(copyMax, "x") + "\"}\n")
	}
	for name, stream := range map[string]string{
		"JSON, 16 MiB":            `{"a":"` + big(16<<20, "xyz") + "\"}\n",
		"JSON around the limit":   `{"a":"` + big(copyMax-10, "x") + "\"}\n{\"a\":\"" + big(copyMax, "x") + "\"}",
		"700 references":          many.String(),
		"text of wide characters": big(3<<20, "→") + "\r\n",
		"text, all escapes":       big(5<<20, "\x01\x02"),
		"binary":                  big(3<<20, "\xff\x00\xfe") + "\n",
		"many short lines":        big(1<<19, "{\"n\":1}\n"),
	} {
		t.Run(name, func(t *testing.T) {
			l := openLog(t, Options{Sync: None, Level: -4})
			feed(l, []byte(stream), nil)
			l.Close()
			data := readFile(t, l.Path())
			checkLines(t, data)
			if strings.HasPrefix(name, "text") && bytes.Contains(data, []byte("raw_b64")) {
				t.Error("text was cut inside a character and is no longer legible")
			}
			var back bytes.Buffer
			if _, err := WriteRaw(&back, bytes.NewReader(data)); err != nil {
				t.Fatal(err)
			}
			if back.String() != stream {
				t.Fatalf("%d bytes became %d", len(stream), back.Len())
			}
		})
	}
}

// What encoding takes is bounded, whatever the line.
func TestMemoryIsBounded(t *testing.T) {
	f := newMemFile()
	l := memLog(t, f, Options{Sync: None, Level: -4})
	l.Begin(start)
	l.Line(bytes.Repeat([]byte{1}, 12<<20), "\n", events.AsText)
	l.Line(bytes.Repeat([]byte{0xff}, 12<<20), "\n", events.AsBase64)
	for range 60_000 {
		l.Line([]byte("{}"), "\n", events.AsJSON)
	}
	l.Commit()
	if limit := earlyAt + 6*pieceMax + 1<<10; f.largest > limit {
		t.Errorf("%d bytes in one write, at most %d wanted", f.largest, limit)
	}
	l.Part(make([]byte, keepMax+1), false, "")
	l.Commit()
	if c := cap(l.batch.buf); c > keepMax {
		t.Errorf("%d bytes kept", c)
	}
}

func TestRawRecordForm(t *testing.T) {
	l := openLog(t, Options{Level: -4})
	l.Begin(time.UnixMilli(1770823845400))
	l.Line([]byte(`{"a": 1} `), "\n", events.AsJSON)
	l.Line([]byte(`{}`), "\r\n", events.AsJSON)
	l.Line([]byte("say \"hi\"\x02"), "", events.AsText)
	l.Line([]byte{0xff}, "\n", events.AsBase64)
	l.Part([]byte("one"), false, "\n")
	l.Part(nil, false, "")
	l.Part([]byte{0xe2}, true, "\n")
	l.Part([]byte(""), true, "\r\n")
	l.Begin(time.UnixMilli(1770823845401))
	l.Line([]byte("1"), "\n", events.AsJSON)
	l.Part([]byte("two"), false, "")
	l.Commit()
	const frame = `{"time":"2026-02-11T15:30:45.400Z","level":"DEBUG","msg":"raw_`
	want := strings.Join([]string{
		frame + `event","recv_ts":1770823845400,"raw":{"a": 1} }`,
		frame + `event","recv_ts":1770823845400,"eol":"\r\n","raw":{}}`,
		frame + `event","recv_ts":1770823845400,"eol":"","raw_text":"say \"hi\"\u0002"}`,
		frame + `event","recv_ts":1770823845400,"raw_b64":"/w=="}`,
		frame + `part","recv_ts":1770823845400,"raw_text":"one"}`,
		frame + `part","recv_ts":1770823845400,"raw_text":""}`,
		frame + `part","recv_ts":1770823845400,"end":true,"raw_b64":"4g=="}`,
		frame + `part","recv_ts":1770823845400,"end":true,"eol":"\r\n","raw_text":""}`,
		strings.Replace(frame, "400", "401", 1) + `event","recv_ts":1770823845401,"raw":1}`,
		strings.Replace(frame, "400", "401", 1) + `part","recv_ts":1770823845401,"raw_text":"two"}`,
		"",
	}, "\n")
	if got := string(readFile(t, l.Path())); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestSmallLinesDoNotAllocate(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	l := memLog(t, &osFile{null}, Options{Sync: None, Level: -4})
	line := []byte(`{"type":"thinking","subtype":"delta","text":"word"}`)
	batch := func() {
		l.Begin(start)
		for range 1000 {
			l.Line(line, "\n", events.AsJSON)
		}
		l.Commit()
	}
	batch()
	if n := testing.AllocsPerRun(10, batch); n > 4 {
		t.Errorf("%v allocations for a batch of 1000 lines", n)
	}
}
