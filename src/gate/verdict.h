/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one place where egress is decided, whichever entrance a flow came by. Pure but for the budget it takes from.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "gate/budget.h"
#include "gate/target.h"
#include "net/http1.h"
#include "net/tls_hello.h"
#include "policy/policy.h"

struct gate_facts {
	const struct policy *policy;
	struct budget *budget;
	const struct ip *host_addresses;
	size_t n_host_addresses;
	bool record_available;
};

/* What policy alone says of the place. */
struct verdict verdict_place(const struct policy *policy, const struct gate_target *t);
/* Must a connection to this target be looked into? */
bool verdict_inspects(const struct gate_facts *facts, const struct gate_target *t);
/* May a flow to this target exist? On allow, one connection and, where it is not looked into, one request are taken from the budget. */
struct verdict verdict_target(const struct gate_facts *facts, const struct gate_target *t);
/* After resolution: may this very address be dialled for the flow that `rule` allowed? */
struct verdict verdict_dial(const struct gate_facts *facts, int rule, const struct ip *ip);
/* By what the client said first: REASON_NONE, or why it is refused. */
enum reason verdict_hello(const struct gate_target *t, const struct tls_hello *hello);
enum reason verdict_request(const struct gate_target *t, const struct http1_request *r);
