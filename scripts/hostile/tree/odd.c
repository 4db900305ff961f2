/* The trees that need a system call of their own. */
#include "tree.h"

#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <termios.h>

static void member(int arg) {
	(void)arg;
	stand();
	rest();
}

static void own_session(int arg) {
	setsid();
	member(arg);
}

/* ptybg: a terminal, the leader of its session, two background jobs. */

static void background(int arg) {
	setpgid(0, 0);
	member(arg);
}

static void leader(int master) {
	const char *name = ptsname(master);
	setsid();
	int tty = name ? open(name, O_RDWR) : -1;
	if (tty < 0 || ioctl(tty, TIOCSCTTY, 0) != 0)
		fail("controlling terminal");
	close(master);
	for (int fd = 0; fd < 3; fd++)
		dup2(tty, fd);
	child(background, 0);
	orphan(background, 1);
	stand();
	rest();
}

static void terminal(int arg) {
	(void)arg;
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
		fail("openpt");
	child(leader, master);
	stand();
	char bytes[256];
	while (!over() && (read(master, bytes, sizeof bytes) > 0 || errno == EINTR))
		;
	rest();
}

int build_ptybg(void) {
	child(terminal, 0);
	return 4;
}

/* subreaper: whoever adopts orphans nearer than the supervisor hides them. */

static void inner_reaper(int arg) {
	setsid();
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	daemon_of(member, 0);
	member(arg);
}

static void outer_reaper(int arg) {
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	daemon_of(member, 0);
	child(inner_reaper, 0);
	member(arg);
}

int build_subreaper(void) {
	daemon_of(outer_reaper, 0);
	return 4;
}

/* cloneparent: children that the supervisor did not know it had. */
int build_cloneparent(void) {
	for (int i = 0; i < 3; i++)
		if (raw_clone(CLONE_PARENT) == 0)
			own_session(i);
	return 3;
}

/* zleader: /proc says Z for a process that lives. */

static void *survivor(void *none) {
	(void)none;
	for (int n = 0; n < 2000 && state_of(0) != 'Z'; n++)
		nap(500);
	stand();
	rest();
}

static void headless(int arg) {
	(void)arg;
	setsid();
	pthread_t t;
	if (pthread_create(&t, NULL, survivor, NULL) != 0)
		fail("thread");
	syscall(SYS_exit, 0); /* this thread alone */
}

int build_zleader(void) {
	child(headless, 0);
	child(headless, 1);
	return 2;
}

/* vfork: the parent is in D until its child is gone. The child runs in its
 * parent's memory, so it does nothing that could change it. */
static void vforker(int arg) {
	(void)arg;
	pid_t pid = vfork();
	if (pid == 0) {
		arm();
		stand();
		stand();
		rest();
	}
	if (pid < 0)
		fail("vfork");
	rest();
}

int build_vfork(void) {
	daemon_of(vforker, 0);
	return 2;
}

/* traced: a tracee stays in t, whatever it is sent but SIGKILL. */
static void tracer(int arg) {
	pid_t pid = spawn();
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
			fail("ptrace");
		raise(SIGSTOP);
		rest();
	}
	int status;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	stand();
	member(arg);
}

int build_traced(void) {
	daemon_of(tracer, 0);
	return 2;
}

/* setuid: what an unprivileged supervisor may not signal. */
static void dropped(int arg) {
	const id_t nobody = 65534;
	if (setresgid(nobody, nobody, nobody) != 0 || setresuid(nobody, nobody, nobody) != 0)
		fail("setuid");
	member(arg);
}

int build_setuid(void) {
	daemon_of(dropped, 0);
	daemon_of(dropped, 1);
	return 2;
}

/* pidns: orphans in there go to its own init, not to the supervisor. */

/* An init does nothing but rest: no signal ends it, see arm. */
static _Noreturn void inner_init(void) {
	setsid();
	for (int i = 0; i < 3; i++)
		child(member, i);
	stand();
	rest();
}

static _Noreturn void outer_init(void) {
	setsid();
	for (int i = 0; i < 3; i++)
		child(member, i);
	if (raw_clone(CLONE_NEWPID) == 0)
		inner_init();
	stand();
	rest();
}

static void outside(int arg) {
	if (raw_clone(CLONE_NEWPID) == 0)
		outer_init();
	member(arg);
}

int build_pidns(void) {
	child(outside, 0);
	return 9;
}

/* lastwords: asked to end, it forks a daemon that is deaf and ends. */
static void speaker(int session) {
	if (session)
		setsid();
	sigset_t asked;
	sigemptyset(&asked);
	sigaddset(&asked, SIGTERM);
	sigaddset(&asked, SIGINT);
	sigaddset(&asked, SIGHUP);
	sigprocmask(SIG_BLOCK, &asked, NULL);
	stand();
	while (!over()) {
		struct timespec second = {.tv_sec = 1};
		if (sigtimedwait(&asked, NULL, &second) > 0) {
			daemon_of((role)rest, 0); /* the mask is inherited */
			_exit(0);
		}
	}
	_exit(0);
}

int build_lastwords(void) {
	for (int i = 0; i < 3; i++)
		child(speaker, i > 0);
	return 3;
}
