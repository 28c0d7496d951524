/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the hierarchies in texts of real hosts, and (as root) one cgroup's whole life. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "isolate/common/cgroup-internal.h"
#include "spec/spec.h"

static const char v1_mounts[] = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
				"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
				"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
				"36 31 0:33 / /sys/fs/cgroup/devices rw,relatime - cgroup cgroup rw,devices\n"
				"39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
				"40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n"
				"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
				"42 31 0:36 / /mnt/pids-again rw,relatime - cgroup cgroup rw,pids\n";
static const char v1_own[] = "8:pids:/user/x\n4:memory:/user/x\n2:cpu,cpuacct:/user/x\n1:name=systemd:/\n0::/\n";
static const char v2_mounts[] = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
static const char v2_own[] = "0::/user.slice/user-1000.slice/run-u5.scope\n";
static const char v2_aside[] = "0::/user.slice/run-u5.scope/bulkhead-main\n";
static const char docker_mounts[] =
	"900 890 0:32 /docker/abc /sys/fs/cgroup/memory ro,nosuid master:13 - cgroup cgroup rw,memory\n"
	"901 890 0:36 /docker/abc /sys/fs/cgroup/pids ro,nosuid master:14 - cgroup cgroup rw,pids\n";
static const char docker_own[] = "8:pids:/docker/abc/sub\n4:memory:/docker/abc\n";

static const char *base_of(const struct cgroup_layout *l, unsigned controller)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->places[i].controllers & controller)
			return l->places[i].base;
	return "none";
}

static void free_layout(struct cgroup_layout *l)
{
	for (size_t i = 0; i < l->n; i++)
		mem_free(l->places[i].base);
}

static void check_base(
	const char *mounts, const char *own, bool root, enum cgroup_version version, unsigned controller, const char *base)
{
	struct cgroup_layout l;
	cgroup_layout_parse(mounts, own, root, &l);
	assert_int_equal(l.version, version);
	if (base)
		assert_string_equal(base_of(&l, controller), base);
	free_layout(&l);
}

static void test_layouts(void **state)
{
	(void)state;
	check_base(v1_mounts, v1_own, true, CGROUP_V1, CGROUP_CPUACCT, "/sys/fs/cgroup/cpu,cpuacct");
	check_base(v1_mounts, v1_own, true, CGROUP_V1, CGROUP_PIDS, "/sys/fs/cgroup/pids");
	check_base(v1_mounts, v1_own, false, CGROUP_V1, CGROUP_MEMORY, "/sys/fs/cgroup/memory/user/x");
	check_base(v2_mounts, v2_own, true, CGROUP_V2, CGROUP_FREEZER, "/sys/fs/cgroup");
	check_base(
		v2_mounts, v2_own, false, CGROUP_V2, CGROUP_FREEZER, "/sys/fs/cgroup/user.slice/user-1000.slice/run-u5.scope");
	check_base(v2_mounts, v2_aside, false, CGROUP_V2, CGROUP_FREEZER, "/sys/fs/cgroup/user.slice/run-u5.scope");
	check_base(docker_mounts, docker_own, false, CGROUP_V1, CGROUP_MEMORY, "/sys/fs/cgroup/memory");
	check_base(docker_mounts, docker_own, false, CGROUP_V1, CGROUP_PIDS, "/sys/fs/cgroup/pids/sub");
	check_base("", "", true, CGROUP_NONE, 0, NULL);
	check_base("nonsense\n - \n1 2 3 - cgroup\n", "::\n0:", true, CGROUP_NONE, 0, NULL);
}

static void test_names_are_ids(void **state)
{
	(void)state;
	struct err err = ERR_INIT;
	assert_null(cgroup_open("../../etc", &err));
	assert_int_equal(err.code, ERR_INVALID);
	assert_null(cgroup_open("", NULL));
	assert_null(cgroup_open("abcdefghijkl", &err));
	assert_int_equal(err.code, ERR_NOT_FOUND);
}

static const struct policy_limits limits = { .cpus_milli = 500, .memory = 64u << 20, .processes = 8 };

static bool skip_here(void)
{
	const struct cgroup_support *s = cgroup_support_get();
	return !s->cpu || !s->memory || !s->pids;
}

/* A process that joins by the v1 files and forks a child, both waiting. */
static pid_t start_member(const struct cgroup *cg)
{
	int fds[CGROUP_PARTS_MAX];
	size_t n = 0;
	assert_int_equal(cgroup_v1_open_tasks(cg, fds, &n, NULL), 0);
	pid_t pid = fork();
	if (pid == 0) {
		for (size_t i = 0; i < n; i++)
			if (write(fds[i], "0", 1) != 1)
				_exit(1);
		if (fork() >= 0)
			for (;;)
				pause();
	}
	while (n > 0)
		fd_close(&fds[--n]);
	return pid;
}

static bool in_list(const char *id)
{
	char **ids;
	size_t n;
	bool found = false;
	assert_int_equal(cgroup_list(&ids, &n, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		found = found || str_eq(ids[i], id);
		mem_free(ids[i]);
	}
	mem_free(ids);
	return found;
}

static void test_life(void **state)
{
	(void)state;
	char id[SANDBOX_ID_LEN + 1];
	struct cgroup *cg = NULL;
	struct cgroup_usage u = { 0 };
	struct err err = ERR_INIT;
	if (skip_here())
		skip();
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	sandbox_id_new(id);
	if (cgroup_create(id, &limits, 1, &cg, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(in_list(id));
	assert_int_equal(cgroup_create(id, &limits, 1, &(struct cgroup *){ NULL }, &err), -1);
	assert_true(in_list(id));
	if (cgroup_support_get()->version == CGROUP_V1) {
		pid_t pid = start_member(cg);
		for (int i = 0; i < 1000 && u.processes < 2; i++) {
			assert_int_equal(cgroup_usage(cg, &u, &err), 0);
			usleep(1000);
		}
		assert_int_equal(u.processes, 2);
		assert_int_equal(cgroup_freeze(cg, true, &err), 0);
		/* Frozen ones are thawed to die. */
		assert_int_equal(cgroup_kill(cg, 5 * NS_PER_S, &err), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		while (waitpid(-1, NULL, 0) > 0) /* the grandchild is ours to reap, and counted until then */
			;
		assert_int_equal(cgroup_usage(cg, &u, &err), 0);
		assert_int_equal(u.processes, 0);
	}
	assert_int_equal(cgroup_remove(cg, &err), 0);
	assert_int_equal(cgroup_remove(cg, &err), 0);
	assert_false(in_list(id));
	cgroup_free(cg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_names_are_ids),
		cmocka_unit_test(test_life),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
