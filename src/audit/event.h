/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be recorded: a closed table of event types, who may send each, and which fields it must have. The auditor refuses others.
 * docs/record-format.md describes the files.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/err.h"

enum audit_source { AUDIT_FROM_SUPERVISOR = 0, AUDIT_FROM_GATE, AUDIT_FROM_AUDITOR, AUDIT_SOURCE_MAX };

enum audit_type {
	AUDIT_SANDBOX_START = 0, /* supervisor: id, level, policy_hash, policy, template, workdir, mounts, limits, user, version */
	AUDIT_SANDBOX_READY,     /* supervisor: level, probes {…} (measured), start_ns */
	AUDIT_EXEC_START,        /* supervisor: execution, argv, env_names, cwd, tty */
	AUDIT_EXEC_END,          /* supervisor: execution, exit | signal | error, duration_ns */
	AUDIT_OUTPUT,            /* supervisor, with blob: execution, stream ("stdout", "stderr", "tty"), offset, length; the auditor adds blob, digest */
	AUDIT_EGRESS,            /* gate: flow, host, port, address, entrance, protocol, allow, reason, rule */
	AUDIT_EGRESS_END,        /* gate: flow, bytes_up, bytes_down, duration_ns, reason */
	AUDIT_NAME,              /* gate: name, allow, reason, count: a name asked of DNS (repeats counted) */
	AUDIT_DENIAL,            /* supervisor: syscall, command, pid, count */
	AUDIT_LIMIT,             /* supervisor: limit, value, reason, killed */
	AUDIT_SIGNAL,            /* supervisor: signal, forwarded */
	AUDIT_FILES,             /* supervisor: mount, added, modified, deleted, bytes; list of changed paths with digests, split into several records */
	AUDIT_TEARDOWN,          /* supervisor: processes, mounts, cgroup, sockets: each "gone" or what is left; durations */
	AUDIT_SANDBOX_END,       /* supervisor: exit_status, reason, totals. Last record of a log, unless the writer was lost */
	AUDIT_LOST,              /* auditor: source that went away without saying goodbye */
	AUDIT_CHANGES_APPLIED,   /* supervisor (apply, discard: appended later by the auditor started for it): paths, how */
	AUDIT_TYPE_MAX,
};

const char *audit_type_name(enum audit_type type);          /* "sandbox.start" … */
int audit_type_from_name(const char *name, enum audit_type *ret);
const char *audit_source_name(enum audit_source source);
bool audit_type_allowed(enum audit_type type, enum audit_source source);
/* Checks that `fields` is an object with the fields the type needs, of the right JSON type, integers only (no reals). */
int audit_fields_check(enum audit_type type, const json_t *fields, struct err *err);
