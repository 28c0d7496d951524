/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a find can begin: the sieve that all text goes through, at a byte or so a cycle. It may let pass too much, never too little.
 *
 * A find either begins with seven bytes of a pattern as they are, or there is an irregular byte among them: one that begins an escape, or a gap. For the first kind
 * there is a table of hashes of any four successive of those seven (without regard to case), so that one look tells for four places at once that none begins
 * there. Irregular bytes are rare; around them it is looked at pairs of bytes.
 */
#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "secrets/scan-internal.h"

#define REGULAR 7u
#define PLAUSIBLE 8u /* so many bytes are looked at before a walk is worth it */

static const char hex_digits[] = "0123456789abcdefABCDEF";

static bool pair_begins(const struct scan_set *s, unsigned pair)
{
	return s->pairs[pair >> 6] >> (pair & 63) & 1;
}

static void set_pair(struct scan_set *s, unsigned first, unsigned second)
{
	unsigned pair = first | second << 8;
	s->pairs[pair >> 6] |= 1ull << (pair & 63);
}

/* Whatever may stand after a first byte besides a second: an escape, or a gap. */
static void set_continued(struct scan_set *s, unsigned first)
{
	for (unsigned c = 0; c < 256; c++)
		if (s->special[c] || is_gap(c))
			set_pair(s, first, c);
}

static bool begins(const struct scan_set *s, unsigned c)
{
	for (unsigned g = 0; g < GROUPS; g++)
		if (s->first[g][c].lo < s->first[g][c].hi)
			return true;
	/* Or it is the beginning of an escape on the next level. */
	return s->special[c];
}

static unsigned other_case(unsigned c)
{
	return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c;
}

/* ---- four bytes ---- */

static unsigned quad_hash(uint32_t quad)
{
	/* The bit that tells upper from lower case is set in all. */
	return (quad | 0x20202020u) * 0x9e3779b1u >> (32 - QUAD_BITS);
}

static uint32_t quad_at(const uint8_t *p)
{
	uint32_t quad;
	memcpy(&quad, p, sizeof(quad));
	return quad;
}

static void set_quads_of(struct scan_set *s, const uint8_t begin[REGULAR])
{
	for (unsigned i = 0; i + 4 <= REGULAR; i++) {
		unsigned h = quad_hash(quad_at(begin + i));
		s->quads[h >> 6] |= 1ull << (h & 63);
	}
}

/* A dump: its bytes with something between them. */
static void set_separated(struct scan_set *s, const struct pattern *p, const char *separator)
{
	uint8_t begin[REGULAR];
	for (unsigned n = 0, i = 0; n < REGULAR; i++) {
		if (i > 0 && i % 2 == 0)
			for (const char *c = separator; *c && n < REGULAR; c++)
				begin[n++] = (uint8_t)*c;
		if (n < REGULAR)
			begin[n++] = p->text[i];
	}
	set_quads_of(s, begin);
}

static void set_quads(struct scan_set *s)
{
	static const char *const separators[] = { ":", "-", " ", ",", "_", ", ", " 0x", ",0x", ", 0x" };
	for (size_t i = 0; i < s->n_patterns; i++) {
		const struct pattern *p = &s->patterns[i];
		set_quads_of(s, p->text);
		for (size_t k = 0; pattern_group(p) == GROUP_HEX && k < ARRAY_LEN(separators); k++)
			set_separated(s, p, separators[k]);
	}
}

/* ---- escapes: their first byte, and the second, in any spelling of its own ---- */

static void set_follows(struct scan_set *s, char first, const char *follows, int (*is)(int c))
{
	uint8_t bit = s->special[(uint8_t)first];
	for (unsigned c = 0; c < 256; c++)
		if ((c && strchr(follows, (int)c)) || (is && is((int)c)) || s->irregular[c])
			s->follows[c] |= bit;
}

static int anything(int c)
{
	return 1;
}

static void set_special(struct scan_set *s)
{
	static const char specials[] = "%\\&=+";
	for (unsigned i = 0; i < sizeof(specials) - 1; i++)
		if (specials[i] != '+' || s->blanks)
			s->special[(uint8_t)specials[i]] = (uint8_t)(1u << i);
	for (unsigned c = 0; c < 256; c++)
		s->irregular[c] = s->special[c] || is_gap(c);
	set_follows(s, '%', "uabcdefABCDEF", isdigit);
	set_follows(s, '=', " \tabcdefABCDEF", isdigit);
	set_follows(s, '\\', "uUxnr01234567", ispunct);
	set_follows(s, '&', "#", isalpha);
	set_follows(s, '+', "", anything);
}

/* ---- two bytes ---- */

static void set_plain(struct scan_set *s)
{
	for (size_t i = 0; i < s->n_patterns; i++) {
		const struct pattern *p = &s->patterns[i];
		bool both = pattern_group(p) != GROUP_EXACT;
		unsigned a = p->text[0], b = p->text[1];
		unsigned a2 = both ? other_case(a) : a, b2 = both ? other_case(b) : b;
		set_pair(s, a, b);
		set_pair(s, a2, b);
		set_pair(s, a, b2);
		set_pair(s, a2, b2);
		set_continued(s, a);
		set_continued(s, a2);
		if (a == ' ')
			set_pair(s, '+', b);
	}
}

/* "%4", "=4": by the upper half of what it can be. */
static void set_hex(struct scan_set *s, unsigned first)
{
	for (unsigned c = 0; c < 256; c++)
		for (const char *d = hex_digits; begins(s, c) && *d; d++) {
			unsigned value = (unsigned)(strchr(hex_digits, *d) - hex_digits);
			if ((value < 16 ? value : value - 6) == c >> 4)
				set_pair(s, first, (uint8_t)*d);
		}
}

static void set_backslash(struct scan_set *s)
{
	for (const char *c = "uUx0123"; *c; c++)
		set_pair(s, '\\', (uint8_t)*c);
	for (int c = 0; c < 128; c++)
		if (ispunct(c) && begins(s, (unsigned)c))
			set_pair(s, '\\', (unsigned)c);
}

static void set_html(struct scan_set *s)
{
	const char *name;
	uint8_t c;
	set_pair(s, '&', '#');
	for (size_t i = 0; (c = entity(i, &name)) != 0; i++)
		if (begins(s, c))
			set_pair(s, '&', (uint8_t)name[0]);
}

void filter_build(struct scan_set *s)
{
	set_special(s);
	set_quads(s);
	set_plain(s);
	for (unsigned c = 0; c < 256; c++)
		if (s->special[c])
			set_continued(s, c);
	set_hex(s, '%');
	set_pair(s, '%', 'u');
	set_hex(s, '=');
	set_backslash(s);
	set_html(s);
	for (unsigned pair = 0; pair < PAIRS; pair++)
		if (pair_begins(s, pair))
			s->lone[pair & 0xff] = true;
}

/* ---- the sieve ---- */

/* Does any pattern begin like the text, as far as it is plain? Where that can't be said simply, yes. */
static bool plausible_in(const struct scan_set *s, uint8_t group, const uint8_t *p, size_t len)
{
	struct place place = { .group = group };
	bool after_gap = false;
	for (size_t i = 0; i < len && place.depth < PLAUSIBLE; i++) {
		bool separator = group == GROUP_HEX && place.depth % 2 == 0 && place.depth > 0 && p[i] && strchr(SEPARATORS, p[i]);
		bool indent = after_gap && (p[i] == ' ' || p[i] == '\t');
		if (separator || indent || may_escape(s, p + i, len - i))
			return true;
		after_gap = place.depth > 0 && is_gap(p[i]);
		struct place before = place;
		if (place_step(s, &place, p[i]))
			continue;
		if (!after_gap)
			return false;
		place = before;
	}
	return true;
}

static bool plausible(const struct scan_set *s, const uint8_t *p, size_t len)
{
	bool escape = may_escape(s, p, len);
	for (uint8_t group = 0; group < GROUPS; group++)
		if ((escape || s->first[group][p[0]].hi > 0) && plausible_in(s, group, p, len))
			return true;
	return false;
}

static bool regular(const struct scan_set *s, const uint8_t *p, size_t n, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (s->irregular[p[i]] && (is_gap(p[i]) || may_escape(s, p + i, len - i)))
			return false;
	return true;
}

static bool quad_hit(const struct scan_set *s, const uint8_t *p)
{
	unsigned h = quad_hash(quad_at(p));
	return s->quads[h >> 6] >> (h & 63) & 1;
}

/* One place, looked at closely. */
static bool passes(const struct scan_set *s, const uint8_t *p, size_t len)
{
	bool pair = len > 1 ? pair_begins(s, p[0] | (unsigned)p[1] << 8) : s->lone[p[0]];
	if (!pair || (len >= 4 && !quad_hit(s, p) && regular(s, p, 4, len)))
		return false;
	return plausible(s, p, len);
}

size_t filter_next(const struct scan_set *s, const uint8_t *p, size_t at, size_t len)
{
	const bool *is = s->irregular;
	/* Bit n: the byte at at+n is irregular. */
	unsigned irregular = at + REGULAR <= len ? is[p[at]] | is[p[at + 1]] << 1 | is[p[at + 2]] << 2 : 0;
	for (; at + REGULAR <= len; at += 4, irregular >>= 4) {
		irregular |= is[p[at + 3]] << 3 | is[p[at + 4]] << 4 | is[p[at + 5]] << 5 | is[p[at + 6]] << 6;
		if (__builtin_expect(irregular | quad_hit(s, p + at + 3), 0) == 0)
			continue;
		for (size_t i = at; i < at + 4; i++)
			if (passes(s, p + i, len - i))
				return i;
	}
	for (; at < len; at++)
		if (passes(s, p + at, len - at))
			return at;
	return len;
}
