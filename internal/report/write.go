package report

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Formats are what Write can make of a story.
var Formats = []string{"html", "md", "junit", "trace", "json"}

// Write writes the story in one of the Formats.
func Write(w io.Writer, format string, s *Story) error {
	out := bufio.NewWriterSize(w, 64<<10)
	var err error
	switch format {
	case "html":
		err = HTML(out, s)
	case "md":
		err = Markdown(out, s, MarkdownMost)
	case "junit":
		err = JUnit(out, s)
	case "trace":
		err = Trace(out, s)
	case "json":
		err = json.NewEncoder(out).Encode(s)
	default:
		err = fmt.Errorf("format %q: not known; use %s", format, strings.Join(Formats, ", "))
	}
	return errors.Join(err, out.Flush())
}

// slowest are the calls that took longest, at most so many.
func (s *Story) slowest(most int) []*Item {
	var calls []*Item
	for i := range s.Items {
		if s.Items[i].Lane == Tool {
			calls = append(calls, &s.Items[i])
		}
	}
	slices.SortStableFunc(calls, func(a, b *Item) int {
		return cmp.Compare(b.End.Sub(b.Start.Time), a.End.Sub(a.Start.Time))
	})
	return calls[:min(len(calls), most)]
}

// verdict is the decision that ended a turn, the last one of them; nil where
// there was none.
func (s *Story) verdict() *Verdict {
	for i := len(s.Verdicts) - 1; i >= 0; i-- {
		if s.Verdicts[i].What != "suspected" {
			return &s.Verdicts[i]
		}
	}
	return nil
}
