/* SPDX-License-Identifier: Apache-2.0 */
/* Which limits can be enforced here: judged quickly before a run, and proven by doing for `bulkhead doctor`. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "isolate/common/cgroup-internal.h"
#include "spec/spec.h"

static unsigned writable_controllers(const struct cgroup_layout *l)
{
	unsigned bits = 0;
	for (size_t i = 0; i < l->n; i++)
		if (l->places[i].writable)
			bits |= l->places[i].controllers;
	return bits;
}

/* Since 5.14 the count that RLIMIT_NPROC looks at is kept for each user namespace, so it is the box's own. */
static bool nproc_counts_by_namespace(void)
{
	struct utsname u;
	unsigned major = 0, minor = 0;
	return uname(&u) == 0 && sscanf(u.release, "%u.%u", &major, &minor) == 2 && (major > 5 || (major == 5 && minor >= 14));
}

static void explain(struct cgroup_support *s)
{
	if (s->cpu && s->memory && s->pids)
		return;
	if (s->version == CGROUP_NONE)
		snprintf(s->why, sizeof(s->why),
			"no cgroup file system is mounted; mount one (mount -t cgroup2 none /sys/fs/cgroup)");
	else if (geteuid() != 0 && s->version == CGROUP_V2 && (s->cpu || s->memory || s->pids))
		snprintf(s->why, sizeof(s->why),
			"this user's cgroup is delegated without the controller \"%s\"; as root: systemctl edit user@.service, add "
			"[Service] Delegate=cpu memory pids, log in anew; or run as root",
			!s->cpu ? "cpu" : !s->memory ? "memory" : "pids");
	else if (geteuid() != 0 && s->version == CGROUP_V2)
		snprintf(s->why, sizeof(s->why),
			"this user's cgroup is not delegated; run as root, or under: systemd-run --user --scope -p "
			"Delegate=yes");
	else if (geteuid() != 0)
		snprintf(s->why, sizeof(s->why),
			"this user may make no cgroup (version 1 can't be delegated safely); run as root");
	else
		snprintf(s->why, sizeof(s->why), "the kernel or the host mounts no such cgroup controller, or not writable");
}

static void fill(struct cgroup_support *s)
{
	const struct cgroup_layout *layout = cgroup_layout_get();
	unsigned have = writable_controllers(layout);
	*s = (struct cgroup_support){
		.version = have ? layout->version : CGROUP_NONE,
		.cpu = have & CGROUP_CPU,
		.memory = have & CGROUP_MEMORY,
		.pids = have & CGROUP_PIDS,
		.freezer = have & CGROUP_FREEZER,
		.swap = have & CGROUP_MEMORY, /* cgroup_create refuses where it isn't so */
		.pids_rlimit = nproc_counts_by_namespace(),
	};
	s->version = layout->version;
	explain(s);
	if (!have)
		s->version = CGROUP_NONE;
}

const struct cgroup_support *cgroup_support_get(void)
{
	static struct cgroup_support support;
	static bool known;
	if (!known)
		fill(&support);
	known = true;
	return &support;
}

static bool try_limits(const struct policy_limits *limits, char *why, size_t why_len)
{
	char id[SANDBOX_ID_LEN + 1];
	struct cgroup *cg;
	struct err err = ERR_INIT;
	sandbox_id_new(id);
	if (cgroup_create(id, limits, 0, &cg, &err) < 0) {
		if (!*why)
			snprintf(why, why_len, "%.250s", err.text);
		return false;
	}
	bool gone = cgroup_remove(cg, &err) == 0;
	cgroup_free(cg);
	return gone;
}

void cgroup_support_probe(struct cgroup_support *ret)
{
	const struct policy_limits none = {
		.cpus_milli = POLICY_UNLIMITED, .memory = POLICY_UNLIMITED, .processes = POLICY_UNLIMITED
	};
	struct policy_limits cpu = none, memory = none, pids = none;
	fill(ret);
	cpu.cpus_milli = 500;
	memory.memory = 64u << 20;
	pids.processes = 16;
	ret->cpu = ret->cpu && try_limits(&cpu, ret->why, sizeof(ret->why));
	ret->memory = ret->memory && try_limits(&memory, ret->why, sizeof(ret->why));
	ret->swap = ret->memory;
	ret->pids = ret->pids && try_limits(&pids, ret->why, sizeof(ret->why));
}

/* All at once: who lifts one knowingly should not learn of the next only then. */
int cgroup_check_limits(const struct policy_limits *limits, struct err *err)
{
	const struct cgroup_support *s = cgroup_support_get();
	const struct { const char *name, *option; bool missing; } checks[] = {
		{ "cpus", "--cpus", limits->cpus_milli != POLICY_UNLIMITED && !s->cpu },
		{ "memory", "--memory", limits->memory != POLICY_UNLIMITED && !s->memory },
		{ "processes", "--pids", limits->processes != POLICY_UNLIMITED && !s->pids && !s->pids_rlimit },
	};
	char names[64] = "", options[96] = "";
	unsigned n = 0;
	for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
		if (!checks[i].missing)
			continue;
		size_t at = strlen(names), options_at = strlen(options);
		snprintf(names + at, sizeof(names) - at, "%s%s", n ? " and " : "", checks[i].name);
		snprintf(options + options_at, sizeof(options) - options_at, "%s%s unlimited", n ? " " : "", checks[i].option);
		n++;
	}
	if (n == 0)
		return 0;
	return err_set(err, ERR_UNSUPPORTED, "the limit%s on %s can't be enforced here: %s; or lift %s knowingly with `%s`", n > 1 ? "s" : "", names,
		s->why, n > 1 ? "them" : "it", options);
}
