/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sandbox, from nothing to verified nothing: the one place where mechanisms meet. It starts the auditor, the gate and the launcher, speaks with
 * the agent over the one pipe, enforces what the kernel doesn't (time, idle, output), and at the end kills, collects the working copy, tears down, checks that
 * nothing is left and closes the record.
 *
 * States, in order; each is left only forwards:
 *   STARTING   parts are being started; nothing of the workload runs
 *   READY      the agent said HELLO, the gate refused a forbidden name, its upstream half (where there is one) holds all secrets, the start is on the
 *              record: executions may be started
 *   ENDING     no new execution, no new flow; everything in the box is being killed, the working copy collected
 *   ENDED      torn down and recorded; on_ended has been called
 * Losing the auditor, the gate or the agent at any time leads to ENDING: nothing runs unrecorded or unguarded.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "event/loop.h"
#include "image/changes.h"
#include "policy/policy.h"
#include "sandbox/grants.h"
#include "spec/spec.h"
#include "store/state.h"

struct sandbox;
struct execution;

/* Value of a queued SIGTERM (sigqueue) with which `bulkhead kill` asks a supervisor to end its sandbox at once. */
#define SANDBOX_KILL_COOKIE 0x6b696c6cu
/* In the sandbox's folder: the policy that it runs under, its canonical JSON. The owner writes the first one, a change replaces it. */
#define SANDBOX_POLICY_FILE "policy.json"

struct sandbox_mount {
	char *source;              /* absolute host path, for the record and for apply */
	int fd;                    /* O_PATH */
};

struct sandbox_config {
	const struct policy *policy;      /* sealed; kept by reference until ENDED */
	struct sandbox_dir *dir;          /* likewise */
	struct spec spec;                 /* taken */
	struct sandbox_mount *mounts;     /* spec.n_mounts of them; taken */
	char **resolvers;                 /* "IP:PORT", NULL-terminated, or NULL: the system's; taken */
	struct grants *grants;            /* what the policy binds, or NULL; taken */
};

/* Frees what sandbox_start would have taken; for a configuration that never got there. */
void sandbox_config_done(struct sandbox_config *config);

#define SANDBOX_LIMIT_BIT(reason) (UINT64_C(1) << (reason))
_Static_assert(REASON_MAX <= 64, "each reason has a bit");

/* What came of it. Strings belong to the sandbox. */
struct sandbox_result {
	const char *id;
	enum isolation_level level;
	enum reason end_reason;           /* REASON_NONE: ended as asked, after its command */
	bool failed;                      /* Bulkhead itself failed: err says how */
	struct err err;
	bool clean;                       /* teardown verified */
	uint64_t limits_hit;              /* SANDBOX_LIMIT_BIT of each limit and budget that was reached */
	uint64_t started_ns, ready_after_ns, total_ns; /* realtime; durations */
	uint64_t files_added, files_modified, files_deleted, files_bytes, files_flagged;
	uint64_t egress_allowed, egress_denied, egress_bytes_up, egress_bytes_down;
	uint64_t syscalls_denied;
	const struct grants *grants;      /* NULL: none */
	uint64_t canaries;                /* placeholders seen where they have no business */
	const char *helper_complaint;     /* why a credential helper failed last, or NULL */
	uint64_t policy_generation;       /* 1: it was not changed */
	uint64_t cpu_ns, memory_peak;
};

/* A denial or a limit, as it happens; for detectors and summaries. */
struct sandbox_denial { const char *host; uint16_t port; enum reason reason; };

struct sandbox_canary { const char *secret, *host; uint16_t port; };

struct sandbox_ops {
	void (*on_ready)(void *ctx);
	void (*on_denied)(void *ctx, const struct sandbox_denial *d); /* may be NULL */
	void (*on_limit)(void *ctx, enum reason limit);               /* may be NULL */
	void (*on_canary)(void *ctx, const struct sandbox_canary *c); /* may be NULL */
	/* A newer policy holds; it is the sandbox's. May be NULL. */
	void (*on_policy)(void *ctx, const struct policy *p);
	/* The status that the owner will report for the whole run, for the last record. */
	int (*exit_status)(void *ctx, const struct sandbox_result *result);
	/* Called once, also when the start failed. The sandbox may be freed from inside. */
	void (*on_ended)(void *ctx, const struct sandbox_result *result);
};

struct sandbox *sandbox_start(struct loop *loop, struct sandbox_config *config, const struct sandbox_ops *ops, void *ctx);
struct sandbox *sandbox_free(struct sandbox *s); /* only in ENDED, or before any callback; returns NULL */
/* Ends it now: freeze, cut, kill, collect, tear down. REASON_NONE after the last command. Idempotent; the first reason stays. */
void sandbox_end(struct sandbox *s, enum reason reason);
/* Ends it because its owner can't go on; `err` becomes the result's. */
void sandbox_abort(struct sandbox *s, const struct err *err);
/* The folder in which commands start. */
const char *sandbox_workdir(const struct sandbox *s);
const char *sandbox_id(const struct sandbox *s);
/* The certificate of the sandbox's own authority, PEM; "" when nothing is inspected, NULL before it is known. */
const char *sandbox_ca_pem(const struct sandbox *s);
/* Records a signal that the owner got and passed on. */
void sandbox_record_signal(struct sandbox *s, int signal_number, bool forwarded);

struct execution_spec {
	char **argv, **envp;              /* NULL-terminated; by reference during the call */
	const char *cwd;
	bool tty;
	uint16_t rows, columns;
	/* Descriptors for the streams, taken; -1: stdin is /dev/null, output is only recorded. With tty, stderr_fd is -1. */
	int stdin_fd, stdout_fd, stderr_fd;
};

struct execution_result {
	bool started;
	int exec_error;                   /* errno when not started */
	int wait_status;                  /* when started and ended by itself */
	bool lost;                        /* the sandbox ended before the command did */
	int write_error;                  /* errno when some of its output could not be written to the caller; a closed pipe is none */
	uint64_t duration_ns, output_bytes;
};

struct execution_ops {
	/* The command ended and all its output was recorded and written. The handle is gone afterwards. */
	void (*on_exit)(void *ctx, const struct execution_result *result);
};

/* In READY. The command runs when its start is on the record. NULL + err when it can't be asked for. */
struct execution *sandbox_exec(struct sandbox *s, const struct execution_spec *spec, const struct execution_ops *ops, void *ctx, struct err *err);
int execution_signal(struct execution *e, int signal_number);
int execution_resize(struct execution *e, uint16_t rows, uint16_t columns);
