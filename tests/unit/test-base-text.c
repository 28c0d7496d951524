/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

static void u64(void **state)
{
	uint64_t v = 5;
	static const char *const bad[] = { "", "-1", "+1", " 1", "1 ", "1x", "0x10", "18446744073709551616", "99999999999999999999", "1e3" };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(text_parse_u64(bad[i], 0, UINT64_MAX, &v), -1);
	assert_true(v == 5);
	assert_int_equal(text_parse_u64("18446744073709551615", 0, UINT64_MAX, &v), 0);
	assert_true(v == UINT64_MAX);
	assert_int_equal(text_parse_u64("10", 10, 10, &v), 0);
	assert_int_equal(text_parse_u64("9", 10, 20, &v), -1);
	assert_int_equal(text_parse_u64("21", 10, 20, &v), -1);
}

static void sizes(void **state)
{
	static const struct { const char *text; uint64_t bytes; } good[] = {
		{ "0", 0 }, { "64", 64 }, { "64B", 64 }, { "10KiB", 10240 }, { "1.5GiB", 3ULL << 29 }, { "512MiB", 512ULL << 20 },
		{ "1TiB", 1ULL << 40 }, { "1K", 1024 }, { "2M", 2 << 20 }, { "3G", 3ULL << 30 }, { "1T", 1ULL << 40 },
		{ "1KB", 1000 }, { "1MB", 1000000 }, { "1.5GB", 1500000000 }, { "2TB", 2000000000000 }, { "0.001KB", 1 },
		{ "1.125KiB", 1152 }, { "16777215TiB", 16777215ULL << 40 }, { "18446744073709551615", UINT64_MAX },
	};
	static const char *const bad[] = {
		"", "B", "KiB", "-1", "+1", " 1", "1 KiB", "1KiB ", "1.", "1.KiB", ".5KiB", "1.5", "1.5B", "1.2345GiB", "1kb", "1kib", "1Ki",
		"1PiB", "1e3", "0x10", "16777216TiB", "18446744073709551616", "1,5GiB", "1.5.5GiB", "1GiBB",
	};
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		uint64_t bytes = 1;
		assert_int_equal(text_parse_size(good[i].text, &bytes), 0);
		assert_true(bytes == good[i].bytes);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		uint64_t bytes = 7;
		if (text_parse_size(bad[i], &bytes) == 0)
			fail_msg("accepted as a size: \"%s\"", bad[i]);
		assert_true(bytes == 7);
	}
}

static void durations(void **state)
{
	static const struct { const char *text; uint64_t ns; } good[] = {
		{ "250ms", 250 * NS_PER_MS }, { "15m", 900 * NS_PER_S }, { "1h30m", 5400 * NS_PER_S }, { "2d", 172800 * NS_PER_S },
		{ "90s", 90 * NS_PER_S }, { "1d1h1m1s1ms1us1ns", 90061001001001ULL }, { "1ns", 1 }, { "0h1s", NS_PER_S },
	};
	static const char *const bad[] = { "", "0", "0s", "15", "s", "1", "-1s", "1.5h", "1s1h", "1s1s", "1 s", "1s ", "1M", "1S", "1w",
		"1h30", "213504d", "18446744073709551616ns", "1sms", "1min" };
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		uint64_t ns = 0;
		assert_int_equal(text_parse_duration(good[i].text, &ns), 0);
		assert_true(ns == good[i].ns);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		uint64_t ns = 7;
		if (text_parse_duration(bad[i], &ns) == 0)
			fail_msg("accepted as a duration: \"%s\"", bad[i]);
		assert_true(ns == 7);
	}
}

static void formats(void **state)
{
	char out[TEXT_SIZE_MAX];
	assert_string_equal(text_format_size(17, out), "17 B");
	assert_string_equal(text_format_size(0, out), "0 B");
	assert_string_equal(text_format_size(1023, out), "1023 B");
	assert_string_equal(text_format_size(512ULL << 20, out), "512 MiB");
	assert_string_equal(text_format_size(3ULL << 29, out), "1.5 GiB");
	assert_string_equal(text_format_size(UINT64_MAX, out), "15.9 EiB");
	assert_string_equal(text_format_duration(4200000, out), "4.2 ms");
	assert_string_equal(text_format_duration(1500 * NS_PER_MS, out), "1.50 s");
	assert_string_equal(text_format_duration(900 * NS_PER_S, out), "15 min");
	assert_string_equal(text_format_duration(75 * NS_PER_S, out), "1 min 15 s");
	assert_string_equal(text_format_duration(5400 * NS_PER_S, out), "1 h 30 min");
	assert_string_equal(text_format_duration(0, out), "0 ns");
	assert_string_equal(text_format_duration(2500, out), "2.5 us");
	assert_true(strlen(text_format_duration(UINT64_MAX, out)) < TEXT_SIZE_MAX);
	assert_string_equal(text_format_time(0, out), "1970-01-01T00:00:00.000000000Z");
	assert_string_equal(text_format_time(1796065816123456789ULL, out), "2026-11-30T19:10:16.123456789Z");
	assert_string_equal(text_format_time(UINT64_MAX, out), "2554-07-21T23:34:33.709551615Z");
}

static void escape(void **state)
{
	static const struct { const char *in, *out; } cases[] = {
		{ "plain text 123", "plain text 123" },
		{ "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80" },
		{ "a\nb\tc\r", "a\\x0ab\\x09c\\x0d" },
		{ "\x1b[31m", "\\x1b[31m" },
		{ "\x7f", "\\x7f" },
		{ "\xc2\x9b", "\\xc2\\x9b" },                      /* C1: CSI in one character */
		{ "\xe2\x80\xae" "exe", "\\xe2\\x80\\xae" "exe" }, /* right-to-left override */
		{ "\xe2\x81\xa6", "\\xe2\\x81\\xa6" },
		{ "\xe2\x80\xa8", "\\xe2\\x80\\xa8" },             /* line separator */
		{ "\xef\xbb\xbf", "\\xef\\xbb\\xbf" },
		{ "\\x41", "\\x5cx41" },                           /* can't be mistaken for an escape of ours */
		{ "\xff\xfe", "\\xff\\xfe" },
		{ "\xc0\xaf", "\\xc0\\xaf" },                      /* overlong slash */
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80" },             /* surrogate */
		{ "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" },
		{ "\xe2\x82", "\\xe2\\x82" },                      /* cut short */
	};
	char out[256];
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_string_equal(text_escape(cases[i].in, strlen(cases[i].in), out, sizeof(out)), cases[i].out);
	assert_string_equal(text_escape("a\0b", 3, out, sizeof(out)), "a\\x00b");
	assert_string_equal(text_escape("", 0, out, sizeof(out)), "");
	memset(out, 'Z', sizeof(out));
	assert_string_equal(text_escape("ab\n", 3, out, 6), "ab"); /* no half escape */
	assert_string_equal(text_escape("ab\n", 3, out, 7), "ab\\x0a");
	assert_string_equal(text_escape("\xe2\x82\xac", 3, out, 3), "");
	out[0] = 'Z';
	text_escape("x", 1, out, 0);
	assert_int_equal(out[0], 'Z');
}

static void utf8(void **state)
{
	assert_true(text_is_utf8("", 0));
	assert_true(text_is_utf8("a\0b", 3));
	assert_true(text_is_utf8("\xf0\x9f\x98\x80", 4));
	assert_false(text_is_utf8("\xf0\x9f\x98", 3));
	assert_false(text_is_utf8("\x80", 1));
	assert_false(text_is_utf8("\xe0\x80\x80", 3));
	assert_false(text_is_utf8("\xf5\x80\x80\x80", 4));
	assert_false(text_is_utf8("\xf0\x80\x80\x80", 4));
	assert_false(text_is_utf8("\xed\xbf\xbf", 3));
}

static void hex(void **state)
{
	char out[9];
	uint8_t bytes[4] = { 9, 9, 9, 9 };
	text_hex("\x00\xff\x1a\x2b", 4, out);
	assert_string_equal(out, "00ff1a2b");
	assert_int_equal(text_unhex("00fF1a2B", bytes, 4), 0);
	assert_memory_equal(bytes, "\x00\xff\x1a\x2b", 4);
	assert_int_equal(text_unhex("11111111", bytes, 3), -1);
	assert_int_equal(text_unhex("1111111", bytes, 4), -1);
	assert_int_equal(text_unhex("1111111g", bytes, 4), -1);
	assert_memory_equal(bytes, "\x00\xff\x1a\x2b", 4); /* written on success only */
	assert_int_equal(text_unhex("", bytes, 0), 0);
}

static void base64(void **state)
{
	static const char *const cases[][2] = { { "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" }, { "foo", "Zm9v" }, { "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" }, { "foobar", "Zm9vYmFy" }, { "\xff\xff\xfe", "///+" } };
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char out[32];
		text_base64(cases[i][0], strlen(cases[i][0]), out);
		assert_string_equal(out, cases[i][1]);
		assert_int_equal(text_base64_len(strlen(cases[i][0])), strlen(out));
	}
}

static void clocks(void **state)
{
	assert_true(time_realtime_ns() > 1600000000 * NS_PER_S);
	uint64_t a = time_monotonic_ns(), b = time_monotonic_ns();
	assert_true(b >= a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(u64), cmocka_unit_test(sizes), cmocka_unit_test(durations), cmocka_unit_test(formats),
		cmocka_unit_test(escape), cmocka_unit_test(utf8), cmocka_unit_test(hex), cmocka_unit_test(base64), cmocka_unit_test(clocks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
