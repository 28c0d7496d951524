/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting the helper programs. The auditor outlives us (no PDEATHSIG): after our death it notes the loss and closes the record. The gate's
 * halves must not: they die with us. None gets a terminal signal (own session), nor any descriptor but the named ones.
 */
#include "sandbox/internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "event/child.h"
#include "gate/protocol.h"
#include "gate/upstream-protocol.h"

/* Output travels in messages of AUDIT_BLOB_MAX: a few must fit, or each costs a context switch. */
#define PART_SOCKET_BUFFER (1024 * 1024)

int parts_pair(int type, int ret[2], struct err *err)
{
	int size = PART_SOCKET_BUFFER;
	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ret) < 0)
		return err_sys(err, errno, "cannot make a socket pair");
	for (int i = 0; i < 2; i++)
		if (setsockopt(ret[i], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
			setsockopt(ret[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	return 0;
}

/* A part that ends before its time takes the sandbox with it. */
static void on_part_ended(void *ctx, int fd, int ready)
{
	struct part *p = ctx;
	struct err err;
	p->io = loop_io_remove(p->io);
	p->ended = true;
	if (child_wait(p->pidfd, &p->status) < 0)
		p->status = 0;
	fd_close(&p->pidfd);
	if (WIFSIGNALED(p->status))
		err_set(&err, ERR_CLOSED, "%s was killed by signal %d, so the sandbox was ended", p->name, WTERMSIG(p->status));
	else
		err_set(&err, ERR_CLOSED, "%s ended unexpectedly with status %d, so the sandbox was ended", p->name, WEXITSTATUS(p->status));
	sandbox_fail(p->sandbox, &err);
}

static int part_start(struct sandbox *s, struct part *p, const char *name, const struct child_fd *fds, size_t n, int death_signal, struct err *err)
{
	static char *const env[] = { NULL };
	cleanup_free char *path = child_find_program(name, err);
	if (!path)
		return -1;
	char *argv[] = { path, NULL };
	struct child_spec spec = {
		.path = path, .argv = argv, .envp = env, .fds = fds, .n_fds = n, .death_signal = death_signal, .new_session = true,
	};
	p->name = name;
	p->sandbox = s;
	if (child_start(&spec, &p->pid, &p->pidfd, err) < 0)
		return -1;
	p->io = loop_io_add(s->loop, p->pidfd, LOOP_READ, on_part_ended, p);
	return 0;
}

static void close_sockets(struct part_sockets *p)
{
	fd_close(&p->audit);
	fd_close(&p->gate);
	fd_close(&p->upstream);
}

/* One socket for each source: our end and the auditor's. */
static int audit_pairs(const struct sandbox *s, struct part_sockets *ours, struct part_sockets *theirs, struct err *err)
{
	int *const ends[][2] = { { &ours->audit, &theirs->audit }, { &ours->gate, &theirs->gate }, { &ours->upstream, &theirs->upstream } };
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		int pair[2];
		if (ends[i][0] == &ours->upstream && !s->inspects)
			continue;
		if (parts_pair(SOCK_SEQPACKET, pair, err) < 0)
			return -1;
		*ends[i][0] = pair[0];
		*ends[i][1] = pair[1];
	}
	return 0;
}

int parts_start_auditor(struct sandbox *s, struct part_sockets *ret, struct err *err)
{
	struct part_sockets ours = { -1, -1, -1 }, theirs = { -1, -1, -1 };
	int r = audit_pairs(s, &ours, &theirs, err);
	if (r == 0) {
		struct child_fd fds[] = {
			{ theirs.audit, AUDIT_SUPERVISOR_FD }, { theirs.gate, AUDIT_GATE_FD }, { sandbox_dir_fd(s->dir), AUDIT_DIR_FD },
			{ theirs.upstream, AUDIT_UPSTREAM_FD },
		};
		r = part_start(s, &s->auditor, "bulkhead-audit", fds, s->inspects ? 4 : 3, 0, err);
	}
	close_sockets(&theirs);
	if (r < 0)
		close_sockets(&ours);
	else
		*ret = ours;
	return r;
}

/* With its control socket, its own one to the auditor, and one end of the link between the halves. */
static int start_half(struct sandbox *s, struct part *p, const char *name, const int numbers[3], int audit_fd, int link_fd, int *ret_control_fd,
	struct err *err)
{
	int control[2];
	if (parts_pair(SOCK_SEQPACKET, control, err) < 0)
		return -1;
	struct child_fd fds[] = { { control[1], numbers[0] }, { audit_fd, numbers[1] }, { link_fd, numbers[2] } };
	int r = part_start(s, p, name, fds, link_fd >= 0 ? 3 : 2, SIGKILL, err);
	fd_close(&control[1]);
	if (r < 0) {
		fd_close(&control[0]);
		return -1;
	}
	*ret_control_fd = control[0];
	return 0;
}

int parts_start_gate(struct sandbox *s, int audit_fd, int link_fd, int *ret_control_fd, struct err *err)
{
	static const int numbers[] = { GATE_CONTROL_FD, GATE_AUDIT_FD, GATE_LINK_FD };
	return start_half(s, &s->gate_part, link_fd >= 0 ? "bulkhead-inspect" : "bulkhead-gate", numbers, audit_fd, link_fd, ret_control_fd, err);
}

int parts_start_upstream(struct sandbox *s, int audit_fd, int link_fd, int *ret_control_fd, struct err *err)
{
	static const int numbers[] = { UPSTREAM_CONTROL_FD, UPSTREAM_AUDIT_FD, UPSTREAM_LINK_FD };
	return start_half(s, &s->upstream_part, "bulkhead-upstream", numbers, audit_fd, link_fd, ret_control_fd, err);
}

/* Its sockets are closed by now; it ends by itself within `wait_ns`, or is killed. */
void part_forget(struct part *p, uint64_t wait_ns)
{
	p->io = loop_io_remove(p->io);
	if (p->pidfd < 0 || p->ended)
		return;
	if (!child_wait_bounded(p->pidfd, wait_ns, &p->status)) {
		kill(p->pid, SIGKILL);
		child_wait(p->pidfd, &p->status);
	}
	p->ended = true;
	fd_close(&p->pidfd);
}
