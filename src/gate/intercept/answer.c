/* SPDX-License-Identifier: Apache-2.0 */
/* How a refusal of one request sounds: the same code and the same words as everywhere else. */
#include <stdio.h>

#include "base/mem.h"
#include "gate/intercept/internal.h"
#include "gate/refuse.h"

static char *why(struct guest *g, enum reason reason, const struct http_head *request, int rule)
{
	const struct policy *p = g->flow->gate->policy;
	const struct gate_target *t = &g->flow->target;
	struct request_verdict v = { .verdict = { .reason = reason, .rule = rule } };
	if (!request)
		return policy_explain_verdict(p, &v.verdict, t->text, t->port);
	cleanup_free char *method = http_text_dup(request->method), *path = http_text_dup(request->path);
	return policy_explain_request(p, &v, t->text, t->port, method, path);
}

void answer_refusal(struct guest *g, enum reason reason, const struct exchange *x, struct http_head *head, struct buf *body)
{
	bool denial = refuse_is_denial(reason);
	const char *name = reason_name(reason);
	char length[24];
	if (denial) {
		cleanup_free char *text = why(g, reason, x ? &x->head : NULL, x ? x->rule : -1);
		buf_printf(body, "Bulkhead: policy refuses this request. The network is not at fault, and another way (without the proxy, by "
			"address) gets the same answer.\nreason: %s\n%s\n", name, text);
	} else {
		buf_printf(body, "Bulkhead: policy allows this request, but it failed.\nreason: %s: %s\n", name, reason_text(reason));
	}
	head->status = denial ? 403 : 502;
	head->has_length = true;
	head->length = body->len;
	snprintf(length, sizeof(length), "%zu", body->len);
	http_head_add(head, "content-type", "text/plain; charset=utf-8", 25);
	http_head_add(head, "bulkhead-reason", name, strlen(name));
	http_head_add(head, "cache-control", "no-store", 8);
}
