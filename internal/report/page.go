package report

import (
	"errors"
	"io"
)

// HTML writes the story as a page.
func HTML(w io.Writer, s *Story) error { return errors.New("html: not built") }
