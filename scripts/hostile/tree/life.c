/* What every process of a tree needs: an end, a way to say that it stands, and
 * ways to be born. */
#include "tree.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

enum { MAGIC = 0x74726565 };

struct shared *shared;

int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int map(void) {
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
	return shared != MAP_FAILED;
}

/* share makes the page that all processes of the tree have in common. It is a
 * file, so that the runner can write into it as well. */
void share(const char *dir) {
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/shared", dir);
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, sizeof *shared) != 0 || dup2(fd, SHARED_FD) < 0 || !map()) {
		perror("hostile: shared page");
		_exit(1);
	}
	if (fd != SHARED_FD)
		close(fd);
	shared->deadline = now() + LIFETIME * 1000000000LL;
	shared->agent = getpid();
	shared->magic = MAGIC;
}

/* attach is for a process of the tree that was exec'ed and knows nothing but
 * the numbers of its descriptors. */
int attach(void) {
	struct stat st;
	if (fstat(SHARED_FD, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof *shared)
		return 0;
	return map() && shared->magic == MAGIC;
}

/* arm makes the calling process end at the deadline, whatever it ignores and
 * even when it is stopped: the timer's signal is SIGKILL. The alarm is for
 * kernels that know no such timer. Neither is inherited by fork, so every child
 * arms itself. The init of a pid namespace is immune to both: it must call
 * rest, which looks at the clock. */
void arm(void) {
	struct sigevent ev;
	memset(&ev, 0, sizeof ev);
	ev.sigev_notify = SIGEV_SIGNAL;
	ev.sigev_signo = SIGKILL;
	timer_t timer;
	if (timer_create(CLOCK_MONOTONIC, &ev, &timer) == 0) {
		struct itimerspec at;
		memset(&at, 0, sizeof at);
		at.it_value.tv_sec = shared->deadline / 1000000000LL;
		at.it_value.tv_nsec = shared->deadline % 1000000000LL + 1;
		if (at.it_value.tv_nsec > 999999999)
			at.it_value.tv_nsec = 999999999;
		timer_settime(timer, TIMER_ABSTIME, &at, NULL);
	}
	int64_t left = (shared->deadline - now()) / 1000000000LL + 2;
	alarm(left > 0 ? left : 1);
}

int over(void) { return shared->stop || now() >= shared->deadline; }

/* begin is what every child does first. */
void begin(void) {
	arm();
	/* Only holdpipe holds the agent's stdout: everywhere else it would hide
	 * what the tree is meant to show. */
	int null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			close(fd);
	if (null > 2)
		close(null);
}

/* stand says that one more process of the tree is what it is meant to be. */
void stand(void) {
	shared->standing++;
	syscall(SYS_futex, &shared->standing, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* await is true once that many stand, false when one failed or too much time
 * has passed. */
int await(uint32_t expected) {
	int64_t until = now() + 20 * 1000000000LL;
	for (;;) {
		uint32_t n = shared->standing;
		if (shared->failed)
			return 0;
		if (n >= expected)
			return 1;
		if (now() > until) {
			snprintf(shared->why, sizeof shared->why, "only %u of %u processes stand", n, expected);
			return 0;
		}
		struct timespec tick = {.tv_nsec = 100000000};
		syscall(SYS_futex, &shared->standing, FUTEX_WAIT, n, &tick, NULL, 0);
	}
}

void rest(void) {
	while (!over())
		poll(NULL, 0, (shared->deadline - now()) / 1000000 + 1);
	_exit(0);
}

/* fail says why the tree cannot stand; the agent passes it on. */
void fail(const char *what) {
	const char *why = strerror(errno);
	if (shared->failed++ == 0)
		snprintf(shared->why, sizeof shared->why, "%s: %s", what, why);
	if (getpid() == shared->agent)
		give_up();
	syscall(SYS_futex, &shared->standing, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	_exit(1);
}

static pid_t parent; /* who forked the calling process */

/* spawn is fork, for a process of the tree. */
pid_t spawn(void) {
	parent = getpid();
	pid_t pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0)
		begin();
	return pid;
}

/* raw_clone is spawn with flags that fork does not take. */
pid_t raw_clone(unsigned long flags) {
	pid_t pid = syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid < 0)
		fail("clone");
	if (pid == 0)
		begin();
	return pid;
}

pid_t child(role r, int arg) {
	pid_t pid = spawn();
	if (pid == 0) {
		r(arg);
		rest();
	}
	return pid;
}

void reap(pid_t pid) {
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* orphan starts a process whose parent has left: in the same group. */
void orphan(role r, int arg) {
	pid_t pid = spawn();
	if (pid == 0) {
		child(r, arg);
		_exit(0);
	}
	reap(pid);
}

/* await_orphanage returns when the parent has left. */
void await_orphanage(void) {
	while (!over() && getppid() == parent)
		nap(200);
}

/* daemon_of does what daemons do: a session of its own, and fork again. */
void daemon_of(role r, int arg) {
	pid_t pid = spawn();
	if (pid == 0) {
		setsid();
		child(r, arg);
		_exit(0);
	}
	reap(pid);
}

void nap(long us) {
	struct timespec t = {us / 1000000, us % 1000000 * 1000};
	nanosleep(&t, NULL);
}

void ignore_all(void) {
	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_IGN);
}

/* ignore_polite ignores what asks a process to end. */
void ignore_polite(void) {
	static const int polite[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
	for (size_t i = 0; i < sizeof polite / sizeof *polite; i++)
		signal(polite[i], SIG_IGN);
}

int write_file(const char *dir, const char *name, const char *text) {
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t n = write(fd, text, strlen(text));
	int why = errno;
	close(fd);
	errno = why;
	return n < 0 ? -1 : 0;
}

/* state_of is the letter in /proc/<pid>/stat, for pid 0 one's own; 0 if it
 * cannot be read. */
int state_of(pid_t pid) {
	char path[64], text[256];
	if (pid == 0)
		snprintf(path, sizeof path, "/proc/self/stat");
	else
		snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	char *end = strrchr(text, ')');
	return end && end[1] ? end[2] : 0;
}
