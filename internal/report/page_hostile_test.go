package report

import (
	"slices"
	"strings"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/tree"
)

// nasty is text that wants out of wherever it is put.
var nasty = strings.Join([]string{
	`</script><script>window.pwned=1;alert(1)</script>`, `"><img src=x onerror="window.pwned=1">`, `' onfocus='window.pwned=1' autofocus='`,
	`</title></style></bdi></svg></dialog><!-- <![CDATA[ ]]> -->`, "\u202eesrever\u202c \u2066isolated\u2069 \u05e9\u05dc\u05d5\u05dd",
	"\x1b[31mred\x1b[0m\x1b]0;title\x07", "a\x00b", "\xff\xfe", "&lt;b&gt; &amp; &#x3c;", "\u2028\u2029\ufeff", "{{.Run}} ${x} `y`",
	strings.Repeat("e\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301", 3),
}, " ")

// hostileStory is a hang in which everything that others can write is nasty, and
// some of it very long.
func hostileStory() *Story {
	s := hangStory()
	long := nasty + strings.Repeat("x", 10_000)
	r := &s.Run
	for _, field := range []*string{&r.ID, &r.Version, &r.Session, &r.Dir, &r.Workspace, &r.Agent, &r.Held, &r.Model, &r.Outcome, &r.Message, &r.Sentence} {
		*field = nasty
	}
	r.Answer, r.Args = long, []string{long, nasty}
	r.Policy = []byte(`{"</script><script>window.pwned=1</script>":"<img src=x onerror=window.pwned=1>","idle_timeout_ms":60000}`)
	for i := range s.Turns {
		s.Turns[i].Prompt, s.Turns[i].Message, s.Turns[i].Outcome = long, nasty, nasty
	}
	for i := range s.Items {
		it := &s.Items[i]
		it.Title, it.Tool, it.Detail, it.Call = long, nasty, nasty, nasty
		if i%2 == 0 {
			it.Status = nasty
		}
		if i%11 == 0 {
			it.Lane = Lane(nasty)
		}
	}
	for i := range s.Marks {
		s.Marks[i].What, s.Marks[i].Text, s.Marks[i].Level = nasty, long, nasty
	}
	for i := range s.Deadlines {
		s.Deadlines[i].Phase = monitor.Phase(nasty)
	}
	for i := range s.Verdicts {
		s.Verdicts[i].What = nasty
		spoil(s.Verdicts[i].Reason, long)
	}
	for i := range s.Teardowns {
		t := &s.Teardowns[i]
		t.Exit, t.By = nasty, nasty
		t.Left = slices.Clone(t.Ended)
		for k := range t.Ended {
			f := &t.Ended[k]
			f.Command, f.Found, f.Signal, f.How, f.Error = long, nasty, nasty, nasty, nasty
		}
	}
	for i := range s.Stderr {
		s.Stderr[i].Text = long
	}
	for i := range s.Events {
		e := &s.Events[i]
		e.Name, e.Raw = nasty, []byte(long)
		e.Size = 3 * len(e.Raw)
	}
	return s
}

func spoil(r *monitor.Reason, long string) {
	r.Summary, r.LastEvent, r.Witness, r.Kind, r.Phase = long, nasty, nasty, monitor.Kind(nasty), monitor.Phase(nasty)
	for i := range r.OpenCalls {
		c := &r.OpenCalls[i]
		c.ID, c.Tool, c.Argument = nasty, nasty, long
		c.Process = &tree.Runner{Fate: tree.Alive, Command: nasty, By: nasty, Waits: nasty}
	}
	e := r.Evidence
	e.Finding, e.Why = monitor.Finding(nasty), []string{nasty, long}
	if e.Tree == nil {
		return
	}
	e.Tree.Blind, e.Tree.Hidden = nasty, []string{nasty}
	for i := range e.Tree.Procs {
		q := &e.Tree.Procs[i]
		q.Command, q.State, q.Waits, q.Call = long, nasty, nasty, nasty
		q.Sockets = []tree.Peer{{Peer: nasty}}
	}
}
