/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's side of a container: starts bulkhead-launch, hands it the plan, and takes what it built. */
#include <errno.h>
#include <stdio.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "event/child.h"
#include "isolate/cgroup.h"
#include "isolate/isolate.h"
#include "isolate/launch.h"

#define START_TIMEOUT_NS (30 * NS_PER_S) /* a file system that doesn't answer must not hold the supervisor for ever */

struct start {
	struct box box;
	struct loop_timer *timer;
	int sock;
	int launcher_pidfd;
	struct launch_message answer;
	struct loop_io *io;
	void (*on_ready)(void *ctx, struct box *box, const struct err *err);
	void *ctx;
	size_t n_copies;
};

static void start_free(struct start *s)
{
	s->io = loop_io_remove(s->io);
	s->timer = loop_timer_free(s->timer);
	launch_message_done(&s->answer);
	fd_close(&s->sock);
	fd_close(&s->launcher_pidfd);
	mem_free(s);
}

/* The launcher ends by itself after its answer; one that doesn't answer any more is ended here. Either way it is reaped. */
static void end_launcher(struct start *s)
{
	int status = 0;
	fd_close(&s->sock);
	if (s->launcher_pidfd >= 0)
		child_wait(s->launcher_pidfd, &status);
	fd_close(&s->launcher_pidfd);
}

static int take_box(struct start *s, struct cursor *c, struct err *err)
{
	struct box *box = &s->box;
	uint32_t pid = cursor_u32(c), n_lower = cursor_u32(c);
	if (!cursor_done(c) || n_lower != s->n_copies || s->answer.n_fds != 3 + n_lower)
		return err_set(err, ERR_PROTOCOL, "the launcher's answer doesn't fit the request");
	box->pid = (pid_t)pid;
	box->pidfd = fd_steal(&s->answer.fds[0]);
	box->notify_fd = fd_steal(&s->answer.fds[1]);
	box->upper_fd = fd_steal(&s->answer.fds[2]);
	for (size_t i = 0; i < n_lower; i++)
		box->lower_fd[i] = fd_steal(&s->answer.fds[3 + i]);
	box->n_lower = n_lower;
	return 0;
}

static int read_answer(struct start *s, struct err *err)
{
	struct cursor c = cursor_make(s->answer.body.data, s->answer.body.len);
	if (cursor_u32(&c) == LAUNCH_ANSWER_BUILT)
		return take_box(s, &c, err);
	launch_failed_decode(&c, err);
	/* The clone that failed is our child: killed already, but ours to reap. */
	int status;
	if (s->answer.n_fds > 0)
		child_wait(s->answer.fds[0], &status);
	return -1;
}

/* What a failed start left: only the cgroup can outlive the launcher and its clone. */
static void clean_up(struct start *s)
{
	struct err ignored = ERR_INIT;
	if (s->box.cgroup) {
		cgroup_kill(s->box.cgroup, NS_PER_S, &ignored);
		cgroup_remove(s->box.cgroup, &ignored);
	}
	s->box.cgroup = cgroup_free(s->box.cgroup);
}

static void finish(struct start *s, const struct err *failure)
{
	void (*on_ready)(void *, struct box *, const struct err *) = s->on_ready;
	void *ctx = s->ctx;
	struct box box = s->box;
	struct err err = failure ? *failure : ERR_INIT;
	s->box = BOX_INIT;
	start_free(s);
	on_ready(ctx, failure ? NULL : &box, failure ? &err : NULL);
}

static void on_answer(void *ctx, int fd, int ready)
{
	struct start *s = ctx;
	struct err err = ERR_INIT;
	int r = launch_receive(fd, &s->answer, &err);
	if (r == 0)
		return;
	s->io = loop_io_remove(s->io);
	if (r > 0)
		r = read_answer(s, &err);
	else if (err.code == ERR_CLOSED)
		err_set(&err, ERR_CLOSED,
			"bulkhead-launch ended without an answer (killed by a limit, from outside, or because it took more "
			"than 30 s)");
	end_launcher(s);
	s->box.cgroup = cgroup_open(s->box.id, NULL);
	if (r < 0)
		clean_up(s);
	finish(s, r < 0 ? &err : NULL);
}

/* Its end is seen on the socket. */
static void on_timeout(void *ctx)
{
	struct start *s = ctx;
	syscall(SYS_pidfd_send_signal, s->launcher_pidfd, SIGKILL, NULL, 0);
}

static int spawn_launcher(struct start *s, int launcher_end, struct err *err)
{
	cleanup_free char *path = child_find_program("bulkhead-launch", err);
	char *argv[] = { path, NULL };
	const struct child_fd fds[] = { { launcher_end, LAUNCH_FD } };
	const struct child_spec spec = { .path = path,
		.argv = argv,
		.envp = environ,
		.fds = fds,
		.n_fds = ARRAY_LEN(fds),
		.death_signal = SIGKILL,
		.new_session = true };
	pid_t pid;
	return path ? child_start(&spec, &pid, &s->launcher_pidfd, err) : -1;
}

static int send_request(struct start *s, const struct spec *spec, int box_end, const int *source_fds, struct err *err)
{
	int fds[LAUNCH_FDS_MAX];
	struct buf body;
	buf_init(&body, LAUNCH_MESSAGE_MAX);
	fds[0] = box_end;
	memcpy(fds + 1, source_fds, (spec->n_mounts + spec->n_files) * sizeof(int));
	int r = buf_put_u32(&body, LAUNCH_REQUEST_BUILD) < 0 || spec_encode(&body, spec) < 0
			? err_set(err, ERR_LIMIT, "the plan of the box is too long")
			: launch_send(s->sock, &body, fds, spec->n_mounts + spec->n_files + 1, err);
	buf_free(&body);
	return r;
}

/* One message carries the whole plan, so the socket must be able to hold it. */
static int make_socket(int launch[2], struct err *err)
{
	int size = LAUNCH_MESSAGE_MAX;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, launch) < 0)
		return err_sys(err, errno, "can't create the sockets of a box");
	if (setsockopt(launch[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) < 0)
		return err_sys(err, errno, "can't size the launcher's socket");
	return 0;
}

static int launch(struct start *s, const struct spec *spec, const int *source_fds, int box_end, struct err *err)
{
	int pair[2] = { -1, -1 };
	int r = make_socket(pair, err);
	cleanup_fd int launcher_end = pair[1];
	s->sock = pair[0];
	if (r < 0 || spawn_launcher(s, launcher_end, err) < 0)
		return -1;
	if (send_request(s, spec, box_end, source_fds, err) < 0)
		return -1;
	r = fd_set_nonblock(s->sock, true);
	return r < 0 ? err_sys(err, -r, "can't set up the launcher's socket") : 0;
}

static int container_start(struct loop *loop, const struct spec *spec, const int *source_fds, int box_end,
	void (*on_ready)(void *ctx, struct box *box, const struct err *err), void *ctx, struct err *err)
{
	struct start *s = mem_alloc(sizeof(*s));
	*s = (struct start){ .box = BOX_INIT, .sock = -1, .launcher_pidfd = -1, .on_ready = on_ready, .ctx = ctx };
	snprintf(s->box.id, sizeof(s->box.id), "%s", spec->id);
	for (size_t i = 0; i < SPEC_MOUNTS_MAX; i++)
		s->box.lower_fd[i] = -1;
	for (size_t i = 0; i < spec->n_mounts; i++)
		s->n_copies += spec->mounts[i].mode == MOUNT_COPY;
	launch_message_init(&s->answer);
	if (spec_validate(spec, err) < 0 || launch(s, spec, source_fds, box_end, err) < 0) {
		end_launcher(s);
		clean_up(s);
		start_free(s);
		return -1;
	}
	s->io = loop_io_add(loop, s->sock, LOOP_READ, on_answer, s);
	s->timer = loop_timer_new(loop, on_timeout, s);
	loop_timer_set(s->timer, START_TIMEOUT_NS, 0);
	cgroup_support_get(); /* reads the mount table now, while the launcher works */
	return 0;
}

static int container_check(const struct spec *spec, struct err *err)
{
	return cgroup_check_limits(&spec->limits, err);
}

const struct isolate_backend isolate_container = {
	.name = "container",
	.level = ISOLATION_CONTAINER,
	.check = container_check,
	.start = container_start,
};
