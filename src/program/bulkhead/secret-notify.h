/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a stored secret reaches the sandboxes that hold it. */
#pragma once

#include <jansson.h>

#include "program/bulkhead/command.h"
#include "sandbox/control-protocol.h"
#include "store/state.h"

struct secret_notified {
	unsigned took, failed; /* sandboxes; those that don't use it aren't counted */
	json_t *list;          /* {"id", "took", "error"?} of each counted; json_decref */
};

/*
 * Tells each running sandbox, or only the named one (id or prefix), that the secret changed (CONTROL_SECRET_CHANGED) or is revoked (CONTROL_SECRET_REVOKE), and waits for its
 * answer. One that fails is in the list with its sentence, and counted. -1: the sandboxes can't be listed, or the named one isn't running.
 */
int secret_notify(struct state *s, enum control_request request, const char *name, const char *only, struct secret_notified *ret, struct err *err);

/*
 * The same, said: how many took it on stdout (not with --json or -q), each failure on stderr. With --json, "sandboxes" is added to `document`, which the caller prints.
 * Returns 0, or EXIT_FAILED when a sandbox may still hold what it shouldn't.
 */
int secret_notify_report(const struct command *cmd, const struct globals *g, struct state *s, enum control_request request, const char *name, const char *only,
	json_t *document);

/* The whole of `bulkhead secret revoke NAME [--sandbox ID]`; `only` may be NULL. Returns the exit status. */
int secret_revoke(const struct command *cmd, const struct globals *g, const char *name, const char *only);
