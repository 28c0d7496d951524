/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/budget.h"

void budget_init(struct budget *b, const struct policy_limits *limits)
{
	*b = (struct budget){
		.connections_max = limits->connections,
		.requests_max = limits->egress_requests,
		.bytes_max = limits->egress_bytes,
	};
}

enum reason budget_admit(struct budget *b)
{
	if (b->requests >= b->requests_max)
		return REASON_BUDGET_REQUESTS;
	if (b->bytes >= b->bytes_max)
		return REASON_BUDGET_BYTES;
	if (b->connections >= b->connections_max)
		return REASON_BUDGET_CONNECTIONS;
	b->connections++;
	b->requests++;
	return REASON_NONE;
}

void budget_release(struct budget *b) { b->connections--; }

size_t budget_room(const struct budget *b, size_t want)
{
	uint64_t left = b->bytes_max - b->bytes;
	return left < want ? (size_t)left : want;
}

void budget_spend(struct budget *b, size_t n) { b->bytes += n; }

uint64_t budget_limit(const struct budget *b, enum reason reason)
{
	if (reason == REASON_BUDGET_REQUESTS)
		return b->requests_max;
	return reason == REASON_BUDGET_BYTES ? b->bytes_max : b->connections_max;
}
