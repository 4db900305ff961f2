package format

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode"

	"cursor-wrap/internal/display"
	"cursor-wrap/internal/events"
)

// maxLabel is how many columns what a call does may take where no terminal
// sets a limit.
const maxLabel = 4 << 10

// label names a call: a command in quotes, or a tool and its telling argument.
type label struct {
	word, arg string // clean
	quoted    bool   // the argument is a command or a title
	path      bool   // the end of the argument tells more than its beginning
}

// fit returns the label in so many columns.
func (l label) fit(columns int, more string) string {
	before, behind := l.around()
	room := columns - display.Width(before) - len(behind)
	switch {
	case l.arg == "" || room < 2:
		return display.Cut(strings.TrimRight(before, " `"), columns, more)
	case l.path:
		return before + display.CutLeft(l.arg, room, more) + behind
	}
	return before + display.Cut(l.arg, room, more) + behind
}

// around is what stands before and behind the argument.
func (l label) around() (before, behind string) {
	if before = l.word; before != "" && l.arg != "" {
		before += " "
	}
	if l.quoted && l.arg != "" {
		return before + "`", "`"
	}
	return before, ""
}

func (l label) width() int {
	before, behind := l.around()
	return display.Width(before) + display.Width(l.arg) + len(behind)
}

// words are the tools that are not called by their own name.
var words = map[string]string{
	"webSearch": "web search", "webFetch": "fetch", "semSearch": "search", "updateTodos": "todos",
	"createPlan": "plan", "askQuestion": "question", "switchMode": "mode", "readLints": "lints",
	"getMcpTools": "mcp tools", "listMcpResources": "mcp resources", "readMcpResource": "mcp resource",
	"": "tool",
}

// label names the call that is on a line.
func (t *Text) label(c *events.Call, b body) label {
	word, ok := words[c.Tool]
	if !ok {
		word = split(c.Tool)
	}
	l := label{word: t.clean(word, 40)}
	arg := ""
	switch c.Tool {
	case "shell":
		arg, l.quoted = b.args.pick("command"), true
	case "read", "edit", "write", "delete", "ls":
		arg, l.path = t.below(b.args.pick("path", "filePath", "file_path", "targetDirectory")), true
	default:
		arg = t.argument(c, b.args)
	}
	if arg == "" {
		arg, l.path = t.below(c.Argument), false
	}
	l.arg = t.clean(strings.TrimSpace(arg), maxLabel)
	switch {
	case l.arg == "" && c.Tool == "ls":
		l.arg = "."
	case l.quoted && l.arg != "":
		l.word = ""
	}
	return l
}

// argument is what tells a person most of a call.
func (t *Text) argument(c *events.Call, a fields) string {
	switch c.Tool {
	case "grep":
		return in(a.pick("pattern"), t.below(a.pick("path")))
	case "glob":
		return in(a.pick("globPattern", "pattern"), t.below(a.pick("targetDirectory", "path")))
	case "mcp":
		return mcp(a)
	case "task":
		return firstLine(a.pick("description", "prompt"))
	case "await":
		return a.pick("taskId", "shellId")
	case "webSearch", "semSearch":
		return a.pick("searchTerm", "search_term", "query")
	case "updateTodos":
		return todos(list(a["todos"]))
	case "createPlan":
		return firstLine(a.pick("name", "title", "overview", "plan"))
	case "askQuestion":
		return question(a)
	case "switchMode":
		return a.pick("targetModeId", "targetMode", "mode")
	case "readLints":
		return t.paths(list(a["paths"]))
	case "getMcpTools", "listMcpResources":
		return strings.TrimSpace(a.pick("server", "serverIdentifier") + " " + a.pick("toolName"))
	}
	return ""
}

func in(what, where string) string {
	if what == "" || where == "" || where == "." {
		return what
	}
	return what + " in " + where
}

func mcp(a fields) string {
	server, tool := a.pick("serverIdentifier", "server", "providerIdentifier"), a.pick("toolName", "name")
	return strings.TrimSpace(server + " " + tool)
}

// todos tells how far the list is, and what is being done.
func todos(all []json.RawMessage) string {
	done, now := 0, ""
	for _, v := range all {
		f := object(v)
		switch status := strings.ToLower(f.pick("status")); {
		case strings.HasSuffix(status, "completed"):
			done++
		case strings.HasSuffix(status, "in_progress") && now == "":
			now = f.pick("content")
		}
	}
	if len(all) == 0 {
		return ""
	}
	s := strconv.Itoa(done) + " of " + strconv.Itoa(len(all)) + " done"
	if now != "" {
		s += ", now: " + now
	}
	return s
}

func question(a fields) string {
	if s := a.pick("title", "question"); s != "" {
		return s
	}
	for _, q := range list(a["questions"]) {
		if s := object(q).pick("prompt", "question"); s != "" {
			return s
		}
	}
	return ""
}

func (t *Text) paths(all []json.RawMessage) string {
	var names []string
	for _, v := range all[:min(len(all), 20)] {
		names = append(names, t.below(str(v)))
	}
	return strings.Join(names, " ")
}

// below shortens a path inside the agent's folder, which macOS knows by two
// names.
func (t *Text) below(path string) string {
	rest, ok := strings.CutPrefix(path, t.cwd)
	if real, private := strings.CutPrefix(t.cwd, "/private"); !ok && private {
		rest, ok = strings.CutPrefix(path, real)
	}
	switch {
	case !ok || len(t.cwd) < 2:
		return path
	case rest == "" || rest == "/":
		return "."
	case rest[0] == '/' || strings.HasSuffix(t.cwd, "/"):
		return strings.TrimPrefix(rest, "/")
	}
	return path
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// split makes words of a name such as applyAgentDiff.
func split(name string) string {
	var b strings.Builder
	lower := false
	for _, r := range head(name) {
		if unicode.IsUpper(r) && lower {
			b.WriteByte(' ')
		}
		lower = unicode.IsLower(r)
		if r == '_' {
			r = ' '
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
