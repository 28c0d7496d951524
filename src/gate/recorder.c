/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/recorder.h"

#include "audit/text.h"
#include "base/mem.h"

struct recorder {
	struct audit_client *client;
	struct recorder_ops ops;
	void *ctx;
	bool lost;
	struct loop_timer *tell_lost; /* the loss is told from the loop: it may be found out in the middle of a flow's step */
	struct err why;
	size_t pending;
	struct recorder_ticket *tickets;
};

/* One unanswered event. */
struct recorder_ticket {
	struct recorder *recorder;
	recorder_fn fn;
	void *ctx;
	struct recorder_ticket *prev, *next;
};

static struct recorder_ticket *ticket_new(struct recorder *r, recorder_fn fn, void *ctx)
{
	struct recorder_ticket *t = mem_alloc(sizeof(*t));
	*t = (struct recorder_ticket){ .recorder = r, .fn = fn, .ctx = ctx, .next = r->tickets };
	if (t->next)
		t->next->prev = t;
	r->tickets = t;
	r->pending++;
	return t;
}

static void ticket_free(struct recorder_ticket *t)
{
	if (t->prev)
		t->prev->next = t->next;
	else
		t->recorder->tickets = t->next;
	if (t->next)
		t->next->prev = t->prev;
	t->recorder->pending--;
	mem_free(t);
}

static void lose(struct recorder *r, const struct err *err)
{
	if (r->lost)
		return;
	r->lost = true;
	r->why = *err;
	loop_timer_set(r->tell_lost, 1, 0);
}

static void on_tell_lost(void *ctx)
{
	struct recorder *r = ctx;
	r->ops.on_lost(r->ctx, &r->why);
}

static void on_audit_lost(void *ctx, const struct err *err) { lose(ctx, err); }

static void on_answer(void *ctx, uint64_t seq, const struct err *err)
{
	struct recorder_ticket *t = ctx;
	struct recorder *r = t->recorder;
	recorder_fn fn = t->fn;
	void *fn_ctx = t->ctx;
	if (err) {
		lose(r, err); /* whoever waits for the ticket still knows it: it goes with the recorder */
		return;
	}
	ticket_free(t);
	if (fn)
		fn(fn_ctx);
	if (r->pending == 0 && !r->lost)
		r->ops.on_idle(r->ctx);
}

static int send_event(struct recorder *r, enum audit_type type, json_t *fields, recorder_fn fn, void *ctx,
	struct recorder_ticket **ret_ticket)
{
	if (r->lost) {
		json_decref(fields);
		return -1;
	}
	struct recorder_ticket *t = ticket_new(r, fn, ctx);
	struct err err = ERR_INIT;
	if (audit_client_send(r->client, type, fields, NULL, 0, on_answer, t, &err) == 0) {
		if (ret_ticket)
			*ret_ticket = t;
		return 0;
	}
	ticket_free(t);
	lose(r, &err);
	return -1;
}

struct recorder *recorder_new(struct loop *loop, int audit_fd, const struct recorder_ops *ops, void *ctx)
{
	struct recorder *r = mem_alloc(sizeof(*r));
	r->ops = *ops;
	r->ctx = ctx;
	r->tell_lost = loop_timer_new(loop, on_tell_lost, r);
	r->client = audit_client_new(loop, audit_fd, on_audit_lost, r);
	return r;
}

struct recorder *recorder_free(struct recorder *r)
{
	if (!r)
		return NULL;
	audit_client_free(r->client);
	while (r->tickets)
		ticket_free(r->tickets);
	loop_timer_free(r->tell_lost);
	return mem_free(r);
}

struct recorder_ticket *recorder_forget(struct recorder_ticket *t)
{
	if (t)
		t->fn = NULL;
	return NULL;
}

bool recorder_lost(const struct recorder *r) { return r->lost; }
size_t recorder_pending(const struct recorder *r) { return r->pending; }

/* ---- events ---- */

static void put_text(json_t *o, const char *key, const char *value) { json_object_set_new(o, key, json_string(value)); }

static void put_number(json_t *o, const char *key, uint64_t value)
{
	json_object_set_new(o, key, json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value));
}

static void put_bool(json_t *o, const char *key, bool value) { json_object_set_new(o, key, json_boolean(value)); }

static void put_address(json_t *o, const struct ip *ip)
{
	char text[IP_TEXT_MAX];
	if (ip)
		put_text(o, "address", ip_format(ip, text));
}

static json_t *rule_json(const struct network_rule *rule)
{
	json_t *o = json_object();
	put_text(o, "host", rule->text);
	put_number(o, "line", rule->line);
	return o;
}

static void put_verdict(json_t *o, const struct verdict *v, const struct network_rule *rule)
{
	put_bool(o, "allow", v->allow);
	put_text(o, "reason", reason_name(v->reason));
	if (rule)
		json_object_set_new(o, "rule", rule_json(rule));
}

int recorder_egress(struct recorder *r, const struct egress_event *e, recorder_fn fn, void *ctx,
	struct recorder_ticket **ret_ticket)
{
	json_t *o = json_object();
	put_number(o, "flow", e->flow);
	put_text(o, "host", e->target->text);
	put_number(o, "port", e->target->port);
	put_address(o, e->address);
	put_text(o, "entrance", e->entrance);
	if (e->protocol)
		put_text(o, "protocol", e->protocol);
	if (e->verdict.allow)
		put_bool(o, "inspected", e->inspected);
	put_verdict(o, &e->verdict, e->rule);
	if (e->count > 1)
		put_number(o, "count", e->count);
	return send_event(r, AUDIT_EGRESS, o, fn, ctx, ret_ticket);
}

#define TEXT_RECORDED_MAX 2048u

static void put_bytes(json_t *o, const char *key, struct http_text t)
{
	size_t len = t.len < TEXT_RECORDED_MAX ? t.len : TEXT_RECORDED_MAX;
	json_object_set_new(o, key, audit_text_json(t.p, len));
}

int recorder_egress_end(struct recorder *r, const struct egress_end_event *e)
{
	json_t *o = json_object();
	put_number(o, "flow", e->flow);
	put_number(o, "bytes_up", e->bytes_up);
	put_number(o, "bytes_down", e->bytes_down);
	put_number(o, "duration_ns", e->duration_ns);
	put_text(o, "reason", reason_name(e->reason));
	put_address(o, e->address);
	if (e->protocol)
		put_text(o, "protocol", e->protocol);
	if (e->detail)
		put_bytes(o, "detail", (struct http_text){ e->detail, strlen(e->detail) });
	if (e->encrypted_hello)
		put_bool(o, "encrypted_hello", true);
	return send_event(r, AUDIT_EGRESS_END, o, NULL, NULL, NULL);
}

int recorder_request(struct recorder *r, const struct request_event *e, recorder_fn fn, void *ctx,
	struct recorder_ticket **ret_ticket)
{
	json_t *o = json_object();
	put_number(o, "flow", e->flow);
	put_number(o, "request", e->request);
	put_bytes(o, "method", e->method);
	put_text(o, "host", e->target->text);
	put_number(o, "port", e->target->port);
	put_bytes(o, "path", e->path);
	put_bool(o, "query", e->query);
	put_verdict(o, &e->verdict, e->rule);
	return send_event(r, AUDIT_REQUEST, o, fn, ctx, ret_ticket);
}

int recorder_request_end(struct recorder *r, const struct request_end_event *e)
{
	json_t *o = json_object();
	put_number(o, "flow", e->flow);
	put_number(o, "request", e->request);
	put_number(o, "status", e->status);
	put_number(o, "bytes_up", e->bytes_up);
	put_number(o, "bytes_down", e->bytes_down);
	put_number(o, "duration_ns", e->duration_ns);
	put_text(o, "reason", reason_name(e->reason));
	return send_event(r, AUDIT_REQUEST_END, o, NULL, NULL, NULL);
}

int recorder_canary(struct recorder *r, const struct canary_event *e)
{
	json_t *o = json_object();
	put_text(o, "secret", e->secret);
	put_number(o, "flow", e->flow);
	put_text(o, "host", e->target->text);
	put_number(o, "port", e->target->port);
	put_text(o, "where", e->where);
	put_text(o, "spelling", e->spelling);
	put_text(o, "action", e->action);
	return send_event(r, AUDIT_CANARY, o, NULL, NULL, NULL);
}

int recorder_name(struct recorder *r, const struct name_event *e)
{
	json_t *o = json_object();
	put_text(o, "name", e->name);
	put_bool(o, "allow", e->allow);
	put_text(o, "reason", reason_name(e->reason));
	put_number(o, "count", e->count);
	if (e->distinct) {
		put_number(o, "distinct", e->distinct);
		put_number(o, "bytes", e->bytes);
	}
	return send_event(r, AUDIT_NAME, o, NULL, NULL, NULL);
}

int recorder_send(struct recorder *r, enum audit_type type, json_t *fields, recorder_fn fn, void *ctx, struct recorder_ticket **ret_ticket)
{
	return send_event(r, type, fields, fn, ctx, ret_ticket);
}
