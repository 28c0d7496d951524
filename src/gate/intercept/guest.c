/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/mem.h"
#include "base/text.h"
#include "gate/intercept/internal.h"
#include "gate/upstream-link.h"

#define HANDSHAKE_NS (30 * NS_PER_S)
#define IDLE_NS (600 * NS_PER_S)   /* a client that owes us bytes and sends none */
#define LINGER_NS (2 * NS_PER_S)

static void guest_free(struct guest *g)
{
	if (g->open) {
		http_stream_set_ctx(g->open, NULL);
		http_stream_reset(g->open, HTTP_CANCELLED);
		intercept_kick(g->it);
	}
	channel_free(g->channel); /* its streams end, and with them what they were relayed to */
	g->flow->guest = NULL;
	mem_free(g);
}

void guest_drop(struct flow *f)
{
	exchange_detach_all(f->guest);
	guest_free(f->guest);
}

void guest_kick(void *guest)
{
	struct guest *g = guest;
	if (g->channel)
		channel_kick(g->channel);
}

/* The connection is over; the guest is freed. */
static void guest_end(struct guest *g, enum reason reason)
{
	struct flow *f = g->flow;
	flow_end(f, reason);
	flow_settle(f);
}

static void guest_deny(struct guest *g, enum reason reason)
{
	struct flow *f = g->flow;
	guest_free(g);
	flow_deny(f, (struct verdict){ .reason = reason, .rule = f->verdict.rule }, f->address.family ? &f->address : NULL);
	flow_settle(f);
}

/* ---- serving ---- */

static void on_head(void *ctx, struct http_stream *s, const struct http_head *head, bool end)
{
	exchange_begin(ctx, s, head, end);
}

static enum reason fault_reason(enum http_fault fault)
{
	switch (fault) {
	case HTTP_BAD_VERSION:
		return REASON_HTTP_VERSION;
	case HTTP_ABUSE:
		return REASON_HTTP_ABUSE;
	case HTTP_FAULT_NONE:
	case HTTP_CANCELLED:
	case HTTP_TRUNCATED:
		return REASON_CLIENT_CLOSED;
	case HTTP_MALFORMED:
	case HTTP_TOO_LARGE:
	case HTTP_REFUSED:
		break;
	}
	return REASON_HTTP_MALFORMED;
}

/* The client broke the protocol: recorded as a denial, and answered where the protocol still allows it. */
static void on_fault(void *ctx, enum http_fault fault)
{
	struct guest *g = ctx;
	enum reason reason = fault_reason(fault);
	if (reason == REASON_CLIENT_CLOSED)
		return;
	struct request_event e = { .flow = g->flow->id, .request = ++g->n_requests, .target = &g->flow->target,
		.method = { "", 0 }, .path = { "", 0 }, .verdict = { .reason = reason, .rule = -1 } };
	gate_request_denied(g->it->gate, &e);
	struct http_head head;
	struct buf body;
	http_head_init(&head);
	buf_init(&body, 16384);
	answer_refusal(g, reason, NULL, &head, &body);
	http_conn_last_words(g->http, &head, body.data, body.len);
	http_head_free(&head);
	buf_free(&body);
}

static void on_closed(void *ctx, const struct err *err)
{
	struct guest *g = ctx;
	/* The client didn't take the sandbox's certificate, or gave up: its words help whoever looks for the cause. */
	if (!g->http && err->code != ERR_NONE)
		g->flow->detail = mem_printf("the client's TLS handshake failed: %s", err->text);
	bool in_order = err->code == ERR_NONE || (g->http && http_conn_streams(g->http) == 0);
	guest_end(g, in_order ? REASON_ALLOWED : REASON_CLIENT_CLOSED);
}

static void serve(struct guest *g, enum http_version version)
{
	static const struct http_conn_ops ops = { on_head, relay_near_data, relay_near_end, relay_near_drain, relay_near_close };
	struct http_conn_config config = {
		.version = version, .role = HTTP_SERVER, .scheme = g->tls ? "https" : "http", .proxy = g->flow->forwards,
	};
	g->http = http_conn_new(&config, &ops, g);
	channel_set_idle(g->channel, IDLE_NS);
	channel_start(g->channel, g->http);
}

static void on_secure(void *ctx)
{
	struct guest *g = ctx;
	serve(g, str_eq(tls_alpn(channel_tls(g->channel)), "h2") ? HTTP_2 : HTTP_1);
}

static const struct channel_ops channel_ops = { .on_secure = on_secure, .on_closed = on_closed, .on_fault = on_fault };

/* The server proved its name: now the client may see a certificate. What the server speaks is preferred, so that nothing is translated
 * without need. */
static void take_socket(struct guest *g, bool server_h2)
{
	struct flow *f = g->flow;
	struct err err;
	struct tls *tls = g->tls ? tls_server_new(g->it->mint, f->target.text, server_h2 ? "h2,http/1.1" : "http/1.1,h2", &err) : NULL;
	if (g->tls && !tls) {
		f->detail = mem_printf("no certificate could be made for the client: %s", err.text);
		guest_deny(g, REASON_UPSTREAM_PROTOCOL);
		return;
	}
	int fd = flow_surrender(f);
	g->channel = channel_new(f->gate->loop, fd, tls, f->head.data, f->head.len, &channel_ops, g);
	buf_free(&f->head);
	if (g->tls)
		channel_set_idle(g->channel, HANDSHAKE_NS);
	else
		serve(g, HTTP_1);
}

/* ---- the upstream half's answer ---- */

static enum reason reason_of(const struct http_head *head)
{
	const struct http_field *f = http_head_get(head, LINK_FIELD_REASON);
	cleanup_free char *name = f ? http_text_dup(f->value) : NULL;
	enum reason reason = name ? reason_from_name(name) : REASON_NONE;
	return reason == REASON_NONE || reason == REASON_ALLOWED ? REASON_UPSTREAM_PROTOCOL : reason;
}

static void take_address(struct flow *f, const struct http_head *head)
{
	const struct http_field *a = http_head_get(head, LINK_FIELD_ADDRESS);
	if (a && ip_parse(a->value.p, a->value.len, &f->address) < 0)
		f->address = (struct ip){ 0 };
}

void guest_opened(struct guest *g, const struct http_head *head)
{
	if (g->channel)
		return;
	take_address(g->flow, head);
	if (head->status != 200) {
		guest_deny(g, reason_of(head));
		return;
	}
	const struct http_field *alpn = http_head_get(head, LINK_FIELD_ALPN);
	take_socket(g, alpn && http_text_equal(alpn->value, "h2"));
}

/* Nothing can be sent to the server any more: what is on its way ends by itself, and nothing new begins. */
void guest_upstream_ended(struct guest *g)
{
	g->upstream_gone = true;
	if (!g->channel)
		guest_deny(g, REASON_CONNECT_FAILED);
	else if (!g->exchanges)
		channel_finish(g->channel, LINGER_NS);
}

void guest_exchange_over(struct guest *g)
{
	if (g->upstream_gone && !g->exchanges && g->channel)
		channel_finish(g->channel, LINGER_NS);
}

/* ---- beginning ---- */

static int ask_to_open(struct guest *g, struct err *err)
{
	struct http_head head;
	char authority[TARGET_HOST_MAX], flow[24];
	const char *alpn = g->tls ? "h2,http/1.1" : "";
	http_head_init(&head);
	snprintf(flow, sizeof(flow), "%llu", (unsigned long long)g->flow->id);
	facts_authority(&g->flow->target, authority);
	int r = http_head_set(&head, &head.method, LINK_METHOD_OPEN, strlen(LINK_METHOD_OPEN)) |
		http_head_set(&head, &head.scheme, g->tls ? "https" : "http", g->tls ? 5 : 4) |
		http_head_set(&head, &head.authority, authority, strlen(authority)) | http_head_set(&head, &head.path, "/", 1) |
		http_head_add(&head, LINK_FIELD_FLOW, flow, strlen(flow)) | http_head_add(&head, LINK_FIELD_ALPN, alpn, strlen(alpn));
	g->open = r == 0 ? http_stream_open(g->it->link_http, &head, false, err) : NULL;
	http_head_free(&head);
	if (!g->open)
		return -1;
	http_stream_set_ctx(g->open, (void *)((uintptr_t)g | 1));
	intercept_kick(g->it);
	return 0;
}

void guest_begin(struct interceptor *it, struct flow *f, bool tls)
{
	struct guest *g = mem_alloc(sizeof(*g));
	struct err err;
	*g = (struct guest){ .it = it, .flow = f, .tls = tls };
	f->guest = g;
	if (ask_to_open(g, &err) == 0)
		return;
	guest_free(g);
	flow_deny(f, (struct verdict){ .reason = REASON_BUDGET_CONNECTIONS, .rule = f->verdict.rule }, NULL);
}

void guest_policy_changed(struct interceptor *it, struct flow *f, uint64_t *ret_cut)
{
	for (struct exchange *x = f->guest->exchanges, *next; x; x = next) {
		next = x->next;
		*ret_cut += exchange_judge_again(x);
	}
}
