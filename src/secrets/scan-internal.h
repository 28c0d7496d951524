/* SPDX-License-Identifier: Apache-2.0 */
/* For the files of scan.h. */
#pragma once

#include "secrets/scan.h"
#include "secrets/secret.h"

/* ---- patterns: each needle in each spelling that changes more than single characters ---- */

enum spelling { SPELLED_PLAIN, SPELLED_BASE64, SPELLED_BASE64URL, SPELLED_BASE32, SPELLED_HEX };

/* Patterns that are compared alike. */
enum group { GROUP_EXACT, GROUP_BASE32, GROUP_HEX, GROUPS }; /* the last two without regard to case: their text is lower case */

struct pattern {
	const uint8_t *text;
	uint32_t len;
	uint16_t needle;
	uint8_t spelling;
	uint8_t align;	/* base64, base32: bytes in front of the needle in its group of 3 or 5 */
	bool wide;	/* base64: of UTF-16 */
};

/* Patterns lo … hi-1 of the sorted list begin with the same `depth` bytes. */
struct place {
	uint16_t lo, hi;
	uint32_t depth;
	uint8_t group;
};

struct range { uint16_t lo, hi; };

/* Between two characters: a line end, or the NUL of UTF-16. */
static inline bool is_gap(unsigned c)
{
	return c == '\0' || c == '\r' || c == '\n';
}

struct needle {
	unsigned id;
	struct secret_value *value;
};

#define PAIRS (256u * 256u)
#define QUAD_BITS 17u
#define SEPARATORS ":- ,_" /* between the bytes of a dump */

struct scan_set {
	unsigned refs;
	bool compiled;
	bool blanks;		/* some needle has one inside: then '+' may mean it */
	struct needle needles[SCAN_NEEDLES_MAX];
	size_t n_needles;
	struct secret_value *texts;
	struct pattern *patterns; /* sorted in each group */
	size_t n_patterns;
	struct range first[GROUPS][256];
	/* Which escapes a byte may begin, and which of them may go on with it: a bit for each. */
	uint8_t special[256], follows[256];
	bool irregular[256];	/* special, or a gap */
	/* Where a find can begin (scan-filter.c). A bit for each hash of four bytes; for each two (the first in the low half); for one with more to come. */
	uint64_t quads[(1u << QUAD_BITS) / 64];
	uint64_t pairs[PAIRS / 64];
	bool lone[256];
};

/* Calls fn for each pattern of a needle; text is lent. */
typedef void (*pattern_fn)(void *ctx, const struct pattern *p);
/* `scratch` has room for the longest (patterns_scratch). */
size_t patterns_scratch(size_t needle_len);
void patterns_each(const uint8_t *needle, size_t len, uint8_t *scratch, pattern_fn fn, void *ctx);
/* The byte that takes the place of the pattern's byte at `index`, which was `was`: the spelling of a run of 'X'. */
uint8_t pattern_mask(const struct pattern *p, uint32_t index, uint8_t was);
enum group pattern_group(const struct pattern *p);
const char *spelling_name(enum spelling s);

/* Goes on from a place by one byte; false: no pattern does. */
bool place_step(const struct scan_set *s, struct place *p, uint8_t c);
/* The pattern that ends here, or NULL. */
const struct pattern *place_end(const struct scan_set *s, const struct place *p);

/* Can an escape begin at p? */
static inline bool may_escape(const struct scan_set *s, const uint8_t *p, size_t len)
{
	return s->special[p[0]] && (len < 2 || (s->special[p[0]] & s->follows[p[1]]));
}

void filter_build(struct scan_set *s);
/* The first place from `at` on where a find can begin, or len. */
size_t filter_next(const struct scan_set *s, const uint8_t *p, size_t at, size_t len);

/* ---- characters: what a place of the text may stand for ---- */

/*
 * Level 0 is the byte itself. Level n reads the text with every escape taken off that can be seen at level n-1: percent, backslash, HTML reference, quoted-printable.
 * So any of them inside any other is read, up to LEVELS deep.
 */
#define LEVELS 3u
#define LEVEL_SHELL (LEVELS + 1u) /* a backslash and one of "%&=" or a line end: on the others that would hide another escape */
#define READINGS (LEVELS + 2u)
#define ESCAPE_MAX 256u /* bytes of one, over all levels */

struct text {
	const uint8_t *p;
	size_t len;
	bool final;	/* nothing comes after */
	bool blanks;	/* '+' may be a blank */
};

enum escape { ESCAPE_NONE, ESCAPE_PERCENT, ESCAPE_BACKSLASH, ESCAPE_HTML, ESCAPE_QUOTED, ESCAPE_PLUS };

#define GLYPH_NONE 0x100u /* an escape of something that is no byte */
struct glyph {
	uint16_t c;
	uint8_t escape;		/* taken off at the level asked for; NONE: as on the level below */
	size_t end;
};
/* The parts of an escape, by where they begin on the level below. */
#define PARTS_MAX 16u
struct shape {
	size_t part[PARTS_MAX];
	unsigned n, first_digit, n_digits; /* digits are parts too */
	unsigned base;
};

enum seen { SEEN, SEEN_END, SEEN_MORE /* depends on what comes */ };
/* shape may be NULL. */
enum seen glyph_read(const struct text *t, unsigned level, size_t at, struct glyph *ret, struct shape *ret_shape);
/* LEVEL_SHELL. False: no such one here. */
bool glyph_read_shell(const struct text *t, size_t at, struct glyph *ret);
const char *escape_name(enum escape e);
/* Names of HTML references: the byte that the nth stands for, 0 at the end of the list. */
uint8_t entity(size_t n, const char **ret_name);

/* ---- a walk: does a find begin here, and where does it end? ---- */

struct hop {
	uint32_t from, parent;	/* where it began, and the one before (index; itself: the first) */
	uint8_t level;
	bool gap;		/* between two characters: a line end, a NUL, a separator */
	uint8_t escape;
};

enum { LINE_NONE, LINE_CR, LINE_ENDED };

struct state {
	struct place place;
	uint32_t at, hop;
	uint8_t gaps;	/* what was spent on gaps since the last character */
	uint8_t line;	/* LINE_…: of a gap */
	uint8_t nuls;	/* in a row */
	bool zero;	/* after the '0' of a "0x" between bytes */
};

struct walk {
	struct state *states;
	size_t n_states, cap_states;
	struct hop *hops;
	size_t n_hops, cap_hops;
	bool begun;
	bool found;
	struct place best;
	uint32_t best_end, best_hop;
};

enum outcome { WALK_DEAD, WALK_FOUND, WALK_UNDECIDED };
/* t begins where the find would. Call again with more after UNDECIDED, and walk_reset before another place. */
enum outcome walk_run(struct walk *w, const struct scan_set *s, const struct text *t);
void walk_reset(struct walk *w);
void walk_free(struct walk *w);

/* ---- overwriting ---- */

typedef void (*put_fn)(void *ctx, size_t at, uint8_t byte);
/* Every character of the find that w has found. */
void mask_find(const struct walk *w, const struct scan_set *s, const struct text *t, put_fn put, void *ctx);
/* What the find is called. */
const char *find_spelling(const struct walk *w, const struct scan_set *s, const struct text *t);
