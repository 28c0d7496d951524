/* SPDX-License-Identifier: Apache-2.0 */
/* Overwriting a find: each character in the spelling that it has, digits by digits, letters by letters. */
#include "base/mem.h"
#include "secrets/scan-internal.h"

struct masker {
	const struct text *t;
	put_fn put;
	void *ctx;
};

/* The digits of c, in as many places as there are. False: they don't fit. */
static bool spell(unsigned c, unsigned base, unsigned n, char out[PARTS_MAX])
{
	for (unsigned i = n; i-- > 0; c /= base)
		out[i] = "0123456789abcdef"[c % base];
	return c == 0;
}

/* The character at `at` on `level` becomes c. */
static void put_glyph(const struct masker *m, unsigned level, size_t at, uint8_t c)
{
	struct glyph g;
	struct shape shape;
	char number[PARTS_MAX];
	if (level == 0 || level == LEVEL_SHELL) {
		m->put(m->ctx, at, c);
		if (level == LEVEL_SHELL)
			m->put(m->ctx, at + 1, c);
		return;
	}
	if (glyph_read(m->t, level, at, &g, &shape) != SEEN || g.escape == ESCAPE_NONE) {
		put_glyph(m, level - 1, at, c);
		return;
	}
	if (shape.n_digits > 0 && spell(c, shape.base, shape.n_digits, number)) {
		for (unsigned i = 0; i < shape.n_digits; i++)
			put_glyph(m, level - 1, shape.part[shape.first_digit + i], (uint8_t)number[i]);
		return;
	}
	for (unsigned i = 0; i < shape.n; i++)
		put_glyph(m, level - 1, shape.part[i], c);
}

void mask_find(const struct walk *w, const struct scan_set *s, const struct text *t, put_fn put, void *ctx)
{
	const struct masker m = { t, put, ctx };
	const struct pattern *p = place_end(s, &w->best);
	uint32_t hop = w->best_hop, depth = w->best.depth;
	while (depth > 0) {
		const struct hop *h = &w->hops[hop];
		if (!h->gap) {
			depth--;
			put_glyph(&m, h->level, h->from, pattern_mask(p, depth, t->p[h->from]));
		}
		hop = h->parent;
	}
}

const char *find_spelling(const struct walk *w, const struct scan_set *s, const struct text *t)
{
	const struct pattern *p = place_end(s, &w->best);
	bool wide = false, folded = false;
	if (p->spelling != SPELLED_PLAIN)
		return spelling_name((enum spelling)p->spelling);
	for (uint32_t hop = w->best_hop, depth = w->best.depth; depth > 0; hop = w->hops[hop].parent) {
		const struct hop *h = &w->hops[hop];
		if (h->escape != ESCAPE_NONE)
			return escape_name((enum escape)h->escape);
		wide = wide || (h->gap && t->p[h->from] == '\0');
		folded = folded || h->gap;
		depth -= !h->gap;
	}
	return wide ? "utf-16" : folded ? "folded" : spelling_name(SPELLED_PLAIN);
}
