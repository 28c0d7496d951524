/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream: what may be the beginning of a find is kept (with nothing overwritten yet: another find may overlap), all before it is let go. A find's bytes are
 * decided when it is found, so they go at once, even while its tail could begin another.
 */
#include <string.h>

#include "base/mem.h"
#include "secrets/scan-internal.h"

#define SLICE (64u * 1024u)

struct edit {
	uint64_t at;
	uint8_t byte;
};

struct scan_stream {
	struct scan_set *set;
	scan_fn fn;
	void *ctx;
	struct walk walk;
	bool walking;
	struct buf window;   /* bytes from `base` on, as they came */
	uint64_t base;	     /* of the next place where a find may begin: all before it is decided */
	uint64_t sent;	     /* up to here bytes were let go */
	uint64_t covered;    /* end of the find that reaches farthest */
	unsigned covered_id;
	struct edit *edits;
	size_t n_edits, cap_edits;
	unsigned finds;
};

static void stream_init(struct scan_stream *st, struct scan_set *set, scan_fn fn, void *ctx)
{
	*st = (struct scan_stream){ .set = set, .fn = fn, .ctx = ctx };
	buf_init(&st->window, SCAN_HOLD_MAX + SLICE);
}

static void stream_done(struct scan_stream *st)
{
	walk_free(&st->walk);
	buf_wipe_free(&st->window);
	mem_free(st->edits);
}

struct scan_stream *scan_stream_new(struct scan_set *set, scan_fn fn, void *ctx)
{
	struct scan_stream *st = mem_alloc(sizeof(*st));
	stream_init(st, set, fn, ctx);
	set->refs++;
	return st;
}

struct scan_stream *scan_stream_free(struct scan_stream *st)
{
	if (!st)
		return NULL;
	stream_done(st);
	scan_set_free(st->set);
	return mem_free(st);
}

size_t scan_held(const struct scan_stream *st)
{
	uint64_t end = st->base + st->window.len;
	return end > st->sent ? (size_t)(end - st->sent) : 0;
}

/* ---- finds ---- */

struct putting {
	struct scan_stream *st;
	uint64_t start;
};

static void put_edit(void *ctx, size_t at, uint8_t byte)
{
	const struct putting *p = ctx;
	struct scan_stream *st = p->st;
	if (p->start + at < st->sent)
		return; /* an earlier find has overwritten it already */
	if (st->n_edits == st->cap_edits) {
		st->cap_edits = st->cap_edits ? 2 * st->cap_edits : 64;
		st->edits = mem_grow_array(st->edits, st->cap_edits, sizeof(*st->edits));
	}
	st->edits[st->n_edits++] = (struct edit){ p->start + at, byte };
}

/* t begins where the find does. */
static void on_found(struct scan_stream *st, const struct text *t, uint64_t start)
{
	uint64_t end = start + st->walk.best_end;
	const struct pattern *p = place_end(st->set, &st->walk.best);
	unsigned id = st->set->needles[p->needle].id;
	/* The same once more, read from the middle of an escape. */
	if (end <= st->covered && id == st->covered_id)
		return;
	struct putting putting = { st, start };
	mask_find(&st->walk, st->set, t, put_edit, &putting);
	if (end > st->covered) {
		st->covered = end;
		st->covered_id = id;
	}
	st->finds++;
	if (st->fn)
		st->fn(st->ctx, id, find_spelling(&st->walk, st->set, t), start, (size_t)(end - start));
}

/* Decides as many places as can be: returns how many. p[0] is at st->base. */
static size_t decide(struct scan_stream *st, const uint8_t *p, size_t len, bool final)
{
	size_t at = 0;
	while (at < len) {
		if (!st->walking)
			at = filter_next(st->set, p, at, len);
		if (at == len)
			break;
		const struct text t = { .p = p + at, .len = len - at, .final = final, .blanks = st->set->blanks };
		enum outcome r = walk_run(&st->walk, st->set, &t);
		st->walking = r == WALK_UNDECIDED && len - at < SCAN_HOLD_MAX;
		if (st->walking)
			break;
		/* Too long to wait for a longer one: what was found counts. */
		if (r == WALK_FOUND || st->walk.found)
			on_found(st, &t, st->base + at);
		walk_reset(&st->walk);
		at++;
	}
	return at;
}

/* ---- letting go ---- */

static void apply_edits(struct scan_stream *st, uint8_t *p, uint64_t start)
{
	for (size_t i = 0; i < st->n_edits; i++)
		p[st->edits[i].at - start] = st->edits[i].byte;
	st->n_edits = 0;
}

/* Bytes up to `upto` go: decided ones and those of finds. */
static int let_go(struct scan_stream *st, const uint8_t *p, uint64_t upto, struct buf *out)
{
	if (upto <= st->sent)
		return 0;
	size_t len = (size_t)(upto - st->sent);
	if (out) {
		if (buf_append(out, p + (st->sent - st->base), len) < 0)
			return -1;
		apply_edits(st, out->data + out->len - len, st->sent);
	}
	st->n_edits = 0;
	st->sent = upto;
	return 0;
}

static int keep_rest(struct scan_stream *st, const uint8_t *p, size_t len, size_t decided)
{
	if (p == st->window.data)
		buf_consume(&st->window, decided);
	else if (buf_append(&st->window, p + decided, len - decided) < 0)
		return -1;
	st->base += decided;
	return 0;
}

/* Everything from the last decided place to the end of p. */
static int process(struct scan_stream *st, const uint8_t *p, size_t len, bool final, struct buf *out)
{
	size_t decided = decide(st, p, len, final);
	uint64_t upto = st->base + decided;
	if (let_go(st, p, st->covered > upto ? st->covered : upto, out) < 0)
		return -1;
	return keep_rest(st, p, len, decided);
}

static int take(struct scan_stream *st, const uint8_t *p, size_t len, struct buf *out)
{
	while (len > 0) {
		size_t n = len < SLICE ? len : SLICE;
		int r;
		if (st->window.len == 0)
			r = process(st, p, n, false, out);
		else if (buf_append(&st->window, p, n) == 0)
			r = process(st, st->window.data, st->window.len, false, out);
		else
			r = -1;
		if (r < 0)
			return -1;
		p += n;
		len -= n;
	}
	return 0;
}

int scan_scrub(struct scan_stream *st, const void *p, size_t len, struct buf *out)
{
	return take(st, p, len, out);
}

int scan_scrub_end(struct scan_stream *st, struct buf *out)
{
	return process(st, st->window.data, st->window.len, true, out);
}

void scan_look(struct scan_stream *st, const void *p, size_t len)
{
	take(st, p, len, NULL);
}

void scan_look_end(struct scan_stream *st)
{
	process(st, st->window.data, st->window.len, true, NULL);
}

unsigned scan_text(struct scan_set *set, char *p, size_t len, bool scrub, scan_fn fn, void *ctx)
{
	struct scan_stream st;
	stream_init(&st, set, fn, ctx);
	decide(&st, (const uint8_t *)p, len, true);
	if (scrub)
		apply_edits(&st, (uint8_t *)p, 0);
	unsigned finds = st.finds;
	stream_done(&st);
	return finds;
}
