/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be recorded: a closed table of event types, who may send each, and which fields it must have. The auditor refuses
 * others. docs/record-format.md describes the files.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/err.h"

enum audit_source { AUDIT_FROM_SUPERVISOR = 0, AUDIT_FROM_GATE, AUDIT_FROM_AUDITOR, AUDIT_FROM_UPSTREAM, AUDIT_SOURCE_MAX };

enum audit_type {
	/* Integer fields are marked :i, booleans :b, arrays :a, objects :o, text :t (see text.h), any kind :x; "?" may be left
	 * out or null. More fields than these may be sent. */
	AUDIT_SANDBOX_START = 0, /* supervisor: id:t level:t policy_hash:t version:t policy:x? template:t? workdir:t? mounts:a?
				    limits:o? user:x? */
	AUDIT_SANDBOX_READY,	 /* supervisor: level:t, probes:o (measured), start_ns:i */
	AUDIT_EXEC_START,	 /* supervisor: execution:i argv:a env_names:a? cwd:t? tty:b */
	AUDIT_EXEC_END,		 /* supervisor: execution:i duration_ns:i and one of exit:i signal:x error:t */
	AUDIT_OUTPUT,	  /* supervisor, with blob: execution:i stream:t ("stdout", "stderr", "tty") offset:i length:i (= the
			     blob's); the auditor adds blob (its offset in output.bin) and digest */
	AUDIT_EGRESS,	  /* gate: flow:i host:t port:i address:t? entrance:t protocol:t? inspected:x? allow:b reason:t rule:x? */
	AUDIT_EGRESS_END, /* gate: flow:i bytes_up:i bytes_down:i duration_ns:i reason:t? */
	AUDIT_NAME,	  /* gate: name:t allow:b reason:t count:i: a name asked of DNS (repeats counted) */
	AUDIT_DENIAL,	  /* supervisor: syscall:t command:t pid:i count:i */
	AUDIT_LIMIT,	  /* supervisor: limit:t value:x? reason:t killed:b */
	AUDIT_SIGNAL,	  /* supervisor: signal:x forwarded:b */
	AUDIT_FILES,	  /* supervisor: mount:x added:i modified:i deleted:i bytes:i paths:a? (with digests; split into several
			     records) */
	AUDIT_TEARDOWN,	  /* supervisor: processes:x mounts:x cgroup:x sockets:x (each "gone" or what is left) durations:x? */
	AUDIT_SANDBOX_END, /* supervisor: exit_status:i reason:t totals:o?. Last record of a log, unless the writer was lost */
	AUDIT_LOST,	   /* auditor: source:t reason:t: went away without saying goodbye */
	AUDIT_REQUEST,	   /* gate: flow:i request:i method:t host:t port:i path:t (without query) query:b allow:b reason:t rule:x? */
	AUDIT_REQUEST_END, /* gate: flow:i request:i status:i (0: none) bytes_up:i bytes_down:i duration_ns:i reason:t */
	AUDIT_SECRET,	   /* supervisor: secret:t action:t ("granted", "rotated", "revoked", "helper") ok:b generation:i? detail:t? */
	AUDIT_SECRET_USE,  /* upstream: secret:t generation:i flow:i host:t place:t ("header:authorization", "query:key", "body") */
	AUDIT_SECRET_FOUND, /* upstream: secret:t flow:i host:t spelling:t where:t ("header", "body", "trailer") count:i: taken out of an answer */
	AUDIT_CANARY,	   /* gate: secret:t flow:i host:t port:i where:t spelling:t action:t ("deny", "kill", "record") */
	AUDIT_POLICY,	   /* supervisor: generation:i policy_hash:t cut:i by:x? */
	AUDIT_CHANGES_APPLIED, /* supervisor (apply, discard: appended later by the auditor started for it): paths:a how:t */
	AUDIT_TYPE_MAX,
};

const char *audit_type_name(enum audit_type type); /* "sandbox.start" … */
int audit_type_from_name(const char *name, enum audit_type *ret);
const char *audit_source_name(enum audit_source source);
int audit_source_from_name(const char *name, enum audit_source *ret);
bool audit_type_allowed(enum audit_type type, enum audit_source source);
/* Checks that `fields` is an object with the fields the type needs, of the right JSON type, integers only (no reals). */
int audit_fields_check(enum audit_type type, const json_t *fields, struct err *err);
