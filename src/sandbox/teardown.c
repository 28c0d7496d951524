/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end, stage by stage. Each stage has a deadline; what doesn't come in time is said, never waited for without bound.
 *   1 kill      every process of the box is killed; nothing new is admitted
 *   2 drain     what the box had written before it died is read, recorded and passed on; the gate tells its totals
 *   3 collect   the working copy's changes are compared with the original, saved and listed on the record
 *   4 remove    cgroup, descriptors; checked, recorded, closed
 */
#include "sandbox/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <dirent.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"

#define KILL_NS (5 * NS_PER_S)
#define DRAIN_NS (3 * NS_PER_S)
#define RECORD_NS (10 * NS_PER_S)
#define CHANGES_MAX 2000000u

static void step(struct sandbox *s);

static void step_deferred(void *ctx)
{
	struct sandbox *s = ctx;
	s->ending.stepping = false;
	if (s->phase == SB_ENDED)
		sandbox_release(s);
	else
		step(s);
}

static void on_deadline(void *ctx)
{
	struct sandbox *s = ctx;
	s->ending.timed_out = true;
	teardown_step(s);
}

void teardown_step(struct sandbox *s)
{
	if (!s->ending.stepping)
		loop_defer(s->loop, step_deferred, s);
	s->ending.stepping = true;
}

static void fail_once(struct sandbox *s, const struct err *err)
{
	if (s->result.failed)
		return;
	s->result.failed = true;
	s->result.err = *err;
}

/* ---- 1 kill ---- */

void teardown_begin(struct sandbox *s)
{
	struct err err;
	s->ending.began_ns = time_monotonic_ns();
	s->ending.deadline = loop_timer_new(s->loop, on_deadline, s);
	loop_timer_set(s->ending.deadline, DRAIN_NS, 0);
	executions_flush(s);
	/* No box was launched yet: nobody will ever hold that end. */
	fd_close(&s->box_end);
	s->control = control_free(s->control);
	helpers_free(s->helpers);
	s->helpers = NULL;
	if (s->gate) {
		gate_link_cut(s->gate);
		gate_link_finish(s->gate);
	} else {
		s->ending.gate_done = true;
	}
	if (s->have_box && box_kill(&s->box, KILL_NS, &err) < 0)
		fail_once(s, &err);
	s->ending.kill_ns = time_monotonic_ns() - s->ending.began_ns;
	/* The cgroup keeps its counters until it is removed: a last look, while the gate sums up. */
	limit_watch_sample(s->limits);
	s->ending.killed = true;
	teardown_step(s);
}

/* ---- 3 collect ---- */

/* What the box had of a mount: an overlay's upper folder, or all of it (isolate.h). */
static int open_box_side(struct sandbox *s, size_t mount, bool *ret_whole)
{
	char path[32];
	snprintf(path, sizeof(path), "up/%zu", mount);
	int fd = path_open_beneath(s->box.upper_fd, path, O_RDONLY | O_DIRECTORY, 0);
	*ret_whole = fd == -ENOENT;
	if (fd != -ENOENT)
		return fd;
	snprintf(path, sizeof(path), "whole/%zu", mount);
	return path_open_beneath(s->box.upper_fd, path, O_RDONLY | O_DIRECTORY, 0);
}

static int collect_mount(struct sandbox *s, size_t mount, size_t copy_number, struct err *err)
{
	char name[32];
	bool whole;
	struct changes c = { 0 };
	cleanup_fd int upper_fd = open_box_side(s, mount, &whole);
	if (upper_fd < 0)
		return err_sys(err, -upper_fd, "cannot open the changes of %s", s->spec.mounts[mount].target);
	int (*compare)(int, int, const char *, uint64_t, size_t, struct changes *, struct err *) =
		whole ? changes_collect_whole : changes_collect;
	if (compare(upper_fd, s->box.lower_fd[copy_number], s->mounts[mount].source, s->result.started_ns, CHANGES_MAX, &c, err) < 0)
		return -1;
	int r = 0;
	if (c.n > 0) {
		if (copy_number == 0)
			snprintf(name, sizeof(name), "changes");
		else
			snprintf(name, sizeof(name), "changes.%zu", copy_number);
		mem_free(c.source);
		c.source = mem_strdup(s->mounts[mount].source);
		r = changes_save(&c, upper_fd, sandbox_dir_fd(s->dir), name, err);
		if (r == 0)
			files_log_add(s, mount, &c);
	}
	changes_done(&c);
	return r;
}

static void collect(struct sandbox *s)
{
	uint64_t began = time_monotonic_ns();
	size_t copy_number = 0;
	for (size_t i = 0; s->have_box && i < s->spec.n_mounts; i++) {
		struct err err;
		if (s->spec.mounts[i].mode != MOUNT_COPY)
			continue;
		if (copy_number < s->box.n_lower && collect_mount(s, i, copy_number, &err) < 0) {
			err_wrap(&err, "the changes of the working copy could not be saved");
			fail_once(s, &err);
		}
		copy_number++;
	}
	s->ending.collect_ns = time_monotonic_ns() - began;
}

/* ---- 4 remove ---- */

static void remove_box(struct sandbox *s)
{
	struct err err = ERR_INIT;
	const char *left = "gone";
	uint64_t began = time_monotonic_ns();
	bool clean = true;
	unsigned left_count;
	/* A start that failed half-way may have left a cgroup that its launcher could no longer remove. */
	int r = s->have_box ? box_teardown(&s->box, &err) : isolate_reap(s->spec.id, false, &left_count, &err);
	if (r < 0) {
		clean = false;
		left = err.text;
		fail_once(s, &err);
	}
	/* Mounts and sockets of the box are its namespaces' own: they end with the last process, and no sooner. */
	const char *inside = clean ? "gone" : "as long as processes are left";
	s->have_box = false;
	s->result.clean = clean;
	uint64_t now = time_monotonic_ns();
	s->result.total_ns = now - s->started_monotonic_ns;
	events_send(s, AUDIT_TEARDOWN,
		json_pack("{s:s,s:s,s:s,s:s,s:I,s:I,s:I}", "processes", clean ? "gone" : "see cgroup", "mounts", inside, "cgroup", left, "sockets", inside,
			"kill_ns", (json_int_t)s->ending.kill_ns, "collect_ns", (json_int_t)s->ending.collect_ns, "remove_ns", (json_int_t)(now - began)),
		NULL, NULL);
}

static void close_parts(struct sandbox *s)
{
	s->notify = notify_free(s->notify);
	denial_log_flush(s->denials);
	mux_free(s->mux);
	s->mux = NULL;
	s->gate = gate_link_free(s->gate);
	/* Its front half ends now, and it may end with that. */
	s->upstream_part.io = loop_io_remove(s->upstream_part.io);
}

static void finish(struct sandbox *s)
{
	s->ending.deadline = loop_timer_free(s->ending.deadline);
	struct audit_client *audit = s->audit;
	s->phase = SB_ENDED;
	s->auditor.io = loop_io_remove(s->auditor.io);
	s->audit = NULL;
	fd_close(&s->auditor.pidfd);
	/* Told to end long ago, it is collected now. */
	part_forget(&s->gate_part, NS_PER_S);
	/* The front half is gone, so the upstream half loses nobody; with it end the secrets. */
	s->upstream = upstream_link_free(s->upstream);
	part_forget(&s->upstream_part, NS_PER_S);
	s->ops.on_ended(s->ctx, &s->result); /* may free `s` */
	/* Closing the socket is the auditor's sign to sync and end; nobody waits for the disk here. So late because what the owner
	 * writes meanwhile would wait for it, on one and the same file system. */
	audit_client_free(audit);
}

static bool output_flowing(const struct sandbox *s)
{
	for (const struct execution *e = s->executions; e; e = e->next)
		if (e->out.pump || e->err_out.pump)
			return true;
	return false;
}

/* Output streams end only when every chunk was recorded and passed on. */
static bool drained(const struct sandbox *s)
{
	return s->ending.pipe_done && s->ending.gate_done && !output_flowing(s);
}

/* Nothing more will be recorded, or waiting for it has been long enough. */
static bool record_over(const struct sandbox *s)
{
	return !s->audit || s->auditor.ended || s->ending.timed_out;
}

static void restart_deadline(struct sandbox *s)
{
	s->ending.timed_out = false;
	loop_timer_set(s->ending.deadline, RECORD_NS, 0);
}

static void step(struct sandbox *s)
{
	if (!s->ending.killed || s->launching)
		return;
	/* A box that arrived while we were ending already. */
	if (s->have_box && s->box.pid > 0 && !s->ending.pipe_done && !s->ending.collected)
		box_kill(&s->box, KILL_NS, NULL);
	if (!s->ending.collected) {
		if (!s->mux)
			s->ending.pipe_done = true;
		if (!drained(s) && !s->ending.timed_out)
			return;
		s->ending.collected = true;
		executions_lose(s);
		collect(s);
		close_parts(s);
		restart_deadline(s);
	}
	if (!s->ending.removed) {
		if (files_log_step(s))
			restart_deadline(s);
		if (s->files && !record_over(s))
			return;
		s->ending.removed = true;
		remove_box(s);
		events_end(s);
		restart_deadline(s);
	}
	/* The last record's acknowledgement comes after all others. */
	if (s->ending.recorded || record_over(s))
		finish(s);
}
