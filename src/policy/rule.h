/* SPDX-License-Identifier: Apache-2.0 */
/* One network rule: how its host is read, and what it matches. Inside policy/ only. */
#pragma once

#include "policy/policy.h"

#define RULE_PORT_DEFAULT 443

/* Reads a host pattern: a name, "*.name", or a literal address. Fills is_address, wildcard, name, address and text (an own
 * copy, which the caller hands over with policy_add_rule or frees); the rest is zero. The sentence has no place in a file yet. */
int rule_parse_host(const char *s, size_t len, struct network_rule *ret, struct err *err);
/* HOST[:PORT] of --allow; *ret_port is 0 when absent. */
int rule_parse_spec(const char *spec, struct network_rule *ret, uint16_t *ret_port, struct err *err);

/* Appends the finished rule and takes what it holds, also on failure. Refuses a literal address that the floor keeps the rule from
 * ever reaching, and parts that don't go together. */
int policy_add_rule(struct policy *p, struct network_rule *rule, struct err *err);

bool rule_matches_name(const struct network_rule *r, const struct hostname *name);
bool rule_has_port(const struct network_rule *r, uint16_t port);
