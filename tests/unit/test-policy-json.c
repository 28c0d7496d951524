/* SPDX-License-Identifier: Apache-2.0 */
#include <sodium.h>

#include "policy-help.h"

static const char full[] = "version: 1\nname: full\nowner: \"J\\u00fcrgen \\\"x\\\"\"\nreview_by: 2027-02-28\nstrict: true\n"
	"isolation: { minimum: gvisor, allow_emulation: true }\nlifetime: { timeout: 2h, idle: unlimited, budget: nightly }\n"
	"limits: { cpus: 0.5, memory: unlimited, output: 64MiB }\n"
	"files: [ { source: ., target: /workspace }, { source: /a, target: /workspace/b, mode: rw } ]\n"
	"network: [ { host: \"*.Example.com\", ports: [443, 8443] }, { host: 10.0.0.1, private: true } ]\nrecord: { output: false }\n";

static void goes_both_ways(void **state)
{
	struct policy *p = policy_of(full);
	char *text = policy_to_json(p);
	struct err err = ERR_INIT;
	struct policy *q = policy_from_json(text, strlen(text), &err);
	if (!q)
		fail_msg("%s", err.text);
	char *again = policy_to_json(q);
	assert_string_equal(text, again);
	assert_memory_equal(p->hash, q->hash, POLICY_HASH_SIZE);
	assert_int_equal(q->limits.memory, POLICY_UNLIMITED);
	assert_int_equal(q->rules[0].line, p->rules[0].line);
	assert_true(q->rules[0].wildcard);
	assert_string_equal(q->rules[0].name.text, "example.com");
	assert_true(q->rules[1].is_address && q->rules[1].private_ok);
	mem_free(text);
	mem_free(again);
	policy_free(p);
	policy_free(q);
}

static void hash_is_blake2b_of_the_text(void **state)
{
	struct policy *p = policy_of(full);
	char *text = policy_to_json(p);
	uint8_t hash[32];
	crypto_generichash(hash, sizeof(hash), (const unsigned char *)text, strlen(text), NULL, 0);
	assert_memory_equal(hash, p->hash, sizeof(hash));
	mem_free(text);
	policy_free(p);
}

/* The stored form is a promise: hashes in old records must stay checkable. */
static void builtin_is_this_text(void **state)
{
	struct policy *p = policy_builtin();
	char *text = policy_to_json(p);
	assert_string_equal(text,
		"{\"allow_emulation\":false,\"budget\":null,\"builtin\":true,\"files\":[],\"limits\":{\"connections\":256,\"cpus_milli\":2000,"
		"\"disk_bytes\":1073741824,\"egress_bytes\":1073741824,\"egress_requests\":10000,\"idle_ns\":\"unlimited\","
		"\"memory_bytes\":2147483648,\"open_files\":4096,\"output_bytes\":1073741824,\"processes\":512,\"timeout_ns\":900000000000},"
		"\"minimum\":\"container\",\"name\":\"default\",\"network\":[],\"on_timeout\":\"kill\",\"owner\":null,\"record_output\":true,"
		"\"region\":null,\"review_by\":null,\"strict\":false,\"template\":\"host\",\"version\":1}");
	mem_free(text);
	policy_free(p);
}

static void every_change_changes_the_hash(void **state)
{
	struct policy *a = policy_builtin(), *b = policy_builtin();
	assert_memory_equal(a->hash, b->hash, POLICY_HASH_SIZE);
	assert_int_equal(policy_add_allow(b, "example.com", NULL), 0);
	policy_seal(b);
	assert_memory_not_equal(a->hash, b->hash, POLICY_HASH_SIZE);
	policy_free(a);
	policy_free(b);
}

static void assert_refused(const char *text, size_t len)
{
	struct err err = ERR_INIT;
	struct policy *p = policy_from_json(text, len, &err);
	if (p)
		fail_msg("accepted: %.*s", (int)len, text);
	assert_int_not_equal(err.code, ERR_NONE);
	assert_true(strlen(err.text) > 0);
}

/* Each cut, each byte changed: refused, or the very same text again. */
static void nothing_but_the_canonical_form(void **state)
{
	struct policy *p = policy_of(full);
	char *text = policy_to_json(p);
	size_t len = strlen(text);
	for (size_t i = 0; i < len; i++)
		assert_refused(text, i);
	for (size_t i = 0; i < len; i++) {
		static const char swaps[] = " \"0z,{}[]\\\x01\xff";
		char old = text[i];
		for (size_t k = 0; k < sizeof(swaps); k++) {
			text[i] = swaps[k];
			struct policy *q = policy_from_json(text, len, NULL);
			char *again = q ? policy_to_json(q) : NULL;
			if (q)
				assert_memory_equal(again, text, len);
			mem_free(again);
			policy_free(q);
		}
		text[i] = old;
	}
	mem_free(text);
	policy_free(p);
}

static void hostile_documents(void **state)
{
	static const char *const texts[] = { "", "null", "[]", "{}", "{\"version\":1}", "{\"version\":1,\"version\":1}", "1e999", "\"\\u0000\"" };
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		assert_refused(texts[i], strlen(texts[i]));
	size_t len = POLICY_TEXT_MAX * 4u + 1;
	char *big = mem_alloc(len + 1);
	memset(big, '[', len);
	assert_refused(big, len);
	assert_refused(big, len - 1);
	mem_free(big);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_both_ways),
		cmocka_unit_test(hash_is_blake2b_of_the_text),
		cmocka_unit_test(builtin_is_this_text),
		cmocka_unit_test(every_change_changes_the_hash),
		cmocka_unit_test(nothing_but_the_canonical_form),
		cmocka_unit_test(hostile_documents),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
