package format

import (
	"slices"
	"strings"
)

// verdict is how a call went.
type verdict struct {
	failed  bool
	refused bool // it never ran, so it took no time
	details []string
}

func refused(what, why string) verdict {
	if why = strings.TrimSpace(why); why != "" {
		what += ": " + why
	}
	return verdict{failed: true, refused: true, details: []string{what}}
}

// judge reads the outcome of a completion: its kind, and what that says.
func judge(tool, kind string, says fields, text string) verdict {
	why := says.pick("error", "errorMessage", "message", "modelVisibleError", "reason", "stderr")
	if why == "" {
		why = text
	}
	switch kind {
	case "rejected":
		return refused("rejected", says.pick("reason", "message"))
	case "permissionDenied":
		return refused("permission denied", why)
	case "spawnError":
		return refused("not started", why)
	case "success", "failure", "":
		return ended(tool, kind, says)
	case "error":
		if why == "" {
			why = "error"
		}
		return verdict{failed: true, details: []string{firstLine(why)}}
	case "timeout":
		return verdict{failed: true, details: []string{"timed out"}}
	case "aborted":
		return verdict{failed: true, details: []string{"aborted"}}
	case "approved":
		return verdict{}
	}
	bad := slices.ContainsFunc([]string{"error", "fail", "denied", "reject", "abort"}, func(s string) bool {
		return strings.Contains(strings.ToLower(kind), s)
	})
	return verdict{failed: bad, details: []string{split(kind)}}
}

// ended is a call that ran to its end. Old builds say so of a command that
// failed, too.
func ended(tool, kind string, says fields) (v verdict) {
	v.failed = kind == "failure"
	code, coded := says.number("exitCode")
	switch signal := says.pick("signal"); {
	case says.isTrue("aborted"):
		v.details = append(v.details, "aborted")
	case signal != "" && signal != "0":
		v.details = append(v.details, signal)
	case coded:
		v.details = append(v.details, "exit "+says.pick("exitCode"))
	}
	v.failed = v.failed || coded && code != 0 || len(v.details) > 0 && !coded || says.isTrue("aborted")
	if says.isTrue("isError") {
		v.failed = true
		v.details = append(v.details, "error"+after(": ", firstLine(results(says))))
	}
	added, ok1 := says.number("linesAdded")
	gone, ok2 := says.number("linesRemoved")
	if tool == "edit" && ok1 && ok2 && added+gone > 0 {
		v.details = append(v.details, "+"+says.pick("linesAdded")+" −"+says.pick("linesRemoved"))
	}
	if kind == "failure" && len(v.details) == 0 {
		v.details = append(v.details, "failed"+after(": ", firstLine(says.pick("error", "message", "reason", "stderr"))))
	}
	return v
}

func after(sep, s string) string {
	if s == "" {
		return ""
	}
	return sep + s
}

// results is the text that an MCP tool came back with.
func results(says fields) string {
	var b strings.Builder
	for _, part := range list(says["content"]) {
		f := object(part)
		if s := str(f["text"]); s != "" {
			b.WriteString(s)
		} else {
			b.WriteString(str(object(f["text"])["text"]))
		}
	}
	return strings.TrimSpace(b.String())
}
