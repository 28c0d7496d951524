/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/flow.h"

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "gate/inspect.h"
#include "gate/proxy.h"
#include "gate/refuse.h"

#define PROXY_HEAD_WAIT_NS (60 * NS_PER_S)
#define REFUSE_WAIT_NS (2 * NS_PER_S)
#define CLOSE_WAIT_NS (2 * NS_PER_S)

static const char *const entrance_names[] = {
	[WIRE_ENTRANCE_NAME] = "name",
	[WIRE_ENTRANCE_ADDRESS] = "address",
	[WIRE_ENTRANCE_PROXY] = "proxy",
};

static void on_client(void *ctx, int fd, int ready);
static void on_server(void *ctx, int fd, int ready);
static void on_timer(void *ctx);

/* ---- life ---- */

static struct flow *flow_new(struct gate *g, const struct gate_msg_open *m, int client_fd)
{
	struct flow *f = mem_alloc(sizeof(*f));
	*f = (struct flow){
		.gate = g,
		.id = m->flow,
		.start_ns = time_monotonic_ns(),
		.entrance = m->entrance,
		.client_fd = client_fd,
		.server_fd = -1,
		.rule = -1,
		.next = g->flows,
	};
	buf_init(&f->head, INSPECT_MAX + FLOW_CHUNK);
	buf_init(&f->up, FLOW_UP_MAX);
	buf_init(&f->down, FLOW_UP_MAX);
	f->client_io = loop_io_add(g->loop, client_fd, 0, on_client, f);
	if (f->next)
		f->next->prev = f;
	g->flows = f;
	g->n_flows++;
	return f;
}

static void close_server(struct flow *f)
{
	f->dial = dial_cancel(f->dial);
	f->lookup = resolver_cancel(f->lookup);
	f->ticket = recorder_forget(f->ticket);
	f->server_io = loop_io_remove(f->server_io);
	fd_close(&f->server_fd);
	buf_free(&f->head);
	buf_free(&f->up);
}

static void flow_free(struct flow *f)
{
	struct gate *g = f->gate;
	if (f->guest || f->looking)
		g->interceptor_ops->drop(f);
	close_server(f);
	loop_io_remove(f->client_io);
	fd_close(&f->client_fd);
	loop_timer_free(f->timer);
	buf_free(&f->down);
	mem_free(f->detail);
	if (f->prev)
		f->prev->next = f->next;
	else
		g->flows = f->next;
	if (f->next)
		f->next->prev = f->prev;
	g->n_flows--;
	mem_free(f);
}

void flow_set_timer(struct flow *f, uint64_t after_ns)
{
	if (!f->timer)
		f->timer = loop_timer_new(f->gate->loop, on_timer, f);
	loop_timer_set(f->timer, after_ns, 0);
}

/* The end of an admitted flow is recorded once, and its connection given back. */
static void account_end(struct flow *f, enum reason reason)
{
	if (!f->admitted)
		return;
	f->admitted = false;
	f->gate->totals.allowed += f->verdict.allow;
	budget_release(&f->gate->budget, f->rule);
	struct egress_end_event e = {
		.flow = f->id,
		.bytes_up = f->bytes_up,
		.bytes_down = f->bytes_down,
		.duration_ns = time_monotonic_ns() - f->start_ns,
		.reason = reason,
		.address = f->address.family ? &f->address : NULL,
		.protocol = f->protocol,
		.detail = f->detail,
		.encrypted_hello = f->encrypted_hello,
	};
	recorder_egress_end(f->gate->recorder, &e);
}

void flow_end(struct flow *f, enum reason reason)
{
	account_end(f, reason);
	f->over = true;
}

void flow_close(struct flow *f, enum reason reason)
{
	account_end(f, reason);
	close_server(f);
	f->state = FLOW_CLOSING;
	flow_set_timer(f, CLOSE_WAIT_NS);
}

void flow_cut_all(struct gate *g, enum reason reason)
{
	while (g->flows) {
		account_end(g->flows, reason);
		flow_free(g->flows);
	}
}

/* ---- what is waited for ---- */

static int client_interest(const struct flow *f)
{
	int write = f->down.len ? LOOP_WRITE : 0;
	if (f->client_eof)
		return write;
	switch (f->state) {
	case FLOW_PROXY_HEAD:
	case FLOW_REFUSING:
	case FLOW_CLOSING:
	case FLOW_INSPECTING:
		return write | LOOP_READ;
	case FLOW_TUNNEL:
		return write | (f->up.len ? 0 : LOOP_READ);
	case FLOW_HTTP:
		return write | (f->up.len || f->extra || f->head.len >= FLOW_CHUNK ? 0 : LOOP_READ);
	case FLOW_RECORDING:
	case FLOW_RESOLVING:
	case FLOW_DIALLING:
	case FLOW_OPENING:
	case FLOW_INTERCEPTED:
	case FLOW_NUM_STATES:
		break;
	}
	return write;
}

static int server_interest(const struct flow *f)
{
	return (f->up.len && !f->up_broken ? LOOP_WRITE : 0) | (f->down.len || f->server_eof ? 0 : LOOP_READ);
}

void flow_settle(struct flow *f)
{
	if (f->state == FLOW_CLOSING && !f->over)
		copy_last(f);
	/* Raw: both ends have passed, or the server is gone in both directions. */
	if (!f->over && f->state == FLOW_TUNNEL && f->down_shut && (f->up_shut || f->up_broken))
		flow_end(f, REASON_ALLOWED);
	if (f->over) {
		flow_free(f);
		return;
	}
	if (f->client_io)
		loop_io_set(f->client_io, client_interest(f));
	if (f->server_io)
		loop_io_set(f->server_io, server_interest(f));
}

/* ---- refusing ---- */

static void say_refusal(struct flow *f, bool http)
{
	int r = http ? refuse_http(f->gate->policy, &f->verdict, &f->target, &f->down) : refuse_tls(&f->down);
	if (r < 0)
		buf_free(&f->down);
}

/* The form follows from what the client said; in the middle of an answer there is none. */
static void refuse_by_first_bytes(struct flow *f)
{
	if (f->bytes_down == 0 && f->head.len) {
		if (f->head.data[0] == 0x16)
			say_refusal(f, false);
		else if (inspect_wants_http(f->head.data, f->head.len))
			say_refusal(f, true);
	}
	flow_close(f, f->verdict.reason);
}

static void record_denial(struct flow *f, const struct verdict *v, const struct ip *address)
{
	struct gate *g = f->gate;
	struct egress_event e = {
		.flow = f->id,
		.target = &f->target,
		.address = address ? address : f->target.literal ? &f->target.ip : NULL,
		.entrance = entrance_names[f->entrance],
		.protocol = f->protocol,
		.verdict = *v,
		.rule = v->rule >= 0 ? &g->policy->rules[v->rule] : NULL,
	};
	gate_denied(g, &e);
}

void flow_deny(struct flow *f, struct verdict v, const struct ip *address)
{
	v.allow = false;
	f->verdict = v;
	if (refuse_is_denial(v.reason))
		record_denial(f, &v, address);
	account_end(f, v.reason);
	if (f->answers_http && f->bytes_down == 0) {
		say_refusal(f, true);
		flow_close(f, v.reason);
	} else if (f->state == FLOW_INSPECTING || f->state == FLOW_HTTP || f->state == FLOW_OPENING) {
		refuse_by_first_bytes(f);
	} else {
		close_server(f);
		f->state = FLOW_REFUSING;
		flow_set_timer(f, REFUSE_WAIT_NS);
	}
}

static void deny(struct flow *f, enum reason reason)
{
	flow_deny(f, (struct verdict){ .reason = reason, .rule = f->verdict.allow ? f->verdict.rule : -1 }, NULL);
}

/* ---- inspecting ---- */

static void begin_tunnel(struct flow *f, const char *protocol)
{
	f->protocol = protocol;
	f->clear = !str_eq(protocol, "tls");
	f->state = FLOW_TUNNEL;
	if (buf_append(&f->up, f->head.data, f->head.len) < 0)
		flow_end(f, REASON_ALLOWED);
	buf_free(&f->head);
	copy_up(f);
}

int flow_surrender(struct flow *f)
{
	f->client_io = loop_io_remove(f->client_io);
	f->state = FLOW_INTERCEPTED;
	return fd_steal(&f->client_fd);
}

/* What it is was found out; the rest is the interceptor's, and the upstream half's, which dials. */
static void begin_intercept(struct flow *f, bool tls)
{
	f->protocol = tls ? "https" : "http";
	f->answers_http = f->answers_http && !tls;
	f->state = FLOW_OPENING;
	f->gate->interceptor_ops->begin(f->gate->interceptor, f, tls);
}

bool flow_look(struct flow *f, const void *p, size_t len)
{
	struct gate *g = f->gate;
	if (!g->interceptor || !g->interceptor_ops->look(g->interceptor, f, p, len))
		return false;
	deny(f, REASON_SECRET_MISPLACED);
	return true;
}

static void begin_http(struct flow *f, struct inspection *found)
{
	char host[TARGET_HOST_MAX];
	struct http1_request *r = &found->request;
	if (f->inspect) {
		begin_intercept(f, false);
		return;
	}
	f->protocol = "http";
	if (flow_look(f, f->head.data, f->head.len))
		return;
	enum reason reason = verdict_request(&f->target, r);
	if (reason == REASON_NONE && http1_request_serialise(r, target_host_header(&f->target, host), &f->up) < 0)
		reason = REASON_HTTP_MALFORMED;
	if (reason != REASON_NONE) {
		deny(f, reason);
		return;
	}
	http1_body_init(&f->body, r);
	f->websocket = r->websocket;
	f->answers_http = true;
	f->state = FLOW_HTTP;
	/* What follows the head is the body's, or waits for an upgrade, or is nobody's. */
	struct buf rest = f->head;
	buf_init(&f->head, rest.max);
	copy_body(f, rest.data + found->head_len, rest.len - found->head_len);
	buf_free(&rest);
	if (f->state == FLOW_HTTP && !f->over)
		copy_up(f);
}

static void begin_tls(struct flow *f, const struct tls_hello *hello)
{
	f->protocol = "tls";
	f->encrypted_hello = hello->encrypted;
	enum reason reason = verdict_hello(&f->target, hello);
	if (reason != REASON_NONE)
		deny(f, reason);
	else if (f->inspect)
		begin_intercept(f, true);
	else
		begin_tunnel(f, "tls");
}

static void inspect(struct flow *f)
{
	struct inspection found;
	bool has_protocol = f->target.port == INSPECT_PORT_HTTP || f->target.port == INSPECT_PORT_HTTPS;
	if (f->head.len == 0 && f->client_eof && has_protocol) {
		flow_end(f, REASON_ALLOWED); /* connected and said nothing: nothing to judge */
		return;
	}
	switch (inspect_first_bytes(f->head.data, f->head.len, f->client_eof, f->target.port, &found)) {
	case INSPECT_MORE:
		break;
	case INSPECT_TLS:
		begin_tls(f, &found.hello);
		break;
	case INSPECT_HTTP:
		begin_http(f, &found);
		break;
	case INSPECT_RAW:
		if (f->inspect)
			deny(f, REASON_PROTOCOL_MISMATCH); /* it was to be judged, and can't be */
		else if (!flow_look(f, f->head.data, f->head.len))
			begin_tunnel(f, "tcp");
		break;
	case INSPECT_REFUSE:
		deny(f, found.reason);
		break;
	}
}

void flow_upgraded(struct flow *f, bool yes)
{
	f->websocket = false;
	f->answers_http = false;
	if (yes)
		begin_tunnel(f, "http");
	else
		buf_free(&f->head);
}

/* ---- a newer policy ---- */

/* Does it still allow this flow in the way it came about? */
static bool still_allowed(struct flow *f)
{
	struct gate *g = f->gate;
	struct verdict v = verdict_place(g->policy, &f->target);
	if (!v.allow || verdict_inspects(&g->facts, &f->target) > f->inspect)
		return false;
	if (f->address.family && !verdict_dial(&g->facts, v.rule, &f->address).allow)
		return false;
	f->verdict.rule = f->rule = v.rule;
	budget_adopt(&g->budget, v.rule);
	return true;
}

uint64_t flow_judge_all(struct gate *g)
{
	uint64_t cut = 0;
	for (struct flow *f = g->flows, *next; f; f = next) {
		next = f->next;
		if (!f->admitted)
			continue;
		if (!still_allowed(f)) {
			cut++;
			flow_end(f, REASON_POLICY_CHANGED);
			flow_settle(f);
		} else if (f->guest) {
			g->interceptor_ops->policy_changed(g->interceptor, f, &cut);
		}
	}
	return cut;
}

/* ---- the way to a connection ---- */

/* The client may speak (or be listened to): its first bytes decide what comes next. */
static void begin_inspecting(struct flow *f)
{
	static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	f->state = FLOW_INSPECTING;
	if (f->entrance == WIRE_ENTRANCE_PROXY && !f->forwards) {
		buf_append(&f->down, established, sizeof(established) - 1);
		f->answers_http = false;
		copy_flush(f);
	}
	if (!f->over && (f->head.len || f->client_eof))
		inspect(f);
}

static void on_dialled(void *ctx, int fd, const struct ip *ip, int sysno)
{
	struct flow *f = ctx;
	f->dial = NULL;
	if (fd < 0) {
		deny(f, REASON_CONNECT_FAILED);
		flow_settle(f);
		return;
	}
	f->server_fd = fd;
	f->address = *ip;
	f->server_io = loop_io_add(f->gate->loop, fd, 0, on_server, f);
	begin_inspecting(f);
	flow_settle(f);
}

static void dial(struct flow *f, const struct resolver_answer *answer)
{
	struct ip checked[RESOLVE_ADDRESSES_MAX];
	struct verdict refused = { .reason = REASON_RESOLVE_FAILED, .rule = f->verdict.rule };
	const struct ip *refused_ip = NULL;
	size_t n = 0;
	for (size_t i = 0; i < answer->n; i++) {
		struct verdict v = verdict_dial(&f->gate->facts, f->verdict.rule, &answer->addresses[i]);
		if (v.allow) {
			checked[n++] = answer->addresses[i];
		} else if (!refused_ip) {
			refused = v;
			refused_ip = &answer->addresses[i];
		}
	}
	if (n == 0) {
		flow_deny(f, refused, refused_ip);
		return;
	}
	f->state = FLOW_DIALLING;
	f->dial = dial_start(f->gate->loop, checked, n, f->target.port, on_dialled, f);
}

static void on_resolved(void *ctx, const struct resolver_answer *answer)
{
	struct flow *f = ctx;
	f->lookup = NULL;
	dial(f, answer);
	flow_settle(f);
}

static void on_recorded(void *ctx)
{
	struct flow *f = ctx;
	struct resolver_answer answer = { .addresses = { f->target.ip }, .n = 1 };
	f->ticket = NULL;
	if (f->inspect) {
		begin_inspecting(f); /* the upstream half resolves and dials */
		flow_settle(f);
		return;
	}
	f->state = FLOW_RESOLVING;
	if (f->target.literal || resolver_lookup(f->gate->resolver, &f->target.name, on_resolved, f, &answer, &f->lookup) == 1)
		dial(f, &answer);
	flow_settle(f);
}

/* `parsed`: REASON_NONE, or why the target can't even be judged. */
static void decide(struct flow *f, enum reason parsed)
{
	struct gate *g = f->gate;
	f->verdict = (struct verdict){ .reason = parsed, .rule = -1 };
	/* Whatever policy says of the name: it would be asked of resolvers, or be on its way in the clear. */
	if (g->interceptor && g->interceptor_ops->look_at_name(g->interceptor, f, f->target.text)) {
		deny(f, REASON_SECRET_MISPLACED);
		return;
	}
	if (parsed == REASON_NONE)
		f->verdict = verdict_target(&g->facts, &f->target);
	if (!f->verdict.allow) {
		flow_deny(f, f->verdict, NULL);
		return;
	}
	f->admitted = true;
	f->rule = f->verdict.rule;
	f->inspect = verdict_inspects(&g->facts, &f->target);
	f->state = FLOW_RECORDING;
	struct egress_event e = {
		.flow = f->id,
		.target = &f->target,
		.address = f->target.literal ? &f->target.ip : NULL,
		.entrance = entrance_names[f->entrance],
		.protocol = f->forwards ? "http" : NULL,
		.inspected = f->inspect,
		.verdict = f->verdict,
		.rule = &g->policy->rules[f->verdict.rule],
	};
	/* Nothing is looked up or dialled before the record holds it. */
	if (recorder_egress(g->recorder, &e, on_recorded, f, &f->ticket) < 0)
		deny(f, REASON_RECORD_UNAVAILABLE);
}

static void read_proxy_head(struct flow *f)
{
	struct proxy_head head;
	enum proxy_result r = proxy_head_parse(f->head.data, f->head.len, f->client_eof, &head);
	if (r == PROXY_MORE)
		return;
	if (f->head.len == 0) {
		flow_end(f, REASON_NONE); /* connected and left again */
		return;
	}
	loop_timer_stop(f->timer);
	f->target = head.target;
	f->forwards = r == PROXY_FORWARD;
	if (r == PROXY_CONNECT)
		buf_consume(&f->head, head.head_len);
	decide(f, r == PROXY_REFUSE ? head.reason : REASON_NONE);
}

/* More flows than a sandbox can have, even if each were refused: not looked at, but counted. */
static void refuse_unseen(struct gate *g, const struct gate_msg_open *m)
{
	static const struct gate_target any = { .text = "*" };
	struct egress_event e = { .flow = m->flow, .target = &any, .entrance = entrance_names[m->entrance],
		.verdict = { .reason = REASON_BUDGET_CONNECTIONS, .rule = -1 } };
	gate_denied(g, &e);
}

void flow_open(struct gate *g, const struct gate_msg_open *m, int client_fd)
{
	if (g->finishing || g->n_flows >= GATE_FLOWS_MAX) {
		if (!g->finishing)
			refuse_unseen(g, m);
		fd_close(&client_fd);
		return;
	}
	struct flow *f = flow_new(g, m, client_fd);
	enum reason parsed = REASON_NONE;
	if (m->entrance == WIRE_ENTRANCE_PROXY) {
		f->answers_http = true;
		f->state = FLOW_PROXY_HEAD;
		flow_set_timer(f, PROXY_HEAD_WAIT_NS);
		flow_settle(f);
		return;
	}
	if (m->entrance == WIRE_ENTRANCE_NAME)
		parsed = target_from_name(m->name, m->name_len, m->port, &f->target);
	else
		target_from_ip(&m->address, m->port, &f->target);
	decide(f, parsed);
	flow_settle(f);
}

/* ---- steps ---- */

static void client_step(struct flow *f)
{
	switch (f->state) {
	case FLOW_PROXY_HEAD:
		if (copy_hold(f, PROXY_HEAD_MAX))
			read_proxy_head(f);
		break;
	case FLOW_INSPECTING:
		if (copy_hold(f, INSPECT_MAX))
			inspect(f);
		break;
	case FLOW_TUNNEL:
		copy_tunnel(f);
		break;
	case FLOW_HTTP:
		copy_request(f);
		break;
	case FLOW_REFUSING:
		if (copy_hold(f, FLOW_CHUNK))
			refuse_by_first_bytes(f);
		break;
	case FLOW_CLOSING:
		copy_discard(f);
		break;
	case FLOW_RECORDING:
	case FLOW_RESOLVING:
	case FLOW_DIALLING:
	case FLOW_OPENING:
	case FLOW_INTERCEPTED:
	case FLOW_NUM_STATES:
		break;
	}
}

static void on_client(void *ctx, int fd, int ready)
{
	struct flow *f = ctx;
	if (ready & LOOP_WRITE)
		copy_down(f);
	if (ready & LOOP_READ && !f->over)
		client_step(f);
	flow_settle(f);
}

static void on_server(void *ctx, int fd, int ready)
{
	struct flow *f = ctx;
	if (ready & LOOP_WRITE)
		copy_up(f);
	if (ready & LOOP_READ && !f->over && f->server_fd >= 0)
		copy_down(f);
	flow_settle(f);
}

static void on_timer(void *ctx)
{
	struct flow *f = ctx;
	if (f->state == FLOW_PROXY_HEAD)
		deny(f, REASON_PROXY_MALFORMED);
	else if (f->state == FLOW_REFUSING)
		flow_close(f, f->verdict.reason);
	else
		flow_end(f, f->state == FLOW_CLOSING ? f->verdict.reason : REASON_ALLOWED);
	flow_settle(f);
}
