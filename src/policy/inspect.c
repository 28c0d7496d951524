/* SPDX-License-Identifier: Apache-2.0 */
/* Which connections have to be looked into. */
#include "policy/request.h"
#include "policy/rule.h"

static bool names_place(const struct network_rule *r, const struct hostname *name, const struct ip *ip)
{
	return name ? rule_matches_name(r, name) : r->is_address && ip_equal(&r->address, ip);
}

bool policy_needs_inspection(const struct policy *p, const struct hostname *name, const struct ip *ip, uint16_t port)
{
	for (size_t i = 0; i < p->n_rules; i++)
		if (p->rules[i].request && rule_has_port(&p->rules[i], port) && names_place(&p->rules[i], name, ip))
			return true;
	return false;
}

bool policy_inspects(const struct policy *p)
{
	for (size_t i = 0; i < p->n_rules; i++)
		if (p->rules[i].request)
			return true;
	return false;
}
