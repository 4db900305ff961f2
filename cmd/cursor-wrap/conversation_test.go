package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// chat is an agent that does as it is asked.
var chat = lines("init", "user",
	"when asked hang", "  say-midturn I shall look.", "  linger", "end",
	"when asked shell", "  tool start a shell 30000 make", "  linger", "end",
	"when asked fail", "  exit 3", "end",
	"when asked wrong", `  {"type":"result","subtype":"error","is_error":true,"result":"no","session_id":"$SESSION"}`, "  exit 1", "end",
	"say Done.", "result")

// chatID is its session.
const chatID = "6f1c2a4e-0000-4000-8000-000000000001"

func talk(t *testing.T, stdin string, more ...string) *ran {
	t.Helper()
	return run1(t, call{scenario: chat, talks: true, prompt: stdin, args: more, env: []string{"FAKEAGENT_SESSION=" + chatID}})
}

// starts are the agent's arguments, a start each.
func (r *ran) starts() (all [][]string) {
	r.Helper()
	for _, rec := range r.all("spawn") {
		var s struct{ Args []string }
		if err := json.Unmarshal(rec.line, &s); err != nil {
			r.Fatal(err)
		}
		all = append(all, s.Args)
	}
	return all
}

// resumes checks which session each start of the agent went on with.
func (r *ran) resumes(want ...string) *ran {
	r.Helper()
	var got []string
	for _, args := range r.starts() {
		id := ""
		if i := slices.Index(args, "--resume"); i >= 0 {
			id = args[i+1]
		}
		got = append(got, id)
	}
	if !slices.Equal(got, want) {
		r.Errorf("the agent was started for the sessions %q, want %q", got, want)
	}
	return r
}

// prompts are those that the agent echoed, as its log has them.
func (r *ran) prompts() (all []string) {
	r.Helper()
	for line := range bytes.Lines(r.replay("--raw")) {
		var ev struct {
			Type    string
			Message struct{ Content []struct{ Text string } }
		}
		if json.Unmarshal(line, &ev) == nil && ev.Type == "user" {
			all = append(all, ev.Message.Content[0].Text)
		}
	}
	return all
}

// asked checks which prompts the agent was given.
func (r *ran) asked(want ...string) *ran {
	r.Helper()
	if got := r.prompts(); !slices.Equal(got, want) {
		r.Errorf("the agent was asked %q, want %q", got, want)
	}
	return r
}

// notes are the wrapper's own lines in a stream.
func (r *ran) notes() (all []string) {
	r.Helper()
	for line := range bytes.Lines(r.stdout) {
		var ev struct {
			Type, Subtype, Message string
			SessionID              string `json:"session_id"`
			Reason                 *hang
		}
		if json.Unmarshal(line, &ev) != nil || ev.Type != "wrapper" {
			continue
		}
		if ev.Message == "" || ev.Reason == nil || ev.SessionID != chatID {
			r.Errorf("a note that is not whole: %s", line)
		}
		all = append(all, ev.Subtype)
	}
	return all
}

func TestEachLineIsATurnOfOneSession(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		stdin   string
		args    []string
		asked   []string
		resumes []string
	}{
		"lines":                {"one\n\n  \ntwo", nil, []string{"one", "two"}, []string{"", chatID}},
		"argument and lines":   {"two\r\nthree\n", []string{"one"}, []string{"one", "two", "three"}, []string{"", chatID, chatID}},
		"argument alone":       {"-", []string{"one"}, []string{"one"}, []string{""}},
		"with a session":       {"one\ntwo\n", args("--resume=" + chatID), []string{"one", "two"}, []string{chatID, chatID}},
		"an error is said":     {"wrong\ntwo\n", nil, []string{"wrong", "two"}, []string{"", chatID}},
		"commands are asked":   {"/status\n", nil, []string{"/status"}, []string{""}},
		"a line of a megabyte": {strings.Repeat("long ", 200000) + "\n", nil, []string{strings.TrimSpace(strings.Repeat("long ", 200000)) + " "}, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := talk(t, row.stdin, row.args...).wants(0).asked(row.asked...).resumes(row.resumes...)
			if n := len(r.all("turn_start")); n != len(row.asked) {
				t.Errorf("%d turns in the log", n)
			}
			if len(r.all("run_end")) != 1 || len(r.all("teardown")) != len(row.asked) {
				t.Error("not one run of so many turns")
			}
			if got := strings.Count(string(r.stdout), "Done.\n"); name != "an error is said" && got != len(row.asked) {
				t.Errorf("stdout %.300q", r.stdout)
			}
		})
	}
}

func TestAConversationWithoutAPromptIsAWrongCall(t *testing.T) {
	t.Parallel()
	for _, stdin := range []string{"-", "\n \n"} {
		run1(t, call{scenario: chat, talks: true, prompt: stdin}).wants(64).says("no prompt")
	}
}

func TestATurnThatEndsBadlyEndsTheConversation(t *testing.T) {
	t.Parallel()
	talk(t, "one\nfail\nthree\n").wants(1).asked("one", "fail").says("the agent ended without a result (exit 3)", "2 turns")
}

func TestAHangIsNotTheEndOfAConversation(t *testing.T) {
	t.Parallel()
	r := talk(t, "hang\ntwo\n", args("--output-format=stream-json --idle-timeout=400ms --max-restarts=0")...).wants(0).
		asked("hang", "two").resumes("", chatID).says("hang detected", "2 turns")
	if notes := r.notes(); !slices.Equal(notes, []string{"hang_detected"}) {
		t.Errorf("notes %q", notes)
	}
	if res := r.result(); res.Subtype != "success" {
		t.Errorf("%+v", res)
	}
	if bytes.Contains(r.stdout, []byte("cursor_cli_error")) {
		t.Errorf("stdout %s", r.stdout)
	}
	talk(t, "one\nhang\n", args("--idle-timeout=400ms --max-restarts=0")...).wants(2).asked("one", "hang")
}

const goOn = "Please continue where you stopped."

func TestAHangIsTriedAgainAndThereIsOneResult(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"stream-json", "json", "text"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			r := run1(t, call{scenario: "hangs-once.txt", args: args("--idle-timeout=400ms --max-restarts=2 --output-format=" + format),
				env: []string{"FAKEAGENT_SESSION=" + chatID}}).
				wants(0).resumes("", chatID).asked("fix it", goOn).says("attempt 1 of 2", "1 restart")
			if n := len(r.all("restart")); n != 1 {
				t.Errorf("%d restarts in the log", n)
			}
			switch format {
			case "text":
				if out := string(r.stdout); !strings.Contains(out, "Hang detected") || !strings.HasSuffix(out, "Done.\n\n") {
					t.Errorf("stdout %q", out)
				}
				return
			case "json":
				if n := bytes.Count(r.stdout, []byte("\n")); n != 1 {
					t.Errorf("%d lines on stdout: %s", n, r.stdout)
				}
			default:
				if notes := r.notes(); !slices.Equal(notes, []string{"restart"}) {
					t.Errorf("notes %q", notes)
				}
			}
			if res := r.result(); res.Subtype != "success" || res.Wrapper != nil {
				t.Errorf("%+v", res)
			}
		})
	}
}

// A second attempt that hangs as well leaves the result of a hang, and one.
func TestTheLastAttemptsHangIsTheResult(t *testing.T) {
	t.Parallel()
	r := run1(t, call{scenario: "idle-hang.txt", args: args("--idle-timeout=300ms --max-restarts=1"), env: []string{"FAKEAGENT_SESSION=" + chatID}}).
		wants(2).resumes("", chatID)
	if res := r.result(); res.Subtype != "hang" {
		t.Errorf("%+v", res)
	}
	if notes := r.notes(); !slices.Equal(notes, []string{"restart"}) {
		t.Errorf("notes %q", notes)
	}
}

func TestAnAgentThatNeverBeganIsAskedTheSameAgain(t *testing.T) {
	t.Parallel()
	p := start(t, call{scenario: lines("stdin ignore", "touch $DIR/started", "linger"), args: args("--startup-timeout=300ms --max-restarts=1 --restart-prompt=unused")})
	r := p.finish().wants(2).resumes("", "")
	if res := r.result(); res.Subtype != "hang" {
		t.Errorf("%+v", res)
	}
}

func TestNothingThatWasUnderWayIsDoneTwice(t *testing.T) {
	t.Parallel()
	c := call{scenario: lines("init", "user", "when fresh", "tool start a shell 100 make install", "linger", "end", "say Done.", "result"),
		env: []string{"FAKEAGENT_SESSION=" + chatID}}
	c.args = args("--tool-grace=200ms --max-restarts=3")
	run1(t, c).wants(2).resumes("")
	c.args = append(c.args, "--restart-unsafe", "--restart-prompt=go on")
	run1(t, c).wants(0).resumes("", chatID).asked("fix it", "go on")
}

// In a conversation a turn is tried again unasked, but not once a tool has acted.
func TestAConversationTriesAgainOnlyWhatChangedNothing(t *testing.T) {
	t.Parallel()
	c := call{scenario: "hangs-once.txt", talks: true, args: args("--idle-timeout=400ms"), env: []string{"FAKEAGENT_SESSION=" + chatID}}
	run1(t, c).wants(0).resumes("", chatID)
	c.scenario = lines("init", "user", "tool start a edit x.go y", "tool done a", "linger")
	run1(t, c).wants(2).resumes("")
}

func TestTheSummarySaysWhatTheRunCameTo(t *testing.T) {
	t.Parallel()
	single := run1(t, call{scenario: "good.txt"}).wants(0)
	if n := strings.Count(single.said, "\n"); n != 1 {
		t.Errorf("%d lines: %s", n, single.said)
	}
	single.says("cursor-wrap: success; ", "1 call, longest silence", "tokens in", "log: "+single.logFile())
	if quiet := run1(t, call{scenario: "good.txt", args: args("--quiet")}).wants(0); quiet.said != "" {
		t.Errorf("stderr %q", quiet.said)
	}
	many := talk(t, "one\ntwo\n").wants(0)
	many.says("cursor-wrap: success\n  2 turns, ", "\n  log: "+many.logFile()+"\n")
	if quiet := talk(t, "one\n", "--quiet").wants(0); quiet.said != "" {
		t.Errorf("stderr %q", quiet.said)
	}
}
