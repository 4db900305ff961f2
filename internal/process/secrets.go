package process

import "bytes"

// maskedWithin is a text, such as the command of a shell, as it may be shown: what
// gives itself away as a secret in it is left out.
func maskedWithin(s string) string {
	spans := Secrets([]byte(s), false, nil)
	if len(spans) == 0 {
		return s
	}
	var b []byte
	end := 0
	for _, span := range spans {
		if span[0] < end {
			continue
		}
		b = append(append(b, s[end:span[0]]...), mask...)
		end = span[1]
	}
	return string(append(b, s[end:]...))
}

const mask = "***"

// Secrets appends, in order, where something stands in the text that gives
// itself away as a secret: the password in a URL, an assignment to a name that
// says what it is, a bearer's token, a flag. inJSON says that the text is one of
// JSON, in which a quote that belongs to a string has a backslash before it. It
// is one pass over the text.
func Secrets(text []byte, inJSON bool, spans [][2]int) [][2]int {
	s := secretScan{text, inJSON}
	end := 0 // of the last one: none begins within another
	for i := 0; i < len(text); i++ {
		var from, to int
		switch text[i] | 0x20 {
		case ':':
			from, to = s.url(i)
		case 'k':
			from, to = s.named(i, "key")
		case 't':
			from, to = s.named(i, "token")
		case 's':
			from, to = s.named(i, "secret")
		case 'p':
			if from, to = s.named(i, "password"); to == 0 {
				from, to = s.named(i, "passwd")
			}
		case 'b':
			from, to = s.bearer(i)
		}
		if to > from && from >= end {
			spans = append(spans, [2]int{from, to})
			i, end = to-1, to
		}
	}
	return spans
}

type secretScan struct {
	text   []byte
	inJSON bool
}

func (s *secretScan) at(i int) byte {
	if i < 0 || i >= len(s.text) {
		return 0
	}
	return s.text[i]
}

func (s *secretScan) word(i int, lower string) bool {
	if len(s.text)-i < len(lower) {
		return false
	}
	for j := range len(lower) {
		if s.text[i+j]|0x20 != lower[j] {
			return false
		}
	}
	return true
}

func blank(c byte) bool { return c <= ' ' }

// url finds the password behind the colons of a scheme.
func (s *secretScan) url(i int) (from, to int) {
	if s.at(i+1) != '/' || s.at(i+2) != '/' {
		return 0, 0
	}
	for j := i + 3; j < len(s.text); j++ {
		switch c := s.text[j]; {
		case c == '@' && from > 0 && j > from:
			return from, j
		case c == ':' && from == 0:
			from = j + 1
		case c == '/' || c == '@' || c == '"' || blank(c):
			return 0, 0
		}
	}
	return 0, 0
}

// named finds the value behind a name that ends in the word: NAME_KEY=value,
// --some-token value.
func (s *secretScan) named(i int, word string) (from, to int) {
	if !s.word(i, word) {
		return 0, 0
	}
	end := i + len(word)
	next := s.at(end)
	if next != '=' && next != ' ' {
		return 0, 0
	}
	if next == '=' && s.variable(i, word) || s.flag(i, word) {
		return s.value(end + 1)
	}
	return 0, 0
}

// before is where the name begins that goes on at i.
func (s *secretScan) before(i int, dash bool) int {
	for i > 0 {
		c := s.text[i-1]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
		if !letter && c != '_' && !(dash && c == '-') {
			break
		}
		i--
	}
	return i
}

func (s *secretScan) variable(i int, word string) bool {
	start := s.before(i, false)
	prefix := bytes.ToLower(s.text[start:i])
	if s.inJSON && s.at(start-1) == '\\' && len(prefix) > 0 { // the letter of \n
		prefix = prefix[1:]
	}
	if word == "key" {
		prefix = bytes.TrimSuffix(prefix, []byte("api"))
	}
	return len(prefix) == 0 || prefix[len(prefix)-1] == '_'
}

func (s *secretScan) flag(i int, word string) bool {
	start := s.before(i, true)
	prefix := bytes.ToLower(s.text[start:i])
	before := s.at(start - 1)
	if s.inJSON && before == '\\' && len(prefix) > 0 {
		prefix, before = prefix[1:], ' '
	}
	if word == "key" {
		rest := bytes.TrimSuffix(bytes.TrimSuffix(prefix, []byte("-")), []byte("api"))
		if len(rest) == len(prefix) || len(rest)+1 == len(prefix) {
			return false // not every key is a secret one
		}
	}
	return len(prefix) > 0 && prefix[0] == '-' && (blank(before) || before == '"' || before == '\'' || before == '`')
}

func (s *secretScan) bearer(i int) (from, to int) {
	if !s.word(i, "bearer") || s.before(i, false) != i {
		return 0, 0
	}
	from = i + len("bearer")
	for from < len(s.text) && blank(s.text[from]) {
		from++
	}
	if from == i+len("bearer") {
		return 0, 0
	}
	return s.value(from)
}

// value is where a value ends that begins at from, or stands in quotes there.
func (s *secretScan) value(from int) (int, int) {
	var quote byte
	switch c := s.at(from); {
	case c == '\\' && s.at(from+1) == '"':
		from += 2
		quote = '"'
	case c == '\'' || c == '"' && !s.inJSON:
		from++
		quote = c
	}
	for to := from; to < len(s.text); to++ {
		switch c := s.text[to]; {
		case c == '"' || c == '\'' && quote != '"' || c == '\n' || quote == 0 && blank(c):
			return from, to
		case c == '\\' && s.ends(s.at(to+1), quote):
			return from, to
		case c == '\\':
			to++ // what it escapes
		}
	}
	return from, len(s.text)
}

// ends reports whether a value ends before a backslash and this character.
func (s *secretScan) ends(c, quote byte) bool {
	switch c {
	case '"':
		return true
	case 'n', 'r', 't':
		return s.inJSON && quote == 0
	}
	return false
}
