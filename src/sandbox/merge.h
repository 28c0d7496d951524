/* SPDX-License-Identifier: Apache-2.0 */
/* What a running sandbox can take from a new policy, and what it can't. Pure. */
#pragma once

#include "base/err.h"
#include "policy/policy.h"

/*
 * The policy that holds from now on: `running` with the network, the reaction to canaries, the budgets of egress and the identity (name, owner, …) of `wanted`, sealed.
 * Whatever else `wanted` says must be what the sandbox runs under, or be left at its default: else NULL, and the sentence names the key.
 */
struct policy *policy_merge_running(const struct policy *running, struct policy *wanted, struct err *err);
