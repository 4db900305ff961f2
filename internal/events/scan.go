package events

// field numbers the top-level members that Parse needs.
type field uint8

const (
	fieldType field = iota
	fieldSubtype
	fieldSessionID
	fieldCallID
	fieldModelCallID
	fieldToolCall
	fieldIsError
	fieldMessage
	fieldTaskID
	fieldStatus
	fields // how many there are; as a field: none of them
)

// fieldOf compares exactly, as JSON.parse does and encoding/json does not.
func fieldOf(key []byte) field {
	switch string(key) {
	case "type":
		return fieldType
	case "subtype":
		return fieldSubtype
	case "session_id":
		return fieldSessionID
	case "call_id":
		return fieldCallID
	case "model_call_id":
		return fieldModelCallID
	case "tool_call":
		return fieldToolCall
	case "is_error":
		return fieldIsError
	case "message":
		return fieldMessage
	case "task_id":
		return fieldTaskID
	case "status":
		return fieldStatus
	}
	return fields
}

// scanner checks a line in one pass and notes on the way what Parse needs.
type scanner struct {
	line  []byte
	seen  uint64         // what skipString told, gathered over the whole line
	value [fields][]byte // where a key comes twice, the last one's, as in JSON.parse
}

// scan reports whether the line is one JSON value, exactly as strictly as
// json.Valid. Members that stand before an error are noted all the same.
func (s *scanner) scan() bool {
	i := skipSpace(s.line, 0)
	if i < len(s.line) && s.line[i] == '{' {
		i = s.object(i + 1)
	} else {
		i = s.skip(i, 0)
	}
	return i >= 0 && skipSpace(s.line, i) == len(s.line)
}

// object notes the members of the outermost object, of which the brace has been
// read, and returns where it ends, or -1.
func (s *scanner) object(i int) int {
	b := s.line
	i = skipSpace(b, i)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		f, start := s.key(i)
		if start < 0 {
			return -1
		}
		if i = s.skip(start, 1); i < 0 {
			return -1
		}
		if f < fields {
			s.value[f] = b[start:i]
		}
		i = skipSpace(b, i)
		if i >= len(b) || b[i] != ',' {
			break
		}
		i = skipSpace(b, i+1)
	}
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	return -1
}

// key reads a key and its colon and returns where the value begins, or -1.
func (s *scanner) key(i int) (field, int) {
	end, colon, seen := skipKey(s.line, i)
	s.seen |= seen
	switch {
	case colon < 0:
		return fields, -1
	case seen&escaped == 0:
		return fieldOf(s.line[i+1 : end-1]), colon
	}
	return fieldOf([]byte(unquote(s.line[i:end]))), colon
}

// skip returns where the value at i ends, or -1. The value lies inside depth
// containers.
func (s *scanner) skip(i, depth int) int {
	end, seen := skipValue(s.line, i, depth)
	s.seen |= seen
	return end
}
