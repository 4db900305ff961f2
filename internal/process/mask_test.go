package process

import (
	"slices"
	"testing"
)

// What gives itself away as a secret is not shown, wherever it stands.
func TestMasked(t *testing.T) {
	for _, row := range []struct{ args, want []string }{
		{[]string{"agent", "--api-key", "abc", "x"}, []string{"agent", "--api-key", "***", "x"}},
		{[]string{"--auth-token=abc"}, []string{"--auth-token=***"}},
		{[]string{"-token", "abc", "y"}, []string{"-token", "***", "y"}},
		{[]string{"-H", "Authorization: x"}, []string{"-H", "***"}},
		{[]string{"psql", "postgresql://u:hunter2@db/x"}, []string{"psql", "postgresql://u:***@db/x"}},
		{[]string{"bash", "-c", "API_KEY=abc curl -H 'Authorization: Bearer s3cret' x"},
			[]string{"bash", "-c", "API_KEY=*** curl -H 'Authorization: Bearer ***' x"}},
		{[]string{"bash", "-c", "tool --password hunter2 --port 80"}, []string{"bash", "-c", "tool --password *** --port 80"}},
		{[]string{"env", "GITHUB_TOKEN=abc", "make", "KEYS=3"}, []string{"env", "GITHUB_TOKEN=***", "make", "KEYS=3"}},
		{[]string{"curl", "https://example.invalid:8080/a?b=c"}, []string{"curl", "https://example.invalid:8080/a?b=c"}},
		{[]string{"grep", "-k", "monkey=1 keyboard"}, []string{"grep", "-k", "monkey=1 keyboard"}},
	} {
		if got := Masked(row.args); !slices.Equal(got, row.want) {
			t.Errorf("%q is shown as %q, want %q", row.args, got, row.want)
		}
	}
}
