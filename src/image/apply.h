/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applying, in this folder only: select (what was asked for, what is held), check (nothing is written while there is a
 * conflict), write.
 *
 * The original is live: anybody may change it between our look and our write. Each file is therefore put in place by an
 * exchange (or taken away by a rename), and what came out is looked at: if it isn't what was checked, it is put back.
 *
 * Killed at any line, the same command can be given again: what is as it should be already is left alone, leftovers carry names
 * that only this list of changes knows (`nonce`) and are cleared.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "image/changes.h"

enum item_state { ITEM_UNASKED = 0, ITEM_HELD, ITEM_TODO, ITEM_ALREADY, ITEM_CONFLICT };

/* A path that goes away: of a deleted item, or the old one of a renamed item. */
struct gone { const char *path; size_t item; };

struct apply {
	const struct changes *c;
	int dirfd;
	const char *name;
	int original;
	enum item_state *state;  /* for each item */
	unsigned *held_flags;    /* for each item: why it is held, beyond its own flags */
	struct gone *gone;       /* those to do, sorted by path; filled by apply_check */
	size_t n_gone;
};

#define TEMP_NAME_SIZE 64
/* Name of the temporary file of one item in its folder. */
void apply_temp_name(const struct apply *a, size_t item, char out[TEMP_NAME_SIZE]);
bool apply_is_temp_name(const struct apply *a, const char *name);
static inline bool apply_chosen(const struct apply *a, size_t item)
{
	return a->state[item] == ITEM_TODO || a->state[item] == ITEM_ALREADY || a->state[item] == ITEM_CONFLICT;
}
/* The item makes its path a folder, so that entries below it can be made. */
bool change_makes_folder(const struct change *one);
/* The item takes a folder away, so that nothing may be left below it. */
bool change_removes_folder(const struct change *one);
/* Calls fn for each folder above path that has an item of its own, nearest last. */
void apply_each_ancestor(const struct apply *a, const char *path, void (*fn)(void *ctx, size_t item), void *ctx);

int apply_select(struct apply *a, char *const *paths, struct err *err);
/* Sets ITEM_ALREADY and ITEM_CONFLICT. -1 only when the original can't be looked at. */
int apply_check(struct apply *a, struct err *err);
int apply_write(struct apply *a, struct err *err);

/* What is at the path now is what was there when the changes were collected. moved: it was renamed by us, so that its ctime
 * says nothing. */
bool original_is_unchanged(const struct change *one, int parent, const char *name, const struct stat *st, bool moved);
/* What is at the path now is what the change would make of it. */
bool original_is_as_wanted(
	const struct apply *a, const struct change *one, int parent, const char *name, const struct stat *st);
