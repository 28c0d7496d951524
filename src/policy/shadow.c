/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that can never win, because one in front of them lets everything through. */
#include "policy/shadow.h"

#include "base/mem.h"
#include "policy/rule.h"

/* Does every place that `r` names belong to `wide` too? */
static bool covers_host(const struct network_rule *wide, const struct network_rule *r)
{
	if (r->is_address || wide->is_address)
		return r->is_address && wide->is_address && ip_equal(&wide->address, &r->address);
	if (r->wildcard && wide->wildcard && hostname_equal(&wide->name, &r->name))
		return true;
	/* "*.a.b" covers "*.x.a.b", since it covers "x.a.b" and all below. */
	return (wide->wildcard || !r->wildcard) && rule_matches_name(wide, &r->name);
}

static bool covers(const struct network_rule *wide, const struct network_rule *r)
{
	if (!covers_host(wide, r))
		return false;
	for (unsigned i = 0; i < r->n_ports; i++)
		if (!rule_has_port(wide, r->ports[i]))
			return false;
	return true;
}

char *shadow_warning(const struct policy *p, const char *file)
{
	for (size_t i = 0; i < p->n_rules; i++)
		for (size_t k = 0; k < i; k++) {
			const struct network_rule *r = &p->rules[i], *wide = &p->rules[k];
			if (r->request && !wide->request && covers(wide, r))
				return mem_printf("%s: the rule for %s in line %u is never asked, since the one for %s in line %u allows every request; put it in front of that one",
					file, r->text, r->line, wide->text, wide->line);
		}
	return NULL;
}
