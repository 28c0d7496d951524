/* SPDX-License-Identifier: Apache-2.0 */
/* A needle in the spellings that regroup its bits: base64, base32, hex. Only what is certain whatever stands before and after it is kept of them. */
#include <string.h>

#include "base/mem.h"
#include "secrets/scan-internal.h"

#define MASK 'X' /* 0x58, decimal 88, octal 130: digits alone in every numeric spelling, a letter in every alphabet */

static const char base64_alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char base64url_alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char base32_alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
static const char hex_alphabet[] = "0123456789abcdef";

static const char *const spelling_names[] = {
	[SPELLED_PLAIN] = "plain",
	[SPELLED_BASE64] = "base64",
	[SPELLED_BASE64URL] = "base64url",
	[SPELLED_BASE32] = "base32",
	[SPELLED_HEX] = "hex",
};

const char *spelling_name(enum spelling s)
{
	return spelling_names[s];
}

enum group pattern_group(const struct pattern *p)
{
	return p->spelling == SPELLED_BASE32 ? GROUP_BASE32 : p->spelling == SPELLED_HEX ? GROUP_HEX : GROUP_EXACT;
}

static const char *alphabet_of(enum spelling s, unsigned *ret_bits)
{
	*ret_bits = s == SPELLED_BASE32 ? 5 : s == SPELLED_HEX ? 4 : 6;
	return s == SPELLED_BASE32 ? base32_alphabet : s == SPELLED_HEX ? hex_alphabet : s == SPELLED_BASE64URL ? base64url_alphabet : base64_alphabet;
}

/* `width` bits at bit `at` out of two bytes. */
static unsigned bits_at(unsigned first, unsigned second, size_t at, unsigned width)
{
	return ((first << 8 | second) >> (16 - width - at % 8)) & ((1u << width) - 1);
}

/* The first letter that is made of the needle's bits alone, counted from the beginning of its group. */
static size_t first_letter(unsigned align, unsigned width)
{
	return (8u * align + width - 1) / width;
}

static size_t regroup(const uint8_t *v, size_t len, enum spelling spelling, unsigned align, uint8_t *out)
{
	unsigned width;
	const char *alphabet = alphabet_of(spelling, &width);
	size_t n = 0, last = 8 * (align + len) / width;
	for (size_t k = first_letter(align, width); k < last; k++) {
		size_t at = width * k - 8 * align;
		unsigned second = at / 8 + 1 < len ? v[at / 8 + 1] : 0;
		out[n++] = (uint8_t)alphabet[bits_at(v[at / 8], second, at, width)];
	}
	return n;
}

/* base32 in the case that is there; where that was a digit, a digit is right in both. */
static uint8_t in_case(uint8_t c, uint8_t was)
{
	if (was >= '2' && was <= '7')
		return '2';
	return was >= 'A' && was <= 'Z' && c >= 'a' ? (uint8_t)(c - 'a' + 'A') : c;
}

uint8_t pattern_mask(const struct pattern *p, uint32_t index, uint8_t was)
{
	if (p->spelling == SPELLED_PLAIN)
		return MASK;
	unsigned width;
	const char *alphabet = alphabet_of((enum spelling)p->spelling, &width);
	size_t at = width * (first_letter(p->align, width) + index) - 8u * p->align;
	bool odd = (at / 8) % 2 == 1;
	unsigned first = p->wide && odd ? 0 : MASK, second = p->wide && !odd ? 0 : MASK;
	uint8_t c = (uint8_t)alphabet[bits_at(first, second, at, width)];
	return p->spelling == SPELLED_BASE32 ? in_case(c, was) : c;
}

/* ---- what of a needle is regrouped ---- */

struct making {
	uint8_t *escaped, *letters; /* halves of the scratch */
	pattern_fn fn;
	void *ctx;
};

static void give(const struct making *m, struct pattern p, const uint8_t *v, size_t len)
{
	p.len = (uint32_t)regroup(v, len, (enum spelling)p.spelling, p.align, m->letters);
	p.text = m->letters;
	m->fn(m->ctx, &p);
}

static void give_base64(const struct making *m, const uint8_t *v, size_t len, bool wide)
{
	for (uint8_t align = 0; align < 3; align++) {
		give(m, (struct pattern){ .spelling = SPELLED_BASE64, .align = align, .wide = wide }, v, len);
		give(m, (struct pattern){ .spelling = SPELLED_BASE64URL, .align = align, .wide = wide }, v, len);
	}
}

/* Escaped as it is put into a form, a URL or a JSON text. 0: nothing to escape. */
typedef size_t (*escape_fn)(const uint8_t *v, size_t len, uint8_t *out);

static bool is_alnum(uint8_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static size_t percent(const uint8_t *v, size_t len, const char *kept, bool plus, uint8_t *out)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t n = 0;
	for (size_t i = 0; i < len; i++) {
		if (is_alnum(v[i]) || (v[i] && strchr(kept, v[i]))) {
			out[n++] = v[i];
		} else if (v[i] == ' ' && plus) {
			out[n++] = '+';
		} else {
			out[n++] = '%';
			out[n++] = (uint8_t)digits[v[i] >> 4];
			out[n++] = (uint8_t)digits[v[i] & 15];
		}
	}
	return n;
}

static size_t escape_url(const uint8_t *v, size_t len, uint8_t *out)
{
	return percent(v, len, "-_.~", false, out);
}

static size_t escape_component(const uint8_t *v, size_t len, uint8_t *out)
{
	return percent(v, len, "-_.~!*'()", false, out);
}

static size_t escape_form(const uint8_t *v, size_t len, uint8_t *out)
{
	return percent(v, len, "-_.*", true, out);
}

static size_t backslashes(const uint8_t *v, size_t len, const char *escaped, uint8_t *out)
{
	size_t n = 0;
	for (size_t i = 0; i < len; i++) {
		if (v[i] && strchr(escaped, v[i]))
			out[n++] = '\\';
		out[n++] = v[i];
	}
	return n;
}

static size_t escape_json(const uint8_t *v, size_t len, uint8_t *out)
{
	return backslashes(v, len, "\"\\", out);
}

static size_t escape_json_slash(const uint8_t *v, size_t len, uint8_t *out)
{
	return backslashes(v, len, "\"\\/", out);
}

static size_t widen(const uint8_t *v, size_t len, uint8_t *out)
{
	for (size_t i = 0; i < len; i++) {
		out[2 * i] = v[i];
		out[2 * i + 1] = 0;
	}
	return 2 * len;
}

#define GROWTH_MAX 3u /* of an escape above */

size_t patterns_scratch(size_t needle_len)
{
	return 3 * GROWTH_MAX * needle_len + 16; /* GROWTH_MAX for the escaped text, twice that for its letters */
}

void patterns_each(const uint8_t *needle, size_t len, uint8_t *scratch, pattern_fn fn, void *ctx)
{
	static const escape_fn escapes[] = { escape_url, escape_component, escape_form, escape_json, escape_json_slash };
	struct making m = { scratch, scratch + GROWTH_MAX * len, fn, ctx };
	struct pattern plain = { .text = needle, .len = (uint32_t)len, .spelling = SPELLED_PLAIN };
	fn(ctx, &plain);
	give_base64(&m, needle, len, false);
	for (uint8_t align = 0; align < 5; align++)
		give(&m, (struct pattern){ .spelling = SPELLED_BASE32, .align = align }, needle, len);
	give(&m, (struct pattern){ .spelling = SPELLED_HEX }, needle, len);
	for (size_t i = 0; i < ARRAY_LEN(escapes); i++) {
		size_t n = escapes[i](needle, len, m.escaped);
		if (n != len || memcmp(m.escaped, needle, len) != 0)
			give_base64(&m, m.escaped, n, false);
	}
	give_base64(&m, m.escaped, widen(needle, len, m.escaped), true);
}
