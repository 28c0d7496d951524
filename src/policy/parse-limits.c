/* SPDX-License-Identifier: Apache-2.0 */
/* `lifetime` and `limits`. The values are read by limit.c, as those of the command line are. */
#include "base/mem.h"
#include "base/text.h"
#include "policy/limit.h"
#include "policy/parse.h"

/* A box that may live longer than this needs a reason in writing. */
#define TIMEOUT_FREE_NS (30ULL * 60 * NS_PER_S)

static int parse_limit(const struct node *key, const struct node *value, void *into, struct err *err)
{
	struct policy *p = into;
	const char *text;
	if (node_string(value, key->text, TEXT_FIELD_MAX, &text, err) < 0)
		return -1;
	if (limit_set(&p->limits, key->text, text, err) < 0)
		return node_wrap(value, err);
	return 0;
}

static int parse_on_timeout(const struct node *key, const struct node *value, void *into, struct err *err)
{
	const char *text;
	char shown[NODE_SHOWN_MAX];
	if (node_string(value, "on_timeout", TEXT_FIELD_MAX, &text, err) < 0)
		return -1;
	if (!str_eq(text, "kill"))
		return node_error(value, err, ERR_UNSUPPORTED,
			"`on_timeout: %s` is not enforced by this version of Bulkhead, so the policy is refused; write `on_timeout: kill`",
			node_show(value, shown));
	((struct policy *)into)->on_timeout = ON_TIMEOUT_KILL;
	return 0;
}

static int parse_budget(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return node_copy(value, "budget", TEXT_FIELD_MAX, &((struct policy *)into)->budget, err);
}

static const struct key lifetime_keys[] = {
	{ "timeout", parse_limit, NULL },
	{ "idle", parse_limit, NULL },
	{ "on_timeout", parse_on_timeout, NULL },
	{ "budget", parse_budget, NULL },
	{ 0 },
};

static const struct key limits_keys[] = {
	{ "cpus", parse_limit, NULL },
	{ "memory", parse_limit, NULL },
	{ "processes", parse_limit, NULL },
	{ "disk", parse_limit, NULL },
	{ "open_files", parse_limit, NULL },
	{ "output", parse_limit, NULL },
	{ "egress_requests", parse_limit, NULL },
	{ "egress_bytes", parse_limit, NULL },
	{ "connections", parse_limit, NULL },
	{ 0 },
};

int parse_lifetime(const struct node *key, const struct node *value, void *into, struct err *err)
{
	struct policy *p = into;
	if (keys_parse(value, "lifetime", lifetime_keys, into, err) < 0)
		return -1;
	const struct node *timeout = node_get(value, "timeout");
	if (timeout && p->limits.timeout_ns > TIMEOUT_FREE_NS && !p->budget)
		return node_error(timeout, err, ERR_INVALID,
			"a `timeout` of more than 30m needs a reason in the same section, as in `budget: \"nightly build\"`");
	return 0;
}

int parse_limits(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return keys_parse(value, "limits", limits_keys, into, err);
}
