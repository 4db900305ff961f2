package journal

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// parser takes records apart. It goes by the frame that the writer gives every
// record, byte by byte, and not by JSON: only so are a raw line's own bytes
// exactly what stands between `"raw":` and the closing brace, and no key inside
// them can be mistaken for one of ours. Only raw records have `recv_ts` behind
// the message, because Record puts `ts` there.
type parser struct {
	text []byte // what was decoded for the present record
}

// parse returns the record, its message as far as it could be read, and whether
// the line is a whole record.
func (p *parser) parse(line []byte) (rec Record, msg string, ok bool) {
	rest, ok := frame(line, &rec)
	if !ok {
		return rec, "", false
	}
	if rec.Msg == rawEvent || rec.Msg == rawPart {
		if body, isRaw := bytes.CutPrefix(rest, []byte(`,"recv_ts":`)); isRaw {
			return rec, rec.Msg, p.raw(body, &rec)
		}
	}
	rec.Fields = line
	return rec, rec.Msg, json.Valid(line)
}

// frame reads what all records begin with and returns what follows.
func frame(line []byte, rec *Record) (rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(line, []byte(`{"time":"`))
	if !ok {
		return nil, false
	}
	at, rest, ok := bytes.Cut(rest, []byte(`","level":"`))
	if !ok || len(at) > len(timeLayout) {
		return nil, false
	}
	level, rest, ok := bytes.Cut(rest, []byte(`","msg":"`))
	if !ok || rec.Level.UnmarshalText(level) != nil {
		return nil, false
	}
	n := stringEnd(rest)
	if n < 0 {
		return nil, false
	}
	msg, ok := unescape(nil, rest[:n])
	if !ok {
		return nil, false
	}
	rec.Msg = string(msg)
	var err error
	rec.At, err = time.Parse(timeLayout, string(at))
	return rest[n+1:], err == nil
}

// raw reads the rest of a raw record, from the value of recv_ts on.
func (p *parser) raw(b []byte, rec *Record) bool {
	ts, b, ok := bytes.Cut(b, []byte{','})
	if !ok {
		return false
	}
	ms, err := strconv.ParseInt(string(ts), 10, 64)
	if err != nil {
		return false
	}
	rec.Recv = time.UnixMilli(ms).UTC()
	rec.End = rec.Msg == rawEvent
	if rec.Msg == rawPart {
		b, rec.End = bytes.CutPrefix(b, []byte(`"end":true,`))
	}
	if rec.End {
		rec.EOL = "\n"
		if eol, has := bytes.CutPrefix(b, []byte(`"eol":"`)); has {
			n := stringEnd(eol)
			if n < 0 {
				return false
			}
			text, ok := unescape(nil, eol[:n])
			if !ok {
				return false
			}
			rec.EOL = string(text)
			if b, ok = bytes.CutPrefix(eol[n+1:], []byte{','}); !ok {
				return false
			}
		}
	}
	return p.bytes(b, rec)
}

// bytes reads the last field, which holds the line. A record that was cut can
// end in a brace too, one of the line's own: each form is checked as a whole.
func (p *parser) bytes(b []byte, rec *Record) (ok bool) {
	b, ok = bytes.CutSuffix(b, []byte{'}'})
	if !ok {
		return false
	}
	if raw, is := bytes.CutPrefix(b, []byte(`"raw":`)); is {
		rec.Raw = raw
		return json.Valid(raw)
	}
	b, ok = bytes.CutSuffix(b, []byte{'"'})
	if !ok {
		return false
	}
	if text, is := bytes.CutPrefix(b, []byte(`"raw_text":"`)); is {
		rec.Raw, ok = unescape(p.text[:0], text)
	} else if data, is := bytes.CutPrefix(b, []byte(`"raw_b64":"`)); is {
		var err error
		rec.Raw, err = base64.StdEncoding.AppendDecode(p.text[:0], data)
		ok = err == nil
	} else {
		return false
	}
	p.text = rec.Raw
	return ok
}

// stringEnd is where the JSON string ends whose inside b begins with, or -1.
func stringEnd(b []byte) int {
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return -1
}

// unescape appends what the inside of a JSON string means. It takes every
// escape that JSON has, and refuses what cannot stand inside a string.
func unescape(dst, s []byte) ([]byte, bool) {
	for {
		n := clean(s)
		dst = append(dst, s[:n]...)
		if n == len(s) {
			return dst, true
		}
		if s[n] != '\\' || n+1 == len(s) {
			return dst, false
		}
		c := s[n+1]
		s = s[n+2:]
		switch c {
		case '"', '\\', '/':
			dst = append(dst, c)
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, ok := hex4(s)
			if !ok {
				return dst, false
			}
			s = s[4:]
			if utf16.IsSurrogate(r) && len(s) >= 6 && s[0] == '\\' && s[1] == 'u' {
				if low, ok := hex4(s[2:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
					r, s = utf16.DecodeRune(r, low), s[6:]
				}
			}
			dst = utf8.AppendRune(dst, r)
		default:
			return dst, false
		}
	}
}

func hex4(s []byte) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(s[:4]), 16, 16)
	return rune(n), err == nil
}
