/* SPDX-License-Identifier: Apache-2.0 */
#include <sodium.h>

#include "policy-help.h"
#include "policy/request.h"

static const char full[] = "version: 1\nname: full\nowner: \"J\\u00fcrgen \\\"x\\\"\"\nreview_by: 2027-02-28\nstrict: true\n"
	"isolation: { minimum: gvisor, allow_emulation: true }\nlifetime: { timeout: 2h, idle: unlimited, budget: nightly }\n"
	"limits: { cpus: 0.5, memory: unlimited, output: 64MiB }\n"
	"files: [ { source: ., target: /workspace }, { source: /a, target: /workspace/b, mode: rw } ]\n"
	"network: [ { host: \"*.Example.com\", ports: [443, 8443] }, { host: 10.0.0.1, private: true } ]\nrecord: { output: false }\n";

#define SRI "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
static const char requests[] = TEST_HEAD "detect: { canary: kill }\nnetwork:\n"
	"  - { host: a.org, methods: [GET], paths: [\"/a/**\", /b], query: { k: \"*\" }, headers: { X-Team: r, X-A: s }, limits: { requests: 5, rate: 10/s },\n"
	"      secret: { name: g, header: Authorization, value: \"Bearer {}\", env: TOKEN } }\n"
	"  - { host: r.org, ca: c.pem, registry: { protocol: npm, base: /npm, packages: [x, \"@s/*\"], lock: l.json } }\n"
	"  - { host: g.org, git: { repositories: [a/b] }, secret: { name: q, query: key } }\n  - { host: b.org, inspect: true, limits: { bytes_down: 1MiB } }\n"
	"  - { host: b.org, secret: { name: g, body: true } }\n";

static void load_files(struct policy *p)
{
	static const char pem[] = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
	static const char lock[] = "{\"lockfileVersion\":3,\"packages\":{\"node_modules/x\":{\"version\":\"1.0.0\",\"integrity\":\"" SRI "\"},"
		"\"node_modules/@s/y\":{\"version\":\"2.0.0\",\"integrity\":\"" SRI "\"}}}";
	assert_int_equal(request_rule_set_ca(&p->rules[1], pem, strlen(pem), NULL), 0);
	assert_int_equal(request_rule_lock(&p->rules[1], lock, strlen(lock), NULL), 0);
	policy_seal(p);
}

static void requests_are_this_text(void **state)
{
	struct policy *p = policy_of(requests);
	load_files(p);
	char *text = policy_to_json(p);
	static const char *const parts[] = {
		"\"canary\":\"kill\"",
		"{\"host\":\"a.org\",\"limits\":{\"rate_count\":10,\"rate_ns\":1000000000,\"requests\":5},\"line\":6,\"ports\":[443],\"private\":false,\"request\":{\"headers\":{\"x-a\":\"s\","
		"\"x-team\":\"r\"},\"methods\":[\"GET\"],\"paths\":[\"/a/**\",\"/b\"],\"query\":{\"k\":\"*\"},\"secret\":{\"field\":\"authorization\",\"name\":\"g\",\"place\":\"header\","
		"\"value\":\"Bearer {}\",\"variable\":\"TOKEN\"}}}",
		"\"request\":{\"ca\":\"-----BEGIN CERTIFICATE-----\\nAAAA\\n-----END CERTIFICATE-----\\n\",\"ca_file\":\"c.pem\",\"registry\":{\"base\":\"/npm\",\"lock\":\"l.json\","
		"\"packages\":[\"x\",\"@s/*\"],\"pins\":[\"" SRI " /npm/@s/y/-/y-2.0.0.tgz\",\"" SRI " /npm/x/-/x-1.0.0.tgz\"],\"protocol\":\"npm\"}}",
		"\"request\":{\"git\":{\"push\":false,\"repositories\":[\"a/b\"]},\"secret\":{\"field\":\"key\",\"name\":\"q\",\"place\":\"query\"}}",
		"{\"host\":\"b.org\",\"limits\":{\"bytes_down\":1048576},\"line\":10,\"ports\":[443],\"private\":false,\"request\":{}}",
		"\"request\":{\"secret\":{\"name\":\"g\",\"place\":\"body\"}}",
	};
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (!strstr(text, parts[i]))
			fail_msg("%s is missing in\n%s", parts[i], text);
	struct err err = ERR_INIT;
	struct policy *q = policy_from_json(text, strlen(text), &err);
	if (!q)
		fail_msg("%s", err.text);
	char *again = policy_to_json(q);
	assert_string_equal(text, again);
	assert_memory_equal(p->hash, q->hash, POLICY_HASH_SIZE);
	assert_int_equal(q->rules[1].request->n_pins, 2);
	assert_int_equal(q->canary, CANARY_KILL);
	mem_free(text);
	mem_free(again);
	policy_free(p);
	policy_free(q);
}

/* Policies of before these keys keep their text, and so the hashes in old records. */
static void rules_without_requests_are_as_ever(void **state)
{
	struct policy *p = policy_of(TEST_HEAD "network:\n  - { host: a.org }\n");
	char *text = policy_to_json(p);
	assert_non_null(strstr(text, "\"name\":\"t\",\"network\":[{\"host\":\"a.org\",\"line\":5,\"ports\":[443],\"private\":false}],\"on_timeout\""));
	assert_null(strstr(text, "canary"));
	mem_free(text);
	policy_free(p);
}

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
static void assert_canonical(struct policy *p)
{
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

static void nothing_but_the_canonical_form(void **state)
{
	assert_canonical(policy_of(full));
	struct policy *p = policy_of(requests);
	load_files(p);
	assert_canonical(p);
}

/* Values that the policy file couldn't have said, in otherwise good documents. */
static void values_of_no_policy(void **state)
{
	static const char *const swaps[][2] = {
		{ "\"methods\":[\"GET\"]", "\"methods\":[\"get\"]" }, { "\"methods\":[\"GET\"]", "\"methods\":[]" }, { "\"methods\":[\"GET\"]", "\"methods\":[1]" }, { "/a/**", "/a/.." },
		{ "\"x-a\"", "\"X-A\"" }, { "\"x-a\"", "\"host\"" }, { "\"place\":\"header\"", "\"place\":\"query\"" }, { "\"place\":\"body\"", "\"place\":\"header\"" },
		{ "\"Bearer {}\"", "\"Bearer\"" }, { "\"canary\":\"kill\"", "\"canary\":\"deny\"" }, { "\"canary\":\"kill\"", "\"canary\":1" }, { "\"rate_ns\":1000000000", "\"rate_ns\":7" },
		{ "\"rate_count\":10,\"rate_ns\":1000000000,", "\"rate_count\":10," }, { "\"requests\":5", "\"requests\":0" }, { "{\"bytes_down\":1048576}", "{}" },
		{ "-----BEGIN CERTIFICATE", "-----BEGIN PRIVATE KEY" }, { "\"ca_file\":\"c.pem\",", "" }, { "\"lock\":\"l.json\",", "" }, { "\"protocol\":\"npm\"", "\"protocol\":\"none\"" },
		{ " /npm/@s/y", " /zzz/@s/y" }, { SRI " /npm/x/-/x", "md5-1B2M2Y8AsgTpgAmY7PhCfg== /npm/x/-/x" }, { "/npm/x/-/x-1", "/npm/x/-/../x-1" }, { "\"push\":false,", "" }, { "[\"a/b\"]", "[\"a/b.git\"]" },
		{ "\"request\":{}", "\"request\":null" }, { "\"request\":{}", "\"request\":[]" }, { "\"request\":{}", "\"request\":{\"x\":1}" },
	};
	struct policy *p = policy_of(requests);
	load_files(p);
	char *text = policy_to_json(p);
	for (size_t i = 0; i < ARRAY_LEN(swaps); i++) {
		const char *at = strstr(text, swaps[i][0]);
		if (!at)
			fail_msg("%s is not there", swaps[i][0]);
		char *other = mem_printf("%.*s%s%s", (int)(at - text), text, swaps[i][1], at + strlen(swaps[i][0]));
		assert_refused(other, strlen(other));
		mem_free(other);
	}
	mem_free(text);
	policy_free(p);
}

static void hostile_documents(void **state)
{
	static const char *const texts[] = { "", "null", "[]", "{}", "{\"version\":1}", "{\"version\":1,\"version\":1}", "1e999", "\"\\u0000\"" };
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		assert_refused(texts[i], strlen(texts[i]));
	size_t len = POLICY_CANONICAL_MAX + 1;
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
		cmocka_unit_test(requests_are_this_text),
		cmocka_unit_test(rules_without_requests_are_as_ever),
		cmocka_unit_test(values_of_no_policy),
		cmocka_unit_test(nothing_but_the_canonical_form),
		cmocka_unit_test(hostile_documents),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
