/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup v1 and v2 behind one face. The launcher creates and joins (cgroup_create, cgroup_enter), the supervisor reads,
 * freezes, kills and removes by the same name. One cgroup (v1: one for each needed controller) named bulkhead/ID.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "policy/policy.h"

struct cgroup;

enum cgroup_version { CGROUP_NONE = 0, CGROUP_V1, CGROUP_V2 };

/* What can be had here and now, cached for the process. */
struct cgroup_support {
	enum cgroup_version version;
	bool cpu, memory, pids, freezer, swap; /* swap: a swap limit can be set, or the machine has no swap */
	bool pids_rlimit; /* without pids: RLIMIT_NPROC counts for each user namespace (Linux 5.14), so it enforces the same
			     limit */
	char why[256];	  /* when something is missing: cause and smallest fix */
};
/* Looks at what is mounted and writable: quick; what fails in spite of it fails at cgroup_create, in words. */
const struct cgroup_support *cgroup_support_get(void);
/* Proves by doing (create, set, join, remove): for `bulkhead doctor`. Not cached. */
void cgroup_support_probe(struct cgroup_support *ret);
/* Refuses (ERR_UNSUPPORTED, names the limit, cause, fix) when a limit other than POLICY_UNLIMITED can't be enforced. */
int cgroup_check_limits(const struct policy_limits *limits, struct err *err);

/* Creates the cgroup with its limits. `extra_processes` is added to the pids limit (our agent). */
int cgroup_create(
	const char *id, const struct policy_limits *limits, unsigned extra_processes, struct cgroup **ret, struct err *err);
#define CGROUP_PARTS_MAX 6u
/* v1: opens the files into which a process with one thread writes "0" to move itself in, one for each hierarchy; for passing
 * on. Close each. v2: none; clone with CLONE_INTO_CGROUP and cgroup_v2_fd instead. */
int cgroup_v1_open_tasks(const struct cgroup *cg, int ret_fds[CGROUP_PARTS_MAX], size_t *ret_n, struct err *err);
int cgroup_v2_fd(const struct cgroup *cg); /* -1 on v1 */
/* Opens an existing one. NULL + ERR_NOT_FOUND when nothing is there. */
struct cgroup *cgroup_open(const char *id, struct err *err);
struct cgroup *cgroup_free(struct cgroup *cg); /* closes; doesn't remove */

struct cgroup_usage {
	uint64_t cpu_ns;
	uint64_t memory, memory_peak;
	uint64_t oom_kills;   /* processes killed because of the memory limit */
	uint64_t processes;   /* now */
	uint64_t pids_denied; /* forks refused because of the pids limit */
};
int cgroup_usage(struct cgroup *cg, struct cgroup_usage *ret, struct err *err);
int cgroup_freeze(struct cgroup *cg, bool on, struct err *err);
/* SIGKILL to all, until empty; bounded. 0, or -1 (ERR_TIMEOUT names the pids left). */
int cgroup_kill(struct cgroup *cg, uint64_t timeout_ns, struct err *err);
/* rmdir in every hierarchy; a missing one is fine. */
int cgroup_remove(struct cgroup *cg, struct err *err);
/* Ids of all bulkhead cgroups present on this system. Free each and the array with mem_free. */
int cgroup_list(char ***ret_ids, size_t *ret_n, struct err *err);
