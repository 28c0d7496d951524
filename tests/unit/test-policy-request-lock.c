/* SPDX-License-Identifier: Apache-2.0 */
/* Lock files and authorities: what they pin, what is refused, and that a file that wasn't read allows nothing. */
#include "base/text.h"
#include "policy-request-help.h"

#define RULE(rest) TEST_HEAD "network:\n  - { host: h.org, " rest " }\n"
#define SRI512 "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="
#define SRI384 "sha384-OLBgp1GsljhM2TJ+sbHjaiH9txEUvgdDTAzHv2P24donTt6/529l+9Ua0vFImLlb"
#define SRI256 "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
#define SRI1 "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk="
#define HEX256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define HEX384 "38b060a751ac96384cd9327eb1b1e36a21fdb71114be07434c0cc7bf63f6e1da274edebfe76f65fbd51ad2f14898b95b"

static struct err last;

static int read_given(void *ctx, const char *path, size_t max, char **ret_text, size_t *ret_len, struct err *err)
{
	const char *text = ctx;
	if (!text)
		return err_set(err, ERR_NOT_FOUND, "%s is not there", path);
	if (strlen(text) > max)
		return err_set(err, ERR_LIMIT, "too long");
	*ret_text = mem_strdup(text);
	*ret_len = strlen(text);
	return 0;
}

static struct policy *loaded(const char *yaml, const char *file)
{
	struct policy *p = policy_of(yaml);
	uint8_t before[POLICY_HASH_SIZE];
	memcpy(before, p->hash, sizeof(before));
	last = ERR_INIT;
	if (policy_load_files(p, read_given, (void *)(uintptr_t)file, &last) < 0)
		return policy_free(p);
	assert_memory_not_equal(before, p->hash, sizeof(before));
	/* and all of it goes to the gate and back */
	char *json = policy_to_json(p);
	struct err err = ERR_INIT;
	struct policy *q = policy_from_json(json, strlen(json), &err);
	if (!q)
		fail_msg("%s\n%s", err.text, json);
	assert_memory_equal(p->hash, q->hash, sizeof(p->hash));
	mem_free(json);
	policy_free(p);
	return q;
}

static void assert_not_loaded(const char *yaml, const char *file, const char *says)
{
	if (loaded(yaml, file))
		fail_msg("accepted: %s", file);
	if (!strstr(last.text, says))
		fail_msg("\"%s\" is missing in: %s", says, last.text);
	assert_non_null(strstr(last.text, "h.org in line 5"));
}

#define NPM RULE("registry: { protocol: npm, base: /r, lock: package-lock.json }")

static const char npm_lock[] = "{\"lockfileVersion\":3,\"packages\":{\"\":{\"name\":\"x\",\"version\":\"1.0.0\"},"
	"\"node_modules/a\":{\"version\":\"1.0.0\",\"resolved\":\"https://h.org/r/a/-/a-1.0.0.tgz\",\"integrity\":\"" SRI512 "\"},"
	"\"node_modules/a/node_modules/b\":{\"version\":\"2.0.0\",\"resolved\":\"https://h.org/r/b/-/b-2.0.0.tgz#x\",\"integrity\":\"" SRI1 " " SRI256 "\"},"
	"\"node_modules/b\":{\"version\":\"1.0.0\",\"resolved\":\"https://other.example/b/-/b-1.0.0.tgz\",\"integrity\":\"" SRI384 "\"},"
	"\"node_modules/@s/c\":{\"version\":\"3.0.0\",\"resolved\":\"https://h.org/r/@s%2fc/-/c-3.0.0.tgz\",\"integrity\":\"" SRI1 "\"},"
	"\"node_modules/d\":{\"version\":\"4.0.0\",\"integrity\":\"" SRI256 "\"},"
	"\"node_modules/alias\":{\"name\":\"e\",\"version\":\"5.0.0\",\"resolved\":\"https://h.org/r/e/-/e-5.0.0.tgz\",\"integrity\":\"" SRI256 " " SRI256 "\"},"
	"\"node_modules/g\":{\"version\":\"1.0.0\",\"resolved\":\"git+ssh://git@h.org/g.git#abc\",\"integrity\":\"" SRI256 "\"},"
	"\"node_modules/l\":{\"resolved\":\"packages/l\",\"link\":true},\"packages/l\":{\"version\":\"1.0.0\"},"
	"\"node_modules/i\":{\"version\":\"1.0.0\",\"inBundle\":true,\"integrity\":\"" SRI256 "\"},"
	"\"node_modules/x\":{\"version\":\"1.0.0\",\"resolved\":\"https://h.org/r/x/../y/-/y-1.0.0.tgz\",\"integrity\":\"" SRI256 "\"}}}";

static void npm(void **state)
{
	struct policy *p = loaded(NPM, npm_lock);
	if (!p)
		fail_msg("%s", last.text);
	static const struct expected cases[] = {
		{ "GET /r/a/-/a-1.0.0.tgz", OK }, { "GET /r/b/-/b-2.0.0.tgz", OK }, { "GET /r/b/-/b-1.0.0.tgz", OK }, { "GET /r/@s/c/-/c-3.0.0.tgz", OK }, { "GET /r/@s%2Fc/-/c-3.0.0.tgz", OK },
		{ "GET /r/%40s%2fc/-/c-3.0.0.tgz", OK }, { "GET /r/d/-/d-4.0.0.tgz", OK }, { "GET /r/e/-/e-5.0.0.tgz", OK }, { "GET /r/a", OK }, { "GET /r/@s%2fc", OK }, { "GET /r/e", OK },
		{ "GET /r/a/-/a-1.0.1.tgz", REASON_NOT_PINNED }, { "GET /r/a/-/a-1.0.0.tgz?x=1", OK }, { "GET /r/alias", REASON_PACKAGE_NOT_ALLOWED }, { "GET /r/f", REASON_PACKAGE_NOT_ALLOWED },
		{ "GET /r/g", REASON_PACKAGE_NOT_ALLOWED }, { "GET /r/i", REASON_PACKAGE_NOT_ALLOWED }, { "GET /r/y/-/y-1.0.0.tgz", REASON_PACKAGE_NOT_ALLOWED },
		{ "GET /r/-/v1/search", REASON_PACKAGE_NOT_ALLOWED }, { "PUT /r/a", REASON_METHOD_NOT_ALLOWED } };
	ask_all(p, "h.org", cases, ARRAY_LEN(cases));
	ask(p, "h.org", "GET /r/a/-/a-1.0.0.tgz");
	assert_int_equal(asked.n_pins, 1);
	assert_int_equal(asked.pins[0].kind, DIGEST_SHA512);
	assert_string_equal(asked.pins[0].path, "/r/a/-/a-1.0.0.tgz");
	/* the strongest kind, and each digest once */
	ask(p, "h.org", "GET /r/b/-/b-2.0.0.tgz");
	assert_int_equal(asked.n_pins, 1);
	assert_int_equal(asked.pins[0].kind, DIGEST_SHA256);
	char hex[65];
	text_hex(asked.pins[0].digest, 32, hex);
	assert_string_equal(hex, HEX256);
	ask(p, "h.org", "GET /r/@s%2fc/-/c-3.0.0.tgz");
	assert_int_equal(asked.pins[0].kind, DIGEST_SHA1);
	/* what isn't a file has no digest */
	ask(p, "h.org", "GET /r/a");
	assert_int_equal(asked.n_pins, 0);
	policy_free(p);
	/* packages of the rule's own come first */
	p = loaded(RULE("registry: { protocol: npm, base: /r, packages: [a], lock: x }"), npm_lock);
	assert_int_equal(ask(p, "h.org", "GET /r/a/-/a-1.0.0.tgz"), OK);
	assert_int_equal(ask(p, "h.org", "GET /r/b/-/b-1.0.0.tgz"), REASON_PACKAGE_NOT_ALLOWED);
	assert_int_equal(ask(p, "h.org", "GET /r/a/-/a-9.0.0.tgz"), REASON_NOT_PINNED);
	policy_free(p);
}

static void npm_mistakes(void **state)
{
	static const struct { const char *text, *says; } cases[] = {
		{ "", "not JSON" }, { "[]", "lockfileVersion 2 or 3" }, { "{\"lockfileVersion\":1,\"packages\":{}}", "lockfileVersion 2 or 3" }, { "{\"lockfileVersion\":3}", "no `packages`" },
		{ "{\"lockfileVersion\":3,\"packages\":[]}", "no `packages`" }, { "{\"lockfileVersion\":3,\"packages\":{}}", "pins nothing" },
		{ "{\"lockfileVersion\":3,\"lockfileVersion\":3,\"packages\":{}}", "not JSON" },
		{ "{\"lockfileVersion\":3,\"packages\":{\"node_modules/a\":{\"version\":\"1.0.0\",\"integrity\":\"md5-AAAAAAAAAAAAAAAAAAAAAA==\"}}}", "\"node_modules/a\"" },
		{ "{\"lockfileVersion\":3,\"packages\":{\"node_modules/a\":{\"version\":\"1.0.0\",\"integrity\":\"sha256-AAAA\"}}}", "has no sha512" },
		{ "{\"lockfileVersion\":3,\"packages\":{\"node_modules/a\":{\"version\":\"1.0.0\",\"integrity\":\"\"}}}", "has no sha512" },
		{ "{\"lockfileVersion\":3,\"packages\":{\"node_modules/../x\":{\"version\":\"1.0.0\",\"integrity\":\"" SRI256 "\"}}}", "pins nothing" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_not_loaded(NPM, cases[i].text, cases[i].says);
	assert_not_loaded(NPM, NULL, "package-lock.json is not there");
}

#define PYPI RULE("registry: { protocol: pypi, lock: requirements.txt }")

static void pypi(void **state)
{
	struct policy *p = loaded(PYPI, "# comment\n--index-url https://h.org/simple\n\nFoo_Bar==1.0 \\\n    --hash=sha256:" HEX256 " \\\n    --hash=sha384:" HEX384 " # by pip-compile\n"
		"zope.interface[extra]==5.0 ; python_version > \"3\" --hash sha256:" HEX256 "\r\n");
	if (!p)
		fail_msg("%s", last.text);
	static const struct expected cases[] = { { "GET /simple/foo-bar/", OK }, { "GET /simple/zope-interface/", OK }, { "GET /packages/a/foo_bar-1.0-py3-none-any.whl", OK },
		{ "GET /packages/a/Foo_Bar-1.0.tar.gz", OK }, { "GET /simple/other/", REASON_PACKAGE_NOT_ALLOWED }, { "GET /simple/", REASON_PACKAGE_NOT_ALLOWED },
		{ "GET /packages/a/other-1.0.tar.gz", REASON_PACKAGE_NOT_ALLOWED }, { "GET /packages/a/foo_bar-1.0-py3-none-any.whl.metadata", REASON_NOT_PINNED } };
	ask_all(p, "h.org", cases, ARRAY_LEN(cases));
	ask(p, "h.org", "GET /packages/a/foo_bar-9.0-py3-none-any.whl");
	assert_int_equal(asked.n_pins, 2); /* whatever it is called, it must be one of these */
	assert_null(asked.pins[0].path);
	policy_free(p);
	static const struct { const char *text, *says; } bad[] = { { "", "pins nothing" }, { "foo==1.0\n", "line 1 of the lock file: \"foo\" has no --hash" }, { "\nfoo==1.0 --hash=md5:abc\n", "line 2" },
		{ "foo --hash=sha256:" HEX256 "0\n", "is not sha256:" }, { "foo --hash=sha256:zz\n", "is not sha256:" }, { "foo --hash=sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709\n", "is not sha256:" },
		{ "foo --hash\n", "is not sha256:" }, { "-r other.txt\n", "names something else to read" }, { "--requirement=x\n", "names something else" }, { "-e .\n", "names something else" }, { "-cx\n", "names" },
		{ "@x --hash=sha256:" HEX256 "\n", "is not the name of a package" }, { "foo \\\n\\\n", "has no --hash" } };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_not_loaded(PYPI, bad[i].text, bad[i].says);
}

#define APT RULE("registry: { protocol: apt, base: /debian, lock: debs.txt }")

static void apt(void **state)
{
	struct policy *p = loaded(APT, "# sums\n" HEX256 "  pool/main/h/hello/hello_1_amd64.deb\n" HEX384 " *./pool/main/g/g++/g++_1_amd64.deb\n" HEX256 "  dists/x/Release\n\n");
	if (!p)
		fail_msg("%s", last.text);
	static const struct expected cases[] = { { "GET /debian/pool/main/h/hello/hello_1_amd64.deb", OK }, { "GET /debian/pool/main/g/g%2b%2b/g%2b%2b_1_amd64.deb", OK },
		{ "GET /debian/dists/x/Release", OK }, { "GET /debian/dists/x/InRelease", OK }, { "GET /debian/pool/main/h/hello/hello_2_amd64.deb", REASON_NOT_PINNED },
		{ "GET /debian/pool/main/c/curl/curl_1.deb", REASON_NOT_PINNED } };
	ask_all(p, "h.org", cases, ARRAY_LEN(cases));
	ask(p, "h.org", "GET /debian/pool/main/g/g++/g++_1_amd64.deb");
	assert_int_equal(asked.n_pins, 1);
	assert_int_equal(asked.pins[0].kind, DIGEST_SHA384);
	ask(p, "h.org", "GET /debian/dists/x/Release");
	assert_int_equal(asked.n_pins, 1);
	ask(p, "h.org", "GET /debian/dists/x/InRelease");
	assert_int_equal(asked.n_pins, 0);
	policy_free(p);
	static const struct { const char *text, *says; } bad[] = { { "", "pins nothing" }, { "# x\n", "pins nothing" }, { HEX256 "\n", "line 1" }, { "abc  pool/x_1.deb\n", "line 1" },
		{ HEX256 "  pool/../x\n", "no request could ever" }, { HEX256 "x  pool/x\n", "line 1" }, { "\n" HEX256 "  pool//x\n", "line 2" }, { "da39a3ee5e6b4b0d3255bfef95601890afd80709  pool/x\n", "line 1" } };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_not_loaded(APT, bad[i].text, bad[i].says);
}

/* The caller forgot, or could not: closed, never open. */
static void what_was_not_read_allows_nothing(void **state)
{
	static const struct { const char *yaml, *line; } cases[] = { { NPM, "GET /r/a/-/a-1.0.0.tgz" }, { NPM, "GET /r/a" }, { PYPI, "GET /packages/a/foo-1.0.tar.gz" }, { PYPI, "GET /simple/foo/" },
		{ APT, "GET /debian/pool/x/x_1.deb" } };
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct policy *p = policy_of(cases[i].yaml);
		if (ask(p, "h.org", cases[i].line) != REASON_NOT_PINNED)
			fail_msg("%s: %s", cases[i].line, reason_name(asked.verdict.reason));
		policy_free(p);
	}
}

#define CA RULE("ca: ca.pem")
#define PEM "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

static void authorities(void **state)
{
	struct policy *p = loaded(CA, "our own:\n" PEM "\n" PEM);
	if (!p)
		fail_msg("%s", last.text);
	assert_string_equal(p->rules[0].request->ca, "our own:\n" PEM "\n" PEM);
	assert_string_equal(p->rules[0].request->ca_file, "ca.pem");
	policy_free(p);
	static const struct { const char *text, *says; } bad[] = { { "", "no whole certificate" }, { "AAAA", "no whole certificate" }, { "-----BEGIN CERTIFICATE-----\nAAAA\n", "no whole certificate" },
		{ PEM "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "private key" }, { "-----BEGIN RSA PRIVATE KEY-----\n", "private key" },
		{ "-----END CERTIFICATE-----\n", "not a file of PEM" }, { "-----BEGIN CERTIFICATE-----\n" PEM, "not a file of PEM" }, { PEM "\xff", "not text" },
		{ "-----BEGIN CERTIFICATE-----x\nA\n-----END CERTIFICATE-----\n", "not a file of PEM" } };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_not_loaded(CA, bad[i].text, bad[i].says);
	char *big = mem_alloc(RULE_CA_MAX + 2);
	memset(big, '\n', RULE_CA_MAX + 1);
	struct network_rule none = { 0 };
	struct err err = ERR_INIT;
	assert_int_equal(request_rule_set_ca(&none, PEM, strlen(PEM), &err), -1);
	assert_int_equal(request_rule_lock(&none, "", 0, &err), -1);
	p = policy_of(CA);
	assert_int_equal(request_rule_set_ca(&p->rules[0], big, RULE_CA_MAX + 1, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_int_equal(request_rule_set_ca(&p->rules[0], "a\0b", 3, &err), -1);
	policy_free(p);
	mem_free(big);
}

static void very_many_pins(void **state)
{
	struct policy *p = policy_of(APT);
	struct err err = ERR_INIT;
	size_t room = (RULE_PINS_MAX + 1) * 96ul, n = 0;
	char *text = mem_alloc(room);
	for (unsigned i = 0; i < RULE_PINS_MAX; i++)
		n += (size_t)snprintf(text + n, room - n, HEX256 "  pool/x_%u.deb\n", RULE_PINS_MAX - i);
	assert_int_equal(request_rule_lock(&p->rules[0], text, n, &err), 0);
	assert_int_equal(p->rules[0].request->n_pins, RULE_PINS_MAX);
	assert_int_equal(ask(p, "h.org", "GET /debian/pool/x_1.deb"), OK);
	assert_int_equal(ask(p, "h.org", "GET /debian/pool/x_50000.deb"), OK);
	assert_int_equal(ask(p, "h.org", "GET /debian/pool/x_50001.deb"), REASON_NOT_PINNED);
	policy_free(p);
	p = policy_of(APT);
	n += (size_t)snprintf(text + n, room - n, HEX256 "  pool/y.deb\n");
	assert_int_equal(request_rule_lock(&p->rules[0], text, n, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	policy_free(p);
	mem_free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(npm),
		cmocka_unit_test(npm_mistakes),
		cmocka_unit_test(pypi),
		cmocka_unit_test(apt),
		cmocka_unit_test(what_was_not_read_allows_nothing),
		cmocka_unit_test(authorities),
		cmocka_unit_test(very_many_pins),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
