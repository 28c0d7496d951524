/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/verdict.h"

#include "base/text.h"
#include "policy/request.h"

static struct verdict refuse(enum reason reason) { return (struct verdict){ .allow = false, .reason = reason, .rule = -1 }; }

bool verdict_inspects(const struct gate_facts *facts, const struct gate_target *t)
{
	return policy_needs_inspection(facts->policy, t->literal ? NULL : &t->name, t->literal ? &t->ip : NULL, t->port);
}

struct verdict verdict_place(const struct policy *policy, const struct gate_target *t)
{
	return t->literal ? policy_decide_address(policy, &t->ip, t->port) : policy_decide_name(policy, &t->name, t->port);
}

struct verdict verdict_target(const struct gate_facts *facts, const struct gate_target *t)
{
	if (!facts->record_available)
		return refuse(REASON_RECORD_UNAVAILABLE);
	struct verdict v = verdict_place(facts->policy, t);
	if (!v.allow)
		return v;
	/* Last, so that nothing denied uses a budget up, and a used-up budget never hides what policy says. */
	enum reason budget = budget_admit(facts->budget, v.rule, !verdict_inspects(facts, t), time_monotonic_ns());
	return budget == REASON_NONE ? v : refuse(budget);
}

struct verdict verdict_dial(const struct gate_facts *facts, int rule, const struct ip *ip)
{
	return policy_decide_dial(facts->policy, rule, ip, facts->host_addresses, facts->n_host_addresses);
}

enum reason verdict_hello(const struct gate_target *t, const struct tls_hello *hello)
{
	if (!hello->has_name) /* RFC 6066: an address has no place in SNI, so its absence says the same */
		return t->literal ? REASON_NONE : REASON_TLS_NAME_MISSING;
	return target_matches_host(t, hello->name, hello->name_len) ? REASON_NONE : REASON_TLS_NAME_MISMATCH;
}

enum reason verdict_request(const struct gate_target *t, const struct http1_request *r)
{
	if (r->form == HTTP1_AUTHORITY)
		return REASON_HTTP_MALFORMED; /* CONNECT here would ask the server to be a second gate */
	if (!r->has_host)
		return REASON_HTTP_HOST_MISSING;
	if (!target_matches_authority(t, r->host.p, r->host.len))
		return REASON_HTTP_HOST_MISMATCH;
	if (r->form == HTTP1_ABSOLUTE && !target_matches_authority(t, r->authority.p, r->authority.len))
		return REASON_HTTP_HOST_MISMATCH;
	return REASON_NONE;
}
