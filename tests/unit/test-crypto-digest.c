/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "crypto/digest.h"

/* FIPS 180-4 and RFC 1321 examples: "abc", and of nothing. */
static const struct {
	enum digest_kind kind;
	size_t size;
	const char *of_abc, *of_nothing;
} known[] = {
	{ DIGEST_SHA256, 32, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
	{ DIGEST_SHA384, 48, "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
		"38b060a751ac96384cd9327eb1b1e36a21fdb71114be07434c0cc7bf63f6e1da274edebfe76f65fbd51ad2f14898b95b" },
	{ DIGEST_SHA512, 64, "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
		"cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e" },
	{ DIGEST_SHA1, 20, "a9993e364706816aba3e25717850c26c9cd0d89d", "da39a3ee5e6b4b0d3255bfef95601890afd80709" },
	{ DIGEST_MD5, 16, "900150983cd24fb0d6963f7d28e17f72", "d41d8cd98f00b204e9800998ecf8427e" },
};

static void check(enum digest_kind kind, const char *data, size_t piece, const char *want)
{
	uint8_t hash[DIGEST_SIZE_MAX];
	char hex[2 * DIGEST_SIZE_MAX + 1];
	struct digest *d = digest_new(kind);
	assert_non_null(d);
	for (size_t len = strlen(data); len; len -= piece < len ? piece : len, data += piece)
		digest_update(d, data, piece < len ? piece : len);
	digest_final(d, hash);
	text_hex(hash, digest_size(kind), hex);
	assert_string_equal(hex, want);
	assert_null(digest_free(d));
}

static void test_known_answers(void **state)
{
	assert_int_equal(ARRAY_LEN(known), DIGEST_KINDS);
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		assert_int_equal(digest_size(known[i].kind), known[i].size);
		check(known[i].kind, "", 1, known[i].of_nothing);
		for (size_t piece = 1; piece <= 3; piece++)
			check(known[i].kind, "abc", piece, known[i].of_abc);
	}
}

/* A million of 'a' (FIPS 180-2 appendix B.3), and bytes behind a short hash stay zero: callers compare fixed sizes. */
static void test_long_input(void **state)
{
	char block[1000];
	uint8_t hash[DIGEST_SIZE_MAX], zero[DIGEST_SIZE_MAX] = { 0 }, want[32];
	memset(block, 'a', sizeof(block));
	memset(hash, 0xff, sizeof(hash));
	struct digest *d = digest_new(DIGEST_SHA256);
	for (unsigned i = 0; i < 1000; i++)
		digest_update(d, block, sizeof(block));
	digest_final(d, hash);
	digest_free(d);
	assert_int_equal(text_unhex("cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0", want, sizeof(want)), 0);
	assert_memory_equal(hash, want, sizeof(want));
	assert_memory_equal(hash + 32, zero, 32);
}

static void test_side_by_side(void **state)
{
	struct digest *a = digest_new(DIGEST_SHA1), *b = digest_new(DIGEST_SHA1);
	uint8_t hash_a[DIGEST_SIZE_MAX], hash_b[DIGEST_SIZE_MAX];
	digest_update(a, "abc", 3);
	digest_update(b, "abd", 3);
	digest_final(a, hash_a);
	digest_final(b, hash_b);
	assert_memory_not_equal(hash_a, hash_b, 20);
	digest_free(a);
	digest_free(b);
	assert_null(digest_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_answers),
		cmocka_unit_test(test_long_input),
		cmocka_unit_test(test_side_by_side),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
