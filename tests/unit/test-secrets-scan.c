/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing of a secret leaves in any usual spelling, however the stream is cut; nothing else is changed; nothing is held back that need not be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/secrets-reveal.h"

#include "base/mem.h"
#include "base/text.h"
#include "secrets/scan-internal.h"

#define OUT_MAX (1u << 22)

static uint64_t random_state;

/* The same numbers each time. */
static unsigned random_below(unsigned n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(random_state >> 33) % n;
}

static struct scan_set *make_set(const char *const *needles, size_t n)
{
	struct scan_set *s = scan_set_new();
	struct err err = ERR_INIT;
	for (size_t i = 0; i < n; i++)
		if (scan_set_add(s, (unsigned)i, needles[i], strlen(needles[i]), &err) < 0)
			fail_msg("%s", err.text);
	if (scan_set_compile(s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

static struct scan_set *make_one(const char *needle)
{
	return make_set(&needle, 1);
}

struct found {
	unsigned n;
	unsigned ids[64];
	char spelling[32]; /* of the first */
	uint64_t offset;
	size_t len;
};

static void on_found(void *ctx, unsigned id, const char *spelling, uint64_t offset, size_t len)
{
	struct found *f = ctx;
	if (f->n == 0) {
		snprintf(f->spelling, sizeof(f->spelling), "%s", spelling);
		f->offset = offset;
		f->len = len;
	}
	if (f->n < ARRAY_LEN(f->ids))
		f->ids[f->n] = id;
	f->n++;
}

/* Pieces of `size` bytes, the first of `first`. Every piece gets an exact copy, so that the address sanitizer sees reads past its end. */
static void scrub(struct scan_set *set, const struct buf *in, size_t first, size_t size, struct buf *out, struct found *f)
{
	struct scan_stream *st = scan_stream_new(set, on_found, f);
	*f = (struct found){ 0 };
	buf_init(out, OUT_MAX);
	for (size_t at = 0, n = first; at < in->len; at += n, n = size) {
		n = n > in->len - at ? in->len - at : n;
		uint8_t *piece = malloc(n ? n : 1);
		assert_non_null(piece);
		memcpy(piece, in->data + at, n);
		assert_int_equal(scan_scrub(st, piece, n, out), 0);
		assert_int_equal(out->len + scan_held(st), at + n);
		free(piece);
	}
	assert_int_equal(scan_scrub_end(st, out), 0);
	assert_int_equal(scan_held(st), 0);
	assert_int_equal(out->len, in->len);
	scan_stream_free(st);
}

static void assert_same(const struct buf *a, const struct buf *b)
{
	if (a->len == b->len && a->len > 0 && memcmp(a->data, b->data, a->len) != 0)
		fail_msg("these differ: %.*s\nand: %.*s", (int)a->len, (const char *)a->data, (int)b->len, (const char *)b->data);
	assert_int_equal(a->len, b->len);
	if (a->len > 0)
		assert_memory_equal(a->data, b->data, a->len);
}

static void put(struct buf *b, const char *s)
{
	assert_int_equal(buf_append(b, s, strlen(s)), 0);
}

/* ---- spellings ---- */

static void spell_letters(struct buf *b, const uint8_t *p, size_t len, const char *alphabet, unsigned width, bool pad)
{
	unsigned bits = 0, n = 0;
	size_t start = b->len;
	for (size_t i = 0; i < len; i++) {
		bits = (bits << 8 | p[i]) & 0xffff;
		for (n += 8; n >= width; n -= width)
			buf_put_u8(b, (uint8_t)alphabet[bits >> (n - width) & ((1u << width) - 1)]);
	}
	if (n > 0)
		buf_put_u8(b, (uint8_t)alphabet[bits << (width - n) & ((1u << width) - 1)]);
	while (pad && (b->len - start) % (width == 6 ? 4 : 8) != 0)
		buf_put_u8(b, '=');
}

#define STD64 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
#define URL64 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
#define STD32 "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
#define LOW32 "abcdefghijklmnopqrstuvwxyz234567"

enum inner { IN_PLAIN, IN_BASE64, IN_BASE64URL, IN_BASE32, IN_BASE32_LOWER, IN_HEX, IN_HEX_UPPER, IN_HEX_COLONS, IN_HEX_0X, INNERS };

static void spell_hex(struct buf *b, const uint8_t *p, size_t len, const char *format, const char *between)
{
	for (size_t i = 0; i < len; i++) {
		char digits[8];
		snprintf(digits, sizeof(digits), strcmp(format, "X") == 0 ? "%02X" : strcmp(format, "0x") == 0 ? "0x%02x" : "%02x", p[i]);
		put(b, i > 0 ? between : "");
		put(b, digits);
	}
}

/* What stands before the secret inside decides the alignment. */
static void spell_inner(struct buf *b, enum inner inner, const char *before, const char *secret)
{
	char text[512];
	snprintf(text, sizeof(text), "%s%s", before, secret);
	const uint8_t *p = (const uint8_t *)text;
	size_t len = strlen(text);
	switch (inner) {
	case IN_PLAIN:
	case INNERS:
		put(b, text);
		break;
	case IN_BASE64:
		spell_letters(b, p, len, STD64, 6, true);
		break;
	case IN_BASE64URL:
		spell_letters(b, p, len, URL64, 6, false);
		break;
	case IN_BASE32:
		spell_letters(b, p, len, STD32, 5, true);
		break;
	case IN_BASE32_LOWER:
		spell_letters(b, p, len, LOW32, 5, false);
		break;
	case IN_HEX:
		spell_hex(b, p, len, "x", "");
		break;
	case IN_HEX_UPPER:
		spell_hex(b, p, len, "X", "");
		break;
	case IN_HEX_COLONS:
		spell_hex(b, p, len, "x", ":");
		break;
	case IN_HEX_0X:
		spell_hex(b, p, len, "0x", ", ");
		break;
	}
}

enum layer { PERCENT_ALL, PERCENT_SOME, JSON_ALL, JSON_SOME, JSON_PLAIN, HTML_ALL, HTML_HEX, HTML_SOME, QUOTED_ALL, QUOTED_SOFT, UTF16LE, UTF16BE, FOLD_CRLF,
	FOLD_INDENT, FOLD_JSON, LAYERS };
static const char *const layer_names[LAYERS] = { "percent, all", "percent, some", "JSON, all", "JSON, some", "JSON as usual", "HTML, all", "HTML, hex",
	"HTML, some", "quoted-printable, all", "quoted-printable, soft breaks", "UTF-16LE", "UTF-16BE", "lines", "indented lines", "JSON line ends" };

static void put_format(struct buf *b, const char *format, unsigned c)
{
	char text[16];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(text, sizeof(text), format, c);
#pragma GCC diagnostic pop
	put(b, text);
}

static void spell_byte(struct buf *b, enum layer layer, uint8_t c, size_t i)
{
	bool some = random_below(2) == 0;
	switch (layer) {
	case PERCENT_ALL:
		put_format(b, i % 2 ? "%%%02x" : "%%%02X", c);
		return;
	case PERCENT_SOME:
		if (c == '%' || some)
			put_format(b, "%%%02X", c);
		else
			buf_put_u8(b, c);
		return;
	case JSON_ALL:
		put_format(b, i % 3 ? "\\u%04x" : "\\x%02X", c);
		return;
	case JSON_SOME:
		if (some && c < 0x80)
			put_format(b, "\\u%04X", c);
		else
			spell_byte(b, JSON_PLAIN, c, i);
		return;
	case JSON_PLAIN:
		if (c == '"' || c == '\\' || c == '/')
			buf_put_u8(b, '\\');
		buf_put_u8(b, c);
		return;
	case HTML_ALL:
		put_format(b, i % 3 ? "&#%u;" : "&#%04u;", c);
		return;
	case HTML_HEX:
		put_format(b, i % 3 ? "&#x%x;" : "&#x%04X;", c);
		return;
	case HTML_SOME:
		if (c == '&' || some)
			put_format(b, "&#%u;", c);
		else
			buf_put_u8(b, c);
		return;
	case QUOTED_ALL:
		put_format(b, "=%02X", c);
		return;
	case QUOTED_SOFT:
		if (i % 7 == 3)
			put(b, i % 2 ? "=\n" : "=\r\n");
		if (c == '=')
			put(b, "=3D");
		else
			buf_put_u8(b, c);
		return;
	case UTF16LE:
		buf_put_u8(b, c);
		buf_put_u8(b, 0);
		return;
	case UTF16BE:
		buf_put_u8(b, 0);
		buf_put_u8(b, c);
		return;
	case FOLD_CRLF:
	case FOLD_INDENT:
	case FOLD_JSON:
		if (i % 5 == 4)
			put(b, layer == FOLD_CRLF ? "\r\n" : layer == FOLD_JSON ? "\\n" : "\n    ");
		buf_put_u8(b, c);
		return;
	case LAYERS:
		return;
	}
}

static void spell_layer(struct buf *text, enum layer layer)
{
	struct buf out;
	buf_init(&out, OUT_MAX);
	for (size_t i = 0; i < text->len; i++)
		spell_byte(&out, layer, text->data[i], i);
	buf_free(text);
	*text = out;
}

/* A separator after a literal escape character would belong to it. */
static void surround(struct buf *b, const struct buf *spelled, const char *before, const char *after)
{
	put(b, before);
	assert_int_equal(buf_append(b, spelled->data, spelled->len), 0);
	put(b, after);
}

static const char *const secrets[] = { "ghp_aB3xY9kQ", "AKIA/abc+DEF=", "p%41 \\w\"&q;z'", "sk-0123456789abcdef-XYZ~!@$^*()[]{}<>?|,.:", "bulkhead-github-0Ab1Cd2Ef3Gh4Ij5" };

/* Cut in two at every `step`th place, and into single bytes. */
static void check_gone(struct scan_set *set, const struct buf *in, const char *secret, size_t step, const char *what)
{
	struct buf whole, cut;
	struct found f, g;
	scrub(set, in, in->len, in->len, &whole, &f);
	if (f.n == 0)
		fail_msg("%s of %s was not found in: %.*s", what, secret, (int)in->len, (const char *)in->data);
	if (reveals(whole.data, whole.len, secret, 2))
		fail_msg("%s of %s is still there: %.*s", what, secret, (int)whole.len, (const char *)whole.data);
	scrub(set, in, 1, 1, &cut, &g);
	assert_same(&whole, &cut);
	assert_int_equal(f.n, g.n);
	assert_int_equal(f.offset, g.offset);
	assert_int_equal(f.len, g.len);
	assert_string_equal(f.spelling, g.spelling);
	buf_free(&cut);
	for (size_t at = 1; at < in->len; at += step) {
		scrub(set, in, at, in->len, &cut, &g);
		assert_same(&whole, &cut);
		buf_free(&cut);
	}
	buf_free(&whole);
}

/* Every inner spelling at every alignment, alone and in every layer, at every cut. */
static void test_spellings(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(secrets); i++) {
		struct scan_set *set = make_one(secrets[i]);
		for (unsigned inner = 0; inner < INNERS; inner++)
			for (unsigned align = 0; align < 5; align++)
				for (unsigned layer = 0; layer <= LAYERS; layer++) {
					/* Alignment matters to the regrouping ones alone. */
					bool regrouped = inner >= IN_BASE64 && inner <= IN_BASE32_LOWER;
					if ((align > 0 && !regrouped) || (align > 0 && layer > JSON_PLAIN && layer < LAYERS && i > 0))
						continue;
					struct buf spelled, in;
					buf_init(&spelled, OUT_MAX);
					buf_init(&in, OUT_MAX);
					spell_inner(&spelled, (enum inner)inner, &"user"[4 - align + (align == 5)], secrets[i]);
					if (layer < LAYERS)
						spell_layer(&spelled, (enum layer)layer);
					surround(&in, &spelled, "{\"k\":\"", "\", \"l\": 1}\n");
					char what[96];
					snprintf(what, sizeof(what), "inner %u at %u, %s", inner, align, layer < LAYERS ? layer_names[layer] : "bare");
					check_gone(set, &in, secrets[i], i == 0 ? 1 : in.len / 8 + 1, what);
					buf_free(&in);
					buf_free(&spelled);
				}
		scan_set_free(set);
	}
}

/* "Basic" credentials: whatever the user's name is as long as. */
static void test_basic(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(secrets); i++) {
		struct scan_set *set = make_one(secrets[i]);
		for (size_t n = 0; n <= 64; n++) {
			char pair[256] = "";
			memset(pair, 'u', n);
			snprintf(pair + n, sizeof(pair) - n, ":%s", secrets[i]);
			for (unsigned alphabet = 0; alphabet < 2; alphabet++) {
				struct buf in, out;
				struct found f;
				buf_init(&in, OUT_MAX);
				put(&in, "{\"authorization\": \"Basic ");
				spell_letters(&in, (const uint8_t *)pair, strlen(pair), alphabet ? URL64 : STD64, 6, true);
				put(&in, "\"}");
				scrub(set, &in, in.len, in.len, &out, &f);
				assert_int_equal(f.n, 1);
				assert_false(reveals(out.data, out.len, secrets[i], 1));
				/* Nor any eight bytes in a row of it. */
				struct buf decoded;
				buf_init(&decoded, OUT_MAX);
				decode_base64(out.data, out.len, &decoded);
				for (size_t k = 0; k + 4 <= strlen(secrets[i]); k++)
					assert_null(memmem(decoded.data, decoded.len, secrets[i] + k, 4));
				buf_free(&decoded);
				buf_free(&out);
				buf_free(&in);
			}
		}
		scan_set_free(set);
	}
}

/* ---- property: any secret, any composition ---- */

static void random_secret(char *out, size_t max)
{
	size_t len = SECRET_VALUE_MIN + random_below((unsigned)max - SECRET_VALUE_MIN - 1);
	bool tame = random_below(2);
	for (size_t i = 0; i < len; i++)
		out[i] = tame ? URL64[random_below(64)] : (char)(0x21 + random_below(0x7e - 0x20));
	out[len] = '\0';
}

static void random_text(struct buf *b, size_t max)
{
	static const char *const words[] = { "{\"a\": ", "the ", "%20", "\\n", "&amp;", "=3D", "\r\n", "QUJD", "0x4", "deadbeef", "<a href=\"x?y=1&z\">", "\\u00e9", "é",
		"=", "\\\\", "b", "%2", "&#" };
	for (size_t n = random_below((unsigned)max); n > 0; n--)
		put(b, words[random_below(ARRAY_LEN(words))]);
	put(b, " \"");
}

/* Some that make sense one over the other, up to three. */
static void random_layers(struct buf *spelled)
{
	static const enum layer outer[] = { PERCENT_ALL, PERCENT_SOME, JSON_ALL, JSON_SOME, JSON_PLAIN, HTML_ALL, HTML_HEX, HTML_SOME };
	static const enum layer third[] = { PERCENT_ALL, JSON_PLAIN }; /* as programs do it: not here and there */
	static const enum layer last[] = { UTF16LE, UTF16BE, FOLD_CRLF, QUOTED_SOFT };
	unsigned n = random_below(4);
	for (unsigned i = 0; i < n; i++)
		spell_layer(spelled, i < 2 ? outer[random_below(ARRAY_LEN(outer))] : third[random_below(ARRAY_LEN(third))]);
	if (n < 2 && random_below(4) == 0)
		spell_layer(spelled, last[random_below(ARRAY_LEN(last))]);
}

static void test_compositions(void **state)
{
	random_state = 20261130;
	for (unsigned round = 0; round < 4000; round++) {
		char secret[64];
		random_secret(secret, 40);
		struct scan_set *set = make_one(secret);
		struct buf spelled, in, out, cut;
		struct found f;
		buf_init(&spelled, OUT_MAX);
		buf_init(&in, OUT_MAX);
		spell_inner(&spelled, (enum inner)random_below(INNERS), &"user:"[random_below(6)], secret);
		random_layers(&spelled);
		random_text(&in, 20);
		surround(&in, &spelled, "", "\" ");
		random_text(&in, 20);
		scrub(set, &in, in.len, in.len, &out, &f);
		if (f.n == 0)
			fail_msg("round %u: %s was not found in: %.*s", round, secret, (int)in.len, (const char *)in.data);
		if (reveals(out.data, out.len, secret, round % 32 == 0 ? 3 : 1))
			fail_msg("round %u: %s is still there: %.*s", round, secret, (int)out.len, (const char *)out.data);
		scrub(set, &in, 1 + random_below(50), 1 + random_below(20), &cut, &f);
		assert_same(&out, &cut);
		buf_free(&cut);
		buf_free(&out);
		buf_free(&in);
		buf_free(&spelled);
		scan_set_free(set);
	}
}

/* ---- nothing else is changed ---- */

static void expect_unchanged(struct scan_set *set, const struct buf *in)
{
	struct buf out;
	struct found f;
	scrub(set, in, 1 + random_below(64), 1 + random_below(64), &out, &f);
	if (f.n > 0)
		fail_msg("found %s in: %.*s", f.spelling, (int)f.len, (const char *)in->data + f.offset);
	assert_same(in, &out);
	buf_free(&out);
}

static void test_clean_streams(void **state)
{
	struct scan_set *set = make_set(secrets, ARRAY_LEN(secrets));
	random_state = 7;
	for (unsigned round = 0; round < 300; round++) {
		struct buf in;
		buf_init(&in, OUT_MAX);
		if (round % 2)
			random_text(&in, 400);
		else
			for (unsigned n = random_below(3000); n > 0; n--)
				buf_put_u8(&in, (uint8_t)random_below(256));
		expect_unchanged(set, &in);
		buf_free(&in);
	}
	scan_set_free(set);
}

/* One character off, one short, a longer one in two halves: not the secret. */
static void test_near_misses(void **state)
{
	random_state = 11;
	for (size_t i = 0; i < ARRAY_LEN(secrets); i++) {
		struct scan_set *set = make_one(secrets[i]);
		size_t len = strlen(secrets[i]);
		for (size_t at = 0; at < len; at++)
			for (unsigned inner = 0; inner < INNERS; inner++) {
				char changed[128];
				strcpy(changed, secrets[i]);
				/* Another byte in all of its bits that a spelling could leave out. */
				changed[at] = changed[at] == 'j' ? 'u' : 'j';
				if (inner >= IN_BASE64 && inner <= IN_BASE32_LOWER && (at == 0 || at == len - 1))
					continue; /* of these some bits are not certain, and not asked for */
				struct buf in;
				buf_init(&in, OUT_MAX);
				spell_inner(&in, (enum inner)inner, "u:", changed);
				put(&in, " ");
				buf_append(&in, secrets[i], len - 1);
				put(&in, ". ");
				buf_append(&in, secrets[i] + 1, len - 1);
				expect_unchanged(set, &in);
				buf_free(&in);
			}
		scan_set_free(set);
	}
}

/* ---- what is held back ---- */

struct prefixes {
	const uint8_t *text;
	size_t len, longest;
};

/* The longest end of the text that a pattern begins with. */
static void longest_end(void *ctx, const struct pattern *p)
{
	struct prefixes *l = ctx;
	bool fold = pattern_group(p) != GROUP_EXACT;
	for (size_t n = p->len - 1 < l->len ? p->len - 1 : l->len; n > l->longest; n--) {
		const uint8_t *end = l->text + l->len - n;
		bool same = true;
		for (size_t i = 0; same && i < n; i++)
			same = (fold ? tolower(end[i]) : end[i]) == p->text[i];
		if (same)
			l->longest = n;
	}
}

static size_t expected_hold(const char *const *needles, size_t n, const uint8_t *text, size_t len)
{
	static uint8_t scratch[4096];
	struct prefixes l = { text, len, 0 };
	for (size_t i = 0; i < n; i++)
		patterns_each((const uint8_t *)needles[i], strlen(needles[i]), scratch, longest_end, &l);
	return l.longest;
}

/* Text out of pieces of the patterns themselves, byte by byte: at each moment exactly the longest live beginning is held. */
static void test_hold(void **state)
{
	static const char *const needles[] = { "abcabcabcabd", "aaaaaaaaab", "Zq9_zzZq9_zw", "cababcababx" };
	struct scan_set *set = make_set(needles, ARRAY_LEN(needles));
	size_t compared = 0, held = 0;
	random_state = 5;
	for (unsigned round = 0; round < 300; round++) {
		struct found f = { 0 };
		struct scan_stream *st = scan_stream_new(set, on_found, &f);
		struct buf in, out;
		buf_init(&in, OUT_MAX);
		buf_init(&out, OUT_MAX);
		for (unsigned n = 0; n < 30; n++) {
			struct buf spelled;
			buf_init(&spelled, OUT_MAX);
			spell_inner(&spelled, (enum inner)random_below(IN_HEX_COLONS), &"us"[random_below(3)], needles[random_below(ARRAY_LEN(needles))]);
			/* No whole one, nor padding, which begins an escape. */
			size_t len = random_below((unsigned)(spelled.len * 2 / 3));
			for (size_t i = 0; i < len && spelled.data[i] != '='; i++)
				buf_put_u8(&in, spelled.data[i]);
			buf_free(&spelled);
		}
		for (size_t i = 0; i < in.len; i++) {
			assert_int_equal(scan_scrub(st, in.data + i, 1, &out), 0);
			if (f.n > 0)
				break; /* a whole one came about */
			size_t want = expected_hold(needles, ARRAY_LEN(needles), in.data, i + 1);
			compared++;
			held += want > 0;
			if (scan_held(st) != want)
				fail_msg("held %zu instead of %zu after: %.*s", scan_held(st), want, (int)(i + 1), (const char *)in.data);
		}
		buf_free(&out);
		buf_free(&in);
		scan_stream_free(st);
	}
	assert_true(compared > 10000);
	assert_true(held > compared / 4);
	scan_set_free(set);
}

/* An event that ends with its line is with the reader at once. */
static void test_events_pass(void **state)
{
	struct scan_set *set = make_set(secrets, ARRAY_LEN(secrets));
	struct scan_stream *st = scan_stream_new(set, NULL, NULL);
	static const char *const events[] = { "data: {\"delta\": \"hello\"}\n\n", ": keep-alive\n\n", "event: x\r\ndata: 50%\r\n\r\n", "data: &amp; = \\ % \n\n", "$ " };
	struct buf out;
	buf_init(&out, OUT_MAX);
	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		buf_clear(&out);
		assert_int_equal(scan_scrub(st, events[i], strlen(events[i]), &out), 0);
		assert_int_equal(scan_held(st), 0);
		assert_int_equal(out.len, strlen(events[i]));
	}
	buf_free(&out);
	scan_stream_free(st);
	scan_set_free(set);
}

/* Incomplete escapes wait, complete ones that lead nowhere don't. */
static void test_escapes_wait(void **state)
{
	static const struct { const char *text; size_t held; } cases[] = {
		{ "x%", 1 }, { "x%6", 2 }, { "x%67", 3 }, { "x%67h", 4 }, { "x%40", 0 }, { "x%!!", 0 }, { "x\\", 1 }, { "x\\u006", 5 }, { "x\\u0067", 6 }, { "x\\u0040", 0 },
		{ "x&#103;", 6 }, { "x&#64;", 0 }, { "xg", 1 }, { "xg@", 0 }, { "xg\r\n", 3 }, { "xg\r\n\n", 0 }, { "xg\n  ", 4 }, { "xg\r\n @", 0 }, { "x=67", 3 },
		{ "x=6@", 0 }, { "xgh\\n", 4 }, { "x%\n", 2 }, { "x%\n\n", 0 }, { "x%6\r\n\r", 0 },
	};
	struct scan_set *set = make_one("gh!!!!!!!!!!");
	struct buf out;
	buf_init(&out, OUT_MAX);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct scan_stream *st = scan_stream_new(set, NULL, NULL);
		assert_int_equal(scan_scrub(st, cases[i].text, strlen(cases[i].text), &out), 0);
		if (scan_held(st) != cases[i].held)
			fail_msg("after %s %zu bytes are held, not %zu", cases[i].text, scan_held(st), cases[i].held);
		scan_stream_free(st);
	}
	buf_free(&out);
	scan_set_free(set);
}

/* ---- several ---- */

static void expect_scrubbed(const char *const *needles, size_t n, const char *in, const char *want, unsigned finds)
{
	struct scan_set *set = make_set(needles, n);
	char text[512];
	struct found f = { 0 };
	snprintf(text, sizeof(text), "%s", in);
	unsigned n_found = scan_text(set, text, strlen(text), false, on_found, &f);
	if (n_found != finds)
		fail_msg("%u finds, not %u, in: %s", n_found, finds, in);
	assert_string_equal(text, in);
	f = (struct found){ 0 };
	assert_int_equal(scan_text(set, text, strlen(text), true, on_found, &f), finds);
	assert_string_equal(text, want);
	assert_int_equal(f.n, finds);
	struct buf b = { .data = (uint8_t *)(uintptr_t)in, .len = strlen(in) }, out;
	for (size_t first = 1; first < b.len; first++) {
		scrub(set, &b, first, 1, &out, &f);
		assert_int_equal(f.n, finds);
		assert_memory_equal(out.data, want, out.len);
		buf_free(&out);
	}
	scan_set_free(set);
}

static void test_several(void **state)
{
	static const char *const overlapping[] = { "abcdefgh12", "12345678zz" };
	expect_scrubbed(overlapping, 2, "<abcdefgh12345678zz>", "<XXXXXXXXXXXXXXXXXX>", 2);
	expect_scrubbed(overlapping, 2, "<abcdefgh12345678zy>", "<XXXXXXXXXX345678zy>", 1);
	static const char *const nested[] = { "abcdefghijkl", "cdefghij", "abcdefgh" };
	expect_scrubbed(nested, 3, "-abcdefghijkl-", "-XXXXXXXXXXXX-", 2);
	expect_scrubbed(nested, 3, "-abcdefghij-", "-XXXXXXXXXX-", 2);
	expect_scrubbed(nested, 3, "abcdefgh", "XXXXXXXX", 1);
	static const char *const repeated[] = { "xyxyxyxy" };
	expect_scrubbed(repeated, 1, "xyxyxyxyxyxy!", "XXXXXXXXXXXX!", 3);
	expect_scrubbed(repeated, 1, "%78yxyxyxy", "%58XXXXXXX", 1);
}

/* What takes its place is as long and as valid as it was. */
static void test_replacement(void **state)
{
	static const char *const needle[] = { "Ab/+ <&\\9" };
	expect_scrubbed(needle, 1, "[Ab/+ <&\\9]", "[XXXXXXXXX]", 1);
	expect_scrubbed(needle, 1, "Ab%2f%2B+%3c%26%5C9", "XX%58%58X%58%58%58X", 1);
	expect_scrubbed(needle, 1, "Ab%252f%252B%2520%253c%2526%255C9", "XX%2558%2558%2558%2558%2558%2558X", 1);
	expect_scrubbed(needle, 1, "\"Ab\\/+ \\u003c&\\\\9\"", "\"XXXXXX\\u0058XXXX\"", 1);
	expect_scrubbed(needle, 1, "Ab/+ &lt;&amp;\\9", "XXXXXXXXXXXXXXXX", 1);
	expect_scrubbed(needle, 1, "Ab&#47;&plus;&#x20;&#060;&amp;&#92;9", "XX&#88;XXXXXX&#x58;&#088;XXXXX&#88;X", 1);
	expect_scrubbed(needle, 1, "=41b/=\r\n+ <&\\9", "=58XX=\r\nXXXXXX", 1);
	expect_scrubbed(needle, 1, "41:62:2f:2B:20:3c:26:5c:39", "58:58:58:58:58:58:58:58:58", 1);
}

/* ---- limits and lives ---- */

static void test_limits(void **state)
{
	struct scan_set *s = scan_set_new();
	struct err err;
	static char value[SECRET_VALUE_MAX + 1];
	memset(value, 'v', sizeof(value));
	assert_int_equal(scan_set_add(s, 0, "1234567", 7, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(scan_set_add(s, 0, value, sizeof(value), &err), -1);
	for (unsigned i = 0; i < SCAN_NEEDLES_MAX; i++) {
		snprintf(value, sizeof(value), "needle-%04u", i);
		assert_int_equal(scan_set_add(s, i, value, strlen(value), &err), 0);
	}
	assert_int_equal(scan_set_add(s, 0, "12345678", 8, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_int_equal(scan_set_needles(s), SCAN_NEEDLES_MAX);
	assert_int_equal(scan_set_compile(s, &err), 0);
	assert_int_equal(scan_set_add(s, 0, "12345678", 8, &err), -1);
	for (unsigned i = 0; i < SCAN_NEEDLES_MAX; i++) {
		char text[32];
		struct found f = { 0 };
		snprintf(text, sizeof(text), "<needle-%04u>", i);
		assert_int_equal(scan_text(s, text, strlen(text), true, on_found, &f), 1);
		assert_int_equal(f.ids[0], i);
		assert_string_equal(text, "<XXXXXXXXXXX>");
	}
	scan_set_free(s);
	assert_null(scan_set_free(NULL));
	assert_null(scan_stream_free(NULL));
}

static void test_empty_set(void **state)
{
	struct scan_set *s = make_set(NULL, 0);
	struct buf in = { .data = (uint8_t *)(uintptr_t)"a\\u0041%41", .len = 10 };
	expect_unchanged(s, &in);
	scan_set_free(s);
}

/* A stream outlives its owner's reference; the longest needle in its longest spelling is found. */
static void test_longest(void **state)
{
	static char value[SECRET_VALUE_MAX + 1];
	random_state = 3;
	for (size_t i = 0; i < SECRET_VALUE_MAX; i++)
		value[i] = STD64[random_below(64)];
	struct scan_set *set = make_one(value);
	struct found f = { 0 };
	struct buf in, out;
	buf_init(&in, OUT_MAX);
	buf_init(&out, OUT_MAX);
	put(&in, "begin ");
	spell_hex(&in, (const uint8_t *)value, SECRET_VALUE_MAX, "x", "");
	spell_layer(&in, PERCENT_ALL);
	struct scan_stream *st = scan_stream_new(set, on_found, &f);
	assert_null(scan_set_free(set));
	for (size_t at = 0; at < in.len; at += 1000)
		assert_int_equal(scan_scrub(st, in.data + at, in.len - at < 1000 ? in.len - at : 1000, &out), 0);
	assert_int_equal(scan_scrub_end(st, &out), 0);
	assert_int_equal(f.n, 1);
	assert_string_equal(f.spelling, "hex");
	assert_int_equal(out.len, in.len);
	scan_stream_free(st);
	buf_free(&in);
	buf_free(&out);
}

/* An endless beginning is not kept for ever. */
static void test_hold_is_bounded(void **state)
{
	enum { LENGTH = 512, GAPS = 8 };
	static char value[LENGTH + 1], piece[4096];
	memset(value, 'a', LENGTH - 1);
	value[LENGTH - 1] = 'b';
	struct scan_set *set = make_one(value);
	struct scan_stream *st = scan_stream_new(set, NULL, NULL);
	struct buf out;
	size_t given = 0;
	buf_init(&out, OUT_MAX);
	/* Each letter followed by as many gaps as are allowed. */
	for (unsigned i = 0; i < sizeof(piece); i++)
		piece[i] = i % GAPS == 0 ? 'a' : i % GAPS == 1 ? '\n' : ' ';
	for (unsigned i = 0; i < 66; i++) {
		buf_clear(&out);
		assert_int_equal(scan_scrub(st, piece, sizeof(piece), &out), 0);
		given += out.len;
		assert_true(scan_held(st) <= LENGTH * GAPS + sizeof(piece));
	}
	assert_int_equal(scan_scrub_end(st, &out), 0);
	assert_true(given > 0);
	buf_free(&out);
	scan_stream_free(st);
	scan_set_free(set);
}

/* No room: said, not swallowed. */
static void test_no_room(void **state)
{
	struct scan_set *set = make_one("12345678");
	struct scan_stream *st = scan_stream_new(set, NULL, NULL);
	struct buf out;
	buf_init(&out, 4);
	assert_int_equal(scan_scrub(st, "hello", 5, &out), -1);
	buf_free(&out);
	scan_stream_free(st);
	scan_set_free(set);
}

/* Looking finds the same and keeps nothing to itself. */
static void test_look(void **state)
{
	struct scan_set *set = make_set(secrets, ARRAY_LEN(secrets));
	struct found f = { 0 };
	struct scan_stream *st = scan_stream_new(set, on_found, &f);
	char text[] = "x: bulkhead-github-0Ab1Cd2Ef3Gh4Ij5; y: ghp_aB3xY%39kQ";
	for (size_t i = 0; i < strlen(text); i++)
		scan_look(st, text + i, 1);
	scan_look_end(st);
	assert_int_equal(f.n, 2);
	assert_int_equal(f.ids[0], 4);
	assert_int_equal(f.ids[1], 0);
	assert_int_equal(f.offset, 3);
	scan_stream_free(st);
	scan_set_free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spellings), cmocka_unit_test(test_basic), cmocka_unit_test(test_compositions), cmocka_unit_test(test_clean_streams),
		cmocka_unit_test(test_near_misses), cmocka_unit_test(test_hold), cmocka_unit_test(test_events_pass), cmocka_unit_test(test_escapes_wait),
		cmocka_unit_test(test_several), cmocka_unit_test(test_replacement), cmocka_unit_test(test_limits), cmocka_unit_test(test_empty_set),
		cmocka_unit_test(test_longest), cmocka_unit_test(test_hold_is_bounded), cmocka_unit_test(test_no_room), cmocka_unit_test(test_look),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
