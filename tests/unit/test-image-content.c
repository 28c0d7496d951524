/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/content.h"
#include "image-trees.h"

static int setup(void **state)
{
	trees_begin();
	return 0;
}

static int teardown(void **state)
{
	trees_end();
	return 0;
}

static int file(const char *name, const void *data, size_t len, off_t at, off_t size)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(pwrite(fd, data, len, at), len);
	return fd;
}

static void test_known_digests(void **state)
{
	char hex[DIGEST_HEX_SIZE];
	int fd = file("a", "abc", 3, 0, 3);
	assert_int_equal(content_digest(fd, false, hex), 0);
	assert_string_equal(hex, "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
	close(fd);
	fd = file("a", "", 0, 0, 0);
	assert_int_equal(content_digest(fd, false, hex), 0);
	assert_string_equal(hex, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
	close(fd);
}

/* The plain digest doesn't depend on where holes are; the sparse one doesn't either. */
static void test_holes_make_no_difference(void **state)
{
	static char zeroes[300000];
	char a[DIGEST_HEX_SIZE], b[DIGEST_HEX_SIZE];
	int dense = file("dense", zeroes, sizeof(zeroes), 0, sizeof(zeroes)), holed = file("holed", "", 0, 0, sizeof(zeroes));
	assert_int_equal(pwrite(dense, "x", 1, 200000), 1);
	assert_int_equal(pwrite(holed, "x", 1, 200000), 1);
	for (int sparse = 0; sparse < 2; sparse++) {
		assert_int_equal(content_digest(dense, sparse, a), 0);
		assert_int_equal(content_digest(holed, sparse, b), 0);
		assert_string_equal(a, b);
	}
	assert_int_equal(content_equal(dense, holed), 1);
	assert_int_equal(pwrite(holed, "y", 1, 299999), 1);
	assert_int_equal(content_equal(dense, holed), 0);
	close(dense);
	close(holed);
}

/* 64 TiB that cost the box nothing must cost us nothing: reading them through would take a day. */
static void test_giant_hole(void **state)
{
	char a[DIGEST_HEX_SIZE], b[DIGEST_HEX_SIZE];
	struct stat st;
	off_t giant = (off_t)1 << 46;
	int one = file("one", "end", 3, giant - 3, giant), two = file("two", "", 0, 0, giant);
	if (fstat(one, &st) < 0 || st.st_size != giant)
		skip();
	assert_true(content_is_sparse(&st));
	assert_int_equal(content_digest(one, true, a), 0);
	assert_int_equal(content_digest(two, true, b), 0);
	assert_string_not_equal(a, b);
	assert_int_equal(content_equal(one, two), 0);
	int copy = file("copy", "", 0, 0, 0);
	assert_int_equal(content_copy(one, copy, a, true), 0);
	assert_int_equal(content_equal(one, copy), 1);
	assert_int_equal(fstat(copy, &st), 0);
	assert_true(st.st_blocks < 1024);
	close(one);
	close(two);
	close(copy);
}

static void test_copy_checks_the_digest(void **state)
{
	char hex[DIGEST_HEX_SIZE];
	int from = file("from", "content", 7, 0, 7), to = file("to", "", 0, 0, 0);
	assert_int_equal(content_digest(from, false, hex), 0);
	assert_int_equal(content_copy(from, to, hex, false), 0);
	hex[0] = hex[0] == '0' ? '1' : '0';
	assert_int_equal(content_copy(from, to, hex, false), -EBADMSG);
	close(from);
	close(to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_digests),
		cmocka_unit_test(test_holes_make_no_difference),
		cmocka_unit_test(test_giant_hole),
		cmocka_unit_test(test_copy_checks_the_digest),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
