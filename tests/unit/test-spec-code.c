/* SPDX-License-Identifier: Apache-2.0 */
#include "spec-help.h"

static struct buf encoded(const struct spec *s)
{
	struct buf b;
	buf_init(&b, SPEC_ENCODED_MAX);
	assert_int_equal(spec_encode(&b, s), 0);
	return b;
}

static void assert_same(const struct spec *a, const struct spec *b)
{
	assert_string_equal(a->id, b->id);
	assert_int_equal(a->privileged, b->privileged);
	assert_int_equal(a->host_id_base, b->host_id_base);
	assert_string_equal(a->hostname, b->hostname);
	assert_string_equal(a->workdir, b->workdir);
	assert_int_equal(a->n_mounts, b->n_mounts);
	for (size_t i = 0; i < a->n_mounts; i++) {
		assert_string_equal(a->mounts[i].target, b->mounts[i].target);
		assert_int_equal(a->mounts[i].mode, b->mounts[i].mode);
		assert_int_equal(a->mounts[i].is_file, b->mounts[i].is_file);
		assert_int_equal(a->mounts[i].owner_uid, b->mounts[i].owner_uid);
		assert_int_equal(a->mounts[i].owner_gid, b->mounts[i].owner_gid);
	}
	assert_memory_equal(&a->limits, &b->limits, sizeof(a->limits));
	assert_int_equal(a->egress, b->egress);
	assert_int_equal(a->n_routes, b->n_routes);
	for (size_t i = 0; i < a->n_routes; i++)
		assert_true(ip_equal(&a->routes[i], &b->routes[i]));
	assert_int_equal(a->n_files, b->n_files);
	for (size_t i = 0; i < a->n_files; i++)
		assert_string_equal(a->files[i], b->files[i]);
}

static void goes_both_ways(void **state)
{
	struct spec s = spec_full(), back;
	struct buf b = encoded(&s);
	struct err err = ERR_INIT;
	if (spec_decode(b.data, b.len, &back, &err) < 0)
		fail_msg("%s", err.text);
	assert_same(&s, &back);
	buf_free(&b);
	spec_done(&back);
	mem_free(s.host_uname);
	s.host_uname = NULL; /* counts as "" */
	b = encoded(&s);
	assert_int_equal(spec_decode(b.data, b.len, &back, NULL), 0);
	buf_free(&b);
	spec_done(&back);
	spec_done(&s);
}

static void nothing_short_nothing_more(void **state)
{
	struct spec s = spec_full(), back;
	struct buf b = encoded(&s);
	for (size_t n = 0; n < b.len; n++) {
		/* an exact copy, so that a read past the end is seen by the address sanitizer */
		uint8_t *cut = mem_alloc(n ? n : 1);
		memcpy(cut, b.data, n);
		struct err err = ERR_INIT;
		assert_int_equal(spec_decode(cut, n, &back, &err), -1);
		assert_int_equal(err.code, ERR_PROTOCOL);
		mem_free(cut);
	}
	assert_int_equal(buf_put_u8(&b, 0), 0);
	assert_int_equal(spec_decode(b.data, b.len, &back, NULL), -1);
	buf_free(&b);
	spec_done(&s);
}

/* Each bit turned: refused, or a valid description that writes itself as the very bytes that were read. */
static void every_flipped_bit(void **state)
{
	struct spec s = spec_full();
	struct buf b = encoded(&s);
	unsigned accepted = 0;
	for (size_t i = 0; i < b.len * 8; i++) {
		struct spec back;
		b.data[i / 8] ^= (uint8_t)(1u << i % 8);
		if (spec_decode(b.data, b.len, &back, NULL) == 0) {
			assert_int_equal(spec_validate(&back, NULL), 0);
			struct buf again = encoded(&back);
			assert_int_equal(again.len, b.len);
			assert_memory_equal(again.data, b.data, b.len);
			buf_free(&again);
			spec_done(&back);
			accepted++;
		}
		b.data[i / 8] ^= (uint8_t)(1u << i % 8);
	}
	assert_true(accepted > 0 && accepted < b.len * 8);
	buf_free(&b);
	spec_done(&s);
}

static void decoding_judges(void **state)
{
	struct spec s = spec_full(), back;
	struct err err = ERR_INIT;
	add_mount(&s, "/etc", MOUNT_RW, false);
	struct buf b = encoded(&s);
	assert_int_equal(spec_decode(b.data, b.len, &back, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_non_null(strstr(err.text, "/etc"));
	buf_free(&b);
	spec_done(&s);
}

static void ceilings(void **state)
{
	struct spec s = spec_full(), back;
	struct buf b;
	struct err err = ERR_INIT;
	buf_init(&b, 10);
	assert_int_equal(spec_encode(&b, &s), -1);
	buf_free(&b);
	char *big = mem_alloc(SPEC_ENCODED_MAX + 1);
	assert_int_equal(spec_decode(big, SPEC_ENCODED_MAX + 1, &back, &err), -1);
	assert_int_equal(err.code, ERR_PROTOCOL);
	mem_free(big);
	size_t kept = s.n_routes;
	s.n_routes = SPEC_ROUTES_MAX + 1;
	buf_init(&b, SPEC_ENCODED_MAX);
	assert_int_equal(spec_encode(&b, &s), -1);
	s.n_routes = kept;
	kept = s.n_files;
	s.n_files = SPEC_FILES_MAX + 1;
	assert_int_equal(spec_encode(&b, &s), -1);
	s.n_files = kept;
	buf_free(&b);
	spec_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_both_ways),
		cmocka_unit_test(nothing_short_nothing_more),
		cmocka_unit_test(every_flipped_bit),
		cmocka_unit_test(decoding_judges),
		cmocka_unit_test(ceilings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
