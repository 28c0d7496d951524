/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending events to bulkhead-audit over a SOCK_SEQPACKET socket. The auditor answers each with its sequence number once the record was written
 * to the file, or with an error. Who sent an event follows from the socket it came on, never from what it says.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "audit/event.h"
#include "event/loop.h"

/* Descriptors of bulkhead-audit at its start: one socket for each source, and the sandbox's folder. Arguments: none. It ends when both sockets are closed. */
#define AUDIT_SUPERVISOR_FD 3
#define AUDIT_GATE_FD 4
#define AUDIT_DIR_FD 5

#define AUDIT_BLOB_MAX (128u * 1024u)
#define AUDIT_MESSAGE_MAX (256u * 1024u)
#define AUDIT_PENDING_MAX (4u * 1024u * 1024u) /* bytes sent and not yet answered; more waits in the caller: see audit_client_room */

struct audit_client;

/* err is NULL when the record was written; seq is its number. */
typedef void (*audit_done_fn)(void *ctx, uint64_t seq, const struct err *err);
/* The auditor is gone or said that it can't write (disk full, …): nothing may be allowed any more. Called once. */
typedef void (*audit_lost_fn)(void *ctx, const struct err *err);

struct audit_client *audit_client_new(struct loop *loop, int fd, audit_lost_fn on_lost, void *ctx);
void audit_client_free(struct audit_client *c); /* closes; pending callbacks are not made */

/* Takes the reference to `fields`. `done` may be NULL. Queues; never blocks. -1 when lost or when the message is too large. */
int audit_client_send(struct audit_client *c, enum audit_type type, json_t *fields, const void *blob, size_t blob_len,
	audit_done_fn done, void *done_ctx, struct err *err);
/* Bytes that may be queued now before the pending ceiling: the sender of bulk output waits for on_room. */
size_t audit_client_room(const struct audit_client *c);
void audit_client_on_room(struct audit_client *c, void (*fn)(void *ctx), void *ctx);
/* Number of events not yet answered. */
size_t audit_client_pending(const struct audit_client *c);
/* Blocks (bounded) until all are answered. 0 or -1. */
int audit_client_drain(struct audit_client *c, uint64_t timeout_ns, struct err *err);
