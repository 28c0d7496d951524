/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

static void set_fills_everything(void **state)
{
	struct err err = { .code = ERR_LIMIT, .sys = 7, .text = "old" };
	assert_int_equal(err_set(&err, ERR_INVALID, "bad %s %d", "thing", 3), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(err.sys, 0);
	assert_string_equal(err.text, "bad thing 3");
}

static void null_is_accepted(void **state)
{
	assert_int_equal(err_set(NULL, ERR_INVALID, "x"), -1);
	assert_int_equal(err_sys(NULL, ENOENT, "x"), -1);
	assert_int_equal(err_wrap(NULL, "x"), -1);
}

static void sys_names_the_cause(void **state)
{
	struct err err;
	assert_int_equal(err_sys(&err, ENOENT, "cannot open %s", "/etc/x"), -1);
	assert_int_equal(err.code, ERR_SYSTEM);
	assert_int_equal(err.sys, ENOENT);
	assert_string_equal(err.text, "cannot open /etc/x: No such file or directory");
	err_sys(&err, ENOMEM, "m");
	assert_int_equal(err.code, ERR_MEMORY);
	err_sys(&err, -EPERM, "negative");
	assert_int_equal(err.sys, EPERM);
	err_sys(&err, 3999, "odd");
	assert_string_equal(err.text, "odd: error number 3999");
}

static void wrap_keeps_code_and_errno(void **state)
{
	struct err err;
	err_sys(&err, EACCES, "cannot read b");
	assert_int_equal(err_wrap(&err, "policy %s", "a"), -1);
	assert_int_equal(err.code, ERR_SYSTEM);
	assert_int_equal(err.sys, EACCES);
	assert_string_equal(err.text, "policy a: cannot read b: Permission denied");
}

static void arguments_may_point_into_the_error(void **state)
{
	struct err err;
	err_set(&err, ERR_INVALID, "inner");
	err_set(&err, ERR_LIMIT, "outer(%s)", err.text);
	assert_string_equal(err.text, "outer(inner)");
}

static void long_texts_are_cut_with_a_mark(void **state)
{
	char longer[2000];
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	struct err err;
	err_set(&err, ERR_INVALID, "%s", longer);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_true(str_ends(err.text, "x\xe2\x80\xa6"));
	/* A cut in the middle of a character must not leave half of it, whatever the phase. */
	for (int shift = 0; shift < 4; shift++) {
		char wide[2000] = "abc";
		for (int i = shift; i + 3 < 1900; i += 3)
			memcpy(wide + i, "\xe2\x82\xac", 4);
		err_set(&err, ERR_INVALID, "%s", wide);
		assert_true(text_is_utf8(err.text, strlen(err.text)));
		assert_true(str_ends(err.text, "\xe2\x80\xa6"));
		err_wrap(&err, "context");
		assert_true(str_starts(err.text, "context: "));
		assert_true(text_is_utf8(err.text, strlen(err.text)));
	}
}

static void a_sentence_stays_on_one_line(void **state)
{
	struct err err;
	err_set(&err, ERR_INVALID, "a\nb\r\nc");
	assert_string_equal(err.text, "a b  c");
}

static void every_code_has_its_own_name(void **state)
{
	for (int a = 0; a < ERR_CODE_MAX; a++) {
		assert_string_not_equal(err_code_name((enum err_code)a), "unknown");
		for (int b = 0; b < a; b++)
			assert_string_not_equal(err_code_name((enum err_code)a), err_code_name((enum err_code)b));
	}
	assert_string_equal(err_code_name(ERR_UNSUPPORTED), "unsupported");
	assert_string_equal(err_code_name((enum err_code)999), "unknown");
}

/* Runs fn with stderr going into a pipe; what was written comes back. */
static size_t capture(void (*fn)(void), char *out, size_t out_len)
{
	int pipefd[2], saved = dup(STDERR_FILENO);
	assert_int_equal(pipe(pipefd), 0);
	dup2(pipefd[1], STDERR_FILENO);
	fn();
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(pipefd[1]);
	size_t len = 0;
	for (ssize_t n; (n = read(pipefd[0], out + len, out_len - 1 - len)) > 0;)
		len += (size_t)n;
	close(pipefd[0]);
	out[len] = '\0';
	return len;
}

static void print_one(void)
{
	struct err err;
	err_set(&err, ERR_INVALID, "no");
	err_print("bulkhead", &err);
}

static void print_writes_one_line(void **state)
{
	char out[1024];
	capture(print_one, out, sizeof(out));
	assert_string_equal(out, "bulkhead: no\n");
}

static void log_three_levels(void)
{
	log_error("e %d", 1);
	log_warning("w");
	log_info("i");
}

static void log_levels_come_from_the_environment(void **state)
{
	char out[4096];
	unsetenv("BULKHEAD_LOG");
	log_init("prog");
	assert_true(log_enabled(LOG_LEVEL_WARNING));
	assert_false(log_enabled(LOG_LEVEL_INFO));
	capture(log_three_levels, out, sizeof(out));
	assert_string_equal(out, "prog: error: e 1\nprog: warning: w\n");
	setenv("BULKHEAD_LOG", "error", 1);
	log_init("prog");
	assert_false(log_enabled(LOG_LEVEL_WARNING));
	setenv("BULKHEAD_LOG", "debug", 1);
	log_init("prog");
	assert_true(log_enabled(LOG_LEVEL_DEBUG));
	setenv("BULKHEAD_LOG", "nonsense", 1);
	log_init("prog");
	assert_false(log_enabled(LOG_LEVEL_INFO));
	unsetenv("BULKHEAD_LOG");
	log_init("prog");
}

static struct log_site flood_site;

static void log_flood(void)
{
	for (int i = 0; i < 100; i++)
		log_line(&flood_site, LOG_LEVEL_ERROR, "flood");
}

static void log_after_window(void)
{
	flood_site.window_start_ns -= 11 * NS_PER_S;
	log_line(&flood_site, LOG_LEVEL_ERROR, "later");
}

static void log_is_limited_for_each_site(void **state)
{
	char out[8192];
	size_t len = capture(log_flood, out, sizeof(out));
	assert_int_equal(len, 20 * strlen("prog: error: flood\n"));
	capture(log_after_window, out, sizeof(out));
	assert_string_equal(out, "prog: error: 80 lines like the next one were left out\nprog: error: later\n");
}

static void log_long(void)
{
	char longer[4000];
	memset(longer, 'y', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	log_error("%s", longer);
}

static void log_lines_are_cut(void **state)
{
	char out[8192];
	size_t len = capture(log_long, out, sizeof(out));
	assert_int_equal(len, 1024);
	assert_int_equal(out[len - 1], '\n');
}

static void mem_helpers(void **state)
{
	char *zero = mem_alloc(64);
	for (int i = 0; i < 64; i++)
		assert_int_equal(zero[i], 0);
	mem_free(zero);
	assert_non_null(zero = mem_alloc_array(0, 8));
	assert_null(mem_free(zero));
	assert_null(mem_strdup(NULL));
	cleanup_free char *part = mem_strndup("abcdef", 3);
	assert_string_equal(part, "abc");
	cleanup_free char *text = mem_printf("%d-%s", 5, "x");
	assert_string_equal(text, "5-x");
	char *stolen = mem_steal(&text);
	assert_null(text);
	mem_free(stolen);
	assert_true(str_starts("abc", "ab") && !str_starts("ab", "abc") && str_starts("x", ""));
	assert_true(str_ends("abc", "bc") && !str_ends("bc", "abc") && str_ends("x", ""));
	char secret[8] = "secret!";
	mem_wipe(secret, sizeof(secret));
	for (size_t i = 0; i < sizeof(secret); i++)
		assert_int_equal(secret[i], 0);
	mem_wipe(NULL, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_fills_everything),
		cmocka_unit_test(null_is_accepted),
		cmocka_unit_test(sys_names_the_cause),
		cmocka_unit_test(wrap_keeps_code_and_errno),
		cmocka_unit_test(arguments_may_point_into_the_error),
		cmocka_unit_test(long_texts_are_cut_with_a_mark),
		cmocka_unit_test(a_sentence_stays_on_one_line),
		cmocka_unit_test(every_code_has_its_own_name),
		cmocka_unit_test(print_writes_one_line),
		cmocka_unit_test(log_levels_come_from_the_environment),
		cmocka_unit_test(log_is_limited_for_each_site),
		cmocka_unit_test(log_lines_are_cut),
		cmocka_unit_test(mem_helpers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
