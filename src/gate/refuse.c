/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/refuse.h"


#define BODY_MAX (16u * 1024u)

bool refuse_is_denial(enum reason reason) { return reason != REASON_RESOLVE_FAILED && reason != REASON_CONNECT_FAILED; }

static bool is_about_policy(enum reason reason)
{
	return reason == REASON_NO_RULE || reason == REASON_PORT_NOT_ALLOWED || reason == REASON_ADDRESS_LITERAL;
}

static int put_denial_body(const struct policy *policy, const struct verdict *v, const struct gate_target *t, struct buf *body)
{
	bool v6 = t->literal && t->ip.family == AF_INET6;
	int e = buf_printf(body, v6 ? "Bulkhead: egress to [%s]:%u is denied by policy. This is not a fault of the network; going around the "
		"proxy meets the same answer.\n" : "Bulkhead: egress to %s:%u is denied by policy. This is not a fault of the network; going around "
		"the proxy meets the same answer.\n", t->text, t->port);
	e |= buf_printf(body, "reason: %s: %s\n", reason_name(v->reason), reason_text(v->reason));
	if (v->rule >= 0 && (size_t)v->rule < policy->n_rules)
		e |= buf_printf(body, "rule: %s\n", policy->rules[v->rule].text);
	else
		e |= buf_printf(body, "rule: none\n");
	if (is_about_policy(v->reason))
		e |= buf_printf(body, v6 ? "to ask: run with `bulkhead run --allow [%s]:%u`, or add to the policy's network list: "
			"- { host: \"%s\", ports: [%u] }\n" : "to ask: run with `bulkhead run --allow %s:%u`, or add to the policy's network list: "
			"- { host: \"%s\", ports: [%u] }\n", t->text, t->port, t->text, t->port);
	return e;
}

static int put_failure_body(const struct verdict *v, const struct gate_target *t, struct buf *body)
{
	return buf_printf(body, "Bulkhead: policy allows %s:%u, but the connection failed.\nreason: %s: %s\n", t->text, t->port,
		reason_name(v->reason), reason_text(v->reason));
}

int refuse_http(const struct policy *policy, const struct verdict *v, const struct gate_target *t, struct buf *out)
{
	struct buf body;
	buf_init(&body, BODY_MAX);
	bool denial = refuse_is_denial(v->reason);
	int e = denial ? put_denial_body(policy, v, t, &body) : put_failure_body(v, t, &body);
	e |= buf_printf(out, "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\nBulkhead-Reason: %s\r\n"
		"Cache-Control: no-store\r\nConnection: close\r\n\r\n", denial ? "403 Forbidden" : "502 Bad Gateway", body.len, reason_name(v->reason));
	e |= buf_append(out, body.data, body.len);
	buf_free(&body);
	return e ? -1 : 0;
}

int refuse_tls(struct buf *out)
{
	static const uint8_t alert[] = { 21, 3, 3, 0, 2, 2, 49 };
	return buf_append(out, alert, sizeof(alert));
}
