/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one place of the text, every way to read it is followed at once: at each character, what it is and what it stands for on each level. A state is a place
 * among the patterns and one in the text. States are taken in the order of the text and each only once, so the work is bounded by patterns × text and not by the
 * number of ways. Hardly ever is there more than one.
 */
#include <string.h>

#include "base/mem.h"
#include "secrets/scan-internal.h"

/* Gaps between two characters of a find: up to three NULs (UTF-32), a few line ends, the indent after one. */
#define GAPS_MAX 72u
#define GAP_NUL 24u
#define GAP_LINE 8u
#define GAP_BLANK 1u
#define GAP_SEPARATOR 12u

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
		a->place.group == b->place.group && a->gaps == b->gaps && a->fold == b->fold;
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

static void skip(struct walk *w, const struct state *from, size_t end, unsigned cost, bool fold, const struct glyph *g)
{
	struct state to = *from;
	if (from->gaps + cost > GAPS_MAX)
		return;
	to.at = (uint32_t)end;
	to.gaps = (uint8_t)(from->gaps + cost);
	to.fold = from->fold || fold;
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

/* What stands at a place, on each level that says something new. False: it depends on what comes. */
static bool read_levels(const struct scan_set *s, const struct text *t, size_t at, struct glyph g[LEVELS + 1], unsigned *ret_n)
{
	unsigned n = 1;
	g[0] = (struct glyph){ .c = t->p[at], .end = at + 1 };
	if (may_escape(s, t->p + at, t->len - at))
		for (; n <= LEVELS; n++) {
			enum seen seen = glyph_read(t, n, at, &g[n], NULL);
			if (seen == SEEN_MORE)
				return false;
			if (seen != SEEN || g[n].escape == ESCAPE_NONE)
				break;
		}
	*ret_n = n;
	return true;
}

static bool begin(struct walk *w, const struct scan_set *s, const struct text *t)
{
	struct glyph g[LEVELS + 1];
	unsigned n;
	if (!read_levels(s, t, 0, g, &n))
		return false;
	for (unsigned i = 0; i < n; i++)
		begin_with(w, s, &g[i], i);
	return true;
}

/* ---- and on ---- */

/* Between the bytes of a dump: "41:42", "41 42", "41, 42", "0x41,0x42". */
static bool separator(const struct state *s, const struct text *t, size_t *ret_end, bool *ret_unknown)
{
	uint8_t c = t->p[s->at];
	if (s->place.group != GROUP_HEX || s->place.depth % 2 != 0)
		return false;
	if (c == '0') {
		*ret_unknown = s->at + 1u == t->len && !t->final;
		*ret_end = s->at + 2u;
		return s->at + 1u < t->len && (t->p[s->at + 1] | 0x20) == 'x';
	}
	*ret_end = s->at + 1u;
	return c && strchr(SEPARATORS, c);
}

static unsigned gap_cost(const struct state *s, unsigned c)
{
	return c == '\0' ? GAP_NUL : is_gap(c) ? GAP_LINE : s->fold && (c == ' ' || c == '\t') ? GAP_BLANK : 0;
}

/* False: it depends on what comes; then nothing was done. */
static bool advance(struct walk *w, const struct scan_set *s, const struct state *from, const struct text *t)
{
	struct glyph g[LEVELS + 1];
	unsigned n;
	size_t separator_end = 0;
	bool unknown = false;
	if (!read_levels(s, t, from->at, g, &n))
		return false;
	bool separated = separator(from, t, &separator_end, &unknown);
	if (unknown)
		return false;
	for (unsigned i = 0; i < n; i++) {
		unsigned cost = gap_cost(from, g[i].c);
		if (g[i].c < GLYPH_NONE)
			go(w, s, from, &g[i], i);
		if (cost > 0)
			skip(w, from, g[i].end, cost, g[i].c == '\r' || g[i].c == '\n', &g[i]);
	}
	if (separated)
		skip(w, from, separator_end, GAP_SEPARATOR, false, &g[0]);
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
