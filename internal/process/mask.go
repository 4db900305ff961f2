package process

import (
	"slices"
	"strings"
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
