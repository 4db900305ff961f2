/*
 * The tree maker: an agent that speaks just enough stream-json and builds one
 * of the trees that supervisors fail to end. See ../doc.go for who runs it.
 *
 * Every process of a tree
 *   - holds the write end of the FIFO that only the tree holds (LIFE_FD), so
 *     that the kernel reports the death of the last one;
 *   - ends by itself at the deadline, see arm;
 *   - says when it stands, see stand.
 */
#ifndef TREE_H
#define TREE_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* High and fixed, so that a process which was exec'ed finds them. */
enum { LIFE_FD = 190, SHARED_FD = 191 };

enum {
	LIFETIME = 80,      /* seconds; "within 90" with room for a slow machine */
	STORM_CAP = 60000,  /* forks of all relays of a tree */
	HYDRA_CAP = 20000,  /* births of all heads of a tree */
	HEADS = 24,
};

/* What all processes of a tree share. The runner knows stop, at offset 0. */
struct shared {
	_Atomic uint32_t stop;     /* set by the runner: leave at once */
	_Atomic uint32_t magic;
	_Atomic uint32_t standing; /* a futex */
	_Atomic uint32_t failed;
	_Atomic uint32_t forks;
	_Atomic int32_t head[HEADS];
	_Atomic int32_t stopped[8];
	_Atomic uint32_t nested;
	pid_t agent;
	int64_t deadline;          /* CLOCK_MONOTONIC, ns */
	char why[160];
};

extern struct shared *shared;

typedef void (*role)(int arg);

/* life.c */
int64_t now(void);
void share(const char *dir);
int attach(void);
void arm(void);
int over(void);
void begin(void);
void stand(void);
int await(uint32_t expected);
_Noreturn void rest(void);
_Noreturn void fail(const char *what);
pid_t spawn(void);
pid_t raw_clone(unsigned long flags);
pid_t child(role r, int arg);
void orphan(role r, int arg);
void daemon_of(role r, int arg);
void await_orphanage(void);
void reap(pid_t pid);
void nap(long us);
void ignore_all(void);
void ignore_polite(void);
int write_file(const char *dir, const char *name, const char *text);
int state_of(pid_t pid);

/* Each builds one tree and returns how many processes will stand. */
typedef int (*builder)(void);
builder find_tree(const char *name);

/* main.c: only in the agent itself */
_Noreturn void give_up(void);

/* caller.c */
_Noreturn void caller(int argc, char **argv);
_Noreturn void bystander(void);

/* plain.c */
int build_wide(void), build_deep(void), build_dfork(void), build_nohup(void), build_setsid(void);
int build_daemon(void), build_stealth(void), build_nosig(void), build_stopped(void);
int build_leave(void), build_holdpipe(void), build_zombies(void);
_Noreturn void stealth_main(void);

/* odd.c */
int build_ptybg(void), build_subreaper(void), build_cloneparent(void), build_zleader(void);
int build_vfork(void), build_traced(void), build_setuid(void), build_pidns(void);
int build_lastwords(void);

/* restless.c */
int build_storm(void), build_stormfast(void), build_stormsid(void);
int build_hydra(void), build_hydrafast(void);

/* cgroup.c */
int build_cgmove(void), build_nestcg(void);

#endif
