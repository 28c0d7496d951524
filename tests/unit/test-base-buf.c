/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

static void ceiling_is_exact_and_failures_append_nothing(void **state)
{
	struct buf b;
	buf_init(&b, 10);
	assert_int_equal(buf_append(&b, "12345", 5), 0);
	assert_int_equal(buf_append(&b, "123456", 6), -1);
	assert_int_equal(b.len, 5);
	assert_int_equal(buf_put_u64(&b, 1), -1);
	assert_int_equal(buf_printf(&b, "%s", "123456"), -1);
	assert_int_equal(buf_put_bytes(&b, "12", 2), -1); /* 4 + 2 > 5: not even the length stays */
	assert_int_equal(b.len, 5);
	assert_int_equal(buf_printf(&b, "%s", "67890"), 0); /* the NUL of printf costs nothing */
	assert_int_equal(b.len, 10);
	assert_memory_equal(b.data, "1234567890", 10);
	assert_int_equal(buf_append(&b, "", 0), 0);
	assert_int_equal(buf_put_u8(&b, 1), -1);
	buf_free(&b);
	assert_int_equal(b.max, 10);
	assert_int_equal(buf_append(&b, "again", 5), 0);
	buf_wipe_free(&b);
	assert_null(b.data);
}

static void sizes_near_overflow_are_refused(void **state)
{
	struct buf b;
	buf_init(&b, SIZE_MAX);
	assert_int_equal(buf_append(&b, "x", 1), 0);
	assert_null(buf_reserve(&b, SIZE_MAX));
	assert_int_equal(b.len, 1);
	buf_free(&b);
}

static void integers_are_big_endian(void **state)
{
	static const uint8_t expected[] = { 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 8, 9, 10, 11, 12, 13, 14, 15, 0, 0, 0, 2, 'h', 'i', 0, 0, 0, 0 };
	struct buf b;
	buf_init(&b, 100);
	buf_put_u8(&b, 0x01);
	buf_put_u16(&b, 0x0203);
	buf_put_u32(&b, 0x04050607);
	buf_put_u64(&b, 0x08090a0b0c0d0e0f);
	buf_put_str(&b, "hi");
	buf_put_str(&b, NULL);
	assert_int_equal(b.len, sizeof(expected));
	assert_memory_equal(b.data, expected, sizeof(expected));
	struct cursor c = cursor_make(b.data, b.len);
	assert_int_equal(cursor_u8(&c), 1);
	assert_int_equal(cursor_u16(&c), 0x0203);
	assert_int_equal(cursor_u32(&c), 0x04050607);
	assert_true(cursor_u64(&c) == 0x08090a0b0c0d0e0f);
	cleanup_free char *s = cursor_strdup(&c, 10);
	assert_string_equal(s, "hi");
	cleanup_free char *empty = cursor_strdup(&c, 0);
	assert_string_equal(empty, "");
	assert_true(cursor_done(&c));
	buf_free(&b);
}

static void consume_and_reserve(void **state)
{
	struct buf b;
	buf_init(&b, 1000);
	buf_append(&b, "abcdef", 6);
	buf_consume(&b, 2);
	assert_int_equal(b.len, 4);
	assert_memory_equal(b.data, "cdef", 4);
	memcpy(buf_reserve(&b, 3), "ghi", 3);
	assert_int_equal(b.len, 4);
	buf_commit(&b, 2);
	assert_memory_equal(b.data, "cdefgh", 6);
	buf_consume(&b, 100);
	assert_int_equal(b.len, 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(buf_append(&b, "0123456789", 10), 0);
	assert_int_equal(b.len, 1000);
	assert_memory_equal(b.data + 990, "0123456789", 10);
	buf_free(&b);
	assert_non_null(buf_reserve(&b, 0)); /* never NULL while within the ceiling */
	buf_free(&b);
}

static void cursor_failure_is_sticky(void **state)
{
	static const uint8_t three[] = { 1, 2, 3 };
	struct cursor c = cursor_make(three, sizeof(three));
	assert_int_equal(cursor_u32(&c), 0);
	assert_true(c.bad);
	assert_int_equal(cursor_u8(&c), 0); /* one byte would be there */
	assert_null(cursor_take(&c, 0));
	assert_false(cursor_done(&c));
}

static void cursor_bytes_checks_length_and_ceiling(void **state)
{
	static const uint8_t hi[] = { 0, 0, 0, 2, 'h', 'i' };
	static const uint8_t lies[] = { 0xff, 0xff, 0xff, 0xff, 'h', 'i' };
	static const uint8_t nul[] = { 0, 0, 0, 2, 'h', 0 };
	size_t len = 77;
	struct cursor c = cursor_make(hi, sizeof(hi));
	assert_null(cursor_bytes(&c, 1, &len)); /* longer than its ceiling */
	assert_int_equal(len, 77);
	c = cursor_make(hi, sizeof(hi) - 1);
	assert_null(cursor_bytes(&c, 10, &len));
	c = cursor_make(lies, sizeof(lies));
	assert_null(cursor_bytes(&c, SIZE_MAX, &len));
	c = cursor_make(hi, sizeof(hi));
	assert_ptr_equal(cursor_bytes(&c, 2, &len), hi + 4);
	assert_int_equal(len, 2);
	c = cursor_make(nul, sizeof(nul));
	assert_null(cursor_strdup(&c, 10));
	assert_true(c.bad);
}

static void empty_input(void **state)
{
	struct cursor c = cursor_make(NULL, 0);
	assert_true(cursor_done(&c));
	assert_non_null(cursor_take(&c, 0)); /* nothing asked, nothing wrong */
	assert_int_equal(cursor_u8(&c), 0);
	assert_true(c.bad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ceiling_is_exact_and_failures_append_nothing),
		cmocka_unit_test(sizes_near_overflow_are_refused),
		cmocka_unit_test(integers_are_big_endian),
		cmocka_unit_test(consume_and_reserve),
		cmocka_unit_test(cursor_failure_is_sticky),
		cmocka_unit_test(cursor_bytes_checks_length_and_ceiling),
		cmocka_unit_test(empty_input),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
