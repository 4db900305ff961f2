package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"cursor-wrap/internal/report"
)

// reporting is a call of report.
type reporting struct {
	options
	std            stdio
	format, output string
}

// newReport is the subcommand that makes something to read out of a log.
func newReport(std stdio, _ *int, _ *early) *cobra.Command {
	r := &reporting{std: std}
	c := &cobra.Command{
		Use:   "report [flags] LOG|ID",
		Short: "Make a page, a summary, a test report or a trace of a session log",
		Long: `report reads one session log, named by a path, by the id of its run or by that of
the agent's session (- is stdin), and writes what it tells:

  html   a page for a browser, with the whole run on a timeline
  md     a summary in Markdown, for a CI step
  junit  a test report, which CI servers read
  trace  Trace Event JSON, which ui.perfetto.dev opens
  json   all that the other forms are made of

Secrets are masked: the values of environment variables of this very call whose
names contain KEY, TOKEN, SECRET or PASSWORD, and what gives itself away as one.
The log itself has them.`,
		Example: `  cursor-wrap report -o run.html run.jsonl
  cursor-wrap report --format md run.jsonl >> "$GITHUB_STEP_SUMMARY"
  cursor-wrap report --format trace -o trace.json run.jsonl`,
		Args: oneLog,
		RunE: func(_ *cobra.Command, args []string) error { return r.run(args[0]) },
	}
	c.ValidArgsFunction = completeLogs
	c.Flags().SortFlags = false
	c.Flags().StringVar(&r.format, "format", "html", "what to write: "+strings.Join(report.Formats, ", "))
	c.Flags().StringVarP(&r.output, "output", "o", "", "file to write, as a whole or not at all (default stdout)")
	r.registerFolders(c.Flags())
	return c
}

// check refuses what no report can be made of.
func (r *reporting) check() error {
	if !slices.Contains(report.Formats, r.format) {
		return usagef("use "+strings.Join(report.Formats, ", "), "--format %q: not known", r.format)
	}
	if r.output == "" && r.format == "html" && term.IsTerminal(int(r.std.out.Fd())) {
		return usagef("name a file with -o, or redirect stdout", "a page is not for reading on a terminal")
	}
	if r.output != "" {
		return checkOutput("-o", r.output)
	}
	return nil
}

func (r *reporting) run(id string) error {
	if err := r.check(); err != nil {
		return err
	}
	log, err := r.openFound(id, r.std.in)
	if err != nil {
		return err
	}
	defer log.Close()
	story, err := readStory(log)
	if err != nil {
		return fmt.Errorf("report %s: %w; cursor-wrap logs lists those that there are", id, err)
	}
	if r.output == "" {
		err = report.Write(r.std.out, r.format, story)
	} else {
		err = writeWhole(r.output, func(w io.Writer) error { return report.Write(w, r.format, story) })
	}
	if err != nil {
		return fmt.Errorf("write report %s: %w", cmp.Or(r.output, "to stdout"), err)
	}
	return nil
}

// readStory reads a log, without our secrets.
func readStory(log io.Reader) (*report.Story, error) {
	return report.Read(log, report.NewMask(os.Environ()))
}

// checkOutput refuses a file that cannot be written because of where it is.
func checkOutput(flag, path string) error {
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return usagef("make the folder first, or name another file", "%s %s: there is no folder %s", flag, path, dir)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return usagef("name a file in it", "%s %s: it is a folder", flag, path)
	}
	return nil
}

// readerTime is how long the reader of a pipe may take for a report.
const readerTime = time.Minute

// writeWhole writes a file under another name first, so that who reads it finds
// all of it or what was there before. What is no plain file, a pipe or
// /dev/stdout, is written as it is.
func writeWhole(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0) // a pipe that nobody reads is an error
		if err != nil {
			return err
		}
		_ = f.SetWriteDeadline(time.Now().Add(readerTime))
		return errors.Join(write(f), f.Close())
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // what a link leads to is written, and the link stays
	}
	temp := fmt.Sprintf("%s/.%s.%s", filepath.Dir(path), filepath.Base(path), newRunID())
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Close())
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp) // the reason matters more
	}
	return err
}
