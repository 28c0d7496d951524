/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of sandbox/ only. */
#pragma once

#include "audit/client.h"
#include "isolate/cgroup.h"
#include "isolate/isolate.h"
#include "isolate/notify.h"
#include "sandbox/grants.h"
#include "sandbox/sandbox.h"
#include "wire/messages.h"
#include "wire/mux.h"
#include "wire/pump.h"

#define SANDBOX_PROXY_PORT 3128

/* sandbox.h tells what each means. */
enum sandbox_phase_now { SB_STARTING, SB_READY, SB_ENDING, SB_ENDED };

/* A helper program that we started: watched through its pidfd. */
struct part {
	const char *name;
	pid_t pid;
	int pidfd;
	struct loop_io *io;
	struct sandbox *sandbox;
	bool ended;
	int status;
};

struct gate_link;
struct upstream_link;
struct helpers;
struct control;
struct control_asker;
struct live_changes;
struct gate_msg_config;
struct gate_msg_policy_set;
struct upstream_msg_loaded;
struct denial_log;
struct files_log;
struct changes;
struct limit_watch;

struct execution {
	struct sandbox *sandbox;
	struct execution *next;
	uint32_t id;
	struct execution_ops ops;
	void *ctx;
	struct execution_stream {
		struct execution *execution;
		struct pump *pump;      /* NULL once over */
		const char *name;       /* "stdout", "stderr", "tty" */
		uint64_t offset;        /* bytes recorded so far */
		struct buf gather;      /* small writes on their way to one record */
		uint64_t recorded_ns;   /* when the last record was sent */
		struct loop_timer *timer;
		bool open;              /* its end hasn't been seen yet */
	} out, err_out;
	struct pump *in;
	bool recorded, exited, finishing, dead;
	unsigned acks_pending;        /* start and output sent to the auditor and not yet acknowledged */
	uint64_t asked_ns, started_ns; /* started: sent to the agent */
	struct execution_result result;
	struct execution_request {     /* held until its start is on the record */
		struct buf message;
		int fds[3];
		bool tty;
		uint32_t stdin_stream, stdout_stream, stderr_stream;
	} request;
};

struct sandbox {
	struct loop *loop;
	enum sandbox_phase_now phase;
	const struct policy *policy;       /* that holds now */
	const struct policy *start_policy; /* the owner's */
	struct policy *own_policy;         /* of a later generation; NULL: there was none */
	uint64_t generation;               /* of the policy, from 1 */
	bool inspects;                     /* bulkhead-inspect and bulkhead-upstream stand in for bulkhead-gate */
	struct grants *grants;             /* NULL: the policy binds no secret */
	struct sandbox_dir *dir;
	struct spec spec;
	struct sandbox_mount *mounts;
	char **resolvers;
	struct sandbox_ops ops;
	void *ctx;

	struct part auditor, gate_part, upstream_part;
	struct audit_client *audit;
	struct gate_link *gate;
	struct upstream_link *upstream;    /* NULL: nothing is inspected */
	char *ca_pem;                      /* of the gate's READY, "" without inspection; NULL before */
	struct helpers *helpers;           /* NULL: none was asked for yet */
	char *helper_complaint;
	struct control *control;
	struct live_changes *live_changes; /* NULL: none was asked for yet */
	int box_end;                       /* of the pipe, until the launcher has it */
	struct box box;
	bool have_box;
	struct mux *mux;
	struct notify *notify;
	struct denial_log *denials;
	struct files_log *files;      /* changes that wait for the record */
	struct limit_watch *limits;
	struct execution *executions;
	uint32_t next_execution;

	struct {
		struct loop_timer *deadline; /* of the present stage */
		bool stepping;               /* a step is already queued */
		bool killed, pipe_done, gate_done, collected, removed, recorded, timed_out;
		uint64_t began_ns, kill_ns, collect_ns;
	} ending;
	bool got_hello, got_probe, got_start_record;
	bool launching;               /* the back end has not answered yet */
	uint64_t output_total;
	uint64_t started_monotonic_ns;
	struct sandbox_result result;
	bool free_asked;
};

/* parts.c: starting the helper programs */
struct part_sockets { int audit, gate, upstream; }; /* to the auditor: ours, and those for the halves of the gate; -1: none */
int parts_start_auditor(struct sandbox *s, struct part_sockets *ret, struct err *err);
/* Takes nothing; link_fd is -1 for bulkhead-gate. */
int parts_start_gate(struct sandbox *s, int audit_fd, int link_fd, int *ret_control_fd, struct err *err);
int parts_start_upstream(struct sandbox *s, int audit_fd, int link_fd, int *ret_control_fd, struct err *err);
int parts_pair(int type, int ret[2], struct err *err);
void part_forget(struct part *p, uint64_t wait_ns);

/* events.c: what goes on the record */
void events_start(struct sandbox *s, audit_done_fn done);
void events_ready(struct sandbox *s);
void events_exec_start(struct execution *e, const struct execution_spec *spec, audit_done_fn done);
void events_exec_end(struct execution *e);
/* grant may be NULL: of an unknown secret nothing is recorded. detail and done may be NULL. */
void events_secret(struct sandbox *s, const struct grant *grant, const char *action, bool ok, const char *detail, audit_done_fn done, void *ctx);
void events_policy(struct sandbox *s, uint64_t cut, const struct control_asker *by, audit_done_fn done);
void events_limit(struct sandbox *s, enum reason limit, uint64_t value, bool killed);
void events_end(struct sandbox *s);
/* Sends or, when the record can't be written, fails the sandbox. */
void events_send(struct sandbox *s, enum audit_type type, json_t *fields, audit_done_fn done, void *ctx);

/* execution.c */
int execution_handle_started(struct sandbox *s, const struct wire_exec_started *m, struct err *err);
int execution_handle_exited(struct sandbox *s, const struct wire_exec_exited *m, struct err *err);
/* Sends what may be sent now: box and gate stand, and the start is on the record. */
void executions_dispatch(struct sandbox *s);
/* A command that the agent doesn't start in time fails the sandbox: it must never wait for ever. */
void executions_check_started(struct sandbox *s);
/* Nothing is gathered any more: what was, is recorded now. */
void executions_flush(struct sandbox *s);
void executions_lose(struct sandbox *s);

/* gate_link.c: the supervisor's end of gate/protocol.h */
struct gate_link *gate_link_new(struct sandbox *s, int control_fd, struct err *err);
struct gate_link *gate_link_free(struct gate_link *g);
int gate_link_policy(struct gate_link *g, uint64_t generation, const struct policy *p, struct err *err);
int gate_link_name(struct gate_link *g, const struct wire_name_query *q, struct err *err);
int gate_link_open(struct gate_link *g, const struct wire_egress_open *o, struct err *err);
void gate_link_cut(struct gate_link *g);                 /* resets all flows, admits none */
/* Asks for the totals; s->ending.gate_done is set and teardown_step called when they came or the gate is gone. */
void gate_link_finish(struct gate_link *g);

/* gate_config.c: the CONFIG of both halves, valid until the next call, and the descriptor that goes with it (the caller's) */
const struct gate_msg_config *sandbox_gate_config(struct sandbox *s, int *ret_fd, struct err *err);

/* upstream_link.c: the supervisor's end of gate/upstream-protocol.h */
struct upstream_link *upstream_link_new(struct sandbox *s, int control_fd, struct err *err);
struct upstream_link *upstream_link_free(struct upstream_link *u);
bool upstream_link_ready(const struct upstream_link *u);  /* it stands, and holds all secrets of the start */
int upstream_link_policy(struct upstream_link *u, uint64_t generation, const struct policy *p, struct err *err);
int upstream_link_secret(struct upstream_link *u, struct grant *grant, struct err *err); /* takes what grant_open opened */
int upstream_link_revoke(struct upstream_link *u, const char *name, struct err *err);
int upstream_link_helped(struct upstream_link *u, uint64_t call, int fd, struct err *err); /* takes fd; -1: not started */

/* helpers.c: the user's own commands that print secrets */
int helpers_ask(struct sandbox *s, uint64_t call, const char *name, struct err *err);
void helpers_stop(struct sandbox *s, const char *name);
void helpers_free(struct helpers *h);

/* control.c: the socket through which commands reach a running sandbox. Answers are to be sent once for each request that was taken */
struct control *control_new(struct sandbox *s, struct err *err);
struct control *control_free(struct control *c);
void control_answer_ok(struct sandbox *s, struct control_asker *a, uint64_t generation, uint64_t count);
void control_answer_failed(struct sandbox *s, struct control_asker *a, const struct err *why);
void control_asker_who(const struct control_asker *a, uid_t *ret_uid, pid_t *ret_pid);

/* change.c: what those commands change. 0: taken, the answer was or will be sent; -1: refused, nothing was changed */
int change_policy(struct sandbox *s, struct control_asker *asker, uint64_t expected, struct policy *wanted, struct err *err); /* takes wanted */
int change_secret(struct sandbox *s, struct control_asker *asker, const char *name, struct err *err);
int change_revoke(struct sandbox *s, struct control_asker *asker, const char *name, struct err *err);
int change_gate_done(struct sandbox *s, const struct gate_msg_policy_set *m, struct err *err);
int change_upstream_done(struct sandbox *s, const struct gate_msg_policy_set *m, struct err *err);
int change_secret_done(struct sandbox *s, struct grant *grant, const struct upstream_msg_loaded *m, struct err *err);
struct live_changes *live_changes_free(struct live_changes *c);

/* denials.c: refused system calls, first ones singly, floods as counts */
struct denial_log *denial_log_new(struct sandbox *s);
void denial_log_add(struct denial_log *d, const struct syscall_denial *one);
void denial_log_flush(struct denial_log *d);
struct denial_log *denial_log_free(struct denial_log *d);

/* files.c: the list of changed files, as fast as the auditor takes it */
void files_log_add(struct sandbox *s, size_t mount, struct changes *c); /* takes the content of c; counts it in the result */
bool files_log_step(struct sandbox *s);                  /* sends what there is room for; s->files is NULL when all is sent. Was anything sent? */
void files_log_free(struct files_log *f);

/* limits.c: what the kernel doesn't enforce or doesn't tell */
struct limit_watch *limit_watch_new(struct sandbox *s);
void limit_watch_box(struct limit_watch *w);             /* the box exists: sampling begins */
void limit_watch_sample(struct limit_watch *w);          /* a last look before teardown */
bool limit_watch_output(struct sandbox *s, uint64_t *len); /* how many of *len bytes still fit; false: the limit is reached */
struct limit_watch *limit_watch_free(struct limit_watch *w);
void limit_hit(struct sandbox *s, enum reason limit, uint64_t value, bool ends);

/* teardown.c: ENDING, stage by stage; each event that may complete a stage calls teardown_step, which looks again from the loop (never from
 * inside the callback, whose stream, pump or client may be freed by the next stage). */
void teardown_begin(struct sandbox *s);
void teardown_step(struct sandbox *s);

/* sandbox.c */
void sandbox_fail(struct sandbox *s, const struct err *err); /* Bulkhead itself failed: end */
void sandbox_maybe_ready(struct sandbox *s);
int sandbox_gate_ready(struct sandbox *s, struct err *err); /* s->ca_pem is known: with inspection, the box may be launched */
bool sandbox_egress_ready(const struct sandbox *s);         /* the gate refused what it must, and its upstream half holds all secrets */
void sandbox_release(struct sandbox *s); /* frees, when the owner asked for it */
