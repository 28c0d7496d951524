/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image/linediff.h"
#include "image-trees.h"

#define LINES 40u

/* Length of the longest common subsequence, by the book. */
static size_t longest(const char *a, size_t n, const char *b, size_t m)
{
	static size_t t[LINES + 1][LINES + 1];
	for (size_t i = 0; i <= n; i++)
		for (size_t j = 0; j <= m; j++)
			t[i][j] = !i || !j		      ? 0
				  : a[i - 1] == b[j - 1]      ? t[i - 1][j - 1] + 1
				  : t[i - 1][j] > t[i][j - 1] ? t[i - 1][j]
							      : t[i][j - 1];
	return t[n][m];
}

static size_t random_lines(struct random *r, uint32_t letters, char lines[LINES], char text[2 * LINES], size_t *ret_len)
{
	size_t n = random_below(r, LINES);
	for (size_t i = 0; i < n; i++) {
		lines[i] = (char)('a' + random_below(r, letters));
		text[2 * i] = lines[i];
		text[2 * i + 1] = '\n';
	}
	*ret_len = 2 * n;
	return n;
}

/* Unchanged lines of both sides must be the same ones in the same order. Returns how many. */
static size_t kept(const struct linediff *d)
{
	size_t o = 0, n = 0, count = 0;
	for (;;) {
		while (o < d->old.n && d->old.changed[o])
			o++;
		while (n < d->new.n && d->new.changed[n])
			n++;
		if (o == d->old.n || n == d->new.n)
			break;
		assert_int_equal(d->old.lines[o].len, d->new.lines[n].len);
		assert_memory_equal(d->old.lines[o].p, d->new.lines[n].p, d->old.lines[o].len);
		o++, n++, count++;
	}
	assert_int_equal(o, d->old.n);
	assert_int_equal(n, d->new.n);
	return count;
}

static void test_shortest_script(void **state)
{
	struct random r = { .state = 7 };
	for (int i = 0; i < 30000; i++) {
		char a[LINES], b[LINES], ta[2 * LINES], tb[2 * LINES];
		size_t na, nb;
		uint32_t letters = 1 + random_below(&r, 5);
		size_t n = random_lines(&r, letters, a, ta, &na), m = random_lines(&r, letters, b, tb, &nb);
		struct linediff d;
		assert_true(linediff_run(ta, na, tb, nb, &d));
		assert_int_equal(kept(&d), longest(a, n, b, m));
		linediff_done(&d);
	}
}

/* Beyond the search's ceiling the script may be longer, never wrong. */
static void test_large_and_hostile(void **state)
{
	struct random r = { .state = 3 };
	size_t room = 12 * 60000, na = 0, nb = 0;
	char *a = malloc(room), *b = malloc(room);
	assert_true(a && b);
	for (int i = 0; i < 60000; i++) {
		na += (size_t)sprintf(a + na, "%u\n", random_below(&r, 500));
		nb += (size_t)sprintf(b + nb, "%u\n", random_below(&r, 500));
	}
	struct linediff d;
	assert_true(linediff_run(a, na, b, nb, &d));
	assert_true(kept(&d) > 0);
	linediff_done(&d);
	free(a);
	free(b);
}

static void test_last_line_without_newline(void **state)
{
	struct linediff d;
	assert_true(linediff_run("a\nb", 3, "a\nb\n", 4, &d));
	assert_int_equal(d.old.n, 2);
	assert_true(d.old.changed[1] && d.new.changed[1] && !d.old.changed[0]);
	linediff_done(&d);
	assert_true(linediff_run("", 0, "", 0, &d));
	assert_int_equal(d.old.n + d.new.n, 0);
	linediff_done(&d);
}

static void test_too_many_lines_are_refused(void **state)
{
	size_t n = LINEDIFF_LINES_MAX + 1;
	char *text = malloc(n);
	assert_non_null(text);
	memset(text, '\n', n);
	struct linediff d;
	assert_false(linediff_run(text, n, "", 0, &d));
	assert_true(linediff_run(text, n - 1, "", 0, &d));
	linediff_done(&d);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shortest_script),
		cmocka_unit_test(test_large_and_hostile),
		cmocka_unit_test(test_last_line_without_newline),
		cmocka_unit_test(test_too_many_lines_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
