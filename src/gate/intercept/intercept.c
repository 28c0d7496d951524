/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/intercept/intercept.h"

#include <stdio.h>

#include "base/fd.h"
#include "base/mem.h"
#include "gate/intercept/internal.h"
#include "gate/upstream-link.h"

static int the_link_fd = -1; /* taken at CONFIG */

int intercept_prepare(int link_fd, struct err *err)
{
	the_link_fd = link_fd;
	return tls_prepare(err);
}

/* ---- the link to the upstream half ---- */

/* The streams of the link belong to guests (OPEN) or to relays; the lowest bit of their context tells which. */
static struct guest *opened_by(const struct http_stream *s)
{
	uintptr_t ctx = (uintptr_t)http_stream_ctx(s);
	return ctx & 1 ? (struct guest *)(ctx - 1) : NULL;
}

static void on_link_head(void *ctx, struct http_stream *s, const struct http_head *head, bool end)
{
	struct guest *g = opened_by(s);
	if (!g)
		relay_far_head(ctx, s, head, end);
	else if (head->status >= 200)
		guest_opened(g, head);
}

static void on_link_data(void *ctx, struct http_stream *s, const uint8_t *p, size_t len)
{
	if (opened_by(s))
		http_stream_credit(s, len);
	else
		relay_far_data(ctx, s, p, len);
}

static void on_link_end(void *ctx, struct http_stream *s, const struct http_head *trailers)
{
	struct guest *g = opened_by(s);
	if (g)
		guest_upstream_ended(g);
	else
		relay_far_end(ctx, s, trailers);
}

static void on_link_drain(void *ctx, struct http_stream *s)
{
	if (!opened_by(s))
		relay_far_drain(ctx, s);
}

static void on_link_close(void *ctx, struct http_stream *s, enum http_fault fault)
{
	struct guest *g = opened_by(s);
	if (!g) {
		relay_far_close(ctx, s, fault);
		return;
	}
	g->open = NULL;
	guest_upstream_ended(g);
}

static void on_link_closed(void *ctx, const struct err *cause)
{
	struct interceptor *it = ctx;
	struct err err;
	err_set(&err, ERR_CLOSED, "the upstream half of the gate is gone (%s)", cause->code == ERR_NONE ? "it ended" : cause->text);
	gate_fail(it->gate, &err);
}

void intercept_kick(void *it) { channel_kick(((struct interceptor *)it)->link); }

static void link_start(struct interceptor *it)
{
	static const struct http_conn_ops http_ops = { on_link_head, on_link_data, on_link_end, on_link_drain, on_link_close };
	static const struct channel_ops channel_ops = { .on_closed = on_link_closed };
	struct http_conn_config config = {
		.version = HTTP_2, .role = HTTP_CLIENT, .scheme = "https", .max_streams = LINK_STREAMS_MAX, .max_resets = UINT64_MAX,
	};
	fd_set_nonblock(the_link_fd, true);
	it->link = channel_new(it->gate->loop, the_link_fd, NULL, NULL, 0, &channel_ops, it);
	the_link_fd = -1;
	it->link_http = http_conn_new(&config, &http_ops, it);
	channel_start(it->link, it->link_http);
}

/* ---- placeholders ---- */

static int placeholders_start(struct interceptor *it, const struct gate_msg_config *m, struct err *err)
{
	if (m->n_placeholders == 0)
		return 0;
	it->placeholders = scan_set_new();
	it->n_secrets = m->n_placeholders;
	it->secrets = mem_alloc_array(m->n_placeholders, sizeof(*it->secrets));
	for (unsigned i = 0; i < m->n_placeholders; i++) {
		const char *text = m->placeholders[i].text;
		snprintf(it->secrets[i], sizeof(it->secrets[i]), "%s", m->placeholders[i].name);
		if (scan_set_add(it->placeholders, i, text, strlen(text), err) < 0)
			return -1;
	}
	return scan_set_compile(it->placeholders, err);
}

static const char *const action_names[] = { [CANARY_DENY] = "deny", [CANARY_KILL] = "kill", [CANARY_RECORD] = "record" };

bool intercept_canary(struct interceptor *it, const struct gate_target *t, uint64_t flow, unsigned id, const char *where, const char *spelling)
{
	struct gate *g = it->gate;
	enum canary_action action = g->policy->canary;
	struct canary_event e = { .flow = flow, .target = t, .secret = it->secrets[id], .where = where, .spelling = spelling,
		.action = action_names[action] };
	recorder_canary(g->recorder, &e);
	control_canary(g, it->secrets[id], t);
	return action != CANARY_RECORD;
}

/* ---- what the gate's core asks for ---- */

static struct interceptor *interceptor_free(struct interceptor *it)
{
	channel_free(it->link);
	scan_set_free(it->placeholders);
	mem_free(it->secrets);
	mint_free(it->mint);
	return mem_free(it);
}

static struct interceptor *start(struct gate *g, const struct gate_msg_config *m, struct err *err)
{
	struct interceptor *it = mem_alloc(sizeof(*it));
	it->gate = g;
	it->mint = mint_new(m->sandbox, err);
	if (!it->mint || placeholders_start(it, m, err) < 0)
		return interceptor_free(it);
	link_start(it);
	return it;
}

static const char *ca_pem(const struct interceptor *it) { return mint_ca_pem(it->mint); }

/* Looking at what isn't a request: a name, or the bytes of a tunnel in the clear. */
struct looking {
	struct interceptor *it;
	const struct flow *flow;    /* NULL: a question for a name */
	const char *where;
	uint64_t seen;              /* by id: each is told once */
	bool refuse;
	struct scan_stream *stream; /* of a tunnel */
};

static void on_look_found(void *ctx, unsigned id, const char *spelling, uint64_t offset, size_t len)
{
	static const struct gate_target nowhere = { .text = "*" };
	struct looking *l = ctx;
	if (l->seen & UINT64_C(1) << id)
		return;
	l->seen |= UINT64_C(1) << id;
	l->refuse |= intercept_canary(l->it, l->flow ? &l->flow->target : &nowhere, l->flow ? l->flow->id : 0, id, l->where, spelling);
}

static bool look_at_name(struct interceptor *it, const struct flow *f, const char *name)
{
	struct looking l = { .it = it, .flow = f, .where = "name" };
	if (!it->placeholders)
		return false;
	cleanup_free char *copy = mem_strdup(name);
	scan_text(it->placeholders, copy, strlen(copy), false, on_look_found, &l);
	return l.refuse;
}

static bool look(struct interceptor *it, struct flow *f, const void *p, size_t len)
{
	if (!it->placeholders)
		return false;
	if (!f->looking) {
		f->looking = mem_alloc(sizeof(*f->looking));
		*f->looking = (struct looking){ .it = it, .flow = f, .where = "tunnel" };
		f->looking->stream = scan_stream_new(it->placeholders, on_look_found, f->looking);
	}
	scan_look(f->looking->stream, p, len);
	return f->looking->refuse;
}

static void drop(struct flow *f)
{
	if (f->guest)
		guest_drop(f);
	if (f->looking)
		scan_stream_free(f->looking->stream);
	f->looking = mem_free(f->looking);
}

const struct interceptor_ops intercept_ops = {
	.start = start,
	.ca_pem = ca_pem,
	.begin = guest_begin,
	.drop = drop,
	.look_at_name = look_at_name,
	.look = look,
	.policy_changed = guest_policy_changed,
	.free = interceptor_free,
};
