/* SPDX-License-Identifier: Apache-2.0 */
/* What a change may set off later outside the box, by its names, modes and targets. Generous: a file that is held needlessly
 * costs one word on the command line. */
#pragma once

#include "image/changes.h"
#include "image/facts.h"

/* All flags but CHANGE_FLAG_ORIGINAL_CHANGED. A rename is judged by both names. */
unsigned change_flags(const struct change *one, const struct facts *facts);
/* By name alone. */
unsigned flags_of_path(const char *path, bool is_folder, const struct facts *facts);
/* The target, seen from the link, is absolute, leaves the root, or climbs after having descended (where a link in between could
 * make it leave). */
bool link_escapes(const char *link_path, const char *target);
/* Folds a name as careless file systems do: ASCII case, the code points that HFS+ ignores, trailing dots and spaces, NTFS
 * streams and short names of
 * ".git…". out has room for 256 bytes; a name that is longer is cut. */
void name_fold(const char *name, size_t len, char out[256]);
