/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox may use of the outside: connections at once, requests (each admitted flow carries one), bytes both ways
 * together. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "policy/policy.h"
#include "policy/reason.h"

struct budget {
	uint64_t connections_max, requests_max, bytes_max; /* POLICY_UNLIMITED: none */
	uint64_t connections, requests, bytes;
};

void budget_init(struct budget *b, const struct policy_limits *limits);
/* REASON_NONE: one connection and one request are taken (give the connection back with budget_release). Else the budget that is
 * used up. */
enum reason budget_admit(struct budget *b);
void budget_release(struct budget *b);
/* How many of `want` bytes may still be moved: exact to the last byte. */
size_t budget_room(const struct budget *b, size_t want);
void budget_spend(struct budget *b, size_t n);
/* The limit behind a reason, for messages. */
uint64_t budget_limit(const struct budget *b, enum reason reason);
