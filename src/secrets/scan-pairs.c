/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which two bytes can be the beginning of a find: the filter that ordinary text is sifted with, at a byte or so a cycle. It may let pass too much, never too little:
 * what a walk would follow from its first character must be in it.
 */
#include <string.h>

#include "secrets/scan-internal.h"

static const char hex_digits[] = "0123456789abcdefABCDEF";

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
	for (unsigned c = 0x21; c < 0x7f; c++)
		if (begins(s, c))
			set_pair(s, '\\', c);
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

void pairs_build(struct scan_set *s)
{
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
