/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Content codings taken off in flight (RFC 9110 8.4.1): gzip, x-gzip, deflate (zlib and raw), br, zstd, and lists of up to three of them. Bounded memory; a body
 * that grows beyond any reason (UNPACK_RATIO_MAX after the first MiB) is refused as a bomb.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define UNPACK_RATIO_MAX 2000u
#define UNPACK_ACCEPT "gzip, deflate, br, zstd" /* what may be asked of a server whose answers are scrubbed */

struct unpack;
/* NULL + err when a coding is not known. "" and "identity": ret is NULL without error. */
int unpack_new(const char *content_encoding, struct unpack **ret, struct err *err);
struct unpack *unpack_free(struct unpack *u);
/* Takes up to len bytes (*ret_used), appends plain bytes until `out` is full. Call again with the rest. 0 or -1: not of that coding, a bomb. */
int unpack_feed(struct unpack *u, const void *p, size_t len, size_t *ret_used, struct buf *out, struct err *err);
/* No more will come: was it whole? Appends what is left; call while *ret_more. */
int unpack_end(struct unpack *u, struct buf *out, bool *ret_more, struct err *err);
