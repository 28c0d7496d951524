/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket through which a running sandbox is changed (control-protocol.h). Its folder is the supervisor's user's alone; whoever connects is asked for again. A
 * connection that waits for its answer isn't read, so its memory lives until the answer was sent, or until control_free.
 */
#include "sandbox/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "gate/policy-file.h"
#include "sandbox/control-messages.h"

#define CONNECTIONS_MAX 16u

struct control {
	struct sandbox *sandbox;
	int fd;
	struct loop_io *io;
	struct control_asker *connections;
	unsigned n;
};

struct control_asker {
	struct control *control;
	struct control_asker *next;
	int fd;
	struct loop_io *io;
	uid_t uid;
	pid_t pid;
};

static void connection_free(struct control_asker *a)
{
	struct control *c = a->control;
	for (struct control_asker **p = &c->connections; *p; p = &(*p)->next)
		if (*p == a) {
			*p = a->next;
			c->n--;
			break;
		}
	loop_io_remove(a->io);
	fd_close(&a->fd);
	mem_free(a);
	if (c->io)
		loop_io_set(c->io, LOOP_READ);
}

/* ---- answers ---- */

/* Small, and the first that is sent for this request: it fits, or the command is gone. */
static void answer(struct control_asker *a, const struct buf *b)
{
	if (send(a->fd, b->data, b->len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		connection_free(a);
	else
		loop_io_set(a->io, LOOP_READ);
}

void control_answer_ok(struct sandbox *s, struct control_asker *a, uint64_t generation, uint64_t count)
{
	struct control_msg_ok m = { generation, count };
	struct buf b;
	if (!s->control)
		return;
	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_msg_ok_encode(&b, &m);
	answer(a, &b);
	buf_free(&b);
}

void control_answer_failed(struct sandbox *s, struct control_asker *a, const struct err *why)
{
	struct buf b;
	if (!s->control)
		return;
	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_msg_failed_encode(&b, why);
	answer(a, &b);
	buf_free(&b);
}

void control_asker_who(const struct control_asker *a, uid_t *ret_uid, pid_t *ret_pid)
{
	*ret_uid = a->uid;
	*ret_pid = a->pid;
}

/* ---- requests ---- */

static int take_policy(struct control_asker *a, const void *p, size_t n, int fd, struct err *err)
{
	struct gate_msg_policy m;
	if (control_msg_policy_decode(p, n, &m, err) < 0)
		return -1;
	if (fd < 0)
		return err_set(err, ERR_PROTOCOL, "a POLICY_SET message came without its policy");
	struct policy *policy = policy_fd_read(fd, m.policy_len, err);
	return policy ? change_policy(a->control->sandbox, a, m.generation, policy, err) : -1;
}

static int take_secret(struct control_asker *a, const void *p, size_t n, enum control_request type, struct err *err)
{
	struct control_msg_secret m;
	if (control_msg_secret_decode(p, n, type, &m, err) < 0)
		return -1;
	return (type == CONTROL_SECRET_CHANGED ? change_secret : change_revoke)(a->control->sandbox, a, m.name, err);
}

static int take_request(struct control_asker *a, const void *p, size_t n, int fd, struct err *err)
{
	uint32_t type;
	if (control_msg_type(p, n, &type) < 0)
		return err_set(err, ERR_PROTOCOL, "a message without a type");
	if (a->control->sandbox->phase != SB_READY)
		return err_set(err, ERR_CONFLICT, "sandbox %s is %s", a->control->sandbox->spec.id,
			a->control->sandbox->phase == SB_STARTING ? "still starting; try again" : "ending");
	switch (type) {
	case CONTROL_POLICY_SET:
		return take_policy(a, p, n, fd, err);
	case CONTROL_SECRET_CHANGED:
	case CONTROL_SECRET_REVOKE:
		return take_secret(a, p, n, (enum control_request)type, err);
	default:
		return err_set(err, ERR_PROTOCOL, "the supervisor of sandbox %s knows no request %u: its Bulkhead is of another version",
			a->control->sandbox->spec.id, type);
	}
}

static void on_request(void *ctx, int fd, int ready)
{
	struct control_asker *a = ctx;
	uint8_t message[CONTROL_MESSAGE_MAX];
	int fds[1] = { -1 };
	size_t n_fds = 1;
	struct err err = ERR_INIT;
	ssize_t n = fd_recv(a->fd, message, sizeof(message), fds, &n_fds);
	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n <= 0) {
		connection_free(a);
		return;
	}
	loop_io_set(a->io, 0);
	int r = take_request(a, message, (size_t)n, n_fds ? fds[0] : -1, &err);
	if (n_fds)
		fd_close(&fds[0]);
	if (r < 0)
		control_answer_failed(a->control->sandbox, a, &err);
}

/* ---- connections ---- */

static bool may_ask(int fd, struct ucred *ret)
{
	socklen_t len = sizeof(*ret);
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret, &len) == 0 && (ret->uid == geteuid() || ret->uid == 0);
}

static void on_connection(void *ctx, int listen_fd, int ready)
{
	struct control *c = ctx;
	struct ucred who;
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		/* Out of descriptors or memory: asking again at once would only burn the processor. */
		if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
			loop_io_set(c->io, 0);
		return;
	}
	if (!may_ask(fd, &who)) {
		fd_close(&fd);
		return;
	}
	struct control_asker *a = mem_alloc(sizeof(*a));
	*a = (struct control_asker){ .control = c, .next = c->connections, .fd = fd, .uid = who.uid, .pid = who.pid };
	c->connections = a;
	a->io = loop_io_add(c->sandbox->loop, fd, LOOP_READ, on_request, a);
	if (++c->n == CONNECTIONS_MAX)
		loop_io_set(c->io, 0);
}

/* By descriptor: a path has at most 108 bytes in a socket's address. */
static int listen_in(int dirfd, struct err *err)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	cleanup_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d/" CONTROL_FILE, dirfd);
	mode_t before = umask(0177);
	int r = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&sa, sizeof(sa));
	umask(before);
	if (r < 0 || listen(fd, CONNECTIONS_MAX) < 0)
		return err_sys(err, errno, "cannot make the socket through which a running sandbox is changed");
	return fd_steal(&fd);
}

struct control *control_new(struct sandbox *s, struct err *err)
{
	int fd = listen_in(sandbox_dir_fd(s->dir), err);
	if (fd < 0)
		return NULL;
	struct control *c = mem_alloc(sizeof(*c));
	c->sandbox = s;
	c->fd = fd;
	c->io = loop_io_add(s->loop, fd, LOOP_READ, on_connection, c);
	return c;
}

struct control *control_free(struct control *c)
{
	if (!c)
		return NULL;
	unlinkat(sandbox_dir_fd(c->sandbox->dir), CONTROL_FILE, 0);
	c->io = loop_io_remove(c->io);
	while (c->connections)
		connection_free(c->connections);
	fd_close(&c->fd);
	return mem_free(c);
}
