package registry

import (
	"fmt"
	"strings"
)

// UnknownError is an id that no living run answers to.
type UnknownError struct {
	ID   string
	Dead *Entry // a run of that id that has died without a word, if its record is still there
}

// Error says what to try.
func (e *UnknownError) Error() string {
	if e.Dead != nil {
		return fmt.Sprintf("run %s is dead: it was ended without a word; its log is %s", e.Dead.RunID, e.Dead.Log)
	}
	return fmt.Sprintf("no run %q lives here; cursor-wrap ps lists those that do", e.ID)
}

// AmbiguousError is an id that several runs answer to.
type AmbiguousError struct {
	ID      string
	Matches []Entry // oldest first
}

// Error names them.
func (e *AmbiguousError) Error() string {
	var list []string
	for i, m := range e.Matches {
		if i == 10 {
			list = append(list, fmt.Sprintf("and %d more", len(e.Matches)-i))
			break
		}
		name := m.RunID
		if m.Session != "" {
			name += " (session " + m.Session + ")"
		}
		list = append(list, name)
	}
	return fmt.Sprintf("%q can be any of %d runs: %s; write more of the id", e.ID, len(e.Matches), strings.Join(list, ", "))
}

// Find is the living run that an id means: its run id, the agent's session id
// or the name of its tmux session; failing that, the beginning of one of the
// two ids. The error is an *UnknownError, an *AmbiguousError, or List's.
func Find(dir, id string) (Entry, error) {
	s, err := look(dir)
	if err != nil {
		return Entry{}, err
	}
	defer s.close()
	switch found := matches(s.live, id); {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return Entry{}, &AmbiguousError{ID: id, Matches: found}
	}
	unknown := &UnknownError{ID: id}
	if dead := matches(s.dead, id); len(dead) == 1 {
		unknown.Dead = &dead[0]
	}
	return Entry{}, unknown
}

// matches are the runs that answer to an id, by the first way in which any does.
func matches(runs []Entry, id string) (found []Entry) {
	ways := []func(*Entry) bool{
		func(e *Entry) bool { return e.RunID == id },
		func(e *Entry) bool { return e.Session == id || e.Tmux == id },
		func(e *Entry) bool { return strings.HasPrefix(e.RunID, id) || strings.HasPrefix(e.Session, id) },
	}
	if id == "" {
		return nil
	}
	for _, is := range ways {
		for i := range runs {
			if is(&runs[i]) {
				found = append(found, runs[i])
			}
		}
		if found != nil {
			break
		}
	}
	return found
}
