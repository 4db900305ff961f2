package supervise

import "strings"

// refusals are the messages by which the agent is known to refuse or give up,
// each with what to do about it. The first that is found counts, so the more
// telling stand first.
var refusals = []struct{ text, advice string }{
	{"Workspace Trust Required", "the workspace is not trusted: pass --trust, or run the agent once in it by hand"},
	{"Authentication required", "the agent is not logged in: run `cursor-agent login`, or set CURSOR_API_KEY"},
	{"API key is invalid", "the API key was refused: check CURSOR_API_KEY or --api-key; set but empty is worse than unset"},
	{"Cannot use this model", "the model is not available: choose one of those that the agent lists, with --model"},
	{"could not verify its persistent session", "another process uses this chat: wait for it to end, or start without --resume"},
	{"Failed to claim persistent session", "the chat id was refused: check the id given to --resume"},
	{"You've hit your usage limit", "the account's usage limit is reached: raise it, or wait until it is renewed"},
	{"Sandbox mode is enabled but not available", "no sandbox on this system: pass --sandbox disabled"},
	{"unknown option", "the agent does not know a flag that it was given: compare the flags after -- with its --help"},
	{"Connection failed repeatedly", "the agent could not reach its server: check the network and proxy; network.useHttp1ForAgent in its configuration helps against stalled HTTP/2"},
	{"RetriableError", "the server refused the request after retries: try again later, or look at the message above"},
}

// advise is one line of advice for what the agent said last, or nothing.
func advise(said string) string {
	for _, r := range refusals {
		if strings.Contains(said, r.text) {
			return r.advice
		}
	}
	return ""
}
