/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a name to its synthetic addresses: asks the host, once for all who ask for the same name meanwhile, and publishes
 * what is allowed.
 */
#pragma once

#include "agent/egress.h"
#include "event/loop.h"
#include "wire/messages.h"
#include "wire/mux.h"

#define RESOLVE_PENDING_MAX 256u  /* names asked of the host at once */
#define RESOLVE_WAITERS_MAX 1024u /* questions waiting for these */
#define RESOLVE_TTL_S 10u         /* life of an answer; as long an allowed name isn't asked about again */

enum resolve_result {
	RESOLVE_ALLOWED,
	RESOLVE_DENIED,
	RESOLVE_FAILED, /* no answer in time, or a ceiling */
};

/* `n` is set when allowed, and valid during the call. */
typedef void (*resolve_fn)(void *waiter, enum resolve_result result, const struct name *n);

struct resolver;

struct resolver *resolver_new(struct loop *loop, struct mux *mux, struct egress *egress, resolve_fn fn);
/* Calls fn with RESOLVE_FAILED for all who wait. Accepts NULL; returns NULL. */
struct resolver *resolver_free(struct resolver *r);
/* Calls fn once for this waiter: now, or later. */
void resolver_ask(struct resolver *r, const struct hostname *host, void *waiter);
/* Answers to questions never asked, or given up meanwhile, are ignored. */
void resolver_answer(struct resolver *r, const struct wire_name_answer *m);
