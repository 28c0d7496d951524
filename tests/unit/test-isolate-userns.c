/* SPDX-License-Identifier: Apache-2.0 */
/* Id maps for mounts: the owner and the inside's user change places, and nobody is shown as somebody else's equal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "isolate/common/userns.h"
#include "spec/spec.h"

#define BASE 0x50000000u

/* Where an id of the disk is shown; UINT32_MAX: nowhere. */
static uint32_t shown(const struct id_map *m, uint32_t id)
{
	for (size_t i = 0; i < m->n; i++)
		if (id >= m->ranges[i].inside && id - m->ranges[i].inside < m->ranges[i].count)
			return m->ranges[i].outside + (id - m->ranges[i].inside);
	return UINT32_MAX;
}

static void check_disjoint(const struct id_map *m)
{
	for (size_t i = 0; i < m->n; i++) {
		assert_true(m->ranges[i].count > 0);
		/* All of it belongs to this sandbox. */
		assert_true(m->ranges[i].outside >= BASE && m->ranges[i].outside - BASE + m->ranges[i].count <= SPEC_ID_RANGE);
		for (size_t j = 0; j < i; j++) {
			const struct id_range *a = &m->ranges[i], *b = &m->ranges[j];
			assert_true(a->inside >= b->inside + b->count || b->inside >= a->inside + a->count);
			assert_true(a->outside >= b->outside + b->count || b->outside >= a->outside + a->count);
		}
	}
}

static void test_owners(void **state)
{
	(void)state;
	static const uint32_t owners[] = { 0, 1, 2, 33, 998, 999, 1000, 1001, 1002, 5000, 65533, 65534, 65535, 65536, 65537,
		100000, 1000000000, 4294967294u };
	for (size_t i = 0; i < ARRAY_LEN(owners); i++) {
		struct id_map m;
		uint32_t owner = owners[i];
		id_map_for_owner(&m, owner, BASE);
		assert_in_range(m.n, 1, ID_MAP_MAX);
		check_disjoint(&m);
		assert_int_equal(shown(&m, owner), BASE + SPEC_INSIDE_ID);
		if (owner != SPEC_INSIDE_ID)
			assert_int_equal(
				shown(&m, SPEC_INSIDE_ID), owner < SPEC_ID_RANGE ? BASE + owner : BASE + SPEC_ID_RANGE - 1);
		for (uint32_t id = 0; id < 2000; id++)
			if (id != owner && id != SPEC_INSIDE_ID)
				assert_int_equal(shown(&m, id), BASE + id);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_owners) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
