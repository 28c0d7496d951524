/* SPDX-License-Identifier: Apache-2.0 */
/* The request part of a rule in the canonical form, both ways. Values are taken by the same functions that the policy file uses. */
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "policy/canon.h"
#include "policy/lock.h"
#include "policy/pin.h"
#include "policy/request-rule.h"
#include "policy/rule-limit.h"

static const char *const places[] = { [SECRET_IN_HEADER] = "header", [SECRET_IN_QUERY] = "query", [SECRET_IN_BODY] = "body" };
_Static_assert(ARRAY_LEN(places) == SECRET_PLACES, "each place has a name");

/* ---- writing ---- */

static void put_texts(json_t *o, const char *key, char *const *texts, size_t n)
{
	if (n == 0)
		return;
	json_t *a = canon_whole(json_array());
	for (size_t i = 0; i < n; i++)
		canon_append(a, json_string(texts[i]));
	canon_put(o, key, a);
}

static void put_fields(json_t *o, const char *key, const struct field_rule *fields, size_t n)
{
	if (n == 0)
		return;
	json_t *map = canon_whole(json_object());
	for (size_t i = 0; i < n; i++)
		canon_put_text(map, fields[i].name, fields[i].pattern);
	canon_put(o, key, map);
}

static void put_given(json_t *o, const char *key, const char *text)
{
	if (text)
		canon_put_text(o, key, text);
}

/* "sha512-… /path": a path has no blanks. */
static json_t *pins_json(const struct request_rule *q)
{
	json_t *a = canon_whole(json_array());
	for (size_t i = 0; i < q->n_pins; i++) {
		char sri[PIN_TEXT_MAX];
		pin_format_sri(&q->pins[i], sri);
		cleanup_free char *text = mem_printf("%s%s%s", sri, q->pins[i].path ? " " : "", q->pins[i].path ? q->pins[i].path : "");
		canon_append(a, json_string(text));
	}
	return a;
}

static json_t *registry_json(const struct request_rule *q)
{
	json_t *o = canon_whole(json_object());
	canon_put_text(o, "protocol", registry_kind_name(q->registry));
	if (q->registry_base[0] != '\0')
		canon_put_text(o, "base", q->registry_base);
	put_texts(o, "packages", q->packages, q->n_packages);
	put_given(o, "lock", q->lock_file);
	if (q->n_pins > 0)
		canon_put(o, "pins", pins_json(q));
	return o;
}

static json_t *git_json(const struct git_rule *g)
{
	json_t *o = canon_whole(json_object());
	put_texts(o, "repositories", g->repositories, g->n_repositories);
	canon_put(o, "push", json_boolean(g->push));
	return o;
}

static json_t *secret_json(const struct secret_binding *s)
{
	json_t *o = canon_whole(json_object());
	canon_put_text(o, "name", s->name);
	canon_put_text(o, "place", places[s->place]);
	put_given(o, "field", s->field);
	put_given(o, "value", s->value);
	put_given(o, "variable", s->variable);
	return o;
}

json_t *canon_request(const struct request_rule *q)
{
	json_t *o = canon_whole(json_object());
	put_texts(o, "methods", q->methods, q->n_methods);
	put_texts(o, "paths", q->paths, q->n_paths);
	put_fields(o, "query", q->query, q->n_query);
	put_fields(o, "headers", q->headers, q->n_headers);
	if (q->registry != REGISTRY_NONE)
		canon_put(o, "registry", registry_json(q));
	if (q->git)
		canon_put(o, "git", git_json(q->git));
	if (q->secret)
		canon_put(o, "secret", secret_json(q->secret));
	put_given(o, "ca_file", q->ca_file);
	put_given(o, "ca", q->ca);
	return o;
}

static void put_limit(json_t *o, const char *key, uint64_t value)
{
	if (value != POLICY_UNLIMITED)
		canon_put(o, key, json_integer((json_int_t)value));
}

json_t *canon_rule_limits(const struct rule_limits *l)
{
	json_t *o = canon_whole(json_object());
	for (size_t i = 0; i < RULE_LIMIT_KINDS; i++)
		put_limit(o, rule_limit_kinds[i].name, rule_limit_get(l, &rule_limit_kinds[i]));
	put_limit(o, "rate_count", l->rate_count);
	if (l->rate_count != POLICY_UNLIMITED)
		put_limit(o, "rate_ns", l->rate_ns);
	return o;
}

/* ---- reading ---- */

typedef int take_text_fn(struct request_rule *q, const char *text, struct err *err);

static int take_texts(const json_t *o, const char *key, struct request_rule *q, take_text_fn *take, struct err *err)
{
	const json_t *a = json_object_get(o, key);
	if (!a)
		return 0;
	if (json_array_size(a) == 0)
		return canon_bad(err, key);
	for (size_t i = 0; i < json_array_size(a); i++) {
		const char *text = json_string_value(json_array_get(a, i));
		if (!text)
			return canon_bad(err, key);
		if (take(q, text, err) < 0)
			return -1;
	}
	return 0;
}

typedef int take_field_fn(struct request_rule *q, const char *name, const char *pattern, struct err *err);

static int take_fields(const json_t *o, const char *key, struct request_rule *q, take_field_fn *take, struct err *err)
{
	const char *name;
	json_t *map = json_object_get(o, key), *v;
	if (!map)
		return 0;
	if (json_object_size(map) == 0)
		return canon_bad(err, key);
	json_object_foreach(map, name, v) {
		if (!json_is_string(v))
			return canon_bad(err, key);
		if (take(q, name, json_string_value(v), err) < 0)
			return -1;
	}
	return 0;
}

/* A string or nothing. */
static int take_given(const json_t *o, const char *key, const char **ret, struct err *err)
{
	const json_t *v = json_object_get(o, key);
	*ret = json_string_value(v);
	return v && !*ret ? canon_bad(err, key) : 0;
}

static int take_package(struct request_rule *q, const char *text, struct err *err)
{
	return request_add_package(q, text, RULE_PINS_MAX, err);
}

static int take_pin(struct request_rule *q, const char *text, struct err *err)
{
	size_t n = strcspn(text, " ");
	struct pin pin;
	cleanup_free char *path = text[n] ? lock_pin_path(text + n + 1, strlen(text + n + 1)) : NULL;
	if (pin_parse_sri(text, n, &pin) < 0 || (text[n] && !path))
		return canon_bad(err, "pins");
	return request_add_pin(q, path, &pin, err);
}

static int take_registry(const json_t *o, struct request_rule *q, struct err *err)
{
	const char *protocol = json_string_value(json_object_get(o, "protocol")), *base, *lock;
	if (!o)
		return 0;
	if (!protocol)
		return canon_bad(err, "protocol");
	if (request_set_registry(q, protocol, err) < 0 || take_given(o, "base", &base, err) < 0 || take_given(o, "lock", &lock, err) < 0)
		return -1;
	if (base && request_set_base(q, base, err) < 0)
		return -1;
	q->lock_file = mem_strdup(lock);
	if (take_texts(o, "packages", q, take_package, err) < 0 || take_texts(o, "pins", q, take_pin, err) < 0)
		return -1;
	if (q->n_pins > 0 && !q->lock_file)
		return canon_bad(err, "lock");
	request_sort_pins(q); /* the check of the whole sees what was not in order */
	return 0;
}

static int take_repository(struct request_rule *q, const char *text, struct err *err)
{
	return git_add_repository(q->git, text, err);
}

static int take_git(const json_t *o, struct network_rule *r, struct err *err)
{
	if (!o)
		return 0;
	struct git_rule *g = rule_git(r);
	return canon_take_bool(o, "push", &g->push, err) < 0 ? -1 : take_texts(o, "repositories", r->request, take_repository, err);
}

static int take_place(struct secret_binding *s, const char *place, const char *field, struct err *err)
{
	if (place && field && str_eq(place, "header"))
		return secret_set_header(s, field, err);
	if (place && field && str_eq(place, "query"))
		return secret_set_query(s, field, err);
	if (!place || field || !str_eq(place, "body"))
		return canon_bad(err, "place");
	s->place = SECRET_IN_BODY;
	return 0;
}

static int take_secret(const json_t *o, struct network_rule *r, struct err *err)
{
	const char *name, *place, *field, *value, *variable;
	if (!o)
		return 0;
	struct secret_binding *s = rule_secret(r);
	if (take_given(o, "name", &name, err) < 0 || take_given(o, "place", &place, err) < 0 || take_given(o, "field", &field, err) < 0 ||
		take_given(o, "value", &value, err) < 0 || take_given(o, "variable", &variable, err) < 0)
		return -1;
	if (!name)
		return canon_bad(err, "name");
	if (secret_set_name(s, name, err) < 0 || take_place(s, place, field, err) < 0 || (value && secret_set_value(s, value, err) < 0))
		return -1;
	return variable ? secret_set_variable(s, variable, err) : 0;
}

static int take_ca(const json_t *o, struct network_rule *r, struct err *err)
{
	const char *file, *ca;
	if (take_given(o, "ca_file", &file, err) < 0 || take_given(o, "ca", &ca, err) < 0)
		return -1;
	r->request->ca_file = mem_strdup(file);
	return ca ? request_rule_set_ca(r, ca, strlen(ca), err) : 0;
}

int canon_take_request(const json_t *o, struct network_rule *r, struct err *err)
{
	if (!o)
		return 0;
	struct request_rule *q = rule_request(r);
	if (take_texts(o, "methods", q, request_add_method, err) < 0 || take_texts(o, "paths", q, request_add_path, err) < 0 ||
		take_fields(o, "query", q, request_add_query, err) < 0 || take_fields(o, "headers", q, request_add_header, err) < 0 ||
		take_registry(json_object_get(o, "registry"), q, err) < 0 || take_git(json_object_get(o, "git"), r, err) < 0 ||
		take_secret(json_object_get(o, "secret"), r, err) < 0)
		return -1;
	return take_ca(o, r, err);
}

int canon_take_rule_limits(const json_t *o, struct network_rule *r, struct err *err)
{
	if (!o)
		return 0;
	struct rule_limits *l = rule_limits(r);
	json_int_t n, ns;
	for (size_t i = 0; i < RULE_LIMIT_KINDS; i++) {
		const struct rule_limit_kind *kind = &rule_limit_kinds[i];
		const json_t *v = json_object_get(o, kind->name);
		if (!v)
			continue;
		if (canon_take_integer(v, kind->name, 1, (json_int_t)kind->max, &n, err) < 0)
			return -1;
		rule_limit_put(l, kind, (uint64_t)n);
	}
	if (!json_object_get(o, "rate_count"))
		return json_object_size(o) > 0 ? 0 : canon_bad(err, "limits");
	if (canon_take_integer(json_object_get(o, "rate_count"), "rate_count", 1, INT64_MAX, &n, err) < 0 ||
		canon_take_integer(json_object_get(o, "rate_ns"), "rate_ns", 1, INT64_MAX, &ns, err) < 0)
		return -1;
	if (!rate_valid((uint64_t)n, (uint64_t)ns))
		return canon_bad(err, "rate_count");
	l->rate_count = (uint64_t)n;
	l->rate_ns = (uint64_t)ns;
	return 0;
}
