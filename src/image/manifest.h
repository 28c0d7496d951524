/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The saved list of changes: JSON, one object a line. First the header {"version":1,"source":…,"nonce":…,"changes":N}, then N
 * changes in the order of their paths, last {"end":N}. Names that aren't UTF-8 are {"base64":…}. Written and read by us, but
 * its names come from the box: everything is checked again.
 */
#pragma once

#include "base/buf.h"
#include "image/changes.h"

#define MANIFEST_MAX (1024u * 1024u * 1024u)

/* 0 or -1 (the ceiling of `out`). */
int manifest_encode(const struct changes *c, struct buf *out, struct err *err);
int manifest_decode(const char *text, size_t len, struct changes *ret, struct err *err);
/* "a/b", not "", "/a", "a//b", "a/../b", "./a". */
bool manifest_path_valid(const char *path);
