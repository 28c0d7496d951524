/* SPDX-License-Identifier: Apache-2.0 */
/* The list of codings as a chain: the last one named is taken off first. Between two of them lies one buffer of fixed size. */
#include "secrets/unpack.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "secrets/unpack-codec.h"
#include "secrets/wipe.h"

#define CODINGS_MAX 3u
#define BETWEEN_SIZE (16u * 1024u)
#define RATIO_FREE (1024u * 1024u) /* so much may come out of anything */

struct stage {
	struct codec *codec;
	uint8_t *between; /* what it gave and the next one has not taken yet; NULL for the last stage */
	size_t start, end;
	uint64_t given;
};

struct unpack {
	struct stage stages[CODINGS_MAX]; /* in the order in which they are taken off */
	size_t n;
	uint64_t taken;
};

/* ---- memory ---- */

static size_t held;

void *codec_malloc(size_t size)
{
	void *p = size <= UNPACK_MEMORY_MAX - held ? wipe_malloc(size) : NULL;
	held += wipe_size(p);
	return p;
}

void codec_free(void *p)
{
	held -= wipe_size(p);
	wipe_free(p);
}

/* ---- the list ---- */

static const struct coding {
	const char *name;
	struct codec *(*make)(void);
} codings[] = {
	{ "gzip", codec_gzip_new },
	{ "x-gzip", codec_gzip_new },
	{ "deflate", codec_deflate_new },
	{ "br", codec_brotli_new },
	{ "zstd", codec_zstd_new },
};

static const struct coding *find_coding(const char *s, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(codings); i++)
		if (strlen(codings[i].name) == len && strncasecmp(codings[i].name, s, len) == 0)
			return &codings[i];
	return NULL;
}

static bool is_identity(const char *s, size_t len)
{
	return len == strlen("identity") && strncasecmp(s, "identity", len) == 0;
}

/* The next element of a list, without the blanks around it; NULL at the end. */
static const char *next_element(const char **list, size_t *ret_len)
{
	for (;;) {
		const char *s = *list + strspn(*list, " \t,");
		size_t len = strcspn(s, ",");
		if (*s == '\0')
			return NULL;
		*list = s + len;
		while (len > 0 && (s[len - 1] == ' ' || s[len - 1] == '\t'))
			len--;
		if (len > 0) {
			*ret_len = len;
			return s;
		}
	}
}

static int parse_list(const char *text, const struct coding *ret[CODINGS_MAX], size_t *ret_n, struct err *err)
{
	size_t len;
	for (const char *s; (s = next_element(&text, &len));) {
		if (is_identity(s, len))
			continue;
		const struct coding *c = find_coding(s, len);
		if (!c)
			return err_set(err, ERR_UNSUPPORTED,
				"the answer has a content coding that can't be looked into; only gzip, deflate, br and zstd can");
		if (*ret_n == CODINGS_MAX)
			return err_set(err, ERR_UNSUPPORTED, "the answer has more than %u content codings over one another", CODINGS_MAX);
		ret[(*ret_n)++] = c;
	}
	return 0;
}

static int make_stages(struct unpack *u, const struct coding *const list[], size_t n, struct err *err)
{
	for (u->n = 0; u->n < n; u->n++) {
		struct stage *s = &u->stages[u->n];
		s->codec = list[n - 1 - u->n]->make();
		if (!s->codec)
			return err_set(err, ERR_MEMORY, "no memory to unpack an answer");
		s->between = u->n + 1 < n ? mem_alloc(BETWEEN_SIZE) : NULL;
	}
	return 0;
}

int unpack_new(const char *content_encoding, struct unpack **ret, struct err *err)
{
	const struct coding *list[CODINGS_MAX];
	size_t n = 0;
	if (parse_list(content_encoding, list, &n, err) < 0)
		return -1;
	if (n == 0) {
		*ret = NULL;
		return 0;
	}
	struct unpack *u = mem_alloc(sizeof(*u));
	if (make_stages(u, list, n, err) < 0) {
		unpack_free(u);
		return -1;
	}
	*ret = u;
	return 0;
}

struct unpack *unpack_free(struct unpack *u)
{
	if (!u)
		return NULL;
	for (size_t i = 0; i < u->n; i++) {
		u->stages[i].codec->ops->free(u->stages[i].codec);
		if (u->stages[i].between)
			mem_wipe(u->stages[i].between, BETWEEN_SIZE);
		mem_free(u->stages[i].between);
	}
	return mem_free(u);
}

/* ---- the work ---- */

static int check_ratio(const struct unpack *u, const struct stage *s, struct err *err)
{
	if (s->given <= RATIO_FREE || s->given / UNPACK_RATIO_MAX <= u->taken)
		return 0;
	return err_set(err, ERR_LIMIT, "the answer unpacks to more than %u times its size: it is taken for a bomb", UNPACK_RATIO_MAX);
}

static int run_stage(struct unpack *u, struct stage *s, struct span_in *in, struct span_out *out, bool *moved, struct err *err)
{
	size_t in_before = in->len, out_before = out->len;
	if (s->codec->ops->step(s->codec, in, out, err) < 0)
		return -1;
	s->given += out_before - out->len;
	*moved = *moved || in->len != in_before || out->len != out_before;
	return 0;
}

/* A stage that gives to another one. */
static int run_inner(struct unpack *u, size_t i, struct span_in *in, bool *moved, struct err *err)
{
	struct stage *s = &u->stages[i];
	if (s->start == s->end)
		s->start = s->end = 0;
	struct span_out out = { s->between + s->end, BETWEEN_SIZE - s->end };
	if (out.len == 0)
		return 0;
	if (run_stage(u, s, in, &out, moved, err) < 0)
		return -1;
	s->end = (size_t)(out.p - s->between);
	return 0;
}

static int run_last(struct unpack *u, struct span_in *in, struct buf *out, bool *moved, struct err *err)
{
	size_t room = out->max - out->len;
	size_t chunk = room < BETWEEN_SIZE ? room : BETWEEN_SIZE;
	if (chunk == 0)
		return 0;
	uint8_t *p = buf_reserve(out, chunk);
	if (!p)
		return err_set(err, ERR_MEMORY, "no memory to unpack an answer");
	struct span_out o = { p, chunk };
	int r = run_stage(u, &u->stages[u->n - 1], in, &o, moved, err);
	buf_commit(out, chunk - o.len);
	return r;
}

static int run_one(struct unpack *u, size_t i, struct span_in *outside, struct buf *out, bool *moved, struct err *err)
{
	struct stage *before = i > 0 ? &u->stages[i - 1] : NULL;
	struct span_in in = before ? (struct span_in){ before->between + before->start, before->end - before->start } : *outside;
	size_t len = in.len;
	int r = i + 1 < u->n ? run_inner(u, i, &in, moved, err) : run_last(u, &in, out, moved, err);
	if (before) {
		before->start += len - in.len;
	} else {
		u->taken += len - in.len;
		*outside = in;
	}
	return r < 0 ? -1 : check_ratio(u, &u->stages[i], err);
}

/* Until nothing moves any more: all is taken, or `out` is full. */
static int run(struct unpack *u, struct span_in *in, struct buf *out, struct err *err)
{
	bool moved;
	do {
		moved = false;
		for (size_t i = 0; i < u->n; i++)
			if (run_one(u, i, in, out, &moved, err) < 0)
				return -1;
	} while (moved && out->len < out->max);
	return 0;
}

int unpack_feed(struct unpack *u, const void *p, size_t len, size_t *ret_used, struct buf *out, struct err *err)
{
	struct span_in in = { p, len };
	if (run(u, &in, out, err) < 0)
		return -1;
	*ret_used = len - in.len;
	return 0;
}

static bool waiting(const struct unpack *u)
{
	for (size_t i = 0; i < u->n; i++)
		if (u->stages[i].codec->pending || u->stages[i].start < u->stages[i].end)
			return true;
	return false;
}

int unpack_end(struct unpack *u, struct buf *out, bool *ret_more, struct err *err)
{
	struct span_in none = { (const uint8_t *)"", 0 };
	if (run(u, &none, out, err) < 0)
		return -1;
	if (out->len == out->max && waiting(u)) {
		*ret_more = true;
		return 0;
	}
	for (size_t i = 0; u->taken > 0 && i < u->n; i++)
		if (!u->stages[i].codec->whole)
			return err_set(err, ERR_PROTOCOL, "the answer ends before its packed content does");
	*ret_more = false;
	return 0;
}
