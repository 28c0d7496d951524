/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/refuse.h"

#include "base/mem.h"


#define BODY_MAX (16u * 1024u)

bool refuse_is_denial(enum reason reason)
{
	static const enum reason failures[] = { REASON_RESOLVE_FAILED, REASON_CONNECT_FAILED, REASON_UPSTREAM_PROTOCOL, REASON_SERVER_CLOSED,
		REASON_CLIENT_CLOSED, REASON_SECRET_UNAVAILABLE };
	for (size_t i = 0; i < ARRAY_LEN(failures); i++)
		if (reason == failures[i])
			return false;
	return true;
}

static int put_denial_body(const struct policy *policy, const struct verdict *v, const struct gate_target *t, struct buf *body)
{
	char *why = policy_explain_verdict(policy, v, t->text, t->port);
	int e = buf_printf(body, "Bulkhead: policy refuses this connection. The network is not at fault, and "
		"another way (without the proxy, by address) gets the same answer.\nreason: %s\n%s\n", reason_name(v->reason), why);
	mem_free(why);
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
	e |= buf_printf(out, "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\n"
		"Bulkhead-Reason: %s\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
		denial ? "403 Forbidden" : "502 Bad Gateway", body.len, reason_name(v->reason));
	e |= buf_append(out, body.data, body.len);
	buf_free(&body);
	return e ? -1 : 0;
}

int refuse_tls(struct buf *out)
{
	static const uint8_t alert[] = { 21, 3, 3, 0, 2, 2, 49 };
	return buf_append(out, alert, sizeof(alert));
}
