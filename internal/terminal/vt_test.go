package terminal

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/rivo/uniseg"
)

// vt is a terminal of a few rows that understands what the screen writes, and
// fails on everything else.
type vt struct {
	mu            sync.Mutex
	width, height int
	cells         [][]string
	y, x          int
	pending       bool // the last column is written, the next character wraps
	written       int  // bytes
	writes        int
}

func newVT(width, height int) *vt {
	v := &vt{width: width, height: height}
	for range height {
		v.cells = append(v.cells, make([]string, width))
	}
	return v
}

var vtSequence = regexp.MustCompile(`^\x1b\[(\??)([0-9]*)([A-Za-z])`)

func (v *vt) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.written += len(p)
	v.writes++
	for s := string(p); s != ""; {
		if m := vtSequence.FindStringSubmatch(s); m != nil {
			s = s[len(m[0]):]
			if m[1] == "" {
				v.sequence(m[2], m[3])
			}
			continue
		}
		cluster, rest, width, _ := uniseg.FirstGraphemeClusterInString(s, -1)
		s = rest
		for _, c := range strings.Split(strings.ReplaceAll(cluster, "\r\n", "\r|\n"), "|") {
			v.put(c, width)
		}
	}
	return len(p), nil
}

func (v *vt) sequence(arg, final string) {
	n, err := strconv.Atoi(arg)
	if err != nil {
		n = 1
	}
	switch final {
	case "A":
		v.y = max(v.y-n, 0)
	case "B":
		v.y = min(v.y+n, v.height-1)
	case "C":
		v.x = min(v.x+n, v.width-1)
	case "K":
		v.erase(v.y, v.x)
	case "J":
		v.erase(v.y, v.x)
		for y := v.y + 1; y < v.height; y++ {
			v.erase(y, 0)
		}
	case "m":
		return
	default:
		panic(fmt.Sprintf("a sequence that was not expected: %s%s", arg, final))
	}
	v.pending = false
}

func (v *vt) erase(y, x int) {
	for ; x < v.width; x++ {
		v.cells[y][x] = ""
	}
}

func (v *vt) put(c string, width int) {
	switch {
	case c == "\r":
		v.x, v.pending = 0, false
	case c == "\n":
		v.x, v.pending = 0, false // the kernel adds the carriage return
		v.down()
	case c == "\t":
		v.x, v.pending = min((v.x/8+1)*8, v.width-1), false
	default:
		if v.pending || v.x+width > v.width {
			v.x = 0
			v.down()
		}
		v.cells[v.y][v.x] = c
		for i := 1; i < width; i++ {
			v.cells[v.y][v.x+i] = "\x00" // the other half
		}
		v.x += width
		if v.pending = v.x >= v.width; v.pending {
			v.x = v.width - 1
		}
	}
}

func (v *vt) down() {
	if v.y++; v.y == v.height {
		v.y--
		v.cells = append(v.cells[1:], make([]string, v.width))
	}
}

// String is what stands on the screen.
func (v *vt) String() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var lines []string
	for _, cells := range v.cells {
		var b strings.Builder
		for _, c := range cells {
			b.WriteString(cellText(c))
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

func cellText(c string) string {
	switch c {
	case "":
		return " "
	case "\x00":
		return ""
	}
	return c
}
