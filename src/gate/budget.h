/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox may use of the outside: connections at once, requests, bytes; for the whole sandbox and for each rule that says so. A request is an HTTP
 * request on an inspected connection, else the connection itself (which carries at most one in the clear). Bytes are those that cross the server's
 * socket (a tunnel), or the text of heads and the bytes of bodies (an inspected request). Exact to the last byte and the last request.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/policy.h"
#include "policy/reason.h"

#define BUDGET_RATE_COUNT_MAX 100000u /* requests that a rule's rate may speak of */

struct rule_use;

struct budget {
	uint64_t connections_max, requests_max, bytes_max; /* POLICY_UNLIMITED: none */
	uint64_t connections, requests, bytes;
	struct rule_use *rules;
	size_t n_rules;
};

void budget_init(struct budget *b, const struct policy *p);
/* A newer policy: what the sandbox used stays used; the rules count anew. */
void budget_renew(struct budget *b, const struct policy *p);
void budget_done(struct budget *b);

/* REASON_NONE: one connection (give it back with budget_release) and, with `request`, one request are taken. Else the budget that is used up. */
enum reason budget_admit(struct budget *b, int rule, bool request, uint64_t now_ns);
/* One more request on an inspected connection. */
enum reason budget_request(struct budget *b, int rule, uint64_t now_ns);
/* After budget_renew: a connection that was admitted before belongs to this rule now. */
void budget_adopt(struct budget *b, int rule);
void budget_release(struct budget *b, int rule);

enum budget_direction { BUDGET_UP, BUDGET_DOWN };
/* How many of `want` bytes may still be moved: exact to the last byte. */
size_t budget_room(const struct budget *b, int rule, enum budget_direction direction, size_t want);
void budget_spend(struct budget *b, int rule, enum budget_direction direction, size_t n);
/* The sandbox's limit behind a reason, for messages. */
uint64_t budget_limit(const struct budget *b, enum reason reason);
