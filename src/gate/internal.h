/* SPDX-License-Identifier: Apache-2.0 */
/* The gate's parts as they see one another. */
#pragma once

#include "base/buf.h"
#include "gate/budget.h"
#include "gate/gate.h"
#include "gate/interceptor.h"
#include "gate/messages.h"
#include "gate/names.h"
#include "gate/recorder.h"
#include "gate/resolve.h"
#include "gate/verdict.h"

struct flow;

struct gate {
	struct loop *loop;
	int control_fd;
	struct loop_io *control_io;
	struct outgoing *out_first, **out_end; /* messages the supervisor hasn't taken yet */
	size_t out_bytes;
	struct policy *policy;                 /* NULL before CONFIG */
	struct budget budget;
	struct gate_facts facts;
	struct ip *host_addresses;
	struct recorder *recorder;
	struct resolver *resolver;
	struct names *names;
	const struct interceptor_ops *interceptor_ops; /* NULL: this gate looks into nothing */
	struct interceptor *interceptor;       /* NULL before CONFIG, or when the policy needs none */
	struct loop_timer *flush;              /* of counted names and denials; runs only while there may be some */
	bool flush_armed;
	struct flow *flows;
	size_t n_flows;
	bool finishing, done_sent;
	struct gate_msg_done totals;
	uint64_t denials_single;
	uint64_t denials_summed[REASON_MAX];   /* not yet recorded */
	bool limit_told[REASON_MAX];
	struct err failure;
};

/* control.c: the supervisor's socket */
void control_start(struct gate *g);
void control_answer_name(struct gate *g, const struct gate_msg_answer *m);
void control_denied(struct gate *g, const struct gate_target *t, enum reason reason);
void control_limit(struct gate *g, enum reason reason); /* told once for each reason */
void control_ready(struct gate *g);
void control_policy_set(struct gate *g, const struct gate_msg_policy_set *m);
void control_canary(struct gate *g, const char *secret, const struct gate_target *t);
void control_done(struct gate *g);
void control_resume(struct gate *g); /* sends what waits, and listens again when it may */
void control_stop(struct gate *g);

/* gate.c */
/* The descriptor holds the policy, and stays the caller's. */
int gate_configure(struct gate *g, const struct gate_msg_config *m, int policy_fd, struct err *err);
/* A newer policy: what it doesn't allow is cut before this returns. */
int gate_set_policy(struct gate *g, const struct gate_msg_policy *m, int policy_fd, struct err *err);
void gate_asked_name(struct gate *g, const struct gate_msg_name *m);
void gate_finish(struct gate *g);
void gate_fail(struct gate *g, const struct err *err); /* ends the loop */
/* Counts and records a denial, and tells the supervisor. e->verdict is the denial. */
void gate_denied(struct gate *g, const struct egress_event *e);
/* The same for one request of an inspected connection. */
void gate_request_denied(struct gate *g, const struct request_event *e);

/* flow.c */
/* Takes the socket. */
void flow_open(struct gate *g, const struct gate_msg_open *m, int client_fd);
/* After the policy changed: cuts what it doesn't allow. How many were cut. */
uint64_t flow_judge_all(struct gate *g);
/* Ends every flow now; admitted ones are recorded as ended for `reason`. */
void flow_cut_all(struct gate *g, enum reason reason);
