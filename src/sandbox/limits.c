/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits as seen by the supervisor. Time, idle time and output are enforced here. Memory, processes, disk and open files are enforced by the kernel, which tells nobody:
 * counters are sampled, so that reaching a limit has a typed reason on stderr and on the record.
 *
 * Idle means: no byte on the pipe and less than 1 % of one cpu used in the box since the last sample, for the whole idle time. A busy box is not idle.
 */
#include "sandbox/internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"

#define SAMPLE_FIRST_NS (20 * NS_PER_MS)
#define SAMPLE_NS (100 * NS_PER_MS)
#define PROCESSES_LOOKED_AT 4096

struct limit_watch {
	struct sandbox *sandbox;
	struct loop_timer *wall, *sample;
	uint64_t last_cpu_ns, last_activity, idle_since_ns, last_sample_ns;
	uint64_t oom_kills, pids_denied;
};

/* Told once for each kind; `ends`: the sandbox ends because of it. */
void limit_hit(struct sandbox *s, enum reason limit, uint64_t value, bool ends)
{
	if (s->phase == SB_ENDED || (s->result.limits_hit & SANDBOX_LIMIT_BIT(limit)))
		return;
	s->result.limits_hit |= SANDBOX_LIMIT_BIT(limit);
	events_limit(s, limit, value, ends);
	if (s->ops.on_limit)
		s->ops.on_limit(s->ctx, limit);
	if (ends)
		sandbox_end(s, limit);
}

bool limit_watch_output(struct sandbox *s, uint64_t *len)
{
	uint64_t limit = s->spec.limits.output;
	uint64_t left = limit == POLICY_UNLIMITED ? UINT64_MAX : limit - s->output_total;
	bool fits = *len <= left;
	if (!fits)
		*len = left;
	s->output_total += *len;
	return fits;
}

static void on_wall(void *ctx)
{
	struct limit_watch *w = ctx;
	/* What Bulkhead itself takes at the end isn't the command's time. */
	if (w->sandbox->phase <= SB_READY)
		limit_hit(w->sandbox, REASON_LIMIT_TIME, w->sandbox->spec.limits.timeout_ns, true);
}

static void sample_cgroup(struct limit_watch *w, struct cgroup_usage *u)
{
	struct sandbox *s = w->sandbox;
	if (u->oom_kills > w->oom_kills)
		limit_hit(s, REASON_LIMIT_MEMORY, s->spec.limits.memory, false);
	if (u->pids_denied > w->pids_denied)
		limit_hit(s, REASON_LIMIT_PROCESSES, s->spec.limits.processes, false);
	w->oom_kills = u->oom_kills;
	w->pids_denied = u->pids_denied;
	s->result.cpu_ns = u->cpu_ns;
	if (u->memory_peak > s->result.memory_peak)
		s->result.memory_peak = u->memory_peak;
}

static void sample_disk(struct limit_watch *w)
{
	struct statfs fs;
	struct sandbox *s = w->sandbox;
	if (s->spec.limits.disk == POLICY_UNLIMITED || s->box.upper_fd < 0 || fstatfs(s->box.upper_fd, &fs) < 0)
		return;
	if (fs.f_bfree == 0 || (fs.f_files > 0 && fs.f_ffree == 0))
		limit_hit(s, REASON_LIMIT_DISK, s->spec.limits.disk, false);
}

/* Linux 6.2 and later give the number of open descriptors as the size of /proc/PID/fd; before, they are counted up to the limit. */
static bool at_open_files_limit(pid_t pid, uint64_t limit)
{
	char path[64];
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	if (stat(path, &st) == 0 && st.st_size > 0)
		return (uint64_t)st.st_size >= limit;
	DIR *d = opendir(path);
	uint64_t n = 0;
	if (!d)
		return false;
	while (n < limit + 2 && readdir(d))
		n++;
	closedir(d);
	return n >= limit + 2;
}

static void add_children(const char *path, pid_t *list, size_t *n)
{
	char *text = NULL, *save = NULL;
	size_t len;
	if (fd_read_file_at(AT_FDCWD, path, 1024 * 1024, &text, &len, NULL) < 0)
		return;
	for (char *t = strtok_r(text, " \n", &save); t && *n < PROCESSES_LOOKED_AT; t = strtok_r(NULL, " \n", &save))
		list[(*n)++] = (pid_t)atoi(t);
	mem_free(text);
}

/* The box's processes, its pid 1 first: down through /proc/PID/task/TID/children, since any thread may have started a process. */
static size_t box_processes(const struct sandbox *s, pid_t *list)
{
	size_t n = 0;
	list[n++] = s->box.pid;
	for (size_t i = 0; i < n; i++) {
		char path[64];
		snprintf(path, sizeof(path), "/proc/%d/task", (int)list[i]);
		DIR *tasks = opendir(path);
		for (struct dirent *e; tasks && (e = readdir(tasks));) {
			if (e->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "/proc/%d/task/%.16s/children", (int)list[i], e->d_name);
			add_children(path, list, &n);
		}
		if (tasks)
			closedir(tasks);
	}
	return n;
}

static void sample_open_files(struct limit_watch *w, const pid_t *list, size_t n)
{
	struct sandbox *s = w->sandbox;
	uint64_t limit = s->spec.limits.open_files;
	if (limit == POLICY_UNLIMITED || (s->result.limits_hit & SANDBOX_LIMIT_BIT(REASON_LIMIT_OPEN_FILES)))
		return;
	for (size_t i = 1; i < n; i++)
		if (at_open_files_limit(list[i], limit)) {
			limit_hit(s, REASON_LIMIT_OPEN_FILES, limit, false);
			return;
		}
}

/* Processor time of a process and of the children that it has waited for: fields 14 to 17 of proc_pid_stat(5). */
static uint64_t process_cpu_ns(pid_t pid)
{
	char path[32], *text = NULL;
	unsigned long long t[4] = { 0 };
	size_t len;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (fd_read_file_at(AT_FDCWD, path, 4096, &text, &len, NULL) < 0)
		return 0;
	const char *after = strrchr(text, ')'); /* the name in front may hold anything */
	if (after)
		sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3]);
	mem_free(text);
	return (t[0] + t[1] + t[2] + t[3]) * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* Where no cgroup counts. */
static uint64_t box_cpu_ns(const pid_t *list, size_t n)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += process_cpu_ns(list[i]);
	return sum;
}

static void sample_idle(struct limit_watch *w, uint64_t cpu_ns)
{
	struct sandbox *s = w->sandbox;
	uint64_t now = time_monotonic_ns(), activity = s->mux ? mux_activity(s->mux) : 0;
	/* Less than before: a process ended whose time nobody inherited. Something happened, then. */
	bool worked = cpu_ns < w->last_cpu_ns || (cpu_ns - w->last_cpu_ns) * 100 > now - w->last_sample_ns;
	bool busy = activity != w->last_activity || worked;
	w->last_activity = activity;
	w->last_cpu_ns = cpu_ns;
	w->last_sample_ns = now;
	if (busy || w->idle_since_ns == 0)
		w->idle_since_ns = now;
	if (s->spec.limits.idle_ns != POLICY_UNLIMITED && now - w->idle_since_ns >= s->spec.limits.idle_ns)
		limit_hit(s, REASON_LIMIT_IDLE, s->spec.limits.idle_ns, true);
}

void limit_watch_sample(struct limit_watch *w)
{
	struct sandbox *s = w->sandbox;
	struct cgroup_usage u = { 0 };
	if (!s->have_box)
		return;
	bool counted = s->box.cgroup && cgroup_usage(s->box.cgroup, &u, NULL) == 0;
	if (counted)
		sample_cgroup(w, &u);
	sample_disk(w);
	if (s->phase <= SB_READY)
		executions_check_started(s);
	if (s->phase != SB_READY || s->box.pid <= 0)
		return;
	cleanup_free pid_t *list = mem_alloc_array(PROCESSES_LOOKED_AT, sizeof(*list));
	size_t n = box_processes(s, list);
	sample_open_files(w, list, n);
	sample_idle(w, counted && u.cpu_ns ? u.cpu_ns : box_cpu_ns(list, n));
}

static void on_sample(void *ctx)
{
	limit_watch_sample(ctx);
}

struct limit_watch *limit_watch_new(struct sandbox *s)
{
	struct limit_watch *w = mem_alloc(sizeof(*w));
	w->sandbox = s;
	w->wall = loop_timer_new(s->loop, on_wall, w);
	w->sample = loop_timer_new(s->loop, on_sample, w);
	w->last_sample_ns = time_monotonic_ns();
	if (s->spec.limits.timeout_ns != POLICY_UNLIMITED)
		loop_timer_set(w->wall, s->spec.limits.timeout_ns, 0);
	return w;
}

void limit_watch_box(struct limit_watch *w)
{
	loop_timer_set(w->sample, SAMPLE_FIRST_NS, SAMPLE_NS);
}

struct limit_watch *limit_watch_free(struct limit_watch *w)
{
	if (!w)
		return NULL;
	loop_timer_free(w->wall);
	loop_timer_free(w->sample);
	return mem_free(w);
}
