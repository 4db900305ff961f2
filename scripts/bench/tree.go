package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"
)

// shape is a tree that an agent builds, and how it ends.
type shape struct {
	name    string
	members int    // the agent's children
	deaf    bool   // every other child is in a session of its own and ignores TERM
	leaves  bool   // the agent gives its result and exits; else it waits to be ended
	says    string // what the agent says after its init: whole lines, or nothing
}

// treeAgent is an agent that builds the tree of a shape; it says init when the
// tree stands. Nobody of it lives longer than 90 s.
func (l *lab) treeAgent(ctx context.Context) (path, made string, err error) {
	path = filepath.Join(l.dir, "tree")
	script := fmt.Sprintf(treeScript, initLine, resultLine)
	made, err = build(ctx, path, fmt.Sprintf(treeC, initLine, resultLine), script)
	return path, made, err
}

// The environment by which the agent is told what tree to build.
const (
	lifeEnv    = "BENCH_LIFE" // FIFO that the whole tree holds open for writing, and nobody else; may be absent
	membersEnv = "BENCH_MEMBERS"
	deafEnv    = "BENCH_DEAF"
	leavesEnv  = "BENCH_LEAVES"
	saysEnv    = "BENCH_SAYS"
)

func (s shape) env() []string {
	flag := map[bool]string{true: "1", false: "0"}
	return []string{
		membersEnv + "=" + strconv.Itoa(s.members), deafEnv + "=" + flag[s.deaf],
		leavesEnv + "=" + flag[s.leaves], saysEnv + "=" + s.says,
	}
}

// callLine is the start of a shell call that declares how long it may take.
func callLine(declared time.Duration) string {
	const id = `call-bb11656a-e59e-4356-9866-000000000001-0\nfc_35bc3e26-1dfc-9c07-b668-4c50a744b8f9_0`
	return fmt.Sprintf(`{"type":"tool_call","subtype":"started","call_id":"%s","tool_call":{"shellToolCall":{"args":`+
		`{"command":"make all","workingDirectory":"","timeout":%d,"toolCallId":"%s"},"description":"Build"},`+
		`"toolCallId":"%s","startedAtMs":"1784819289745"},`+model+tail, id, declared.Milliseconds(), id, id)
}

// treeC is formatted like agentC. A child reports only when it is what it shall
// be: until then a SIGTERM would reach somebody who is not deaf yet.
const treeC = `#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char init[] = %q, result[] = %q;

static int number(const char *name) { return getenv(name) ? atoi(getenv(name)) : 0; }

static void child(int deaf, int ready) {
	alarm(90);
	if (deaf) {
		setsid();
		signal(SIGTERM, SIG_IGN);
	}
	if (write(ready, "", 1) != 1) _exit(1);
	close(ready);
	for (;;) pause();
}

int main(void) {
	int members = number("BENCH_MEMBERS"), deaf = number("BENCH_DEAF"), ready[2], n, got;
	char buf[4096];
	alarm(90);
	while (read(0, buf, sizeof buf) > 0) {}
	if (getenv("BENCH_LIFE") && open(getenv("BENCH_LIFE"), O_WRONLY) < 0) return 1;
	if (pipe(ready) < 0) return 1;
	for (n = 0; n < members; n++) {
		pid_t pid = fork();
		if (pid < 0) return 1;
		if (pid == 0) child(deaf && n %% 2, ready[1]);
	}
	close(ready[1]);
	for (n = 0; n < members; n += got)
		if ((got = read(ready[0], buf, sizeof buf)) <= 0) return 1;
	if (write(1, init, sizeof init - 1) < 0) return 1;
	if (getenv("BENCH_SAYS") && write(1, getenv("BENCH_SAYS"), strlen(getenv("BENCH_SAYS"))) < 0) return 1;
	if (number("BENCH_LEAVES")) return write(1, result, sizeof result - 1) < 0;
	for (;;) pause();
}
`

// treeScript does the same without a compiler. Its children cannot report, so
// they get half a second.
const treeScript = `#!/bin/sh
while read -r line; do :; done
[ -z "$BENCH_LIFE" ] || exec 9>"$BENCH_LIFE"
n=0
while [ "$n" -lt "$BENCH_MEMBERS" ]; do
	if [ "$BENCH_DEAF" = 1 ] && [ $((n %% 2)) = 1 ]; then
		(trap '' TERM; exec setsid sleep 90) &
	else
		sleep 90 &
	fi
	n=$((n + 1))
done
[ "$n" = 0 ] || sleep 0.5
printf %%s '%s'"$BENCH_SAYS"
[ "$BENCH_LEAVES" = 0 ] || { printf %%s '%s'; exit 0; }
exec sleep 90
`
