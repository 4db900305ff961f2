/* The trees that a shell script could make. */
#include "tree.h"

static void member(int arg) {
	(void)arg;
	stand();
	rest();
}

static int times(int n, void (*start)(role, int), role r) {
	for (int i = 0; i < n; i++)
		start(r, i);
	return n;
}

static void plain_child(role r, int arg) { child(r, arg); }

int build_wide(void) { return times(200, plain_child, member); }

static void deeper(int left) {
	if (left > 1)
		child(deeper, left - 1);
	stand();
	rest();
}

int build_deep(void) {
	child(deeper, 50);
	return 50;
}

int build_dfork(void) { return times(3, orphan, member); }

/* What an interactive shell makes of "nohup work &". */
static void nohup_job(int arg) {
	signal(SIGHUP, SIG_IGN);
	setpgid(0, 0);
	member(arg);
}

int build_nohup(void) { return times(3, plain_child, nohup_job); }

static void own_session(int arg) {
	setsid();
	member(arg);
}

int build_setsid(void) { return times(3, plain_child, own_session); }

int build_daemon(void) { return times(3, daemon_of, member); }

/* A daemon that shares nothing with the agent that a search could go by: no
 * parent, session, environment, name, arguments or folder. */
static void stealthy(int arg) {
	char *const argv[] = {arg == 0 ? "/usr/sbin/crond" : "-", "-n", NULL};
	char *const envp[] = {NULL};
	if (chdir("/") != 0)
		fail("chdir");
	signal(SIGTERM, SIG_IGN);
	execve("/proc/self/exe", argv, envp);
	fail("exec");
}

void stealth_main(void) {
	prctl(PR_SET_NAME, "crond");
	ignore_polite();
	arm();
	stand();
	rest();
}

int build_stealth(void) { return times(2, daemon_of, stealthy); }

static void deaf(int arg) {
	ignore_all();
	member(arg);
}

static void deaf_session(int arg) {
	setsid();
	deaf(arg);
}

/* The agent is deaf as well. */
int build_nosig(void) {
	int n = times(3, plain_child, deaf);
	child(deaf_session, 0);
	daemon_of(deaf, 0);
	ignore_all();
	return n + 2;
}

/* A stopped process acts on SIGKILL alone. This one stops again when somebody
 * continues it; the kernel itself does, with a HUP, when its group becomes
 * orphaned. */
static void stopper(int i) {
	if (i == 1)
		setpgid(0, 0);
	if (i == 2)
		setsid();
	signal(SIGHUP, SIG_IGN);
	await_orphanage(); /* or the kernel's CONT comes after the first stop */
	shared->stopped[i] = getpid();
	while (!over())
		raise(SIGSTOP);
	_exit(0);
}

static void stopped_starter(int i) {
	child(stopper, i);
	_exit(0);
}

int build_stopped(void) {
	int n = 3;
	for (int i = 0; i < n; i++)
		reap(child(stopped_starter, i));
	for (int i = 0, left = 5000; i < n && left > 0; left--) {
		int s = shared->stopped[i] ? state_of(shared->stopped[i]) : 0;
		if (s == 'T')
			i++;
		else
			nap(1000);
	}
	for (int i = 0; i < n; i++)
		stand();
	return n;
}

enum { GENERATIONS = 4 };

/* Generations that leave as soon as there is a next one: whoever lists the tree
 * sees the last, under a parent that is not its own. */
static void leaver(int left) {
	if (left < GENERATIONS)
		await_orphanage();
	if (left == 0)
		member(0);
	child(leaver, left - 1);
	_exit(0);
}

int build_leave(void) {
	for (int i = 0; i < 5; i++)
		reap(child(leaver, GENERATIONS));
	return 5;
}

static void holder(int arg) { member(arg); }

/* A daemon that holds the agent's stdout: who waits for its end, waits. */
int build_holdpipe(void) {
	int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 100);
	pid_t pid = spawn();
	if (pid == 0) {
		setsid();
		if (spawn() == 0) {
			if (out >= 0 && (dup2(out, 1) < 0 || dup2(out, 2) < 0))
				fail("dup2");
			holder(0);
		}
		_exit(0);
	}
	reap(pid);
	close(out);
	return 1;
}

static void mourner(int n) {
	pid_t dead[64];
	for (int i = 0; i < n; i++)
		if ((dead[i] = spawn()) == 0)
			_exit(0);
	for (int i = 0; i < n; i++) {
		siginfo_t si;
		while (waitid(P_PID, dead[i], &si, WEXITED | WNOWAIT) < 0 && errno == EINTR)
			;
	}
	member(0);
}

int build_zombies(void) {
	child(mourner, 50);
	return 1;
}
