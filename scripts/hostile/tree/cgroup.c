/* The trees that use cgroup v2. The runner names a folder of its own for them:
 * nothing is made outside it. */
#include "tree.h"

#include <limits.h>
#include <sys/stat.h>

static void mover(int arg) {
	(void)arg;
	const char *away = getenv("HOSTILE_AWAY");
	errno = ENOENT;
	if (away == NULL || write_file(away, "cgroup.procs", "0") != 0)
		fail("move to another cgroup");
	stand();
	rest();
}

int build_cgmove(void) {
	daemon_of(mover, 0);
	daemon_of(mover, 1);
	return 2;
}

static char nest[PATH_MAX + 32];

static void nested(int arg) {
	(void)arg;
	if (write_file(nest, "cgroup.procs", "0") != 0)
		fail("enter the nested cgroup");
	shared->nested = 1;
	rest();
}

/* own_cgroup is the folder of the cgroup that the agent is in. */
static int own_cgroup(char *dir, size_t size) {
	const char *mount = getenv("HOSTILE_CGROUP2");
	FILE *f = fopen("/proc/self/cgroup", "re");
	if (f == NULL || mount == NULL) {
		if (f)
			fclose(f);
		errno = ENOENT;
		return -1;
	}
	char line[PATH_MAX];
	int found = -1;
	while (fgets(line, sizeof line, f))
		if (strncmp(line, "0::", 3) == 0) {
			line[strcspn(line, "\n")] = 0;
			found = snprintf(dir, size, "%s%s", mount, line + 3) < (int)size ? 0 : -1;
		}
	fclose(f);
	return found;
}

/* A frozen process acts on SIGKILL alone, and its cgroup must be found and
 * removed before the one that it is in. */
int build_nestcg(void) {
	char own[PATH_MAX];
	if (own_cgroup(own, sizeof own) != 0)
		fail("own cgroup");
	if (snprintf(nest, sizeof nest, "%s/tree-%d", own, (int)getpid()) >= (int)sizeof nest)
		fail("own cgroup");
	if (mkdir(nest, 0755) != 0)
		fail("make a nested cgroup");
	daemon_of(nested, 0);
	for (int n = 0; n < 5000 && !shared->nested; n++) {
		if (shared->failed)
			return 1;
		nap(1000);
	}
	if (write_file(nest, "cgroup.freeze", "1") != 0)
		fail("freeze");
	char path[PATH_MAX + 64];
	snprintf(path, sizeof path, "%s/cgroup.events", nest);
	for (int n = 0; n < 5000; n++) {
		char text[256] = "";
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0) {
			if (read(fd, text, sizeof text - 1) < 0)
				text[0] = 0;
			close(fd);
		}
		if (strstr(text, "frozen 1"))
			break;
		nap(1000);
	}
	stand();
	return 1;
}
