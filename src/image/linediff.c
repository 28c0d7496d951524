/* SPDX-License-Identifier: Apache-2.0 */
#include "image/linediff.h"

#include <sodium.h>
#include <string.h>

#include "base/mem.h"

#define SEARCH_MAX 256 /* edits searched from each end before a split is taken as good enough */

static bool split_lines(const char *text, size_t len, struct text_side *out)
{
	size_t n = 0;
	for (const char *p = text, *end = text + len; p < end; n++) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		p = nl ? nl + 1 : end;
	}
	if (n > LINEDIFF_LINES_MAX)
		return false;
	out->lines = mem_alloc_array(n + 1, sizeof(*out->lines));
	out->changed = mem_alloc_array(n + 1, sizeof(*out->changed));
	out->n = n;
	for (size_t i = 0; i < n; i++) {
		const char *nl = memchr(text, '\n', len);
		size_t line = nl ? (size_t)(nl - text) + 1 : len;
		out->lines[i] = (struct text_line){ text, line };
		text += line;
		len -= line;
	}
	return true;
}

/* Equal lines get equal numbers. */
struct numbering {
	uint8_t key[crypto_shorthash_KEYBYTES];
	struct number_slot { struct text_line line; uint64_t hash; int32_t number; bool in_old, in_new; } *slots;
	size_t mask;
	int32_t next;
};

static struct number_slot *number_line(struct numbering *m, const struct text_line *line)
{
	uint64_t hash;
	crypto_shorthash((uint8_t *)&hash, (const uint8_t *)line->p, line->len, m->key);
	size_t i = (size_t)hash & m->mask;
	for (;; i = (i + 1) & m->mask) {
		struct number_slot *s = &m->slots[i];
		if (!s->line.p) {
			*s = (struct number_slot){ .line = *line, .hash = hash, .number = m->next++ };
			return s;
		}
		if (s->hash == hash && s->line.len == line->len && memcmp(s->line.p, line->p, line->len) == 0)
			return s;
	}
}

static void numbering_init(struct numbering *m, size_t lines)
{
	size_t cap = 64;
	while (cap < 2 * lines)
		cap *= 2;
	m->slots = mem_alloc_array(cap, sizeof(*m->slots));
	m->mask = cap - 1;
	m->next = 0;
	randombytes_buf(m->key, sizeof(m->key));
}

/* One side without the lines that the other side doesn't have at all: those are changes for certain. */
struct sequence {
	int32_t *numbers;
	size_t *origin; /* index in the side's lines */
	size_t n;
};

static void sequence_make(struct sequence *s, struct text_side *side, struct number_slot *const *slots)
{
	s->numbers = mem_alloc_array(side->n + 1, sizeof(*s->numbers));
	s->origin = mem_alloc_array(side->n + 1, sizeof(*s->origin));
	s->n = 0;
	for (size_t i = 0; i < side->n; i++) {
		if (!slots[i]->in_old || !slots[i]->in_new) {
			side->changed[i] = true;
			continue;
		}
		s->numbers[s->n] = slots[i]->number;
		s->origin[s->n++] = i;
	}
}

/* A part of the old sequence against a part of the new one. */
struct box { size_t a, a_end, b, b_end; };

struct search {
	struct sequence old, new;
	struct text_side *old_side, *new_side;
	int32_t *forward, *backward; /* furthest point on each diagonal, from the box's first and last corner */
	struct box *stack;
	size_t depth, cap;
};

static void push_box(struct search *s, struct box b)
{
	if (s->depth == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 64;
		s->stack = mem_grow_array(s->stack, s->cap, sizeof(*s->stack));
	}
	s->stack[s->depth++] = b;
}

/* The state of one search for a split; x runs along the old part (n), y = x - k along the new one (m). */
struct front { const int32_t *a, *b; int32_t n, m; };

/* Furthest x on diagonal k after d edits; v is indexed from -m-1 to n+1. `back` reads both parts from their ends. */
static int32_t extend(const struct front *f, int32_t *v, int32_t k, bool back)
{
	int32_t x = v[k - 1] < v[k + 1] ? v[k + 1] : v[k - 1] + 1, y = x - k;
	while (x >= 0 && y >= 0 && x < f->n && y < f->m &&
		(back ? f->a[f->n - 1 - x] == f->b[f->m - 1 - y] : f->a[x] == f->b[y]))
		x++, y++;
	v[k] = x;
	return x;
}

/* One step from one end. True when it met the other end's front on a diagonal: *ret_x, *ret_k. The two fronts' diagonals add up
 * to n - m. */
static bool step(const struct front *f, int32_t *v, const int32_t *other, int32_t d, int32_t other_d, bool check, bool back,
	int32_t *ret_x, int32_t *ret_k)
{
	int32_t delta = f->n - f->m;
	/* Diagonals that left the box are skipped. */
	int32_t lo = d > f->m ? d - 2 * (d - f->m) : d, hi = d > f->n ? d - 2 * (d - f->n) : d;
	v[-lo - 1] = -1;
	v[hi + 1] = -1;
	if (d == 0)
		v[1] = 0;
	for (int32_t k = -lo; k <= hi; k += 2) {
		int32_t x = extend(f, v, k, back);
		int32_t o = delta - k;
		if (check && o >= -other_d && o <= other_d && o >= -f->m && o <= f->n && x + other[o] >= f->n) {
			*ret_x = x;
			*ret_k = k;
			return true;
		}
	}
	return false;
}

/* The point that came furthest from the first corner, when no meeting was found soon enough. */
static void furthest(const struct front *f, const int32_t *v, int32_t d, int32_t *ret_x, int32_t *ret_y)
{
	int64_t best = -1;
	for (int32_t k = -d; k <= d; k += 2) {
		if (k < -f->m || k > f->n)
			continue;
		int32_t x = v[k] < f->n ? v[k] : f->n, y = x - k;
		if (y > f->m) {
			y = f->m;
			x = y + k;
		}
		if (x >= 0 && y >= 0 && (int64_t)x + y > best) {
			best = (int64_t)x + y;
			*ret_x = x;
			*ret_y = y;
		}
	}
}

/* Finds a point on a (nearly) shortest path through the box. */
static void find_split(const struct search *s, const struct front *f, int32_t *ret_x, int32_t *ret_y)
{
	bool odd = ((f->n - f->m) & 1) != 0;
	int32_t *forward = s->forward + f->m + 1, *backward = s->backward + f->m + 1;
	for (int32_t d = 0;; d++) {
		int32_t x, k;
		if (step(f, forward, backward, d, d - 1, odd, false, &x, &k)) {
			*ret_x = x;
			*ret_y = x - k;
			return;
		}
		if (step(f, backward, forward, d, d, !odd, true, &x, &k)) {
			*ret_x = f->n - x;
			*ret_y = f->m - (x - k);
			return;
		}
		if (d == SEARCH_MAX) {
			*ret_x = *ret_y = 0;
			furthest(f, forward, d, ret_x, ret_y);
			return;
		}
	}
}

static void mark(const struct search *s, const struct box *b)
{
	for (size_t i = b->a; i < b->a_end; i++)
		s->old_side->changed[s->old.origin[i]] = true;
	for (size_t i = b->b; i < b->b_end; i++)
		s->new_side->changed[s->new.origin[i]] = true;
}

static void solve_box(struct search *s, struct box b)
{
	const int32_t *old = s->old.numbers, *new = s->new.numbers;
	while (b.a < b.a_end && b.b < b.b_end && old[b.a] == new[b.b])
		b.a++, b.b++;
	while (b.a < b.a_end && b.b < b.b_end && old[b.a_end - 1] == new[b.b_end - 1])
		b.a_end--, b.b_end--;
	if (b.a == b.a_end || b.b == b.b_end) {
		mark(s, &b);
		return;
	}
	struct front f = { old + b.a, new + b.b, (int32_t)(b.a_end - b.a), (int32_t)(b.b_end - b.b) };
	int32_t x = 0, y = 0;
	find_split(s, &f, &x, &y);
	bool inside = x >= 0 && y >= 0 && x <= f.n && y <= f.m, moved = (x > 0 || y > 0) && (x < f.n || y < f.m);
	if (!inside || !moved) {
		/* Not reached with a correct search; a split that doesn't divide must not loop for ever. */
		mark(s, &b);
		return;
	}
	push_box(s, (struct box){ b.a + (size_t)x, b.a_end, b.b + (size_t)y, b.b_end });
	push_box(s, (struct box){ b.a, b.a + (size_t)x, b.b, b.b + (size_t)y });
}

static void solve(struct search *s)
{
	size_t room = s->old.n + s->new.n + 4;
	s->forward = mem_alloc_array(room, sizeof(*s->forward));
	s->backward = mem_alloc_array(room, sizeof(*s->backward));
	push_box(s, (struct box){ 0, s->old.n, 0, s->new.n });
	while (s->depth > 0)
		solve_box(s, s->stack[--s->depth]);
	mem_free(s->forward);
	mem_free(s->backward);
	mem_free(s->stack);
}

static void number_side(struct numbering *m, const struct text_side *side, struct number_slot **slots, bool is_old)
{
	for (size_t i = 0; i < side->n; i++) {
		slots[i] = number_line(m, &side->lines[i]);
		*(is_old ? &slots[i]->in_old : &slots[i]->in_new) = true;
	}
}

static void sequence_done(struct sequence *s)
{
	mem_free(s->numbers);
	mem_free(s->origin);
}

static void compare(struct linediff *d)
{
	struct numbering m;
	struct search s = { .old_side = &d->old, .new_side = &d->new };
	numbering_init(&m, d->old.n + d->new.n);
	cleanup_free struct number_slot **old = mem_alloc_array(d->old.n + 1, sizeof(*old));
	cleanup_free struct number_slot **new = mem_alloc_array(d->new.n + 1, sizeof(*new));
	number_side(&m, &d->old, old, true);
	number_side(&m, &d->new, new, false);
	sequence_make(&s.old, &d->old, old);
	sequence_make(&s.new, &d->new, new);
	mem_free(m.slots);
	solve(&s);
	sequence_done(&s.old);
	sequence_done(&s.new);
}

bool linediff_run(const char *old, size_t old_len, const char *new, size_t new_len, struct linediff *ret)
{
	struct linediff d = { 0 };
	if (!split_lines(old, old_len, &d.old) || !split_lines(new, new_len, &d.new)) {
		linediff_done(&d);
		return false;
	}
	compare(&d);
	*ret = d;
	return true;
}

void linediff_done(struct linediff *d)
{
	mem_free(d->old.lines);
	mem_free(d->old.changed);
	mem_free(d->new.lines);
	mem_free(d->new.changed);
	*d = (struct linediff){ 0 };
}
