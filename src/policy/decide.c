/* SPDX-License-Identifier: Apache-2.0 */
/* Facts in, verdict and reason out. The floor comes first, then the rules, then no. */
#include "base/mem.h"
#include "policy/floor.h"
#include "policy/policy.h"
#include "policy/rule.h"

static struct verdict allow(size_t rule)
{
	return (struct verdict){ .allow = true, .reason = REASON_ALLOWED, .rule = (int)rule };
}

static struct verdict deny(enum reason reason, int rule)
{
	return (struct verdict){ .allow = false, .reason = reason, .rule = rule };
}

struct verdict policy_decide_name(const struct policy *p, const struct hostname *name, uint16_t port)
{
	int named = -1;
	for (size_t i = 0; i < p->n_rules; i++) {
		if (!rule_matches_name(&p->rules[i], name))
			continue;
		if (port == 0 || rule_has_port(&p->rules[i], port))
			return allow(i);
		if (named < 0)
			named = (int)i;
	}
	return named < 0 ? deny(REASON_NO_RULE, -1) : deny(REASON_PORT_NOT_ALLOWED, named);
}

static unsigned add_port(uint16_t *ports, unsigned n, unsigned room, uint16_t port)
{
	for (unsigned i = 0; i < n; i++)
		if (ports[i] == port)
			return n;
	if (n < room)
		ports[n++] = port;
	return n;
}

unsigned policy_ports_of(const struct policy *p, const struct hostname *name, uint16_t *ret_ports, unsigned room)
{
	unsigned n = 0;
	for (size_t i = 0; i < p->n_rules; i++)
		if (rule_matches_name(&p->rules[i], name))
			for (unsigned j = 0; j < p->rules[i].n_ports; j++)
				n = add_port(ret_ports, n, room, p->rules[i].ports[j]);
	return n;
}

static bool names_address(const struct network_rule *r, const struct ip *plain)
{
	return r->is_address && ip_equal(&r->address, plain);
}

/* Does the rule get past the floor at this address? The metadata services open only to a rule that names the very
 * address: a name whose owner points it there must not. */
static enum reason floor_for_rule(const struct network_rule *r, const struct ip *plain)
{
	struct floor_verdict floor = floor_judge(plain);
	if (floor.reason == REASON_NONE)
		return REASON_NONE;
	bool metadata = floor.reason == REASON_ADDRESS_METADATA;
	return r->private_ok && floor.liftable && (!metadata || names_address(r, plain)) ? REASON_NONE : floor.reason;
}

bool rule_opens(const struct network_rule *r, const struct hostname *name, const struct ip *ip, uint16_t port)
{
	if (!rule_has_port(r, port))
		return false;
	if (name)
		return rule_matches_name(r, name);
	struct ip plain = ip_unmap(ip);
	return names_address(r, &plain) && floor_for_rule(r, &plain) == REASON_NONE;
}

struct verdict policy_decide_address(const struct policy *p, const struct ip *ip, uint16_t port)
{
	struct ip plain = ip_unmap(ip);
	enum reason reason = floor_classify(&plain);
	int named = -1;
	if (reason == REASON_NONE)
		reason = REASON_ADDRESS_LITERAL;
	for (size_t i = 0; i < p->n_rules; i++) {
		if (!names_address(&p->rules[i], &plain))
			continue;
		enum reason floor = floor_for_rule(&p->rules[i], &plain);
		if (floor == REASON_NONE && (port == 0 || rule_has_port(&p->rules[i], port)))
			return allow(i);
		if (named >= 0)
			continue;
		named = (int)i;
		reason = floor == REASON_NONE ? REASON_PORT_NOT_ALLOWED : floor;
	}
	return deny(reason, named);
}

static bool same_machine(const struct ip *plain, const struct ip *own)
{
	struct ip own_plain = ip_unmap(own), inner;
	if (ip_equal(plain, &own_plain))
		return true;
	/* The same address by way of NAT64 comes back to this machine. */
	return plain->family == AF_INET6 && ip_embedded_v4(plain, &inner) && ip_equal(&inner, &own_plain);
}

static bool is_host_address(const struct ip *plain, const struct ip *own, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (same_machine(plain, &own[i]))
			return true;
	return false;
}

struct verdict policy_decide_dial(const struct policy *p, int rule, const struct ip *ip, const struct ip *host_addresses,
	size_t n_host_addresses)
{
	if (rule < 0 || (size_t)rule >= p->n_rules)
		return deny(REASON_NO_RULE, -1);
	const struct network_rule *r = &p->rules[rule];
	struct ip plain = ip_unmap(ip);
	/* A rule for an address opens that address and nothing that something else made of it. */
	if (r->is_address && !names_address(r, &plain))
		return deny(REASON_ADDRESS_LITERAL, rule);
	enum reason floor = floor_for_rule(r, &plain);
	if (floor != REASON_NONE)
		return deny(floor, rule);
	if (!r->private_ok && is_host_address(&plain, host_addresses, n_host_addresses))
		return deny(REASON_ADDRESS_HOST, rule);
	return allow((size_t)rule);
}
