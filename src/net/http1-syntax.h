/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes and lines of HTTP/1, shared by the files that read them. Private to src/net. */
#pragma once

#include <string.h>
#include <strings.h>

#include "net/http1.h"

static inline bool http1_is_digit(uint8_t c) { return c >= '0' && c <= '9'; }
static inline bool http1_is_alpha(uint8_t c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }
static inline bool http1_is_value(uint8_t c) { return c == '\t' || (c >= 0x20 && c != 0x7f); }
static inline bool http1_is_visible(uint8_t c) { return c > 0x20 && c < 0x7f; }
static inline bool http1_is_blank(char c) { return c == ' ' || c == '\t'; }

/* tchar of RFC 9110 5.6.2, one bit a byte. */
static inline bool http1_is_token(uint8_t c)
{
	static const uint32_t bits[4] = { 0, 0x03ff6cfa, 0xc7fffffe, 0x57ffffff };
	return c < 0x80 && (bits[c >> 5] >> (c & 31) & 1);
}

static inline bool http1_all(struct http1_text t, bool (*ok)(uint8_t))
{
	for (size_t i = 0; i < t.len; i++)
		if (!ok((uint8_t)t.p[i]))
			return false;
	return true;
}

static inline struct http1_text http1_trim(struct http1_text t)
{
	while (t.len && http1_is_blank(t.p[0]))
		t.p++, t.len--;
	while (t.len && http1_is_blank(t.p[t.len - 1]))
		t.len--;
	return t;
}

/* The next line without its CRLF; the data ends with one. A CR anywhere else is refused by the character checks of the
 * parts. */
static inline struct http1_text http1_next_line(struct http1_text *rest)
{
	const char *lf = memchr(rest->p, '\n', rest->len);
	size_t whole = lf ? (size_t)(lf - rest->p) + 1 : rest->len;
	struct http1_text line = { rest->p, whole >= 2 ? whole - 2 : 0 };
	rest->p += whole;
	rest->len -= whole;
	return line;
}

/* NAME:VALUE. 0 or -1. */
static inline int http1_parse_header(struct http1_text line, struct http1_header *ret)
{
	const char *colon = memchr(line.p, ':', line.len);
	if (!colon)
		return -1;
	ret->name = (struct http1_text){ line.p, (size_t)(colon - line.p) };
	ret->value = http1_trim((struct http1_text){ colon + 1, line.len - ret->name.len - 1 });
	return ret->name.len && http1_all(ret->name, http1_is_token) && http1_all(ret->value, http1_is_value) ? 0 : -1;
}

/* Has one comma-separated list the word, whatever its letter case? */
static inline bool http1_list_has(struct http1_text list, struct http1_text word)
{
	while (list.len) {
		const char *comma = memchr(list.p, ',', list.len);
		size_t n = comma ? (size_t)(comma - list.p) : list.len;
		struct http1_text item = http1_trim((struct http1_text){ list.p, n });
		if (item.len == word.len && strncasecmp(item.p, word.p, word.len) == 0)
			return true;
		n += comma != NULL;
		list.p += n;
		list.len -= n;
	}
	return false;
}

/* Lines up to and with the empty one, at the end of `rest`. NULL, or what is wrong, with *fault. */
const char *http1_parse_headers(struct http1_text rest, struct http1_header *headers, size_t *n, enum http1_fault *fault);
