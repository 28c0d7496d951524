/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending events to bulkhead-audit over a SOCK_SEQPACKET socket. The auditor answers each with its sequence number once the
 * record was written to the file, or with an error. Who sent an event follows from the socket it came on, never from what it
 * says.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "audit/event.h"
#include "event/loop.h"

/* Descriptors of bulkhead-audit at its start: one socket for each source (those of the gate and of its upstream half may be absent), and the sandbox's folder.
 * Arguments: none. It ends when all sockets are closed, after syncing the log: it outlives its parent by that moment, on
 * purpose. audit/start.h starts it. */
#define AUDIT_SUPERVISOR_FD 3
#define AUDIT_GATE_FD 4
#define AUDIT_DIR_FD 5
#define AUDIT_UPSTREAM_FD 6

#define AUDIT_BLOB_MAX (128u * 1024u)
/* Fits the default socket buffer of an ordinary user (net.core.wmem_default). Fields as JSON and blob together. */
#define AUDIT_MESSAGE_MAX (192u * 1024u)
/* Bytes sent and not yet answered; more waits in the caller: see audit_client_room. */
#define AUDIT_PENDING_MAX (4u * 1024u * 1024u)
#define AUDIT_PENDING_HARD (4u * AUDIT_PENDING_MAX) /* a caller that doesn't wait fails here (ERR_LIMIT) */

struct audit_client;

/* err is NULL when the record was written; seq is its number. */
typedef void (*audit_done_fn)(void *ctx, uint64_t seq, const struct err *err);
/* The auditor is gone or said that it can't write (disk full, …): nothing may be allowed any more. Called once, after each
 * pending event got its own done callback with the error. */
typedef void (*audit_lost_fn)(void *ctx, const struct err *err);

/* Takes the descriptor. on_lost may be NULL. Callbacks may send and may free the client. */
struct audit_client *audit_client_new(struct loop *loop, int fd, audit_lost_fn on_lost, void *ctx);
/* Says goodbye (a source that is gone without it is recorded as lost) and closes; pending callbacks are not made. Accepts NULL.
 * What was sent is still recorded; audit_client_drain first when that must be known. */
void audit_client_free(struct audit_client *c);

/* Takes the reference to `fields`, also on failure. `done` may be NULL. Queues; never blocks, and never calls back from inside.
 * -1 when lost, when the message is too large (ERR_LIMIT) or when the fields are not those of the type (ERR_INVALID): then
 * nothing was sent. */
int audit_client_send(struct audit_client *c, enum audit_type type, json_t *fields, const void *blob, size_t blob_len,
	audit_done_fn done, void *done_ctx, struct err *err);
/* Bytes that may be queued now before the pending ceiling: the sender of bulk output waits for on_room when this is less than
 * it has. */
size_t audit_client_room(struct audit_client *c);
/* fn is called once each time when room had become short (less than AUDIT_MESSAGE_MAX) and half the ceiling is free. */
void audit_client_on_room(struct audit_client *c, void (*fn)(void *ctx), void *ctx);
/* Number of events not yet answered. */
size_t audit_client_pending(const struct audit_client *c);
/* Blocks (bounded) until all are answered. 0 or -1. */
int audit_client_drain(struct audit_client *c, uint64_t timeout_ns, struct err *err);
