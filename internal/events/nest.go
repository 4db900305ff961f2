package events

// skipValue steps over the value at b[i], which lies inside depth containers.
func skipValue(b []byte, i, depth int) (end int, seen uint64) {
	if uint(i) >= uint(len(b)) {
		return -1, 0
	}
	switch b[i] {
	case '"':
		return skipString(b, i+1)
	case '{', '[':
		return skipContainer(b, i, depth)
	}
	return skipScalar(b, i), 0
}

// skipContainer steps over an object or an array with all that is in it. It
// keeps a stack of its own: ten thousand levels of recursion would grow the
// goroutine's by megabytes, and the bits of the usual few stay in one word.
func skipContainer(b []byte, i, depth int) (end int, seen uint64) {
	open := nest{room: maxDepth - depth}
	for uint(i) < uint(len(b)) {
		s := uint64(0)
		switch c := b[i]; c {
		case '"':
			i, s = skipString(b, i+1)
		case '{', '[':
			if !open.push(c == '{') {
				return -1, seen
			}
			i = skipSpace(b, i+1)
			if uint(i) < uint(len(b)) && b[i] == c+2 { // in ASCII '}' is '{'+2, and ']' is '['+2
				break
			}
			if c == '{' {
				_, i, s = skipKey(b, i)
				seen |= s
			}
			continue
		default:
			i = skipScalar(b, i)
		}
		seen |= s
		if i, s = open.next(b, i); open.depth == 0 || i < 0 {
			return i, seen
		}
		seen |= s
	}
	return -1, seen
}

// nest knows of every open container whether it is an object.
type nest struct {
	room  int      // how many more may be opened
	depth int      // how many are open
	bits  uint64   // of the innermost up to 64, the innermost lowest
	outer []uint64 // of the others, by 64
}

func (n *nest) push(object bool) bool {
	if n.room == 0 {
		return false
	}
	if n.depth > 0 && n.depth%64 == 0 {
		n.outer = append(n.outer, n.bits)
	}
	n.room--
	n.depth++
	n.bits <<= 1
	if object {
		n.bits |= 1
	}
	return true
}

func (n *nest) pop() {
	n.room++
	n.depth--
	n.bits >>= 1
	if last := len(n.outer) - 1; last >= 0 && n.depth%64 == 0 {
		n.bits, n.outer = n.outer[last], n.outer[:last]
	}
}

// next goes from the end of a value to the beginning of the next one, over the
// ends of all containers that close between them, or to the end of the last.
func (n *nest) next(b []byte, i int) (next int, seen uint64) {
	for {
		i = skipSpace(b, i)
		if uint(i) >= uint(len(b)) {
			return -1, 0
		}
		object := n.bits&1 != 0
		switch c := b[i]; {
		case c == ',' && object:
			_, next, seen = skipKey(b, skipSpace(b, i+1))
			return next, seen
		case c == ',':
			return skipSpace(b, i+1), 0
		case c == '}' && object, c == ']' && !object:
			i++
		default:
			return -1, 0
		}
		if n.pop(); n.depth == 0 {
			return i, 0
		}
	}
}
