package markdown

import "strings"

// maxBlock is how long a block may become that is laid out. A longer one is
// wrapped as it is: no person reads it, and parsers are slow on what was made
// to make them slow.
const maxBlock = 16 << 10

// Stream lays out text that arrives in pieces.
type Stream struct {
	*Renderer
	block   strings.Builder // whole lines of the block that is not finished
	part    []byte          // the beginning of a line
	list    bool            // the block is a list, which may go on behind an empty line
	blank   bool            // the last line of it was empty
	fence   string          // that closes the code block we are in, or the one inside the list
	lang    string          // of the code
	literal bool            // the block has become too long to be laid out
	said    bool            // something went out before
}

// NewStream begins a text of its own.
func NewStream(r *Renderer) *Stream { return &Stream{Renderer: r} }

// Add takes the next piece, which may end anywhere, and returns what has been
// finished by it. Control characters other than line feed and tab must have
// been taken out.
func (s *Stream) Add(piece string) string {
	var out strings.Builder
	for {
		line, rest, whole := strings.Cut(piece, "\n")
		s.part = append(s.part, line...)
		if !whole {
			break
		}
		s.take(&out, string(s.part))
		s.part, piece = s.part[:0], rest
	}
	if len(s.part) > maxBlock {
		s.tooLong(&out)
	}
	return out.String()
}

// Flush returns the rest. The next piece begins a text of its own.
func (s *Stream) Flush() string {
	var out strings.Builder
	if len(s.part) > 0 {
		s.take(&out, string(s.part))
	}
	s.end(&out)
	*s = Stream{Renderer: s.Renderer}
	return out.String()
}

// take takes a line.
func (s *Stream) take(out *strings.Builder, line string) {
	if s.fence != "" {
		s.code(out, line)
		return
	}
	blank := strings.TrimSpace(line) == ""
	indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
	mark, lang := fence(line)
	switch {
	case blank && !s.list:
		s.end(out)
		return
	case s.list && s.blank && !blank && !indented && !isItem(line):
		s.end(out)
	}
	switch {
	case mark != "" && !(s.list && indented):
		s.end(out)
		s.fence, s.lang = mark, lang
		s.open(out)
		return
	case mark != "":
		s.fence = mark
	case s.block.Len() == 0 && !s.literal:
		s.list = isItem(line)
	}
	s.blank = blank
	s.keep(out, line)
}

// code takes a line of a code block. At the left it is shown at once; inside
// of a list it belongs to the list.
func (s *Stream) code(out *strings.Builder, line string) {
	ended := closes(line, s.fence)
	if s.list {
		if ended {
			s.fence = ""
		}
		s.keep(out, line)
		return
	}
	if ended {
		s.fence = ""
		return
	}
	out.WriteString(s.codeLine(line, s.lang) + "\n")
}

func (s *Stream) keep(out *strings.Builder, line string) {
	switch {
	case s.literal:
		s.plain(out, line)
	case s.block.Len()+len(line) > maxBlock:
		s.open(out)
		s.literal = true
		s.plain(out, strings.TrimSuffix(s.block.String(), "\n"))
		s.plain(out, line)
		s.block.Reset()
	default:
		s.block.WriteString(line)
		s.block.WriteByte('\n')
	}
}

// tooLong passes on the beginning of a line that does not end.
func (s *Stream) tooLong(out *strings.Builder) {
	cut := len(s.part)
	for cut > 0 && s.part[cut-1] != ' ' && cut > len(s.part)-1024 {
		cut--
	}
	if s.part[cut-1] != ' ' {
		cut = len(s.part)
	}
	line := string(s.part[:cut])
	s.part = append(s.part[:0], s.part[cut:]...)
	if s.fence != "" && !s.list {
		out.WriteString(s.codeLine(line, s.lang) + "\n")
		return
	}
	s.keep(out, line)
}

// plain shows a line as it is.
func (s *Stream) plain(out *strings.Builder, line string) {
	for _, l := range wrap([]span{{line, 0}}, s.columns()) {
		out.WriteString(s.paint(l) + "\n")
	}
}

// end finishes the block.
func (s *Stream) end(out *strings.Builder) {
	source := s.block.String()
	s.block.Reset()
	s.list, s.blank, s.literal, s.fence = false, false, false, ""
	if source == "" {
		return
	}
	lines := s.render(source, s.columns())
	if len(lines) == 0 {
		return
	}
	s.open(out)
	out.WriteString(strings.Join(lines, "\n") + "\n")
}

// open puts an empty line between blocks.
func (s *Stream) open(out *strings.Builder) {
	if s.said {
		out.WriteByte('\n')
	}
	s.said = true
}

// fence returns the marks that close the code block which the line opens, and
// its language.
func fence(line string) (mark, language string) {
	line = strings.TrimLeft(line, " \t")
	for _, c := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, c)
		if n := len(line) - len(rest); n >= 3 && !(c == "`" && strings.Contains(rest, "`")) {
			language, _, _ = strings.Cut(strings.TrimSpace(rest), " ")
			return line[:n], strings.ToLower(language)
		}
	}
	return "", ""
}

func closes(line, mark string) bool {
	line = strings.TrimSpace(line)
	return len(line) >= len(mark) && strings.Trim(line, mark[:1]) == ""
}

// isItem reports whether a line begins an item of a list.
func isItem(line string) bool {
	line = strings.TrimLeft(line, " ")
	digits := len(line) - len(strings.TrimLeft(line, "0123456789"))
	if digits > 0 && digits < 10 {
		line = line[digits:]
		return strings.HasPrefix(line, ". ") || strings.HasPrefix(line, ") ")
	}
	return strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* ") || strings.HasPrefix(line, "+ ")
}
