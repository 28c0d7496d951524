/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "spec-help.h"

static int by_text(const void *a, const void *b)
{
	return memcmp(a, b, SANDBOX_ID_LEN + 1);
}

static void new_ids_are_valid_and_differ(void **state)
{
	enum { N = 20000 };
	static char ids[N][SANDBOX_ID_LEN + 1];
	bool first[256] = { 0 }, other[256] = { 0 };
	for (unsigned i = 0; i < N; i++) {
		sandbox_id_new(ids[i]);
		assert_true(sandbox_id_valid(ids[i]));
		first[(unsigned char)ids[i][0]] = true;
		other[(unsigned char)ids[i][11]] = true;
	}
	qsort(ids, N, sizeof(ids[0]), by_text);
	for (unsigned i = 1; i < N; i++)
		assert_string_not_equal(ids[i - 1], ids[i]);
	/* the whole alphabet is in use */
	for (char c = 'a'; c <= 'z'; c++)
		assert_true(first[(unsigned char)c] && other[(unsigned char)c]);
	for (char c = '2'; c <= '7'; c++)
		assert_true(!first[(unsigned char)c] && other[(unsigned char)c]);
}

static void syntax(void **state)
{
	static const char *const bad[] = { "", "abcdefghijk", "abcdefghijklm", "1bcdefghijkl", "Abcdefghijkl", "abcdefghijk/", "abcdefghijk.",
		"abcdefghijk-", "..defghijklm", "abcdefghijk\n", "abcdefghijk " };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(sandbox_id_valid(bad[i]));
	assert_false(sandbox_id_valid(NULL));
	assert_true(sandbox_id_valid("a00000000009"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_ids_are_valid_and_differ),
		cmocka_unit_test(syntax),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
