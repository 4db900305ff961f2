package process

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Masked is a command line as it may be shown: the values of flags that carry
// secrets are left out, whichever way they are written.
func Masked(args []string) []string {
	out := slices.Clone(args)
	hide := false
	for i, a := range args {
		name, value, joined := strings.Cut(a, "=")
		switch {
		case hide:
			out[i], hide = mask, false
		case strings.HasPrefix(a, "-H") && len(a) > 2 && !strings.HasPrefix(a, "--"):
			out[i] = "-H" + mask
		case !secret(name):
		case joined && value != "":
			out[i] = name + "=" + mask
		default:
			hide = !joined
		}
		if !hide && out[i] == a {
			out[i] = maskedWithin(a)
		}
	}
	return out
}

// secrets are what gives itself away within an argument, such as the command of
// a shell: the password in a URL, an assignment to a name that says what it is,
// a bearer's token.
var secrets = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(://[^/\s:@]*:)[^/\s@]+(@)|` +
		`\b((?:[a-z0-9_]+_)?(?:api_?key|key|token|secret|passwd|password)=)[^\s"']+|` +
		`(\bbearer\s+)[^\s"']+|` +
		`((?:^|\s)--?[a-z0-9-]*(?:api-?key|token|secret|passwd|password)[= ])[^\s"']+`)
})

func maskedWithin(arg string) string {
	if !strings.ContainsAny(arg, "=: ") {
		return arg
	}
	return secrets().ReplaceAllString(arg, "${1}${3}${4}${5}***${2}")
}

// secret reports whether a flag's value must not be shown.
func secret(name string) bool {
	if name == "-H" || name == "--header" {
		return true
	}
	name, ok := strings.CutPrefix(strings.ToLower(name), "-")
	return ok && slices.ContainsFunc([]string{"key", "token", "secret", "password"}, func(s string) bool {
		return strings.Contains(name, s)
	})
}
