package report

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"strconv"

	"cursor-wrap/internal/display"
)

// Whatever goes into the page goes through the types of this file. Text and the
// values of attributes are escaped on their way out and nowhere else, so there
// is nothing to forget: only verbatim is written as it is, and that is for files
// of ours and for what an encoder has made.

// part is a piece of the page.
type part interface{ write(*bufio.Writer) }

// text is anybody's text. What could repaint, reverse or end the page is shown
// as what it is.
type text string

func (t text) write(w *bufio.Writer) { w.WriteString(html.EscapeString(display.Clean(string(t)))) }

func textf(format string, args ...any) text { return text(fmt.Sprintf(format, args...)) }

// verbatim is never anybody's text.
type verbatim string

func (v verbatim) write(w *bufio.Writer) { w.WriteString(string(v)) }

// attr is an attribute of the element that it is handed to. The name is ours.
type attr struct{ name, value string }

func (a attr) write(w *bufio.Writer) {
	w.WriteByte(' ')
	w.WriteString(a.name)
	w.WriteString(`="`)
	text(a.value).write(w)
	w.WriteByte('"')
}

func class(names string) attr { return attr{"class", names} }
func id(name string) attr     { return attr{"id", name} }

// num is an attribute that is a number.
func num(name string, n int) attr { return attr{name, strconv.Itoa(n)} }

// share is an attribute that is a part of the whole width, from 0 to 1.
func share(name string, part float64) attr {
	return attr{name, strconv.FormatFloat(float64(int64(part*1e6+0.5))/1e4, 'f', -1, 64) + "%"}
}

// parts are several, one behind the other; none are nothing.
type parts []part

func (p parts) write(w *bufio.Writer) {
	for _, one := range p {
		if one != nil {
			one.write(w)
		}
	}
}

// element has its attributes in front of what is in it.
type element struct {
	name  string
	attrs []attr
	inner parts
}

// el makes an element. Its name is ours; attributes and content may stand in any
// order.
func el(name string, all ...part) *element {
	e := &element{name: name}
	for _, one := range all {
		if a, ok := one.(attr); ok {
			e.attrs = append(e.attrs, a)
		} else {
			e.inner = append(e.inner, one)
		}
	}
	return e
}

// void are the elements that have no content and no end.
var void = map[string]bool{"meta": true, "link": true, "input": true, "br": true}

func (e *element) write(w *bufio.Writer) {
	w.WriteByte('<')
	w.WriteString(e.name)
	for _, a := range e.attrs {
		a.write(w)
	}
	w.WriteByte('>')
	if void[e.name] {
		return
	}
	e.inner.write(w)
	w.WriteString("</")
	w.WriteString(e.name)
	w.WriteByte('>')
}

// quoted is text of others within a sentence or a cell of ours: its direction
// stays its own affair.
func quoted(s string, all ...part) *element { return el("bdi", append(all, text(s))...) }

// when is the part if it is to be there at all.
func when(wanted bool, p part) part {
	if !wanted {
		return nil
	}
	return p
}

// writeTo writes a whole document.
func writeTo(w io.Writer, p part) error {
	b := bufio.NewWriterSize(w, 64<<10)
	p.write(b)
	return b.Flush() // the first error of any write
}
