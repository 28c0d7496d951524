/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets of one rule. */
#include "policy/rule-limit.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define SIZE_MOST (1ULL << 60)
#define COUNT_MOST (1ULL << 32)
#define CONNECTIONS_MOST 65536
#define RATE_MOST 1000000000ULL
#define FIELD(f) offsetof(struct rule_limits, f)

const struct rule_limit_kind rule_limit_kinds[RULE_LIMIT_KINDS] = {
	{ "requests", false, FIELD(requests), COUNT_MOST },
	{ "bytes_up", true, FIELD(bytes_up), SIZE_MOST },
	{ "bytes_down", true, FIELD(bytes_down), SIZE_MOST },
	{ "connections", false, FIELD(connections), CONNECTIONS_MOST },
};

struct rule_limits *rule_limits(struct network_rule *r)
{
	if (!r->limits) {
		r->limits = mem_alloc(sizeof(*r->limits));
		*r->limits = (struct rule_limits){ POLICY_UNLIMITED, POLICY_UNLIMITED, POLICY_UNLIMITED, POLICY_UNLIMITED,
			POLICY_UNLIMITED, 0 };
	}
	return r->limits;
}

uint64_t rule_limit_get(const struct rule_limits *l, const struct rule_limit_kind *kind)
{
	uint64_t value;
	memcpy(&value, (const char *)l + kind->offset, sizeof(value));
	return value;
}

void rule_limit_put(struct rule_limits *l, const struct rule_limit_kind *kind, uint64_t value)
{
	memcpy((char *)l + kind->offset, &value, sizeof(value));
}

static int set_rate(struct rule_limits *l, const char *text, struct err *err)
{
	char shown[64];
	if (rate_parse(text, l) == 0)
		return 0;
	return err_set(err, ERR_INVALID, "`rate` must be a number for each second, minute or hour, as in 10/s, 600/m or 1000/h, and is \"%s\"",
		text_escape(text, strlen(text), shown, sizeof(shown)));
}

int rule_limit_set(struct rule_limits *l, const char *name, const char *text, struct err *err)
{
	char shown[64];
	uint64_t v;
	if (str_eq(name, "rate"))
		return set_rate(l, text, err);
	for (size_t i = 0; i < RULE_LIMIT_KINDS; i++) {
		const struct rule_limit_kind *kind = &rule_limit_kinds[i];
		if (!str_eq(kind->name, name))
			continue;
		if (str_eq(text, "unlimited"))
			v = POLICY_UNLIMITED;
		else if ((kind->size ? text_parse_size(text, &v) : text_parse_u64(text, 1, kind->max, &v)) < 0 || v == 0 || v > kind->max)
			return err_set(err, ERR_INVALID, "`%s` must be %s, at least 1, and is \"%s\"", name,
				kind->size ? "a size such as 10MiB" : "a whole number such as 100",
				text_escape(text, strlen(text), shown, sizeof(shown)));
		rule_limit_put(l, kind, v);
		return 0;
	}
	return err_set(err, ERR_INVALID, "there is no such limit of a rule");
}

/* ---- rates ---- */

static const struct { char unit; uint64_t ns; } units[] = { { 's', NS_PER_S }, { 'm', 60 * NS_PER_S }, { 'h', 3600 * NS_PER_S } };

int rate_parse(const char *text, struct rule_limits *l)
{
	char count[16] = "";
	size_t n = strcspn(text, "/");
	uint64_t v;
	if (text[n] != '/' || text[n + 1] == '\0' || text[n + 2] != '\0' || n >= sizeof(count))
		return -1;
	memcpy(count, text, n);
	if (text_parse_u64(count, 1, RATE_MOST, &v) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (units[i].unit == text[n + 1]) {
			l->rate_count = v;
			l->rate_ns = units[i].ns;
			return 0;
		}
	return -1;
}

bool rate_valid(uint64_t count, uint64_t ns)
{
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (units[i].ns == ns)
			return count >= 1 && count <= RATE_MOST;
	return false;
}

char rate_unit(uint64_t ns)
{
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (units[i].ns == ns)
			return units[i].unit;
	return '?';
}
