/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The canonical form back into a policy. Each field is read by the rules that the policy file has too, and in the end the
 * result is written again and must be the very bytes that came in: so a missing, additional, reordered or twice-given field
 * can't pass.
 */
#include <string.h>

#include <jansson.h>

#include "base/mem.h"
#include "policy/canon.h"
#include "policy/limit.h"
#include "policy/request-rule.h"
#include "policy/rule.h"

/* A string or null. */
static int take_text(const json_t *o, const char *key, char **ret, struct err *err)
{
	const json_t *v = json_object_get(o, key);
	if (!v || !(json_is_string(v) || json_is_null(v)))
		return canon_bad(err, key);
	mem_free(*ret);
	*ret = mem_strdup(json_string_value(v));
	return 0;
}

static int take_limits(const json_t *o, struct policy_limits *l, struct err *err)
{
	for (size_t i = 0; i < LIMIT_KINDS; i++) {
		const struct limit_kind *kind = &limit_kinds[i];
		const json_t *v = json_object_get(o, kind->json);
		json_int_t n;
		if (json_is_string(v) && str_eq(json_string_value(v), "unlimited")) {
			limit_put(l, kind, POLICY_UNLIMITED);
			continue;
		}
		if (canon_take_integer(v, kind->json, (json_int_t)kind->min, (json_int_t)kind->max, &n, err) < 0)
			return -1;
		limit_put(l, kind, (uint64_t)n);
	}
	return 0;
}

static int take_mount(const json_t *o, struct policy *p, struct err *err)
{
	const char *source = json_string_value(json_object_get(o, "source"));
	const char *target = json_string_value(json_object_get(o, "target"));
	const char *mode_text = json_string_value(json_object_get(o, "mode"));
	enum mount_mode mode;
	if (!source || !target || mount_mode_parse(mode_text, &mode) < 0)
		return canon_bad(err, "files");
	return policy_add_mount(p, source, target, mode, err);
}

static int take_ports(const json_t *array, struct network_rule *r, struct err *err)
{
	size_t n = json_array_size(array);
	if (n == 0 || n > POLICY_PORTS_MAX)
		return canon_bad(err, "ports");
	for (size_t i = 0; i < n; i++) {
		json_int_t port;
		if (canon_take_integer(json_array_get(array, i), "ports", 1, 65535, &port, err) < 0)
			return -1;
		r->ports[r->n_ports++] = (uint16_t)port;
	}
	return 0;
}

static int take_rule(const json_t *o, struct policy *p, struct err *err)
{
	struct network_rule r;
	json_int_t line;
	const json_t *host = json_object_get(o, "host");
	if (!json_is_string(host))
		return canon_bad(err, "host");
	if (rule_parse_host(json_string_value(host), json_string_length(host), &r, err) < 0)
		return -1;
	if (take_ports(json_object_get(o, "ports"), &r, err) < 0 || canon_take_bool(o, "private", &r.private_ok, err) < 0 ||
		canon_take_integer(json_object_get(o, "line"), "line", 0, UINT32_MAX, &line, err) < 0 ||
		canon_take_request(json_object_get(o, "request"), &r, err) < 0 ||
		canon_take_rule_limits(json_object_get(o, "limits"), &r, err) < 0) {
		rule_done(&r);
		return -1;
	}
	r.line = (unsigned)line;
	return policy_add_rule(p, &r, err);
}

typedef int take_item(const json_t *item, struct policy *p, struct err *err);

static int take_each(const json_t *o, const char *key, take_item *take, struct policy *p, struct err *err)
{
	const json_t *array = json_object_get(o, key);
	if (!json_is_array(array))
		return canon_bad(err, key);
	for (size_t i = 0; i < json_array_size(array); i++)
		if (take(json_array_get(array, i), p, err) < 0)
			return -1;
	return 0;
}

static int take_texts(const json_t *o, struct policy *p, struct err *err)
{
	if (take_text(o, "name", &p->name, err) < 0 || take_text(o, "owner", &p->owner, err) < 0 ||
		take_text(o, "review_by", &p->review_by, err) < 0 || take_text(o, "region", &p->region, err) < 0 ||
		take_text(o, "template", &p->template_name, err) < 0 || take_text(o, "budget", &p->budget, err) < 0)
		return -1;
	return p->name ? 0 : canon_bad(err, "name");
}

static int take_policy(const json_t *o, struct policy *p, struct err *err)
{
	json_int_t version;
	if (canon_take_integer(json_object_get(o, "version"), "version", 1, 1, &version, err) < 0 || take_texts(o, p, err) < 0)
		return -1;
	p->version = (unsigned)version;
	if (isolation_level_parse(json_string_value(json_object_get(o, "minimum")), &p->minimum) < 0)
		return canon_bad(err, "minimum");
	if (canon_take_bool(o, "strict", &p->strict, err) < 0 || canon_take_bool(o, "allow_emulation", &p->allow_emulation, err) < 0 ||
		canon_take_bool(o, "record_output", &p->record_output, err) < 0 || canon_take_bool(o, "builtin", &p->builtin, err) < 0 ||
		take_limits(json_object_get(o, "limits"), &p->limits, err) < 0)
		return -1;
	const json_t *canary = json_object_get(o, "canary");
	if (canary && canary_action_parse(json_string_value(canary), &p->canary) < 0)
		return canon_bad(err, "canary");
	return take_each(o, "files", take_mount, p, err) < 0 || take_each(o, "network", take_rule, p, err) < 0 ? -1 : 0;
}

static int check_same(const struct policy *p, const char *text, size_t len, struct err *err)
{
	cleanup_free char *again = policy_to_json(p);
	if (strlen(again) == len && memcmp(again, text, len) == 0)
		return 0;
	return err_set(err, ERR_INVALID,
		"the policy's JSON is not in its canonical form; only what Bulkhead wrote itself is accepted");
}

struct policy *policy_from_json(const char *text, size_t len, struct err *err)
{
	json_error_t at;
	if (len > POLICY_CANONICAL_MAX) {
		err_set(err, ERR_LIMIT, "the policy's JSON is longer than %u KiB", POLICY_CANONICAL_MAX / 1024);
		return NULL;
	}
	json_t *o = json_loadb(text, len, JSON_REJECT_DUPLICATES, &at);
	if (!o) {
		err_set(err, ERR_INVALID, "the policy's JSON can't be read, at byte %d: %s", at.position, at.text);
		return NULL;
	}
	struct policy *p = mem_alloc(sizeof(*p));
	int r = take_policy(o, p, err);
	json_decref(o);
	if (r < 0 || check_same(p, text, len, err) < 0)
		return policy_free(p);
	policy_seal(p);
	return p;
}
