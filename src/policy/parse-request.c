/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of a network rule that speak of requests. `into` is the struct network_rule. */
#include "base/mem.h"
#include "policy/parse.h"
#include "policy/request-rule.h"
#include "policy/rule-limit.h"

#define LONG_FIELD_MAX 1024u

typedef int add_text(void *into, const char *text, struct err *err);

/* A list of 1 to `max` texts; what is wrong with one is said at its place. */
static int parse_texts(const struct node *list, const char *key, const char *example, size_t max, add_text *add, void *into, struct err *err)
{
	const char *text;
	if (list->kind != NODE_LIST)
		return node_error(list, err, ERR_INVALID, "`%s` must be a list, as in %s", key, example);
	if (list->n_items == 0 || list->n_items > max)
		return node_error(list, err, ERR_INVALID, "`%s` must list 1 to %zu values, and lists %zu", key, max, list->n_items);
	for (size_t i = 0; i < list->n_items; i++) {
		if (node_string(list->items[i], key, LONG_FIELD_MAX, &text, err) < 0)
			return -1;
		if (add(into, text, err) < 0)
			return node_wrap(list->items[i], err);
	}
	return 0;
}

static int add_method(void *into, const char *text, struct err *err)
{
	return request_add_method(into, text, err);
}

static int add_path(void *into, const char *text, struct err *err)
{
	return request_add_path(into, text, err);
}

int parse_methods(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return parse_texts(value, "methods", "[GET, POST]", RULE_METHODS_MAX, add_method, rule_request(into), err);
}

int parse_paths(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return parse_texts(value, "paths", "[\"/repos/acme/**\"]", RULE_PATHS_MAX, add_path, rule_request(into), err);
}

typedef int add_field(struct request_rule *q, const char *name, const char *pattern, struct err *err);

static int parse_fields(const struct node *map, const char *key, add_field *add, struct request_rule *q, struct err *err)
{
	const char *pattern;
	if (node_want(map, key, NODE_MAP, err) < 0)
		return -1;
	if (map->n_items == 0)
		return node_error(map, err, ERR_INVALID, "`%s` says nothing; remove it", key);
	for (size_t i = 0; i + 1 < map->n_items; i += 2) {
		const struct node *name = map->items[i], *value = map->items[i + 1];
		if (node_string(value, name->text, LONG_FIELD_MAX, &pattern, err) < 0)
			return -1;
		if (add(q, name->text, pattern, err) < 0)
			return node_wrap(name, err);
	}
	return 0;
}

int parse_query(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return parse_fields(value, "query", request_add_query, rule_request(into), err);
}

int parse_headers(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return parse_fields(value, "headers", request_add_header, rule_request(into), err);
}

int parse_inspect(const struct node *key, const struct node *value, void *into, struct err *err)
{
	bool on;
	if (node_bool(value, "inspect", &on, err) < 0)
		return -1;
	if (on)
		rule_request(into);
	return 0;
}

int parse_ca(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return node_copy(value, "ca", LONG_FIELD_MAX, &rule_request(into)->ca_file, err);
}

/* ---- secret ---- */

typedef int set_secret(struct secret_binding *s, const char *text, struct err *err);

static int parse_secret_text(const struct node *value, const char *key, set_secret *set, void *into, struct err *err)
{
	const char *text;
	if (node_string(value, key, LONG_FIELD_MAX, &text, err) < 0)
		return -1;
	return set(into, text, err) < 0 ? node_wrap(value, err) : 0;
}

static int parse_secret_name(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return parse_secret_text(value, "name", secret_set_name, into, err);
}

/* The three places exclude one another. */
static int check_one_place(const struct node *key, const struct secret_binding *s, struct err *err)
{
	if (!s->field && s->place == SECRET_IN_HEADER)
		return 0;
	return node_error(key, err, ERR_INVALID, "a secret has one place: `header`, `query` or `body`; for another, write another rule");
}

static int parse_secret_header(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return check_one_place(key, into, err) < 0 ? -1 : parse_secret_text(value, "header", secret_set_header, into, err);
}

static int parse_secret_query(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return check_one_place(key, into, err) < 0 ? -1 : parse_secret_text(value, "query", secret_set_query, into, err);
}

static int parse_secret_body(const struct node *key, const struct node *value, void *into, struct err *err)
{
	bool on;
	if (check_one_place(key, into, err) < 0 || node_bool(value, "body", &on, err) < 0)
		return -1;
	if (!on)
		return node_error(value, err, ERR_INVALID, "`body` can only be true; say where else the secret stands");
	((struct secret_binding *)into)->place = SECRET_IN_BODY;
	return 0;
}

static int parse_secret_value(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return parse_secret_text(value, "value", secret_set_value, into, err);
}

static int parse_secret_env(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return parse_secret_text(value, "env", secret_set_variable, into, err);
}

static const struct key secret_keys[] = {
	{ "name", parse_secret_name, NULL },
	{ "header", parse_secret_header, NULL },
	{ "query", parse_secret_query, NULL },
	{ "body", parse_secret_body, NULL },
	{ "value", parse_secret_value, NULL },
	{ "env", parse_secret_env, NULL },
	{ 0 },
};

int parse_secret(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return keys_parse(value, "secret", secret_keys, rule_secret(into), err);
}

/* ---- registry and git ---- */

static int parse_protocol(const struct node *key, const struct node *value, void *into, struct err *err)
{
	const char *text;
	if (node_string(value, "protocol", LONG_FIELD_MAX, &text, err) < 0)
		return -1;
	return request_set_registry(into, text, err) < 0 ? node_wrap(value, err) : 0;
}

static int parse_base(const struct node *key, const struct node *value, void *into, struct err *err)
{
	const char *text;
	if (node_string(value, "base", LONG_FIELD_MAX, &text, err) < 0)
		return -1;
	return request_set_base(into, text, err) < 0 ? node_wrap(value, err) : 0;
}

static int add_package(void *into, const char *text, struct err *err)
{
	return request_add_package(into, text, RULE_NAMES_MAX, err);
}

static int parse_packages(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return parse_texts(value, "packages", "[left-pad, \"@acme/*\"]", RULE_NAMES_MAX, add_package, into, err);
}

static int parse_lock(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return node_copy(value, "lock", LONG_FIELD_MAX, &((struct request_rule *)into)->lock_file, err);
}

static const struct key registry_keys[] = {
	{ "protocol", parse_protocol, NULL },
	{ "base", parse_base, NULL },
	{ "packages", parse_packages, NULL },
	{ "lock", parse_lock, NULL },
	{ 0 },
};

int parse_registry(const struct node *key, const struct node *value, void *into, struct err *err)
{
	struct request_rule *q = rule_request(into);
	if (node_want(value, "registry", NODE_MAP, err) < 0)
		return -1;
	/* The protocol first: names of packages are read by it. */
	const struct node *protocol = node_get(value, "protocol");
	if (!protocol)
		return node_error(value, err, ERR_INVALID, "a `registry` needs `protocol`, as in { protocol: npm }");
	return parse_protocol(NULL, protocol, q, err) < 0 ? -1 : keys_parse(value, "registry", registry_keys, q, err);
}

static int add_repository(void *into, const char *text, struct err *err)
{
	return git_add_repository(into, text, err);
}

static int parse_repositories(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return parse_texts(value, "repositories", "[\"acme/*\"]", RULE_NAMES_MAX, add_repository, into, err);
}

static int parse_push(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return node_bool(value, "push", &((struct git_rule *)into)->push, err);
}

static const struct key git_keys[] = {
	{ "repositories", parse_repositories, NULL },
	{ "push", parse_push, NULL },
	{ 0 },
};

int parse_git(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return keys_parse(value, "git", git_keys, rule_git(into), err);
}

/* ---- limits ---- */

static int parse_one_limit(const struct node *key, const struct node *value, void *into, struct err *err)
{
	const char *text;
	if (node_string(value, key->text, LONG_FIELD_MAX, &text, err) < 0)
		return -1;
	return rule_limit_set(into, key->text, text, err) < 0 ? node_wrap(value, err) : 0;
}

static const struct key limit_keys[] = {
	{ "requests", parse_one_limit, NULL },
	{ "bytes_up", parse_one_limit, NULL },
	{ "bytes_down", parse_one_limit, NULL },
	{ "connections", parse_one_limit, NULL },
	{ "rate", parse_one_limit, NULL },
	{ 0 },
};

/* Limits that limit nothing are none: one policy has one canonical form. */
static bool all_unlimited(const struct rule_limits *l)
{
	for (size_t i = 0; i < RULE_LIMIT_KINDS; i++)
		if (rule_limit_get(l, &rule_limit_kinds[i]) != POLICY_UNLIMITED)
			return false;
	return l->rate_count == POLICY_UNLIMITED;
}

int parse_rule_limits(const struct node *key, const struct node *value, void *into, struct err *err)
{
	struct network_rule *r = into;
	if (keys_parse(value, "limits", limit_keys, rule_limits(r), err) < 0)
		return -1;
	if (all_unlimited(r->limits))
		r->limits = mem_free(r->limits);
	return 0;
}
