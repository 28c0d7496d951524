/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one character, with the escapes of one level taken off. Each reader asks for its parts on the level below, so that any escape may be inside any other. */
#include <ctype.h>
#include <string.h>

#include "secrets/scan-internal.h"

#define GAPS_INSIDE_MAX 8u /* between two parts of an escape */
#define ENTITY_NAME_MAX 8u
#define DIGITS_MAX 8u

static const char *const escape_names[] = {
	[ESCAPE_NONE] = "plain",
	[ESCAPE_PERCENT] = "percent",
	[ESCAPE_BACKSLASH] = "backslash",
	[ESCAPE_HTML] = "html",
	[ESCAPE_QUOTED] = "quoted-printable",
	[ESCAPE_PLUS] = "percent",
};

const char *escape_name(enum escape e)
{
	return escape_names[e];
}

static const struct {
	const char *name;
	uint8_t c;
} entities[] = {
	{ "amp", '&' }, { "lt", '<' }, { "gt", '>' }, { "quot", '"' }, { "apos", '\'' }, { "sol", '/' }, { "bsol", '\\' }, { "plus", '+' },
	{ "equals", '=' }, { "num", '#' }, { "percnt", '%' }, { "colon", ':' }, { "semi", ';' }, { "comma", ',' }, { "period", '.' },
	{ "lpar", '(' }, { "rpar", ')' }, { "lsqb", '[' }, { "lbrack", '[' }, { "rsqb", ']' }, { "rbrack", ']' }, { "lcub", '{' },
	{ "lbrace", '{' }, { "rcub", '}' }, { "rbrace", '}' }, { "ast", '*' }, { "midast", '*' }, { "dollar", '$' }, { "commat", '@' },
	{ "quest", '?' }, { "excl", '!' }, { "lowbar", '_' }, { "UnderBar", '_' }, { "grave", '`' }, { "vert", '|' }, { "verbar", '|' },
	{ "Hat", '^' }, { "Tab", '\t' }, { "NewLine", '\n' },
};

uint8_t entity(size_t n, const char **ret_name)
{
	if (n >= sizeof(entities) / sizeof(entities[0]))
		return 0;
	*ret_name = entities[n].name;
	return entities[n].c;
}

/* ---- the parts of one escape ---- */

struct reader {
	const struct text *t;
	unsigned below;		/* level of the parts */
	size_t start, at;
	enum seen state;	/* anything but SEEN: it ends here, or can't be told yet */
	struct shape *shape;
};

static void note_part(struct reader *r, size_t at)
{
	if (r->shape && r->shape->n < PARTS_MAX)
		r->shape->part[r->shape->n++] = at;
}

/* What may stand between the parts of an escape: one line end, where a text was broken anywhere; the NULs of UTF-16. */
static bool is_inner_gap(const struct glyph *g, int *last)
{
	bool first = *last == 0 || (*last == '\r' && g->c == '\n');
	if (g->c == '\0')
		return true;
	if (!is_gap(g->c) || !first)
		return false;
	*last = g->c;
	return true;
}

/* The next character below; -1 at the end, when it can't be told, when the escape would be too long. */
static int next(struct reader *r)
{
	struct glyph g;
	int last = 0;
	for (unsigned gaps = 0; r->state == SEEN && gaps <= GAPS_INSIDE_MAX; gaps++) {
		r->state = r->at - r->start < ESCAPE_MAX ? glyph_read(r->t, r->below, r->at, &g, NULL) : SEEN_END;
		if (r->state != SEEN)
			break;
		size_t from = r->at;
		r->at = g.end;
		if (is_inner_gap(&g, &last))
			continue;
		note_part(r, from);
		return g.c < GLYPH_NONE ? g.c : -1;
	}
	return -1;
}

/* The next one, when it is in the set; else it is left there and the result is -1. */
static int next_of(struct reader *r, int (*is)(int c))
{
	struct reader before = *r;
	unsigned n = r->shape ? r->shape->n : 0;
	int c = next(r);
	if (c >= 0 && is(c))
		return c;
	if (r->shape)
		r->shape->n = n;
	enum seen state = r->state;
	*r = before;
	r->state = state == SEEN_MORE ? SEEN_MORE : SEEN;
	return -1;
}

static int digit_value(int c)
{
	return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

static int is_octal(int c)
{
	return c >= '0' && c <= '7';
}

static int is_semicolon(int c)
{
	return c == ';';
}

static int is_open(int c)
{
	return c == '{';
}

static int is_close(int c)
{
	return c == '}';
}

static int is_x(int c)
{
	return c == 'x' || c == 'X';
}

/* min … max digits; the value, or -1. */
static int digits(struct reader *r, unsigned base, unsigned min, unsigned max)
{
	unsigned value = 0, n = 0;
	int (*is)(int) = base == 16 ? isxdigit : base == 8 ? is_octal : isdigit;
	if (r->shape) {
		r->shape->first_digit = r->shape->n;
		r->shape->base = base;
	}
	for (int c; n < max && (c = next_of(r, is)) >= 0; n++)
		value = value > 0xffff ? value : value * base + (unsigned)digit_value(c);
	if (r->shape)
		r->shape->n_digits = n;
	return n < min || r->state == SEEN_MORE ? -1 : (int)(value < GLYPH_NONE ? value : GLYPH_NONE);
}

/* ---- the escapes. Each begins after its first character; the value, or -1 ---- */

static int read_percent(struct reader *r)
{
	struct reader before = *r;
	int c = next_of(r, isxdigit);
	if (c >= 0) {
		*r = before;
		if (r->shape)
			r->shape->n = 1;
		return digits(r, 16, 2, 2);
	}
	if (r->state != SEEN || next(r) != 'u')
		return -1;
	return digits(r, 16, 4, 4);
}

static int read_braced(struct reader *r)
{
	int value = digits(r, 16, 1, DIGITS_MAX);
	return value >= 0 && next_of(r, is_close) >= 0 ? value : -1;
}

static int read_u(struct reader *r, unsigned n)
{
	if (next_of(r, is_open) >= 0)
		return read_braced(r);
	return r->state == SEEN ? digits(r, 16, n, n) : -1;
}

/* The line end after the "=" of a soft break, or 0. CRLF is one if both are there. */
static int line_end(struct reader *r)
{
	struct glyph g, lf;
	enum seen s = glyph_read(r->t, r->below, r->at, &g, NULL);
	if (s != SEEN) {
		r->state = s;
		return 0;
	}
	if (g.c != '\r' && g.c != '\n')
		return 0;
	r->at = g.end;
	if (g.c == '\r' && glyph_read(r->t, r->below, g.end, &lf, NULL) == SEEN && lf.c == '\n') {
		r->at = lf.end;
		return '\n';
	}
	return g.c;
}

static int read_backslash(struct reader *r)
{
	struct reader before = *r;
	int c = next(r);
	switch (c) {
	case -1:
		return -1;
	case 'u':
		return read_u(r, 4);
	case 'U':
		return read_u(r, 8);
	case 'x':
		return read_u(r, 2);
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	default:
		break;
	}
	if (is_octal(c)) {
		*r = before;
		if (r->shape)
			r->shape->n = 1;
		return digits(r, 8, 3, 3);
	}
	/* The first of another escape belongs to that: "\%75" is "\u". (As shells escape it, see glyph_read_shell.) */
	return ispunct(c) && !strchr("%&=", c) ? c : -1;
}

static int named(const char *name)
{
	for (size_t i = 0; i < sizeof(entities) / sizeof(entities[0]); i++)
		if (strcmp(entities[i].name, name) == 0)
			return entities[i].c;
	return -1;
}

static int read_name(struct reader *r)
{
	char name[ENTITY_NAME_MAX + 1] = "";
	for (unsigned n = 0; n <= ENTITY_NAME_MAX; n++) {
		int c = next(r);
		if (c == ';' && n > 0)
			return named(name);
		if (c < 0 || !isalpha(c) || n == ENTITY_NAME_MAX)
			return -1;
		name[n] = (char)c;
	}
	return -1;
}

static int is_hash(int c)
{
	return c == '#';
}

static int read_html(struct reader *r)
{
	if (next_of(r, is_hash) < 0)
		return r->state == SEEN ? read_name(r) : -1;
	unsigned base = next_of(r, is_x) >= 0 ? 16 : 10;
	int value = r->state == SEEN ? digits(r, base, 1, DIGITS_MAX) : -1;
	if (value < 0)
		return -1;
	return next_of(r, is_semicolon) >= 0 ? value : -1;
}

static int is_blank_char(int c)
{
	return c == ' ' || c == '\t';
}

/* "=41", or "=" and the end of the line: a soft break. */
static int read_quoted(struct reader *r)
{
	int end = line_end(r);
	if (end > 0 || r->state != SEEN)
		return end > 0 ? end : -1;
	struct reader before = *r;
	unsigned blanks = 0;
	while (blanks < GAPS_INSIDE_MAX && next_of(r, is_blank_char) >= 0)
		blanks++;
	end = blanks > 0 ? line_end(r) : 0;
	if (end > 0 || r->state != SEEN)
		return end > 0 ? end : -1;
	*r = before;
	if (r->shape)
		r->shape->n = 1;
	return digits(r, 16, 2, 2);
}

static int read_escape(struct reader *r, int c, enum escape *ret)
{
	switch (c) {
	case '%':
		*ret = ESCAPE_PERCENT;
		return read_percent(r);
	case '\\':
		*ret = ESCAPE_BACKSLASH;
		return read_backslash(r);
	case '&':
		*ret = ESCAPE_HTML;
		return read_html(r);
	case '=':
		*ret = ESCAPE_QUOTED;
		return read_quoted(r);
	case '+':
		*ret = ESCAPE_PLUS;
		return r->t->blanks ? ' ' : -1;
	default:
		return -1;
	}
}

static enum seen read_byte(const struct text *t, size_t at, struct glyph *ret)
{
	if (at >= t->len)
		return t->final ? SEEN_END : SEEN_MORE;
	*ret = (struct glyph){ .c = t->p[at], .end = at + 1 };
	return SEEN;
}

enum seen glyph_read(const struct text *t, unsigned level, size_t at, struct glyph *ret, struct shape *ret_shape)
{
	if (level == 0)
		return read_byte(t, at, ret);
	enum seen s = glyph_read(t, level - 1, at, ret, NULL);
	if (s != SEEN)
		return s;
	ret->escape = ESCAPE_NONE;
	struct reader r = { .t = t, .below = level - 1, .start = at, .at = ret->end, .state = SEEN, .shape = ret_shape };
	enum escape escape = ESCAPE_NONE;
	if (ret_shape)
		*ret_shape = (struct shape){ .part = { at }, .n = 1 };
	int c = read_escape(&r, ret->c, &escape);
	if (r.state == SEEN_MORE)
		return SEEN_MORE;
	if (c >= 0)
		*ret = (struct glyph){ .c = (uint16_t)c, .escape = (uint8_t)escape, .end = r.at };
	return SEEN;
}

bool glyph_read_shell(const struct text *t, size_t at, struct glyph *ret)
{
	if (at + 2 > t->len || t->p[at] != '\\' || !t->p[at + 1] || !strchr("%&=\r\n", t->p[at + 1]))
		return false;
	bool crlf = t->p[at + 1] == '\r' && at + 2 < t->len && t->p[at + 2] == '\n';
	*ret = (struct glyph){ .c = crlf ? '\n' : t->p[at + 1], .escape = ESCAPE_BACKSLASH, .end = at + 2 + crlf };
	return true;
}
