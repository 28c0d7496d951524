/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "event/child.h"
#include "isolate/cgroup.h"
#include "isolate/common/caps.h"
#include "isolate/common/netns.h"
#include "isolate/common/userns.h"
#include "isolate/container/build.h"
#include "isolate/launch.h"

#define AGENT_PROCESSES 1

/* What the launcher holds besides the plan: the box's cgroup and the clone. */
struct launch {
	struct build build;
	struct cgroup *cgroup;
	int pidfd;
	pid_t pid;
};

static void init(struct launch *l)
{
	struct build *b = &l->build;
	*l = (struct launch){ .pidfd = -1, .pid = -1 };
	b->pipe_fd = b->box_userns = b->box_netns = b->report_fd = b->agent_fd = b->layer_fd = b->disk_fd = b->root_fd = b->proc_fd = -1;
	for (size_t i = 0; i < SPEC_MOUNTS_MAX; i++)
		b->sources[i] = b->map_userns[i] = b->clones[i] = b->lower_fd[i] = -1;
	for (size_t i = 0; i < SPEC_FILES_MAX; i++)
		b->files[i] = -1;
}

static int read_request(struct launch *l, struct launch_message *m, struct err *err)
{
	struct build *b = &l->build;
	struct cursor c = cursor_make(m->body.data, m->body.len);
	if (cursor_u32(&c) != LAUNCH_REQUEST_BUILD || c.bad)
		return err_set(err, ERR_PROTOCOL, "the launcher was asked for something it doesn't know");
	if (spec_decode(c.p, c.left, &b->spec, err) < 0 || spec_validate(&b->spec, err) < 0)
		return -1;
	if (m->n_fds != b->spec.n_mounts + b->spec.n_files + 1)
		return err_set(err, ERR_PROTOCOL, "the launcher got %zu descriptors for %zu mounts and %zu files", m->n_fds,
			b->spec.n_mounts, b->spec.n_files);
	if (b->spec.privileged != (geteuid() == 0))
		return err_set(err, ERR_PROTOCOL, "the launcher was asked for a %s box but runs as user %u",
			b->spec.privileged ? "privileged" : "rootless", geteuid());
	b->pipe_fd = fd_steal(&m->fds[0]);
	for (size_t i = 0; i < b->spec.n_mounts; i++)
		b->sources[i] = fd_steal(&m->fds[i + 1]);
	for (size_t i = 0; i < b->spec.n_files; i++)
		b->files[i] = fd_steal(&m->fds[b->spec.n_mounts + i + 1]);
	b->agent_path = child_find_program("bulkhead-agent", err);
	return b->agent_path ? 0 : -1;
}

/* Unlimited in everything, or nothing to be had and nothing asked of it: then there is none. */
static int create_cgroup(struct launch *l, struct err *err)
{
	return cgroup_create(l->build.spec.id, &l->build.spec.limits, AGENT_PROCESSES, &l->cgroup, err);
}

static int prepare_cgroup(struct launch *l, struct err *err)
{
	const struct policy_limits *limits = &l->build.spec.limits;
	const struct cgroup_support *support = cgroup_support_get();
	if (cgroup_check_limits(limits, err) < 0)
		return -1;
	if (limits->processes != POLICY_UNLIMITED && !support->pids)
		l->build.nproc = (rlim_t)limits->processes + AGENT_PROCESSES;
	l->build.late_cgroup = support->version == CGROUP_V1;
	return support->version == CGROUP_V2 ? create_cgroup(l, err) : 0;
}

static int create_maps(struct build *b, struct err *err)
{
	for (size_t i = 0; i < b->spec.n_mounts; i++) {
		struct id_map uids, gids;
		id_map_for_owner(&uids, b->spec.mounts[i].owner_uid, b->spec.host_id_base);
		id_map_for_owner(&gids, b->spec.mounts[i].owner_gid, b->spec.host_id_base);
		b->map_userns[i] = userns_create(&uids, &gids, err);
		if (b->map_userns[i] < 0)
			return -1;
	}
	return 0;
}

static int create_box_userns(const struct build *b, struct err *err)
{
	const struct id_map range = { .ranges = { { 0, b->spec.host_id_base, SPEC_ID_RANGE } }, .n = 1 };
	const struct id_map same = { .ranges = { { SPEC_INSIDE_ID, SPEC_INSIDE_ID, 1 } }, .n = 1 };
	if (!b->spec.privileged)
		return userns_create(&same, &same, err);
	/* What a box takes of the kernel's limits by user (inotify, message queues, pending signals) counts for its namespace's owner as well:
	 * were that root, any box could use up the machine's, and that of all others. */
	if (privilege_act_as(b->spec.host_id_base, err) < 0)
		return -1;
	cleanup_fd int fd = userns_create(&range, &range, err);
	if (privilege_act_as(0, err) < 0 || fd < 0)
		return -1;
	return fd_steal(&fd);
}

/* Our own network namespace becomes the box's: nothing here needs the host's any more. */
static int create_netns(const struct build *b, struct err *err)
{
	if (unshare(CLONE_NEWNET) < 0)
		return err_sys(err, errno, "can't create the box's network namespace (see `bulkhead doctor`)");
	if (netns_loopback_up(err) < 0)
		return -1;
	if ((b->spec.egress || b->spec.n_routes) && netns_capture(b->spec.routes, b->spec.n_routes, err) < 0)
		return -1;
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_sys(err, errno, "can't open the box's network namespace") : fd;
}

static int clone_box(struct launch *l, int *ret_sync, struct err *err)
{
	int pair[2], v2 = l->cgroup ? cgroup_v2_fd(l->cgroup) : -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "can't create a socket");
	struct clone_args args = {
		.flags = CLONE_PARENT | CLONE_PIDFD | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS |
			 (v2 >= 0 ? CLONE_INTO_CGROUP : 0),
		.pidfd = (uint64_t)(uintptr_t)&l->pidfd,
		.cgroup = v2 >= 0 ? (uint64_t)v2 : 0,
	};
	long pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0) {
		fd_close(&pair[0]); /* so that the launcher's death is seen at the other end */
		l->build.report_fd = pair[1];
		inside_main(&l->build);
	}
	int saved = errno;
	fd_close(&pair[1]);
	if (pid < 0) {
		fd_close(&pair[0]);
		return err_sys(err, saved, "can't create the box's namespaces (see `bulkhead doctor`)");
	}
	l->pid = (pid_t)pid;
	*ret_sync = pair[0];
	return 0;
}

/* The launcher's share of the work beside the clone's. */
static int prepare_beside(struct launch *l, int sync, struct err *err)
{
	int fds[2 + CGROUP_PARTS_MAX];
	size_t n_tasks = 0;
	struct buf body;
	cleanup_fd int userns = create_box_userns(&l->build, err);
	if (userns < 0)
		return -1;
	cleanup_fd int netns = create_netns(&l->build, err);
	if (netns < 0)
		return -1;
	if (l->build.late_cgroup && (create_cgroup(l, err) < 0 || cgroup_v1_open_tasks(l->cgroup, fds + 2, &n_tasks, err) < 0))
		return -1;
	fds[0] = userns;
	fds[1] = netns;
	buf_init(&body, 16);
	buf_put_u32(&body, LAUNCH_PREPARED);
	int r = launch_send(sync, &body, fds, 2 + n_tasks, err);
	buf_free(&body);
	while (n_tasks > 0)
		fd_close(&fds[2 + --n_tasks]);
	return r;
}

static int receive_whole(int sock, struct launch_message *m, struct err *err)
{
	int r;
	while ((r = launch_receive(sock, m, err)) == 0)
		;
	return r < 0 ? -1 : 0;
}

/* What the clone says: a failure, or that all stands and exec comes next. */
static int read_report(int sync, struct launch_message *m, struct err *err)
{
	if (receive_whole(sync, m, err) < 0) {
		if (err && err->code == ERR_CLOSED)
			return err_set(err, ERR_CLOSED,
				"the box's first process ended while the box was being built (killed by a limit?)");
		return -1;
	}
	struct cursor c = cursor_make(m->body.data, m->body.len);
	if (cursor_u32(&c) == LAUNCH_ANSWER_BUILT)
		return 0;
	launch_failed_decode(&c, err);
	return -1;
}

/* The socket closes with a successful exec; a second message tells why there was none. */
static int wait_for_exec(int sync, struct err *err)
{
	struct launch_message m;
	struct err closed = ERR_INIT;
	launch_message_init(&m);
	int r = receive_whole(sync, &m, &closed);
	if (r == 0) {
		struct cursor c = cursor_make(m.body.data, m.body.len);
		cursor_u32(&c);
		launch_failed_decode(&c, err);
		r = -1;
	} else if (closed.code == ERR_CLOSED) {
		r = 0;
	} else if (err) {
		*err = closed;
	}
	launch_message_done(&m);
	return r;
}

static int answer_built(struct launch *l, struct launch_message *report, struct err *err)
{
	int fds[LAUNCH_FDS_MAX + 1];
	struct buf body;
	fds[0] = l->pidfd;
	memcpy(fds + 1, report->fds, report->n_fds * sizeof(int));
	buf_init(&body, 64);
	buf_put_u32(&body, LAUNCH_ANSWER_BUILT);
	buf_put_u32(&body, (uint32_t)l->pid);
	buf_put_u32(&body, (uint32_t)(report->n_fds - 2));
	int r = launch_send(LAUNCH_FD, &body, fds, report->n_fds + 1, err);
	buf_free(&body);
	return r;
}

static int build_box(struct launch *l, struct launch_message *request, struct err *err)
{
	cleanup_fd int sync = -1;
	struct launch_message report;
	if (read_request(l, request, err) < 0 || prepare_cgroup(l, err) < 0)
		return -1;
	if ((l->build.spec.privileged ? create_maps(&l->build, err) : userns_enter_single(SPEC_INSIDE_ID, err)) < 0 ||
		clone_box(l, &sync, err) < 0)
		return -1;
	launch_message_init(&report);
	struct err beside = ERR_INIT;
	int prepared = prepare_beside(l, sync, &beside);
	if (prepared < 0)
		shutdown(sync, SHUT_WR); /* the clone gives up when it comes to need what isn't there; unless it has failed by
					    itself before */
	int r = read_report(sync, &report, err);
	if (prepared < 0 && beside.code != ERR_CLOSED && beside.sys != EPIPE && beside.sys != ECONNRESET) {
		launch_message_done(&report);
		if (err)
			*err = beside;
		return -1;
	}
	if (r == 0 && report.n_fds < 2)
		r = err_set(err, ERR_PROTOCOL, "the box's report lacks descriptors");
	if (r == 0)
		r = wait_for_exec(sync, err);
	if (r == 0)
		r = answer_built(l, &report, err);
	launch_message_done(&report);
	return r;
}

/* Nothing of a box that didn't come to be stays: the clone is killed, the supervisor reaps it and removes the cgroup. */
static void answer_failed(struct launch *l, const struct err *failure)
{
	struct buf body;
	if (l->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, l->pidfd, SIGKILL, NULL, 0);
	buf_init(&body, LAUNCH_MESSAGE_MAX);
	if (launch_failed_encode(&body, failure) == 0)
		launch_send(LAUNCH_FD, &body, &l->pidfd, l->pidfd >= 0 ? 1 : 0, NULL);
	buf_free(&body);
}

int build_serve(void)
{
	static struct launch launch;
	struct launch_message request;
	struct err err = ERR_INIT;
	init(&launch);
	launch_message_init(&request);
	int r = receive_whole(LAUNCH_FD, &request, &err);
	if (r == 0)
		r = build_box(&launch, &request, &err);
	if (r < 0)
		answer_failed(&launch, &err);
	launch_message_done(&request);
	userns_collect();
	return r < 0 ? 1 : 0;
}
