/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/budget.h"

#include "base/mem.h"
#include "policy/request.h"

struct rule_use {
	struct rule_limits max;
	uint64_t connections, requests, bytes[2];
	uint64_t *stamps;         /* when the last max.rate_count requests came, as a ring */
	size_t n_stamps, next;
};

static const struct rule_limits unlimited = { POLICY_UNLIMITED, POLICY_UNLIMITED, POLICY_UNLIMITED, POLICY_UNLIMITED, POLICY_UNLIMITED, 0 };

static void rules_init(struct budget *b, const struct policy *p)
{
	b->n_rules = p->n_rules;
	b->rules = p->n_rules ? mem_alloc_array(p->n_rules, sizeof(*b->rules)) : NULL;
	for (size_t i = 0; i < p->n_rules; i++)
		b->rules[i] = (struct rule_use){ .max = p->rules[i].limits ? *p->rules[i].limits : unlimited };
}

static void take_limits(struct budget *b, const struct policy_limits *limits)
{
	b->connections_max = limits->connections;
	b->requests_max = limits->egress_requests;
	b->bytes_max = limits->egress_bytes;
}

void budget_init(struct budget *b, const struct policy *p)
{
	*b = (struct budget){ 0 };
	take_limits(b, &p->limits);
	rules_init(b, p);
}

void budget_done(struct budget *b)
{
	for (size_t i = 0; i < b->n_rules; i++)
		mem_free(b->rules[i].stamps);
	b->rules = mem_free(b->rules);
	b->n_rules = 0;
}

void budget_renew(struct budget *b, const struct policy *p)
{
	budget_done(b);
	take_limits(b, &p->limits);
	rules_init(b, p);
}

static struct rule_use *use_of(const struct budget *b, int rule)
{
	return rule >= 0 && (size_t)rule < b->n_rules ? &b->rules[rule] : NULL;
}

/* The oldest of the last rate_count requests must be longer ago than the window. */
static bool rate_allows(const struct rule_use *u, uint64_t now_ns)
{
	if (u->max.rate_count == POLICY_UNLIMITED || u->n_stamps < u->max.rate_count)
		return true;
	return u->max.rate_count > 0 && now_ns - u->stamps[u->next] >= u->max.rate_ns;
}

static void rate_count(struct rule_use *u, uint64_t now_ns)
{
	if (u->max.rate_count == POLICY_UNLIMITED)
		return;
	if (!u->stamps)
		u->stamps = mem_alloc_array(u->max.rate_count, sizeof(*u->stamps));
	u->stamps[u->next] = now_ns;
	u->next = (u->next + 1) % u->max.rate_count;
	if (u->n_stamps < u->max.rate_count)
		u->n_stamps++;
}

static enum reason may_request(const struct budget *b, const struct rule_use *u, uint64_t now_ns)
{
	if (b->requests >= b->requests_max || (u && u->requests >= u->max.requests))
		return REASON_BUDGET_REQUESTS;
	return !u || rate_allows(u, now_ns) ? REASON_NONE : REASON_BUDGET_RATE;
}

static bool bytes_left(const struct budget *b, int rule)
{
	return budget_room(b, rule, BUDGET_UP, 1) && budget_room(b, rule, BUDGET_DOWN, 1);
}

static void count_request(struct budget *b, struct rule_use *u, uint64_t now_ns)
{
	b->requests++;
	if (u) {
		u->requests++;
		rate_count(u, now_ns);
	}
}

enum reason budget_admit(struct budget *b, int rule, bool request, uint64_t now_ns)
{
	struct rule_use *u = use_of(b, rule);
	enum reason reason = request ? may_request(b, u, now_ns) : REASON_NONE;
	if (reason != REASON_NONE)
		return reason;
	if (!bytes_left(b, rule))
		return REASON_BUDGET_BYTES;
	if (b->connections >= b->connections_max || (u && u->connections >= u->max.connections))
		return REASON_BUDGET_CONNECTIONS;
	b->connections++;
	if (u)
		u->connections++;
	if (request)
		count_request(b, u, now_ns);
	return REASON_NONE;
}

enum reason budget_request(struct budget *b, int rule, uint64_t now_ns)
{
	struct rule_use *u = use_of(b, rule);
	enum reason reason = may_request(b, u, now_ns);
	if (reason == REASON_NONE && !bytes_left(b, rule))
		reason = REASON_BUDGET_BYTES;
	if (reason == REASON_NONE)
		count_request(b, u, now_ns);
	return reason;
}

void budget_adopt(struct budget *b, int rule)
{
	struct rule_use *u = use_of(b, rule);
	if (u)
		u->connections++;
}

void budget_release(struct budget *b, int rule)
{
	struct rule_use *u = use_of(b, rule);
	b->connections--;
	if (u && u->connections) /* a newer policy counts anew */
		u->connections--;
}

static uint64_t left(uint64_t max, uint64_t used) { return max > used ? max - used : 0; }

size_t budget_room(const struct budget *b, int rule, enum budget_direction direction, size_t want)
{
	const struct rule_use *u = use_of(b, rule);
	uint64_t room = left(b->bytes_max, b->bytes);
	if (u) {
		uint64_t own = left(direction == BUDGET_UP ? u->max.bytes_up : u->max.bytes_down, u->bytes[direction]);
		room = own < room ? own : room;
	}
	return room < want ? (size_t)room : want;
}

void budget_spend(struct budget *b, int rule, enum budget_direction direction, size_t n)
{
	struct rule_use *u = use_of(b, rule);
	b->bytes += n;
	if (u)
		u->bytes[direction] += n;
}

uint64_t budget_limit(const struct budget *b, enum reason reason)
{
	if (reason == REASON_BUDGET_REQUESTS)
		return b->requests_max;
	return reason == REASON_BUDGET_BYTES ? b->bytes_max : b->connections_max;
}
