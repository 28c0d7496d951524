/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http1-syntax.h"

enum chunk_state { CHUNK_SIZE, CHUNK_SIZE_LF, CHUNK_DATA, CHUNK_DATA_CR, CHUNK_DATA_LF, CHUNK_TRAILER, CHUNK_TRAILER_LF };

void http1_body_start(struct http1_body *b, enum http1_framing framing, uint64_t length)
{
	*b = (struct http1_body){ .framing = framing, .left = framing == HTTP1_LENGTH ? length : 0 };
	b->done = b->framing != HTTP1_CHUNKED && b->left == 0;
}

void http1_body_init(struct http1_body *b, const struct http1_request *r)
{
	http1_body_start(b, r->framing, r->length);
}

static int hex_value(uint8_t c)
{
	if (http1_is_digit(c))
		return c - '0';
	uint8_t l = c | 0x20;
	return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

static int chunk_size_byte(struct http1_body *b, uint8_t c)
{
	int v = hex_value(c);
	if (v >= 0 && b->digits < 15) { /* 60 bits: can't overflow */
		b->left = b->left << 4 | (uint64_t)v;
		b->digits++;
		return 0;
	}
	if (c != '\r' || b->digits == 0)
		return -1;
	b->state = CHUNK_SIZE_LF;
	return 0;
}

static int keep(struct http1_body *b, const void *p, size_t len)
{
	return b->trailers ? buf_append(b->trailers, p, len) : 0;
}

/* Trailers are checked here, and read by whoever kept them: NAME:VALUE lines up to an empty one. */
static int trailer_byte(struct http1_body *b, uint8_t c)
{
	if (++b->trailer > HTTP1_TRAILER_MAX)
		return -1;
	if (c == '\r') {
		b->state = CHUNK_TRAILER_LF;
		return b->line && !b->colon ? -1 : 0;
	}
	if (!b->colon && c == ':')
		b->colon = b->line > 0;
	else if (!(b->colon ? http1_is_value(c) : http1_is_token(c)))
		return -1;
	b->line++;
	return b->line == 1 && c == ':' ? -1 : keep(b, &c, 1);
}

static int trailer_end(struct http1_body *b)
{
	b->done = b->line == 0;
	b->line = 0;
	b->colon = false;
	b->state = CHUNK_TRAILER;
	return b->done ? 0 : keep(b, "\r\n", 2);
}

static int chunk_byte(struct http1_body *b, uint8_t c)
{
	switch ((enum chunk_state)b->state) {
	case CHUNK_SIZE:
		return chunk_size_byte(b, c);
	case CHUNK_SIZE_LF:
		b->state = b->left ? CHUNK_DATA : CHUNK_TRAILER;
		b->digits = 0;
		return c == '\n' ? 0 : -1;
	case CHUNK_DATA_CR:
		b->state = CHUNK_DATA_LF;
		return c == '\r' ? 0 : -1;
	case CHUNK_DATA_LF:
		b->state = CHUNK_SIZE;
		return c == '\n' ? 0 : -1;
	case CHUNK_TRAILER:
		return trailer_byte(b, c);
	case CHUNK_TRAILER_LF:
		return c == '\n' ? trailer_end(b) : -1;
	case CHUNK_DATA:
		break;
	}
	return -1;
}

static size_t content(struct http1_body *b, const char *p, size_t len, struct http1_text *ret)
{
	*ret = (struct http1_text){ p, len < b->left ? len : (size_t)b->left };
	b->left -= ret->len;
	return ret->len;
}

int http1_body_next(struct http1_body *b, const void *data, size_t len, size_t *ret_used, struct http1_text *ret_content)
{
	const char *p = data;
	size_t used = 0;
	*ret_content = (struct http1_text){ "", 0 };
	if (b->framing == HTTP1_CHUNKED) {
		while (used < len && !b->done && b->state != CHUNK_DATA)
			if (chunk_byte(b, (uint8_t)p[used++]) < 0)
				return -1;
		if (used < len && !b->done) {
			used += content(b, p + used, len - used, ret_content);
			if (b->left == 0)
				b->state = CHUNK_DATA_CR;
		}
	} else if (!b->done) {
		used = content(b, p, len, ret_content);
		b->done = b->left == 0;
	}
	*ret_used = used;
	return 0;
}

static int put_run(const struct http1_body *b, struct http1_text run, struct buf *out)
{
	bool chunked = b->framing == HTTP1_CHUNKED;
	if (run.len && chunked && buf_printf(out, "%zx\r\n", run.len) < 0)
		return -1;
	if (run.len && (buf_append(out, run.p, run.len) < 0 || (chunked && buf_append(out, "\r\n", 2) < 0)))
		return -1;
	return chunked && b->done ? buf_append(out, "0\r\n\r\n", 5) : 0;
}

int http1_body_feed(struct http1_body *b, const void *data, size_t len, size_t *ret_used, struct buf *out)
{
	const uint8_t *p = data;
	size_t used = 0;
	while (used < len && !b->done) {
		size_t n;
		struct http1_text run;
		if (http1_body_next(b, p + used, len - used, &n, &run) < 0)
			return -1;
		used += n;
		if (put_run(b, run, out) < 0)
			return -1;
	}
	*ret_used = used;
	return 0;
}
