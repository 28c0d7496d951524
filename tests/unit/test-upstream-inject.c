/* SPDX-License-Identifier: Apache-2.0 */
/* The pure parts of the upstream half: where a value goes, a body's placeholder as it streams by, codings that may be asked for, the table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "gate/upstream/accept.h"
#include "gate/upstream/inject.h"
#include "gate/upstream/swap.h"
#include "gate/upstream/table.h"

#define HOLDER "bulkhead-key-0123456789abcdefghijklmnopqrstuv"
#define VALUE "s3cr3t+/&\"val=ue"

static struct http_head head_of(const char *path, const char *const *fields)
{
	struct http_head h;
	http_head_init(&h);
	assert_int_equal(http_head_set(&h, &h.path, path, strlen(path)), 0);
	for (; fields && *fields; fields += 2)
		assert_int_equal(http_head_add(&h, fields[0], fields[1], strlen(fields[1])), 0);
	return h;
}

static void assert_field(const struct http_head *h, const char *name, const char *want)
{
	const struct http_field *f = http_head_get(h, name);
	assert_non_null(f);
	if (!http_text_equal(f->value, want))
		fail_msg("%s is \"%.*s\", not \"%s\"", name, (int)f->value.len, f->value.p, want);
}

/* ---- headers ---- */

static void a_header_holds_the_placeholder_or_something_else(void **state)
{
	static char field[] = "authorization";
	static const struct secret_binding b = { .place = SECRET_IN_HEADER, .field = field };
	/* Basic: "user:" and the placeholder; the same without padding; another password */
	static const struct { const char *value; enum inject_finding want; const char *after; } cases[] = {
		{ HOLDER, INJECT_HERE, VALUE },
		{ "Bearer " HOLDER, INJECT_HERE, "Bearer " VALUE },
		{ "token " HOLDER, INJECT_HERE, "token " VALUE },
		{ "Basic dXNlcjpidWxraGVhZC1rZXktMDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1ub3BxcnN0dXY=", INJECT_HERE, "Basic dXNlcjpzM2NyM3QrLyYidmFsPXVl" },
		{ "basic  dXNlcjpidWxraGVhZC1rZXktMDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1ub3BxcnN0dXY", INJECT_HERE, "Basic dXNlcjpzM2NyM3QrLyYidmFsPXVl" },
		{ "Basic YnVsa2hlYWQta2V5LTAxMjM0NTY3ODlhYmNkZWZnaGlqa2xtbm9wcXJzdHV2Og==", INJECT_HERE, "Basic czNjcjN0Ky8mInZhbD11ZTo=" },
		{ "Basic dXNlcjpwYXNzd29yZA==", INJECT_FOREIGN, NULL },
		{ "Basic !!!!", INJECT_FOREIGN, NULL },
		{ "Basic ", INJECT_FOREIGN, NULL },
		{ "Bearer ghp_theirs", INJECT_FOREIGN, NULL },
		{ "", INJECT_FOREIGN, NULL },
		{ "bulkhead-key-0123456789abcdefghijklmnopqrstu", INJECT_FOREIGN, NULL },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *fields[] = { "authorization", cases[i].value, "x-other", HOLDER, NULL };
		struct http_head h = head_of("/?key=" HOLDER, fields);
		if (inject_look(&b, HOLDER, &h) != cases[i].want)
			fail_msg("\"%s\" is misjudged", cases[i].value);
		if (cases[i].after) {
			assert_int_equal(inject_put(&b, HOLDER, VALUE, strlen(VALUE), &h), 0);
			assert_field(&h, "authorization", cases[i].after);
		}
		/* nowhere else */
		assert_field(&h, "x-other", HOLDER);
		assert_true(http_text_equal(h.path, "/?key=" HOLDER));
		http_head_free(&h);
	}
	struct http_head none = head_of("/", NULL);
	assert_int_equal(inject_look(&b, HOLDER, &none), INJECT_NOTHING);
	http_head_free(&none);
}

static void each_field_of_the_name_must_hold_it(void **state)
{
	static char field[] = "x-key";
	static const struct secret_binding b = { .place = SECRET_IN_HEADER, .field = field };
	static const char *const both[] = { "x-key", HOLDER, "a", "b", "x-key", "2-" HOLDER, NULL };
	static const char *const one[] = { "x-key", HOLDER, "x-key", "other", NULL };
	struct http_head h = head_of("/", both);
	assert_int_equal(inject_look(&b, HOLDER, &h), INJECT_HERE);
	assert_int_equal(inject_put(&b, HOLDER, "value123", 8, &h), 0);
	assert_int_equal(http_head_count(&h, "x-key"), 2);
	assert_field(&h, "x-key", "value123");
	http_head_free(&h);
	h = head_of("/", one);
	assert_int_equal(inject_look(&b, HOLDER, &h), INJECT_FOREIGN);
	http_head_free(&h);
}

static void a_template_sets_the_field_whatever_was_there(void **state)
{
	static char field[] = "authorization", value[] = "Bearer {}";
	static const struct secret_binding b = { .place = SECRET_IN_HEADER, .field = field, .value = value };
	static const char *const theirs[] = { "authorization", "Basic abc", "authorization", "x", NULL };
	struct http_head h = head_of("/", theirs);
	assert_int_equal(inject_look(&b, HOLDER, &h), INJECT_HERE);
	assert_int_equal(inject_put(&b, HOLDER, "value123", 8, &h), 0);
	assert_int_equal(http_head_count(&h, "authorization"), 1);
	assert_field(&h, "authorization", "Bearer value123");
	http_head_free(&h);
	h = head_of("/", NULL);
	assert_int_equal(inject_put(&b, HOLDER, "value123", 8, &h), 0);
	assert_field(&h, "authorization", "Bearer value123");
	http_head_free(&h);
}

/* ---- queries ---- */

static void a_query_key_gets_the_value_percent_encoded(void **state)
{
	static char field[] = "key";
	static const struct secret_binding b = { .place = SECRET_IN_QUERY, .field = field };
	static const struct { const char *path; enum inject_finding want; const char *after; } cases[] = {
		{ "/a?key=" HOLDER, INJECT_HERE, "/a?key=s3cr3t%2B%2F%26%22val%3Due" },
		{ "/a?x=1&key=" HOLDER "&y=" HOLDER, INJECT_HERE, "/a?x=1&key=s3cr3t%2B%2F%26%22val%3Due&y=" HOLDER },
		{ "/a?k%65y=" HOLDER, INJECT_HERE, "/a?k%65y=s3cr3t%2B%2F%26%22val%3Due" },
		{ "/a?key=bulkhead%2Dkey%2D0123456789abcdefghijklmnopqrstuv", INJECT_HERE, "/a?key=s3cr3t%2B%2F%26%22val%3Due" },
		{ "/a?key=v1." HOLDER, INJECT_HERE, "/a?key=v1.s3cr3t%2B%2F%26%22val%3Due" },
		{ "/a?key=other", INJECT_FOREIGN, NULL }, { "/a?key", INJECT_FOREIGN, NULL }, { "/a?key=", INJECT_FOREIGN, NULL },
		{ "/a?key=" HOLDER "&key=other", INJECT_FOREIGN, NULL },
		{ "/a?Key=" HOLDER, INJECT_NOTHING, NULL }, { "/a", INJECT_NOTHING, NULL }, { "/a?", INJECT_NOTHING, NULL }, { "/key=" HOLDER, INJECT_NOTHING, NULL },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct http_head h = head_of(cases[i].path, NULL);
		if (inject_look(&b, HOLDER, &h) != cases[i].want)
			fail_msg("\"%s\" is misjudged", cases[i].path);
		if (cases[i].after) {
			assert_int_equal(inject_put(&b, HOLDER, VALUE, strlen(VALUE), &h), 0);
			if (!http_text_equal(h.path, cases[i].after))
				fail_msg("\"%s\" became \"%.*s\"", cases[i].path, (int)h.path.len, h.path.p);
		}
		http_head_free(&h);
	}
}

/* ---- bodies ---- */

static void assert_swapped(const char *type, const char *body, const char *want)
{
	const char *fields[] = { "content-type", type, NULL };
	struct http_head h = head_of("/", fields);
	for (size_t piece = 1; piece <= strlen(body) + 1; piece++) {
		struct swap *s = swap_new(HOLDER, VALUE, strlen(VALUE), &h);
		struct buf out;
		buf_init(&out, 65536);
		for (size_t at = 0; at < strlen(body); at += piece)
			assert_int_equal(swap_feed(s, body + at, strlen(body) - at < piece ? strlen(body) - at : piece, &out), 0);
		assert_int_equal(swap_end(s, &out), 0);
		if (out.len != strlen(want) || memcmp(out.data, want, out.len) != 0)
			fail_msg("in pieces of %zu \"%s\" became \"%.*s\"", piece, body, (int)out.len, (char *)out.data);
		assert_int_equal(swap_length(s, strlen(body), swap_count(HOLDER, body, strlen(body))), out.len);
		buf_free(&out);
		swap_free(s);
	}
	http_head_free(&h);
}

static void a_body_is_swapped_over_any_border(void **state)
{
	assert_swapped("text/plain", "a" HOLDER "b", "a" VALUE "b");
	assert_swapped("application/x-www-form-urlencoded; charset=utf-8", "client_secret=" HOLDER "&x=bulkhead-key-", "client_secret=s3cr3t%2B%2F%26%22val%3Due&x=bulkhead-key-");
	assert_swapped("application/json", "{\"k\":\"" HOLDER "\"}", "{\"k\":\"s3cr3t+/&\\\"val=ue\"}");
	assert_swapped("application/vnd.api+json", "\"" HOLDER HOLDER "\"", "\"s3cr3t+/&\\\"val=ues3cr3t+/&\\\"val=ue\"");
	assert_swapped("text/plain", "bulkhead-bulkhead-key-0bulkhead-key-0123456789abcdefghijklmnopqrstu", "bulkhead-bulkhead-key-0bulkhead-key-0123456789abcdefghijklmnopqrstu");
}

/* ---- codings ---- */

static void only_readable_codings_are_asked_for(void **state)
{
	static const struct { const char *sent, *range, *want; } cases[] = {
		{ NULL, NULL, "identity" },
		{ "gzip, deflate, br, zstd", NULL, "gzip, deflate, br, zstd" },
		{ "gzip;q=0.5 , compress, *;q=0.1,dcb", NULL, "gzip;q=0.5" },
		{ "BR", NULL, "BR" }, { "x-unknown", NULL, "identity" }, { "", NULL, "identity" }, { " , ,", NULL, "identity" },
		{ "identity;q=0, gzip", NULL, "identity;q=0, gzip" },
		{ "gzip", "bytes=0-10", "identity" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *fields[] = { cases[i].sent ? "accept-encoding" : "x", cases[i].sent ? cases[i].sent : "y", cases[i].range ? "range" : NULL,
			cases[i].range, NULL };
		struct http_head h = head_of("/", fields);
		assert_int_equal(accept_limit(&h), 0);
		assert_int_equal(http_head_count(&h, "accept-encoding"), 1);
		assert_field(&h, "accept-encoding", cases[i].want);
		http_head_free(&h);
	}
}

/* ---- the table ---- */

static void numbers_are_found_and_taken_once(void **state)
{
	enum { N = 5000 };
	struct table_node *nodes = mem_alloc_array(N, sizeof(*nodes)), again;
	struct table t = { 0 };
	assert_null(table_get(&t, 0));
	for (uint64_t i = 0; i < N; i++)
		assert_true(table_put(&t, &nodes[i], i << 40));
	assert_false(table_put(&t, &again, 7ull << 40));
	for (uint64_t i = 0; i < N; i += 2)
		table_remove(&t, &nodes[i]);
	for (uint64_t i = 0; i < N; i++)
		assert_ptr_equal(table_get(&t, i << 40), i % 2 ? &nodes[i] : NULL);
	table_done(&t);
	mem_free(nodes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_holds_the_placeholder_or_something_else),
		cmocka_unit_test(each_field_of_the_name_must_hold_it),
		cmocka_unit_test(a_template_sets_the_field_whatever_was_there),
		cmocka_unit_test(a_query_key_gets_the_value_percent_encoded),
		cmocka_unit_test(a_body_is_swapped_over_any_border),
		cmocka_unit_test(only_readable_codings_are_asked_for),
		cmocka_unit_test(numbers_are_found_and_taken_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
