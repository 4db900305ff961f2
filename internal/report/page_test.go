package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var pages = flag.String("pages", "", "leave the pages of the tests in this folder, to be looked at")

// render makes the page of a story.
func render(t testing.TB, name string, s *Story) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, s); err != nil {
		t.Fatal(err)
	}
	if *pages != "" {
		if err := os.WriteFile(filepath.Join(*pages, name+".html"), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func TestPages(t *testing.T) {
	for name, s := range map[string]*Story{"hang": hang(), "good": good(), "killed": killed(), "huge": huge(100_000, 20_000), "empty": {}} {
		render(t, name, s)
	}
}
