/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the gate's core asks of the part that looks into connections (intercept/). bulkhead-gate has none, and with it neither TLS nor HTTP/2 in its address space;
 * bulkhead-inspect has.
 */
#pragma once

#include "gate/messages.h"

struct gate;
struct flow;
struct interceptor;

struct interceptor_ops {
	/* At CONFIG; the gate's policy stands. Makes the authority and the connection to the upstream half. */
	struct interceptor *(*start)(struct gate *g, const struct gate_msg_config *m, struct err *err);
	const char *(*ca_pem)(const struct interceptor *it);
	/* OPENING: the client's first bytes are in f->head, judged to be TLS for this target, or HTTP. What follows is the interceptor's: it denies the flow (flow_deny), or
	 * takes its socket and ends it later (flow_end, flow_settle). May do either before it returns. */
	void (*begin)(struct interceptor *it, struct flow *f, bool tls);
	void (*drop)(struct flow *f);             /* the flow is being freed: f->guest goes with all its requests, and f->looking */
	/* A name that the box asked for (flow NULL) or wants to reach: is a placeholder in it? CANARY actions follow. True: refuse it. */
	bool (*look_at_name)(struct interceptor *it, const struct flow *f, const char *name);
	/* Bytes of the box on their way in the clear, each once and in their order: the same. A placeholder is found over any border. */
	bool (*look)(struct interceptor *it, struct flow *f, const void *p, size_t len);
	void (*policy_changed)(struct interceptor *it, struct flow *f, uint64_t *ret_cut); /* an INTERCEPTED flow whose place is still allowed: judge its requests again */
	struct interceptor *(*free)(struct interceptor *it);
};
