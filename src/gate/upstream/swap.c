/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/upstream/swap.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "gate/upstream/inject.h"
#include "secrets/placeholder.h"
#include "secrets/secret.h"

#define CODED_MAX (6u * SECRET_VALUE_MAX)
#define PIECE_MAX 16384u

struct swap {
	char needle[PLACEHOLDER_MAX];
	size_t needle_len;
	struct buf value;                 /* coded */
	uint8_t held[PLACEHOLDER_MAX];    /* a true beginning of the needle: the needle's own bytes */
	size_t n_held;
};

static bool type_is(const struct http_head *head, const char *type)
{
	const struct http_field *f = http_head_get(head, "content-type");
	size_t n = strlen(type);
	return f && f->value.len >= n && strncasecmp(f->value.p, type, n) == 0 && (f->value.len == n || strchr("; \t", f->value.p[n]));
}

static bool type_is_json(const struct http_head *head)
{
	const struct http_field *f = http_head_get(head, "content-type");
	return f && (type_is(head, "application/json") || (f->value.len && memmem(f->value.p, f->value.len, "+json", 5)));
}

static int json_escape(struct buf *out, const void *p, size_t len)
{
	const char *c = p;
	int r = 0;
	for (size_t i = 0; r == 0 && i < len; i++)
		r = (strchr("\"\\", c[i]) ? buf_append(out, "\\", 1) : 0) | buf_append(out, &c[i], 1);
	return r;
}

static int code(struct buf *out, const void *value, size_t len, const struct http_head *head)
{
	if (type_is(head, "application/x-www-form-urlencoded"))
		return inject_percent(out, value, len);
	return type_is_json(head) ? json_escape(out, value, len) : buf_append(out, value, len);
}

struct swap *swap_new(const char *placeholder, const void *value, size_t len, const struct http_head *head)
{
	struct swap *s = mem_alloc(sizeof(*s));
	s->needle_len = strnlen(placeholder, sizeof(s->needle) - 1);
	memcpy(s->needle, placeholder, s->needle_len);
	buf_init(&s->value, CODED_MAX);
	return code(&s->value, value, len, head) < 0 ? swap_free(s) : s;
}

struct swap *swap_free(struct swap *s)
{
	if (s)
		buf_wipe_free(&s->value);
	return mem_free(s);
}

/* How many of the last bytes could be the needle's beginning. */
static size_t tail_of(const struct swap *s, const char *p, size_t len)
{
	size_t n = len < s->needle_len ? len : s->needle_len - 1;
	while (n && memcmp(p + len - n, s->needle, n) != 0)
		n--;
	return n;
}

static int feed_piece(struct swap *s, const void *p, size_t len, struct buf *out)
{
	char text[PIECE_MAX + PLACEHOLDER_MAX];
	memcpy(text, s->held, s->n_held);
	memcpy(text + s->n_held, p, len);
	size_t n = s->n_held + len, from = 0;
	for (const char *hit; (hit = memmem(text + from, n - from, s->needle, s->needle_len)); from = (size_t)(hit - text) + s->needle_len)
		if (buf_append(out, text + from, (size_t)(hit - text) - from) < 0 || buf_append(out, s->value.data, s->value.len) < 0)
			return -1;
	size_t keep = tail_of(s, text + from, n - from);
	s->n_held = keep;
	memcpy(s->held, text + n - keep, keep);
	return buf_append(out, text + from, n - keep - from);
}

int swap_feed(struct swap *s, const void *p, size_t len, struct buf *out)
{
	const uint8_t *b = p;
	for (size_t at = 0; at < len;) {
		size_t n = len - at < PIECE_MAX ? len - at : PIECE_MAX;
		if (feed_piece(s, b + at, n, out) < 0)
			return -1;
		at += n;
	}
	return 0;
}

int swap_end(struct swap *s, struct buf *out)
{
	size_t n = s->n_held;
	s->n_held = 0;
	return buf_append(out, s->held, n);
}

uint64_t swap_length(const struct swap *s, uint64_t length, size_t count) { return length + count * s->value.len - count * s->needle_len; }

size_t swap_count(const char *placeholder, const void *p, size_t len)
{
	size_t n = 0, needle = strlen(placeholder);
	const char *at = p, *end = at + len;
	for (const char *hit; at < end && (hit = memmem(at, (size_t)(end - at), placeholder, needle)); at = hit + needle)
		n++;
	return n;
}
