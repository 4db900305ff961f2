package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/tree"
)

// teller makes a Story by hand, in seconds since its start.
type teller struct {
	Story
	turn int
}

func millis(seconds float64) monitor.Millis { return monitor.Millis{Time: at(seconds)} }

func spanOf(seconds float64) monitor.Span {
	return monitor.Span(time.Duration(seconds * float64(time.Second)))
}

// event adds a line of the agent and returns its index.
func (s *teller) event(seconds float64, name string, body any) int {
	kind, sub, _ := strings.Cut(name, "/")
	raw, err := json.Marshal(map[string]any{"type": kind, "subtype": sub, "session_id": s.Run.Session, "body": body})
	if err != nil {
		panic(err)
	}
	s.Events = append(s.Events, Event{At: millis(seconds), Name: name, Raw: raw, Size: len(raw)})
	return len(s.Events) - 1
}

func (s *teller) item(lane Lane, from, to float64, title string) *Item {
	it := Item{Lane: lane, Start: millis(from), End: millis(to), Title: title, Turn: s.turn, First: -1, Last: -1}
	s.Items = append(s.Items, it)
	return &s.Items[len(s.Items)-1]
}

func (s *teller) says(lane Lane, from, to float64, text string) {
	first := s.event(from, string(lane)+"/delta", text)
	last := s.event((from+to)/2, string(lane)+"/delta", "more of it")
	it := s.item(lane, from, to, text)
	it.First, it.Last = first, last
}

func (s *teller) call(from, to float64, tool, title, status string, wait float64) *Item {
	name := fmt.Sprintf("toolu_%02d", len(s.Items))
	it := s.item(Tool, from, to, title)
	it.Tool, it.Call, it.Status = tool, name, status
	it.First = s.event(from, "tool_call/started", map[string]any{"call_id": name, "tool": tool, "argument": title})
	it.Last = it.First
	if status != "open" {
		it.Last = s.event(to, "tool_call/completed", map[string]any{"call_id": name, "stdout": "one line\nand another\n\ttabbed", "big": json.Number("12345678901234567890")})
	}
	if tool == "shell" && (status == "ok" || status == "failed") {
		code := 0
		if status == "failed" {
			code = 1
		}
		it.Exit = &code
	}
	limit := 600.0
	if wait > 0 {
		it.Declared = spanOf(wait)
		limit = wait + 30
	}
	it.Deadline = millis(from + limit)
	return it
}

func (s *teller) mark(seconds float64, what, text, level string) {
	s.Marks = append(s.Marks, Mark{millis(seconds), what, text, level})
}

func (s *teller) until(seconds, limit float64, phase monitor.Phase) {
	d := Deadline{At: millis(seconds), Phase: phase}
	if limit > 0 {
		d.Until = millis(seconds + limit)
	}
	s.Deadlines = append(s.Deadlines, d)
}

// done puts everything into its order.
func (s *teller) done() *Story {
	slices.SortStableFunc(s.Items, func(a, b Item) int { return a.Start.Compare(b.Start.Time) })
	slices.SortStableFunc(s.Marks, func(a, b Mark) int { return a.At.Compare(b.At.Time) })
	s.Run.Calls = int64(len(s.Items))
	s.Run.Lines = int64(len(s.Events))
	return &s.Story
}

func tell(outcome string, exit int, end float64) *teller {
	policy, _ := json.Marshal(monitor.Default())
	return &teller{Story: Story{Run: Run{
		ID: "20260128-120000-4711", Version: "v1.4.0", Session: "9f0c2f6a-51de-4c0b-8f5e-2d1b6c7a8e90",
		Dir: "/home/dev/shop", Workspace: "/home/dev/shop", Agent: "/usr/local/bin/cursor-agent",
		Args: []string{"--print", "--output-format", "stream-json"}, Held: "cgroup", Policy: policy, Model: "Auto",
		Start: millis(0), End: millis(end), Ended: true, Outcome: outcome, ExitCode: exit,
		Bytes: 3_482_113, Tokens: [2]int64{184_220, 9_377}, AgentCPU: spanOf(41.3), AgentRSS: 412 << 20,
	}}}
}

// hangStory is five turns, the last of which hangs in a question that nobody answers.
func hangStory() *Story {
	s := tell("hang", 2, 742)
	s.Run.Sentence = `git push waits for a user name that nobody can type: its prompt reads the terminal, and for 2m5s nothing else happened.`
	s.Run.Message = `1 open tool call past the deadline: shell "git push origin main" for 2m5s (declared 1m30s); 20811 git-remote-https reads the terminal`
	s.Run.Silence = spanOf(125)
	s.Run.Restarts = 1
	s.turnOf(0, 96, "Read the code and tell me how the checkout works", "success", 0)
	s.turnOf(104, 240, "Add a coupon field, with tests, in the server and in the web client", "success", 1)
	s.turnOf(252, 330, "The tests of the web client fail on CI: find out why", "success", 2)
	s.turnOf(341, 560, "Run everything, in parallel where it can be", "success", 3)
	s.turnOf(572, 742, "Commit it and push it to origin", "hang", 4)
	s.Turns[4].Message = s.Run.Message
	s.stuck()
	s.sampled()
	s.Stderr = []Line{{millis(2), "\x1b[33mwarning\x1b[0m: 3 deprecated options in .eslintrc"}, {millis(611), "Username for 'https://git.example.org': "},
		{millis(730), "cursor-wrap: hang: shell \"git push origin main\" past its deadline"}}
	s.Run.Answer = "All four suites pass. I commit the change and push it to origin."
	return s.done()
}

func (s *teller) turnOf(from, to float64, prompt, outcome string, n int) {
	s.turn = n
	s.Turns = append(s.Turns, Turn{Start: millis(from), End: millis(to), Prompt: prompt, Outcome: outcome})
	s.mark(from, "agent_start", "agent started, pid "+fmt.Sprint(20100+n*100), "INFO")
	s.until(from, 60, monitor.Starting)
	s.event(from+3, "system/init", map[string]any{"model": "Auto"})
	s.until(from+3, 60, monitor.Thinking)
	s.says(Thinking, from+3, from+11, "The user wants to know how it all hangs together")
	s.says(Assistant, from+11, from+16, "Let me look at "+prompt)
	clock := from + 17
	for i, name := range []string{"read server/checkout.go", "grep coupon", "read web/src/Checkout.tsx", "ls server"} {
		tool, title, _ := strings.Cut(name, " ")
		s.call(clock, clock+0.4+float64(i), tool, title, "ok", 0)
		clock += 1 + float64(i)*1.7
	}
	switch n {
	case 1:
		s.call(clock, clock+42, "shell", "go test ./... -run Coupon", "failed", 120)
		s.until(clock, 150, monitor.Tools)
		s.says(Assistant, clock+43, clock+50, "Two of the tests fail because the rounding is wrong. I fix that first.")
		s.until(clock+43, 60, monitor.Thinking)
		s.call(clock+51, clock+52, "edit", "server/price.go", "ok", 0)
		s.call(clock+53, clock+88, "shell", "go test ./...", "ok", 120)
	case 2:
		it := s.call(clock, clock+2, "shell", "npm run dev", "background", 10)
		b := s.item(Background, clock+2, to-4, "npm run dev")
		b.Tool, b.Call, b.First, b.Last = "shell", it.Call, it.First, it.Last
		s.call(clock+4, clock+30, "shell", "npm test -- --reporter dot", "ok", 60)
		s.item(Silence, clock+6, clock+30, "no line for 24s")
		s.mark(clock+33, "restart", "the agent lost its connection and was started again", "WARN")
	case 3:
		for i, suite := range []string{"go test ./server/...", "npm test", "cargo test", "pytest -q"} {
			s.call(clock+float64(i)*0.3, clock+60+float64(i)*23, "shell", suite, []string{"ok", "ok", "failed", "ok"}[i], []float64{90, 120, 0, 240}[i])
		}
		s.until(clock, 600, monitor.Tools)
		s.item(Held, clock+30, clock+58, "the reader of stdout paused")
		s.item(Silence, clock+62, clock+80, "no line for 18s")
		s.item(Paused, clock+95, clock+110, "paused by uid 1000")
		s.mark(clock+95, "paused", "paused by uid 1000", "WARN")
		s.mark(clock+110, "unpaused", "let go on by uid 1000", "INFO")
		s.mark(clock+0.6, "undeclared_timeout", undeclared, "WARN")
	}
	s.until(to-12, 60, monitor.Thinking)
	if outcome == "success" {
		s.says(Assistant, to-12, to-3, "Done. "+prompt+" is through.")
		s.event(to-2, "result/success", map[string]any{"is_error": false})
		s.until(to-2, 5, monitor.Draining)
		s.until(to, 0, monitor.Draining)
		s.mark(to, "agent_exit", "agent ended, exit status 0", "INFO")
	}
}

const pushCall = "toolu_push"

const undeclared = `shell "cargo test" declared no wait; the tool timeout counts for it`

// stuck is the end of the hang.
func (s *teller) stuck() {
	it := s.call(606, 731, "shell", "git push origin main", "open", 90)
	it.Call = pushCall
	s.Deadlines = slices.DeleteFunc(s.Deadlines, func(d Deadline) bool { return d.At.After(at(606)) })
	s.until(606, 120, monitor.Tools)
	s.item(Silence, 606, 731, "no line for 2m5s")
	s.item(Ladder, 731, 737, "git-remote-https and 4 others")
	reason := s.why()
	early := *reason
	early.Summary = "1 open tool call past the deadline; the tree was not seen for long enough"
	early.Evidence = &monitor.Evidence{Finding: monitor.Waiting, Samples: 1, Percent: tree.Unknown}
	s.mark(726, "suspected", "suspected: "+early.Summary, "WARN")
	s.Verdicts = []Verdict{{millis(726), "suspected", &early}, {millis(731), "hang_detected", reason}}
	s.mark(731.2, "signal", "SIGTERM to 6 processes", "WARN")
	s.mark(736.2, "signal", "SIGKILL to 1 process", "WARN")
	s.mark(737, "agent_exit", "agent ended, killed by SIGTERM", "INFO")
	fate := func(pid, ppid int, command, found, signal, how string) Fate {
		return Fate{ID: tree.ID{PID: pid, Start: uint64(pid)}, PPID: ppid, Command: command, Found: found, Signal: signal, How: how}
	}
	s.Teardowns = []Teardown{
		{At: millis(97), Took: spanOf(0.3), Exit: "exit status 0", By: "cgroup", Proof: true, Ended: []Fate{fate(20140, 1, "worker-server", "adopted", "SIGTERM", "ended")}},
		{At: millis(737), Took: spanOf(5.8), Exit: "signal: terminated", By: "cgroup", Proof: true, Ended: []Fate{
			fate(20500, 20499, "node cursor-agent", "child", "SIGTERM", "ended"),
			fate(20790, 20500, "/bin/bash -c git push origin main", "child", "SIGTERM", "ended"),
			fate(20810, 20790, "git push origin main", "child", "SIGTERM", "ended"),
			fate(20811, 20810, "git-remote-https origin", "child", "SIGKILL", "killed"),
			fate(20700, 1, "node npm run dev", "cgroup", "SIGTERM", "ended"),
		}},
	}
}

func (s *teller) why() *monitor.Reason {
	proc := func(pid, ppid int, command, state string, percent float64, mem int64, age float64, waits, call string, sockets ...tree.Peer) tree.Proc {
		return tree.Proc{ID: tree.ID{PID: pid, Start: uint64(pid)}, PPID: ppid, Command: command, State: state, Still: spanOf(min(age, 118)),
			Age: spanOf(age), Percent: percent, CPU: spanOf(age / 30), Memory: mem, Waits: waits, Call: call, Sockets: sockets}
	}
	agent := proc(20500, 20499, "node /usr/local/bin/cursor-agent --print", "asleep", 0.4, 388<<20, 159, "waits for events; connected to 44.210.7.31:443, nothing received for 2m5s", "",
		tree.Peer{Peer: "44.210.7.31:443", Received: 1 << 20, Sent: 96 << 10, Quiet: spanOf(125)})
	asks := proc(20811, 20810, "git-remote-https origin https://git.example.org/shop.git", "asleep", 0, 11<<20, 124.8, "reads the terminal", pushCall,
		tree.Peer{Peer: "10.3.0.8:443", Received: 5120, Sent: 812, Quiet: spanOf(124)})
	procs := []tree.Proc{
		agent,
		proc(20790, 20500, "/bin/bash -c git push origin main", "asleep", 0, 3<<20, 125, "waits for child 20810 git", pushCall),
		proc(20810, 20790, "git push origin main", "asleep", 0, 6<<20, 125, "reads a pipe held by 20811 git-remote-https", pushCall),
		asks,
		proc(20791, 20500, "cat", "stopped", 0, 1<<20, 125, "stopped by SIGTTIN", ""),
		proc(20700, 1, "node npm run dev", "asleep", 0.2, 92<<20, 460, "waits for events", ""),
		proc(20701, 20700, "esbuild --service", "zombie", tree.Unknown, tree.Unknown, 459, "", ""),
	}
	return &monitor.Reason{
		Kind: monitor.Tool, Phase: monitor.Tools, Summary: s.Run.Message, At: millis(731), Deadline: millis(726), Limit: spanOf(120),
		Silence: spanOf(125), NoProgress: spanOf(125), Elapsed: spanOf(159), LastEvent: "tool_call/started", Witness: "stream and tree",
		OpenCalls: []monitor.Call{{ID: pushCall, Tool: "shell", Argument: "git push origin main", Elapsed: spanOf(125), Declared: spanOf(90), Deadline: millis(726),
			Process: &tree.Runner{Call: pushCall, Fate: tree.Alive, ID: tree.ID{PID: 20790, Start: 20790}, Command: "/bin/bash -c git push origin main", By: "command line", Waits: "20811 git-remote-https reads the terminal", Asks: true}}},
		Background: []monitor.Call{{ID: "toolu_dev", Tool: "shell", Argument: "npm run dev", PID: 20700, Elapsed: spanOf(460)}},
		Evidence: &monitor.Evidence{Finding: monitor.Confirmed, Samples: 24, Span: spanOf(120), Percent: 0.6, Window: spanOf(15), Disk: 0, Received: 39, Sent: 34,
			Tree: &tree.Activity{Alive: 6, Tools: 5, Asking: []tree.Proc{asks}, Procs: procs, Full: true, Hidden: []string{"i/o of 1 process"}}},
	}
}

// sampled adds a look every five seconds of silence.
func (s *teller) sampled() {
	for t := 5.0; t < 731; t += 5 {
		busy := 2.0
		switch {
		case t > 120 && t < 230:
			busy = 90 + 40*float64(int(t)%3)
		case t > 380 && t < 490:
			busy = 240 + 60*float64(int(t)%4)
		case t > 606:
			busy = 0.4
		}
		s.Samples = append(s.Samples, Sample{At: millis(t), Percent: busy, Alive: 2 + int(busy)/30, Tools: int(busy) / 40, Received: int64(busy * 900), Disk: int64(busy*5000) - 10000})
	}
}

func goodStory() *Story {
	s := tell("success", 0, 40)
	s.Run.Sentence = "The agent answered after 38.0s; nothing was left behind."
	s.Run.Silence = spanOf(3.2)
	s.turnOf(0, 40, "Rename the function Foo to Bar", "success", 0)
	s.Run.Answer = "Renamed Foo to Bar in three files.\n\n- a.go\n- b.go\n- c.go"
	return s.done()
}

// killedStory is a log that ends in the middle of a call.
func killedStory() *Story {
	s := tell("killed", 137, 21)
	s.Run.Ended, s.Run.Sentence = false, "The log stops in the middle of a call: the wrapper was killed, or it still runs."
	s.Torn, s.Lost = 1, 12
	s.turnOf(0, 21, "Build it", "", 0)
	s.call(18, 21, "shell", "make all", "open", 60)
	return s.done()
}

// hugeStory is as much as a long night brings.
func hugeStory(lines, calls int) *Story {
	s := tell("success", 0, float64(lines)/10)
	s.Run.Sentence = "The agent answered after 2h46m; nothing was left behind."
	s.Turns = []Turn{{Start: millis(0), End: s.Run.End, Prompt: "Port everything", Outcome: "success"}}
	every := lines / calls
	for i := range lines {
		t := float64(i) / 10
		s.event(t, "assistant/delta", fmt.Sprintf("piece %d of a long answer, %x", i, uint64(i)*0x9e3779b97f4a7c15))
		if i%every != 0 {
			continue
		}
		lane, status := Tool, "ok"
		switch n := i / every; {
		case n%4 == 0:
			lane = Assistant
		case n%7 == 0:
			lane = Thinking
		case n%101 == 0:
			status = "failed"
		}
		it := s.item(lane, t, t+float64(i%13)/10, fmt.Sprintf("step %d of the port", i))
		it.First, it.Last = i, min(i+every-1, lines-1)
		if lane == Tool {
			it.Tool, it.Call, it.Status = "shell", fmt.Sprint("c", i), status
		}
		s.until(t, 60, monitor.Thinking)
	}
	for t := 0; t < lines/10; t += 5 {
		s.Samples = append(s.Samples, Sample{At: millis(float64(t)), Percent: float64(t * 7 % 130), Alive: 3 + t%5})
	}
	return s.done()
}
