/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names to addresses: the hosts table, then DNS (A and AAAA) by c-ares. Only names that policy allowed come here. Everything
 * that reads files happens in resolver_new; afterwards only sockets are used. Answers are kept for their TTL, at most a minute;
 * failures are not kept.
 */
#pragma once

#include <stddef.h>

#include "event/loop.h"
#include "gate/hosts.h"

#define RESOLVE_ADDRESSES_MAX 16u

struct resolver;
struct resolver_lookup;

struct resolver_answer {
	struct ip addresses[RESOLVE_ADDRESSES_MAX]; /* IPv6 and IPv4 alternating */
	size_t n;                                   /* 0: the name has none, or nobody answered */
};

typedef void (*resolver_fn)(void *ctx, const struct resolver_answer *answer);

/* Reads the system's resolver configuration. Keeps `hosts` (owned). */
struct resolver *resolver_new(struct loop *loop, struct hosts *hosts, struct err *err);
struct resolver *resolver_free(struct resolver *r); /* accepts NULL; pending callbacks are not made */
/* Uses these instead: "IP:PORT,…". Before the first lookup. */
int resolver_set_servers(struct resolver *r, const char *csv, struct err *err);
/* 1: *ret_answer is set at once. 0: fn will be called from the loop, unless *ret_lookup is cancelled. */
int resolver_lookup(struct resolver *r, const struct hostname *name, resolver_fn fn, void *ctx,
	struct resolver_answer *ret_answer, struct resolver_lookup **ret_lookup);
struct resolver_lookup *resolver_cancel(struct resolver_lookup *lookup); /* accepts NULL; returns NULL */
