/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define FIRST_CAPACITY 256u

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){ .max = max };
}

void buf_free(struct buf *b)
{
	free(b->data);
	buf_init(b, b->max);
}

void buf_wipe_free(struct buf *b)
{
	mem_wipe(b->data, b->cap);
	buf_free(b);
}

/* Growing copies and wipes instead of calling realloc: the buffer may hold a secret, and an abandoned copy of it would outlive
 * buf_wipe_free. */
static int grow(struct buf *b, size_t need)
{
	size_t cap = b->cap ? b->cap : FIRST_CAPACITY;
	while (cap < need)
		cap = cap > SIZE_MAX / 2 ? need : cap * 2;
	if (cap > b->max)
		cap = b->max;
	uint8_t *fresh = malloc(cap);
	if (!fresh)
		return -1;
	if (b->len)
		memcpy(fresh, b->data, b->len);
	mem_wipe(b->data, b->cap);
	free(b->data);
	b->data = fresh;
	b->cap = cap;
	return 0;
}

void *buf_reserve(struct buf *b, size_t len)
{
	if (len > b->max || b->len > b->max - len)
		return NULL;
	size_t need = b->len + len;
	if ((need > b->cap || !b->data) && grow(b, need ? need : 1) < 0)
		return NULL;
	return b->data + b->len;
}

void buf_commit(struct buf *b, size_t len)
{
	b->len += len;
}

void buf_consume(struct buf *b, size_t len)
{
	if (len >= b->len) {
		b->len = 0;
		return;
	}
	memmove(b->data, b->data + len, b->len - len);
	b->len -= len;
}

int buf_append(struct buf *b, const void *data, size_t len)
{
	if (len == 0)
		return 0;
	void *to = buf_reserve(b, len);
	if (!to)
		return -1;
	memcpy(to, data, len);
	buf_commit(b, len);
	return 0;
}

int buf_printf(struct buf *b, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	int n = vsnprintf(NULL, 0, format, ap);
	va_end(ap);
	/* The terminating NUL needs room while printing, and isn't counted afterwards. It must not cost a byte of the
	 * ceiling. */
	if (n < 0 || (size_t)n > b->max || b->len > b->max - (size_t)n)
		return -1;
	char *text = malloc((size_t)n + 1);
	if (!text)
		return -1;
	va_start(ap, format);
	vsnprintf(text, (size_t)n + 1, format, ap);
	va_end(ap);
	int r = buf_append(b, text, (size_t)n);
	mem_wipe(text, (size_t)n);
	free(text);
	return r;
}

static int put_big_endian(struct buf *b, uint64_t v, size_t width)
{
	uint8_t bytes[8];
	for (size_t i = 0; i < width; i++)
		bytes[i] = (uint8_t)(v >> (8 * (width - 1 - i)));
	return buf_append(b, bytes, width);
}

int buf_put_u8(struct buf *b, uint8_t v)
{
	return put_big_endian(b, v, 1);
}

int buf_put_u16(struct buf *b, uint16_t v)
{
	return put_big_endian(b, v, 2);
}

int buf_put_u32(struct buf *b, uint32_t v)
{
	return put_big_endian(b, v, 4);
}

int buf_put_u64(struct buf *b, uint64_t v)
{
	return put_big_endian(b, v, 8);
}

int buf_put_bytes(struct buf *b, const void *data, size_t len)
{
	size_t before = b->len;
	if (len > UINT32_MAX || buf_put_u32(b, (uint32_t)len) < 0)
		return -1;
	if (buf_append(b, data, len) < 0) {
		b->len = before;
		return -1;
	}
	return 0;
}

int buf_put_str(struct buf *b, const char *s)
{
	return buf_put_bytes(b, s, s ? strlen(s) : 0);
}

const uint8_t *cursor_take(struct cursor *c, size_t len)
{
	static const uint8_t empty[1];
	if (c->bad || len > c->left) {
		c->bad = true;
		return NULL;
	}
	const uint8_t *p = c->p;
	if (!p)
		return empty; /* len is 0 here; NULL would read as failure */
	c->p += len;
	c->left -= len;
	return p;
}

static uint64_t take_big_endian(struct cursor *c, size_t width)
{
	const uint8_t *p = cursor_take(c, width);
	if (!p)
		return 0;
	uint64_t v = 0;
	for (size_t i = 0; i < width; i++)
		v = v << 8 | p[i];
	return v;
}

uint8_t cursor_u8(struct cursor *c)
{
	return (uint8_t)take_big_endian(c, 1);
}

uint16_t cursor_u16(struct cursor *c)
{
	return (uint16_t)take_big_endian(c, 2);
}

uint32_t cursor_u32(struct cursor *c)
{
	return (uint32_t)take_big_endian(c, 4);
}

uint64_t cursor_u64(struct cursor *c)
{
	return take_big_endian(c, 8);
}

const uint8_t *cursor_bytes(struct cursor *c, size_t max, size_t *ret_len)
{
	size_t len = cursor_u32(c);
	if (len > max)
		c->bad = true;
	const uint8_t *p = cursor_take(c, len);
	if (p)
		*ret_len = len;
	return p;
}

char *cursor_strdup(struct cursor *c, size_t max)
{
	size_t len;
	const uint8_t *p = cursor_bytes(c, max, &len);
	if (!p)
		return NULL;
	if (memchr(p, 0, len)) {
		c->bad = true;
		return NULL;
	}
	return mem_strndup((const char *)p, len);
}
