/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "isolate/common/cgroup-internal.h"
#include "spec/spec.h"

#define PERIOD_US 100000u
#define QUOTA_MIN_US 1000u /* the kernel takes no less */

struct cgroup {
	char id[SANDBOX_ID_LEN + 1];
	enum cgroup_version version;
	struct {
		unsigned controllers;
		char *folder;
		int fd;
	} parts[CGROUP_HIERARCHIES_MAX];
	size_t n;
};

struct cgroup *cgroup_free(struct cgroup *cg)
{
	if (!cg)
		return NULL;
	for (size_t i = 0; i < cg->n; i++) {
		fd_close(&cg->parts[i].fd);
		mem_free(cg->parts[i].folder);
	}
	return mem_free(cg);
}

static struct cgroup *new_cgroup(const char *id)
{
	struct cgroup *cg = mem_alloc(sizeof(*cg));
	snprintf(cg->id, sizeof(cg->id), "%s", id);
	cg->version = cgroup_layout_get()->version;
	return cg;
}

/* The descriptor of the cgroup's folder in the hierarchy of a controller, or -1. */
static int part_fd(const struct cgroup *cg, unsigned controller)
{
	for (size_t i = 0; i < cg->n; i++)
		if (cg->parts[i].controllers & controller)
			return cg->parts[i].fd;
	return -1;
}

static int add_part(struct cgroup *cg, const struct cgroup_place *place, bool create, struct err *err)
{
	char *folder = path_join(place->base, CGROUP_FOLDER);
	int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && create && (mkdir(folder, 0755) == 0 || errno == EEXIST))
		fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int saved = errno;
	cleanup_fd int parent = fd;
	if (fd < 0 || (create && mkdirat(fd, cg->id, 0755) < 0)) {
		saved = fd < 0 ? saved : errno;
		err_sys(err, saved, "can't create the cgroup %s/%s", folder, cg->id);
		mem_free(folder);
		return -1;
	}
	int own = openat(parent, cg->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (own < 0) {
		err_sys(err, errno, "can't open the cgroup %s/%s", folder, cg->id);
		mem_free(folder);
		return -1;
	}
	cg->parts[cg->n].controllers = place->controllers;
	cg->parts[cg->n].folder = folder;
	cg->parts[cg->n++].fd = own;
	return 0;
}

static int set_number(int fd, const char *file, uint64_t value, struct err *err)
{
	char text[32];
	snprintf(text, sizeof(text), "%" PRIu64, value);
	return fd_write_file_at(fd, file, text, err);
}

static bool has_swap(void)
{
	cleanup_free char *text = NULL;
	size_t len;
	if (fd_read_file_at(AT_FDCWD, "/proc/swaps", 65536, &text, &len, NULL) < 0)
		return false; /* no such file: a kernel without swap */
	const char *second = strchr(text, '\n');
	return second && second[1] != '\0';
}

static int set_memory(const struct cgroup *cg, uint64_t bytes, struct err *err)
{
	int fd = part_fd(cg, CGROUP_MEMORY);
	if (cg->version == CGROUP_V2) {
		if (set_number(fd, "memory.max", bytes, err) < 0)
			return -1;
		if (faccessat(fd, "memory.swap.max", F_OK, 0) == 0)
			return set_number(fd, "memory.swap.max", 0, err);
	} else {
		if (set_number(fd, "memory.limit_in_bytes", bytes, err) < 0)
			return -1;
		if (faccessat(fd, "memory.memsw.limit_in_bytes", F_OK, 0) == 0)
			return set_number(fd, "memory.memsw.limit_in_bytes", bytes, err);
	}
	if (has_swap())
		return err_set(err, ERR_UNSUPPORTED,
			"the memory limit can't be enforced: this machine has swap and its kernel doesn't count it for each "
			"cgroup; "
			"switch swap off (swapoff -a), or boot with swapaccount=1");
	return 0;
}

static int set_cpu(const struct cgroup *cg, uint64_t milli, struct err *err)
{
	char text[48];
	int fd = part_fd(cg, CGROUP_CPU);
	uint64_t quota = milli * (PERIOD_US / 1000);
	if (quota < QUOTA_MIN_US)
		quota = QUOTA_MIN_US;
	if (cg->version == CGROUP_V2) {
		snprintf(text, sizeof(text), "%" PRIu64 " %u", quota, PERIOD_US);
		return fd_write_file_at(fd, "cpu.max", text, err);
	}
	/* A parent's quota bounds the child's on v1, but 100 ms is the period everywhere by default. */
	return set_number(fd, "cpu.cfs_quota_us", quota, err);
}

static unsigned needed(const struct policy_limits *l)
{
	return (l->cpus_milli != POLICY_UNLIMITED ? CGROUP_CPU : 0) | (l->memory != POLICY_UNLIMITED ? CGROUP_MEMORY : 0) |
	       (l->processes != POLICY_UNLIMITED ? CGROUP_PIDS : 0);
}

/* The kernel has no more processes than that, and takes no larger number. */
#define PIDS_MOST 4194304u

static int set_pids(const struct cgroup *cg, uint64_t n, struct err *err)
{
	return set_number(part_fd(cg, CGROUP_PIDS), "pids.max", n < PIDS_MOST ? n : PIDS_MOST, err);
}

static int set_limits(const struct cgroup *cg, const struct policy_limits *l, unsigned extra_processes, struct err *err)
{
	if (l->cpus_milli != POLICY_UNLIMITED && part_fd(cg, CGROUP_CPU) >= 0 && set_cpu(cg, l->cpus_milli, err) < 0)
		return err_wrap(err, "cpus limit");
	if (l->memory != POLICY_UNLIMITED && part_fd(cg, CGROUP_MEMORY) >= 0 && set_memory(cg, l->memory, err) < 0)
		return err_wrap(err, "memory limit");
	if (l->processes != POLICY_UNLIMITED && part_fd(cg, CGROUP_PIDS) >= 0 &&
		set_pids(cg, l->processes + extra_processes, err) < 0)
		return err_wrap(err, "processes limit");
	return 0;
}

int cgroup_create(
	const char *id, const struct policy_limits *limits, unsigned extra_processes, struct cgroup **ret, struct err *err)
{
	const struct cgroup_layout *layout = cgroup_layout_get();
	if (!sandbox_id_valid(id))
		return err_set(err, ERR_INVALID, "a cgroup can't have that name: it isn't a sandbox id");
	/* Freezing and counting time are wanted beside the limits; a place that isn't ours is skipped, cgroup_check_limits has
	 * judged what that means. */
	unsigned wanted = needed(limits) | CGROUP_FREEZER | CGROUP_CPUACCT;
	struct cgroup *cg = new_cgroup(id);
	int r = 0;
	for (size_t i = 0; r == 0 && i < layout->n; i++) {
		const struct cgroup_place *place = &layout->places[i];
		if (!place->writable || !(place->controllers & wanted))
			continue;
		if (layout->version == CGROUP_V2)
			r = cgroup_v2_delegate(place->base, place->controllers, err);
		if (r == 0)
			r = add_part(cg, place, true, err);
	}
	if (r == 0)
		r = set_limits(cg, limits, extra_processes, err);
	if (r < 0) {
		cgroup_remove(cg, NULL);
		cgroup_free(cg);
		return -1;
	}
	*ret = cg;
	return 0;
}

struct cgroup *cgroup_open(const char *id, struct err *err)
{
	const struct cgroup_layout *layout = cgroup_layout_get();
	if (!sandbox_id_valid(id)) {
		err_set(err, ERR_INVALID, "that isn't a sandbox id");
		return NULL;
	}
	struct cgroup *cg = new_cgroup(id);
	for (size_t i = 0; i < layout->n; i++)
		add_part(cg, &layout->places[i], false, NULL);
	if (cg->n > 0)
		return cg;
	cgroup_free(cg);
	err_set(err, ERR_NOT_FOUND, "there is no cgroup of sandbox %s", id);
	return NULL;
}

int cgroup_v1_open_tasks(const struct cgroup *cg, int ret_fds[CGROUP_PARTS_MAX], size_t *ret_n, struct err *err)
{
	size_t n = 0;
	/* "0" into `tasks` is the one way in that doesn't make the kernel stop every fork on the machine meanwhile (11 ms
	 * here). */
	for (size_t i = 0; cg->version == CGROUP_V1 && i < cg->n; i++) {
		ret_fds[n] = openat(cg->parts[i].fd, "tasks", O_WRONLY | O_CLOEXEC);
		if (ret_fds[n] < 0) {
			int saved = errno;
			while (n > 0)
				fd_close(&ret_fds[--n]);
			return err_sys(err, saved, "can't open the box's cgroup for joining");
		}
		n++;
	}
	*ret_n = n;
	return 0;
}

int cgroup_v2_fd(const struct cgroup *cg)
{
	return cg->version == CGROUP_V2 && cg->n > 0 ? cg->parts[0].fd : -1;
}

static int read_number(int fd, const char *file, uint64_t *ret)
{
	cleanup_free char *text = NULL;
	size_t len;
	if (fd < 0 || fd_read_file_at(fd, file, 64, &text, &len, NULL) < 0)
		return -1;
	text[strcspn(text, "\n")] = '\0';
	return text_parse_u64(text, 0, UINT64_MAX, ret);
}

/* "key value" lines, as in memory.events. */
static int read_key(int fd, const char *file, const char *key, uint64_t *ret)
{
	cleanup_free char *text = NULL;
	size_t len, key_len = strlen(key);
	if (fd < 0 || fd_read_file_at(fd, file, 65536, &text, &len, NULL) < 0)
		return -1;
	for (char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
		if (strncmp(line, key, key_len) == 0 && line[key_len] == ' ') {
			line[strcspn(line, "\n")] = '\0';
			return text_parse_u64(line + key_len + 1, 0, UINT64_MAX, ret);
		}
	return -1;
}

static void usage_v1(struct cgroup *cg, struct cgroup_usage *u)
{
	int memory = part_fd(cg, CGROUP_MEMORY), pids = part_fd(cg, CGROUP_PIDS);
	read_number(part_fd(cg, CGROUP_CPUACCT), "cpuacct.usage", &u->cpu_ns);
	read_number(memory, "memory.usage_in_bytes", &u->memory);
	read_number(memory, "memory.max_usage_in_bytes", &u->memory_peak);
	read_key(memory, "memory.oom_control", "oom_kill", &u->oom_kills);
	read_number(pids, "pids.current", &u->processes);
	read_key(pids, "pids.events", "max", &u->pids_denied);
}

static void usage_v2(struct cgroup *cg, struct cgroup_usage *u)
{
	int fd = cg->parts[0].fd;
	if (read_key(fd, "cpu.stat", "usage_usec", &u->cpu_ns) == 0)
		u->cpu_ns *= 1000;
	read_number(fd, "memory.current", &u->memory);
	if (read_number(fd, "memory.peak", &u->memory_peak) < 0)
		u->memory_peak = u->memory;
	read_key(fd, "memory.events", "oom_kill", &u->oom_kills);
	read_number(fd, "pids.current", &u->processes);
	read_key(fd, "pids.events", "max", &u->pids_denied);
}

int cgroup_usage(struct cgroup *cg, struct cgroup_usage *ret, struct err *err)
{
	struct cgroup_usage u = { 0 };
	if (cg->n == 0)
		return err_set(err, ERR_NOT_FOUND, "sandbox %s has no cgroup", cg->id);
	if (cg->version == CGROUP_V1)
		usage_v1(cg, &u);
	else
		usage_v2(cg, &u);
	*ret = u;
	return 0;
}

static void sleep_ns(long ns)
{
	const struct timespec t = { .tv_nsec = ns };
	nanosleep(&t, NULL);
}

int cgroup_freeze(struct cgroup *cg, bool on, struct err *err)
{
	int fd = part_fd(cg, CGROUP_FREEZER);
	if (fd < 0)
		return err_set(err, ERR_UNSUPPORTED, "sandbox %s can't be frozen: no cgroup freezer is to be had here", cg->id);
	if (cg->version == CGROUP_V2)
		return fd_write_file_at(fd, "cgroup.freeze", on ? "1" : "0", err);
	return fd_write_file_at(fd, "freezer.state", on ? "FROZEN" : "THAWED", err);
}

/* One round of SIGKILL over the list of a hierarchy. Returns how many were alive, writing some of their numbers for a message.
 */
static size_t kill_round(int fd, char *left, size_t left_len)
{
	cleanup_free char *pids = NULL;
	size_t len, n = 0;
	char *save = NULL;
	left[0] = '\0';
	if (fd < 0 || fd_read_file_at(fd, "cgroup.procs", 1u << 22, &pids, &len, NULL) < 0)
		return 0;
	for (char *pid = strtok_r(pids, "\n", &save); pid; pid = strtok_r(NULL, "\n", &save)) {
		int number = atoi(pid);
		if (number <= 0) /* 0: in a namespace above ours; can't be the box's */
			continue;
		kill(number, SIGKILL);
		if (n++ < 8)
			snprintf(left + strlen(left), left_len - strlen(left), " %d", number);
	}
	return n;
}

int cgroup_kill(struct cgroup *cg, uint64_t timeout_ns, struct err *err)
{
	char left[128] = "";
	uint64_t end = time_monotonic_ns() + timeout_ns;
	if (cg->n == 0)
		return 0;
	bool first = true;
	for (long pause = 50000;; pause = pause < 5000000 ? pause * 2 : pause, first = false) {
		size_t n = 0;
		if (cg->version == CGROUP_V2)
			fd_write_file_at(
				cg->parts[0].fd, "cgroup.kill", "1", NULL); /* Linux 5.14; the rounds below do it elsewhere */
		/* Frozen, none can fork away from the list that is being read. A frozen process dies only when thawed. The first
		 * look goes without (0.2 ms): who could fork would be on the list, so an empty one stays empty, and it is empty
		 * as a rule, because the box's pid 1 is dead and took the others with it. */
		bool frozen = cg->version == CGROUP_V1 && !first && cgroup_freeze(cg, true, NULL) == 0;
		for (size_t i = 0; i < cg->n && n == 0; i++)
			n = kill_round(cg->parts[i].fd, left, sizeof(left));
		if (frozen)
			cgroup_freeze(cg, false, NULL);
		if (n == 0)
			return 0;
		if (time_monotonic_ns() >= end)
			return err_set(
				err, ERR_TIMEOUT, "processes of sandbox %s are still there after SIGKILL:%s", cg->id, left);
		sleep_ns(pause);
	}
}

int cgroup_remove(struct cgroup *cg, struct err *err)
{
	int r = 0;
	for (size_t i = 0; i < cg->n; i++) {
		char *path = mem_printf("%s/%s", cg->parts[i].folder, cg->id);
		int busy = 0;
		/* A process that was reaped a moment ago may still be counted. */
		while (rmdir(path) < 0 && errno == EBUSY && busy++ < 50)
			sleep_ns(1000000);
		if (access(path, F_OK) == 0)
			r = err_sys(err, EBUSY, "can't remove the cgroup %s", path);
		mem_free(path);
	}
	return r;
}

static bool listed(char **ids, size_t n, const char *id)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(ids[i], id))
			return true;
	return false;
}

int cgroup_list(char ***ret_ids, size_t *ret_n, struct err *err)
{
	const struct cgroup_layout *layout = cgroup_layout_get();
	char **ids = NULL;
	size_t n = 0;
	for (size_t i = 0; i < layout->n; i++) {
		cleanup_free char *folder = path_join(layout->places[i].base, CGROUP_FOLDER);
		DIR *dir = opendir(folder);
		for (struct dirent *e; dir && (e = readdir(dir));) {
			if (!sandbox_id_valid(e->d_name) || listed(ids, n, e->d_name))
				continue;
			ids = mem_grow_array(ids, n + 1, sizeof(*ids));
			ids[n++] = mem_strdup(e->d_name);
		}
		if (dir)
			closedir(dir);
	}
	*ret_ids = ids;
	*ret_n = n;
	return 0;
}
