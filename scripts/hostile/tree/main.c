/* The agent itself: its stream, its tree, its ending. */
#include "tree.h"

#include <limits.h>
#include <pthread.h>

static const struct {
	const char *name;
	builder build;
} trees[] = {
	{"wide", build_wide}, {"deep", build_deep}, {"dfork", build_dfork}, {"nohup", build_nohup},
	{"setsid", build_setsid}, {"daemon", build_daemon}, {"stealth", build_stealth},
	{"nosig", build_nosig}, {"stopped", build_stopped}, {"leave", build_leave},
	{"holdpipe", build_holdpipe}, {"zombies", build_zombies}, {"ptybg", build_ptybg},
	{"subreaper", build_subreaper}, {"cloneparent", build_cloneparent},
	{"zleader", build_zleader}, {"vfork", build_vfork}, {"traced", build_traced},
	{"setuid", build_setuid}, {"pidns", build_pidns}, {"lastwords", build_lastwords},
	{"storm", build_storm}, {"stormfast", build_stormfast}, {"stormsid", build_stormsid},
	{"hydra", build_hydra}, {"hydrafast", build_hydrafast}, {"cgmove", build_cgmove},
	{"nestcg", build_nestcg},
};

builder find_tree(const char *name) {
	for (size_t i = 0; i < sizeof trees / sizeof *trees; i++)
		if (strcmp(trees[i].name, name) == 0)
			return trees[i].build;
	return NULL;
}

/* Twelve at once, none of which needs root. */
static const char *const mixed[] = {
	"dfork", "nohup", "setsid", "daemon", "stealth", "stopped",
	"zleader", "vfork", "traced", "lastwords", "storm", "hydra",
};

static int build(const char *name) {
	if (strcmp(name, "none") == 0)
		return 0;
	if (strcmp(name, "mixed") == 0) {
		int n = 0;
		for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++)
			n += find_tree(mixed[i])();
		return n;
	}
	builder b = find_tree(name);
	if (b == NULL) {
		fprintf(stderr, "hostile: no tree %s\n", name);
		_exit(64);
	}
	return b();
}

static const char *run_dir;

static int open_in(const char *name, int flags) {
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/%s", run_dir, name);
	int fd = open(path, flags, 0600);
	if (fd < 0) {
		fprintf(stderr, "hostile: %s: %s\n", path, strerror(errno));
		_exit(1);
	}
	return fd;
}

/* say tells the runner. The FIFO is opened for each line: the tree must not
 * inherit it. */
static void say(const char *line) {
	int fd = open_in("say", O_WRONLY | O_CLOEXEC);
	if (write(fd, line, strlen(line)) < 0)
		perror("hostile: say");
	close(fd);
}

/* emit writes one line of the stream. */
static void emit(const char *line) {
	for (size_t n = strlen(line); n > 0;) {
		ssize_t k = write(STDOUT_FILENO, line, n);
		if (k < 0 && errno != EINTR)
			return;
		if (k > 0)
			line += k, n -= k;
	}
}

#define SESSION "\"session_id\":\"00000000-0000-4000-8000-000000000000\""
#define INIT "{\"type\":\"system\",\"subtype\":\"init\",\"apiKeySource\":\"login\",\"cwd\":\"/\"," \
	SESSION ",\"model\":\"hostile\",\"permissionMode\":\"default\"}\n"
#define RESULT "{\"type\":\"result\",\"subtype\":\"success\",\"duration_ms\":1,\"duration_api_ms\":1," \
	"\"is_error\":false,\"result\":\"done\"," SESSION ",\"request_id\":\"1\"}\n"

static void *drain(void *none) {
	char bytes[4096];
	while (read(STDIN_FILENO, bytes, sizeof bytes) > 0)
		;
	return none;
}

/* lock marks the agent among its descendants: the runner asks the kernel who
 * holds it and gets the pid as the runner's own pid namespace numbers it. A
 * child does not inherit the lock. */
static void lock(void) {
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open_in("agent.lock", O_RDWR | O_CREAT | O_CLOEXEC);
	if (fcntl(fd, F_SETLK, &l) != 0)
		perror("hostile: lock");
}

/* What a supervisor hands down as ignored or blocked would make every tree
 * deaf: the trees choose that themselves. */
static void fresh_signals(void) {
	for (int s = 1; s < NSIG; s++)
		if (s != SIGPIPE)
			signal(s, SIG_DFL);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

void give_up(void) {
	char line[256];
	snprintf(line, sizeof line, "cannot %s\n", shared->why);
	say(line);
	_exit(1);
}

static void agent(const char *tree, const char *ending, const char *life) {
	fresh_signals();
	share(run_dir);
	arm();
	int fd = open_in(life, O_WRONLY);
	if (fd != LIFE_FD) {
		if (dup2(fd, LIFE_FD) < 0) {
			perror("hostile: life");
			_exit(1);
		}
		close(fd);
	}
	lock();
	int silent = strcmp(ending, "hang") == 0;
	if (!silent)
		emit(INIT);

	int expected = build(tree);
	if (!await(expected))
		give_up();
	/* A thread, and only now: trees are forked by a process that has one. */
	pthread_t t;
	if (pthread_create(&t, NULL, drain, NULL) == 0)
		pthread_detach(t);

	char line[256];
	snprintf(line, sizeof line, "ready %d\n", expected + 1);
	say(line);
	/* Blocks until the runner opens it, which for most endings is never. */
	int go = open_in("go", O_RDONLY | O_CLOEXEC);
	char c;
	while (read(go, &c, 1) < 0 && errno == EINTR)
		;
	close(go);
	if (silent) {
		emit(INIT);
		snprintf(line, sizeof line, "silent %lld\n", (long long)now());
		say(line);
	}
	int result = strcmp(ending, "result") == 0, linger = strcmp(ending, "linger") == 0;
	if (result || linger) {
		snprintf(line, sizeof line, "result %lld\n", (long long)now());
		emit(RESULT);
		say(line);
	}
	if (result)
		_exit(0);
	rest();
}

int main(int argc, char **argv) {
	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		puts("2026.01.01-0000000");
		return 0;
	}
	run_dir = getenv("HOSTILE_RUN");
	if (run_dir == NULL) {
		if (attach())
			stealth_main();
		fprintf(stderr, "hostile: started by hand: go run ./scripts/hostile starts me\n");
		return 64;
	}
	if (getenv("HOSTILE_CALLER"))
		caller(argc, argv);
	if (getenv("HOSTILE_BYSTANDER"))
		bystander();
	const char *tree = getenv("HOSTILE_TREE"), *ending = getenv("HOSTILE_END"), *life = getenv("HOSTILE_LIFE");
	if (!tree || !ending || !life)
		return 64;
	agent(tree, ending, life);
}
