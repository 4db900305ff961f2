// Package internal holds no code of its own, only the test of what its packages
// may know of each other.
package internal

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "cursor-wrap"

// layers is the table: a package may import those that stand above it, and
// nothing else of this module. One that does not exist yet is fine.
var layers = []string{
	"internal/events",
	"internal/tree",
	"internal/monitor",
	"internal/display",
	"internal/markdown",
	"internal/format",
	"internal/journal",
	"internal/process",
	"internal/terminal",
	"internal/supervise",
	"internal/session",
	"internal/registry",
	"internal/tmux",
	"internal/report",
	"cmd/cursor-wrap",
}

// alone reports whether a program is to use nothing of this module, so that it
// cannot share a mistake with it: the scripted agent, and what measures and
// attacks the wrapper from outside.
func alone(dir string) bool { return dir == "cmd/fakeagent" || strings.HasPrefix(dir, "scripts/") }

// pure are the packages without a clock, a file, a process or a goroutine, and
// everything that they may import of the standard library. time is for moments
// that are handed in.
var pure = map[string][]string{
	"internal/events":  {"bytes", "encoding/binary", "encoding/json", "math/bits", "strconv", "strings", "time", "unicode", "unicode/utf16", "unicode/utf8"},
	"internal/tree":    {"cmp", "encoding/json", "fmt", "maps", "slices", "strconv", "strings", "time"},
	"internal/monitor": {"cmp", "encoding/json", "fmt", "maps", "slices", "strings", "time"},

	"internal/display":  {"fmt", "strings", "unicode", "unicode/utf8"},
	"internal/markdown": {"bytes", "strconv", "strings"},
}

// outside are the modules of others that a package may import, each with its
// reason.
var outside = map[string][]string{
	"internal/process": {
		"golang.org/x/sys",            // system calls: it is the package that knows them
		"github.com/creack/pty",       // the agent's terminal
		"github.com/shirou/gopsutil/", // processes and their counters
		// The lines to the kernel that tells of TCP sockets. Its package nl alone,
		// which costs 65 KB and no start-up; the whole of it, or
		// mdlayher/netlink, costs 155 KB, and the latter panics over NLDEBUG.
		"github.com/vishvananda/netlink/nl",
	},
	"internal/journal": {"golang.org/x/sys"},       // writev, fdatasync and flock of its file
	"internal/display": {"github.com/rivo/uniseg"}, // where a character that a reader sees ends, and how wide it is
	"internal/markdown": {
		"github.com/yuin/goldmark/ast",    // the parser below glamour, without its
		"github.com/yuin/goldmark/parser", // renderers and extensions: what they
		"github.com/yuin/goldmark/text",   // set up at the start is half a
		"github.com/yuin/goldmark/util",   // millisecond more
	},
	"internal/terminal": {
		"golang.org/x/term",      // what is a terminal, and its size
		"golang.org/x/sys",       // its modes, job control, waiting for keys, flock of the history
		"github.com/rivo/uniseg", // where a character ends and how many cells it takes
	},
	"internal/registry": {"golang.org/x/sys"}, // flock of a run's record, and who sits at the other end of a socket
	"cmd/cursor-wrap":   {"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term", "golang.org/x/sys"},
}

// clocks may ask what time it is; everybody else is told.
var clocks = []string{
	"internal/process",   // how long a teardown took, and the time it gives
	"internal/supervise", // the one clock of a run, and the pause in a line
	"internal/registry",  // how long who asks may take, and how old a record is
	"cmd/cursor-wrap",
}

// source is a file of the module that is no test, for whatever system.
type source struct {
	dir, name string
	file      *ast.File
}

func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	fset := token.NewFileSet()
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		switch base := path.Base(filepath.ToSlash(name)); {
		case err != nil:
			return err
		case d.IsDir() && name != ".." && (strings.HasPrefix(base, ".") || base == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // somebody is at work beside us
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel("..", filepath.Dir(name))
		all = append(all, source{filepath.ToSlash(rel), filepath.Base(name), f})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("only %d source files: is this the module?", len(all))
	}
	return all
}

func (s source) imports() []string {
	var all []string
	for _, spec := range s.file.Imports {
		p, _ := strconv.Unquote(spec.Path.Value) // it was parsed
		all = append(all, p)
	}
	return all
}

// wrong is what is wrong with an import, or nothing.
func wrong(dir, imported string) string {
	first, _, _ := strings.Cut(imported, "/")
	switch {
	case first == module:
		return wrongOwn(dir, strings.TrimPrefix(imported, module+"/"))
	case strings.Contains(first, "."):
		if alone(dir) {
			return ""
		}
		for _, prefix := range outside[dir] {
			if imported == prefix || strings.HasPrefix(imported, strings.TrimSuffix(prefix, "/")+"/") {
				return ""
			}
		}
		return "it is not listed for this package"
	}
	if list, ok := pure[dir]; ok && !slices.Contains(list, imported) {
		return "the package is pure"
	}
	return ""
}

func wrongOwn(dir, imported string) string {
	me, it := slices.Index(layers, dir), slices.Index(layers, imported)
	switch {
	case alone(dir):
		return "the program stands alone"
	case me < 0:
		return "the package is not in the table"
	case it < 0:
		return "what is imported is not in the table"
	case it >= me:
		return "it does not stand above the package"
	}
	return ""
}

func TestImports(t *testing.T) {
	for _, s := range sources(t) {
		for _, imported := range s.imports() {
			if why := wrong(s.dir, imported); why != "" {
				t.Errorf("%s/%s imports %s: %s", s.dir, s.name, imported, why)
			}
		}
	}
}

// TestEverybodyIsInTheTable: a new package says where it stands.
func TestEverybodyIsInTheTable(t *testing.T) {
	for _, s := range sources(t) {
		if !slices.Contains(layers, s.dir) && !alone(s.dir) {
			t.Errorf("%s/%s: the package is not in the table", s.dir, s.name)
		}
	}
}

// TestPurity: no goroutine, channel or select in the pure packages.
func TestPurity(t *testing.T) {
	for _, s := range sources(t) {
		if _, ok := pure[s.dir]; !ok {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.GoStmt, *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
				t.Errorf("%s/%s: %T in a pure package", s.dir, s.name, n)
			}
			return true
		})
	}
}

// TestTimeIsAnArgument: who asks what time it is.
func TestTimeIsAnArgument(t *testing.T) {
	asks := []string{"Now", "Since", "Until"}
	for _, s := range sources(t) {
		_, isPure := pure[s.dir]
		if slices.Contains(clocks, s.dir) || alone(s.dir) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := sel.X.(*ast.Ident); !ok || pkg.Name != "time" {
				return true
			}
			timer := slices.Contains([]string{"After", "AfterFunc", "NewTimer", "NewTicker", "Sleep", "Tick"}, sel.Sel.Name)
			if slices.Contains(asks, sel.Sel.Name) || isPure && timer {
				t.Errorf("%s/%s uses time.%s", s.dir, s.name, sel.Sel.Name)
			}
			return true
		})
	}
}

// TestTableBites: the table refuses what it is there to refuse.
func TestTableBites(t *testing.T) {
	for _, row := range []struct {
		dir, imports string
		fine         bool
	}{
		{"internal/monitor", "cursor-wrap/internal/events", true},
		{"internal/monitor", "time", true},
		{"internal/process", "golang.org/x/sys/unix", true},
		{"internal/journal", "golang.org/x/sys/unix", true},
		{"internal/process", "github.com/shirou/gopsutil/v3/process", true},
		{"cmd/cursor-wrap", "cursor-wrap/internal/report", true},
		{"internal/monitor", "cursor-wrap/internal/format", false},
		{"internal/monitor", "cursor-wrap/internal/monitor", false},
		{"internal/process", "cursor-wrap/internal/supervise", false},
		{"internal/monitor", "os", false},
		{"internal/events", "net", false},
		{"internal/tree", "sync", false},
		{"internal/monitor", "golang.org/x/sys/unix", false},
		{"internal/supervise", "golang.org/x/sys/unix", false},
		{"internal/supervise", "github.com/shirou/gopsutil/v3/process", false},
		{"internal/process", "golang.org/x/system", false},
		{"cmd/fakeagent", "cursor-wrap/internal/events", false},
		{"scripts/bench", "cursor-wrap/internal/events", false},
		{"internal/new", "cursor-wrap/internal/events", false},
		{"internal/supervise", "cursor-wrap/internal/new", false},
	} {
		if why := wrong(row.dir, row.imports); (why == "") != row.fine {
			t.Errorf("%s imports %s: %q", row.dir, row.imports, why)
		}
	}
	for _, dir := range layers {
		if _, err := os.Stat(filepath.Join("..", dir)); errors.Is(err, fs.ErrNotExist) {
			t.Logf("%s does not exist yet", dir)
		}
	}
}
