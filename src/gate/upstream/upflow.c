/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OPEN: a place that the box wants to reach, judged again, resolved, its addresses judged, dialled, and, with https, verified. The connection made then takes
 * the first request; later ones share it (HTTP/2), or use it in turn, or get others to the same addresses, verified alike.
 */
#include "gate/upstream/internal.h"

#include <stdio.h>

#include "base/mem.h"

static void pump(void *ctx);

/* ---- life ---- */

static struct upflow *upflow_new(struct upstream *u, struct http_stream *s)
{
	struct upflow *f = mem_alloc(sizeof(*f));
	*f = (struct upflow){ .u = u, .rule = -1, .next = u->first_flow };
	f->waiting_end = &f->waiting;
	if (f->next)
		f->next->prev = f;
	u->first_flow = f;
	link_enter(u, &f->entry, LINK_FLOW, s);
	return f;
}

/* Its exchanges were refused, or the front half gave them up. */
static void upflow_free(struct upflow *f)
{
	struct upstream *u = f->u;
	found_finish(f);
	while (f->exchanges)
		exchange_drop_flow(f->exchanges);
	while (f->origins)
		origin_free(f->origins);
	resolver_cancel(f->lookup);
	loop_defer_cancel(u->loop, pump, f);
	link_leave(u, &f->entry);
	if (f->by_id.key)
		table_remove(&u->flows, &f->by_id);
	if (f->prev)
		f->prev->next = f->next;
	else
		u->first_flow = f->next;
	if (f->next)
		f->next->prev = f->prev;
	trust_release(f->trust);
	mem_free(f);
}

struct upflow *upflow_of_entry(struct link_entry *e) { return CONTAINER_OF(e, struct upflow, entry); }

struct upflow *upflow_find(struct upstream *u, uint64_t id)
{
	struct table_node *node = id ? table_get(&u->flows, id) : NULL;
	struct upflow *f = node ? CONTAINER_OF(node, struct upflow, by_id) : NULL;
	return f && f->answered ? f : NULL;
}

static void refuse_exchanges(struct upflow *f, enum reason reason, const char *detail)
{
	for (struct exchange *x = f->exchanges, *next; x; x = next) {
		next = exchange_next(x);
		exchange_refuse(x, reason, detail);
	}
}

void upflow_gone(struct upflow *f)
{
	refuse_exchanges(f, REASON_CLIENT_CLOSED, NULL);
	upflow_free(f);
}

/* The stream says why when nothing was said yet; else it is reset, so that it can't be taken for an orderly end. */
static void end_stream(struct upflow *f, enum reason reason, const char *detail)
{
	struct http_stream *s = f->entry.stream;
	struct err err;
	if (f->answered) {
		http_stream_reset(s, HTTP_CANCELLED);
		return;
	}
	struct http_head head;
	http_head_init(&head);
	link_refusal(&head, reason, detail);
	if (http_stream_send_head(s, &head, true, &err) < 0)
		http_stream_reset(s, HTTP_CANCELLED);
	http_head_free(&head);
}

static void end(struct upflow *f, enum reason reason, const char *detail)
{
	struct upstream *u = f->u;
	refuse_exchanges(f, reason, detail);
	end_stream(f, reason, detail);
	upflow_free(f);
	if (u->link)
		channel_kick(u->link);
}

void upflow_cut(struct upflow *f, enum reason reason) { end(f, reason, NULL); }

/* ---- opening ---- */

static enum reason keep_target(struct upflow *f, const struct http_head *head)
{
	uint64_t id;
	if (!link_flow_id(head, &id) || id == 0 || !table_put(&f->u->flows, &f->by_id, id))
		return REASON_PROXY_MALFORMED;
	if (head->authority.len == 0 || head->authority.len > UPFLOW_AUTHORITY_MAX)
		return REASON_BAD_NAME;
	memcpy(f->authority, head->authority.p, head->authority.len);
	f->tls = http_text_equal(head->scheme, "https");
	if (!f->tls && !http_text_equal(head->scheme, "http"))
		return REASON_PROXY_MALFORMED;
	return target_from_authority(head->authority.p, head->authority.len, 0, &f->target);
}

static void name_host(struct upflow *f)
{
	bool brackets = f->target.literal && f->target.ip.family == AF_INET6, own_port = f->target.port == (f->tls ? 443 : 80);
	int n = snprintf(f->host, sizeof(f->host), brackets ? "[%s]" : "%s", f->target.text);
	if (!own_port)
		snprintf(f->host + n, sizeof(f->host) - (size_t)n, ":%u", f->target.port);
}

static bool list_has(struct http_text list, const char *item)
{
	size_t n = strlen(item);
	for (const char *p = list.p, *stop = list.p + list.len; p < stop;) {
		const char *comma = memchr(p, ',', (size_t)(stop - p));
		size_t len = (size_t)((comma ? comma : stop) - p);
		if (len == n && memcmp(p, item, n) == 0)
			return true;
		p += len + 1;
	}
	return false;
}

static void keep_alpn(struct upflow *f, const struct http_head *head)
{
	const struct http_field *alpn = http_head_get(head, LINK_FIELD_ALPN);
	f->h2 = f->tls && alpn && list_has(alpn->value, "h2");
}

/* Those of the addresses that may be dialled. The first refusal is told when there are none. */
static struct verdict keep_addresses(struct upflow *f, const struct ip *addresses, size_t n)
{
	struct verdict refused = { .reason = REASON_RESOLVE_FAILED, .rule = f->rule };
	bool any = false;
	f->n_addresses = 0;
	for (size_t i = 0; i < n && f->n_addresses < DIAL_ADDRESSES_MAX; i++) {
		struct verdict v = verdict_dial(&f->u->facts, f->rule, &addresses[i]);
		if (v.allow)
			f->addresses[f->n_addresses++] = addresses[i];
		else if (!any)
			refused = v;
		any = true;
	}
	refused.allow = f->n_addresses > 0;
	return refused;
}

/* Ends the flow when nothing may be dialled. */
static void connect_first(struct upflow *f, const struct ip *addresses, size_t n)
{
	struct verdict v = keep_addresses(f, addresses, n);
	if (v.allow)
		origin_new(f, false);
	else
		end(f, v.reason, NULL);
}

static void on_resolved(void *ctx, const struct resolver_answer *answer)
{
	struct upflow *f = ctx;
	f->lookup = NULL;
	connect_first(f, answer->addresses, answer->n);
}

static void resolve(struct upflow *f)
{
	struct resolver_answer answer = { .addresses = { f->target.ip }, .n = 1 };
	if (f->target.literal || resolver_lookup(f->u->resolver, &f->target.name, on_resolved, f, &answer, &f->lookup) == 1)
		connect_first(f, answer.addresses, answer.n);
}

void upflow_open(struct upstream *u, struct http_stream *s, const struct http_head *head)
{
	struct upflow *f = upflow_new(u, s);
	struct err err = ERR_INIT;
	enum reason reason = keep_target(f, head);
	struct verdict v = { .reason = reason };
	if (reason == REASON_NONE)
		v = verdict_place(u->policy, &f->target);
	if (!v.allow) {
		end(f, v.reason, NULL);
		return;
	}
	name_host(f);
	keep_alpn(f, head);
	f->rule = v.rule;
	f->trust = trust_for(u, &f->target, &err);
	if (f->trust)
		resolve(f);
	else
		end(f, REASON_UPSTREAM_CERTIFICATE, err.text);
}

/* ---- connections ---- */

static void answer(struct upflow *f, struct origin *o)
{
	char address[IP_TEXT_MAX];
	const char *alpn = origin_is_h2(o) ? "h2" : "http/1.1";
	struct http_head head;
	struct err err;
	f->answered = true;
	f->h2 &= origin_is_h2(o);
	http_head_init(&head);
	head.status = 200;
	ip_format(origin_address(o), address);
	http_head_put(&head, LINK_FIELD_ALPN, alpn, strlen(alpn));
	http_head_put(&head, LINK_FIELD_ADDRESS, address, strlen(address));
	if (http_stream_send_head(f->entry.stream, &head, false, &err) < 0)
		http_stream_reset(f->entry.stream, HTTP_CANCELLED);
	http_head_free(&head);
	channel_kick(f->u->link);
}

void upflow_connected(struct upflow *f, struct origin *o)
{
	if (!f->answered)
		answer(f, o);
	pump(f);
}

void upflow_origin_lost(struct upflow *f, struct origin *o, enum reason why, const char *detail)
{
	origin_free(o);
	if (!f->answered) {
		end(f, why, detail);
		return;
	}
	/* A connection that failed to come into being answers for the request that waited longest; others may still get one. */
	if (why != REASON_NONE && f->waiting) {
		struct exchange *x = f->waiting;
		upflow_unwait(f, x);
		exchange_refuse(x, why, detail);
	}
	upflow_pump_later(f);
}

/* ---- requests that wait for a connection ---- */

uint64_t upflow_secrets(const struct upflow *f)
{
	const struct policy *p = f->u->policy;
	const struct gate_target *t = &f->target;
	uint64_t bits = f->secrets_used;
	for (size_t i = 0; i < p->n_rules; i++) {
		const struct network_rule *rule = &p->rules[i];
		if (!rule->request || !rule->request->secret || !rule_opens(rule, t->literal ? NULL : &t->name, t->literal ? &t->ip : NULL, t->port))
			continue;
		int id = vault_find(f->u->vault, rule->request->secret->name);
		bits |= id >= 0 ? UINT64_C(1) << id : 0;
	}
	return bits;
}

void upflow_wait(struct upflow *f, struct exchange *x)
{
	*exchange_waiting_link(x) = NULL;
	*f->waiting_end = x;
	f->waiting_end = exchange_waiting_link(x);
	upflow_pump_later(f);
}

void upflow_unwait(struct upflow *f, struct exchange *x)
{
	struct exchange **link = &f->waiting;
	while (*link && *link != x)
		link = exchange_waiting_link(*link);
	if (!*link)
		return;
	*link = *exchange_waiting_link(x);
	if (!*link)
		f->waiting_end = link;
}

void upflow_pump_later(struct upflow *f)
{
	if (f->pump_waits)
		return;
	f->pump_waits = true;
	loop_defer(f->u->loop, pump, f);
}

static struct origin *ready_for(struct upflow *f, struct exchange *x)
{
	struct origin *o = f->origins;
	while (o && !origin_ready(o, exchange_wants_http1(x)))
		o = origin_next(o);
	return o;
}

static unsigned count_connecting(const struct upflow *f)
{
	unsigned n = 0;
	for (struct origin *o = f->origins; o; o = origin_next(o))
		n += origin_connecting(o);
	return n;
}

/* An idle connection that the waiting can't use makes room for one that they can. */
static bool make_room(struct upflow *f)
{
	if (f->n_origins < UPFLOW_ORIGINS_MAX)
		return true;
	for (struct origin *o = f->origins; o; o = origin_next(o)) {
		if (origin_ready(o, false) && http_conn_streams(origin_http(o)) == 0) {
			origin_free(o);
			return true;
		}
	}
	return false;
}

/* One new connection for each that waits; over HTTP/2 one is enough for all of them. */
static void connect_more(struct upflow *f)
{
	unsigned connecting = count_connecting(f), wanted = 0;
	bool http1 = false;
	for (struct exchange *x = f->waiting; x; x = *exchange_waiting_link(x)) {
		http1 |= exchange_wants_http1(x);
		wanted++;
	}
	if (f->h2 && !http1 && wanted > 1)
		wanted = 1;
	while (connecting < wanted && make_room(f)) {
		origin_new(f, http1);
		connecting++;
	}
}

static void pump(void *ctx)
{
	struct upflow *f = ctx;
	f->pump_waits = false;
	for (struct exchange *x = f->waiting, *next; x; x = next) {
		struct origin *o = ready_for(f, x);
		next = *exchange_waiting_link(x);
		if (o) {
			upflow_unwait(f, x);
			exchange_connect(x, o);
		}
	}
	if (f->waiting)
		connect_more(f);
}

/* ---- another policy ---- */

static bool addresses_allowed(const struct upflow *f)
{
	for (size_t i = 0; i < f->n_addresses; i++)
		if (!verdict_dial(&f->u->facts, f->rule, &f->addresses[i]).allow)
			return false;
	return true;
}

bool upflow_rejudge(struct upflow *f)
{
	struct err err;
	struct verdict v = verdict_place(f->u->policy, &f->target);
	if (!v.allow)
		return false;
	f->rule = v.rule;
	trust_release(f->trust);
	f->trust = trust_for(f->u, &f->target, &err);
	return f->trust && addresses_allowed(f);
}
