package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"cursor-wrap/internal/process"
)

// Mask hides secrets in what is shown: the values of environment variables
// whose names say that they are, and what gives itself away as one. The log
// itself keeps everything.
type Mask struct {
	values  [][]byte // in all their forms, the longest first
	longest int      // in bytes
}

// hidden stands where a secret stood.
const hidden = "***"

// leastSecret is the length from which a value is taken for a secret: shorter
// ones would be found everywhere.
const leastSecret = 6

// NewMask makes a mask of an environment, a list of NAME=value.
func NewMask(environ []string) *Mask {
	m := &Mask{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !secretName(name) {
			continue
		}
		m.add(value)
		if lines := strings.Split(value, "\n"); len(lines) > 1 { // a private key: each of its lines
			for _, line := range lines {
				if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") {
					m.add(line)
				}
			}
		}
	}
	slices.SortFunc(m.values, func(a, b []byte) int { return cmp.Or(cmp.Compare(len(b), len(a)), bytes.Compare(a, b)) })
	m.values = slices.CompactFunc(m.values, bytes.Equal)
	if len(m.values) > 0 {
		m.longest = len(m.values[0])
	}
	return m
}

func secretName(name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc([]string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD"}, func(s string) bool {
		return strings.Contains(name, s)
	})
}

// add takes a value in the forms in which it may be written.
func (m *Mask) add(value string) {
	if trivial(value) {
		return
	}
	m.values = append(m.values, []byte(value), []byte(url.QueryEscape(value)), []byte(url.PathEscape(value)))
	for _, form := range inJSON(value) {
		m.values = append(m.values, []byte(form))
		for _, again := range inJSON(form) { // JSON within JSON
			m.values = append(m.values, []byte(again))
		}
	}
}

// inJSON are the ways in which writers of JSON put a text between its quotes.
func inJSON(s string) []string {
	b, _ := json.Marshal(s) // a string always encodes
	safe := string(b[1 : len(b)-1])
	plain := strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(safe)
	ascii := strconv.QuoteToASCII(s)
	return []string{safe, plain, strings.ReplaceAll(plain, "/", `\/`), ascii[1 : len(ascii)-1]}
}

// trivial reports whether a value says too little to be a secret, or is but the
// place of one.
func trivial(value string) bool {
	if len(value) < leastSecret || strings.TrimSpace(value) == "" {
		return true
	}
	switch strings.ToLower(value) {
	case "enabled", "disabled", "default", "always":
		return true
	}
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		return true
	}
	if !filepath.IsAbs(value) {
		return false
	}
	_, err := os.Stat(value)
	return err == nil
}

// Text is a text as it may be shown.
func (m *Mask) Text(s string) string {
	if spans := m.spans([]byte(s), false); len(spans) > 0 {
		return string(cover([]byte(s), spans))
	}
	return s
}

// raw is the beginning of a line, at most so many bytes of what may be shown.
// The secret that would be cut there is masked before.
func (m *Mask) raw(line []byte, most int) []byte {
	const beyond = 256 // for what gives itself away
	some := line
	if len(some) > most {
		some = some[:min(len(some), most+max(m.longest, beyond))]
	}
	spans := m.spans(some, len(line) > 0 && line[0] == '{')
	if len(spans) == 0 {
		return bytes.Clone(some[:min(len(some), most)])
	}
	shown := cover(some, spans)
	return shown[:min(len(shown), most)]
}

// text is the same for a text, at the boundary of a character.
func (m *Mask) text(s string, most int) string {
	const beyond = 256
	if len(s) <= most {
		return m.Text(s)
	}
	s = m.Text(s[:min(len(s), most+max(m.longest, beyond))])
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// spans are where secrets stand, in order and apart from each other.
func (m *Mask) spans(b []byte, inJSON bool) [][2]int {
	spans := process.Secrets(b, inJSON, nil)
	if m == nil || len(b) == 0 {
		return spans
	}
	for _, value := range m.values {
		for at := 0; ; {
			i := bytes.Index(b[at:], value)
			if i < 0 {
				break
			}
			spans = append(spans, [2]int{at + i, at + i + len(value)})
			at += i + len(value)
		}
	}
	slices.SortFunc(spans, func(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(b[1], a[1])) })
	apart := spans[:0]
	for _, s := range spans {
		if n := len(apart); n > 0 && s[0] < apart[n-1][1] {
			apart[n-1][1] = max(apart[n-1][1], s[1])
			continue
		}
		apart = append(apart, s)
	}
	return apart
}

func cover(b []byte, spans [][2]int) []byte {
	var out []byte
	end := 0
	for _, s := range spans {
		out = append(append(out, b[end:s[0]]...), hidden...)
		end = s[1]
	}
	return append(out, b[end:]...)
}

// words are the members that say one of a few words of our own.
var words = []string{"Outcome", "What", "Level", "Status", "Found", "Signal", "How", "By", "Witness", "State"}

// all masks every text within v, which a pointer leads to.
func (m *Mask) all(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			m.all(v.Elem())
		}
	case reflect.Slice:
		if k := v.Type().Elem().Kind(); k == reflect.Uint8 || k == reflect.Int64 {
			return
		}
		for i := range v.Len() {
			m.all(v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() || v.Type() == reflect.TypeFor[Event]() {
			return
		}
		for i := range v.NumField() {
			if !slices.Contains(words, v.Type().Field(i).Name) {
				m.all(v.Field(i))
			}
		}
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() { // the others are lists of words
			v.SetString(m.Text(v.String()))
		}
	}
}
