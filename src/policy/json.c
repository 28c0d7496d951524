/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical form: sorted keys, no white space. What is hashed, stored and given to the gate is this text, nothing else. */
#include <stdlib.h>

#include <jansson.h>
#include <sodium.h>

#include "base/mem.h"
#include "policy/canon.h"
#include "policy/limit.h"

static json_t *limits_json(const struct policy_limits *l)
{
	json_t *o = canon_whole(json_object());
	for (size_t i = 0; i < LIMIT_KINDS; i++) {
		uint64_t v = limit_get(l, &limit_kinds[i]);
		canon_put(o, limit_kinds[i].json, v == POLICY_UNLIMITED ? json_string("unlimited") : json_integer((json_int_t)v));
	}
	return o;
}

static json_t *mounts_json(const struct policy *p)
{
	json_t *a = canon_whole(json_array());
	for (size_t i = 0; i < p->n_mounts; i++) {
		json_t *o = canon_whole(json_object());
		canon_put_text(o, "source", p->mounts[i].source);
		canon_put_text(o, "target", p->mounts[i].target);
		canon_put_text(o, "mode", mount_mode_name(p->mounts[i].mode));
		canon_append(a, o);
	}
	return a;
}

static json_t *rule_json(const struct network_rule *r)
{
	json_t *o = canon_whole(json_object()), *ports = canon_whole(json_array());
	canon_put_text(o, "host", r->text);
	for (unsigned i = 0; i < r->n_ports; i++)
		canon_append(ports, json_integer(r->ports[i]));
	canon_put(o, "ports", ports);
	canon_put(o, "private", json_boolean(r->private_ok));
	canon_put(o, "line", json_integer(r->line));
	if (r->request)
		canon_put(o, "request", canon_request(r->request));
	if (r->limits)
		canon_put(o, "limits", canon_rule_limits(r->limits));
	return o;
}

static json_t *rules_json(const struct policy *p)
{
	json_t *a = canon_whole(json_array());
	for (size_t i = 0; i < p->n_rules; i++)
		canon_append(a, rule_json(&p->rules[i]));
	return a;
}

static json_t *policy_json(const struct policy *p)
{
	json_t *o = canon_whole(json_object());
	canon_put(o, "version", json_integer(p->version));
	canon_put_text(o, "name", p->name);
	canon_put_text(o, "owner", p->owner);
	canon_put_text(o, "review_by", p->review_by);
	canon_put_text(o, "region", p->region);
	canon_put_text(o, "template", p->template_name);
	canon_put_text(o, "budget", p->budget);
	canon_put(o, "strict", json_boolean(p->strict));
	canon_put_text(o, "minimum", isolation_level_name(p->minimum));
	canon_put(o, "allow_emulation", json_boolean(p->allow_emulation));
	canon_put_text(o, "on_timeout", "kill");
	canon_put(o, "limits", limits_json(&p->limits));
	canon_put(o, "files", mounts_json(p));
	canon_put(o, "network", rules_json(p));
	canon_put(o, "record_output", json_boolean(p->record_output));
	canon_put(o, "builtin", json_boolean(p->builtin));
	if (p->canary != CANARY_DENY) /* what isn't said isn't written: documents of before keep their hash */
		canon_put_text(o, "canary", canary_action_name(p->canary));
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
