/* SPDX-License-Identifier: Apache-2.0 */
/* Paths: each spelling that some server reads in its own way, what becomes of the others, and what must hold for all. */
#include <stdlib.h>

#include "policy-help.h"
#include "policy/request.h"

static struct request_path out;

/* NULL: ambiguous. Without `path`: kept as it is. */
struct spelling { const char *target, *path, *query; };

static const struct spelling plain[] = {
	{ "/", "/", "" },
	{ "/a", "/a", "" },
	{ "/a/", "/a/", "" },
	{ "/a/b/c", "/a/b/c", "" },
	{ "/A/b", "/A/b", "" },
	{ "/a.b", "/a.b", "" },
	{ "/a..b", "/a..b", "" },
	{ "/a...b", "/a...b", "" },
	{ "/.a", "/.a", "" },
	{ "/..a", "/..a", "" },
	{ "/a.", "/a.", "" },
	{ "/a..", "/a..", "" },
	{ "/.well-known/x", "/.well-known/x", "" },
	{ "/.git/config", "/.git/config", "" },
	{ "/compare/v1...v2", "/compare/v1...v2", "" },
	{ "/a%20b", "/a%20b", "" },
	{ "/a+b", "/a+b", "" },
	{ "/+", "/+", "" },
	{ "/a%2Bb", "/a%2Bb", "" },
	{ "/a%2bb", "/a%2Bb", "" },
	{ "/%41", "/A", "" },
	{ "/%7euser", "/~user", "" },
	{ "/%7Euser", "/~user", "" },
	{ "/~user", "/~user", "" },
	{ "/a%2Db%5Fc", "/a-b_c", "" },
	{ "/%61%62%63", "/abc", "" },
	{ "/x%2ey", "/x.y", "" },
	{ "/x%2Ey", "/x.y", "" },
	{ "/v%2e%2e", "/v..", "" },
	{ "/@scope/name", "/@scope/name", "" },
	{ "/%40scope/name", "/%40scope/name", "" },
	{ "/a:b", "/a:b", "" },
	{ "/a%3ab", "/a%3Ab", "" },
	{ "/a,b", "/a,b", "" },
	{ "/a=b", "/a=b", "" },
	{ "/a!$&'()*b", "/a!$&'()*b", "" },
	{ "/%24batch", "/%24batch", "" },
	{ "/$batch", "/$batch", "" },
	{ "/100%25", "/100%25", "" },
	{ "/100%25-x", "/100%25-x", "" },
	{ "/%25zz", "/%25zz", "" },
	{ "/what%3F", "/what%3F", "" },
	{ "/what%3f", "/what%3F", "" },
	{ "/C%23", "/C%23", "" },
	{ "/a<b>", "/a%3Cb%3E", "" },
	{ "/a\"b", "/a%22b", "" },
	{ "/[id]", "/%5Bid%5D", "" },
	{ "/%5Bid%5d", "/%5Bid%5D", "" },
	{ "/{id}", "/%7Bid%7D", "" },
	{ "/a|b^c`d", "/a%7Cb%5Ec%60d", "" },
	{ "/caf\xc3\xa9", "/caf%C3%A9", "" },
	{ "/caf%c3%a9", "/caf%C3%A9", "" },
	{ "/\xe6\x97\xa5\xe6\x9c\xac", "/%E6%97%A5%E6%9C%AC", "" },
	{ "/\xf0\x9f\x98\x80", "/%F0%9F%98%80", "" },
	{ "/a%C2%A0b", "/a%C2%A0b", "" },
	{ "*", "*", "" },
	/* queries are kept */
	{ "/a?b=c", "/a", "b=c" },
	{ "/a?", "/a", "" },
	{ "/a?b?c", "/a", "b?c" },
	{ "/a?../..", "/a", "../.." },
	{ "/a?x=%2e%2e%2f", "/a", "x=%2e%2e%2f" },
	{ "/a?x=1;y=2", "/a", "x=1;y=2" },
	{ "/a?x=100%", "/a", "x=100%" },
	{ "/a?x=//", "/a", "x=//" },
	{ "/a?x=\\", "/a", "x=\\" },
	{ "/a?x=\xc3\xa9", "/a", "x=%C3%A9" },
	{ "/a?x=\xff", "/a", "x=%FF" },
	{ "/a?%00", "/a", "%00" },
};

static const char *const ambiguous[] = {
	/* not a path */
	"", "a", "a/b", "?x", "http://h/", "//h/", "h:80", "**", "*/", "/*\x01", "\\a",
	/* dot segments */
	"/.", "/..", "/./", "/../", "/a/.", "/a/..", "/a/./b", "/a/../b", "/a/../../b", "/../a", "/./a", "/...", "/a/.../b", "/....",
	"/%2e", "/%2E", "/%2e/", "/a/%2e/b", "/%2e%2e", "/%2E%2E/", "/%2e%2E/a", "/.%2e/a", "/%2e./a", "/a/%2e%2e/%2e%2e/b", "/a/.%2e", "/a/%2e%2e?x",
	/* … with what some strip */
	"/a/..%20/b", "/a/.%20/b", "/a/..%20%20/b", "/a/%20../b", "/a/.%20./b", "/a/..+/b", "/a/.+./b", "/a/%20/b", "/a/%20",
	"/a/..%c2%a0/b", "/a/..%e2%80%8b/b", "/a/.%e2%80%8d./b", "/a/..%ef%bb%bf/b", "/a/..%e3%80%80/b",
	/* … that look like them */
	"/a/%ef%bc%8e%ef%bc%8e/b", "/a/\xef\xbc\x8e\xef\xbc\x8e/b", "/a/%e2%80%a5/b", "/a/%e2%80%a6/b", "/a/%e2%80%a4%e2%80%a4/b", "/a/.%ef%bc%8e/b",
	"/a/%ef%b9%92%ef%b9%92/b", "/a/%ef%b8%b0/b", "/a/%e3%80%82%e3%80%82/b",
	/* double and triple encoding */
	"/%252e", "/%252e%252e/", "/a/%252e%252e/b", "/%25%32%65", "/%25%32%65%25%32%65/", "/%2525", "/%25252e%25252e", "/a%252fb", "/a%255cb", "/%2541",
	"/a%253fb", "/a%2523b", "/a%253bb", "/%25%34%31", "/a%2500", "/a%252F..", "/%25u002e", "/%25U002E", "/a/%25%75002e", "/%25c0%25ae",
	/* not well encoded */
	"/%", "/a%", "/%2", "/%g0", "/%0g", "/%%32%65", "/%u002e", "/%u002e%u002e/", "/%U002E", "/%u2215", "/a% 20", "/%-1", "/%+f", "/%x2e", "/%2%65",
	/* slashes */
	"//", "//a", "/a//b", "/a//", "///", "/a%2fb", "/a%2Fb", "/%2f", "/%2Fa", "/a%2f%2e%2e%2fb", "/..%2fa", "/%2e%2e%2fa", "/a/%2F/b",
	"/a%ef%bc%8fb", "/a\xef\xbc\x8f" "b", "/a%e2%88%95b", "/a%e2%81%84b", "/a%e2%84%80",
	/* backslashes */
	"/a\\b", "/\\", "/..\\a", "/a\\..\\b", "/%5c", "/%5C", "/..%5ca", "/a%5c..%5cb", "/a%ef%bc%bcb", "/a%ef%b9%a8b", "/a%c2%a5b", "/a%e2%88%96b",
	/* parameters */
	"/;", "/a;b", "/a;", "/..;/a", "/a/..;/b", "/a/..;x=y/b", "/.;/a", "/a;jsessionid=1/b", "/%3b", "/a%3Bb", "/..%3b/a", "/a%ef%bc%9bb", "/a%cd%beb",
	/* controls, blanks, fragments */
	"/a b", "/ ", " /a", "/a\tb", "/a\nb", "/a\rb", "/a\x01", "/a\x7f", "/%00", "/a%00b", "/a%00.js", "/%01", "/%09", "/%0a", "/%0d%0aX:y", "/%1f", "/%7f",
	"/..%00/", "/..%0d/", "/..%09/b", "/a#b", "/#", "/a?b#c", "/a?b c", "/a?b\x01", "/a?b\nc", "/a%c2%85b", "/a%c2%80",
	/* not UTF-8: overlong, cut, surrogates, beyond */
	"/%c0%ae", "/%c0%ae%c0%ae/", "/%c0%af", "/a%c0%afb", "/%c1%9c", "/%e0%80%ae", "/%e0%80%af", "/%f0%80%80%ae", "/%f8%80%80%80%ae", "/%fc%80%80%80%80%ae",
	"/%ff", "/%fe", "/%80", "/%c3", "/%c3%28", "/%e2%88", "/%ed%a0%80", "/%f4%90%80%80", "/\xff", "/\xc0\xae\xc0\xae/", "/a\xc3", "/%c3\xa9\xff",
	/* too many ways to end */
	"/%3f%3f%3f%3f%3f%3f%3f%3f%3f",
};

static enum reason parse(const char *target)
{
	return request_path_parse(target, strlen(target), false, &out);
}

static void plain_spellings_are_normalised(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
		if (parse(plain[i].target) != REASON_NONE)
			fail_msg("refused: %s", plain[i].target);
		if (!str_eq(out.path, plain[i].path) || !str_eq(out.query, plain[i].query))
			fail_msg("%s -> %s ? %s", plain[i].target, out.path, out.query);
		assert_int_equal(out.has_query, strchr(plain[i].target, '?') != NULL);
	}
}

static void ambiguous_spellings_are_refused(void **state)
{
	assert_true(ARRAY_LEN(ambiguous) + ARRAY_LEN(plain) >= 250);
	for (size_t i = 0; i < ARRAY_LEN(ambiguous); i++) {
		if (parse(ambiguous[i]) != REASON_PATH_AMBIGUOUS)
			fail_msg("accepted: \"%s\" -> %s", ambiguous[i], out.path);
		assert_string_equal(out.path, "");
		assert_string_equal(out.query, "");
		assert_false(out.has_query);
	}
	/* a NUL itself */
	assert_int_equal(request_path_parse("/a\0b", 4, false, &out), REASON_PATH_AMBIGUOUS);
	assert_int_equal(request_path_parse("/a?\0b", 5, false, &out), REASON_PATH_AMBIGUOUS);
	assert_int_equal(request_path_raw("/a\0b", 4, &out), REASON_PATH_AMBIGUOUS);
	/* only what is in the length counts */
	assert_int_equal(request_path_parse("/a%2ex", 4, false, &out), REASON_PATH_AMBIGUOUS);
	assert_int_equal(request_path_parse("/ab/../c", 3, false, &out), REASON_NONE);
	assert_string_equal(out.path, "/ab");
}

static void an_encoded_slash_only_where_it_is_needed(void **state)
{
	static const char *const bad[] = { "/@a%2f..", "/@a%2f..%2fb", "/..%2fa", "/@a%2f%2fb", "/%2fa", "/@a%2f/b", "/@a%252fb", "/@a%5cb", "/@a%2f%2e%2e", "/@a%2f.%20" };
	assert_int_equal(request_path_parse("/@scope%2fname", 14, true, &out), REASON_NONE);
	assert_string_equal(out.path, "/@scope%2Fname");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (request_path_parse(bad[i], strlen(bad[i]), true, &out) != REASON_PATH_AMBIGUOUS)
			fail_msg("accepted: %s -> %s", bad[i], out.path);
}

static void lengths(void **state)
{
	size_t len = REQUEST_PATH_MAX + 1;
	char *long_one = mem_alloc(len + 1);
	memset(long_one, 'a', len);
	long_one[0] = '/';
	assert_int_equal(request_path_parse(long_one, len, false, &out), REASON_PATH_AMBIGUOUS);
	assert_int_equal(request_path_raw(long_one, len, &out), REASON_PATH_AMBIGUOUS);
	assert_int_equal(request_path_parse(long_one, len - 1, false, &out), REASON_NONE);
	assert_int_equal(strlen(out.path), REQUEST_PATH_MAX);
	memset(long_one + 1, '<', len - 1); /* three times as long when encoded */
	assert_int_equal(request_path_parse(long_one, len - 1, false, &out), REASON_PATH_AMBIGUOUS);
	long_one[1] = '?';
	memset(long_one + 2, 0xff, len - 2);
	assert_int_equal(request_path_parse(long_one, len - 1, false, &out), REASON_PATH_AMBIGUOUS);
	mem_free(long_one);
}

/* Rules that don't judge the path pass it on as it came. */
static void raw_is_kept(void **state)
{
	static const struct spelling kept[] = { { "/a%2fb//c;d/../%zz\\", "/a%2fb//c;d/../%zz\\", "" }, { "/a%7e?b%7e", "/a%7e", "b%7e" }, { "*", "*", "" },
		{ "/\xff", "/%FF", "" } };
	static const char *const bad[] = { "", "a", "http://x/", "/a b", "/a#b", "/a\r", "/a\x7f", "/a?b c", "*a" };
	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		assert_int_equal(request_path_raw(kept[i].target, strlen(kept[i].target), &out), REASON_NONE);
		assert_string_equal(out.path, kept[i].path);
		assert_string_equal(out.query, kept[i].query);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(request_path_raw(bad[i], strlen(bad[i]), &out), REASON_PATH_AMBIGUOUS);
}

/* ---- properties, over very many paths made of the parts that matter ---- */

static const char *const parts[] = { "/", "/", "a", "b", ".", "..", "%2e", "%2E", "%25", "%32", "%65", "2e", "2f", "5c", "%2f", "%5c", "%3b", "%20", "+", "%c0%ae",
	"%ef%bc%8e", "%e2%80%8b", "%41", "%7e", "@", "%40", "*", "%2a", "%3f", "%23", "?", "x=", "~", "%", "u002e", "\xc3\xa9", "%C3%A9", "[", "<", ":", "%3A", "$", ";" };

static size_t random_target(char *target, size_t room)
{
	size_t n = 1;
	target[0] = '/';
	for (unsigned k = (unsigned)rand() % 9; k > 0; k--) {
		const char *part = parts[(unsigned)rand() % ARRAY_LEN(parts)];
		if (n + strlen(part) >= room)
			break;
		memcpy(target + n, part, strlen(part));
		n += strlen(part);
	}
	target[n] = '\0';
	return n;
}

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* As a careless server: what can be decoded is, the rest stays. */
static void decode_once(char *s)
{
	char *w = s;
	for (const char *p = s; *p; w++) {
		if (*p == '%' && hex(p[1]) >= 0 && hex(p[2]) >= 0) {
			*w = (char)(hex(p[1]) << 4 | hex(p[2]));
			p += 3;
		} else {
			*w = *p++;
		}
	}
	*w = '\0';
}

static bool has_dot_segment(const char *path)
{
	for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		size_t n = strcspn(p + 1, "/\\;");
		if ((n == 1 && p[1] == '.') || (n == 2 && p[1] == '.' && p[2] == '.'))
			return true;
	}
	return false;
}

static void normal_paths_stay_and_lead_nowhere_else(void **state)
{
	unsigned accepted = 0;
	static char target[128], decoded[3 * REQUEST_PATH_MAX];
	struct request_path first;
	srand(1);
	for (unsigned i = 0; i < 300000; i++) {
		size_t n = random_target(target, sizeof(target));
		if (request_path_parse(target, n, false, &first) != REASON_NONE)
			continue;
		accepted++;
		snprintf(decoded, sizeof(decoded), "%s%s%s", first.path, first.has_query ? "?" : "", first.query);
		if (request_path_parse(decoded, strlen(decoded), false, &out) != REASON_NONE || !str_eq(out.path, first.path) || !str_eq(out.query, first.query))
			fail_msg("not the same a second time: %s -> %s -> %s", target, first.path, out.path);
		snprintf(decoded, sizeof(decoded), "%s", first.path);
		unsigned slashes = 0, seen = 0;
		for (const char *p = decoded; *p; p++)
			slashes += *p == '/';
		for (unsigned k = 0; k < 4; k++, decode_once(decoded))
			if (has_dot_segment(decoded))
				fail_msg("%s -> %s has a dot segment when decoded %u times", target, first.path, k);
		for (const char *p = decoded; *p; p++)
			seen += *p == '/';
		assert_int_equal(slashes, seen);
	}
	assert_true(accepted > 50000);
}

static void encoding_a_byte_opens_nothing(void **state)
{
	static const char *const patterns[] = { "/a", "/a/*", "/*/b", "/**/b", "/a@b", "/a%40b", "/~*", "/b/**", "/%2A", "/a:*", "/*$" };
	static char target[128], again[REQUEST_PATH_MAX + 8];
	struct request_path first;
	unsigned tried = 0;
	srand(2);
	for (unsigned i = 0; i < 60000; i++) {
		size_t n = random_target(target, sizeof(target));
		if (strchr(target, '?') || request_path_parse(target, n, false, &first) != REASON_NONE)
			continue;
		size_t len = strlen(first.path), at = (unsigned)rand() % len;
		if (first.path[at] == '%' || (at > 0 && first.path[at - 1] == '%') || (at > 1 && first.path[at - 2] == '%'))
			continue;
		snprintf(again, sizeof(again), "%.*s%%%02x%s", (int)at, first.path, (unsigned char)first.path[at], first.path + at + 1);
		bool ok = request_path_parse(again, strlen(again), false, &out) == REASON_NONE;
		tried += ok;
		for (size_t k = 0; ok && k < ARRAY_LEN(patterns); k++)
			if (path_glob_match(patterns[k], first.path) != path_glob_match(patterns[k], out.path))
				fail_msg("%s: %s and %s", patterns[k], first.path, out.path);
	}
	assert_true(tried > 5000);
}

/* ---- patterns ---- */

static void globs(void **state)
{
	static const struct { const char *pattern, *path; bool match; } cases[] = {
		{ "/", "/", true }, { "/", "/a", false }, { "/a", "/a", true }, { "/a", "/a/", false }, { "/a/", "/a/", true }, { "/a/", "/a", false },
		{ "/a", "/A", false }, { "/a", "/ab", false }, { "/ab", "/a", false },
		{ "/*", "/a", true }, { "/*", "/", false }, { "/*", "/a/b", false }, { "/a/*", "/a/b", true }, { "/a/*", "/a/", false }, { "/a/*", "/a", false },
		{ "/a/*", "/a/b/c", false }, { "/*/c", "/b/c", true }, { "/*/c", "/a/b/c", false }, { "/a*", "/a", true }, { "/a*", "/abc", true }, { "/a*", "/a/b", false },
		{ "/*.js", "/x.js", true }, { "/*.js", "/x.js.map", false }, { "/a*b*c", "/aXbYc", true }, { "/a*b*c", "/abbc", true }, { "/a*b*c", "/acb", false },
		{ "/**", "/", true }, { "/**", "/a", true }, { "/**", "/a/b/", true }, { "/a/**", "/a", true }, { "/a/**", "/a/", true }, { "/a/**", "/a/b/c", true },
		{ "/a/**", "/ab", false }, { "/a/**", "/b/a", false }, { "/**/c", "/c", true }, { "/**/c", "/a/b/c", true }, { "/**/c", "/a/c/b", false },
		{ "/a/**/c", "/a/c", true }, { "/a/**/c", "/a/b/b/c", true }, { "/a/**/c/d", "/a/c/x/c/d", true }, { "/a/**/b/**/c", "/a/x/b/y/c", true },
		{ "/a/**/b/**/c", "/a/x/y/c", false }, { "/**/**", "/a", true }, { "/repos/acme/**", "/repos/acmeevil/x", false },
		/* one byte, two spellings */
		{ "/@a/*", "/%40a/b", true }, { "/%40a/*", "/@a/b", true }, { "/a%20b", "/a%20b", true }, { "/%2A", "/*", true }, { "/%2A", "/a", false },
		{ "/z\xc3\xbcrich/*", "/z%C3%BCrich/x", true }, { "/x*y", "/x%C3%BCy", true }, { "/a%7eb", "/a~b", true },
		/* what stands behind an encoded ? or # may not be there */
		{ "/wiki/**", "/wiki/Who%3F", true }, { "/static/*.js", "/static/secret.php%3Fx.js", false }, { "/a/*/end", "/a/b%23/end", false }, { "/a/C*", "/a/C%23", true },
		{ "/**/ok", "/x%3F/ok", false },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (path_glob_match(cases[i].pattern, cases[i].path) != cases[i].match)
			fail_msg("%s %s %s", cases[i].pattern, cases[i].match ? "must match" : "must not match", cases[i].path);
	assert_false(path_glob_match("/**", "*"));
	assert_false(path_glob_match("/**", ""));
}

static void patterns_that_could_never_match_are_refused(void **state)
{
	static const char *const bad[] = { "", "a", "*", "**", "/a//b", "/a/../b", "/./a", "/a**", "/**a", "/a/***", "/a?b", "/a%3Fb", "/a%23", "/a;b", "/a\\b", "/a%2fb", "/a b",
		"/%zz", "/%", "/%252e", "/a#b", "/%c0%ae", "/\xff" };
	static const char *const good[] = { "/", "/**", "/*", "/a/*/b/**", "/a.*", "/*.*", "/@a/*", "/caf\xc3\xa9/**", "/a%20b", "/...x" };
	struct err err = ERR_INIT;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (path_glob_check(bad[i], &err) == 0)
			fail_msg("accepted: %s", bad[i]);
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (path_glob_check(good[i], &err) < 0)
			fail_msg("refused: %s: %s", good[i], err.text);
}

static void text_globs(void **state)
{
	static const struct { const char *pattern, *text; bool match; } cases[] = { { "*", "", true }, { "", "", true }, { "", "a", false }, { "a", "a", true }, { "a", "A", false },
		{ "a*", "abc", true }, { "*c", "abc", true }, { "a*c", "abc", true }, { "a*c", "abcd", false }, { "*b*", "abc", true }, { "acme/*", "acme/a/b", true },
		{ "acme/*", "acme", false }, { "a**", "a", true }, { "*a*a*a*", "aa", false } };
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (text_glob_match(cases[i].pattern, cases[i].text, strlen(cases[i].text)) != cases[i].match)
			fail_msg("%s, %s", cases[i].pattern, cases[i].text);
	assert_false(text_glob_match("a", "ab", 2));
	assert_true(text_glob_match("a", "ab", 1));
	assert_false(text_glob_match("ab", "a\0", 2));
}

/* A hostile path can't make a pattern costly: finished in the time of a unit test or not at all. */
static void stars_do_not_explode(void **state)
{
	static char path[REQUEST_PATH_MAX + 1];
	for (size_t i = 0; i < REQUEST_PATH_MAX; i += 2)
		memcpy(path + i, "/a", 2);
	assert_false(path_glob_match("/**/a/**/a/**/a/**/a/**/a/**/b", path));
	memset(path + 1, 'a', REQUEST_PATH_MAX - 1);
	assert_false(path_glob_match("/*a*a*a*a*a*a*a*a*a*a*b", path));
	assert_false(text_glob_match("*a*a*a*a*a*a*a*a*a*a*b", path, REQUEST_PATH_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_spellings_are_normalised),
		cmocka_unit_test(ambiguous_spellings_are_refused),
		cmocka_unit_test(an_encoded_slash_only_where_it_is_needed),
		cmocka_unit_test(lengths),
		cmocka_unit_test(raw_is_kept),
		cmocka_unit_test(normal_paths_stay_and_lead_nowhere_else),
		cmocka_unit_test(encoding_a_byte_opens_nothing),
		cmocka_unit_test(globs),
		cmocka_unit_test(patterns_that_could_never_match_are_refused),
		cmocka_unit_test(text_globs),
		cmocka_unit_test(stars_do_not_explode),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
