/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one interface of isolation back ends, as the supervisor sees it. A back end builds a box in which bulkhead-agent runs as
 * pid 1 with one end of the pipe; everything above the pipe is the same at every level. The work that needs privilege happens
 * in the separate program bulkhead-launch (isolate/launch.h is its protocol); these functions run in the supervisor and hold
 * none.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "event/loop.h"
#include "policy/policy.h"
#include "spec/spec.h"

/* Everything the supervisor holds of a running box. Descriptors are owned; -1 means none. */
struct box {
	char id[SANDBOX_ID_LEN + 1];
	enum isolation_level level; /* as asked for; `probe_text` says what was measured */
	pid_t pid;		    /* of the box's pid 1, in the host's pid namespace; our own child */
	int pidfd;
	int notify_fd; /* seccomp user notification listener: denied system calls to be recorded */
	int upper_fd;  /* root of the box's writable file system (O_PATH): "up/N" is mount N's changes, "work/N" overlay's own,
			  or in their place "whole/N" all of mount N, where the kernel gave no overlay;
			  the folders  tmp, home, run, shm are the other writable places */
	int lower_fd[SPEC_MOUNTS_MAX]; /* id-mapped or plain read-only view of mount N's original, for diff; -1 for others than
					  copy */
	size_t n_lower;
	struct cgroup *cgroup; /* isolate/cgroup.h; NULL when no limit needs one */
};
#define BOX_INIT ((struct box){ .pid = -1, .pidfd = -1, .notify_fd = -1, .upper_fd = -1 })

struct isolate_backend {
	const char *name;
	enum isolation_level level;
	/* Is this level to be had here, for this spec? Proven by doing where it is cheap. Fails with ERR_UNSUPPORTED: cause and
	 * smallest fix. May be NULL. */
	int (*check)(const struct spec *spec, struct err *err);
	/* Starts building. `source_fds`: of each mount, then of each file of the spec; they stay the caller's. Non-blocking: on_ready is called from the loop, once, with a box (which it then owns) or an error. `box_end` is
	 * the box's end of the one pipe, a stream socket; it stays the caller's, who closes it after this call. What was written to the other end
	 * before the agent runs waits for it. */
	int (*start)(struct loop *loop, const struct spec *spec, const int *source_fds, int box_end,
		void (*on_ready)(void *ctx, struct box *box, const struct err *err), void *ctx, struct err *err);
};

extern const struct isolate_backend isolate_container;

/* By level; NULL when this version has none. */
const struct isolate_backend *isolate_find(enum isolation_level level);

/* Kills every process of the box at once and waits until the kernel says that there is none left (bounded: timeout_ns). 0 or
 * -1. */
int box_kill(struct box *box, uint64_t timeout_ns, struct err *err);
/* Removes the cgroup and closes all descriptors. Idempotent. Verified: -1 names what is left. */
int box_teardown(struct box *box, struct err *err);

/* Removes what a box of that id may have left in the system after its supervisor was killed: kills processes in its cgroups,
 * removes the cgroups. *ret_removed counts. Idempotent. With dry_run only counts. */
int isolate_reap(const char *id, bool dry_run, unsigned *ret_removed, struct err *err);
