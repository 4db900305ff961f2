package report

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"cursor-wrap/internal/monitor"
)

func TestMask(t *testing.T) {
	dir := t.TempDir()
	m := NewMask([]string{
		"API_KEY=sk-12345678", "my_token=sk-12345678-and-more", "Db_Password=p\"q/r&s<t>\nü", "A_SECRET=short", "USE_TOKEN=true1",
		"X_KEY=1234567890", "Y_KEY=true", "KEY_DIR=" + dir, "PATH=/usr/bin:/bin", "EMPTY_KEY=", "PASSWD=      ",
		"SSH_KEY=-----BEGIN KEY-----\nline-one-of-it\nline-two-of-it\n-----END KEY-----",
	})
	odd := "p\"q/r&s<t>\nü"
	in, _ := json.Marshal(odd)
	twice, _ := json.Marshal(string(in))
	for _, row := range []struct{ text, want string }{
		{"a sk-12345678 b", "a *** b"},
		{"sk-12345678-and-more", "***"},
		{"sk-12345678sk-12345678", "******"},
		{odd, "***"},
		{string(in), `"***"`},
		{string(twice), `"\"***\""`},
		{url.QueryEscape(odd), "***"},
		{url.PathEscape(odd), "***"},
		{"short 1234567890 true " + dir + " /usr/bin", "short 1234567890 true " + dir + " /usr/bin"},
		{"x line-two-of-it x -----BEGIN KEY-----", "x *** x -----BEGIN KEY-----"},
		{"API_KEY=other curl", "API_KEY=*** curl"},
		{"      ", "      "},
	} {
		if got := m.Text(row.text); got != row.want {
			t.Errorf("%q is shown as %q, want %q", row.text, got, row.want)
		}
	}
}

// Where one secret overlaps another, nothing of either is left.
func TestMaskOverlaps(t *testing.T) {
	m := NewMask([]string{"A_KEY=abcdefgh", "B_KEY=efghijklmn"})
	if got := m.Text("xabcdefghijklmny"); got != "x***y" {
		t.Errorf("%q", got)
	}
}

// A secret is not cut in two where a text is.
func TestMaskAtTheCut(t *testing.T) {
	m := NewMask([]string{"A_KEY=abcdefghijklmnop"})
	for most := range 30 {
		if got := string(m.raw([]byte("0123456789abcdefghijklmnop-rest"), most)); len(got) > most || strings.Contains(got, "a") {
			t.Errorf("raw, %d bytes: %q", most, got)
		}
		if got := m.text("0123456789abcdefghijklmnop-rest", most); strings.Contains(got, "a") {
			t.Errorf("text, %d bytes: %q", most, got)
		}
	}
}

const secretValue = `s3cr"et/<&>value`

// leaky is a log that has the secret in every place.
func leaky(t testing.TB) []byte {
	in, _ := json.Marshal(secretValue)
	inside := string(in[1 : len(in)-1])
	return write(t, func(s *scribe) {
		s.record(0, "run_start", slog.String("run_id", "r1"), slog.String("cwd", "/x/"+secretValue), slog.Any("policy", monitor.Default()))
		s.record(0, "turn_start")
		s.record(0, "spawn", slog.Any("args", []string{"--x", secretValue}), slog.String("path", secretValue))
		s.line(1, `{"type":"system","subtype":"init","session_id":"s1","model":"`+inside+`"}`)
		s.line(1, `{"type":"user","message":{"content":[{"type":"text","text":"use `+inside+`"}]}}`)
		s.line(1, assistantLine("it is "+secretValue[:8], `,"timestamp_ms":1`))
		s.line(1, assistantLine(secretValue[8:]+" you know", `,"timestamp_ms":2`))
		s.line(2, callLine("a", "curl -H "+secretValue+" x", 900))
		s.line(3, endLine("a", `{"error":{"error":"`+inside+`"}}`))
		s.line(3, callLine("b", "PASSWORD=0ther-w0rd ssh "+secretValue, 900))
		s.record(4, "stderr", slog.String("text", "bad key "+secretValue))
		s.log.Record(at(4), slog.LevelWarn, "odd", slog.String("error", secretValue))
		r := hangReason(40)
		r.Summary += secretValue
		r.OpenCalls = []monitor.Call{{Tool: "shell", Argument: "ssh " + secretValue}}
		s.verdict("hang_detected", r)
		s.line(41, `{"type":"result","subtype":"success","is_error":false,"result":"done with `+inside+`"}`)
		s.record(42, "teardown", slog.String("exit", "exit 0"), slog.Any("ended", []map[string]any{{"pid": 7, "command": "ssh " + secretValue}}))
		s.end(43, "hang", 2, "it was "+secretValue)
	})
}

// No report has the secret, and the log has.
func TestNoReportHasTheSecret(t *testing.T) {
	log := leaky(t)
	if !bytes.Contains(log, []byte(`s3cr\"et`)) {
		t.Fatal("nor has the log")
	}
	s, err := Read(bytes.NewReader(log), NewMask([]string{"MY_API_KEY=" + secretValue}))
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range Formats {
		var b bytes.Buffer
		if err := Write(&b, format, s); err != nil {
			t.Fatal(err)
		}
		plain := strings.NewReplacer("&#34;", `"`, "&#60;", "<", "&lt;", "<", "&#38;", "&", "&amp;", "&").Replace(b.String())
		for _, leak := range []string{"s3cr", "<&>value", "0ther-w0rd"} {
			if i := strings.Index(plain, leak); i >= 0 {
				t.Errorf("%s: …%s…", format, plain[max(0, i-60):min(len(plain), i+60)])
			}
		}
		if !strings.Contains(plain, hidden) {
			t.Errorf("%s: nothing is masked", format)
		}
	}
	for _, e := range s.Events {
		if bytes.Contains(e.Raw, []byte("s3cr")) || bytes.Contains(e.Raw, []byte("&>value")) {
			t.Errorf("an event: %s", e.Raw)
		}
	}
}

// A secret that is said in pieces, however long the talk, is in none of them.
func TestSecretsInPieces(t *testing.T) {
	const secret = "abcdefghijklmnopqrstuvwxyz"
	for _, before := range []int{0, 10, seamMost - 20, seamMost, 3 * seamMost} {
		s := story(t, NewMask([]string{"A_KEY=" + secret}), func(s *scribe) {
			s.run(monitor.Default())
			for range before / 10 {
				s.line(1, assistantLine("0123456789", `,"timestamp_ms":1`))
			}
			for i := 0; i < len(secret); i += 2 {
				s.line(2, assistantLine(secret[i:i+2], `,"timestamp_ms":1`))
			}
			s.line(3, assistantLine(" and on", `,"timestamp_ms":1`))
		})
		masked := 0
		for _, e := range s.Events {
			if bytes.Contains(e.Raw, []byte("masked")) {
				masked++
			}
		}
		if masked != len(secret)/2 {
			t.Errorf("after %d bytes %d of %d pieces are masked", before, masked, len(secret)/2)
		}
	}
}
