/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "agent/names.h"

static unsigned removed;
static char last_removed[HOSTNAME_MAX + 1];

static void on_remove(void *ctx, struct name *n)
{
	removed++;
	memcpy(last_removed, n->host.text, sizeof(last_removed));
}

static struct hostname host(unsigned i)
{
	char text[64];
	struct hostname h;
	snprintf(text, sizeof(text), "n%u.example", i);
	assert_int_equal(hostname_parse(text, strlen(text), &h, NULL), 0);
	return h;
}

static struct name *get(struct names *t, unsigned i, uint64_t now)
{
	struct hostname h = host(i);
	return names_get(t, &h, now);
}

static void test_both_ways(void **state)
{
	struct names *t = names_new(on_remove, NULL);
	for (unsigned i = 0; i < NAMES_MAX; i++) {
		struct name *n = get(t, i, 1);
		assert_non_null(n);
		assert_ptr_equal(get(t, i, 2), n);
		assert_ptr_equal(names_find_ip(t, &n->v4), n);
		assert_ptr_equal(names_find_ip(t, &n->v6), n);
		assert_int_equal(n->v4.bytes[0], 198);
		assert_int_equal(n->v4.bytes[1] & 0xfe, 18);
		assert_int_not_equal(n->v4.bytes[3], 0);
		assert_int_not_equal(n->v4.bytes[3], 255);
	}
	static const struct ip strangers[] = { { .family = AF_INET, .bytes = { 198, 18, 0, 0 } }, { .family = AF_INET, .bytes = { 10, 18, 0, 1 } },
		{ .family = AF_INET, .bytes = { 198, 20, 0, 1 } }, { .family = AF_INET6 }, { .family = AF_INET6, .bytes = { [15] = 1 } },
		{ .family = AF_INET, .bytes = { 198, 19, 255, 255 } } };
	for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++)
		assert_null(names_find_ip(t, &strangers[i]));
	names_free(t);
}

static void test_full_table(void **state)
{
	const uint64_t later = NAMES_REMEMBERED_NS + 1000;
	struct names *t = names_new(on_remove, NULL);
	removed = 0;
	for (unsigned i = 0; i < NAMES_MAX; i++)
		get(t, i, i + 1);
	/* all are remembered by programs still */
	assert_null(get(t, NAMES_MAX, NAMES_MAX));
	assert_int_equal(removed, 0);
	/* the oldest goes, but not one with a connection */
	get(t, 0, 1)->connections = 1;
	struct name *n = get(t, NAMES_MAX, later);
	assert_non_null(n);
	assert_int_equal(removed, 1);
	assert_string_equal(last_removed, "n1.example");
	struct hostname gone = host(1), kept = host(0);
	assert_null(names_find(t, &gone));
	assert_non_null(names_find(t, &kept));
	assert_ptr_equal(names_find_ip(t, &n->v4), n);
	names_free(t);
	assert_int_equal(removed, NAMES_MAX + 1);
}

static void test_addresses_come_back_late(void **state)
{
	struct names *t = names_new(on_remove, NULL);
	struct name *first = get(t, 0, 1);
	struct ip was = first->v4;
	names_remove(t, first);
	assert_null(names_find_ip(t, &was));
	for (unsigned i = 1; i < NAMES_MAX; i++)
		assert_false(ip_equal(&get(t, i, 1)->v4, &was));
	names_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_ways), cmocka_unit_test(test_full_table), cmocka_unit_test(test_addresses_come_back_late),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
