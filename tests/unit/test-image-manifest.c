/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "image/manifest.h"

static struct changes two_changes(void)
{
	struct changes c = { .n = 2, .bytes = 5, .nonce = 0xfedcba9876543210u };
	c.items = mem_alloc_array(2, sizeof(*c.items));
	c.source = mem_strdup("/home/\xff/tree");
	c.items[0] = (struct change){ .path = mem_strdup("a\n\x01"),
		.kind = CHANGE_MODIFIED,
		.before = FILE_REGULAR,
		.after = FILE_REGULAR,
		.mode_before = 0644,
		.mode_after = 04755,
		.size_before = UINT64_MAX,
		.size_after = 5,
		.flags = CHANGE_FLAG_SETID,
		.orig_exists = true,
		.orig_ino = UINT64_MAX - 1,
		.orig_mtime_ns = -1,
		.mtime_ns = INT64_MIN,
		.digest_sparse = true };
	memset(c.items[0].digest, 'a', 64);
	c.items[1] = (struct change){ .path = mem_strdup("b\xff"),
		.kind = CHANGE_ADDED,
		.before = FILE_NONE,
		.after = FILE_LINK,
		.mode_after = 0777,
		.link_after = mem_strdup("\xfe") };
	return c;
}

static void test_round_trip(void **state)
{
	struct changes c = two_changes(), d;
	struct err err = ERR_INIT;
	struct buf b;
	buf_init(&b, MANIFEST_MAX);
	assert_int_equal(manifest_encode(&c, &b, &err), 0);
	assert_int_equal(manifest_decode((const char *)b.data, b.len, &d, &err), 0);
	assert_int_equal(d.n, 2);
	assert_string_equal(d.source, c.source);
	assert_true(d.nonce == c.nonce);
	assert_string_equal(d.items[0].path, c.items[0].path);
	assert_string_equal(d.items[1].path, c.items[1].path);
	assert_string_equal(d.items[1].link_after, c.items[1].link_after);
	/* Everything that isn't a pointer. */
	for (size_t i = 0; i < 2; i++) {
		struct change x = c.items[i], y = d.items[i];
		assert_true(x.kind == y.kind && x.before == y.before && x.after == y.after && x.mode_before == y.mode_before &&
			    x.mode_after == y.mode_after);
		assert_true(x.size_before == y.size_before && x.size_after == y.size_after && x.flags == y.flags &&
			    x.orig_exists == y.orig_exists);
		assert_true(x.orig_ino == y.orig_ino && x.orig_mtime_ns == y.orig_mtime_ns && x.mtime_ns == y.mtime_ns &&
			    x.digest_sparse == y.digest_sparse);
		assert_string_equal(x.digest, y.digest);
	}
	/* Any cut is noticed. */
	for (size_t n = 0; n < b.len; n++) {
		struct changes cut;
		assert_int_equal(manifest_decode((const char *)b.data, n, &cut, &err), -1);
		assert_int_equal(err.code, ERR_CORRUPT);
	}
	buf_free(&b);
	changes_done(&c);
	changes_done(&d);
}

static void test_paths(void **state)
{
	static const char *const good[] = { "a", "a/b", "...", "..a", "a/.b", "-", " ", "a\n", "\xff" };
	static const char *const bad[] = { "", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/../b", "./a", "a/." };
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(manifest_path_valid(good[i]));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(manifest_path_valid(bad[i]));
	char *name = mem_alloc(300);
	memset(name, 'a', 256);
	assert_false(manifest_path_valid(name));
	name[255] = '\0';
	assert_true(manifest_path_valid(name));
	mem_free(name);
}

#define HEAD(n) "{\"bytes\":0,\"changes\":" n ",\"nonce\":1,\"source\":\"/s\",\"version\":1}\n"
#define ITEM(path, kind, before, after, digest)                                                                                \
	"{\"after\":" after ",\"before\":" before ",\"digest\":\"" digest "\",\"flags\":0,\"kind\":" kind                      \
	",\"mode_after\":420,\"mode_before\":420,\"mtime\":0,\"orig_ctime\":0,\"orig_digest\":\"\",\"orig_exists\":false,"     \
	"\"orig_ino\":0,\"orig_mtime\":0,"                                                                                     \
	"\"orig_size\":0,\"path\":\"" path "\",\"size_after\":0,\"size_before\":0,\"sparse\":false}\n"
#define D64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define GOOD(path) ITEM(path, "0", "6", "0", D64)
#define END(n) "{\"end\":" n "}\n"

static int decode(const char *text)
{
	struct changes c;
	struct err err = ERR_INIT;
	int r = manifest_decode(text, strlen(text), &c, &err);
	if (r == 0)
		changes_done(&c);
	else
		assert_int_equal(err.code, ERR_CORRUPT);
	return r;
}

static void test_what_is_refused(void **state)
{
	assert_int_equal(decode(HEAD("0") END("0")), 0);
	assert_int_equal(decode(HEAD("1") GOOD("a") END("1")), 0);
	static const char *const bad[] = {
		"",
		"\n",
		"{}\n",
		"[]\n",
		HEAD("0"),
		HEAD("0") END("1"),
		HEAD("0") END("0") "x",
		HEAD("1") END("1"),
		HEAD("2") GOOD("a") END("2"),
		HEAD("-1") END("-1"),
		HEAD("1") GOOD("../a") END("1"),
		HEAD("1") GOOD("/etc/passwd") END("1"),
		HEAD("1") GOOD("a\\u0000b") END("1"),
		HEAD("2") GOOD("b") GOOD("a") END("2"),
		HEAD("2") GOOD("a") GOOD("a") END("2"),
		HEAD("1") ITEM("a", "0", "6", "0", "") END("1"),	/* a file without a digest */
		HEAD("1") ITEM("a", "0", "6", "0", "../../x") END("1"), /* a digest becomes a file name */
		HEAD("1") ITEM("a", "0", "6", "1", D64) END("1"),	/* a folder with one */
		HEAD("1") ITEM("a", "0", "0", "0", D64) END("1"),	/* added, and was there */
		HEAD("1") ITEM("a", "2", "6", "6", "") END("1"),	/* deleted, and wasn't */
		HEAD("1") ITEM("a", "9", "6", "0", D64) END("1"),
		HEAD("1") ITEM("a", "0", "6", "9", D64) END("1"),
		HEAD("1") ITEM("a", "0", "6", "2", "") END("1"),  /* a link without a target */
		HEAD("1") ITEM("a", "5", "6", "0", D64) END("1"), /* renamed from nothing */
		"{\"bytes\":0,\"changes\":0,\"nonce\":1,\"source\":3,\"version\":1}\n" END("0"),
		"{\"bytes\":0,\"changes\":0,\"nonce\":1,\"source\":\"/s\",\"version\":2}\n" END("0"),
		"{\"bytes\":0,\"changes\":0,\"nonce\":1,\"source\":{\"base64\":\"AA==\"},\"version\":1}\n" END("0"),
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (decode(bad[i]) == 0)
			fail_msg("taken: %s", bad[i]);
}

static void test_json_for_readers(void **state)
{
	struct changes c = two_changes();
	json_t *v = changes_to_json(&c);
	json_t *first = json_array_get(json_object_get(v, "changes"), 0),
	       *second = json_array_get(json_object_get(v, "changes"), 1);
	assert_int_equal(json_integer_value(json_object_get(v, "count")), 2);
	assert_string_equal(json_string_value(json_object_get(first, "mode_after")), "4755");
	assert_string_equal(json_string_value(json_array_get(json_object_get(first, "flags"), 0)), "set-id");
	assert_true(json_is_true(json_object_get(first, "held")));
	assert_string_equal(json_string_value(json_object_get(json_object_get(second, "path"), "base64")), "Yv8=");
	json_decref(v);
	changes_done(&c);
}

static void test_quoting(void **state)
{
	static const struct { const char *path, *quoted;
	} cases[] = {
		{ "plain", "a/plain" },
		{ "a b", "a/a b" },
		{ "q\"", "\"a/q\\\"\"" },
		{ "\n\t\x01\x7f", "\"a/\\n\\t\\001\\177\"" },
		{ "caf\xc3\xa9", "\"a/caf\\303\\251\"" },
		{ "b\\", "\"a/b\\\\\"" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *quoted = change_path_quote("a/", cases[i].path);
		assert_string_equal(quoted, cases[i].quoted);
		mem_free(quoted);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_json_for_readers),
		cmocka_unit_test(test_quoting),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
