/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's end of gate/protocol.h. Each flow of the box becomes one socket pair: the gate gets one end with OPEN, a pump joins the other
 * with the stream on the pipe. What the agent says about a flow is passed on as a claim; the gate decides.
 *
 * Before the box is handed over, the gate must refuse a name that nothing can allow: a gate that answers yes to everything is found here.
 */
#include "sandbox/internal.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"
#include "gate/messages.h"
#include "gate/policy-file.h"
#include "gate/protocol.h"

#define PROBE_NAME "probe.bulkhead.invalid" /* RFC 6761: .invalid never resolves */
#define PROBE_QUERY UINT32_MAX
#define QUEUE_MESSAGES_MAX 4096u

struct flow {
	struct gate_link *link;
	struct flow *next;
	struct pump *pump;
};

struct outgoing {
	struct outgoing *next;
	int fd;
	size_t len;
	uint8_t data[];
};

struct gate_link {
	struct sandbox *sandbox;
	int fd;
	struct loop_io *io;
	struct flow *flows;
	uint64_t next_flow;
	struct outgoing *queue, **queue_tail;
	unsigned queued;
	bool cut;
};

/* ---- sending ---- */

static void set_interest(struct gate_link *g)
{
	loop_io_set(g->io, LOOP_READ | (g->queue ? LOOP_WRITE : 0));
}

static void lost(struct gate_link *g, const char *how)
{
	struct sandbox *s = g->sandbox;
	struct err err;
	g->io = loop_io_remove(g->io);
	if (s->phase == SB_ENDING) {
		s->ending.gate_done = true;
		teardown_step(s);
		return;
	}
	err_set(&err, ERR_CLOSED, "the gate of sandbox %s %s, so the sandbox was ended", s->spec.id, how);
	sandbox_fail(s, &err);
}

/* 1 sent, 0 would block, -1 the gate is gone. */
static int send_one(struct gate_link *g, const void *data, size_t len, int fd)
{
	ssize_t n = fd_send(g->fd, data, len, &fd, fd >= 0 ? 1 : 0);
	if (n >= 0)
		return 1;
	return n == -EAGAIN || n == -ENOBUFS ? 0 : -1;
}

static void flush(struct gate_link *g)
{
	while (g->queue) {
		struct outgoing *o = g->queue;
		int r = send_one(g, o->data, o->len, o->fd);
		if (r == 0)
			break;
		if (r < 0) {
			lost(g, "took no more requests");
			return;
		}
		g->queue = o->next;
		if (!g->queue)
			g->queue_tail = &g->queue;
		g->queued--;
		fd_close(&o->fd);
		mem_free(o);
	}
	set_interest(g);
}

/* Takes fd. Sends at once when it can, else queues, bounded. */
static int post(struct gate_link *g, const struct buf *b, int fd, struct err *err)
{
	if (!g->io || g->queued >= QUEUE_MESSAGES_MAX) {
		fd_close(&fd);
		return err_set(err, ERR_LIMIT, "the gate takes no more requests now");
	}
	struct outgoing *o = mem_alloc(sizeof(*o) + b->len);
	o->fd = fd;
	o->len = b->len;
	memcpy(o->data, b->data, b->len);
	*g->queue_tail = o;
	g->queue_tail = &o->next;
	g->queued++;
	flush(g);
	return 0;
}

/* ---- receiving ---- */

static int forward_answer(struct sandbox *s, const struct gate_msg_answer *a, struct err *err)
{
	struct wire_name_answer m = { .query = a->query, .allowed = a->allowed, .n_ports = a->n_ports };
	struct buf b;
	memcpy(m.ports, a->ports, sizeof(m.ports));
	buf_init(&b, MUX_MESSAGE_MAX);
	int r = wire_name_answer_encode(&b, &m);
	if (r == 0 && s->mux)
		r = mux_send(s->mux, WIRE_NAME_ANSWER, b.data, b.len, err);
	buf_free(&b);
	return r;
}

static int on_answer(struct sandbox *s, const void *p, size_t n, struct err *err)
{
	struct gate_msg_answer a;
	if (gate_msg_answer_decode(p, n, &a, err) < 0)
		return -1;
	if (a.query != PROBE_QUERY)
		return forward_answer(s, &a, err);
	if (a.allowed)
		return err_set(err, ERR_DENIED, "the gate allowed a name that no policy can allow (%s): it does not enforce the policy", PROBE_NAME);
	s->got_probe = true;
	sandbox_maybe_ready(s);
	return 0;
}

static int on_denied(struct sandbox *s, const void *p, size_t n, struct err *err)
{
	struct gate_msg_denied m;
	if (gate_msg_denied_decode(p, n, &m, err) < 0)
		return -1;
	if (str_eq(m.host, PROBE_NAME))
		return 0;
	s->result.egress_denied++;
	struct sandbox_denial d = { m.host, m.port, m.reason };
	if (s->ops.on_denied)
		s->ops.on_denied(s->ctx, &d);
	return 0;
}

static int on_done(struct sandbox *s, const void *p, size_t n, struct err *err)
{
	struct gate_msg_done m;
	if (gate_msg_done_decode(p, n, &m, err) < 0)
		return -1;
	s->result.egress_allowed = m.allowed;
	s->result.egress_bytes_up = m.bytes_up;
	s->result.egress_bytes_down = m.bytes_down;
	s->ending.gate_done = true;
	teardown_step(s);
	return 0;
}

static bool is_budget(enum reason reason)
{
	return reason == REASON_BUDGET_CONNECTIONS || reason == REASON_BUDGET_REQUESTS || reason == REASON_BUDGET_BYTES;
}

/* The gate enforces the budget; here it becomes one of the limits that the box has hit. */
static int on_limit(struct sandbox *s, const void *p, size_t n, struct err *err)
{
	struct gate_msg_limit m;
	if (gate_msg_limit_decode(p, n, &m, err) < 0)
		return -1;
	if (!is_budget(m.reason))
		return err_set(err, ERR_PROTOCOL, "the gate reported a limit that isn't one of its own");
	limit_hit(s, m.reason, m.value, false);
	return 0;
}

static int on_gate_ready(struct sandbox *s, const void *p, size_t n, struct err *err)
{
	static struct gate_msg_ready m;
	return gate_msg_ready_decode(p, n, &m, err);
}

static int handle(struct sandbox *s, const void *p, size_t n, struct err *err)
{
	static int (*const handlers[])(struct sandbox *, const void *, size_t, struct err *) = {
		[GATE_READY] = on_gate_ready, [GATE_ANSWER] = on_answer, [GATE_DENIED] = on_denied, [GATE_LIMIT] = on_limit, [GATE_DONE] = on_done,
	};
	uint32_t type;
	if (gate_msg_type(p, n, &type) < 0 || type >= ARRAY_LEN(handlers) || !handlers[type])
		return err_set(err, ERR_PROTOCOL, "the gate sent a message that has no meaning");
	return handlers[type](s, p, n, err);
}

static void on_io(void *ctx, int fd, int ready)
{
	struct gate_link *g = ctx;
	struct sandbox *s = g->sandbox;
	uint8_t message[4096];
	struct err err;
	if (ready & LOOP_WRITE)
		flush(g);
	/* Bounded for each turn, so that a flood of denials can't starve the rest. */
	for (int i = 0; i < 64 && g->io; i++) {
		ssize_t n = recv(g->fd, message, sizeof(message), MSG_DONTWAIT | MSG_TRUNC);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0 || (size_t)n > sizeof(message)) {
			lost(g, n <= 0 ? "is gone" : "sent an oversized message");
			return;
		}
		if (handle(s, message, (size_t)n, &err) < 0) {
			sandbox_fail(s, &err);
			return;
		}
	}
}

/* ---- flows ---- */

static void flow_free(struct flow *f)
{
	for (struct flow **p = &f->link->flows; *p; p = &(*p)->next)
		if (*p == f) {
			*p = f->next;
			break;
		}
	pump_free(f->pump);
	mem_free(f);
}

static void on_flow_done(void *ctx, const struct err *err)
{
	flow_free(ctx);
}

static const struct pump_ops flow_ops = { .on_done = on_flow_done };

static void refuse_stream(struct sandbox *s, uint32_t id)
{
	static const struct mux_stream_ops none = { 0 };
	struct mux_stream *st = mux_stream_open(s->mux, id, &none, NULL, NULL);
	if (st)
		mux_stream_close(st, MUX_RESET_REFUSED);
}

static int post_open(struct gate_link *g, const struct wire_egress_open *o, int fd, struct err *err)
{
	struct gate_msg_open m = { .flow = ++g->next_flow, .entrance = o->entrance, .address = o->address, .port = o->port };
	struct buf b;
	if (o->entrance == WIRE_ENTRANCE_NAME) {
		memcpy(m.name, o->name.text, o->name.len);
		m.name_len = o->name.len;
	}
	buf_init(&b, GATE_MESSAGE_MAX);
	int r = gate_msg_open_encode(&b, &m);
	if (r < 0) {
		fd_close(&fd);
		err_set(err, ERR_PROTOCOL, "a flow can't be described to the gate");
	} else {
		r = post(g, &b, fd, err);
	}
	buf_free(&b);
	return r;
}

/* Only a broken protocol ends the pipe; a flow that can't be had is refused alone. */
int gate_link_open(struct gate_link *g, const struct wire_egress_open *o, struct err *err)
{
	struct sandbox *s = g->sandbox;
	int pair[2];
	if (g->cut || s->phase == SB_ENDING || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
		refuse_stream(s, o->stream);
		return 0;
	}
	struct flow *f = mem_alloc(sizeof(*f));
	f->link = g;
	f->pump = pump_new(s->loop, s->mux, o->stream, pair[0], pair[0], &flow_ops, f, err);
	if (!f->pump) {
		fd_close(&pair[1]);
		mem_free(f);
		return -1;
	}
	f->next = g->flows;
	g->flows = f;
	if (post_open(g, o, pair[1], NULL) < 0)
		flow_free(f);
	return 0;
}

int gate_link_name(struct gate_link *g, const struct wire_name_query *q, struct err *err)
{
	struct gate_msg_name m = { .query = q->query, .len = q->name.len };
	struct buf b;
	if (q->query == PROBE_QUERY)
		return err_set(err, ERR_PROTOCOL, "the agent used a reserved query number");
	memcpy(m.text, q->name.text, q->name.len);
	buf_init(&b, GATE_MESSAGE_MAX);
	if (gate_msg_name_encode(&b, &m) == 0)
		post(g, &b, -1, NULL); /* a full queue: the agent's query times out there */
	buf_free(&b);
	return 0;
}

/* ---- life ---- */

static int send_config(struct gate_link *g, struct err *err)
{
	struct sandbox *s = g->sandbox;
	static struct gate_msg_config m;
	struct gate_msg_name probe = { .query = PROBE_QUERY, .text = PROBE_NAME, .len = sizeof(PROBE_NAME) - 1 };
	struct buf b;
	m = (struct gate_msg_config){ 0 };
	memcpy(m.sandbox, s->spec.id, sizeof(m.sandbox));
	int fd = policy_fd_make(s->policy, &m.policy_len, err);
	if (fd < 0)
		return -1;
	for (size_t i = 0; s->resolvers && s->resolvers[i] && i < GATE_RESOLVERS_MAX; i++)
		strncpy(m.resolvers[m.n_resolvers++], s->resolvers[i], GATE_RESOLVER_TEXT_MAX);
	buf_init(&b, GATE_MESSAGE_MAX);
	int r = gate_msg_config_encode(&b, &m) < 0 ? err_set(err, ERR_LIMIT, "the gate's configuration is too large") : post(g, &b, fd_steal(&fd), err);
	fd_close(&fd);
	buf_clear(&b);
	if (r == 0 && (r = gate_msg_name_encode(&b, &probe)) == 0)
		r = post(g, &b, -1, err);
	buf_free(&b);
	return r;
}

struct gate_link *gate_link_new(struct sandbox *s, int control_fd, struct err *err)
{
	struct gate_link *g = mem_alloc(sizeof(*g));
	g->sandbox = s;
	g->fd = control_fd;
	g->queue_tail = &g->queue;
	fd_set_nonblock(control_fd, true);
	g->io = loop_io_add(s->loop, control_fd, LOOP_READ, on_io, g);
	if (send_config(g, err) < 0)
		return gate_link_free(g);
	return g;
}

void gate_link_cut(struct gate_link *g)
{
	g->cut = true;
	while (g->flows)
		flow_free(g->flows);
}

void gate_link_finish(struct gate_link *g)
{
	struct buf b;
	buf_init(&b, 64);
	/* From here on its end is expected. */
	g->sandbox->gate_part.io = loop_io_remove(g->sandbox->gate_part.io);
	if (g->sandbox->gate_part.ended || gate_msg_finish_encode(&b) < 0 || post(g, &b, -1, NULL) < 0)
		g->sandbox->ending.gate_done = true;
	buf_free(&b);
}

struct gate_link *gate_link_free(struct gate_link *g)
{
	if (!g)
		return NULL;
	gate_link_cut(g);
	while (g->queue) {
		struct outgoing *o = g->queue;
		g->queue = o->next;
		fd_close(&o->fd);
		mem_free(o);
	}
	loop_io_remove(g->io);
	fd_close(&g->fd);
	return mem_free(g);
}
