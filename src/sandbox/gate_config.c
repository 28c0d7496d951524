/* SPDX-License-Identifier: Apache-2.0 */
/* What both halves of the gate are told at their start: the same policy, resolvers and placeholders. */
#include "sandbox/internal.h"

#include <string.h>

#include "gate/config-message.h"
#include "gate/policy-file.h"

static void fill_placeholders(const struct grants *g, struct gate_msg_config *m)
{
	for (size_t i = 0; g && i < g->n; i++) {
		struct gate_placeholder *p = &m->placeholders[m->n_placeholders++];
		memcpy(p->name, g->list[i].name, sizeof(p->name));
		memcpy(p->text, g->list[i].placeholder, sizeof(p->text));
	}
}

const struct gate_msg_config *sandbox_gate_config(struct sandbox *s, int *ret_fd, struct err *err)
{
	static struct gate_msg_config m;
	m = (struct gate_msg_config){ 0 };
	memcpy(m.sandbox, s->spec.id, sizeof(m.sandbox));
	for (size_t i = 0; s->resolvers && s->resolvers[i] && i < GATE_RESOLVERS_MAX; i++)
		strncpy(m.resolvers[m.n_resolvers++], s->resolvers[i], GATE_RESOLVER_TEXT_MAX);
	fill_placeholders(s->grants, &m);
	*ret_fd = policy_fd_make(s->policy, &m.policy_len, err);
	return *ret_fd < 0 ? NULL : &m;
}
