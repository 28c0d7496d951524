/* SPDX-License-Identifier: Apache-2.0 */
/* Where cgroups are on this host. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "isolate/cgroup.h"

enum cgroup_controller { CGROUP_CPU = 1, CGROUP_CPUACCT = 2, CGROUP_MEMORY = 4, CGROUP_PIDS = 8, CGROUP_FREEZER = 16 };
#define CGROUP_FOLDER "bulkhead"
#define CGROUP_HIERARCHIES_MAX CGROUP_PARTS_MAX

/* One hierarchy and the place in it below which we may make cgroups. */
struct cgroup_place {
	unsigned controllers; /* enum cgroup_controller bits that it limits or counts */
	char *base;	      /* absolute path; cgroups are base/bulkhead/ID */
	bool writable;
};
struct cgroup_layout {
	enum cgroup_version version;
	struct cgroup_place places[CGROUP_HIERARCHIES_MAX];
	size_t n;
};

/* Reads /proc/self/mountinfo and /proc/self/cgroup once. Never fails: version is CGROUP_NONE when there is nothing. */
const struct cgroup_layout *cgroup_layout_get(void);
/* The same from texts; free each base. */
void cgroup_layout_parse(const char *mountinfo, const char *own, bool root, struct cgroup_layout *ret);
/* v2: hands the controllers down from base to base/bulkhead; moves the processes of a delegated base aside first where they are
 * in the way. */
int cgroup_v2_delegate(const char *base, unsigned controllers, struct err *err);
/* v2: which of our controllers a folder's file (cgroup.controllers, cgroup.subtree_control) names. */
unsigned cgroup_v2_controllers(const char *path, const char *file);
