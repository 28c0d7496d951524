/* SPDX-License-Identifier: Apache-2.0 */
/* A verdict on a request in words, and what a rule looks at. */
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "policy/explain.h"
#include "policy/rule-limit.h"

#define TARGET_SHOWN_MAX 1024
#define LISTED_MAX 4u

/* ---- a rule ---- */

static void put_list(struct buf *b, const char *what, char *const *texts, size_t n)
{
	buf_printf(b, "%s%s", what, n ? " " : "");
	for (size_t i = 0; i < n && i < LISTED_MAX; i++)
		buf_printf(b, "%s%s", i ? ", " : "", texts[i]);
	if (n > LISTED_MAX)
		buf_printf(b, " and %zu more", n - LISTED_MAX);
}

static void put_fields(struct buf *b, const char *what, const struct field_rule *fields, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char shown[128];
		buf_printf(b, "%s%s=%s", i ? ", " : what, fields[i].name,
			text_escape(fields[i].pattern, strlen(fields[i].pattern), shown, sizeof(shown)));
	}
}

static void put_registry(struct buf *b, const struct request_rule *q)
{
	buf_printf(b, "; %s registry%s%s, read only", registry_kind_name(q->registry), q->registry_base[0] ? " below " : "", q->registry_base);
	if (q->lock_file) {
		char shown[256];
		buf_printf(b, ", what %s pins (%zu digest%s)", text_escape(q->lock_file, strlen(q->lock_file), shown, sizeof(shown)), q->n_pins,
			q->n_pins == 1 ? "" : "s");
	}
	if (q->n_packages > 0)
		put_list(b, ", packages", q->packages, q->n_packages);
}

static void put_secret(struct buf *b, const struct secret_binding *s)
{
	static const char *const places[] = { [SECRET_IN_HEADER] = "the header ", [SECRET_IN_QUERY] = "the query's ", [SECRET_IN_BODY] = "the body" };
	buf_printf(b, "; secret %s in %s%s", s->name, places[s->place], s->field ? s->field : "");
}

static void put_request(struct buf *b, const struct request_rule *q)
{
	buf_printf(b, "inspected: ");
	if (q->n_methods > 0)
		put_list(b, "methods", q->methods, q->n_methods);
	else
		buf_printf(b, q->git || q->registry != REGISTRY_NONE ? "the protocol's methods" : "any method");
	if (q->n_paths > 0)
		put_list(b, "; paths", q->paths, q->n_paths);
	put_fields(b, "; query ", q->query, q->n_query);
	put_fields(b, "; headers ", q->headers, q->n_headers);
	if (q->registry != REGISTRY_NONE)
		put_registry(b, q);
	if (q->git)
		put_list(b, q->git->push ? "; git, fetch and push" : "; git, fetch only", q->git->repositories, q->git->n_repositories);
	if (q->secret)
		put_secret(b, q->secret);
	if (q->ca_file) {
		char shown[256];
		buf_printf(b, "; authorities of %s too", text_escape(q->ca_file, strlen(q->ca_file), shown, sizeof(shown)));
	}
}

static void put_limits(struct buf *b, const struct rule_limits *l)
{
	const char *between = b->len ? "; at most " : "at most ";
	for (size_t i = 0; i < RULE_LIMIT_KINDS; i++) {
		uint64_t v = rule_limit_get(l, &rule_limit_kinds[i]);
		char size[TEXT_SIZE_MAX];
		if (v == POLICY_UNLIMITED)
			continue;
		if (rule_limit_kinds[i].size)
			buf_printf(b, "%s%s %s", between, rule_limit_kinds[i].name, text_format_size(v, size));
		else
			buf_printf(b, "%s%s %llu", between, rule_limit_kinds[i].name, (unsigned long long)v);
		between = ", ";
	}
	if (l->rate_count != POLICY_UNLIMITED)
		buf_printf(b, "%srate %llu/%c", between, (unsigned long long)l->rate_count, rate_unit(l->rate_ns));
}

char *policy_describe_rule(const struct network_rule *r)
{
	struct buf b;
	buf_init(&b, EXPLAIN_MAX / 2);
	if (r->request)
		put_request(&b, r->request);
	if (r->limits)
		put_limits(&b, r->limits);
	return explain_take(&b);
}

/* ---- a verdict ---- */

struct asked { const char *method, *target, *host; uint16_t port; }; /* harmless text */

static void put_asked(struct buf *b, const struct asked *a)
{
	buf_printf(b, "%s %s of %s port %u", a->method, a->target, a->host, a->port);
}

static void put_allowed(struct buf *b, const struct policy *p, const struct request_verdict *v, const struct asked *a)
{
	const struct request_rule *q = p->rules[v->verdict.rule].request;
	buf_printf(b, "allowed: ");
	put_asked(b, a);
	buf_printf(b, ", by ");
	explain_put_rule(b, p, v->verdict.rule);
	buf_printf(b, ".\n");
	if (q && q->secret)
		buf_printf(b, "secret: %s is put in on the way out; the box sees a placeholder.\n", q->secret->name);
	if (v->n_pins > 0)
		buf_printf(b, "content: must have the digest that %s pins.\n", q ? q->lock_file : "the lock file");
	explain_put_after(b, &p->rules[v->verdict.rule]);
}

static void put_ask(struct buf *b, const struct network_rule *r, enum reason reason, const struct asked *a)
{
	const char *list = reason == REASON_METHOD_NOT_ALLOWED && r->request && r->request->n_methods ? "methods"
		: reason == REASON_PATH_NOT_ALLOWED && r->request && r->request->n_paths	       ? "paths"
												   : NULL;
	if (list)
		buf_printf(b, "to ask for it: add %s to the `%s` of that rule.\n", reason == REASON_METHOD_NOT_ALLOWED ? a->method : a->target, list);
}

static void put_denied(struct buf *b, const struct policy *p, const struct request_verdict *v, const struct asked *a)
{
	buf_printf(b, "denied (%s): ", reason_name(v->verdict.reason));
	put_asked(b, a);
	buf_printf(b, ": %s.\n", reason_text(v->verdict.reason));
	buf_printf(b, "nearest: ");
	explain_put_rule(b, p, v->verdict.rule);
	buf_printf(b, ".\n");
	put_ask(b, &p->rules[v->verdict.rule], v->verdict.reason, a);
}

/* No rule leads to the place: that is what has to be said, whatever was asked there. */
static bool is_about_place(const struct verdict *v)
{
	return !v->allow && (v->rule < 0 || v->reason == REASON_PORT_NOT_ALLOWED ||
		(v->reason >= REASON_BAD_NAME && v->reason <= REASON_ADDRESS_HOST));
}

char *policy_explain_request(const struct policy *p, const struct request_verdict *v, const char *host, uint16_t port, const char *method,
	const char *target)
{
	struct buf b;
	char shown_host[EXPLAIN_HOST_MAX], shown_method[64], shown_target[TARGET_SHOWN_MAX];
	if (is_about_place(&v->verdict))
		return policy_explain_verdict(p, &v->verdict, host, port);
	struct asked a = {
		.method = text_escape(method, strlen(method), shown_method, sizeof(shown_method)),
		.target = text_escape(target, strlen(target), shown_target, sizeof(shown_target)),
		.host = text_escape(host, strlen(host), shown_host, sizeof(shown_host)),
		.port = port,
	};
	buf_init(&b, EXPLAIN_MAX);
	if (v->verdict.allow)
		put_allowed(&b, p, v, &a);
	else
		put_denied(&b, p, v, &a);
	return explain_take(&b);
}
