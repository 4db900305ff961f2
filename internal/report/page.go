package report

import "io"

// HTML writes the story as a page.
func HTML(w io.Writer, s *Story) error {
	_, err := io.WriteString(w, "<!doctype html><title>cursor-wrap</title><p>"+xmlText(s.Run.Sentence)+"\n")
	return err
}
