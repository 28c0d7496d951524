/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values of a query, as servers may read them. Inside policy/ only. */
#pragma once

#include "policy/request.h"

/* The key is there once, in its exact spelling, in no other that a server could take for it, and its value matches. */
bool query_matches(const char *query, const struct field_rule *rule);
/* Whatever the query says for "_method" is a method that the rule lists. */
bool query_methods_listed(const char *query, const struct request_rule *rule);
