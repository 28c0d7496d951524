/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which lines differ between two texts: Myers' O(ND) algorithm in linear space (Algorithmica 1986), with a ceiling on the
 * search for each split. Beyond it the split is only good instead of best: the result stays a correct edit script, it may be
 * longer than the shortest. Hostile texts can't make it slow: lines are numbered through a keyed hash, and the work is bounded
 * by lines × ceiling.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINEDIFF_LINES_MAX 1000000u /* on one side; more: not compared (see linediff_run) */

struct text_line { const char *p; size_t len; /* with its newline, if it has one */ };

struct text_side {
	struct text_line *lines;
	bool *changed;     /* deleted from the old side, added on the new one */
	size_t n;
};

struct linediff { struct text_side old, new; };

/* The texts must outlive the result. false: too many lines; then nothing is returned. */
bool linediff_run(const char *old, size_t old_len, const char *new, size_t new_len, struct linediff *ret);
void linediff_done(struct linediff *d);
