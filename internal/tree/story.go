package tree

import "fmt"

// Story is a line about the process for a person: who it is, how long it has
// been in its state, what it waits for.
func (p *Proc) Story() string {
	s := fmt.Sprintf("%s: %s", p, p.State)
	switch {
	case p.Percent >= 1:
		s += fmt.Sprintf(", %.0f %% of a core", p.Percent)
	case p.Still > 0:
		s += fmt.Sprintf(" for %s", p.Still)
	}
	if p.Waits != "" && p.Waits != p.State && p.State != "running" {
		s += ", " + p.Waits
	}
	return s
}
