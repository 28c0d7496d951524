/* SPDX-License-Identifier: Apache-2.0 */
/* Which connections have to be looked into. */
#include "policy/request.h"
#include "policy/rule.h"

bool policy_needs_inspection(const struct policy *p, const struct hostname *name, const struct ip *ip, uint16_t port)
{
	for (size_t i = 0; i < p->n_rules; i++)
		if (p->rules[i].request && rule_opens(&p->rules[i], name, ip, port))
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
