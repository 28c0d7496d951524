/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing byte buffer with a ceiling given at creation, and a cursor that reads bytes without ever
 * running past their end. Integers on every wire of ours are big-endian.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	uint8_t *data; /* valid bytes: data[0 … len-1]; NULL while nothing was appended */
	size_t len;
	size_t cap;
	size_t max;    /* len never exceeds this */
};

void buf_init(struct buf *b, size_t max);
void buf_free(struct buf *b);              /* releases memory; the ceiling stays, the buffer can be used again */
void buf_wipe_free(struct buf *b);         /* zeroes first: for secrets */
static inline void buf_clear(struct buf *b) { b->len = 0; }

/* All return 0, or -1 when the ceiling or memory is reached: then nothing was appended. */
int buf_append(struct buf *b, const void *data, size_t len);
int buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
int buf_put_u8(struct buf *b, uint8_t v);
int buf_put_u16(struct buf *b, uint16_t v);
int buf_put_u32(struct buf *b, uint32_t v);
int buf_put_u64(struct buf *b, uint64_t v);
int buf_put_bytes(struct buf *b, const void *data, size_t len); /* u32 length, then the bytes; len ≤ UINT32_MAX */
int buf_put_str(struct buf *b, const char *s);                  /* as bytes, without the NUL; NULL counts as "" */

/* Makes room for `len` more bytes and returns where to write them (call buf_commit then), or NULL. */
void *buf_reserve(struct buf *b, size_t len);
void buf_commit(struct buf *b, size_t len);
/* Drops `len` bytes from the front. */
void buf_consume(struct buf *b, size_t len);

/* Reading. After any failure `bad` stays true and every further read gives 0 / NULL. */
struct cursor {
	const uint8_t *p;
	size_t left;
	bool bad;
};

static inline struct cursor cursor_make(const void *data, size_t len)
{
	return (struct cursor){ .p = data, .left = len, .bad = false };
}
uint8_t cursor_u8(struct cursor *c);
uint16_t cursor_u16(struct cursor *c);
uint32_t cursor_u32(struct cursor *c);
uint64_t cursor_u64(struct cursor *c);
/* Exactly len bytes, in place (valid as long as the input), or NULL. */
const uint8_t *cursor_take(struct cursor *c, size_t len);
/* A u32-prefixed byte string of at most `max` bytes, in place; sets *ret_len. NULL when bad. */
const uint8_t *cursor_bytes(struct cursor *c, size_t max, size_t *ret_len);
/* As cursor_bytes, as a fresh NUL-terminated string; NULL when bad or when it contains a NUL. Free with mem_free. */
char *cursor_strdup(struct cursor *c, size_t max);
/* True when everything was read and nothing failed. */
static inline bool cursor_done(const struct cursor *c) { return !c->bad && c->left == 0; }
