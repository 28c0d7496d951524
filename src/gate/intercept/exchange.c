/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request of an inspected connection: judged, recorded, only then passed on, written anew; its answer passed back within the budgets.
 */
#include <stdio.h>

#include "base/mem.h"
#include "base/text.h"
#include "gate/intercept/internal.h"
#include "gate/refuse.h"
#include "gate/upstream-link.h"

static struct gate *gate_of(const struct exchange *x) { return x->guest->it->gate; }

/* ---- life ---- */

static void unlink_exchange(struct exchange *x)
{
	if (x->prev)
		x->prev->next = x->next;
	else
		x->guest->exchanges = x->next;
	if (x->next)
		x->next->prev = x->prev;
}

static void record_end(struct exchange *x, enum reason reason)
{
	if (!x->counted)
		return;
	x->counted = false;
	struct request_end_event e = {
		.flow = x->guest->flow->id,
		.request = x->id,
		.status = relay_status(x->relay),
		.bytes_up = x->bytes_up,
		.bytes_down = x->bytes_down,
		.duration_ns = time_monotonic_ns() - x->start_ns,
		.reason = reason == REASON_NONE ? REASON_ALLOWED : reason,
	};
	recorder_request_end(gate_of(x)->recorder, &e);
}

static void exchange_free(struct exchange *x)
{
	recorder_forget(x->ticket);
	scan_stream_free(x->body);
	pinned_done(&x->pinned);
	http_head_free(&x->head);
	mem_free(x);
}

void exchange_detach_all(struct guest *g)
{
	while (g->exchanges) {
		struct exchange *x = g->exchanges;
		record_end(x, REASON_CLIENT_CLOSED);
		x->ticket = recorder_forget(x->ticket);
		unlink_exchange(x);
		x->guest = NULL; /* the relay ends, and frees it, when its streams are gone */
	}
}

static void on_over(void *ctx, enum reason reason)
{
	struct exchange *x = ctx;
	struct guest *g = x->guest;
	if (g) {
		record_end(x, reason);
		unlink_exchange(x);
	}
	exchange_free(x);
	if (g)
		guest_exchange_over(g);
}

/* ---- budgets ---- */

static void spend(struct exchange *x, enum budget_direction direction, size_t n)
{
	struct gate *g = gate_of(x);
	struct flow *f = x->guest->flow;
	budget_spend(&g->budget, x->rule, direction, n);
	*(direction == BUDGET_UP ? &x->bytes_up : &x->bytes_down) += n;
	*(direction == BUDGET_UP ? &f->bytes_up : &f->bytes_down) += n;
	*(direction == BUDGET_UP ? &g->totals.bytes_up : &g->totals.bytes_down) += n;
}

/* How many of len bytes may go on. When it is fewer, what comes next is refused: the budget is used to its last byte. */
static size_t take_room(struct exchange *x, enum budget_direction direction, size_t len)
{
	size_t room = budget_room(&gate_of(x)->budget, x->rule, direction, len);
	if (room < len) {
		x->cut = REASON_BUDGET_BYTES;
		control_limit(gate_of(x), REASON_BUDGET_BYTES);
	}
	spend(x, direction, room);
	return room;
}

/* The text of a head, as HTTP/1 would write it. */
static size_t head_cost(const struct http_head *h)
{
	size_t n = h->method.len + h->path.len + h->authority.len + 32;
	for (size_t i = 0; i < h->n_fields; i++)
		n += h->fields[i].name.len + h->fields[i].value.len + 4;
	return n;
}

static enum reason charge_head(struct exchange *x, enum budget_direction direction, const struct http_head *h)
{
	size_t cost = head_cost(h);
	return take_room(x, direction, cost) == cost ? REASON_NONE : REASON_BUDGET_BYTES;
}

/* ---- what the relay asks ---- */

static enum reason up_data(void *ctx, const uint8_t *p, size_t len, struct buf *out)
{
	struct exchange *x = ctx;
	if (!x->guest || x->cut != REASON_NONE)
		return x->cut != REASON_NONE ? x->cut : REASON_CLIENT_CLOSED;
	if (canary_in_body(x, p, len))
		return REASON_SECRET_MISPLACED;
	size_t room = take_room(x, BUDGET_UP, len);
	return buf_append(out, p, room) == 0 ? REASON_NONE : REASON_HTTP_MALFORMED;
}

/* Trailers of requests carry nothing that a policy could judge. */
static enum reason up_end(void *ctx, struct buf *out, struct http_head *trailers)
{
	struct exchange *x = ctx;
	if (trailers && x->guest && canary_in_trailers(x, trailers))
		return REASON_SECRET_MISPLACED;
	return x->cut;
}

static void remove_link_fields(struct http_head *head)
{
	for (size_t i = 0; i < head->n_fields;) {
		const struct http_field *f = &head->fields[i];
		size_t n = strlen(LINK_FIELD_PREFIX);
		if (f->name.len < n || memcmp(f->name.p, LINK_FIELD_PREFIX, n) != 0) {
			i++;
			continue;
		}
		cleanup_free char *name = http_text_dup(f->name);
		http_head_remove(head, name);
	}
}

/* Only a whole, uncoded body can be compared with what the lock file pins. */
static enum reason check_pinned_head(struct exchange *x, const struct http_head *head)
{
	if (!x->pinned.pins)
		return REASON_NONE;
	if (head->status == 206 || head->status == 304)
		return REASON_DIGEST_MISMATCH;
	if (head->status < 200 || head->status >= 300)
		pinned_done(&x->pinned); /* not the file, but words about it */
	else if (http_head_get(head, "content-encoding"))
		return REASON_RESPONSE_UNREADABLE;
	return REASON_NONE;
}

static enum reason down_head(void *ctx, struct http_head *head)
{
	struct exchange *x = ctx;
	if (!x->guest)
		return REASON_CLIENT_CLOSED;
	const struct http_field *f = http_head_get(head, LINK_FIELD_REASON);
	if (f) {
		cleanup_free char *name = http_text_dup(f->value);
		enum reason reason = reason_from_name(name);
		return reason == REASON_NONE || reason == REASON_ALLOWED ? REASON_UPSTREAM_PROTOCOL : reason;
	}
	remove_link_fields(head);
	enum reason reason = charge_head(x, BUDGET_DOWN, head);
	return reason == REASON_NONE ? check_pinned_head(x, head) : reason;
}

static enum reason down_data(void *ctx, const uint8_t *p, size_t len, struct buf *out)
{
	struct exchange *x = ctx;
	if (!x->guest || x->cut != REASON_NONE)
		return x->cut != REASON_NONE ? x->cut : REASON_CLIENT_CLOSED;
	size_t room = take_room(x, BUDGET_DOWN, len);
	int r = x->pinned.pins ? pinned_data(&x->pinned, p, room, out) : buf_append(out, p, room);
	return r == 0 ? REASON_NONE : REASON_UPSTREAM_PROTOCOL;
}

static enum reason down_end(void *ctx, struct buf *out, struct http_head *trailers)
{
	struct exchange *x = ctx;
	if (x->cut != REASON_NONE)
		return x->cut;
	if (trailers)
		remove_link_fields(trailers);
	return !x->pinned.pins || pinned_end(&x->pinned, out) ? REASON_NONE : REASON_DIGEST_MISMATCH;
}

static struct http_text without_query(struct http_text path)
{
	const char *q = memchr(path.p, '?', path.len);
	return q ? (struct http_text){ path.p, (size_t)(q - path.p) } : path;
}

static void fill_event(const struct exchange *x, enum reason reason, bool allow, struct request_event *ret)
{
	const struct policy *p = gate_of(x)->policy;
	struct http_text path = without_query(x->head.path);
	*ret = (struct request_event){
		.flow = x->guest->flow->id,
		.request = x->id,
		.target = &x->guest->flow->target,
		.method = x->head.protocol.len ? (struct http_text){ "GET", 3 } : x->head.method,
		.path = path,
		.query = path.len < x->head.path.len,
		.verdict = { .allow = allow, .reason = reason, .rule = x->rule },
		.rule = x->rule >= 0 && (size_t)x->rule < p->n_rules ? &p->rules[x->rule] : NULL,
	};
}

/* Each refusal by policy is on the record and told, once, whichever half found it. */
static void tell_denied(struct exchange *x, enum reason reason)
{
	struct request_event e;
	if (x->told || !refuse_is_denial(reason))
		return;
	x->told = true;
	fill_event(x, reason, false, &e);
	gate_request_denied(gate_of(x), &e);
}

static void on_refused(void *ctx, enum reason reason, struct http_head *head, struct buf *body)
{
	struct exchange *x = ctx;
	if (x->guest)
		answer_refusal(x->guest, reason, x, head, body);
	else
		head->status = 502;
}

static void on_reason(void *ctx, enum reason reason)
{
	struct exchange *x = ctx;
	if (x->guest)
		tell_denied(x, reason);
}

/* ---- judging ---- */

static enum reason check_authority(const struct guest *g, const struct http_head *head)
{
	const struct gate_target *t = &g->flow->target;
	if (!http_text_equal(head->scheme, g->tls ? "https" : "http"))
		return REASON_HTTP_MALFORMED;
	if (http_text_equal(head->method, "CONNECT") && head->protocol.len == 0)
		return REASON_HTTP_MALFORMED; /* it would ask the server to be a second gate */
	if (head->authority.len == 0)
		return REASON_HTTP_HOST_MISSING;
	return target_matches_authority(t, head->authority.p, head->authority.len) ? REASON_NONE : REASON_HTTP_HOST_MISMATCH;
}

static void judge(struct exchange *x, const struct http_head *head, struct request_verdict *ret)
{
	static struct request_field fields[HTTP_FIELDS_MAX];
	static struct request_path path;
	struct request_facts facts;
	facts_fill(&facts, fields, &x->guest->flow->target, head, x->guest->tls);
	*ret = (struct request_verdict){ .path = &path };
	policy_decide_request(gate_of(x)->policy, &facts, ret);
	x->rule = ret->verdict.rule;
}

/* The head as it goes on: the path that was judged, the one host, nothing of ours from the client. */
static int rewrite(struct exchange *x, const struct request_path *path)
{
	char authority[TARGET_HOST_MAX], flow[24];
	struct http_head *h = &x->head;
	cleanup_free char *target = mem_printf("%s%s%s", path->path, path->has_query ? "?" : "", path->query);
	facts_authority(&x->guest->flow->target, authority);
	snprintf(flow, sizeof(flow), "%llu", (unsigned long long)x->guest->flow->id);
	remove_link_fields(h);
	if (x->pinned.pins) { /* whole and uncoded, or it can't be compared */
		http_head_remove(h, "range");
		http_head_remove(h, "if-none-match");
		http_head_remove(h, "if-modified-since");
		if (http_head_put(h, "accept-encoding", "identity", 8) < 0)
			return -1;
	}
	return http_head_set(h, &h->path, target, strlen(target)) | http_head_set(h, &h->authority, authority, strlen(authority)) |
		http_head_add(h, LINK_FIELD_FLOW, flow, strlen(flow));
}

/* Everything that can be said before the request goes on. REASON_NONE, or why it doesn't. */
static enum reason admit(struct exchange *x, const struct http_head *head)
{
	struct request_verdict v;
	enum reason reason = check_authority(x->guest, head);
	if (reason != REASON_NONE)
		return reason;
	judge(x, head, &v);
	if (!v.verdict.allow)
		return v.verdict.reason;
	const struct secret_binding *bound = facts_binding(gate_of(x)->policy, x->rule);
	if (canary_in_head(x, bound))
		return REASON_SECRET_MISPLACED;
	canary_body_begin(x, bound);
	if (v.n_pins && pinned_begin(&x->pinned, v.pins, v.n_pins) < 0)
		return REASON_NOT_PINNED;
	reason = budget_request(&gate_of(x)->budget, x->rule, time_monotonic_ns());
	if (reason == REASON_NONE)
		reason = charge_head(x, BUDGET_UP, head);
	return reason == REASON_NONE && rewrite(x, v.path) < 0 ? REASON_HTTP_MALFORMED : reason;
}

/* ---- beginning ---- */

static void kick_near(void *ctx)
{
	struct exchange *x = ctx;
	if (x->guest)
		guest_kick(x->guest);
}

static void kick_far(void *ctx)
{
	struct exchange *x = ctx;
	intercept_kick(x->it);
}

bool exchange_judge_again(struct exchange *x)
{
	struct request_verdict v;
	if (relay_reason(x->relay) != REASON_NONE)
		return false;
	judge(x, &x->head, &v);
	if (v.verdict.allow)
		return false;
	relay_refuse(x->relay, REASON_POLICY_CHANGED);
	kick_near(x);
	return true;
}

static void on_recorded(void *ctx)
{
	struct exchange *x = ctx;
	struct err err;
	x->ticket = NULL;
	if (relay_reason(x->relay) != REASON_NONE)
		return;
	if (relay_connect(x->relay, x->it->link_http, &x->head, kick_near, kick_far, x, &err) < 0)
		relay_refuse(x->relay, REASON_HTTP_MALFORMED);
	kick_near(x);
}

/* Nothing goes on before the record holds it. */
static void record(struct exchange *x)
{
	struct request_event e;
	fill_event(x, REASON_ALLOWED, true, &e);
	x->counted = true;
	if (recorder_request(gate_of(x)->recorder, &e, on_recorded, x, &x->ticket) < 0)
		relay_refuse(x->relay, REASON_RECORD_UNAVAILABLE);
}

void exchange_begin(struct guest *g, struct http_stream *s, const struct http_head *head, bool end)
{
	static const struct relay_ops ops = {
		.up_data = up_data, .up_end = up_end, .down_head = down_head, .down_data = down_data, .down_end = down_end,
		.on_refused = on_refused, .on_reason = on_reason, .on_over = on_over,
	};
	struct exchange *x = mem_alloc(sizeof(*x));
	*x = (struct exchange){ .guest = g, .it = g->it, .id = ++g->n_requests, .start_ns = time_monotonic_ns(), .end = end, .rule = -1,
		.body_secret = -1, .next = g->exchanges };
	if (x->next)
		x->next->prev = x;
	g->exchanges = x;
	http_head_init(&x->head);
	x->relay = relay_new(s, end, &ops, x);
	enum reason reason = http_head_copy(&x->head, head) < 0 ? REASON_HTTP_MALFORMED : g->upstream_gone ? REASON_SERVER_CLOSED : admit(x, head);
	if (reason == REASON_NONE)
		record(x);
	else
		relay_refuse(x->relay, reason);
}
