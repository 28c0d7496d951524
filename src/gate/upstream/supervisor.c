/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's socket. A malformed message ends the process, and with it every flow; so does the supervisor's end. */
#include "gate/upstream/internal.h"

#include <errno.h>
#include <stdio.h>

#include "base/fd.h"
#include "base/mem.h"

#define QUEUE_MAX (4u * 1024u * 1024u) /* a supervisor that doesn't read is broken */
#define MESSAGES_AT_ONCE 16u

struct outgoing {
	struct outgoing *next;
	struct buf message;
};

struct supervisor {
	struct upstream *u;
	int fd;
	struct loop_io *io;
	struct outgoing *first, **end;
	size_t waiting;
};

/* ---- sending ---- */

static void hang_up(struct supervisor *s)
{
	s->io = loop_io_remove(s->io);
	loop_quit(s->u->loop, s->u->failure.code == ERR_NONE ? 0 : 1);
}

static void flush(struct supervisor *s)
{
	while (s->first) {
		struct outgoing *o = s->first;
		ssize_t n = fd_send(s->fd, o->message.data, o->message.len, NULL, 0);
		if (n == -EAGAIN)
			break;
		if (n < 0) {
			hang_up(s);
			return;
		}
		s->first = o->next;
		if (!s->first)
			s->end = &s->first;
		s->waiting -= o->message.len;
		buf_free(&o->message);
		mem_free(o);
	}
	if (s->io)
		loop_io_set(s->io, LOOP_READ | (s->first ? LOOP_WRITE : 0));
}

/* From a callback of anything: the sending itself waits for the loop. */
static struct buf *message_new(struct supervisor *s)
{
	struct outgoing *o = mem_alloc(sizeof(*o));
	buf_init(&o->message, UPSTREAM_MESSAGE_MAX);
	*s->end = o;
	s->end = &o->next;
	return &o->message;
}

static void message_done(struct supervisor *s, const struct buf *message)
{
	s->waiting += message->len;
	if (s->waiting > QUEUE_MAX) {
		struct err err;
		err_set(&err, ERR_LIMIT, "the supervisor doesn't read the upstream half's messages");
		upstream_fail(s->u, &err);
	}
	if (s->io)
		loop_io_set(s->io, LOOP_READ | LOOP_WRITE);
}

void supervisor_help(void *ctx, uint64_t call, const char *name)
{
	struct upstream *u = ctx;
	struct upstream_msg_help m = { .call = call };
	_Static_assert(sizeof(m.name) == SECRET_NAME_MAX + 1, "any secret's name fits");
	memcpy(m.name, name, strnlen(name, SECRET_NAME_MAX));
	struct buf *b = message_new(u->supervisor);
	upstream_msg_help_encode(b, &m);
	message_done(u->supervisor, b);
}

static void say_loaded(struct supervisor *s, const struct upstream_msg_secret *m, const struct err *err)
{
	struct upstream_msg_loaded answer = { .ok = !err };
	memcpy(answer.name, m->name, sizeof(answer.name));
	if (err)
		snprintf(answer.sentence, sizeof(answer.sentence), "%s", err->text);
	struct buf *b = message_new(s);
	upstream_msg_loaded_encode(b, &answer);
	message_done(s, b);
}

/* ---- receiving ---- */

static int take_config(struct supervisor *s, const void *p, size_t n, int *fds, struct err *err)
{
	struct gate_msg_config m;
	if (upstream_msg_config_decode(p, n, &m, err) < 0 || upstream_configure(s->u, &m, fds[0], err) < 0)
		return -1;
	struct buf *b = message_new(s);
	upstream_msg_ready_encode(b);
	message_done(s, b);
	return 0;
}

static int take_policy(struct supervisor *s, const void *p, size_t n, int *fds, struct err *err)
{
	struct gate_msg_policy m;
	struct gate_msg_policy_set done = { 0 };
	if (upstream_msg_policy_decode(p, n, &m, err) < 0 || upstream_set_policy(s->u, &m, fds[0], &done.cut, err) < 0)
		return -1;
	done.generation = m.generation;
	struct buf *b = message_new(s);
	upstream_msg_policy_set_encode(b, &done);
	message_done(s, b);
	return 0;
}

static int take_secret(struct supervisor *s, const void *p, size_t n, int *fds, struct err *err)
{
	struct upstream_msg_secret m;
	struct err why = ERR_INIT;
	if (upstream_msg_secret_decode(p, n, &m, err) < 0)
		return -1;
	if (fds[0] < 0)
		return err_set(err, ERR_PROTOCOL, "a SECRET message came without its file");
	say_loaded(s, &m, vault_load(s->u->vault, m.name, fds[0], fds[1], &why) < 0 ? &why : NULL);
	return 0;
}

static int take_revoke(struct supervisor *s, const void *p, size_t n, struct err *err)
{
	struct upstream_msg_revoke m;
	if (upstream_msg_revoke_decode(p, n, &m, err) < 0)
		return -1;
	upstream_revoke(s->u, m.name);
	return 0;
}

static int take_helped(struct supervisor *s, const void *p, size_t n, int *fds, struct err *err)
{
	struct upstream_msg_helped m;
	if (upstream_msg_helped_decode(p, n, &m, err) < 0)
		return -1;
	if (m.started && fds[0] < 0)
		return err_set(err, ERR_PROTOCOL, "a HELPED message came without its pipe");
	vault_helped(s->u->vault, m.call, m.started ? fd_steal(&fds[0]) : -1);
	return 0;
}

static int take_message(struct supervisor *s, const void *p, size_t n, int *fds, struct err *err)
{
	uint32_t type;
	if (upstream_msg_type(p, n, &type) < 0)
		return err_set(err, ERR_PROTOCOL, "the supervisor sent a message without a type");
	if ((type == UPSTREAM_CONFIG) != (s->u->policy == NULL))
		return err_set(err, ERR_PROTOCOL, "CONFIG must be the supervisor's first message, and come once");
	switch (type) {
	case UPSTREAM_CONFIG:
		return take_config(s, p, n, fds, err);
	case UPSTREAM_POLICY:
		return take_policy(s, p, n, fds, err);
	case UPSTREAM_SECRET:
		return take_secret(s, p, n, fds, err);
	case UPSTREAM_REVOKE:
		return take_revoke(s, p, n, err);
	case UPSTREAM_HELPED:
		return take_helped(s, p, n, fds, err);
	default:
		return err_set(err, ERR_PROTOCOL, "the supervisor sent a message of unknown type %u", type);
	}
}

/* One datagram. False when there is no more for now, or never will be. */
static bool receive_one(struct supervisor *s)
{
	static uint8_t message[UPSTREAM_MESSAGE_MAX];
	int fds[3] = { -1, -1, -1 };
	size_t n_fds = ARRAY_LEN(fds);
	ssize_t n = fd_recv(s->fd, message, sizeof(message), fds, &n_fds);
	if (n == -EAGAIN)
		return false;
	struct err err = ERR_INIT;
	int r = -1;
	if (n == 0 || n == -ECONNRESET) {
		hang_up(s); /* the supervisor is gone: so is every flow, at once */
		return false;
	}
	if (n < 0)
		err_sys(&err, (int)-n, "cannot read from the supervisor");
	else
		r = take_message(s, message, (size_t)n, fds, &err);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fd_close(&fds[i]);
	if (r < 0)
		upstream_fail(s->u, &err);
	return r == 0 && s->u->failure.code == ERR_NONE;
}

static void on_ready(void *ctx, int fd, int ready)
{
	struct supervisor *s = ctx;
	if (ready & LOOP_WRITE)
		flush(s);
	for (unsigned i = 0; s->io && (ready & LOOP_READ) && i < MESSAGES_AT_ONCE; i++)
		if (!receive_one(s))
			break;
}

/* ---- life ---- */

struct supervisor *supervisor_new(struct upstream *u, int fd)
{
	struct supervisor *s = mem_alloc(sizeof(*s));
	*s = (struct supervisor){ .u = u, .fd = fd };
	s->end = &s->first;
	fd_set_nonblock(fd, true);
	s->io = loop_io_add(u->loop, fd, LOOP_READ, on_ready, s);
	return s;
}

struct supervisor *supervisor_free(struct supervisor *s)
{
	if (!s)
		return NULL;
	loop_io_remove(s->io);
	fd_close(&s->fd);
	while (s->first) {
		struct outgoing *o = s->first;
		s->first = o->next;
		buf_free(&o->message);
		mem_free(o);
	}
	return mem_free(s);
}
