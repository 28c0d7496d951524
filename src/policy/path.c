/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request's path, decided once. Servers differ in how often they decode, in what they take for a separator, in what they strip;
 * so the spelling in which they could differ is refused, and what is left means one thing to all of them. In three steps: each
 * byte of its own (decode the harmless, refuse the structural), then what stands next to what (double encoding), then the segments.
 */
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "policy/path.h"

/* A path may hold this many "%3F" and "%23": each is read in two ways (see glob.c), which costs one more match. */
#define CUTS_MAX 8u

int path_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool is_alnum(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* RFC 3986 2.3: the same with or without its encoding, to everyone. */
static bool is_unreserved(unsigned char c)
{
	return is_alnum(c) || (c != '\0' && strchr("-._~", c));
}

bool path_is_pchar(unsigned char c)
{
	return is_unreserved(c) || (c != '\0' && strchr("!$&'()*+,:=@", c));
}

static bool is_control(unsigned char c)
{
	return c < 0x20 || c == 0x7f;
}

struct writer {
	char *out;
	size_t len;
	bool full;
};

static void put_char(struct writer *w, char c)
{
	if (w->len < REQUEST_PATH_MAX)
		w->out[w->len++] = c;
	else
		w->full = true;
}

static void put_encoded(struct writer *w, unsigned char c)
{
	static const char hex[] = "0123456789ABCDEF";
	put_char(w, '%');
	put_char(w, hex[c >> 4]);
	put_char(w, hex[c & 15]);
}

/* ---- step 1: bytes ---- */

static bool put_decoded(struct writer *w, unsigned char c, bool encoded_slash)
{
	if (is_control(c) || c == '\\' || c == ';' || (c == '/' && !encoded_slash))
		return false;
	if (is_unreserved(c))
		put_char(w, (char)c);
	else
		put_encoded(w, c);
	return true;
}

static bool put_plain(struct writer *w, unsigned char c)
{
	if (is_control(c) || c == ' ' || c == '\\' || c == ';' || c == '#')
		return false;
	if (c == '/' || path_is_pchar(c))
		put_char(w, (char)c);
	else
		put_encoded(w, c); /* UTF-8, and what no URL may hold but some clients send: " < > [ ] ^ ` { | } */
	return true;
}

static bool normalise_bytes(const char *s, size_t len, bool encoded_slash, struct writer *w)
{
	for (size_t i = 0; i < len; i++) {
		if (s[i] != '%') {
			if (!put_plain(w, (unsigned char)s[i]))
				return false;
			continue;
		}
		int high = i + 2 < len ? path_hex(s[i + 1]) : -1, low = i + 2 < len ? path_hex(s[i + 2]) : -1;
		if (high < 0 || low < 0 || !put_decoded(w, (unsigned char)(high << 4 | low), encoded_slash))
			return false;
		i += 2;
	}
	return !w->full;
}

/* ---- step 2: neighbours ---- */

/* "%252e" and "%25u002e": a server that decodes twice sees another path. Hex digits are never encoded any more here. */
static bool is_double(const char *after)
{
	if (after[0] == 'u' || after[0] == 'U')
		after++;
	return path_hex(after[0]) >= 0 && path_hex(after[1]) >= 0;
}

static bool neighbours_clear(const char *path)
{
	unsigned cuts = 0;
	for (const char *p = strchr(path, '%'); p; p = strchr(p + 3, '%')) {
		if (strncmp(p, "%25", 3) == 0 && is_double(p + 3))
			return false;
		if (strncmp(p, "%3F", 3) == 0 || strncmp(p, "%23", 3) == 0)
			cuts++;
	}
	return cuts <= CUTS_MAX;
}

/* ---- step 3: characters and segments ---- */

struct range { uint32_t first, last; };

/* C1 controls, and what Unicode's compatibility forms or a code page's best fit turn into / \ % or ; */
static const struct range structural[] = {
	{ 0x80, 0x9f }, { 0xa5, 0xa5 }, { 0x37e, 0x37e }, { 0x2044, 0x2044 }, { 0x20a9, 0x20a9 }, { 0x2100, 0x2101 },
	{ 0x2105, 0x2106 }, { 0x2215, 0x2216 }, { 0x29f5, 0x29f5 }, { 0x29f8, 0x29f9 }, { 0xfe14, 0xfe14 }, { 0xfe54, 0xfe54 },
	{ 0xfe68, 0xfe68 }, { 0xfe6a, 0xfe6a }, { 0xff05, 0xff05 }, { 0xff0f, 0xff0f }, { 0xff1b, 0xff1b }, { 0xff3c, 0xff3c },
};
/* What is taken for dots, and what some file systems and programs strip or don't see: a segment of nothing else is a dot segment. */
static const struct range dots[] = {
	{ '.', '.' }, { 0x2024, 0x2026 }, { 0x3002, 0x3002 }, { 0xfe19, 0xfe19 }, { 0xfe30, 0xfe30 }, { 0xfe52, 0xfe52 },
	{ 0xff0e, 0xff0e }, { 0xff61, 0xff61 },
};
static const struct range blanks[] = {
	{ ' ', ' ' }, { 0xa0, 0xa0 }, { 0xad, 0xad }, { 0x34f, 0x34f }, { 0x600, 0x605 }, { 0x61c, 0x61c }, { 0x1160, 0x1160 },
	{ 0x1680, 0x1680 }, { 0x180b, 0x180f }, { 0x2000, 0x200f }, { 0x2028, 0x202f }, { 0x205f, 0x206f }, { 0x3000, 0x3000 },
	{ 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff }, { 0xfff0, 0xfffb }, { 0xe0000, 0xe0fff },
};

static bool in_ranges(const struct range *r, size_t n, uint32_t c)
{
	for (size_t i = 0; i < n; i++)
		if (c >= r[i].first && c <= r[i].last)
			return true;
	return false;
}

/* The next character of valid UTF-8. */
static uint32_t next_char(const char **p)
{
	unsigned char c = (unsigned char)*(*p)++;
	unsigned more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
	uint32_t v = more == 0 ? c : c & (0x3fu >> more);
	while (more-- > 0)
		v = v << 6 | ((unsigned char)*(*p)++ & 0x3fu);
	return v;
}

/* The path without any encoding; never longer than it was. */
static size_t decode_all(const char *path, char *out)
{
	size_t n = 0;
	for (const char *p = path; *p; p++) {
		if (*p == '%') {
			out[n++] = (char)(path_hex(p[1]) << 4 | path_hex(p[2]));
			p += 2;
		} else {
			out[n++] = *p;
		}
	}
	out[n] = '\0';
	return n;
}

/* `decoded` has an encoded slash as "/" too, where one was let through: then it counts as a separator here. */
static bool segments_clear(const char *decoded)
{
	const char *p = decoded + 1; /* behind the first slash */
	while (*p) {
		bool only_dots = true, dotted = false, plus = false;
		while (*p && *p != '/') {
			uint32_t c = next_char(&p);
			bool dot = in_ranges(dots, ARRAY_LEN(dots), c), blank = in_ranges(blanks, ARRAY_LEN(blanks), c);
			if (in_ranges(structural, ARRAY_LEN(structural), c))
				return false;
			dotted = dotted || dot;
			plus = plus || c == '+'; /* a blank to some */
			only_dots = only_dots && (dot || blank || c == '+');
		}
		if (only_dots && (dotted || !plus)) /* also the empty segment */
			return false;
		if (*p == '/')
			p++;
	}
	return true;
}

static bool characters_clear(const char *path)
{
	char decoded[REQUEST_PATH_MAX + 1];
	size_t n = decode_all(path, decoded);
	return text_is_utf8(decoded, n) && segments_clear(decoded);
}

/* ---- */

/* The query is passed on as it is; only what no URL can hold is encoded or refused. */
static bool copy_query(const char *s, size_t len, struct writer *w)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];
		if (is_control(c) || c == ' ' || c == '#')
			return false;
		if (c >= 0x80)
			put_encoded(w, c);
		else
			put_char(w, (char)c);
	}
	return !w->full;
}

static size_t split_query(const char *target, size_t len, struct request_path *ret, bool *ret_ok)
{
	const char *mark = memchr(target, '?', len);
	struct writer w = { .out = ret->query };
	*ret_ok = true;
	ret->has_query = mark != NULL;
	if (mark)
		*ret_ok = copy_query(mark + 1, len - (size_t)(mark + 1 - target), &w);
	ret->query[w.len] = '\0';
	return mark ? (size_t)(mark - target) : len;
}

static enum reason refuse(struct request_path *ret)
{
	ret->path[0] = ret->query[0] = '\0';
	ret->has_query = false;
	return REASON_PATH_AMBIGUOUS;
}

static bool is_asterisk(const char *target, size_t len)
{
	return len == 1 && target[0] == '*';
}

enum reason request_path_parse(const char *target, size_t len, bool encoded_slash, struct request_path *ret)
{
	struct writer w = { .out = ret->path };
	bool query_ok;
	if (is_asterisk(target, len))
		return request_path_raw(target, len, ret);
	if (len == 0 || len > REQUEST_PATH_MAX || target[0] != '/')
		return refuse(ret);
	size_t n = split_query(target, len, ret, &query_ok);
	if (!query_ok || !normalise_bytes(target, n, encoded_slash, &w))
		return refuse(ret);
	ret->path[w.len] = '\0';
	return neighbours_clear(ret->path) && characters_clear(ret->path) ? REASON_NONE : refuse(ret);
}

enum reason request_path_raw(const char *target, size_t len, struct request_path *ret)
{
	struct writer w = { .out = ret->path };
	bool query_ok;
	if (len == 0 || len > REQUEST_PATH_MAX || (target[0] != '/' && !is_asterisk(target, len)))
		return refuse(ret);
	size_t n = split_query(target, len, ret, &query_ok);
	if (!query_ok || !copy_query(target, n, &w))
		return refuse(ret);
	ret->path[w.len] = '\0';
	return REASON_NONE;
}

size_t path_match_form(const char *path, bool slash_too, char out[REQUEST_PATH_MAX + 1])
{
	size_t n = 0;
	for (const char *p = path; *p && n < REQUEST_PATH_MAX; p++) {
		int high = *p == '%' ? path_hex(p[1]) : -1, low = high >= 0 ? path_hex(p[2]) : -1;
		unsigned char c = low >= 0 ? (unsigned char)(high << 4 | low) : '\0';
		if (low >= 0 && (path_is_pchar(c) || (slash_too && c == '/'))) {
			out[n++] = (char)c;
			p += 2;
		} else {
			out[n++] = *p;
		}
	}
	out[n] = '\0';
	return n;
}
