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
/* A find that is longer than this from its first to its last byte is not seen (the longest secret in hex, percent-encoded, has 96 KiB). */
#define SCAN_HOLD_MAX (256u * 1024u)

struct scan_set;    /* needles, compiled; shared by streams; wiped when freed */
struct scan_stream; /* one direction of one stream */

struct scan_set *scan_set_new(void);
struct scan_set *scan_set_free(struct scan_set *s);                               /* streams hold a reference; accepts NULL */
/* Copies. len: SECRET_VALUE_MIN … SECRET_VALUE_MAX. Several needles may have one id. Not after compiling. */
int scan_set_add(struct scan_set *s, unsigned id, const void *p, size_t len, struct err *err);
int scan_set_compile(struct scan_set *s, struct err *err);                        /* once, before the first stream; also without needles */
size_t scan_set_needles(const struct scan_set *s);

/* A find: which needle, in which spelling, at which offset of the stream (an overlapping one may begin before the last one's end). Spellings: "plain",
 * "base64", "base64url", "base32", "hex", "percent", "backslash", "html", "quoted-printable", "utf-16", "folded" (over lines). Of several it has the inmost. */
typedef void (*scan_fn)(void *ctx, unsigned id, const char *spelling, uint64_t offset, size_t len);

struct scan_stream *scan_stream_new(struct scan_set *set, scan_fn fn, void *ctx); /* fn may be NULL */
struct scan_stream *scan_stream_free(struct scan_stream *s);                      /* accepts NULL */
/* Scrubs: takes len bytes, appends to `out` what is certain by now: all but what is, at this moment, the beginning of a spelling of a needle. `out` must have
 * room for scan_held() + len bytes. 0, or -1: no room or no memory, and the stream is of no more use. */
int scan_scrub(struct scan_stream *s, const void *p, size_t len, struct buf *out);
int scan_scrub_end(struct scan_stream *s, struct buf *out);                       /* the rest; once */
size_t scan_held(const struct scan_stream *s);
/* Only looks; nothing is changed. Not to be mixed with scrubbing. */
void scan_look(struct scan_stream *s, const void *p, size_t len);
void scan_look_end(struct scan_stream *s);
/* One whole text, in place. Returns the number of finds. */
unsigned scan_text(struct scan_set *set, char *p, size_t len, bool scrub, scan_fn fn, void *ctx);
