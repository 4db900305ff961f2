package tmux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Server is a tmux server, which need not run.
type Server struct {
	args []string
}

// answerWithin is how long tmux may take for an answer. It gives one in
// milliseconds; a server that was stopped gives none.
const answerWithin = 20 * time.Second

// New is the server behind a socket: the path of one, or a name as tmux -L
// takes it. Empty is the one that tmux itself would choose, by $TMUX and
// $TMUX_TMPDIR.
func New(socket string) *Server {
	s := &Server{args: []string{"-u"}} // or what is not ASCII comes out as underscores
	switch {
	case socket == "":
	case strings.Contains(socket, "/"):
		s.args = append(s.args, "-S", socket)
	default:
		s.args = append(s.args, "-L", socket)
	}
	return s
}

// oldest is the first version that has all that is used here, set-option -F
// being the youngest of it.
var oldest = [2]int{2, 6}

// Available says why there is no working with tmux, and what would help.
func (s *Server) Available() error {
	if _, err := exec.LookPath("tmux"); err != nil {
		return errors.New("tmux is not on the PATH; install it (apt install tmux, brew install tmux)")
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	out, err := exec.CommandContext(ctx, "tmux", "-V").Output()
	if err != nil {
		return fmt.Errorf("tmux -V: %w; it must work from a shell first", err)
	}
	if told := strings.TrimSpace(string(out)); tooOld(told) {
		return fmt.Errorf("%s is too old; %d.%d or later is needed", told, oldest[0], oldest[1])
	}
	return nil
}

// tooOld judges what tmux -V says. A version without a number is that of a
// build from the sources.
func tooOld(told string) bool {
	m := regexp.MustCompile(`(\d+)\.(\d+)`).FindStringSubmatch(told)
	if m == nil || strings.Contains(told, "openbsd") { // which numbers it like the system
		return false
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	return slices.Compare([]int{major, minor}, oldest[:]) < 0
}

// errNoServer is that no server runs at the socket.
var errNoServer = errors.New("no tmux server runs")

// then stands between two commands of one call. tmux does them in one go.
const then = ";"

// word makes tmux take an argument as it is: one that ends with a semicolon
// would end the command.
func word(s string) string {
	if rest, ok := strings.CutSuffix(s, ";"); ok {
		return rest + `\;`
	}
	return s
}

// literal is a text as it stands in a format.
func literal(s string) string { return strings.ReplaceAll(s, "#", "##") }

// ask has tmux do something and returns what it prints; where it failed, what it
// had printed before.
func (s *Server) ask(ctx context.Context, words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, "tmux", slices.Concat(s.args, words)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err == nil {
		return string(out), nil
	}
	why := strings.TrimSpace(said.String())
	switch {
	case noServer(why):
		return string(out), errNoServer
	case ctx.Err() != nil:
		return string(out), fmt.Errorf("tmux %s: no answer: %w", words[0], ctx.Err())
	case why == "":
		return string(out), fmt.Errorf("tmux %s: %w", words[0], err)
	}
	return string(out), fmt.Errorf("tmux %s: %s", words[0], why)
}

func noServer(why string) bool {
	return strings.HasPrefix(why, "no server running") || strings.HasPrefix(why, "lost server") ||
		strings.HasPrefix(why, "server exited") || strings.HasPrefix(why, "error connecting to") &&
		(strings.Contains(why, "No such file") || strings.Contains(why, "Connection refused"))
}

// CommandLine is tmux with these arguments at this server, for whoever becomes
// it.
func (s *Server) CommandLine(words ...string) []string {
	return slices.Concat([]string{"tmux"}, s.args, words)
}
