/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/gate.h"

#include <errno.h>
#include <ifaddrs.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "gate/internal.h"
#include "gate/policy-file.h"
#include "policy/request.h"

#define FLUSH_NS (10 * NS_PER_S)

/* ---- before confinement ---- */

static int read_host_addresses(struct gate_system *s, struct err *err)
{
	struct ifaddrs *list;
	if (getifaddrs(&list) < 0)
		return err_sys(err, errno, "cannot list the host's own addresses, which the gate must never dial");
	for (struct ifaddrs *i = list; i && s->n_host_addresses < GATE_HOST_ADDRESSES_MAX; i = i->ifa_next) {
		struct ip ip;
		if (!i->ifa_addr || ip_from_sockaddr(i->ifa_addr, &ip, NULL) < 0)
			continue;
		s->host_addresses = mem_grow_array(s->host_addresses, s->n_host_addresses + 1, sizeof(ip));
		s->host_addresses[s->n_host_addresses++] = ip;
	}
	freeifaddrs(list);
	return 0;
}

int gate_system_read(struct gate_system *ret, struct err *err)
{
	struct gate_system s = { 0 };
	s.hosts = hosts_read("/etc/hosts", err);
	if (!s.hosts)
		return -1;
	if (read_host_addresses(&s, err) < 0) {
		hosts_free(s.hosts);
		return -1;
	}
	*ret = s;
	return 0;
}

/* ---- denials ---- */

static void record_summed_denials(struct gate *g)
{
	static const struct gate_target all = { .text = "*" };
	for (unsigned i = 0; i < REASON_MAX; i++) {
		struct egress_event e = {
			.target = &all,
			.entrance = "any",
			.verdict = { .reason = (enum reason)i, .rule = -1 },
			.count = g->denials_summed[i],
		};
		if (e.count && recorder_egress(g->recorder, &e, NULL, NULL, NULL) == 0)
			g->denials_summed[i] = 0;
	}
}

static void flush_later(struct gate *g)
{
	if (g->flush_armed)
		return;
	g->flush_armed = true;
	loop_timer_set(g->flush, FLUSH_NS, 0);
}

static bool is_budget(enum reason reason)
{
	return reason == REASON_BUDGET_CONNECTIONS || reason == REASON_BUDGET_REQUESTS || reason == REASON_BUDGET_BYTES ||
		reason == REASON_BUDGET_RATE;
}

/* Counts a denial and tells the supervisor. True: it is to be recorded by itself, not only as one of many. */
static bool count_denial(struct gate *g, const struct gate_target *t, enum reason reason)
{
	bool single = g->denials_single < GATE_DENIALS_SINGLE_MAX;
	g->totals.denied++;
	if (is_budget(reason))
		control_limit(g, reason);
	if (single) {
		g->denials_single++;
	} else {
		g->denials_summed[reason]++;
		flush_later(g);
	}
	control_denied(g, t, reason);
	return single;
}

void gate_denied(struct gate *g, const struct egress_event *e)
{
	if (count_denial(g, e->target, e->verdict.reason))
		recorder_egress(g->recorder, e, NULL, NULL, NULL);
}

void gate_request_denied(struct gate *g, const struct request_event *e)
{
	if (count_denial(g, e->target, e->verdict.reason))
		recorder_request(g->recorder, e, NULL, NULL, NULL);
}

static void flush_counts(struct gate *g)
{
	names_flush(g->names);
	record_summed_denials(g);
}

static void on_flush(void *ctx)
{
	struct gate *g = ctx;
	g->flush_armed = false;
	flush_counts(g);
}

/* ---- names ---- */

void gate_asked_name(struct gate *g, const struct gate_msg_name *m)
{
	struct gate_target t;
	struct verdict v = { .reason = target_from_name(m->text, m->len, 0, &t), .rule = -1 };
	if (g->finishing)
		v.reason = REASON_KILLED;
	else if (recorder_lost(g->recorder))
		v.reason = REASON_RECORD_UNAVAILABLE;
	else if (t.literal)
		v.reason = REASON_BAD_NAME; /* an address is nothing to ask DNS for */
	else if (v.reason == REASON_NONE)
		v = policy_decide_name(g->policy, &t.name, 0);
	if (g->interceptor && g->interceptor_ops->look_at_name(g->interceptor, NULL, t.text))
		v = (struct verdict){ .reason = REASON_SECRET_MISPLACED, .rule = -1 };
	struct gate_msg_answer a = { .query = m->query, .allowed = v.allow };
	if (v.allow)
		a.n_ports = (uint16_t)policy_ports_of(g->policy, &t.name, a.ports, WIRE_PORTS_MAX);
	/* The first question for a name that nothing allows counts as a denial, like a refused connection (whose port is then 0). */
	if (names_asked(g->names, t.text, &v) && !v.allow)
		control_denied(g, &t, v.reason);
	flush_later(g);
	control_answer_name(g, &a);
}

/* ---- beginning and end ---- */

static int use_resolvers(struct gate *g, const struct gate_msg_config *m, struct err *err)
{
	struct buf csv;
	buf_init(&csv, GATE_RESOLVERS_MAX * (GATE_RESOLVER_TEXT_MAX + 1) + 1);
	for (unsigned i = 0; i < m->n_resolvers; i++)
		buf_printf(&csv, "%s%s", i ? "," : "", m->resolvers[i]);
	buf_append(&csv, "", 1);
	int r = m->n_resolvers ? resolver_set_servers(g->resolver, (const char *)csv.data, err) : 0;
	buf_free(&csv);
	return r;
}

int gate_configure(struct gate *g, const struct gate_msg_config *m, int policy_fd, struct err *err)
{
	struct policy *p = policy_fd_read(policy_fd, m->policy_len, err);
	if (!p)
		return -1;
	if (use_resolvers(g, m, err) < 0) {
		policy_free(p);
		return -1;
	}
	g->policy = p;
	budget_init(&g->budget, p);
	g->facts.policy = p;
	if (policy_inspects(p) && !g->interceptor_ops)
		return err_set(err, ERR_UNSUPPORTED, "the policy has rules by request, and this gate can't look into connections");
	if (g->interceptor_ops) {
		g->interceptor = g->interceptor_ops->start(g, m, err);
		if (!g->interceptor)
			return -1;
	}
	control_ready(g);
	return 0;
}

int gate_set_policy(struct gate *g, const struct gate_msg_policy *m, int policy_fd, struct err *err)
{
	struct policy *p = policy_fd_read(policy_fd, m->policy_len, err), *old = g->policy;
	if (!p)
		return -1;
	if (policy_inspects(p) && !g->interceptor) {
		policy_free(p);
		return err_set(err, ERR_UNSUPPORTED, "the new policy has rules by request, and this gate can't look into connections");
	}
	g->policy = p;
	g->facts.policy = p;
	budget_renew(&g->budget, p);
	struct gate_msg_policy_set done = { .generation = m->generation, .cut = flow_judge_all(g) };
	policy_free(old);
	control_policy_set(g, &done);
	return 0;
}

static void try_done(struct gate *g)
{
	if (!g->finishing || g->done_sent || (recorder_pending(g->recorder) > 0 && !recorder_lost(g->recorder)))
		return;
	g->done_sent = true;
	control_done(g);
}

void gate_finish(struct gate *g)
{
	g->finishing = true;
	flow_cut_all(g, REASON_KILLED);
	flush_counts(g);
	try_done(g);
}

void gate_fail(struct gate *g, const struct err *err)
{
	if (g->failure.code == ERR_NONE)
		g->failure = *err;
	loop_quit(g->loop, 1);
}

const struct err *gate_failure(const struct gate *g) { return &g->failure; }

static void on_record_lost(void *ctx, const struct err *err)
{
	struct gate *g = ctx;
	g->facts.record_available = false;
	flow_cut_all(g, REASON_RECORD_UNAVAILABLE);
	try_done(g);
}

static void on_record_idle(void *ctx)
{
	struct gate *g = ctx;
	control_resume(g);
	try_done(g);
}

struct gate *gate_new(struct loop *loop, int control_fd, int audit_fd, struct gate_system *system, const struct interceptor_ops *ops,
	struct err *err)
{
	static const struct recorder_ops recorder_ops = { on_record_lost, on_record_idle };
	struct gate *g = mem_alloc(sizeof(*g));
	g->loop = loop;
	g->control_fd = control_fd;
	g->interceptor_ops = ops;
	g->host_addresses = system->host_addresses;
	g->facts = (struct gate_facts){ .budget = &g->budget, .host_addresses = system->host_addresses,
		.n_host_addresses = system->n_host_addresses, .record_available = true };
	g->resolver = resolver_new(loop, system->hosts, err);
	system->hosts = NULL;
	system->host_addresses = NULL;
	if (!g->resolver) {
		fd_close(&control_fd);
		fd_close(&audit_fd);
		mem_free(g->host_addresses);
		return mem_free(g);
	}
	fd_set_nonblock(control_fd, true);
	fd_set_nonblock(audit_fd, true);
	g->recorder = recorder_new(loop, audit_fd, &recorder_ops, g);
	g->names = names_new(g->recorder);
	g->flush = loop_timer_new(loop, on_flush, g);
	control_start(g);
	return g;
}

struct gate *gate_free(struct gate *g)
{
	if (!g)
		return NULL;
	flow_cut_all(g, REASON_SUPERVISOR_LOST);
	if (g->interceptor)
		g->interceptor_ops->free(g->interceptor);
	control_stop(g);
	loop_timer_free(g->flush);
	names_free(g->names);
	resolver_free(g->resolver);
	recorder_free(g->recorder);
	budget_done(&g->budget);
	policy_free(g->policy);
	mem_free(g->host_addresses);
	return mem_free(g);
}
