/* SPDX-License-Identifier: Apache-2.0 */
/* A verdict in words: which rule, where it stands, what happens next or how to ask. */
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "policy/explain.h"
#include "policy/floor.h"

static void put_ports(struct buf *b, const struct network_rule *r)
{
	for (unsigned i = 0; i < r->n_ports; i++)
		buf_printf(b, "%s%u", i ? ", " : "", r->ports[i]);
}

void explain_put_rule(struct buf *b, const struct policy *p, int index)
{
	const struct network_rule *r = &p->rules[index];
	cleanup_free char *more = policy_describe_rule(r);
	buf_printf(b, "rule %d of policy \"%s\" (", index + 1, p->name);
	if (r->line)
		buf_printf(b, "line %u: ", r->line);
	else
		buf_printf(b, "given by %s: ", r->request ? "--secret" : "--allow");
	buf_printf(b, "host %s, port%s ", r->text, r->n_ports == 1 ? "" : "s");
	put_ports(b, r);
	buf_printf(b, "%s%s%s)", r->private_ok ? ", private" : "", *more ? "; " : "", more);
}

void explain_put_after(struct buf *b, const struct network_rule *r)
{
	if (r->is_address)
		buf_printf(b, "then: this very address is dialled, and no other.\n");
	else if (r->private_ok)
		buf_printf(b,
			"after resolution: addresses of private networks and of this machine may be dialled, because the rule says "
			"`private: true`; metadata services, multicast and reserved addresses stay refused.\n");
	else
		buf_printf(b,
			"after resolution: only public addresses are dialled; loopback, private, link-local, metadata and reserved "
			"addresses and those of this machine are refused, because the rule doesn't say `private: true`.\n");
}

static void put_allowed(struct buf *b, const struct policy *p, const struct verdict *v, const char *host, uint16_t port)
{
	const struct network_rule *r = &p->rules[v->rule];
	buf_printf(b, "allowed: ");
	if (port)
		buf_printf(b, "%s port %u, by ", host, port);
	else
		buf_printf(b, "%s, by ", host);
	explain_put_rule(b, p, v->rule);
	buf_printf(b, ".\n");
	explain_put_after(b, r);
}

static void put_why_denied(struct buf *b, const struct policy *p, const struct verdict *v, const char *host, uint16_t port)
{
	buf_printf(b, "denied (%s): ", reason_name(v->reason));
	if (v->reason == REASON_NO_RULE) {
		buf_printf(b, "no rule of policy \"%s\" names %s, and what no rule names is refused.\n", p->name, host);
	} else if (v->reason == REASON_PORT_NOT_ALLOWED && v->rule >= 0) {
		explain_put_rule(b, p, v->rule);
		buf_printf(b, " names %s, but not port %u.\n", host, port);
	} else {
		buf_printf(b, "%s: %s.\n", host, reason_text(v->reason));
		if (v->rule >= 0) {
			buf_printf(b, "nearest: ");
			explain_put_rule(b, p, v->rule);
			buf_printf(b, ".\n");
		}
	}
}

/* Where a rule would have to stand. */
static void put_place(struct buf *b, const struct policy *p)
{
	if (p->builtin)
		buf_printf(b, " under `network` in a policy file");
	else if (p->owner)
		buf_printf(b, " under `network` of policy \"%s\" (owner: %s)", p->name, p->owner);
	else
		buf_printf(b, " under `network` of policy \"%s\"", p->name);
}

static void put_new_rule(struct buf *b, const struct policy *p, const char *host, uint16_t port, bool private_too)
{
	buf_printf(b, "to ask for it: add - { host: \"%s\", ports: [%u]%s }", host, port, private_too ? ", private: true" : "");
	put_place(b, p);
	if (!private_too)
		buf_printf(b, ", or start with --allow %s%s%s:%u", strchr(host, ':') ? "[" : "", host,
			strchr(host, ':') ? "]" : "", port);
	buf_printf(b, ".\n");
}

/* A host that is an address which the floor keeps: only `private: true` opens it, and some nothing opens. */
static void put_ask_address(struct buf *b, const struct policy *p, const struct ip *ip, uint16_t port)
{
	struct ip plain = ip_unmap(ip);
	struct floor_verdict floor = floor_judge(&plain);
	char text[IP_TEXT_MAX];
	ip_format(&plain, text);
	if (!floor.liftable)
		buf_printf(b, "no rule can open %s.\n", text);
	else if (floor.reason != REASON_ADDRESS_METADATA) /* nobody should be led there by a message */
		put_new_rule(b, p, text, port, floor.reason != REASON_NONE);
}

static const char *limit_of(enum reason budget)
{
	if (budget == REASON_BUDGET_CONNECTIONS)
		return "connections";
	if (budget == REASON_BUDGET_REQUESTS)
		return "egress_requests";
	return budget == REASON_BUDGET_BYTES ? "egress_bytes" : NULL;
}

static void put_ask(struct buf *b, const struct policy *p, const struct verdict *v, const char *host, uint16_t port)
{
	uint16_t wanted = port ? port : 443;
	struct hostname name;
	struct ip ip;
	if (limit_of(v->reason))
		buf_printf(b, "to ask for it: raise `%s` under `limits` in the policy.\n", limit_of(v->reason));
	else if (v->reason == REASON_PORT_NOT_ALLOWED && v->rule >= 0)
		buf_printf(b, "to ask for it: add %u to the `ports` of that rule, or start with --allow.\n", wanted);
	else if (ip_parse(host, strlen(host), &ip) == 0)
		put_ask_address(b, p, &ip, wanted);
	else if (hostname_parse(host, strlen(host), &name, NULL) < 0)
		buf_printf(b, "no rule can name it as it is written.\n");
	else if (v->reason == REASON_NO_RULE)
		put_new_rule(b, p, name.text, wanted, false);
}

char *explain_take(struct buf *b)
{
	while (b->len > 0 && b->data[b->len - 1] == '\n')
		b->len--;
	char *text = mem_strndup(b->data ? (const char *)b->data : "", b->len);
	buf_free(b);
	return text;
}

char *policy_explain_verdict(const struct policy *p, const struct verdict *v, const char *host, uint16_t port)
{
	struct buf b;
	char shown[EXPLAIN_HOST_MAX];
	text_escape(host, strlen(host), shown, sizeof(shown));
	buf_init(&b, EXPLAIN_MAX);
	if (v->allow && v->rule >= 0) {
		put_allowed(&b, p, v, shown, port);
	} else {
		put_why_denied(&b, p, v, shown, port);
		put_ask(&b, p, v, host, port);
	}
	return explain_take(&b);
}
