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
#define UNPACK_MEMORY_MAX (512u * 1024u * 1024u) /* of all answers that are unpacked at once; beyond, ERR_PROTOCOL or ERR_MEMORY */
#define UNPACK_ACCEPT "gzip, deflate, br, zstd" /* what may be asked of a server whose answers are scrubbed */

struct unpack;
/* -1 + err (ERR_UNSUPPORTED) when a coding is not known. "" and "identity": *ret is NULL without error. */
int unpack_new(const char *content_encoding, struct unpack **ret, struct err *err);
struct unpack *unpack_free(struct unpack *u); /* accepts NULL */
/* Takes up to len bytes (*ret_used), appends plain bytes until `out` is full (its max). Call again with the rest when there is room; fewer than all bytes are taken only
 * when `out` is full. 0 or -1: not of that coding, bytes after its end (ERR_PROTOCOL), a bomb (ERR_LIMIT), memory. After -1 only unpack_free. */
int unpack_feed(struct unpack *u, const void *p, size_t len, size_t *ret_used, struct buf *out, struct err *err);
/* No more will come: was it whole (a body without any byte is)? Appends what is left; call while *ret_more, with room. */
int unpack_end(struct unpack *u, struct buf *out, bool *ret_more, struct err *err);
