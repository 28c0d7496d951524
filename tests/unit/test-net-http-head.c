/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "net/http-rules.h"

static int add(struct http_head *h, const char *name, const char *value) { return http_head_add(h, name, value, strlen(value)); }

static void assert_value(const struct http_head *h, const char *name, const char *value)
{
	const struct http_field *f = http_head_get(h, name);
	assert_non_null(f);
	assert_true(http_text_equal(f->value, value));
}

static void fields_are_added_replaced_and_removed(void **state)
{
	struct http_head h;
	http_head_init(&h);
	assert_int_equal(add(&h, "Accept", " a "), 0);
	assert_int_equal(add(&h, "x", "1"), 0);
	assert_int_equal(add(&h, "accept", "b"), 0);
	assert_int_equal(http_head_count(&h, "ACCEPT"), 2);
	assert_true(http_text_equal(h.fields[0].name, "accept"));
	assert_value(&h, "accept", "a");
	h.fields[0].sensitive = true;
	assert_int_equal(http_head_put(&h, "accept", "longer than before", 18), 0);
	assert_int_equal(http_head_count(&h, "accept"), 1);
	assert_false(h.fields[0].sensitive);
	assert_value(&h, "accept", "longer than before");
	assert_value(&h, "x", "1");
	assert_int_equal(http_head_put(&h, "new", "n", 1), 0);
	http_head_remove(&h, "X");
	assert_null(http_head_get(&h, "x"));
	assert_int_equal(h.n_fields, 2);
	assert_int_equal(h.live, 6 + 18 + 3 + 1);
	http_head_free(&h);
	assert_int_equal(h.n_fields, 0);
}

static void what_cannot_be_sent_is_not_taken(void **state)
{
	static const struct { const char *name, *value; size_t len; } bad[] = {
		{ "", "a", 1 }, { "x y", "a", 1 }, { ":path", "a", 1 }, { "x:", "a", 1 }, { "x\r\n", "a", 1 }, { "x", "a\rb", 3 }, { "x", "a\nb", 3 },
		{ "x", "a\0b", 3 }, { "x", "a\x7f", 2 }, { "x", "\x01", 1 }, { "Connection", "close", 5 }, { "transfer-encoding", "chunked", 7 },
		{ "Content-Length", "1", 1 }, { "host", "a", 1 }, { "upgrade", "websocket", 9 }, { "keep-alive", "1", 1 },
		{ "proxy-connection", "close", 5 }, { "te", "gzip", 4 }, { "content_length", "1", 1 }, { "TRANSFER_ENCODING", "1", 1 },
		{ "http2-settings", "a", 1 },
	};
	struct http_head h;
	http_head_init(&h);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(http_head_add(&h, bad[i].name, bad[i].value, bad[i].len), -1);
		assert_int_equal(http_head_put(&h, bad[i].name, bad[i].value, bad[i].len), -1);
	}
	assert_int_equal(h.n_fields, 0);
	assert_int_equal(add(&h, "te", "trailers"), 0);
	assert_int_equal(http_head_put(&h, "te", "x\n", 2), -1);
	assert_value(&h, "te", "trailers");
	http_head_free(&h);
}

static void ceilings_hold_and_leave_the_head_whole(void **state)
{
	static char big[HTTP_HEAD_MAX];
	struct http_head h;
	memset(big, 'a', sizeof(big));
	http_head_init(&h);
	for (size_t i = 0; i < HTTP_FIELDS_MAX; i++)
		assert_int_equal(add(&h, "x", "y"), 0);
	assert_int_equal(add(&h, "x", "y"), -1);
	assert_int_equal(h.n_fields, HTTP_FIELDS_MAX);
	http_head_free(&h);
	assert_int_equal(http_head_set(&h, &h.path, big, sizeof(big)), 0);
	assert_int_equal(add(&h, "x", ""), -1);
	assert_int_equal(http_head_set(&h, &h.path, "/", 1), 0);
	assert_int_equal(http_head_add(&h, "x", big, sizeof(big) - 2), 0);
	assert_int_equal(h.live, sizeof(big));
	assert_int_equal(http_head_put(&h, "x", big, sizeof(big) - 1), -1);
	assert_true(http_text_equal(h.path, "/"));
	assert_int_equal(http_head_get(&h, "x")->value.len, sizeof(big) - 2);
	http_head_free(&h);
}

/* What was replaced makes room again, and every text stays what it was while the buffer moves. */
static void texts_survive_moving(void **state)
{
	struct http_head h, copy;
	char name[16], value[64];
	http_head_init(&h);
	http_head_init(&copy);
	for (unsigned round = 0; round < 200; round++)
		for (unsigned i = 0; i < 50; i++) {
			snprintf(name, sizeof(name), "x-%u", i);
			snprintf(value, sizeof(value), "value %u of %u and some more", i, round);
			assert_int_equal(http_head_put(&h, name, value, strlen(value)), 0);
			assert_int_equal(http_head_set(&h, &h.path, value, strlen(value)), 0);
		}
	/* From its own text. */
	const struct http_field *f = http_head_get(&h, "x-7");
	for (unsigned i = 0; i < 3000; i++)
		assert_int_equal(http_head_put(&h, "x-8", f->value.p, f->value.len), 0);
	assert_int_equal(http_head_copy(&copy, &h), 0);
	for (unsigned i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "x-%u", i);
		snprintf(value, sizeof(value), "value %u of 199 and some more", i == 8 ? 7 : i);
		assert_value(&h, name, value);
		assert_value(&copy, name, value);
	}
	assert_true(http_text_equal(h.path, "value 49 of 199 and some more"));
	assert_int_equal(copy.live, h.live);
	http_head_free(&h);
	assert_value(&copy, "x-0", "value 0 of 199 and some more");
	char *dup = http_text_dup(copy.path);
	assert_string_equal(dup, "value 49 of 199 and some more");
	mem_free(dup);
	http_head_free(&copy);
}

static bool same(const char *scheme, const char *a, const char *b)
{
	return http_authority_same((struct http_text){ scheme, strlen(scheme) }, (struct http_text){ a, strlen(a) }, (struct http_text){ b, strlen(b) });
}

static void authorities_are_compared(void **state)
{
	assert_true(same("https", "a.example", "A.Example:443"));
	assert_true(same("http", "a:80", "a"));
	assert_false(same("https", "a:80", "a"));
	assert_false(same("http", "a:443", "a"));
	assert_false(same("https", "a", "b"));
	assert_false(same("https", "a", "a:4430"));
	assert_false(same("https", "a.", "a"));
	assert_true(http_is_authority("[2001:db8::1]:443", 17));
	assert_false(http_is_authority("a,b", 3));
	assert_false(http_is_authority("a\0b", 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_added_replaced_and_removed),
		cmocka_unit_test(what_cannot_be_sent_is_not_taken),
		cmocka_unit_test(ceilings_hold_and_leave_the_head_whole),
		cmocka_unit_test(texts_survive_moving),
		cmocka_unit_test(authorities_are_compared),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
