/* SPDX-License-Identifier: Apache-2.0 */
#include "policy-help.h"

static void names_are_unique_and_go_both_ways(void **state)
{
	for (unsigned i = 0; i < REASON_MAX; i++) {
		const char *name = reason_name((enum reason)i);
		assert_int_equal(reason_from_name(name), i);
		assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_"), strlen(name));
		const char *text = reason_text((enum reason)i);
		assert_true(strlen(text) > 10);
		assert_null(strchr(text, '\n'));
	}
}

static void unknown_is_none(void **state)
{
	assert_int_equal(reason_from_name("no_such_reason"), REASON_NONE);
	assert_int_equal(reason_from_name(""), REASON_NONE);
	assert_int_equal(reason_from_name(NULL), REASON_NONE);
	assert_string_equal(reason_name(REASON_MAX), "unknown");
	assert_non_null(reason_text(REASON_MAX));
}

static void words_go_both_ways(void **state)
{
	for (unsigned i = 0; i < ISOLATION_LEVEL_MAX; i++) {
		enum isolation_level level = ISOLATION_LEVEL_MAX;
		assert_int_equal(isolation_level_parse(isolation_level_name((enum isolation_level)i), &level), 0);
		assert_int_equal(level, i);
	}
	for (unsigned i = 0; i < MOUNT_MODE_MAX; i++) {
		enum mount_mode mode = MOUNT_MODE_MAX;
		assert_int_equal(mount_mode_parse(mount_mode_name((enum mount_mode)i), &mode), 0);
		assert_int_equal(mode, i);
	}
	for (unsigned i = 0; i < CANARY_ACTION_MAX; i++) {
		enum canary_action action = CANARY_ACTION_MAX;
		assert_int_equal(canary_action_parse(canary_action_name((enum canary_action)i), &action), 0);
		assert_int_equal(action, i);
	}
	enum isolation_level level;
	enum mount_mode mode;
	enum canary_action action;
	assert_int_equal(canary_action_parse("pause", &action), -1);
	assert_int_equal(isolation_level_parse("Container", &level), -1);
	assert_int_equal(isolation_level_parse(NULL, &level), -1);
	assert_int_equal(mount_mode_parse("readonly", &mode), -1);
	assert_true(ISOLATION_CONTAINER < ISOLATION_GVISOR && ISOLATION_GVISOR < ISOLATION_MICROVM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_unique_and_go_both_ways),
		cmocka_unit_test(unknown_is_none),
		cmocka_unit_test(words_go_both_ways),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
