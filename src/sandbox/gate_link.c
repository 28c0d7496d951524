/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's end of gate/protocol.h. Each flow of the box becomes one socket pair: the gate gets one end with OPEN, a pump joins the other
 * with the stream on the pipe. What the agent says about a flow is passed on as a claim; the gate decides.
 *
 * Before the box is handed over, the gate must refuse a name that nothing can allow: a gate that answers yes to everything is found here.
 */
#include "sandbox/internal.h"

#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"
#include "gate/messages.h"
#include "gate/policy-file.h"
#include "gate/protocol.h"
#include "sandbox/part_link.h"

#define PROBE_NAME "probe.bulkhead.invalid" /* RFC 6761: .invalid never resolves */
#define PROBE_QUERY UINT32_MAX

struct flow {
	struct gate_link *link;
	struct flow *next;
	struct pump *pump;
};

struct gate_link {
	struct sandbox *sandbox;
	struct part_link *part;
	struct flow *flows;
	uint64_t next_flow;
	bool cut;
};

/* ---- sending ---- */

/* Takes fd. */
static int post(struct gate_link *g, const struct buf *b, int fd, struct err *err)
{
	return part_link_post(g->part, b, &fd, fd >= 0 ? 1 : 0, err) < 0 ? err_wrap(err, "the gate of sandbox %s", g->sandbox->spec.id) : 0;
}

static void on_lost(void *ctx, const char *how)
{
	struct gate_link *g = ctx;
	struct sandbox *s = g->sandbox;
	struct err err;
	if (s->phase == SB_ENDING) {
		s->ending.gate_done = true;
		teardown_step(s);
		return;
	}
	err_set(&err, ERR_CLOSED, "the gate of sandbox %s %s, so the sandbox was ended", s->spec.id, how);
	sandbox_fail(s, &err);
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
	return reason >= REASON_BUDGET_RATE && reason <= REASON_BUDGET_BYTES;
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
	if (gate_msg_ready_decode(p, n, &m, err) < 0)
		return -1;
	if (s->ca_pem)
		return err_set(err, ERR_PROTOCOL, "the gate said READY twice");
	if (s->inspects && !m.ca_pem[0])
		return err_set(err, ERR_PROTOCOL, "the gate of a sandbox whose policy needs requests seen has no certificate of its own");
	s->ca_pem = mem_strdup(m.ca_pem);
	return sandbox_gate_ready(s, err);
}

static int on_policy_set(struct sandbox *s, const void *p, size_t n, struct err *err)
{
	struct gate_msg_policy_set m;
	return gate_msg_policy_set_decode(p, n, &m, err) < 0 ? -1 : change_gate_done(s, &m, err);
}

/* What is to happen is the policy's; the gate has recorded it and refused the request, if it is to be refused. */
static int on_canary(struct sandbox *s, const void *p, size_t n, struct err *err)
{
	struct gate_msg_canary m;
	if (gate_msg_canary_decode(p, n, &m, err) < 0)
		return -1;
	s->result.canaries++;
	struct sandbox_canary c = { m.name, m.host, m.port };
	if (s->ops.on_canary)
		s->ops.on_canary(s->ctx, &c);
	if (s->policy->canary == CANARY_KILL)
		sandbox_end(s, REASON_CANARY);
	return 0;
}

static int on_message(void *ctx, const void *p, size_t n, struct err *err)
{
	static int (*const handlers[])(struct sandbox *, const void *, size_t, struct err *) = {
		[GATE_READY] = on_gate_ready, [GATE_ANSWER] = on_answer, [GATE_DENIED] = on_denied, [GATE_LIMIT] = on_limit, [GATE_DONE] = on_done,
		[GATE_POLICY_SET] = on_policy_set, [GATE_CANARY] = on_canary,
	};
	struct gate_link *g = ctx;
	uint32_t type;
	if (gate_msg_type(p, n, &type) < 0 || type >= ARRAY_LEN(handlers) || !handlers[type])
		return err_set(err, ERR_PROTOCOL, "the gate sent a message that has no meaning");
	return handlers[type](g->sandbox, p, n, err);
}

static void on_broken(void *ctx, const struct err *err)
{
	sandbox_fail(((struct gate_link *)ctx)->sandbox, err);
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
	struct gate_msg_name probe = { .query = PROBE_QUERY, .text = PROBE_NAME, .len = sizeof(PROBE_NAME) - 1 };
	struct buf b;
	int fd;
	const struct gate_msg_config *m = sandbox_gate_config(g->sandbox, &fd, err);
	if (!m)
		return -1;
	buf_init(&b, GATE_MESSAGE_MAX);
	int r = gate_msg_config_encode(&b, m);
	if (r < 0) {
		fd_close(&fd);
		err_set(err, ERR_LIMIT, "the gate's configuration is too large");
	} else {
		r = post(g, &b, fd, err);
	}
	buf_clear(&b);
	if (r == 0 && (r = gate_msg_name_encode(&b, &probe)) == 0)
		r = post(g, &b, -1, err);
	buf_free(&b);
	return r;
}

struct gate_link *gate_link_new(struct sandbox *s, int control_fd, struct err *err)
{
	static const struct part_link_ops ops = { on_message, on_broken, on_lost };
	struct gate_link *g = mem_alloc(sizeof(*g));
	g->sandbox = s;
	g->part = part_link_new(s->loop, control_fd, &ops, g);
	if (send_config(g, err) < 0)
		return gate_link_free(g);
	return g;
}

int gate_link_policy(struct gate_link *g, uint64_t generation, const struct policy *p, struct err *err)
{
	struct gate_msg_policy m = { .generation = generation };
	struct buf b;
	int fd = policy_fd_make(p, &m.policy_len, err);
	if (fd < 0)
		return -1;
	buf_init(&b, GATE_MESSAGE_MAX);
	gate_msg_policy_encode(&b, &m);
	int r = post(g, &b, fd, err);
	buf_free(&b);
	return r;
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
	part_link_free(g->part);
	return mem_free(g);
}
