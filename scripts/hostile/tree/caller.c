/* Who is beside the tree and must live: the supervisor's caller, as a shell
 * would be, and bystanders. */
#include "tree.h"

#include <sys/ioctl.h>

/* The caller's descriptors: stdin is the runner's word, then */
enum { TELL = 3, SUPERVISOR_STDIO = 4 };

/* How they end who were signalled, and the caller when its bystander was. */
enum { TOUCHED = 3, MATE_TOUCHED = 4 };

static void touched(int sig) {
	(void)sig;
	_exit(TOUCHED);
}

/* untouchable makes any signal the end: nobody has reason to send one. Who was
 * stopped, the runner continues, and that is a signal too. */
static void untouchable(void) {
	struct sigaction a;
	memset(&a, 0, sizeof a);
	a.sa_handler = touched;
	for (int s = 1; s < NSIG; s++)
		if (s != SIGCHLD)
			sigaction(s, &a, NULL);
	alarm(LIFETIME + 8);
}

static void until_stdin_closes(void) {
	char c;
	ssize_t n;
	do
		n = read(STDIN_FILENO, &c, 1);
	while (n > 0 || (n < 0 && errno == EINTR));
}

/* The bystander looks like the tree and is no part of it. */
void bystander(void) {
	untouchable();
	char c = 'b';
	if (write(STDOUT_FILENO, &c, 1) != 1)
		_exit(1);
	until_stdin_closes();
	_exit(0);
}

static void tell(const char *word, long long a, long long b) {
	char line[96];
	int n = snprintf(line, sizeof line, "%s %lld %lld\n", word, a, b);
	if (write(TELL, line, n) != n)
		_exit(1);
}

/* start_bystander starts one in the caller's own process group, and returns
 * when it stands. */
static pid_t start_bystander(char **argv) {
	int p[2];
	if (pipe2(p, O_CLOEXEC) != 0)
		_exit(1);
	pid_t pid = fork();
	if (pid == 0) {
		setenv("HOSTILE_BYSTANDER", "1", 1);
		for (int fd = TELL; fd < SUPERVISOR_STDIO + 3; fd++)
			fcntl(fd, F_SETFD, FD_CLOEXEC);
		dup2(p[1], STDOUT_FILENO);
		execv(argv[0], argv);
		_exit(127);
	}
	close(p[1]);
	char c;
	if (pid < 0 || read(p[0], &c, 1) != 1)
		_exit(1);
	close(p[0]);
	tell("bystander", pid, 0);
	return pid;
}

/* start_supervisor does what a shell does; on a terminal, what a terminal
 * emulator does. */
static pid_t start_supervisor(char **argv, int terminal) {
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_DFL);
	for (int fd = 0; fd < 3; fd++)
		dup2(SUPERVISOR_STDIO + fd, fd);
	for (int fd = TELL; fd < SUPERVISOR_STDIO + 3; fd++)
		close(fd);
	if (terminal && (setsid() < 0 || ioctl(STDIN_FILENO, TIOCSCTTY, 0) != 0))
		_exit(126);
	execv(argv[0], argv);
	perror(argv[0]);
	_exit(127);
}

/* caller gets: n, the n arguments of a bystander, those of the supervisor. It
 * tells the runner both pids and the supervisor's end, and leaves the
 * supervisor unreaped until its own stdin closes: the pid stays that one's. */
void caller(int argc, char **argv) {
	int terminal = strcmp(getenv("HOSTILE_CALLER"), "terminal") == 0;
	unsetenv("HOSTILE_CALLER");
	char *like_agent[16] = {0};
	int n = argc > 1 ? atoi(argv[1]) : 0;
	if (n < 1 || n > 15 || argc < n + 3)
		_exit(64);
	memcpy(like_agent, argv + 2, n * sizeof *argv);
	untouchable();
	pid_t mate = start_bystander(like_agent);

	pid_t pid = start_supervisor(argv + 2 + n, terminal);
	for (int fd = SUPERVISOR_STDIO; fd < SUPERVISOR_STDIO + 3; fd++)
		close(fd);
	tell("supervisor", pid, 0);
	siginfo_t si;
	while (waitid(P_PID, pid, &si, WEXITED | WNOWAIT) < 0 && errno == EINTR)
		;
	int64_t at = now();
	/* As in wait(2): a signal below, an exit status above. */
	tell("exit", si.si_code == CLD_EXITED ? si.si_status << 8 : si.si_status & 0x7f, at);
	until_stdin_closes();
	int status = 0;
	while (waitpid(mate, &status, 0) < 0 && errno == EINTR)
		;
	_exit(status == 0 ? 0 : MATE_TOUCHED);
}
