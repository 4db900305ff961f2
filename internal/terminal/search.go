package terminal

import "strings"

// searching is a search back through the history.
type searching struct {
	query  string
	at     int    // the entry that was found, 0 none
	before editor // what was written before
}

func (s *searching) prompt() string { return "search: " + s.query + " -> " }

// search takes the keys of a search and reports whether the key was one.
// Any other ends it with what was found, and then does what it does.
func (p *prompter) search(ev event) bool {
	s := p.searching
	switch ev.act {
	case insert:
		s.query += ev.text
		p.find(max(s.at, 1))
	case backspace:
		s.query = s.query[:before(s.query, len(s.query))]
		p.find(1)
	case search:
		p.find(s.at + 1)
	case cancel, interrupt:
		p.editor, p.searching = s.before, nil
	case nothing:
	default:
		p.searching = nil
		return false
	}
	return true
}

// find shows the first entry from here on that has the query in it; where there
// is none, what is shown stays.
func (p *prompter) find(from int) {
	for n := from; n <= p.editor.history.len(); n++ {
		if entry := p.editor.history.entry(n); strings.Contains(entry, p.searching.query) {
			p.searching.at, p.at = n, n
			p.set(entry)
			return
		}
	}
}
