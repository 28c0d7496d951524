/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/audit-fixture.h"

#include "audit/text.h"

static void test_names(void **state)
{
	for (unsigned t = 0; t < AUDIT_TYPE_MAX; t++) {
		enum audit_type back;
		assert_int_equal(audit_type_from_name(audit_type_name((enum audit_type)t), &back), 0);
		assert_int_equal(back, t);
	}
	for (unsigned s = 0; s < AUDIT_SOURCE_MAX; s++) {
		enum audit_source back;
		assert_int_equal(audit_source_from_name(audit_source_name((enum audit_source)s), &back), 0);
		assert_int_equal(back, s);
	}
	enum audit_type t;
	assert_int_equal(audit_type_from_name("", &t), -1);
	assert_int_equal(audit_type_from_name("sandbox.start ", &t), -1);
}

/* Each type has exactly one source. */
static void test_sources(void **state)
{
	static const enum audit_type gate[] = { AUDIT_EGRESS, AUDIT_EGRESS_END, AUDIT_NAME, AUDIT_REQUEST, AUDIT_REQUEST_END,
		AUDIT_CANARY };
	static const enum audit_type upstream[] = { AUDIT_SECRET_USE, AUDIT_SECRET_FOUND };
	for (unsigned t = 0; t < AUDIT_TYPE_MAX; t++) {
		enum audit_source want = t == AUDIT_LOST ? AUDIT_FROM_AUDITOR : AUDIT_FROM_SUPERVISOR;
		for (size_t i = 0; i < ARRAY_LEN(gate); i++)
			want = gate[i] == t ? AUDIT_FROM_GATE : want;
		for (size_t i = 0; i < ARRAY_LEN(upstream); i++)
			want = upstream[i] == t ? AUDIT_FROM_UPSTREAM : want;
		for (unsigned s = 0; s < AUDIT_SOURCE_MAX; s++)
			assert_int_equal(audit_type_allowed((enum audit_type)t, (enum audit_source)s), s == want);
		assert_false(audit_type_allowed((enum audit_type)t, AUDIT_SOURCE_MAX));
	}
	assert_false(audit_type_allowed(AUDIT_TYPE_MAX, AUDIT_FROM_SUPERVISOR));
}

static void test_fields(void **state)
{
	static const struct {
		enum audit_type type;
		const char *json;
		bool good;
	} cases[] = {
		{ AUDIT_SIGNAL, "{\"signal\":2,\"forwarded\":true}", true },
		{ AUDIT_SIGNAL, "{\"signal\":\"INT\",\"forwarded\":true,\"more\":[1,{\"a\":null}]}", true },
		{ AUDIT_SIGNAL, "{\"signal\":2}", false },
		{ AUDIT_SIGNAL, "{\"signal\":2,\"forwarded\":1}", false },
		{ AUDIT_SIGNAL, "{\"signal\":2.0,\"forwarded\":true}", false },
		{ AUDIT_SIGNAL, "{\"signal\":2,\"forwarded\":true,\"more\":[1,{\"a\":1e3}]}", false },
		{ AUDIT_SIGNAL, "[]", false },
		{ AUDIT_NAME, "{\"name\":{\"base64\":\"/w==\"},\"allow\":false,\"reason\":\"bad_name\",\"count\":1}", true },
		{ AUDIT_NAME, "{\"name\":{\"base64\":\"/w==\",\"x\":1},\"allow\":false,\"reason\":\"bad_name\",\"count\":1}",
			false },
		{ AUDIT_NAME, "{\"name\":null,\"allow\":false,\"reason\":\"bad_name\",\"count\":1}", false },
		{ AUDIT_EXEC_END, "{\"execution\":1,\"duration_ns\":1}", false },
		{ AUDIT_EXEC_END, "{\"execution\":1,\"duration_ns\":1,\"exit\":0}", true },
		{ AUDIT_EXEC_END, "{\"execution\":1,\"duration_ns\":1,\"signal\":9}", true },
		{ AUDIT_OUTPUT, "{\"execution\":1,\"stream\":\"stdin\",\"offset\":0,\"length\":0}", false },
		{ AUDIT_OUTPUT, "{\"execution\":1,\"stream\":\"stdout\",\"offset\":-1,\"length\":0}", false },
		{ AUDIT_OUTPUT, "{\"execution\":1,\"stream\":\"tty\",\"offset\":0,\"length\":0}", true },
		{ AUDIT_SANDBOX_START,
			"{\"id\":\"a\",\"level\":\"container\",\"policy_hash\":\"0\",\"version\":\"1\",\"limits\":[]}", false },
		{ AUDIT_SANDBOX_START,
			"{\"id\":\"a\",\"level\":\"container\",\"policy_hash\":\"0\",\"version\":\"1\",\"limits\":null}",
			true },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = ERR_INIT;
		json_t *v = json_loads(cases[i].json, 0, NULL);
		assert_non_null(v);
		assert_int_equal(audit_fields_check(cases[i].type, v, &err), cases[i].good ? 0 : -1);
		assert_int_equal(err.code, cases[i].good ? ERR_NONE : ERR_INVALID);
		json_decref(v);
	}
}

static void test_depth(void **state)
{
	struct err err;
	json_t *deep = json_null();
	for (unsigned i = 0; i < 100; i++)
		deep = json_pack("[o]", deep);
	json_t *fields = fields_signal(1);
	json_object_set_new(fields, "more", deep);
	assert_int_equal(audit_fields_check(AUDIT_SIGNAL, fields, &err), -1);
	json_decref(fields);
}

static void test_text(void **state)
{
	static const struct {
		const char *data;
		size_t len;
		const char *json;
	} cases[] = {
		{ "", 0, "\"\"" },
		{ "plain é", 8, "\"plain é\"" },
		{ "a\0b", 3, "{\"base64\":\"YQBi\"}" },
		{ "\xff", 1, "{\"base64\":\"/w==\"}" },
		{ "\xc0\x80", 2, "{\"base64\":\"wIA=\"}" },
		{ "\xed\xa0\x80", 3, "{\"base64\":\"7aCA\"}" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_t *v = audit_text_json(cases[i].data, cases[i].len);
		char *text = record_canonical(v);
		size_t len;
		assert_string_equal(text, cases[i].json);
		char *back = audit_text_decode(v, &len);
		assert_int_equal(len, cases[i].len);
		assert_memory_equal(back, cases[i].data, len);
		mem_free(back);
		free(text);
		json_decref(v);
	}
	json_t *bad = json_pack("{s:s}", "base64", "not base64!");
	assert_null(audit_text_decode(bad, NULL));
	json_decref(bad);
	assert_null(audit_text_decode(NULL, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
