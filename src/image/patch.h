/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a unified patch: colours, visible control bytes, hunks. Knows texts, not changes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "image/changes.h"
#include "image/text-source.h"

struct patch {
	unsigned style;
	int (*fn)(void *ctx, const void *data, size_t len);
	void *ctx;
	int stopped;        /* what fn returned, once non-zero */
	bool at_line_start; /* while a text is streamed */
	size_t n;
	char out[65536];
};

enum patch_tone { PATCH_PLAIN, PATCH_HEAD, PATCH_HUNK, PATCH_OLD, PATCH_NEW, PATCH_NOTE };

void patch_init(struct patch *p, unsigned style, int (*fn)(void *ctx, const void *data, size_t len), void *ctx);
/* What fn returned, or 0. */
int patch_flush(struct patch *p);
/* One line of our own, newline added. */
void patch_line(struct patch *p, enum patch_tone tone, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* "--- " and "+++ " are written by the caller. The hunks between two texts: the shortest or nearly, or one that replaces all
 * where they are too large to be compared. 0 or -errno. */
int patch_hunks(struct patch *p, struct source *old, struct source *new);
/* The same, only counted. */
int patch_count(struct source *old, struct source *new, struct change_stat *ret);
