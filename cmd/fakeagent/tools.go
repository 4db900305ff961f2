package main

import (
	"fmt"
	"strconv"
	"strings"
)

// callKinds are the tools whose payloads are known from captures. What no capture shows, the result
// of an await for one, is kept as small as a consumer can stand.
var callKinds = map[string]*callKind{
	"shell":      {"shellToolCall", foregroundShell, shellDone, shellBackground},
	"background": {"shellToolCall", backgroundShell, shellDone, shellBackground},
	"await":      {"awaitToolCall", awaitArgs, awaitDone, nil},
	"task":       {"taskToolCall", taskArgs, taskDone, taskBackground},
	"mcp":        {"mcpToolCall", mcpArgs, mcpDone, nil},
	"read":       {"readToolCall", readArgs, readDone, nil},
	"edit":       {"editToolCall", editArgs, editDone, nil},
}

// foregroundShell reads "TIMEOUT_MS COMMAND...".
func foregroundShell(rest string) (build, error) {
	first, command, _ := strings.Cut(rest, " ")
	timeout, err := parseCount(first)
	if err != nil || command == "" {
		return nil, fmt.Errorf("a shell needs a timeout and a command")
	}
	return func(a *agent, callID string) object { return shellArgs(a, callID, timeout, command, false) }, nil
}

// backgroundShell reads "COMMAND...": the call returns at once, which its timeout of 0 says.
func backgroundShell(command string) (build, error) {
	if command == "" {
		return nil, fmt.Errorf("a background shell needs a command")
	}
	return func(a *agent, callID string) object { return shellArgs(a, callID, 0, command, true) }, nil
}

func shellArgs(a *agent, callID string, timeout int, command string, background bool) object {
	words := strings.Fields(command)
	parsed := []object{}
	for _, w := range words[1:] {
		parsed = append(parsed, object{{"type", "word"}, {"value", w}})
	}
	args := object{
		{"command", command}, {"workingDirectory", ""}, {"timeout", timeout}, {"toolCallId", callID},
		{"simpleCommands", words[:1]}, {"hasInputRedirect", false}, {"hasOutputRedirect", false},
		{"parsingResult", object{
			{"parsingFailed", false},
			{"executableCommands", []object{{{"name", words[0]}, {"args", parsed}, {"fullText", command}}}},
			{"hasRedirects", false}, {"hasCommandSubstitution", false}, {"redirects", []string{}},
		}},
		{"fileOutputThresholdBytes", "40000"}, {"isBackground", background}, {"skipApproval", false},
	}
	if background {
		args = append(args, field{"timeoutBehavior", "TIMEOUT_BEHAVIOR_UNSPECIFIED"})
	} else {
		args = append(args, field{"timeoutBehavior", "TIMEOUT_BEHAVIOR_BACKGROUND"}, field{"hardTimeout", 86400000})
	}
	return append(args, object{
		{"description", "Run " + words[0]}, {"closeStdin", !background}, {"conversationId", a.session},
		{"adminCommandDenylist", []string{}}, {"requestId", a.request},
	}...)
}

// shellDone reads "[EXIT [OUTPUT...]]".
func shellDone(rest string) (outcome, error) {
	first, output, _ := strings.Cut(rest, " ")
	if first == "" {
		first = "0"
	}
	if output != "" {
		output += "\n"
	}
	exit, err := parseCount(first)
	return func(_ *agent, c *call) object {
		report := object{
			{"command", c.args.get("command")}, {"workingDirectory", ""}, {"exitCode", exit}, {"signal", ""},
			{"stdout", output}, {"stderr", ""}, {"executionTime", elapsed(c)}, {"interleavedOutput", output},
			{"localExecutionTimeMs", elapsed(c)},
		}
		if exit != 0 {
			return object{{"failure", append(report, field{"aborted", false})}, {"isBackground", false}}
		}
		return object{{"success", report}, {"isBackground", false}}
	}, err
}

// shellBackground reads "SHELLID PID|last": the command was moved to the background. The exit code of 0
// that the real agent reports there means nothing.
func shellBackground(rest string) (outcome, error) {
	words := strings.Fields(rest)
	if len(words) != 2 {
		return nil, fmt.Errorf("want a shell id and a pid")
	}
	shell, err := parseCount(words[0])
	if err != nil {
		return nil, err
	}
	pid := 0
	if words[1] != "last" {
		if pid, err = parseCount(words[1]); err != nil {
			return nil, err
		}
	}
	return func(a *agent, c *call) object {
		if words[1] == "last" {
			pid = a.lastPid
		}
		reason := "SHELL_BACKGROUND_REASON_TIMEOUT"
		if c.args.get("isBackground") == true {
			reason = "SHELL_BACKGROUND_REASON_USER_REQUEST"
		}
		return object{
			{"success", object{
				{"command", c.args.get("command")}, {"workingDirectory", ""}, {"exitCode", 0}, {"signal", ""},
				{"stdout", ""}, {"stderr", ""}, {"executionTime", elapsed(c)}, {"shellId", shell}, {"pid", pid},
				{"backgroundReason", reason},
			}},
			{"isBackground", true}, {"terminalsFolder", a.cwd + "/.cursor/terminals"},
		}
	}, nil
}

// awaitArgs reads "TASKID BLOCK_MS".
func awaitArgs(rest string) (build, error) {
	task, block, _ := strings.Cut(rest, " ")
	ms, err := parseCount(block)
	return func(*agent, string) object { return object{{"taskId", task}, {"blockUntilMs", ms}} }, err
}

func awaitDone(rest string) (outcome, error) {
	return func(_ *agent, c *call) object {
		return object{{"success", object{{"taskId", c.args.get("taskId")}, {"output", rest}}}}
	}, nil
}

// taskArgs reads the description of a subagent's work.
func taskArgs(rest string) (build, error) {
	return func(_ *agent, callID string) object {
		return object{
			{"description", rest}, {"prompt", rest}, {"subagentType", object{{"unspecified", object{}}}},
			{"model", ""}, {"agentId", agentID(callID)}, {"attachments", []string{}}, {"mode", "TASK_MODE_UNSPECIFIED"},
		}
	}, nil
}

// agentID is "agent-ID" for the call ID of a scenario, so that a notify line can name it.
func agentID(callID string) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(callID, "call_"), "\n")
	return "agent-" + id
}

func taskDone(string) (outcome, error) { return taskResult(false), nil }

func taskBackground(string) (outcome, error) { return taskResult(true), nil }

func taskResult(background bool) outcome {
	return func(_ *agent, c *call) object {
		report := object{
			{"conversationSteps", []string{}}, {"agentId", c.args.get("agentId")}, {"isBackground", background},
			{"durationMs", strconv.FormatInt(elapsed(c), 10)}, // a string, as in the captures
		}
		if background {
			report = append(report, field{"backgroundReason", "TASK_BACKGROUND_REASON_USER_REQUEST"})
		}
		return object{{"success", report}}
	}
}

// mcpArgs reads "SERVER TOOL".
func mcpArgs(rest string) (build, error) {
	server, tool, found := strings.Cut(rest, " ")
	if !found {
		return nil, fmt.Errorf("mcp needs a server and a tool")
	}
	return func(_ *agent, callID string) object {
		return object{
			{"name", server + "-" + tool}, {"args", object{}}, {"toolCallId", callID},
			{"providerIdentifier", server}, {"toolName", tool}, {"serverIdentifier", server},
			{"skipApproval", false}, {"smartModeApprovalOnly", false},
		}
	}, nil
}

func mcpDone(rest string) (outcome, error) {
	content := []object{{{"text", object{{"text", rest}}}}}
	return func(*agent, *call) object {
		return object{{"success", object{
			{"content", content}, {"isError", false}, {"systemReminders", []string{}},
		}}}
	}, nil
}

func readArgs(path string) (build, error) {
	return func(*agent, string) object { return object{{"path", path}} }, nil
}

func readDone(rest string) (outcome, error) {
	return func(_ *agent, c *call) object {
		return object{{"success", object{
			{"content", rest}, {"isEmpty", rest == ""}, {"exceededLimit", false}, {"totalLines", 1},
			{"fileSize", len(rest)}, {"path", c.args.get("path")},
			{"readRange", object{{"startLine", 1}, {"endLine", 1}}},
		}}}
	}, nil
}

// editArgs reads "PATH CONTENT".
func editArgs(rest string) (build, error) {
	path, content, _ := strings.Cut(rest, " ")
	return func(*agent, string) object { return object{{"path", path}, {"streamContent", content}} }, nil
}

func editDone(string) (outcome, error) {
	return func(_ *agent, c *call) object {
		content := fmt.Sprint(c.args.get("streamContent"))
		return object{{"success", object{
			{"path", c.args.get("path")}, {"linesAdded", 1}, {"linesRemoved", 0}, {"diffString", "+" + content},
			{"afterFullFileContent", content}, {"message", "Wrote contents to the file"},
		}}}
	}, nil
}
