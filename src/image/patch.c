/* SPDX-License-Identifier: Apache-2.0 */
#include "image/patch.h"

#include <stdarg.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "image/linediff.h"

#define CONTEXT 3u

static const char *const tones[] = {
	[PATCH_PLAIN] = "",
	[PATCH_HEAD] = "\033[1m",
	[PATCH_HUNK] = "\033[36m",
	[PATCH_OLD] = "\033[31m",
	[PATCH_NEW] = "\033[32m",
	[PATCH_NOTE] = "\033[33m",
};

void patch_init(struct patch *p, unsigned style, int (*fn)(void *ctx, const void *data, size_t len), void *ctx)
{
	p->style = style;
	p->fn = fn;
	p->ctx = ctx;
	p->stopped = 0;
	p->at_line_start = true;
	p->n = 0;
}

int patch_flush(struct patch *p)
{
	if (p->n > 0 && p->stopped == 0)
		p->stopped = p->fn(p->ctx, p->out, p->n);
	p->n = 0;
	return p->stopped;
}

static void put(struct patch *p, const char *data, size_t len)
{
	while (len > 0) {
		if (p->n == sizeof(p->out))
			patch_flush(p);
		size_t room = sizeof(p->out) - p->n, take = len < room ? len : room;
		memcpy(p->out + p->n, data, take);
		p->n += take;
		data += take;
		len -= take;
	}
}

static void put_text(struct patch *p, const char *s)
{
	put(p, s, strlen(s));
}

/* Length and code point of one valid UTF-8 sequence, or 0. */
static size_t decode(const unsigned char *s, size_t left, unsigned *ret)
{
	size_t n = s[0] < 0x80			 ? 1
		   : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
		   : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
		   : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
						 : 0;
	if (n == 0 || n > left)
		return 0;
	unsigned code = n == 1 ? s[0] : s[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	if ((n == 3 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) || (n == 4 && (code < 0x10000 || code > 0x10ffff)))
		return 0;
	*ret = code;
	return n;
}

/* Characters that a terminal obeys, turns around or doesn't show. */
static bool is_invisible(unsigned code)
{
	static const struct { unsigned first, last;
	} ranges[] = {
		{ 0x7f, 0x9f },
		{ 0xad, 0xad },
		{ 0x34f, 0x34f },
		{ 0x61c, 0x61c },
		{ 0x115f, 0x1160 },
		{ 0x17b4, 0x17b5 },
		{ 0x180b, 0x180f },
		{ 0x200b, 0x200f },
		{ 0x2028, 0x202e },
		{ 0x2060, 0x206f },
		{ 0x3164, 0x3164 },
		{ 0xfe00, 0xfe0f },
		{ 0xfeff, 0xfeff },
		{ 0xffa0, 0xffa0 },
		{ 0xfff0, 0xfffb },
		{ 0x1d173, 0x1d17a },
		{ 0xe0000, 0xe0fff },
	};
	for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return true;
	return code < 0x20 && code != '\t' && code != '\n';
}

static void put_visible(struct patch *p, const char *data, size_t len)
{
	const unsigned char *s = (const unsigned char *)data;
	for (size_t i = 0; i < len;) {
		unsigned code = 0;
		char spelled[16];
		size_t n = decode(s + i, len - i, &code);
		if (n > 0 && !is_invisible(code)) {
			put(p, data + i, n);
		} else if (n == 1) {
			put(p, spelled, (size_t)snprintf(spelled, sizeof(spelled), "^%c", (char)(code ^ 0x40)));
		} else if (n > 0) {
			put(p, spelled, (size_t)snprintf(spelled, sizeof(spelled), "<U+%04X>", code));
		} else {
			put(p, spelled, (size_t)snprintf(spelled, sizeof(spelled), "<%02X>", s[i]));
			n = 1;
		}
		i += n;
	}
}

/* Text from outside, without its newline. */
static void put_content(struct patch *p, const char *data, size_t len)
{
	if (p->style & (DIFF_VISIBLE | DIFF_COLOUR))
		put_visible(p, data, len);
	else
		put(p, data, len);
}

static void tone_begin(struct patch *p, enum patch_tone tone)
{
	if (p->style & DIFF_COLOUR)
		put_text(p, tones[tone]);
}

static void tone_end(struct patch *p, enum patch_tone tone)
{
	if ((p->style & DIFF_COLOUR) && tone != PATCH_PLAIN)
		put_text(p, "\033[0m");
}

void patch_line(struct patch *p, enum patch_tone tone, const char *format, ...)
{
	char *text;
	va_list ap;
	va_start(ap, format);
	int n = vasprintf(&text, format, ap);
	va_end(ap);
	if (n < 0)
		return;
	tone_begin(p, tone);
	put(p, text, (size_t)n);
	tone_end(p, tone);
	put_text(p, "\n");
	free(text);
}

static void put_line(struct patch *p, enum patch_tone tone, char sign, const struct text_line *l)
{
	bool ended = l->len > 0 && l->p[l->len - 1] == '\n';
	tone_begin(p, tone);
	put(p, &sign, 1);
	put_content(p, l->p, l->len - ended);
	tone_end(p, tone);
	put_text(p, ended ? "\n" : "\n\\ No newline at end of file\n");
}

static void range(char out[48], uint64_t first, uint64_t count)
{
	/* An empty range is named by the line before it. */
	if (count == 1)
		snprintf(out, 48, "%llu", (unsigned long long)first + 1);
	else
		snprintf(out, 48, "%llu,%llu", (unsigned long long)(count ? first + 1 : first), (unsigned long long)count);
}

static void hunk_head(struct patch *p, uint64_t old, uint64_t n_old, uint64_t new, uint64_t n_new)
{
	char a[48], b[48];
	range(a, old, n_old);
	range(b, new, n_new);
	patch_line(p, PATCH_HUNK, "@@ -%s +%s @@", a, b);
}

/* One run of changed lines: [old, old_end) replaced by [new, new_end). */
struct run { size_t old, old_end, new, new_end; };

static bool next_run(const struct linediff *d, size_t old, size_t new, struct run *ret)
{
	while (old < d->old.n && new < d->new.n && !d->old.changed[old] && !d->new.changed[new])
		old++, new++;
	struct run r = { old, old, new, new };
	while (r.old_end < d->old.n && d->old.changed[r.old_end])
		r.old_end++;
	while (r.new_end < d->new.n && d->new.changed[r.new_end])
		r.new_end++;
	*ret = r;
	return r.old_end > r.old || r.new_end > r.new;
}

static void put_hunk_body(struct patch *p, const struct linediff *d, struct run whole)
{
	size_t o = whole.old, n = whole.new;
	while (o < whole.old_end || n < whole.new_end) {
		if (o < whole.old_end && d->old.changed[o])
			put_line(p, PATCH_OLD, '-', &d->old.lines[o++]);
		else if (n < whole.new_end && d->new.changed[n])
			put_line(p, PATCH_NEW, '+', &d->new.lines[n++]);
		else
			put_line(p, PATCH_PLAIN, ' ', &d->old.lines[o++]), n++;
	}
}

/* Runs nearer than twice the context share a hunk. */
static void put_hunks(struct patch *p, const struct linediff *d)
{
	struct run r;
	for (bool more = next_run(d, 0, 0, &r); more;) {
		size_t lead = r.old < CONTEXT ? r.old : CONTEXT;
		struct run whole = { r.old - lead, r.old_end, r.new - lead, r.new_end };
		while ((more = next_run(d, r.old_end, r.new_end, &r)) && r.old - whole.old_end <= 2 * CONTEXT) {
			whole.old_end = r.old_end;
			whole.new_end = r.new_end;
		}
		size_t left = d->old.n - whole.old_end, trail = left < CONTEXT ? left : CONTEXT;
		whole.old_end += trail;
		whole.new_end += trail;
		hunk_head(p, whole.old, whole.old_end - whole.old, whole.new, whole.new_end - whole.new);
		put_hunk_body(p, d, whole);
	}
}

struct stream { struct patch *p; enum patch_tone tone; char sign; };

static int stream_chunk(void *ctx, const char *data, size_t len)
{
	struct stream *s = ctx;
	while (len > 0) {
		const char *nl = memchr(data, '\n', len);
		size_t n = nl ? (size_t)(nl - data) : len;
		if (s->p->at_line_start) {
			tone_begin(s->p, s->tone);
			put(s->p, &s->sign, 1);
		}
		put_content(s->p, data, n);
		s->p->at_line_start = nl != NULL;
		if (nl) {
			tone_end(s->p, s->tone);
			put_text(s->p, "\n");
			n++;
		}
		data += n;
		len -= n;
	}
	return s->p->stopped; /* no need to read gigabytes for nobody */
}

static int put_all(struct patch *p, const struct source *s, enum patch_tone tone, char sign)
{
	struct stream st = { p, tone, sign };
	p->at_line_start = true;
	int r = source_each(s, stream_chunk, &st);
	if (r == 0 && !p->at_line_start) {
		tone_end(p, tone);
		put_text(p, "\n\\ No newline at end of file\n");
	}
	return r < 0 ? r : 0;
}

static int replace_all(struct patch *p, struct source *old, struct source *new)
{
	int r = source_count(old);
	if (r == 0)
		r = source_count(new);
	if (r < 0 || (old->lines == 0 && new->lines == 0))
		return r;
	hunk_head(p, 0, old->lines, 0, new->lines);
	r = put_all(p, old, PATCH_OLD, '-');
	return r < 0 ? r : put_all(p, new, PATCH_NEW, '+');
}

static bool compare(const struct source *old, const struct source *new, struct linediff *ret)
{
	return old->exists && new->exists &&
	       old->text &&new->text &&linediff_run(old->text, old->len, new->text, new->len, ret);
}

int patch_hunks(struct patch *p, struct source *old, struct source *new)
{
	struct linediff d;
	if (!compare(old, new, &d))
		return replace_all(p, old, new);
	put_hunks(p, &d);
	linediff_done(&d);
	return 0;
}

static uint64_t count_changed(const struct text_side *s)
{
	uint64_t n = 0;
	for (size_t i = 0; i < s->n; i++)
		n += s->changed[i];
	return n;
}

int patch_count(struct source *old, struct source *new, struct change_stat *ret)
{
	struct linediff d;
	*ret = (struct change_stat){ .binary = old->binary || new->binary };
	if (ret->binary)
		return 0;
	if (!compare(old, new, &d)) {
		int r = source_count(old);
		if (r == 0)
			r = source_count(new);
		ret->deleted = old->lines;
		ret->added = new->lines;
		return r;
	}
	ret->deleted = count_changed(&d.old);
	ret->added = count_changed(&d.new);
	linediff_done(&d);
	return 0;
}
