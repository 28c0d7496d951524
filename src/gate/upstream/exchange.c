/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request and its answer.
 *
 *   begin → judge ─► (gather: a small body that a secret goes into) ─► look ─► value ─► record ─► connection ─► put in, send
 *                     └ refuse                                          └ nothing to put in ─────────┘
 * The head that was judged is kept as it came; the one with the value in it lives only while it is handed to the connection.
 */
#include "gate/upstream/internal.h"

#include "base/mem.h"
#include "gate/facts.h"
#include "gate/upstream/inject.h"
#include "gate/upstream/swap.h"

/* What of a rule's binding an exchange needs, on its own: the policy may change meanwhile. */
struct binding {
	bool bound;
	unsigned secret;
	struct secret_binding how;    /* its texts are our own; name stays NULL */
};

struct exchange {
	struct upstream *u;
	struct upflow *flow;          /* NULL: gone */
	struct exchange *prev, *next; /* of the flow */
	struct exchange *next_waiting;
	struct relay *relay;          /* NULL while gathering */
	struct link_entry entry;      /* while gathering */
	struct http_head head;        /* as judged; never with a secret in it */
	bool has_body, upgrade, inject, retried, reused, heard, whole;
	struct binding binding;
	struct buf gathered;
	bool has_trailers;
	struct http_head trailers;
	size_t placeholders;          /* in the gathered body */
	struct vault_wait *wait;
	struct vault_value *value;
	struct recorder_ticket *ticket;
	struct origin *origin;
	struct swap *swap;
	struct answer answer;
	char *detail;                 /* a sentence about a refusal */
};

static const struct relay_ops relay_ops, plain_ops;

/* ---- life ---- */

static void on_found(void *ctx, unsigned secret, const char *spelling, const char *where)
{
	struct exchange *x = ctx;
	if (x->flow)
		found_note(x->flow, secret, spelling, where);
}

static struct exchange *exchange_new(struct upstream *u, const struct http_head *head, bool end)
{
	struct exchange *x = mem_alloc(sizeof(*x));
	*x = (struct exchange){ .u = u, .has_body = !end, .upgrade = head->protocol.len > 0 };
	http_head_init(&x->head);
	http_head_init(&x->trailers);
	buf_init(&x->gathered, GATHER_MAX);
	answer_init(&x->answer, u->vault, on_found, x);
	x->answer.head_request = http_text_equal(head->method, "HEAD");
	x->answer.upgrade = x->upgrade;
	return x;
}

static void join_flow(struct exchange *x, struct upflow *f)
{
	x->flow = f;
	x->next = f->exchanges;
	if (x->next)
		x->next->prev = x;
	f->exchanges = x;
}

/* Nothing that it waited for comes to it any more. */
static void stop_waiting(struct exchange *x)
{
	x->wait = vault_drop(x->wait);
	x->ticket = recorder_forget(x->ticket);
	if (x->flow)
		upflow_unwait(x->flow, x);
}

static void drop_value(struct exchange *x) { x->value = vault_release(x->value); }

void exchange_drop_flow(struct exchange *x)
{
	struct upflow *f = x->flow;
	stop_waiting(x);
	if (x->prev)
		x->prev->next = x->next;
	else
		f->exchanges = x->next;
	if (x->next)
		x->next->prev = x->prev;
	x->prev = x->next = NULL;
	x->flow = NULL;
}

static void binding_done(struct binding *b)
{
	mem_free(b->how.field);
	mem_free(b->how.value);
	*b = (struct binding){ 0 };
}

static void exchange_free(struct exchange *x)
{
	if (x->flow)
		exchange_drop_flow(x);
	link_leave(x->u, &x->entry);
	drop_value(x);
	swap_free(x->swap);
	answer_done(&x->answer);
	binding_done(&x->binding);
	buf_wipe_free(&x->gathered);
	http_head_free(&x->head);
	http_head_free(&x->trailers);
	mem_free(x->detail);
	mem_free(x);
}

struct exchange *exchange_of_entry(struct link_entry *e) { return CONTAINER_OF(e, struct exchange, entry); }
struct exchange *exchange_next(const struct exchange *x) { return x->next; }
struct exchange **exchange_waiting_link(struct exchange *x) { return &x->next_waiting; }
bool exchange_wants_http1(const struct exchange *x) { return x->upgrade; }

static void kick_near(void *ctx)
{
	struct exchange *x = ctx;
	if (x->u->link)
		channel_kick(x->u->link);
}

static void kick_far(void *ctx)
{
	struct exchange *x = ctx;
	if (x->origin)
		origin_kick(x->origin);
}

/* The stream becomes a relay's: from here on its callbacks go there. */
static void make_relay(struct exchange *x, struct http_stream *s)
{
	link_leave(x->u, &x->entry);
	x->relay = relay_new(s, !x->has_body, vault_count(x->u->vault) ? &relay_ops : &plain_ops, x);
}

void exchange_refuse(struct exchange *x, enum reason reason, const char *detail)
{
	stop_waiting(x);
	drop_value(x);
	if (detail && !x->detail)
		x->detail = mem_strdup(detail);
	if (!x->relay)
		make_relay(x, x->entry.stream);
	relay_refuse(x->relay, reason);
	kick_near(x);
}

/* ---- judging ---- */

static struct verdict judge(const struct exchange *x, const struct http_head *head, struct request_path *path)
{
	static struct request_field fields[HTTP_FIELDS_MAX];
	struct request_verdict v = { .path = path };
	struct request_facts facts;
	facts_fill(&facts, fields, &x->flow->target, head, x->flow->tls);
	policy_decide_request(x->u->policy, &facts, &v);
	return v.verdict;
}

/* What the server sees is what was judged. */
static int use_path(struct exchange *x, const struct request_path *path)
{
	if (!path->path[0])
		return 0;
	char *whole = mem_printf("%s%s%s", path->path, path->has_query ? "?" : "", path->has_query ? path->query : "");
	int r = http_head_set(&x->head, &x->head.path, whole, strlen(whole));
	mem_free(whole);
	return r;
}

static enum reason keep_binding(struct exchange *x, const struct secret_binding *how)
{
	int id = vault_find(x->u->vault, how->name);
	if (!x->flow->tls)
		return REASON_SECRET_NEEDS_TLS;
	if (id < 0) {
		x->detail = mem_printf("the secret %s was not granted to this sandbox", how->name);
		return REASON_SECRET_UNAVAILABLE;
	}
	x->binding = (struct binding){ .bound = true, .secret = (unsigned)id };
	x->binding.how = (struct secret_binding){ .place = how->place, .field = mem_strdup(how->field), .value = mem_strdup(how->value) };
	return REASON_NONE;
}

static enum reason judge_first(struct exchange *x)
{
	struct request_path *path = mem_alloc(sizeof(*path));
	struct verdict v = judge(x, &x->head, path);
	enum reason reason = v.allow ? REASON_NONE : v.reason;
	/* The server may have kept the value, and nothing here would know it any more in an answer. */
	if (reason == REASON_NONE && upflow_secrets(x->flow) & vault_revoked(x->u->vault))
		reason = REASON_SECRET_UNAVAILABLE;
	if (reason == REASON_NONE && use_path(x, path) < 0)
		reason = REASON_HTTP_MALFORMED;
	const struct secret_binding *how = reason == REASON_NONE ? facts_binding(x->u->policy, v.rule) : NULL;
	if (how)
		reason = keep_binding(x, how);
	mem_free(path);
	return reason;
}

static bool same_text(const char *a, const char *b) { return a && b ? str_eq(a, b) : a == b; }

/* A request that still waits must go out by the rule of now; one that is out needs only to be allowed still. */
static bool binding_holds(const struct exchange *x, const struct secret_binding *now)
{
	const struct binding *b = &x->binding;
	if (x->relay && relay_connected(x->relay))
		return true;
	if (!now || !b->bound)
		return !now && !b->bound;
	return str_eq(now->name, vault_name(x->u->vault, b->secret)) && now->place == b->how.place && same_text(now->field, b->how.field) &&
		same_text(now->value, b->how.value);
}

bool exchange_rejudge(struct exchange *x)
{
	struct request_path *path = mem_alloc(sizeof(*path));
	struct verdict v = judge(x, &x->head, path);
	mem_free(path);
	return v.allow && binding_holds(x, facts_binding(x->u->policy, v.rule));
}

/* ---- sending ---- */

static void need_connection(struct exchange *x) { upflow_wait(x->flow, x); }

static void mark_sensitive(struct http_head *head, const char *name)
{
	for (size_t i = 0; i < head->n_fields; i++)
		if (http_text_equal(head->fields[i].name, name))
			head->fields[i].sensitive = true;
}

static int inject_body(struct exchange *x, struct http_head *head, const uint8_t *value, size_t len)
{
	x->swap = swap_new(vault_placeholder(x->u->vault, x->binding.secret), value, len, head);
	if (!x->swap)
		return -1;
	head->has_length = x->gathered.len > 0;
	head->length = head->has_length ? swap_length(x->swap, x->gathered.len, x->placeholders) : 0;
	return 0;
}

/* The value goes into the copy that is about to be sent. False: refused. */
static bool inject(struct exchange *x, struct http_head *head)
{
	size_t len;
	const uint8_t *value = x->value ? vault_bytes(x->value, &len) : NULL;
	const struct secret_binding *how = &x->binding.how;
	if (!value || !x->flow->tls) {
		exchange_refuse(x, REASON_SECRET_UNAVAILABLE, "the secret was revoked while the request waited");
		return false;
	}
	int r = how->place == SECRET_IN_BODY ? inject_body(x, head, value, len) :
					       inject_put(how, vault_placeholder(x->u->vault, x->binding.secret), value, len, head);
	if (r < 0) {
		exchange_refuse(x, REASON_SECRET_UNAVAILABLE, "the secret doesn't fit into the request");
		return false;
	}
	if (how->place == SECRET_IN_HEADER)
		mark_sensitive(head, how->field);
	x->flow->secrets_used |= 1ull << x->binding.secret;
	return true;
}

/* The bytes that were gathered go the way that they would have gone. */
static void give_gathered(struct exchange *x, struct http_stream *s)
{
	struct buf body = x->gathered;
	buf_init(&x->gathered, GATHER_MAX);
	if (body.len)
		relay_near_data(NULL, s, body.data, body.len);
	relay_near_end(NULL, s, x->has_trailers ? &x->trailers : NULL);
	buf_wipe_free(&body);
}

static void send_head(struct exchange *x, const struct http_head *head)
{
	struct http_stream *gathered = x->relay ? NULL : x->entry.stream;
	struct err err = ERR_INIT;
	if (gathered) {
		make_relay(x, gathered);
		give_gathered(x, gathered);
	}
	origin_begin(x->origin, x->upgrade);
	if (relay_connect(x->relay, origin_http(x->origin), head, kick_near, kick_far, x, &err) < 0) {
		exchange_detach(x);
		exchange_refuse(x, REASON_UPSTREAM_PROTOCOL, err.text);
		return;
	}
	kick_near(x);
}

/* Of an answer that may hold a secret no part by itself: pieces of a secret can't be recognised. */
static void ask_for_the_whole(struct exchange *x, struct http_head *head)
{
	x->whole = x->inject || upflow_secrets(x->flow);
	if (!x->whole)
		return;
	http_head_remove(head, "range");
	http_head_remove(head, "if-range");
}

void exchange_connect(struct exchange *x, struct origin *o)
{
	struct http_head head;
	x->reused = origin_used(o);
	x->origin = o;
	http_head_init(&head);
	int r = http_head_copy(&head, &x->head) | http_head_set(&head, &head.authority, x->flow->host, strlen(x->flow->host));
	ask_for_the_whole(x, &head);
	if (r < 0 || answer_prepare(x->u->vault, &head) < 0) {
		exchange_detach(x);
		exchange_refuse(x, REASON_HTTP_MALFORMED, "the request's head is too large");
	} else if (!x->inject || inject(x, &head)) {
		send_head(x, &head);
	} else {
		exchange_detach(x);
	}
	http_head_free(&head); /* wipes */
}

void exchange_detach(struct exchange *x) { x->origin = NULL; }

static bool is_safe(const struct http_head *head)
{
	static const char *const safe[] = { "GET", "HEAD", "OPTIONS", "TRACE" };
	for (size_t i = 0; i < ARRAY_LEN(safe); i++)
		if (http_text_equal(head->method, safe[i]))
			return true;
	return false;
}

/* A kept-alive connection may end in the very moment in which we use it; a server may say that it didn't look at the request. */
bool exchange_may_retry(const struct exchange *x, enum http_fault fault)
{
	if (x->retried || x->heard || x->has_body || x->upgrade || !x->flow || relay_reason(x->relay) != REASON_NONE)
		return false;
	return fault == HTTP_REFUSED || (x->reused && is_safe(&x->head) && (fault == HTTP_TRUNCATED || fault == HTTP_CANCELLED));
}

void exchange_retry(struct exchange *x)
{
	x->retried = true;
	need_connection(x);
}

/* ---- the value and the record ---- */

static void on_recorded(void *ctx)
{
	struct exchange *x = ctx;
	x->ticket = NULL;
	need_connection(x);
}

/* Nothing outruns the record: the request goes on when the auditor has written it. */
static void record_use(struct exchange *x)
{
	char place[INJECT_PLACE_MAX];
	json_t *o = json_object();
	json_object_set_new(o, "secret", json_string(vault_name(x->u->vault, x->binding.secret)));
	json_object_set_new(o, "generation", json_integer((json_int_t)(vault_generation(x->value) & INT64_MAX)));
	json_object_set_new(o, "flow", json_integer((json_int_t)(x->flow->by_id.key & INT64_MAX)));
	json_object_set_new(o, "host", json_string(x->flow->target.text));
	json_object_set_new(o, "place", json_string(inject_place(&x->binding.how, place)));
	if (recorder_send(x->u->recorder, AUDIT_SECRET_USE, o, on_recorded, x, &x->ticket) < 0)
		exchange_refuse(x, REASON_RECORD_UNAVAILABLE, NULL);
}

static void on_value(void *ctx, struct vault_value *value, const char *why)
{
	struct exchange *x = ctx;
	x->wait = NULL;
	x->value = value;
	if (value)
		record_use(x);
	else
		exchange_refuse(x, REASON_SECRET_UNAVAILABLE, why);
}

static void need_value(struct exchange *x)
{
	x->inject = true;
	x->value = vault_want(x->u->vault, x->binding.secret, on_value, x, &x->wait);
	if (x->value)
		record_use(x);
}

static void prepare(struct exchange *x)
{
	if (!x->binding.bound || (x->binding.how.place == SECRET_IN_BODY && !x->has_body)) {
		need_connection(x);
		return;
	}
	if (x->binding.how.place == SECRET_IN_BODY) {
		need_value(x); /* the placeholder may come anywhere in it */
		return;
	}
	switch (inject_look(&x->binding.how, vault_placeholder(x->u->vault, x->binding.secret), &x->head)) {
	case INJECT_NOTHING:
		need_connection(x);
		break;
	case INJECT_HERE:
		need_value(x);
		break;
	case INJECT_FOREIGN:
		exchange_refuse(x, REASON_FOREIGN_CREDENTIAL, NULL);
		break;
	}
}

/* ---- gathering a body ---- */

static bool should_gather(const struct exchange *x)
{
	return x->binding.bound && x->binding.how.place == SECRET_IN_BODY && x->has_body && x->head.has_length && x->head.length > 0 &&
		x->head.length <= GATHER_MAX;
}

/* Who waits to be asked for the body is asked by us: the server hears of the request only when the body is here. */
static void ask_for_body(struct exchange *x, struct http_stream *s)
{
	struct http_head interim;
	struct err err;
	if (!http_head_get(&x->head, "expect"))
		return;
	http_head_remove(&x->head, "expect");
	http_head_init(&interim);
	interim.status = 100;
	http_stream_send_head(s, &interim, false, &err);
	http_head_free(&interim);
}

static void gather(struct exchange *x, struct http_stream *s)
{
	link_enter(x->u, &x->entry, LINK_EXCHANGE, s);
	ask_for_body(x, s);
}

void exchange_gather_data(struct exchange *x, const uint8_t *p, size_t len)
{
	/* Not credited: it counts against the stream's window until it is passed on. */
	if (buf_append(&x->gathered, p, len) < 0)
		exchange_refuse(x, REASON_HTTP_MALFORMED, "the body is longer than was said");
}

void exchange_gather_end(struct exchange *x, const struct http_head *trailers)
{
	const char *placeholder = vault_placeholder(x->u->vault, x->binding.secret);
	x->has_trailers = trailers && http_head_copy(&x->trailers, trailers) == 0;
	x->placeholders = swap_count(placeholder, x->gathered.data, x->gathered.len);
	if (x->placeholders)
		need_value(x);
	else
		need_connection(x);
}

void exchange_gather_close(struct exchange *x) { exchange_free(x); }

/* ---- beginning ---- */

/* Which flow it says it belongs to, and whether it says the same place. */
static enum reason find_flow(struct exchange *x, const struct http_head *head)
{
	uint64_t id;
	struct upflow *f = link_flow_id(head, &id) ? upflow_find(x->u, id) : NULL;
	if (!f)
		return REASON_CONNECT_FAILED;
	if (!http_text_equal(head->authority, f->authority) || !http_text_equal(head->scheme, f->tls ? "https" : "http"))
		return REASON_HTTP_HOST_MISMATCH;
	join_flow(x, f);
	return REASON_NONE;
}

void exchange_begin(struct upstream *u, struct http_stream *s, const struct http_head *head, bool end)
{
	struct exchange *x = exchange_new(u, head, end);
	enum reason reason = find_flow(x, head);
	if (reason == REASON_NONE && http_head_copy(&x->head, head) < 0)
		reason = REASON_HTTP_MALFORMED;
	if (reason == REASON_NONE)
		http_head_remove(&x->head, LINK_FIELD_FLOW);
	if (reason == REASON_NONE)
		reason = judge_first(x);
	if (reason == REASON_NONE && should_gather(x)) {
		gather(x, s);
		return;
	}
	make_relay(x, s);
	if (reason == REASON_NONE)
		prepare(x);
	else
		exchange_refuse(x, reason, x->flow ? NULL : "the connection is closed");
}

/* ---- the relay's filters ---- */

static enum reason up_data(void *ctx, const uint8_t *p, size_t len, struct buf *out)
{
	struct exchange *x = ctx;
	int r = x->swap ? swap_feed(x->swap, p, len, out) : buf_append(out, p, len);
	return r < 0 ? REASON_HTTP_MALFORMED : REASON_NONE;
}

static enum reason up_end(void *ctx, struct buf *out, struct http_head *trailers)
{
	struct exchange *x = ctx;
	if (trailers)
		answer_strip(trailers);
	return x->swap && swap_end(x->swap, out) < 0 ? REASON_HTTP_MALFORMED : REASON_NONE;
}

static enum reason down_head(void *ctx, struct http_head *head)
{
	struct exchange *x = ctx;
	x->heard = true;
	drop_value(x); /* no second try any more */
	/* There are other fields than "range" by which to ask for one (x-ms-range). */
	if (x->whole && head->status == 206) {
		x->answer.why = "the server sent a part of an answer that may hold a secret, though the whole was asked for";
		return REASON_RESPONSE_UNREADABLE;
	}
	return answer_head(&x->answer, head);
}

static enum reason down_data(void *ctx, const uint8_t *p, size_t len, struct buf *out)
{
	struct exchange *x = ctx;
	return answer_data(&x->answer, p, len, out);
}

static enum reason down_more(void *ctx, struct buf *out, bool *ret_waiting)
{
	struct exchange *x = ctx;
	return answer_more(&x->answer, out, ret_waiting);
}

static enum reason down_end(void *ctx, struct buf *out, struct http_head *trailers)
{
	struct exchange *x = ctx;
	return answer_end(&x->answer, out, trailers);
}

static void on_refused(void *ctx, enum reason reason, struct http_head *head, struct buf *body)
{
	struct exchange *x = ctx;
	link_refusal(head, reason, x->detail ? x->detail : x->answer.why);
}

static void on_over(void *ctx, enum reason reason)
{
	struct exchange *x = ctx;
	if (x->flow)
		upflow_pump_later(x->flow);
	exchange_free(x);
}

static const struct relay_ops relay_ops = {
	.up_data = up_data, .up_end = up_end, .down_head = down_head, .down_data = down_data, .down_more = down_more, .down_end = down_end,
	.on_refused = on_refused, .on_over = on_over,
};

/* A sandbox without secrets: bytes of bodies need no look. */
static const struct relay_ops plain_ops = {
	.up_end = up_end, .down_head = down_head, .down_end = down_end, .on_refused = on_refused, .on_over = on_over,
};
