package report

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"cursor-wrap/internal/monitor"
)

// junitCase is one prompt and what came of it at last.
type junitCase struct {
	name     string
	took     monitor.Span
	outcome  string
	message  string
	attempts []string
	index    int // of the last turn; -1 for the run
}

// JUnit writes a test report: a prompt is a test case, which fails where its
// last attempt did, and is an error where it never came to an end of its own.
func JUnit(w io.Writer, s *Story) error {
	cases := junitCases(s)
	failures, errs := 0, 0
	for i := range cases {
		switch junitKind(s, &cases[i]) {
		case "failure":
			failures++
		case "error":
			errs++
		}
	}
	var b strings.Builder
	counts := fmt.Sprintf(`tests="%d" failures="%d" errors="%d" skipped="0" time="%s"`, len(cases), failures, errs, seconds(took(&s.Run)))
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n")
	fmt.Fprintf(&b, "<testsuites name=\"cursor-wrap\" %s>\n", counts)
	fmt.Fprintf(&b, "  <testsuite name=\"cursor-wrap\" id=\"0\" %s timestamp=\"%s\">\n", counts, s.Run.Start.UTC().Format("2006-01-02T15:04:05"))
	junitProperties(&b, s)
	for i := range cases {
		junitWrite(&b, s, &cases[i], i == len(cases)-1)
	}
	b.WriteString("  </testsuite>\n</testsuites>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// junitCases are the prompts, and the run itself where it came out worse than
// each of them.
func junitCases(s *Story) []junitCase {
	var all []junitCase
	for i := range s.Turns {
		t := &s.Turns[i]
		if t.Restart == 0 || len(all) == 0 {
			name := title(t.Prompt)
			if name == "" {
				name = "turn " + strconv.Itoa(len(all)+1)
			}
			all = append(all, junitCase{name: name})
		}
		c := &all[len(all)-1]
		if c.outcome != "" {
			c.attempts = append(c.attempts, c.outcome+": "+c.message)
		}
		c.took += monitor.Span(t.End.Sub(t.Start.Time))
		c.outcome, c.message, c.index = t.Outcome, t.Message, i
	}
	failed := s.Run.Outcome == "success"
	for i := range all {
		failed = failed || all[i].outcome != "success"
	}
	if len(all) == 0 || !failed {
		all = append(all, junitCase{name: "the run", took: took(&s.Run), outcome: s.Run.Outcome, message: s.Run.Message, index: -1})
	}
	return all
}

// junitKind is failure, error, or empty where all is well.
func junitKind(s *Story, c *junitCase) string {
	switch c.outcome {
	case "success":
		return ""
	case "signal", killed, "usage":
		return "error"
	}
	if started, at := false, c.index; c.outcome == "error" {
		for i := range s.Marks {
			m := &s.Marks[i]
			if m.What == "spawn_failed" && (at < 0 || !m.At.Before(s.Turns[at].Start.Time) && !m.At.After(s.Turns[at].End.Time)) {
				return "error"
			}
			started = started || m.What == "spawn"
		}
		if !started && len(s.Events) == 0 && at < 0 {
			return "error"
		}
	}
	return "failure"
}

func junitProperties(b *strings.Builder, s *Story) {
	run := &s.Run
	b.WriteString("    <properties>\n")
	for _, p := range [][2]string{
		{"outcome", run.Outcome}, {"exit_code", strconv.Itoa(run.ExitCode)}, {"run_id", run.ID}, {"session_id", run.Session},
		{"version", run.Version}, {"model", run.Model}, {"cwd", run.Dir}, {"workspace", run.Workspace}, {"agent", run.Agent},
		{"containment", run.Held}, {"calls", strconv.FormatInt(run.Calls, 10)}, {"restarts", strconv.Itoa(run.Restarts)},
		{"longest_silence_ms", strconv.FormatInt(time.Duration(run.Silence).Milliseconds(), 10)},
		{"tokens_in", strconv.FormatInt(run.Tokens[0], 10)}, {"tokens_out", strconv.FormatInt(run.Tokens[1], 10)},
	} {
		if p[1] != "" {
			fmt.Fprintf(b, "      <property name=\"%s\" value=\"%s\"/>\n", p[0], xmlLine(p[1]))
		}
	}
	b.WriteString("    </properties>\n")
}

func junitWrite(b *strings.Builder, s *Story, c *junitCase, last bool) {
	class := "cursor-wrap"
	for _, dir := range []string{s.Run.Workspace, s.Run.Dir} {
		if base := path.Base(dir); dir != "" && base != "/" && base != "." {
			class += "." + base
			break
		}
	}
	fmt.Fprintf(b, "    <testcase name=\"%s\" classname=\"%s\" time=\"%s\">\n", xmlLine(c.name), xmlLine(class), seconds(c.took))
	if kind := junitKind(s, c); kind != "" {
		message := c.outcome
		if c.message != "" {
			message += ": " + c.message
		}
		fmt.Fprintf(b, "      <%s message=\"%s\" type=\"%s\">%s</%s>\n", kind, xmlLine(message), xmlLine(c.outcome), xmlText(junitText(s, c, last)), kind)
	}
	if last && s.Run.Answer != "" {
		fmt.Fprintf(b, "      <system-out>%s</system-out>\n", xmlText(s.Run.Answer))
	}
	if last && len(s.Stderr) > 0 {
		b.WriteString("      <system-err>")
		for _, l := range s.Stderr {
			b.WriteString(xmlText(l.Text + "\n"))
		}
		b.WriteString("</system-err>\n")
	}
	b.WriteString("    </testcase>\n")
}

// junitText is what stands in a failure.
func junitText(s *Story, c *junitCase, last bool) string {
	var b strings.Builder
	if last {
		b.WriteString(s.Run.Sentence + "\n")
	} else {
		b.WriteString(c.message + "\n")
	}
	for i, a := range c.attempts {
		fmt.Fprintf(&b, "attempt %d: %s\n", i, a)
	}
	if c.index < 0 {
		return b.String()
	}
	turn := &s.Turns[c.index]
	first, _ := slices.BinarySearchFunc(s.Verdicts, turn.Start.Time, func(v Verdict, at time.Time) int { return v.At.Compare(at) })
	for i := first; i < len(s.Verdicts) && !s.Verdicts[i].At.After(turn.End.Time); i++ {
		v := &s.Verdicts[i]
		if v.What == "suspected" {
			continue
		}
		for j := range v.Reason.OpenCalls {
			call := &v.Reason.OpenCalls[j]
			fmt.Fprintf(&b, "open: %s %q for %s\n", call.Tool, call.Argument, call.Elapsed)
		}
		if e := v.Reason.Evidence; e != nil && e.Tree != nil && len(e.Tree.Procs) > 0 {
			b.WriteString(procTable(e.Tree.Procs))
		}
	}
	return b.String()
}

// seconds is a length as JUnit has it.
func seconds(d monitor.Span) string {
	return strconv.FormatFloat(max(time.Duration(d).Seconds(), 0), 'f', 3, 64)
}

// xmlLine escapes text for an attribute, where line ends would not last.
func xmlLine(s string) string { return xmlText(oneLine(s)) }

// xmlText escapes text for XML 1.0. What XML cannot say at all becomes U+FFFD.
func xmlText(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '"':
			b.WriteString("&#34;")
		case r == '\'':
			b.WriteString("&#39;")
		case r == '\t' || r == '\n':
			b.WriteRune(r)
		case r == '\r':
			b.WriteString("&#13;") // or readers would take it for a line end
		case r < ' ' || r == 0xFFFE || r == 0xFFFF || r == utf8.RuneError:
			b.WriteRune(utf8.RuneError)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
