/* SPDX-License-Identifier: Apache-2.0 */
/* The gate's side of the record: typed events, and whether there still is a record at all. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "audit/client.h"
#include "gate/target.h"
#include "net/http.h"
#include "policy/policy.h"

struct recorder;
struct recorder_ticket; /* an event that isn't answered yet */

/* on_lost: nothing may be allowed any more (once). on_idle: the last unanswered event was written. */
struct recorder_ops {
	void (*on_lost)(void *ctx, const struct err *err);
	void (*on_idle)(void *ctx);
};

typedef void (*recorder_fn)(void *ctx); /* the event was written */

struct recorder *recorder_new(struct loop *loop, int audit_fd, const struct recorder_ops *ops, void *ctx);
struct recorder *recorder_free(struct recorder *r); /* accepts NULL; pending callbacks are not made */
bool recorder_lost(const struct recorder *r);
size_t recorder_pending(const struct recorder *r);

/* What a flow was judged to be; `address` may be NULL, `count` > 1 for denials summed up. */
struct egress_event {
	uint64_t flow;
	const struct gate_target *target;
	const struct ip *address;
	const char *entrance, *protocol;
	bool inspected;                  /* its requests are seen and judged one by one */
	struct verdict verdict;
	const struct network_rule *rule; /* or NULL */
	uint64_t count;
};

struct egress_end_event {
	uint64_t flow, bytes_up, bytes_down, duration_ns;
	enum reason reason;
	const struct ip *address; /* that was dialled; or NULL */
	const char *protocol;
	const char *detail;       /* a sentence about a failed handshake; or NULL */
	bool encrypted_hello;     /* the client hid its real server name (or pretended to) */
};

struct request_event {
	uint64_t flow, request;
	const struct gate_target *target;
	struct http_text method, path;   /* path without query, as far as it could be read */
	bool query;
	struct verdict verdict;
	const struct network_rule *rule; /* or NULL */
};

struct request_end_event {
	uint64_t flow, request, bytes_up, bytes_down, duration_ns;
	unsigned status;                 /* 0: none was sent */
	enum reason reason;
};

struct canary_event {
	uint64_t flow;
	const struct gate_target *target;
	const char *secret, *where, *spelling, *action;
};

struct name_event {
	const char *name; /* or "*.parent" for names summed up, "*" for all others */
	bool allow;
	enum reason reason;
	uint64_t count, distinct, bytes; /* distinct and bytes (of the names) are 0 for a single name */
};

/* Each returns 0 or -1 (lost). fn may be NULL; ret_ticket too. */
int recorder_egress(struct recorder *r, const struct egress_event *e, recorder_fn fn, void *ctx,
	struct recorder_ticket **ret_ticket);
int recorder_egress_end(struct recorder *r, const struct egress_end_event *e);
int recorder_request(struct recorder *r, const struct request_event *e, recorder_fn fn, void *ctx,
	struct recorder_ticket **ret_ticket);
int recorder_request_end(struct recorder *r, const struct request_end_event *e);
int recorder_canary(struct recorder *r, const struct canary_event *e);
int recorder_name(struct recorder *r, const struct name_event *e);
/* Any event of the gate's or the upstream half's; takes the reference to `fields`. */
int recorder_send(struct recorder *r, enum audit_type type, json_t *fields, recorder_fn fn, void *ctx, struct recorder_ticket **ret_ticket);
/* fn won't be called; the event stays sent. Accepts NULL; returns NULL. */
struct recorder_ticket *recorder_forget(struct recorder_ticket *t);
