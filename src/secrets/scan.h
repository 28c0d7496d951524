/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds strings (secrets, placeholders) in a stream in every usual spelling, across any chunk borders: as they are; base64 at each of its three
 * alignments, standard and URL alphabet; base32; hex in either case; percent-encoded in whole or part; JSON and JavaScript escapes (\uXXXX, \xXX, \/); HTML
 * character references; quoted-printable; UTF-16 (both orders); broken over lines; and one of these inside another where that is usual
 * (percent-encoded base64, base64 of "user:secret", JSON inside JSON).
 *
 * Scrubbing keeps the length: each found spelling is overwritten, byte for byte, with letters that are valid in that spelling, so lengths, frames and
 * offsets of whatever protocol stay true.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define SCAN_NEEDLES_MAX 128u

struct scan_set;    /* needles, compiled; shared by streams; wiped when freed */
struct scan_stream; /* one direction of one stream */

struct scan_set *scan_set_new(void);
struct scan_set *scan_set_free(struct scan_set *s);                               /* streams hold a reference; accepts NULL */
int scan_set_add(struct scan_set *s, unsigned id, const void *p, size_t len, struct err *err); /* length ≥ SECRET_VALUE_MIN. Several needles may have one id */
int scan_set_compile(struct scan_set *s, struct err *err);
size_t scan_set_needles(const struct scan_set *s);

/* A find: which needle, in which spelling ("plain", "base64", "percent", …), at which offset of the stream. */
typedef void (*scan_fn)(void *ctx, unsigned id, const char *spelling, uint64_t offset, size_t len);

struct scan_stream *scan_stream_new(struct scan_set *set, scan_fn fn, void *ctx);
struct scan_stream *scan_stream_free(struct scan_stream *s);
/* Scrubs: takes len bytes, appends to `out` what is certain by now. What could be the beginning of a find is held back (bounded by the longest spelling). */
int scan_scrub(struct scan_stream *s, const void *p, size_t len, struct buf *out);
int scan_scrub_end(struct scan_stream *s, struct buf *out);                       /* the rest */
size_t scan_held(const struct scan_stream *s);
/* Only looks; nothing is held back or changed. */
void scan_look(struct scan_stream *s, const void *p, size_t len);
void scan_look_end(struct scan_stream *s);
/* One whole text, in place. Returns the number of finds. */
unsigned scan_text(struct scan_set *set, char *p, size_t len, bool scrub, scan_fn fn, void *ctx);
