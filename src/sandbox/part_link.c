/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/part_link.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"

#define QUEUE_MESSAGES_MAX 4096u
#define MESSAGES_AT_ONCE 64

struct outgoing {
	struct outgoing *next;
	int fds[PART_MESSAGE_FDS_MAX];
	size_t n_fds, len;
	uint8_t data[];
};

struct part_link {
	struct loop_io *io; /* NULL: lost */
	int fd;
	struct part_link_ops ops;
	void *ctx;
	struct outgoing *queue, **queue_tail;
	unsigned queued;
};

static void outgoing_free(struct outgoing *o)
{
	for (size_t i = 0; i < o->n_fds; i++)
		fd_close(&o->fds[i]);
	mem_free(o);
}

static void lost(struct part_link *l, const char *how)
{
	l->io = loop_io_remove(l->io);
	l->ops.on_lost(l->ctx, how);
}

/* 1 sent, 0 would block, -1 the other side is gone. */
static int send_one(struct part_link *l, const struct outgoing *o)
{
	ssize_t n = fd_send(l->fd, o->data, o->len, o->fds, o->n_fds);
	if (n >= 0)
		return 1;
	return n == -EAGAIN || n == -ENOBUFS ? 0 : -1;
}

static void flush(struct part_link *l)
{
	while (l->queue) {
		struct outgoing *o = l->queue;
		int r = send_one(l, o);
		if (r == 0)
			break;
		if (r < 0) {
			lost(l, "took no more requests");
			return;
		}
		l->queue = o->next;
		if (!l->queue)
			l->queue_tail = &l->queue;
		l->queued--;
		outgoing_free(o);
	}
	loop_io_set(l->io, LOOP_READ | (l->queue ? LOOP_WRITE : 0));
}

int part_link_post(struct part_link *l, const struct buf *b, const int *fds, size_t n_fds, struct err *err)
{
	struct outgoing *o = mem_alloc(sizeof(*o) + b->len);
	for (; o->n_fds < n_fds; o->n_fds++)
		o->fds[o->n_fds] = fds[o->n_fds];
	if (!l->io || l->queued >= QUEUE_MESSAGES_MAX) {
		outgoing_free(o);
		return err_set(err, ERR_LIMIT, "it takes no more requests now");
	}
	o->len = b->len;
	memcpy(o->data, b->data, b->len);
	*l->queue_tail = o;
	l->queue_tail = &o->next;
	l->queued++;
	flush(l);
	return 0;
}

/* False when there is nothing more for now. */
static bool receive_one(struct part_link *l)
{
	static uint8_t message[PART_MESSAGE_MAX];
	struct err err;
	ssize_t n = recv(l->fd, message, sizeof(message), MSG_DONTWAIT | MSG_TRUNC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0 || (size_t)n > sizeof(message)) {
		lost(l, n <= 0 ? "is gone" : "sent an oversized message");
		return false;
	}
	if (l->ops.on_message(l->ctx, message, (size_t)n, &err) == 0)
		return true;
	l->ops.on_broken(l->ctx, &err);
	return false;
}

static void on_io(void *ctx, int fd, int ready)
{
	struct part_link *l = ctx;
	if (ready & LOOP_WRITE)
		flush(l);
	for (int i = 0; i < MESSAGES_AT_ONCE && l->io && receive_one(l); i++)
		;
}

struct part_link *part_link_new(struct loop *loop, int fd, const struct part_link_ops *ops, void *ctx)
{
	struct part_link *l = mem_alloc(sizeof(*l));
	l->fd = fd;
	l->ops = *ops;
	l->ctx = ctx;
	l->queue_tail = &l->queue;
	fd_set_nonblock(fd, true);
	l->io = loop_io_add(loop, fd, LOOP_READ, on_io, l);
	return l;
}

struct part_link *part_link_free(struct part_link *l)
{
	if (!l)
		return NULL;
	while (l->queue) {
		struct outgoing *o = l->queue;
		l->queue = o->next;
		outgoing_free(o);
	}
	loop_io_remove(l->io);
	fd_close(&l->fd);
	return mem_free(l);
}
