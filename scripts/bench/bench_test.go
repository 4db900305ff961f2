package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
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
