package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"cursor-wrap/internal/report"
	"cursor-wrap/internal/supervise"
)

// summaryMost is what GitHub takes of a step's summary. One that is longer is
// not shown at all.
const summaryMost = 1 << 20

// publish writes the reports that were asked for, once the log is closed. It
// costs nothing where none was, and changes nothing about the run.
func (j *job) publish(outcome supervise.Outcome) {
	onGitHub := os.Getenv("GITHUB_ACTIONS") == "true"
	summary := ""
	if onGitHub {
		summary = os.Getenv("GITHUB_STEP_SUMMARY")
	}
	annotates := onGitHub && outcome != supervise.Success
	if j.junit == "" && j.report == "" && summary == "" && !annotates {
		return
	}
	for len(j.stop) > 0 {
		<-j.stop // they were for the run
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		j.write(outcome, summary, annotates)
	}()
	select {
	case <-done:
	case <-j.stop: // a large log takes its time, and whoever is in a hurry need not wait for it
		j.con.say("told to stop; the reports are not complete")
	}
}

func (j *job) write(outcome supervise.Outcome, summary string, annotates bool) {
	defer func() {
		if r := recover(); r != nil { // what only tells of the run must not change its exit code
			j.con.say(fmt.Sprint("no report was written: internal error: ", r))
		}
	}()
	var story *report.Story
	log, err := os.Open(j.log.Path())
	if err == nil {
		defer log.Close()
		story, err = readStory(log)
	}
	if err != nil {
		j.con.say("no report was written: " + err.Error())
		story = &report.Story{Run: report.Run{Outcome: string(outcome), Sentence: "The session log could not be read."}}
	}
	if annotates {
		j.con.command(annotation(story))
	}
	if err != nil {
		return
	}
	if summary != "" {
		j.warn("step summary", summary, appendSummary(summary, story))
	}
	for _, r := range []struct{ path, format string }{{j.junit, "junit"}, {j.report, "html"}} {
		if r.path != "" {
			j.warn(r.format+" report", r.path, writeWhole(r.path, func(w io.Writer) error { return report.Write(w, r.format, story) }))
		}
	}
}

func (j *job) warn(what, path string, err error) {
	if err != nil {
		j.con.say(fmt.Sprintf("%s %s: %v; the run itself is not affected", what, path, err))
	}
}

// annotation is a workflow command that GitHub's runner finds in the output of
// a step, on either stream.
func annotation(s *report.Story) string {
	return "::error title=" + escapeProperty("cursor-wrap: "+s.Run.Outcome) + "::" + escapeData(s.Run.Sentence)
}

// escapeData escapes what would end the line of a workflow command.
func escapeData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

// escapeProperty escapes what would end a property of one, too.
func escapeProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}

// appendSummary adds to the summary of a step, if there is room in it.
func appendSummary(path string, s *report.Story) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	_ = f.SetWriteDeadline(time.Now().Add(readerTime)) // of a pipe
	info, err := f.Stat()
	if err != nil {
		return err
	}
	room := summaryMost - 1 - int(min(info.Size(), summaryMost)) // a newline may come before
	var b bytes.Buffer
	if info.Size() > 0 {
		b.WriteString("\n")
	}
	if err := report.Markdown(&b, s, min(room, report.MarkdownMost)); err != nil {
		return err
	}
	if b.Len() <= 1 {
		return fmt.Errorf("there is no room left in it")
	}
	_, err = f.Write(b.Bytes())
	return err
}
