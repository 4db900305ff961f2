package events

import (
	"strconv"
	"strings"
	"time"
)

// arg numbers the arguments of all tools that are of interest here.
type arg uint8

const (
	// What a call does, the most telling first: a search for a pattern in a
	// path shows the pattern. A task's id comes before its description.
	argCommand arg = iota
	argGlob
	argPattern
	argURL
	argQuery
	argSearch
	argPath
	argURI
	argTask
	argRemote // not an argument: the place in this order of server and tool
	argDescription
	argPrompt
	argTitle
	telling // how many there are up to here

	argServer
	argProvider
	argTool
	argName
	argTimeout
	argBlock
	argCallID
	argCount // how many there are; as an argument: none of them
)

func argOf(key []byte) arg {
	switch string(key) {
	case "command":
		return argCommand
	case "globPattern":
		return argGlob
	case "pattern":
		return argPattern
	case "url":
		return argURL
	case "query":
		return argQuery
	case "searchTerm":
		return argSearch
	case "path":
		return argPath
	case "uri":
		return argURI
	case "taskId":
		return argTask
	case "description":
		return argDescription
	case "prompt":
		return argPrompt
	case "title":
		return argTitle
	case "serverIdentifier", "server":
		return argServer
	case "providerIdentifier":
		return argProvider
	case "toolName":
		return argTool
	case "name":
		return argName
	case "timeout":
		return argTimeout
	case "blockUntilMs":
		return argBlock
	case "toolCallId":
		return argCallID
	}
	return argCount
}

// args are the values of one call's arguments.
type args [argCount][]byte

func readArgs(v []byte) (a args) {
	for w := walkOver(v); w.next(); {
		if k := argOf(w.key); k < argCount {
			a[k] = w.value
		}
	}
	return a
}

// maxArgument is in runes: as much of a command as fits on two lines of a
// terminal.
const maxArgument = 200

// telling returns the first argument that says something.
func (a *args) telling() string {
	for k := range telling {
		s := clip(a[k], maxArgument)
		if k == argRemote {
			s = a.remote()
		}
		if s != "" {
			return s
		}
	}
	return ""
}

// remote returns the server and the tool of an MCP call.
func (a *args) remote() string {
	server, tool := a[argServer], a[argTool]
	if len(server) == 0 {
		server = a[argProvider]
	}
	if len(tool) == 0 {
		tool = a[argName]
	}
	s := clip(server, maxArgument) + " " + clip(tool, maxArgument)
	return firstRunes(strings.TrimSpace(s), maxArgument)
}

// declared returns how long a call said that it may take. Only two tools are
// asked. A shell's timeout is how long it may stay in the foreground, an
// await's blockUntilMs how long it waits; both are answered by a completion.
// Of other tools nobody knows whether a "timeout" means that, or milliseconds
// at all: an MCP tool's may be anything.
func (a *args) declared(tool string) time.Duration {
	switch tool {
	case "shell":
		return milliseconds(a[argTimeout])
	case "await":
		return milliseconds(a[argBlock])
	}
	return 0
}

// maxDeclared keeps sums of times and durations from overflowing.
const maxDeclared = 10 * 365 * 24 * time.Hour

// milliseconds reads a number or a string that holds one. 0 is nothing
// declared: some builds write it without meaning it.
func milliseconds(v []byte) time.Duration {
	n := number(v)
	if n == nil {
		s := []byte(strings.TrimSpace(text(v)))
		if n = number(s); len(n) != len(s) {
			return 0
		}
	}
	// Out of range is an infinity or 0, and no other error is possible.
	ms, _ := strconv.ParseFloat(string(n), 64)
	switch {
	case ms >= float64(maxDeclared/time.Millisecond):
		return maxDeclared
	case ms > 0:
		return time.Duration(ms * float64(time.Millisecond))
	}
	return 0
}
