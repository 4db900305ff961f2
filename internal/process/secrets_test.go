package process

import (
	"encoding/json"
	"testing"
)

func TestMaskedText(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"postgresql://u:hunter2@db/x", "postgresql://u:***@db/x"},
		{"redis://:hunter2@db", "redis://:***@db"},
		{"API_KEY=abc curl -H 'Authorization: Bearer s3cret' x", "API_KEY=*** curl -H 'Authorization: Bearer ***' x"},
		{`export MY_TOKEN="a b c"; make`, `export MY_TOKEN="***"; make`},
		{`PASSWORD='a b' x`, `PASSWORD='***' x`},
		{"tool --password hunter2 --port 80", "tool --password *** --port 80"},
		{"tool --api-key hunter2 --key plain", "tool --api-key *** --key plain"},
		{"--auth-token=abc", "--auth-token=***"},
		{"APIKEY=abc apikey=abc", "APIKEY=*** apikey=***"},
		{"GITHUB_TOKEN=abc make KEYS=3", "GITHUB_TOKEN=*** make KEYS=3"},
		{"https://example.invalid:8080/a?b=c", "https://example.invalid:8080/a?b=c"},
		{"https://example.invalid/?token=abc", "https://example.invalid/?token=***"},
		{"monkey=1 keyboard, the token is here, a key thing", "monkey=1 keyboard, the token is here, a key thing"},
		{"a bearer of news, forbearer x", "a bearer *** news, forbearer x"},
		{"KEY=", "KEY="},
		{"", ""},
	} {
		if got := maskedWithin(row.text); got != row.want {
			t.Errorf("%q is shown as %q, want %q", row.text, got, row.want)
		}
	}
}

// In JSON the quotes around a string are not those of a value, and what is
// masked stays JSON.
func TestSecretsInJSON(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"x\nAPI_KEY=abc\nmake", "x\nAPI_KEY=***\nmake"},
		{`MY_KEY="a b" make`, `MY_KEY="***" make`},
		{"MY_KEY=", "MY_KEY="},
		{`MY_KEY=a\b c`, "MY_KEY=*** c"},
		{"x --token abc", "x --token ***"},
		{"a\n--token abc\tb", "a\n--token ***\tb"},
	} {
		line, err := json.Marshal(map[string]string{"a": row.text, "b": "c"})
		if err != nil {
			t.Fatal(err)
		}
		var out []byte
		end := 0
		for _, s := range Secrets(line, true, nil) {
			out = append(append(out, line[end:s[0]]...), mask...)
			end = s[1]
		}
		out = append(out, line[end:]...)
		var back map[string]string
		if err := json.Unmarshal(out, &back); err != nil || back["a"] != row.want || back["b"] != "c" {
			t.Errorf("%q is shown as %s (%v)", row.text, out, err)
		}
	}
}
