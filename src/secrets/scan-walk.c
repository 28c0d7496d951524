/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one place of the text, every way to read it is followed at once: at each character, what it is and what it stands for on each level. A state is a place
 * among the patterns and one in the text. States are taken in the order of the text and each only once, so the work is bounded by patterns × text and not by the
 * number of ways. Hardly ever is there more than one.
 */
#include <string.h>

#include "base/mem.h"
#include "secrets/scan-internal.h"

/* Gaps between two characters of a find: a line end and its indent, separators, and up to three NULs in a row (UTF-32). */
#define GAPS_MAX 80u
#define GAP_LINE 8u
#define GAP_BLANK 1u
#define GAP_SEPARATOR 16u
#define NULS_MAX 3u

void walk_reset(struct walk *w)
{
	w->n_states = w->n_hops = 0;
	w->begun = w->found = false;
}

void walk_free(struct walk *w)
{
	if (w->states)
		mem_wipe(w->states, w->cap_states * sizeof(*w->states));
	if (w->hops)
		mem_wipe(w->hops, w->cap_hops * sizeof(*w->hops));
	mem_free(w->states);
	mem_free(w->hops);
	*w = (struct walk){ 0 };
}

static uint32_t add_hop(struct walk *w, struct hop hop)
{
	if (w->n_hops == w->cap_hops) {
		w->cap_hops = w->cap_hops ? 2 * w->cap_hops : 64;
		w->hops = mem_grow_array(w->hops, w->cap_hops, sizeof(*w->hops));
	}
	w->hops[w->n_hops] = hop;
	return (uint32_t)w->n_hops++;
}

static bool same(const struct state *a, const struct state *b)
{
	return a->at == b->at && a->place.lo == b->place.lo && a->place.hi == b->place.hi && a->place.depth == b->place.depth &&
		a->place.group == b->place.group && a->gaps == b->gaps && a->line == b->line && a->nuls == b->nuls && a->zero == b->zero;
}

static void add_state(struct walk *w, const struct state *s)
{
	for (size_t i = 0; i < w->n_states; i++)
		if (same(&w->states[i], s))
			return;
	if (w->n_states == w->cap_states) {
		w->cap_states = w->cap_states ? 2 * w->cap_states : 16;
		w->states = mem_grow_array(w->states, w->cap_states, sizeof(*w->states));
	}
	w->states[w->n_states++] = *s;
}

static void note_end(struct walk *w, const struct scan_set *s, const struct state *at)
{
	if (!place_end(s, &at->place) || (w->found && at->at <= w->best_end))
		return;
	w->found = true;
	w->best = at->place;
	w->best_end = at->at;
	w->best_hop = at->hop;
}

/* One character on. */
static void go(struct walk *w, const struct scan_set *s, const struct state *from, const struct glyph *g, unsigned level)
{
	struct state to = { .place = from->place, .at = (uint32_t)g->end };
	if (!place_step(s, &to.place, (uint8_t)g->c))
		return;
	to.hop = add_hop(w, (struct hop){ .from = from->at, .parent = from->hop, .level = (uint8_t)level, .escape = g->escape });
	note_end(w, s, &to);
	/* Nothing longer begins like this: done. */
	if (to.place.hi - to.place.lo == 1 && place_end(s, &to.place))
		return;
	add_state(w, &to);
}

static uint8_t line_after(const struct state *from, unsigned c)
{
	if (c == '\n' || c == '\r')
		return c == '\n' ? LINE_ENDED : LINE_CR;
	return c == '\0' || c == ' ' || c == '\t' ? from->line : LINE_NONE;
}

/* Over a gap. */
static void skip(struct walk *w, const struct state *from, const struct glyph *g, unsigned cost)
{
	struct state to = *from;
	to.nuls = g->c == '\0' ? from->nuls + 1 : 0;
	if (from->gaps + cost > GAPS_MAX || to.nuls > NULS_MAX)
		return;
	to.at = (uint32_t)g->end;
	to.gaps = (uint8_t)(from->gaps + cost);
	to.line = line_after(from, g->c);
	to.zero = g->c == '0' || (from->zero && (g->c | 0x20) != 'x');
	to.hop = add_hop(w, (struct hop){ .from = from->at, .parent = from->hop, .gap = true, .escape = g->escape });
	add_state(w, &to);
}

/* ---- from the first character ---- */

static void begin_with(struct walk *w, const struct scan_set *s, const struct glyph *g, unsigned level)
{
	if (g->c >= GLYPH_NONE)
		return;
	for (uint8_t group = 0; group < GROUPS; group++) {
		if (s->first[group][g->c].hi == 0)
			continue;
		const struct state start = { .place = { .group = group }, .hop = (uint32_t)w->n_hops };
		go(w, s, &start, g, level);
	}
}

/* What a place may be read as: the byte, and what it stands for on each level that sees an escape there. */
struct readings {
	struct glyph glyph[READINGS];
	uint8_t level[READINGS];
	unsigned n;
};

/* False: it depends on what comes. */
static bool read_levels(const struct scan_set *s, const struct text *t, size_t at, struct readings *ret)
{
	ret->glyph[0] = (struct glyph){ .c = t->p[at], .end = at + 1 };
	ret->level[0] = 0;
	ret->n = 1;
	if (!may_escape(s, t->p + at, t->len - at))
		return true;
	for (uint8_t level = 1; level <= LEVELS; level++) {
		enum seen seen = glyph_read(t, level, at, &ret->glyph[ret->n], NULL);
		if (seen == SEEN_MORE)
			return false;
		/* A level that sees none here doesn't end it: the next may see the parts of one in other spellings. */
		if (seen == SEEN && ret->glyph[ret->n].escape != ESCAPE_NONE)
			ret->level[ret->n++] = level;
	}
	if (glyph_read_shell(t, at, &ret->glyph[ret->n]))
		ret->level[ret->n++] = LEVEL_SHELL;
	return true;
}

static bool begin(struct walk *w, const struct scan_set *s, const struct text *t)
{
	struct readings r;
	if (!read_levels(s, t, 0, &r))
		return false;
	for (unsigned i = 0; i < r.n; i++)
		begin_with(w, s, &r.glyph[i], r.level[i]);
	return true;
}

/* ---- and on ---- */

/* Between the bytes of a dump: "41:42", "41 42", "41, 42", "0x41,0x42". The "0x" comes after another one only. */
static bool separator(const struct state *s, unsigned c)
{
	if (s->place.group != GROUP_HEX || s->place.depth % 2 != 0)
		return false;
	return (c && c < 0x80 && strchr(SEPARATORS, (int)c)) || (c == '0' && s->gaps > 0);
}

/* Is it a gap here? One line end and its indent are; an empty line is not: it ends an event of a stream, which must not wait. */
static bool gap(const struct state *s, unsigned c, unsigned *ret_cost)
{
	bool line_end = (c == '\r' && s->line == LINE_NONE) || (c == '\n' && s->line != LINE_ENDED);
	bool indent = s->line != LINE_NONE && (c == ' ' || c == '\t');
	bool x = s->zero && (c | 0x20) == 'x';
	*ret_cost = line_end ? GAP_LINE : indent ? GAP_BLANK : c == '\0' || x ? 0 : GAP_SEPARATOR;
	return line_end || indent || c == '\0' || x || separator(s, c);
}

static void advance_by(struct walk *w, const struct scan_set *s, const struct state *from, const struct glyph *g, unsigned level)
{
	unsigned cost;
	if (gap(from, g->c, &cost))
		skip(w, from, g, cost);
	if (!from->zero && g->c < GLYPH_NONE)
		go(w, s, from, g, level);
}

/* False: it depends on what comes; then nothing was done. */
static bool advance(struct walk *w, const struct scan_set *s, const struct state *from, const struct text *t)
{
	struct readings r;
	if (!read_levels(s, t, from->at, &r))
		return false;
	for (unsigned i = 0; i < r.n; i++)
		advance_by(w, s, from, &r.glyph[i], r.level[i]);
	return true;
}

/* Takes out the state that is least far. */
static struct state take_first(struct walk *w)
{
	size_t first = 0;
	for (size_t i = 1; i < w->n_states; i++)
		if (w->states[i].at < w->states[first].at)
			first = i;
	struct state s = w->states[first];
	w->states[first] = w->states[--w->n_states];
	return s;
}

enum outcome walk_run(struct walk *w, const struct scan_set *s, const struct text *t)
{
	if (!w->begun && !begin(w, s, t))
		return WALK_UNDECIDED;
	w->begun = true;
	while (w->n_states > 0) {
		struct state from = take_first(w);
		if (from.at >= t->len && t->final)
			continue;
		if (from.at >= t->len || !advance(w, s, &from, t)) {
			add_state(w, &from);
			return WALK_UNDECIDED;
		}
	}
	return w->found ? WALK_FOUND : WALK_DEAD;
}
