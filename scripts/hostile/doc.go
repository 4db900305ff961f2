// Command hostile makes trees of processes that supervisors fail to end, ends
// the supervisor in every way there is, and counts who is left.
//
//	go run ./scripts/hostile -wrap bin/cursor-wrap [-containment tree] [-user nobody]
//	go run ./scripts/hostile -supervisor 'tini -s -g -- {}' -trees setsid,daemon -endings TERM,KILL
//	go run ./scripts/hostile -table -wrap bin/cursor-wrap
//
// The tree maker (tree, in C, compiled with the machine's cc) plays the agent.
// Every process of its tree holds the write end of a FIFO that nobody else
// holds, so the kernel tells the moment of the last death, and /proc tells who
// still holds it. A run is never timed: the tree says when it stands.
//
// Each run has a keeper, this program again, in a process group of its own. It
// is a child subreaper, so that what the supervisor leaves behind becomes its
// child and is seen, attributed to this run and ended, however many runs go on
// beside it. It starts the supervisor, and beside it, in the same process
// group and as the same user, bystanders that look like the tree and must live.
//
// What is counted for a run:
//
//	survivors   processes of the tree alive when the bound (-bound) is over
//	zombies     processes that the supervisor left behind dead and unreaped
//	helpers     other processes of the supervisor's, and itself, alive then
//	bystanders  those that ended, were stopped or got any signal at all
//	cgroups     cgroup v2 folders that it made and did not remove
//
// The bound begins with the supervisor's exit, for the endings that kill it
// with the kill. Exit status 1: something was counted for the supervisor under
// test, or a run could not be made.
//
// The suite signals what it has started and nothing else: its own unreaped
// children, and holders of its FIFO by pidfd. All of a tree ends by itself
// within 90 seconds even if the suite is killed.
package main
