/* SPDX-License-Identifier: Apache-2.0 */
/* Cleaning up after supervisors that were killed. Idempotent: killed in the middle, the next command does the rest. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "store/state.h"

struct reaped {
	const char *id;
	unsigned removed;  /* processes and cgroups that were left (with dry_run: are left) */
	bool record_ended; /* the record says that the supervisor was lost; false: it can't be written, `why` says so */
	bool dry_run;
	const char *why;
};

/* All sandboxes whose supervisor is gone. fn may be NULL; it is called for each. Costs one look at the live entries when there
 * is nothing to do. A sandbox that can't be cleaned up fails the call, after the others had their turn. */
int reap_stale(struct state *s, bool dry_run, void (*fn)(void *ctx, const struct reaped *r), void *ctx, struct err *err);
/* One, by full id. Does nothing when another process is just doing it. */
int reap_one(struct state *s, const char *id, bool dry_run, void (*fn)(void *ctx, const struct reaped *r), void *ctx,
	struct err *err);
