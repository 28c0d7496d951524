/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting the helper programs. The auditor outlives us (no PDEATHSIG): after our death it notes the loss and closes the record. The gate
 * must not: it dies with us. Neither gets a terminal signal (own session), nor any descriptor but the named ones.
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

/* Output travels in messages of AUDIT_BLOB_MAX: a few must fit, or each costs a context switch. */
#define PART_SOCKET_BUFFER (1024 * 1024)

static int pair_new(int type, int ret[2], struct err *err)
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

int parts_start_auditor(struct sandbox *s, int *ret_supervisor_fd, int *ret_gate_fd, struct err *err)
{
	int own[2], gate[2];
	if (pair_new(SOCK_SEQPACKET, own, err) < 0)
		return -1;
	if (pair_new(SOCK_SEQPACKET, gate, err) < 0) {
		fd_close(&own[0]);
		fd_close(&own[1]);
		return -1;
	}
	struct child_fd fds[] = {
		{ own[1], AUDIT_SUPERVISOR_FD }, { gate[1], AUDIT_GATE_FD }, { sandbox_dir_fd(s->dir), AUDIT_DIR_FD },
	};
	int r = part_start(s, &s->auditor, "bulkhead-audit", fds, ARRAY_LEN(fds), 0, err);
	fd_close(&own[1]);
	fd_close(&gate[1]);
	if (r < 0) {
		fd_close(&own[0]);
		fd_close(&gate[0]);
		return -1;
	}
	*ret_supervisor_fd = own[0];
	*ret_gate_fd = gate[0];
	return 0;
}

int parts_start_gate(struct sandbox *s, int audit_fd, int *ret_control_fd, struct err *err)
{
	int control[2];
	if (pair_new(SOCK_SEQPACKET, control, err) < 0)
		return -1;
	struct child_fd fds[] = { { control[1], GATE_CONTROL_FD }, { audit_fd, GATE_AUDIT_FD } };
	int r = part_start(s, &s->gate_part, "bulkhead-gate", fds, ARRAY_LEN(fds), SIGKILL, err);
	fd_close(&control[1]);
	if (r < 0) {
		fd_close(&control[0]);
		return -1;
	}
	*ret_control_fd = control[0];
	return 0;
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
