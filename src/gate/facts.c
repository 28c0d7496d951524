/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/facts.h"

#include <stdio.h>

void facts_fill(struct request_facts *ret, struct request_field *fields, const struct gate_target *t, const struct http_head *head, bool tls)
{
	for (size_t i = 0; i < head->n_fields; i++) {
		const struct http_field *f = &head->fields[i];
		fields[i] = (struct request_field){ f->name.p, f->name.len, f->value.p, f->value.len };
	}
	*ret = (struct request_facts){
		.name = t->literal ? NULL : &t->name,
		.ip = t->literal ? &t->ip : NULL,
		.port = t->port,
		.tls = tls,
		.method = head->method.p,
		.method_len = head->method.len,
		.target = head->path.p,
		.target_len = head->path.len,
		.fields = fields,
		.n_fields = head->n_fields,
		.upgrade = head->protocol.len > 0,
	};
}

const char *facts_authority(const struct gate_target *t, char out[TARGET_HOST_MAX])
{
	bool brackets = t->literal && t->ip.family == AF_INET6;
	snprintf(out, TARGET_HOST_MAX, brackets ? "[%s]:%u" : "%s:%u", t->text, t->port);
	return out;
}

const struct secret_binding *facts_binding(const struct policy *p, int rule)
{
	return rule >= 0 && (size_t)rule < p->n_rules && p->rules[rule].request ? p->rules[rule].request->secret : NULL;
}
