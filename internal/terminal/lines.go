package terminal

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// LineReader reads prompts from what is no terminal: one a line.
type LineReader struct{ r *bufio.Reader }

// Lines returns a reader of the lines of r, however long they are.
func Lines(r io.Reader) *LineReader { return &LineReader{bufio.NewReader(r)} }

// Next is the next line that is not blank, without its end; io.EOF after the
// last one, which needs no end.
func (l *LineReader) Next() (string, error) {
	for {
		line, err := l.r.ReadString('\n')
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if !blank(line) && (err == nil || errors.Is(err, io.EOF)) {
			return line, nil
		}
		if err != nil {
			return "", err
		}
	}
}
