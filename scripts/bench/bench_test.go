package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// An input that is not what it says would measure the wrong thing, or make a
// wrapper fail for a reason of its own.
func TestInputsAreStreams(t *testing.T) {
	for _, name := range []string{"small", "mix"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			in, err := generate(name, true, path)
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if int64(len(b)) != in.bytes {
				t.Fatalf("wrote %d bytes, says %d", len(b), in.bytes)
			}
			n, longest := 0, 0
			for line := range bytes.Lines(b) {
				n++
				longest = max(longest, len(line))
				if !json.Valid(line) {
					t.Fatalf("line %d is not JSON: %.300s", n, line)
				}
				if name == "small" && n > 1 && n < in.lines && len(line) != deltaLine {
					t.Fatalf("line %d has %d bytes, not %d", n, len(line), deltaLine)
				}
			}
			if n != in.lines {
				t.Errorf("%d lines, says %d", n, in.lines)
			}
			if !bytes.HasPrefix(b, []byte(initLine)) || !bytes.HasSuffix(b, []byte(resultLine)) {
				t.Error("does not go from init to result")
			}
			if mean := len(b) / n; name == "mix" && (mean < 1_400 || mean > 1_700 || longest > 40_000) {
				t.Errorf("mean line %d B, longest %d B: not the sessions we have seen", mean, longest)
			}
		})
	}
}

func TestHugeLinesAreHuge(t *testing.T) {
	var b bytes.Buffer
	s := &script{Writer: bufio.NewWriter(&b)}
	s.huge(1)
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	started, completed, _ := bytes.Cut(b.Bytes(), []byte("\n"))
	if !json.Valid(started) || !json.Valid(completed) {
		t.Error("not JSON")
	}
	if len(completed) < 32<<20 {
		t.Errorf("the completion has %d bytes, want 32 MiB", len(completed))
	}
}

func TestStampTravels(t *testing.T) {
	line := pacedEvent()
	if len(line) != pacedLine || !json.Valid(line) {
		t.Fatalf("%d bytes: %s", len(line), line)
	}
	at := bytes.Index(line, []byte(stampKey)) + len(stampKey)
	copy(line[at:], "00000000012345678901")
	if ns, ok := stamp(line); !ok || ns != 12345678901 {
		t.Errorf("stamp = %d, %v", ns, ok)
	}
	if _, ok := stamp([]byte(initLine)); ok {
		t.Error("an init has no stamp")
	}
}

func TestSpread(t *testing.T) {
	if s := spreadOf([]float64{3, 1, 2}); *s != (spread{2, 1, 3}) {
		t.Errorf("odd: %v", *s)
	}
	if s := spreadOf([]float64{4, 1, 2, 3}); *s != (spread{2.5, 1, 4}) {
		t.Errorf("even: %v", *s)
	}
	if spreadOf(nil) != nil {
		t.Error("nothing measured must be unknown, not zero")
	}
}

func TestPercentile(t *testing.T) {
	xs := make([]float64, 600)
	for i := range xs {
		xs[i] = float64(i + 1)
	}
	if p := percentile(xs, 50); p != 300 {
		t.Errorf("p50 = %v", p)
	}
	if p := percentile(xs, 99); p != 594 {
		t.Errorf("p99 = %v", p)
	}
}

func TestMark(t *testing.T) {
	for _, tt := range []struct {
		name string
		t    *target
		s    *spread
		want string
	}{
		{"no target", nil, &spread{Median: 1}, ""},
		{"unknown is not reached", atMost(16, 6), nil, "?"},
		{"at least, just", atLeast(0.45, 0.6), &spread{Median: 0.45}, "ok"},
		{"at least, short of it", atLeast(0.45, 0.6), &spread{Median: 0.44}, "MISSED"},
		{"at most, just", atMost(16, 6), &spread{Median: 16}, "ok"},
		{"at most, above", atMost(16, 6), &spread{Median: 16.1}, "MISSED"},
	} {
		if got := tt.t.mark(tt.s); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A peer that failed leaves no ratio, rather than one of different rounds.
func TestRatioNeedsTheSameRounds(t *testing.T) {
	if got := byRound([]float64{2, 4}, []float64{1}, over); got != nil {
		t.Errorf("got %v", got)
	}
	if got := byRound([]float64{2, 9}, []float64{1, 3}, over); got[0] != 2 || got[1] != 3 {
		t.Errorf("got %v", got)
	}
}

func TestBenchmarkIsRead(t *testing.T) {
	for _, tt := range []struct {
		line, name string
		values     map[string]float64
	}{
		{
			"BenchmarkSample/10_beside_3000/tree-2    \t    6175\t     66863 ns/op\t        42.47 cpu-µs/op\t    2862 B/op\t       5 allocs/op\n",
			"BenchmarkSample/10_beside_3000/tree", map[string]float64{"ns/op": 66863, "cpu-µs/op": 42.47, "B/op": 2862, "allocs/op": 5},
		},
		{"BenchmarkSample/10/tree 1 1.5e+09 ns/op\n", "BenchmarkSample/10/tree", map[string]float64{"ns/op": 1.5e9}}, // of one processor
		{"BenchmarkSample/by-hand 1 7 ns/op\n", "BenchmarkSample/by-hand", map[string]float64{"ns/op": 7}},
		{"BenchmarkSample/10/tree-2\n", "", nil}, // announced by -test.v
		{"BenchmarkSample/10/tree-2 1 x ns/op\n", "", nil},
		{"cpu: Intel(R) Xeon(R) Processor\n", "", nil},
		{"PASS\n", "", nil},
	} {
		name, values, ok := parseBenchmark(tt.line)
		if name != tt.name || !maps.Equal(values, tt.values) || ok != (tt.values != nil) {
			t.Errorf("%q: %q, %v, %v", tt.line, name, values, ok)
		}
	}
}

// The names are all that the two sides share.
func TestBenchmarksAreThere(t *testing.T) {
	b, err := os.ReadFile("../../internal/process/sample_bench_linux_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, size := range sizes {
		names = append(names, size.benchmark)
	}
	for _, way := range ways {
		names = append(names, way.benchmark)
	}
	for _, name := range names {
		if quoted := `"` + strings.ReplaceAll(name, "_", " ") + `"`; !strings.Contains(string(b), quoted) {
			t.Errorf("there is no benchmark %s", quoted)
		}
	}
	if !strings.Contains(string(b), "func BenchmarkSample(") {
		t.Error("there is no BenchmarkSample")
	}
}

func TestCallIsALine(t *testing.T) {
	line := callLine(time.Hour)
	if !json.Valid([]byte(line)) || strings.Index(line, "\n") != len(line)-1 {
		t.Errorf("%q", line)
	}
	if !strings.Contains(line, `"timeout":3600000,`) {
		t.Errorf("no hour in %s", line)
	}
}

func TestRecordsAreFound(t *testing.T) {
	l := &lab{dir: t.TempDir()}
	if err := os.Mkdir(l.logDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := l.record("sample"); err == nil {
		t.Error("found in no log")
	}
	log := `{"msg":"raw_event","recv_ts":1,"raw":{"text":"\"msg\":\"sample\"","msg":"sample"}}
{"msg":"sample","ts":2,"procs":[]}
{"msg":"sample","ts":3}
{"msg":"hang_detected","ts":5,"kind":"idle","deadline":4,"evidence":{"finding":"confirmed"}}
`
	if err := os.WriteFile(filepath.Join(l.logDir(), "a.jsonl"), []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := l.records("sample"); err != nil || len(all) != 2 || all[1].TS != 3 {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := l.record("sample"); err == nil {
		t.Error("two pass for one")
	}
	got, err := l.record("hang_detected")
	if err != nil || got.TS != 5 || got.Deadline != 4 || got.Kind != "idle" || got.Evidence.Finding != "confirmed" {
		t.Errorf("%+v, %v", got, err)
	}
}
