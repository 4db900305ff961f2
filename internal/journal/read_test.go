package journal

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

const rawHead = `{"time":"2026-11-21T19:07:44.123Z","level":"DEBUG","msg":"raw_event","recv_ts":1795288064123,`

// A record that was cut anywhere is never taken for a shorter whole one.
func TestNoBeginningOfARecordIsARecord(t *testing.T) {
	for _, record := range []string{
		rawHead + `"raw":{"a":{"b":"}"},"c":[{}]} }`,
		rawHead + `"eol":"\r\n","raw":[{"a":1}]}`,
		rawHead + `"raw_text":"a \"} b \\\"} \\"}`,
		rawHead + `"raw_b64":"AAAA"}`,
		`{"time":"2026-11-21T19:07:44.123Z","level":"INFO","msg":"spawn","ts":1,"a":{"b":{}}}`,
	} {
		if _, torn := readAll(t, []byte(record)); torn != 0 {
			t.Errorf("%s: not read", record)
		}
		for n := 1; n < len(record); n++ {
			if records, torn := readAll(t, []byte(record[:n])); torn != 1 {
				t.Errorf("%s: read as %+v", record[:n], records)
			}
		}
	}
}

func TestReadGoesOnBehindWhatItCannotRead(t *testing.T) {
	for name, bad := range map[string]string{
		"torn":              rawHead + `"raw":{"a":`,
		"zeros":             strings.Repeat("\x00", 500_000),
		"not ours":          `{"a":1}`,
		"another order":     `{"level":"DEBUG","time":"2026-11-21T19:07:44.123Z","msg":"raw_event","recv_ts":1,"raw":{}}`,
		"bad time":          `{"time":"yesterday","level":"DEBUG","msg":"x","ts":1}`,
		"bad level":         `{"time":"2026-11-21T19:07:44.123Z","level":"LOUD","msg":"x","ts":1}`,
		"bad receive time":  strings.Replace(rawHead, "1795", "x", 1) + `"raw":{}}`,
		"no such field":     rawHead + `"raw_hex":"00"}`,
		"bad base64":        rawHead + `"raw_b64":"A"}`,
		"bad escape":        rawHead + `"raw_text":"\x"}`,
		"quote inside":      rawHead + `"raw_text":"a"b"}`,
		"control character": rawHead + "\"raw_text\":\"a\x01b\"}",
		"bad eol":           rawHead + `"eol":"\n`,
		"not JSON":          rawHead + `"raw":{]}`,
	} {
		log := good + bad + "\n" + good
		records, torn := readAll(t, []byte(log))
		if torn != 1 || messages(records) != "run_end run_end" {
			t.Errorf("%s: %d torn, %s", name, torn, messages(records))
		}
		for rec, err := range Read(strings.NewReader(log)) {
			if torn, ok := errors.AsType[*TornError](err); ok && (torn.Line != 2 || string(rec.Fields) != bad || rec.Msg != "") {
				t.Errorf("%s: %v, %.100q", name, torn, rec.Fields)
			}
		}
	}
}

func TestReadEscapes(t *testing.T) {
	records, torn := readAll(t, []byte(rawHead+`"raw_text":"\b\f\n\r\t\/\"\\\u00e9\ud83d\ude00\ud83dx"}`))
	if torn != 0 || string(records[0].Raw) != "\b\f\n\r\t/\"\\é😀\ufffdx" {
		t.Errorf("%d torn, %+v", torn, records)
	}
}

func TestReadFields(t *testing.T) {
	records, _ := readAll(t, []byte(rawHead+`"eol":"\r\n","raw": {} }`+"\n"+
		strings.Replace(rawHead, "raw_event", "raw_part", 1)+`"raw_text":"x"}`+"\n"+other))
	at := time.Date(2026, 11, 21, 19, 7, 44, 123e6, time.UTC)
	if r := records[0]; !r.IsRaw() || string(r.Raw) != " {} " || r.EOL != "\r\n" || !r.End || !r.Recv.Equal(at) || !r.At.Equal(at) || r.Level != -4 {
		t.Errorf("%+v", r)
	}
	if r := records[1]; !r.IsRaw() || r.End || r.EOL != "" || string(r.Raw) != "x" {
		t.Errorf("%+v", r)
	}
	if r := records[2]; r.IsRaw() || string(r.Fields) != strings.TrimSuffix(other, "\n") {
		t.Errorf("%+v", r)
	}
	for range Read(strings.NewReader(good + good)) {
		break // and nothing panics
	}
}

// What a missing record means for the agent's bytes.
func TestWriteRawTellsWhatIsMissing(t *testing.T) {
	raw := rawHead + `"raw":{}}` + "\n"
	gap := func(fields string) string {
		return `{"time":"2026-11-21T19:07:44.123Z","level":"WARN","msg":"log_gap","ts":1` + fields + "}\n"
	}
	for name, tt := range map[string]struct {
		log        string
		incomplete bool
	}{
		"whole":                    {raw + other + raw, false},
		"last newline missing":     {raw + strings.TrimSuffix(raw, "\n"), false},
		"decisions lost":           {raw + gap(`,"records":3,"raw_records":0`) + raw, false},
		"lines lost":               {raw + gap(`,"records":3,"raw_records":1`) + raw, true},
		"a gap that does not tell": {raw + gap(``) + raw, true},
		"torn line":                {raw + raw + raw[:len(raw)-2], true},
		"torn decision":            {raw + raw + other[:len(other)-2], false},
		"torn gap":                 {raw + raw + gap(`,"records":3`)[:80], true},
		"rubbish":                  {raw + "\x00\x00\n" + raw, true},
	} {
		var out bytes.Buffer
		n, err := WriteRaw(&out, strings.NewReader(tt.log))
		if errors.Is(err, ErrIncomplete) != tt.incomplete || err != nil && !tt.incomplete {
			t.Errorf("%s: %v", name, err)
		}
		if out.String() != "{}\n{}\n" || n != 6 {
			t.Errorf("%s: %d bytes, %q", name, n, out.String())
		}
	}
}

func TestWriteRawPassesErrorsOn(t *testing.T) {
	raw := rawHead + `"raw":{}}` + "\n"
	broken := io.MultiReader(strings.NewReader(raw), iotest.ErrReader(io.ErrClosedPipe))
	var out bytes.Buffer
	if _, err := WriteRaw(&out, broken); !errors.Is(err, io.ErrClosedPipe) || out.String() != "{}\n" {
		t.Errorf("reading: %v, %q", err, out.String())
	}
	if _, err := WriteRaw(failingWriter{}, strings.NewReader(raw)); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("writing: %v", err)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
