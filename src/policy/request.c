/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict on one request: each rule that leads to the place is asked in turn, the first that allows wins. */
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "policy/path.h"
#include "policy/query.h"
#include "policy/registry.h"
#include "policy/request-rule.h"
#include "policy/rule.h"

/* ---- what was asked, in the forms in which rules look at it ---- */

enum form { FORM_RAW, FORM_NORMAL, FORM_NPM };

struct question {
	const struct request_facts *facts;
	const char *method;
	size_t method_len;
	enum form form;           /* of `path` */
	bool parsed;
	enum reason path_reason;
	struct request_path *path;
	const struct pin *pins;
	size_t n_pins;
};

static enum form form_for(const struct request_rule *q)
{
	if (!request_judges_path(q))
		return FORM_RAW;
	return q->registry == REGISTRY_NPM ? FORM_NPM : FORM_NORMAL;
}

/* Most requests meet rules of one form, and are read once. */
static enum reason take_path(struct question *q, enum form form)
{
	if (q->parsed && q->form == form)
		return q->path_reason;
	q->parsed = true;
	q->form = form;
	if (form == FORM_RAW)
		q->path_reason = request_path_raw(q->facts->target, q->facts->target_len, q->path);
	else
		q->path_reason = request_path_parse(q->facts->target, q->facts->target_len, form == FORM_NPM, q->path);
	if (form == FORM_NPM && !npm_slashes_clear(q->path->path))
		q->path_reason = REASON_PATH_AMBIGUOUS;
	return q->path_reason;
}

static bool method_is(const struct question *q, const char *method)
{
	return q->method_len == strlen(method) && memcmp(q->method, method, q->method_len) == 0;
}

static bool lists_method(const struct request_rule *r, const char *method, size_t len)
{
	for (size_t i = 0; i < r->n_methods; i++)
		if (strlen(r->methods[i]) == len && memcmp(r->methods[i], method, len) == 0)
			return true;
	return false;
}

/* ---- fields ---- */

static char folded(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-';
}

/* The same to some server: case, and "_", "." or another mark for "-" (CGI and its heirs, PHP). */
static bool is_alike(const struct request_field *f, const char *name)
{
	size_t n = strlen(name);
	for (size_t i = 0; i < n && f->name_len == n; i++)
		if (folded(f->name[i]) != folded(name[i]))
			return false;
	return f->name_len == n;
}

static bool header_matches(const struct request_facts *facts, const struct field_rule *rule)
{
	const struct request_field *found = NULL;
	for (size_t i = 0; i < facts->n_fields; i++) {
		if (!is_alike(&facts->fields[i], rule->name))
			continue;
		if (found)
			return false;
		found = &facts->fields[i];
	}
	return found && strncasecmp(found->name, rule->name, found->name_len) == 0 &&
		text_glob_match(rule->pattern, found->value, found->value_len);
}

/* Fields by which a client makes some servers take another method than the one that was judged. */
static bool overrides_method(const struct request_rule *r, const struct request_facts *facts)
{
	static const char *const names[] = { "x-http-method-override", "x-http-method", "x-method-override" };
	for (size_t i = 0; i < facts->n_fields; i++)
		for (size_t k = 0; k < ARRAY_LEN(names); k++)
			if (is_alike(&facts->fields[i], names[k]) && !lists_method(r, facts->fields[i].value, facts->fields[i].value_len))
				return true;
	return false;
}

/* … and another path. */
static bool overrides_path(const struct request_facts *facts)
{
	static const char *const names[] = { "x-original-url", "x-rewrite-url", "x-original-uri", "x-override-url", "x-http-path-override",
		"x-forwarded-uri", "x-forwarded-path", "x-forwarded-prefix", "x-script-name", "x-envoy-original-path" };
	for (size_t i = 0; i < facts->n_fields; i++)
		for (size_t k = 0; k < ARRAY_LEN(names); k++)
			if (is_alike(&facts->fields[i], names[k]))
				return true;
	return false;
}

/* ---- one rule ---- */

static enum reason judge_method(const struct request_rule *r, const struct question *q)
{
	bool asterisk = str_eq(q->path->path, "*");
	if (asterisk && !method_is(q, "OPTIONS"))
		return REASON_PATH_AMBIGUOUS;
	if (r->n_methods > 0 && (!lists_method(r, q->method, q->method_len) || overrides_method(r, q->facts)))
		return REASON_METHOD_NOT_ALLOWED;
	/* The "_method" of a query is another's way to say the method. */
	if (r->n_methods > 0 && !query_methods_listed(q->path->query, r))
		return REASON_METHOD_NOT_ALLOWED;
	/* TRACE gives back what was sent: the secret. */
	return r->secret && method_is(q, "TRACE") ? REASON_METHOD_NOT_ALLOWED : REASON_NONE;
}

static enum reason judge_paths(const struct request_rule *r, const struct question *q)
{
	for (size_t i = 0; i < r->n_paths; i++)
		if (path_glob_match(r->paths[i], q->path->path))
			return REASON_NONE;
	return r->n_paths ? REASON_PATH_NOT_ALLOWED : REASON_NONE;
}

static enum reason judge_protocol(const struct request_rule *r, struct question *q)
{
	char path[REQUEST_PATH_MAX + 1];
	if (!r->git && r->registry == REGISTRY_NONE)
		return REASON_NONE;
	path_match_form(q->path->path, r->registry == REGISTRY_NPM, path);
	if (path[0] != '/')
		return REASON_PATH_NOT_ALLOWED;
	struct protocol_request asked = {
		.get = method_is(q, "GET"),
		.reads = method_is(q, "GET") || method_is(q, "HEAD"),
		.post = method_is(q, "POST"),
		.path = path,
		.query = q->path->query,
	};
	return r->git ? git_judge(r->git, &asked) : registry_judge(r, &asked, &q->pins, &q->n_pins);
}

static enum reason judge_fields(const struct request_rule *r, const struct question *q)
{
	for (size_t i = 0; i < r->n_query; i++)
		if (!query_matches(q->path->query, &r->query[i]))
			return REASON_QUERY_NOT_ALLOWED;
	for (size_t i = 0; i < r->n_headers; i++)
		if (!header_matches(q->facts, &r->headers[i]))
			return REASON_HEADER_NOT_ALLOWED;
	return request_judges_path(r) && overrides_path(q->facts) ? REASON_HEADER_NOT_ALLOWED : REASON_NONE;
}

static enum reason judge(const struct request_rule *r, struct question *q)
{
	q->pins = NULL;
	q->n_pins = 0;
	enum reason reason = take_path(q, form_for(r));
	if (reason != REASON_NONE || !r)
		return reason;
	reason = judge_method(r, q);
	if (reason == REASON_NONE)
		reason = judge_paths(r, q);
	if (reason == REASON_NONE)
		reason = judge_protocol(r, q);
	if (reason == REASON_NONE)
		reason = judge_fields(r, q);
	if (reason == REASON_NONE && r->secret && !q->facts->tls)
		reason = REASON_SECRET_NEEDS_TLS;
	return reason;
}

/* ---- all rules ---- */

/* The order in which a rule is asked: the further a request came, the nearer it was. */
static int nearness(enum reason reason)
{
	static const enum reason order[] = { REASON_PATH_AMBIGUOUS, REASON_METHOD_NOT_ALLOWED, REASON_PATH_NOT_ALLOWED, REASON_PACKAGE_NOT_ALLOWED,
		REASON_REPOSITORY_NOT_ALLOWED, REASON_PUSH_NOT_ALLOWED, REASON_NOT_PINNED, REASON_QUERY_NOT_ALLOWED, REASON_HEADER_NOT_ALLOWED,
		REASON_SECRET_NEEDS_TLS };
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		if (order[i] == reason)
			return (int)i;
	return -1;
}

static void clear_path(struct request_path *path)
{
	path->path[0] = path->query[0] = '\0';
	path->has_query = false;
}

static struct verdict place_verdict(const struct policy *p, const struct request_facts *facts)
{
	return facts->name ? policy_decide_name(p, facts->name, facts->port) : policy_decide_address(p, facts->ip, facts->port);
}

void policy_decide_request(const struct policy *p, const struct request_facts *facts, struct request_verdict *ret)
{
	struct question q = { .facts = facts, .method = facts->method, .method_len = facts->method_len, .path = ret->path };
	struct verdict nearest = { .reason = REASON_NONE, .rule = -1 };
	if (facts->upgrade) {
		q.method = "GET";
		q.method_len = 3;
	}
	ret->pins = NULL;
	ret->n_pins = 0;
	for (size_t i = 0; i < p->n_rules; i++) {
		if (!rule_opens(&p->rules[i], facts->name, facts->ip, facts->port))
			continue;
		enum reason reason = judge(p->rules[i].request, &q);
		if (reason == REASON_NONE) {
			ret->verdict = (struct verdict){ .allow = true, .reason = REASON_ALLOWED, .rule = (int)i };
			ret->pins = q.pins;
			ret->n_pins = q.n_pins;
			return;
		}
		if (nearest.rule < 0 || nearness(reason) > nearness(nearest.reason))
			nearest = (struct verdict){ .reason = reason, .rule = (int)i };
	}
	clear_path(ret->path);
	ret->verdict = nearest.rule < 0 ? place_verdict(p, facts) : nearest;
	ret->verdict.allow = false; /* no rule opened the place, so this is no change; said once more for safety */
}
