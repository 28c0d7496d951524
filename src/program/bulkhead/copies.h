/* SPDX-License-Identifier: Apache-2.0 */
/* The saved working copies of one sandbox, for diff, apply and discard. A sandbox has one for each `copy` mount: "changes",
 * "changes.1", … */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "image/changes.h"
#include "program/bulkhead/command.h"
#include "store/state.h"

struct copy {
	char name[32];
	struct changes changes;
	int original;       /* O_PATH; -1 until copies_open_originals */
	char **paths;       /* what was asked for, relative to the original; NULL: all */
	bool asked;         /* at least one of the asked paths is in here */
};

struct copies {
	struct state *state;
	struct sandbox_dir *dir;
	struct copy *items;
	size_t n;
};

/* Loads all of them; none when the run changed nothing. With lock: fails while the sandbox runs. ERR_NOT_FOUND when they
 * weren't saved, or were discarded. */
int copies_open(struct copies *c, const struct globals *g, const char *id, bool lock, struct err *err);
int copies_open_originals(struct copies *c, struct err *err);
/* Takes PATH operands: relative to the working copy ("./a", "a/", "." are understood), or absolute paths of the host below the
 * original. Each must have changed. */
int copies_ask(struct copies *c, char *const *operands, size_t n, struct err *err);
void copies_done(struct copies *c);
