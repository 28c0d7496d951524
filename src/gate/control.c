/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's socket. The supervisor is trusted more than the box, but some of its bytes come from there (names), so every
 * message is decoded strictly; a malformed one ends the gate, and with it all egress.
 */
#include "gate/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"

#define QUEUE_PAUSE (256u * 1024u)         /* a supervisor that doesn't read is no longer listened to */
#define QUEUE_MAX (16u * 1024u * 1024u)    /* beyond: it is broken */
#define RECORDS_PAUSE 4096u
#define ANSWER_MAX 4096u
#define MESSAGES_AT_ONCE 64u

struct outgoing {
	struct outgoing *next;
	size_t len;
	uint8_t data[];
};

static void on_control(void *ctx, int fd, int ready);

/* New work waits while the supervisor or the auditor can't keep up with what the old work made us say. */
static bool may_listen(const struct gate *g)
{
	return g->out_bytes < QUEUE_PAUSE && (recorder_lost(g->recorder) || recorder_pending(g->recorder) < RECORDS_PAUSE);
}

static void update_interest(struct gate *g)
{
	int events = (may_listen(g) ? LOOP_READ : 0) | (g->out_first ? LOOP_WRITE : 0);
	if (g->control_io)
		loop_io_set(g->control_io, events);
}

static void close_control(struct gate *g)
{
	g->control_io = loop_io_remove(g->control_io);
	loop_quit(g->loop, g->failure.code == ERR_NONE ? 0 : 1);
}

/* ---- sending ---- */

static void flush_queue(struct gate *g)
{
	while (g->out_first) {
		struct outgoing *o = g->out_first;
		ssize_t n = fd_send(g->control_fd, o->data, o->len, NULL, 0);
		if (n == -EAGAIN)
			break;
		if (n < 0) {
			close_control(g);
			return;
		}
		g->out_first = o->next;
		if (!g->out_first)
			g->out_end = &g->out_first;
		g->out_bytes -= o->len;
		mem_free(o);
	}
	update_interest(g);
}

static void enqueue(struct gate *g, struct buf *b)
{
	if (g->out_bytes + b->len > QUEUE_MAX) {
		struct err err;
		err_set(&err, ERR_LIMIT, "the supervisor doesn't read the gate's messages");
		gate_fail(g, &err);
	} else {
		struct outgoing *o = mem_alloc(sizeof(*o) + b->len);
		o->len = b->len;
		memcpy(o->data, b->data, b->len);
		*g->out_end = o;
		g->out_end = &o->next;
		g->out_bytes += o->len;
	}
	buf_free(b);
	update_interest(g);
}

void control_answer_name(struct gate *g, const struct gate_msg_answer *m)
{
	struct buf b;
	buf_init(&b, ANSWER_MAX);
	gate_msg_answer_encode(&b, m);
	enqueue(g, &b);
}

void control_denied(struct gate *g, const struct gate_target *t, enum reason reason)
{
	struct gate_msg_denied m = { .port = t->port, .reason = reason };
	_Static_assert(sizeof(m.host) == sizeof(t->text), "both hold a host as text");
	memcpy(m.host, t->text, sizeof(m.host));
	struct buf b;
	buf_init(&b, ANSWER_MAX);
	gate_msg_denied_encode(&b, &m);
	enqueue(g, &b);
}

void control_limit(struct gate *g, enum reason reason)
{
	if (g->limit_told[reason])
		return;
	g->limit_told[reason] = true;
	struct gate_msg_limit m = { .reason = reason, .value = budget_limit(&g->budget, reason) };
	struct buf b;
	buf_init(&b, ANSWER_MAX);
	gate_msg_limit_encode(&b, &m);
	enqueue(g, &b);
}

void control_ready(struct gate *g)
{
	static struct gate_msg_ready m;
	if (g->interceptor)
		snprintf(m.ca_pem, sizeof(m.ca_pem), "%s", g->interceptor_ops->ca_pem(g->interceptor));
	struct buf b;
	buf_init(&b, ANSWER_MAX + GATE_CA_PEM_MAX);
	gate_msg_ready_encode(&b, &m);
	enqueue(g, &b);
}

void control_policy_set(struct gate *g, const struct gate_msg_policy_set *m)
{
	struct buf b;
	buf_init(&b, ANSWER_MAX);
	gate_msg_policy_set_encode(&b, m);
	enqueue(g, &b);
}

void control_canary(struct gate *g, const char *secret, const struct gate_target *t)
{
	struct gate_msg_canary m = { .port = t->port };
	snprintf(m.name, sizeof(m.name), "%s", secret);
	snprintf(m.host, sizeof(m.host), "%s", t->text);
	struct buf b;
	buf_init(&b, ANSWER_MAX);
	gate_msg_canary_encode(&b, &m);
	enqueue(g, &b);
}

void control_done(struct gate *g)
{
	struct buf b;
	buf_init(&b, ANSWER_MAX);
	gate_msg_done_encode(&b, &g->totals);
	enqueue(g, &b);
}

/* ---- receiving ---- */

static int take_config(struct gate *g, const void *p, size_t n, int fd, struct err *err)
{
	static struct gate_msg_config m;
	if (gate_msg_config_decode(p, n, &m, err) < 0)
		return -1;
	if (fd < 0)
		return err_set(err, ERR_PROTOCOL, "a CONFIG message came without its policy");
	return gate_configure(g, &m, fd, err);
}

static int take_policy(struct gate *g, const void *p, size_t n, int fd, struct err *err)
{
	struct gate_msg_policy m;
	if (gate_msg_policy_decode(p, n, &m, err) < 0)
		return -1;
	if (fd < 0)
		return err_set(err, ERR_PROTOCOL, "a POLICY message came without its policy");
	return gate_set_policy(g, &m, fd, err);
}

static int take_name(struct gate *g, const void *p, size_t n, struct err *err)
{
	struct gate_msg_name m;
	if (gate_msg_name_decode(p, n, &m, err) < 0)
		return -1;
	gate_asked_name(g, &m);
	return 0;
}

static int take_open(struct gate *g, const void *p, size_t n, int *fd, struct err *err)
{
	struct gate_msg_open m;
	if (gate_msg_open_decode(p, n, &m, err) < 0)
		return -1;
	if (*fd < 0)
		return err_set(err, ERR_PROTOCOL, "an OPEN message came without its socket");
	flow_open(g, &m, fd_steal(fd));
	return 0;
}

static int take_message(struct gate *g, const void *p, size_t n, int *fd, struct err *err)
{
	uint32_t type;
	if (gate_msg_type(p, n, &type) < 0)
		return err_set(err, ERR_PROTOCOL, "the supervisor sent a message without a type");
	if ((type == GATE_CONFIG) != (g->policy == NULL))
		return err_set(err, ERR_PROTOCOL, "CONFIG must be the supervisor's first message, and come once");
	switch (type) {
	case GATE_CONFIG:
		return take_config(g, p, n, *fd, err);
	case GATE_NAME:
		return take_name(g, p, n, err);
	case GATE_OPEN:
		return take_open(g, p, n, fd, err);
	case GATE_POLICY:
		return take_policy(g, p, n, *fd, err);
	case GATE_FINISH:
		if (gate_msg_finish_decode(p, n, err) < 0)
			return -1;
		gate_finish(g);
		return 0;
	default:
		return err_set(err, ERR_PROTOCOL, "the supervisor sent a message of unknown type %u", type);
	}
}

/* One datagram. False when there is no more for now, or never will be. */
static bool receive_one(struct gate *g)
{
	static uint8_t message[GATE_MESSAGE_MAX];
	int fds[2] = { -1, -1 };
	size_t n_fds = 1;
	ssize_t n = fd_recv(g->control_fd, message, sizeof(message), fds, &n_fds);
	if (n == -EAGAIN)
		return false;
	struct err err = ERR_INIT;
	if (n == 0 || n == -ECONNRESET) {
		close_control(g); /* the supervisor is gone: so is every flow, at once */
		return false;
	}
	if (n < 0)
		err_sys(&err, (int)-n, "cannot read from the supervisor");
	else if (take_message(g, message, (size_t)n, &fds[0], &err) == 0)
		return fd_close(&fds[0]), g->failure.code == ERR_NONE;
	fd_close(&fds[0]);
	gate_fail(g, &err);
	return false;
}

static void on_control(void *ctx, int fd, int ready)
{
	struct gate *g = ctx;
	if (ready & LOOP_WRITE)
		flush_queue(g);
	for (unsigned i = 0; g->control_io && (ready & LOOP_READ) && may_listen(g) && i < MESSAGES_AT_ONCE; i++)
		if (!receive_one(g))
			break;
	control_resume(g);
}

void control_resume(struct gate *g)
{
	if (g->control_io)
		flush_queue(g);
}

void control_start(struct gate *g)
{
	g->out_end = &g->out_first;
	g->control_io = loop_io_add(g->loop, g->control_fd, LOOP_READ, on_control, g);
}

void control_stop(struct gate *g)
{
	g->control_io = loop_io_remove(g->control_io);
	for (struct outgoing *o = g->out_first, *next; o; o = next) {
		next = o->next;
		mem_free(o);
	}
	g->out_first = NULL;
	g->out_end = &g->out_first;
	g->out_bytes = 0;
	fd_close(&g->control_fd);
}
