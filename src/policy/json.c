/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical form: sorted keys, no white space. What is hashed, stored and given to the gate is this text, nothing else. */
#include <stdlib.h>

#include <jansson.h>
#include <sodium.h>

#include "base/mem.h"
#include "policy/limit.h"

/* jansson says "out of memory" by NULL; a policy with a part missing must never be written, so the process ends at once. */
static json_t *whole(json_t *value)
{
	if (!value)
		abort();
	return value;
}

static void put(json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, whole(value)) < 0)
		abort();
}

static void append(json_t *array, json_t *value)
{
	if (json_array_append_new(array, whole(value)) < 0)
		abort();
}

/* The strings of a policy are UTF-8: its readers see to that. */
static void put_text(json_t *object, const char *key, const char *text)
{
	put(object, key, text ? json_string(text) : json_null());
}

static json_t *limits_json(const struct policy_limits *l)
{
	json_t *o = whole(json_object());
	for (size_t i = 0; i < LIMIT_KINDS; i++) {
		uint64_t v = limit_get(l, &limit_kinds[i]);
		put(o, limit_kinds[i].json, v == POLICY_UNLIMITED ? json_string("unlimited") : json_integer((json_int_t)v));
	}
	return o;
}

static json_t *mounts_json(const struct policy *p)
{
	json_t *a = whole(json_array());
	for (size_t i = 0; i < p->n_mounts; i++) {
		json_t *o = whole(json_object());
		put_text(o, "source", p->mounts[i].source);
		put_text(o, "target", p->mounts[i].target);
		put_text(o, "mode", mount_mode_name(p->mounts[i].mode));
		append(a, o);
	}
	return a;
}

static json_t *rule_json(const struct network_rule *r)
{
	json_t *o = whole(json_object()), *ports = whole(json_array());
	put_text(o, "host", r->text);
	for (unsigned i = 0; i < r->n_ports; i++)
		append(ports, json_integer(r->ports[i]));
	put(o, "ports", ports);
	put(o, "private", json_boolean(r->private_ok));
	put(o, "line", json_integer(r->line));
	return o;
}

static json_t *rules_json(const struct policy *p)
{
	json_t *a = whole(json_array());
	for (size_t i = 0; i < p->n_rules; i++)
		append(a, rule_json(&p->rules[i]));
	return a;
}

static json_t *policy_json(const struct policy *p)
{
	json_t *o = whole(json_object());
	put(o, "version", json_integer(p->version));
	put_text(o, "name", p->name);
	put_text(o, "owner", p->owner);
	put_text(o, "review_by", p->review_by);
	put_text(o, "region", p->region);
	put_text(o, "template", p->template_name);
	put_text(o, "budget", p->budget);
	put(o, "strict", json_boolean(p->strict));
	put_text(o, "minimum", isolation_level_name(p->minimum));
	put(o, "allow_emulation", json_boolean(p->allow_emulation));
	put_text(o, "on_timeout", "kill");
	put(o, "limits", limits_json(&p->limits));
	put(o, "files", mounts_json(p));
	put(o, "network", rules_json(p));
	put(o, "record_output", json_boolean(p->record_output));
	put(o, "builtin", json_boolean(p->builtin));
	return o;
}

char *policy_to_json(const struct policy *p)
{
	json_t *o = policy_json(p);
	char *dumped = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(o);
	if (!dumped)
		abort();
	char *text = mem_strdup(dumped); /* jansson's allocator need not be ours */
	free(dumped);
	return text;
}

void policy_seal(struct policy *p)
{
	cleanup_free char *text = policy_to_json(p);
	_Static_assert(POLICY_HASH_SIZE == crypto_generichash_BYTES, "BLAKE2b-256");
	crypto_generichash(p->hash, sizeof(p->hash), (const unsigned char *)text, strlen(text), NULL, 0);
}
