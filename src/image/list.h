/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of changes, inside this folder only. */
#pragma once

#include "image/changes.h"

void change_done(struct change *one);
/* A new empty item at the end; *cap is the room of c->items. */
struct change *changes_append(struct changes *c, size_t *cap);
void changes_append_copy(struct changes *c, size_t *cap, const struct change *from);
/* Index of the item with that path in a sorted list, or -1. */
ssize_t changes_find(const struct changes *c, const char *path);
/* "a/b/c" is below "a/b" and below "". */
bool path_is_below(const char *path, const char *folder);
/* The new state is a file whose bytes aren't those of the original: it has a digest. */
bool change_has_content(const struct change *one);
/* …and they are stored: not so for what is never applied. */
bool change_is_stored(const struct change *one);
