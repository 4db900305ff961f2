/* The trees that do not hold still. */
#include "tree.h"

#include <sys/syscall.h>

/* A relay: one process at a time, each a child of the one that has just left. */
static void relay(long us, int session) {
	ignore_polite();
	signal(SIGCHLD, SIG_IGN);
	stand();
	for (;;) {
		nap(us);
		if (over() || shared->forks++ >= STORM_CAP)
			_exit(0);
		pid_t pid = fork();
		if (pid > 0)
			_exit(0);
		if (pid < 0)
			continue; /* no room just now */
		arm();
		if (session)
			setsid();
	}
}

static void slow(int arg) {
	(void)arg;
	relay(1000, 0);
}

static void fast(int arg) {
	(void)arg;
	relay(300, 0);
}

static void sessions(int arg) {
	(void)arg;
	relay(1000, 1);
}

int build_storm(void) {
	orphan(slow, 0);
	return 1;
}

int build_stormfast(void) {
	daemon_of(fast, 0);
	return 1;
}

int build_stormsid(void) {
	orphan(sessions, 0);
	return 1;
}

/*
 * A hydra: heads in a ring, each watching the next. The one whose neighbour
 * died has a new one take the place.
 */

static int heads;        /* in the ring */
static long slowness_us; /* between a death and the birth */

/* ended waits a moment for the end of pid. A pid that was given to somebody
 * else meanwhile is only watched, never signalled. */
static int ended(pid_t pid) {
	int fd = syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return errno == ESRCH;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int n = poll(&p, 1, 50);
	close(fd);
	return n > 0;
}

/* vacant is true when nobody holds the place, or nobody does any more. */
static int vacant(int place) {
	pid_t pid = shared->head[place];
	if (pid > 0)
		return ended(pid);
	nap(20000); /* not born yet; or begun, by one that died over it */
	return shared->head[place] < 0;
}

/* newborn forks twice and is true in the grandchild. It does not go through
 * fail: when there is no room for a fork, the next round tries again. */
static int newborn(void) {
	pid_t pid = fork();
	if (pid > 0)
		reap(pid);
	if (pid != 0)
		return 0;
	arm();
	setsid();
	if (fork() != 0)
		_exit(0);
	arm();
	return 1;
}

static void head(int place) {
	ignore_polite();
	shared->head[place] = getpid();
	stand();
	while (!over()) {
		int next = (place + 1) % heads;
		if (!vacant(next))
			continue;
		if (slowness_us)
			nap(slowness_us);
		if (shared->forks++ >= HYDRA_CAP)
			_exit(0);
		shared->head[next] = -1;
		if (newborn()) {
			place = next;
			shared->head[place] = getpid();
		}
	}
	_exit(0);
}

static int hydra(int n, long us) {
	heads = n;
	slowness_us = us;
	for (int i = 0; i < n; i++)
		daemon_of(head, i);
	return n;
}

int build_hydra(void) { return hydra(6, 10000); }

int build_hydrafast(void) { return hydra(HEADS, 0); }
