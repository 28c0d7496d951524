/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets of one rule, as one table for the policy file and the canonical form. Inside policy/ only. */
#pragma once

#include "policy/request.h"

struct rule_limit_kind {
	const char *name;
	bool size;          /* bytes, written as sizes; else a count */
	size_t offset;      /* into struct rule_limits */
	uint64_t max;       /* the least value is 1 */
};

#define RULE_LIMIT_KINDS 4
extern const struct rule_limit_kind rule_limit_kinds[RULE_LIMIT_KINDS];

struct rule_limits *rule_limits(struct network_rule *r); /* made when there are none: everything unlimited */
uint64_t rule_limit_get(const struct rule_limits *l, const struct rule_limit_kind *kind);
void rule_limit_put(struct rule_limits *l, const struct rule_limit_kind *kind, uint64_t value);
/* By name ("requests", "rate"), from what a person wrote. */
int rule_limit_set(struct rule_limits *l, const char *name, const char *text, struct err *err);

int rate_parse(const char *text, struct rule_limits *l); /* "10/s", "600/m", "1000/h": 0 or -1 */
bool rate_valid(uint64_t count, uint64_t ns);
char rate_unit(uint64_t ns);
