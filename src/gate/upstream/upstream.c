/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/upstream/upstream.h"

#include "base/fd.h"
#include "base/mem.h"
#include "gate/policy-file.h"
#include "gate/upstream/internal.h"

/* ---- before confinement ---- */

int upstream_system_read(struct upstream_system *ret, struct err *err)
{
	struct upstream_system s = { 0 };
	s.roots = tls_roots_read(err);
	if (!s.roots)
		return -1;
	if (gate_system_read(&s.gate, err) < 0) {
		tls_roots_free(s.roots);
		return -1;
	}
	*ret = s;
	return 0;
}

/* ---- what the supervisor says ---- */

static void use_policy(struct upstream *u, struct policy *p)
{
	trust_forget(u);
	policy_free(u->policy);
	u->policy = p;
	u->facts.policy = p;
}

static int use_resolvers(struct upstream *u, const struct gate_msg_config *m, struct err *err)
{
	struct buf csv;
	buf_init(&csv, GATE_RESOLVERS_MAX * (GATE_RESOLVER_TEXT_MAX + 1) + 1);
	for (unsigned i = 0; i < m->n_resolvers; i++)
		buf_printf(&csv, "%s%s", i ? "," : "", m->resolvers[i]);
	buf_append(&csv, "", 1);
	int r = m->n_resolvers ? resolver_set_servers(u->resolver, (const char *)csv.data, err) : 0;
	buf_free(&csv);
	return r;
}

int upstream_configure(struct upstream *u, const struct gate_msg_config *m, int policy_fd, struct err *err)
{
	struct policy *p = policy_fd_read(policy_fd, m->policy_len, err);
	if (!p)
		return -1;
	use_policy(u, p);
	if (use_resolvers(u, m, err) < 0)
		return -1;
	u->vault = vault_new(u->loop, m->placeholders, m->n_placeholders, supervisor_help, u);
	if (!u->vault)
		return err_set(err, ERR_MEMORY, "cannot make room for the sandbox's secrets");
	return link_start(u);
}

/* Flows first: a flow that must go takes its exchanges with it. */
static uint64_t judge_again(struct upstream *u)
{
	uint64_t cut = 0;
	for (struct upflow *f = u->first_flow, *next; f; f = next) {
		next = f->next;
		if (!upflow_rejudge(f)) {
			upflow_cut(f, REASON_POLICY_CHANGED);
			cut++;
			continue;
		}
		for (struct exchange *x = f->exchanges, *after; x; x = after) {
			after = exchange_next(x);
			if (!exchange_rejudge(x)) {
				exchange_refuse(x, REASON_POLICY_CHANGED, NULL);
				cut++;
			}
		}
	}
	return cut;
}

int upstream_set_policy(struct upstream *u, const struct gate_msg_policy *m, int policy_fd, uint64_t *ret_cut, struct err *err)
{
	struct policy *p = policy_fd_read(policy_fd, m->policy_len, err);
	if (!p)
		return -1;
	use_policy(u, p);
	*ret_cut = judge_again(u);
	return 0;
}

void upstream_revoke(struct upstream *u, const char *name)
{
	int id = vault_revoke(u->vault, name);
	for (struct upflow *f = u->first_flow, *next; id >= 0 && f; f = next) {
		next = f->next;
		if (upflow_secrets(f) >> id & 1)
			upflow_cut(f, REASON_SECRET_REVOKED);
	}
}

/* ---- beginning and end ---- */

void upstream_fail(struct upstream *u, const struct err *err)
{
	if (u->failure.code == ERR_NONE)
		u->failure = *err;
	loop_quit(u->loop, 1);
}

const struct err *upstream_failure(const struct upstream *u) { return &u->failure; }

static void on_record_lost(void *ctx, const struct err *err)
{
	struct upstream *u = ctx;
	u->facts.record_available = false;
	upstream_fail(u, err);
}

static void on_record_idle(void *ctx) {}

struct upstream *upstream_new(struct loop *loop, int control_fd, int audit_fd, int link_fd, struct upstream_system *system, struct err *err)
{
	static const struct recorder_ops recorder_ops = { on_record_lost, on_record_idle };
	struct upstream *u = mem_alloc(sizeof(*u));
	*u = (struct upstream){ .loop = loop, .link_fd = link_fd, .roots = system->roots, .host_addresses = system->gate.host_addresses };
	u->facts = (struct gate_facts){ .host_addresses = u->host_addresses, .n_host_addresses = system->gate.n_host_addresses, .record_available = true };
	fd_set_nonblock(audit_fd, true);
	u->supervisor = supervisor_new(u, control_fd);
	u->recorder = recorder_new(loop, audit_fd, &recorder_ops, u);
	u->resolver = resolver_new(loop, system->gate.hosts, err);
	*system = (struct upstream_system){ 0 };
	return u->resolver ? u : upstream_free(u);
}

struct upstream *upstream_free(struct upstream *u)
{
	if (!u)
		return NULL;
	while (u->first_flow)
		upflow_cut(u->first_flow, REASON_SUPERVISOR_LOST);
	u->link = channel_free(u->link); /* its streams end, and with them the last exchanges */
	u->supervisor = supervisor_free(u->supervisor);
	vault_free(u->vault);
	resolver_free(u->resolver);
	recorder_free(u->recorder);
	trust_forget(u);
	policy_free(u->policy);
	tls_roots_free(u->roots);
	table_done(&u->flows);
	table_done(&u->streams);
	fd_close(&u->link_fd);
	mem_free(u->host_addresses);
	return mem_free(u);
}
