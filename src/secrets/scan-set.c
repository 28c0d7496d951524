/* SPDX-License-Identifier: Apache-2.0 */
/* Needles, and their patterns in sorted order: a place in the search is a range of them that begin alike. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "secrets/scan-internal.h"
#include "secrets/value.h"

struct scan_set *scan_set_new(void)
{
	struct scan_set *s = mem_alloc(sizeof(*s));
	s->refs = 1;
	return s;
}

struct scan_set *scan_set_free(struct scan_set *s)
{
	if (!s || --s->refs > 0)
		return NULL;
	for (size_t i = 0; i < s->n_needles; i++)
		secret_value_free(s->needles[i].value);
	secret_value_free(s->texts);
	mem_wipe(s->patterns, s->n_patterns * sizeof(*s->patterns));
	mem_free(s->patterns);
	mem_wipe(s, sizeof(*s));
	return mem_free(s);
}

size_t scan_set_needles(const struct scan_set *s)
{
	return s->n_needles;
}

int scan_set_add(struct scan_set *s, unsigned id, const void *p, size_t len, struct err *err)
{
	if (s->compiled)
		return err_set(err, ERR_USAGE, "strings can't be added to a search that is compiled already");
	if (len < SECRET_VALUE_MIN || len > SECRET_VALUE_MAX)
		return err_set(err, ERR_INVALID, "a string to search for must have %u to %u bytes, not %zu", SECRET_VALUE_MIN, SECRET_VALUE_MAX, len);
	if (s->n_needles == SCAN_NEEDLES_MAX)
		return err_set(err, ERR_LIMIT, "no more than %u strings can be searched for at once", SCAN_NEEDLES_MAX);
	struct secret_value *v = secret_value_alloc(len, err);
	if (!v)
		return -1;
	memcpy(secret_value_fill(v), p, len);
	secret_value_seal(v);
	s->blanks = s->blanks || memchr(p, ' ', len);
	s->needles[s->n_needles++] = (struct needle){ id, v };
	return 0;
}

/* ---- compile ---- */

struct compiling {
	struct scan_set *set;
	uint16_t needle;
	size_t n, bytes;     /* counted first */
	uint8_t *text;	     /* then filled */
};

static void count_pattern(void *ctx, const struct pattern *p)
{
	struct compiling *c = ctx;
	c->n++;
	c->bytes += p->len;
}

static void keep_pattern(void *ctx, const struct pattern *p)
{
	struct compiling *c = ctx;
	struct pattern *kept = &c->set->patterns[c->set->n_patterns++];
	*kept = *p;
	kept->needle = c->needle;
	kept->text = memcpy(c->text, p->text, p->len);
	c->text += p->len;
}

static void each_pattern(struct compiling *c, struct secret_value *scratch, pattern_fn fn)
{
	for (size_t i = 0; i < c->set->n_needles; i++) {
		size_t len;
		const uint8_t *v = secret_value_bytes(c->set->needles[i].value, &len);
		c->needle = (uint16_t)i;
		patterns_each(v, len, secret_value_fill(scratch), fn, c);
	}
}

static int compare(const void *a, const void *b)
{
	const struct pattern *x = a, *y = b;
	if (pattern_group(x) != pattern_group(y))
		return pattern_group(x) < pattern_group(y) ? -1 : 1;
	uint32_t len = x->len < y->len ? x->len : y->len;
	int r = memcmp(x->text, y->text, len);
	if (r != 0 || x->len != y->len)
		return r != 0 ? r : x->len < y->len ? -1 : 1;
	/* Alike: the first needle's plainest spelling stays. */
	if (x->needle != y->needle)
		return x->needle < y->needle ? -1 : 1;
	return (int)x->spelling - (int)y->spelling;
}

static void sort_patterns(struct scan_set *s)
{
	size_t n = 0;
	qsort(s->patterns, s->n_patterns, sizeof(*s->patterns), compare);
	for (size_t i = 0; i < s->n_patterns; i++) {
		const struct pattern *p = &s->patterns[i], *kept = n > 0 ? &s->patterns[n - 1] : NULL;
		bool alike = kept && pattern_group(kept) == pattern_group(p) && kept->len == p->len && memcmp(kept->text, p->text, p->len) == 0;
		if (!alike)
			s->patterns[n++] = *p;
	}
	s->n_patterns = n;
}

static uint8_t upper(uint8_t c)
{
	return c >= 'a' && c <= 'z' ? (uint8_t)(c - 'a' + 'A') : c;
}

static void fill_first(struct scan_set *s)
{
	for (size_t i = 0; i < s->n_patterns; i++) {
		const struct pattern *p = &s->patterns[i];
		enum group g = pattern_group(p);
		struct range *r = &s->first[g][p->text[0]];
		if (r->hi == 0)
			r->lo = (uint16_t)i;
		r->hi = (uint16_t)(i + 1);
	}
	for (unsigned g = GROUP_BASE32; g < GROUPS; g++)
		for (unsigned c = 'a'; c <= 'z'; c++)
			s->first[g][upper((uint8_t)c)] = s->first[g][c];
}

static size_t longest(const struct scan_set *s)
{
	size_t max = 0;
	for (size_t i = 0; i < s->n_needles; i++) {
		size_t len;
		secret_value_bytes(s->needles[i].value, &len);
		max = len > max ? len : max;
	}
	return max;
}

static_assert(SCAN_NEEDLES_MAX * 64u < UINT16_MAX, "a place counts patterns in 16 bits");

int scan_set_compile(struct scan_set *s, struct err *err)
{
	struct compiling c = { .set = s };
	struct secret_value *scratch = secret_value_alloc(patterns_scratch(longest(s)), err);
	if (!scratch)
		return -1;
	each_pattern(&c, scratch, count_pattern);
	s->texts = secret_value_alloc(c.bytes, err);
	if (s->texts) {
		s->patterns = mem_alloc_array(c.n, sizeof(*s->patterns));
		c.text = secret_value_fill(s->texts);
		each_pattern(&c, scratch, keep_pattern);
		secret_value_seal(s->texts);
	}
	secret_value_free(scratch);
	if (!s->texts)
		return -1;
	sort_patterns(s);
	fill_first(s);
	filter_build(s);
	s->compiled = true;
	return 0;
}

/* ---- places ---- */

/* The byte at `depth`, or -1 where a pattern ends: those are sorted first. */
static int byte_at(const struct scan_set *s, unsigned i, uint32_t depth)
{
	const struct pattern *p = &s->patterns[i];
	return depth < p->len ? p->text[depth] : -1;
}

/* The first of lo … hi whose byte is at least c. */
static uint16_t lower_bound(const struct scan_set *s, const struct place *p, int c)
{
	unsigned lo = p->lo, hi = p->hi;
	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;
		if (byte_at(s, mid, p->depth) < c)
			lo = mid + 1;
		else
			hi = mid;
	}
	return (uint16_t)lo;
}

bool place_step(const struct scan_set *s, struct place *p, uint8_t c)
{
	if (p->depth == 0) {
		struct range r = s->first[p->group][c];
		*p = (struct place){ r.lo, r.hi, 1, p->group };
		return r.lo < r.hi;
	}
	if (p->group != GROUP_EXACT && c >= 'A' && c <= 'Z')
		c = (uint8_t)(c - 'A' + 'a');
	if (byte_at(s, p->lo, p->depth) != c || byte_at(s, p->hi - 1u, p->depth) != c) {
		uint16_t lo = lower_bound(s, p, c), hi = lower_bound(s, p, c + 1);
		if (lo == hi)
			return false;
		p->lo = lo;
		p->hi = hi;
	}
	p->depth++;
	return true;
}

const struct pattern *place_end(const struct scan_set *s, const struct place *p)
{
	const struct pattern *first = &s->patterns[p->lo];
	return first->len == p->depth ? first : NULL;
}
