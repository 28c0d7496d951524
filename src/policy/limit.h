/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits as one table: name, unit, least and greatest value. The policy file, the command line, the canonical form and the
 * check of a box description all read it, so that a limit means the same everywhere.
 */
#pragma once

#include "policy/policy.h"

enum limit_unit { LIMIT_CPUS, LIMIT_SIZE, LIMIT_COUNT, LIMIT_DURATION };

struct limit_kind {
	const char *name;      /* as people write it: "memory", "timeout" */
	const char *json;      /* in the canonical form, with its unit: "memory_bytes" */
	enum limit_unit unit;
	size_t offset;         /* into struct policy_limits */
	uint64_t min, max;     /* in the unit of the field; POLICY_UNLIMITED is always valid besides */
};

#define LIMIT_KINDS 11
extern const struct limit_kind limit_kinds[LIMIT_KINDS];

uint64_t limit_get(const struct policy_limits *l, const struct limit_kind *kind);
void limit_put(struct policy_limits *l, const struct limit_kind *kind, uint64_t value);

/* Sets the limit called `name` from what a person wrote ("1.5", "512MiB", "15m", "unlimited"). ERR_INVALID names the limit and
 * shows a valid value. For the policy file and for options such as --memory alike. */
int limit_set(struct policy_limits *l, const char *name, const char *value, struct err *err);
/* Every field is unlimited or between its least and greatest value. */
int limits_check(const struct policy_limits *l, struct err *err);
