/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of sandbox/ only. */
#pragma once

#include "audit/client.h"
#include "isolate/cgroup.h"
#include "isolate/isolate.h"
#include "isolate/notify.h"
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
	/* sandbox.h tells what each means. */
enum sandbox_phase_now phase;
	const struct policy *policy;
	struct sandbox_dir *dir;
	struct spec spec;
	struct sandbox_mount *mounts;
	char **resolvers;
	struct sandbox_ops ops;
	void *ctx;

	struct part auditor, gate_part;
	struct audit_client *audit;
	struct gate_link *gate;
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
int parts_start_auditor(struct sandbox *s, int *ret_supervisor_fd, int *ret_gate_fd, struct err *err);
int parts_start_gate(struct sandbox *s, int audit_fd, int *ret_control_fd, struct err *err);
void part_forget(struct part *p, uint64_t wait_ns);

/* events.c: what goes on the record */
void events_start(struct sandbox *s, audit_done_fn done);
void events_ready(struct sandbox *s);
void events_exec_start(struct execution *e, const struct execution_spec *spec, audit_done_fn done);
void events_exec_end(struct execution *e);
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
int gate_link_name(struct gate_link *g, const struct wire_name_query *q, struct err *err);
int gate_link_open(struct gate_link *g, const struct wire_egress_open *o, struct err *err);
void gate_link_cut(struct gate_link *g);                 /* resets all flows, admits none */
/* Asks for the totals; s->ending.gate_done is set and teardown_step called when they came or the gate is gone. */
void gate_link_finish(struct gate_link *g);

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
void sandbox_release(struct sandbox *s); /* frees, when the owner asked for it */
