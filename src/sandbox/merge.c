/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/merge.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "policy/limit.h"

static int fixed(const char *key, struct err *err)
{
	return err_set(err, ERR_UNSUPPORTED, "`%s` can't change while the sandbox runs (only `network`, `detect` and the budgets of egress can); take it out of the file, or start a new "
					     "sandbox with this policy", key);
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && str_eq(a, b));
}

/* Left out, or as it is. */
static bool text_stays(const char *running, const char *wanted, const char *usual)
{
	return same_text(wanted, usual) || same_text(wanted, running);
}

static bool is_egress_budget(const struct limit_kind *kind)
{
	return str_eq(kind->name, "egress_requests") || str_eq(kind->name, "egress_bytes") || str_eq(kind->name, "connections");
}

static const char *limit_key(const struct limit_kind *kind)
{
	static char key[64];
	snprintf(key, sizeof(key), "%s.%s", kind->unit == LIMIT_DURATION ? "lifetime" : "limits", kind->name);
	return key;
}

static int check_limits(const struct policy *running, const struct policy *wanted, const struct policy *usual, struct err *err)
{
	for (size_t i = 0; i < LIMIT_KINDS; i++) {
		const struct limit_kind *kind = &limit_kinds[i];
		uint64_t value = limit_get(&wanted->limits, kind);
		if (!is_egress_budget(kind) && value != limit_get(&usual->limits, kind) && value != limit_get(&running->limits, kind))
			return fixed(limit_key(kind), err);
	}
	return 0;
}

static bool has_mount(const struct policy *p, const struct policy_mount *m)
{
	for (size_t i = 0; i < p->n_mounts; i++)
		if (str_eq(p->mounts[i].source, m->source) && str_eq(p->mounts[i].target, m->target) && p->mounts[i].mode == m->mode)
			return true;
	return false;
}

static int check_mounts(const struct policy *running, const struct policy *wanted, struct err *err)
{
	for (size_t i = 0; i < wanted->n_mounts; i++)
		if (!has_mount(running, &wanted->mounts[i]))
			return fixed("files", err);
	return 0;
}

static int check_fixed(const struct policy *running, const struct policy *wanted, const struct policy *usual, struct err *err)
{
	if (wanted->minimum != usual->minimum && wanted->minimum != running->minimum)
		return fixed("isolation.minimum", err);
	if (wanted->allow_emulation != usual->allow_emulation && wanted->allow_emulation != running->allow_emulation)
		return fixed("isolation.allow_emulation", err);
	if (!text_stays(running->template_name, wanted->template_name, usual->template_name))
		return fixed("template", err);
	if (!text_stays(running->region, wanted->region, usual->region))
		return fixed("region", err);
	if (wanted->on_timeout != usual->on_timeout && wanted->on_timeout != running->on_timeout)
		return fixed("lifetime.on_timeout", err);
	if (wanted->record_output != usual->record_output && wanted->record_output != running->record_output)
		return fixed("record.output", err);
	return check_limits(running, wanted, usual, err) < 0 ? -1 : check_mounts(running, wanted, err);
}

static struct policy *copy(const struct policy *p, struct err *err)
{
	cleanup_free char *json = policy_to_json(p);
	return policy_from_json(json, strlen(json), err);
}

#define SWAP(a, b)                       \
	do {                             \
		__auto_type swap_ = (a); \
		(a) = (b);               \
		(b) = swap_;             \
	} while (0)

static void take(struct policy *to, struct policy *from)
{
	SWAP(to->rules, from->rules);
	SWAP(to->n_rules, from->n_rules);
	SWAP(to->name, from->name);
	SWAP(to->owner, from->owner);
	SWAP(to->review_by, from->review_by);
	SWAP(to->builtin, from->builtin);
	to->canary = from->canary;
	for (size_t i = 0; i < LIMIT_KINDS; i++)
		if (is_egress_budget(&limit_kinds[i]))
			limit_put(&to->limits, &limit_kinds[i], limit_get(&from->limits, &limit_kinds[i]));
}

struct policy *policy_merge_running(const struct policy *running, struct policy *wanted, struct err *err)
{
	struct policy *usual = policy_builtin(), *next = NULL;
	if (check_fixed(running, wanted, usual, err) == 0)
		next = copy(running, err);
	policy_free(usual);
	if (!next)
		return NULL;
	take(next, wanted);
	policy_seal(next);
	return next;
}
