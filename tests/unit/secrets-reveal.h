/* SPDX-License-Identifier: Apache-2.0 */
/* Does a text still hold a string for someone who decodes it? Decoders of their own, one coding at a time over the whole text, in any order up to some depth:
 * nothing of them is shared with the search that is tested. Include after cmocka or on its own. */
#pragma once

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

typedef void (*decode_fn)(const uint8_t *p, size_t len, struct buf *out);

static inline int hex_of(int c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* n hex digits at p, or -1. */
static inline int hex_number(const uint8_t *p, const uint8_t *end, unsigned n)
{
	int v = 0;
	for (unsigned i = 0; i < n; i++, p++) {
		if (p >= end || hex_of(*p) < 0)
			return -1;
		v = v * 16 + hex_of(*p);
	}
	return v;
}

static inline void decode_two_digits(const uint8_t *p, size_t len, char intro, struct buf *out)
{
	const uint8_t *end = p + len;
	while (p < end) {
		int v = *p == (uint8_t)intro ? hex_number(p + 1, end, 2) : -1;
		if (v >= 0) {
			buf_put_u8(out, (uint8_t)v);
			p += 3;
		} else if (intro == '=' && *p == '=' && p + 1 < end && p[1] == '\n') {
			p += 2;
		} else if (intro == '=' && *p == '=' && p + 2 < end && p[1] == '\r' && p[2] == '\n') {
			p += 3;
		} else {
			buf_put_u8(out, *p++);
		}
	}
}

static inline void decode_percent(const uint8_t *p, size_t len, struct buf *out)
{
	decode_two_digits(p, len, '%', out);
}

static inline void decode_quoted(const uint8_t *p, size_t len, struct buf *out)
{
	decode_two_digits(p, len, '=', out);
}

static inline void decode_backslash(const uint8_t *p, size_t len, struct buf *out)
{
	const uint8_t *end = p + len;
	while (p < end) {
		int v = -1;
		size_t n = 2;
		if (*p != '\\' || p + 1 >= end) {
			buf_put_u8(out, *p++);
			continue;
		}
		if (p[1] == 'u' && (v = hex_number(p + 2, end, 4)) >= 0)
			n = 6;
		else if (p[1] == 'x' && (v = hex_number(p + 2, end, 2)) >= 0)
			n = 4;
		else if (p[1] == 'n' || p[1] == 'r')
			v = p[1] == 'n' ? '\n' : '\r';
		else
			v = p[1];
		buf_put_u8(out, (uint8_t)v);
		p += n;
	}
}

static inline void decode_html(const uint8_t *p, size_t len, struct buf *out)
{
	const uint8_t *end = p + len;
	while (p < end) {
		char text[16];
		size_t room = (size_t)(end - p) < sizeof(text) - 1 ? (size_t)(end - p) : sizeof(text) - 1;
		memcpy(text, p, room);
		text[room] = '\0';
		unsigned v;
		int n = 0;
		if ((sscanf(text, "&#x%7x;%n", &v, &n) == 1 || sscanf(text, "&#%7u;%n", &v, &n) == 1) && n > 0) {
			buf_put_u8(out, (uint8_t)v);
			p += n;
		} else if (strncmp(text, "&amp;", 5) == 0) {
			buf_put_u8(out, '&');
			p += 5;
		} else {
			buf_put_u8(out, *p++);
		}
	}
}

/* Without line ends, the blanks after them, and NULs. */
static inline void decode_folds(const uint8_t *p, size_t len, struct buf *out)
{
	bool ended = false;
	for (size_t i = 0; i < len; i++) {
		bool gap = p[i] == '\0' || p[i] == '\r' || p[i] == '\n' || (ended && (p[i] == ' ' || p[i] == '\t'));
		ended = gap && (ended || p[i] != '\0');
		if (!gap)
			buf_put_u8(out, p[i]);
	}
}

static inline int letter_of(const char *alphabet, int c)
{
	const char *at = c ? strchr(alphabet, c) : NULL;
	return at ? (int)(at - alphabet) : -1;
}

/* Each run of letters of the alphabet, at each of its alignments, one after the other. */
static inline void decode_letters(const uint8_t *p, size_t len, const char *alphabet, unsigned width, bool fold, struct buf *out)
{
	unsigned alignments = width == 6 ? 4 : width == 5 ? 8 : 2;
	for (unsigned skip = 0; skip < alignments; skip++) {
		unsigned bits = 0, n = 0, left = skip;
		for (size_t i = 0; i < len; i++) {
			int v = letter_of(alphabet, fold ? toupper(p[i]) : p[i]);
			if (v < 0) {
				if (n > 0 || left != skip)
					buf_put_u8(out, ' ');
				bits = n = 0;
				left = skip;
				continue;
			}
			if (left > 0) {
				left--;
				continue;
			}
			bits = bits << width | (unsigned)v;
			n += width;
			if (n >= 8) {
				buf_put_u8(out, (uint8_t)(bits >> (n - 8)));
				n -= 8;
			}
			bits &= 0xffff;
		}
		buf_put_u8(out, ' ');
	}
}

static inline void decode_base64(const uint8_t *p, size_t len, struct buf *out)
{
	decode_letters(p, len, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", 6, false, out);
	decode_letters(p, len, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", 6, false, out);
}

static inline void decode_base32(const uint8_t *p, size_t len, struct buf *out)
{
	decode_letters(p, len, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 5, true, out);
}

static inline void decode_hex(const uint8_t *p, size_t len, struct buf *out)
{
	decode_letters(p, len, "0123456789ABCDEF", 4, true, out);
}

static inline bool contains(const uint8_t *p, size_t len, const char *secret)
{
	return len > 0 && memmem(p, len, secret, strlen(secret)) != NULL;
}

static inline bool reveals(const uint8_t *p, size_t len, const char *secret, unsigned depth)
{
	static const decode_fn decoders[] = { decode_percent, decode_backslash, decode_html, decode_quoted, decode_folds, decode_base64, decode_base32,
		decode_hex };
	if (contains(p, len, secret))
		return true;
	for (size_t i = 0; depth > 0 && i < sizeof(decoders) / sizeof(decoders[0]); i++) {
		struct buf out;
		/* Decoded text of letters is the last step. */
		unsigned left = i >= 5 ? 0 : depth - 1;
		buf_init(&out, 1u << 24);
		decoders[i](p, len, &out);
		bool found = !(out.len == len && memcmp(out.data, p, len) == 0) && reveals(out.data, out.len, secret, left);
		buf_free(&out);
		if (found)
			return true;
	}
	return false;
}
