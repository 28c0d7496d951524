/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead policy check | explain: answers and exit statuses, by calling the command itself. */
#include <stdlib.h>
#include <unistd.h>

#include <jansson.h>

#include "base/fd.h"
#include "policy-help.h"
#include "program/bulkhead/command.h"

static char dir[] = "/tmp/policy-cli-XXXXXX";

static void write_file(const char *name, const char *text)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int set_up(void **state)
{
	if (!mkdtemp(dir) || chdir(dir) < 0)
		return -1;
	write_file("good.yaml", TEST_HEAD "review_by: 2000-01-01\nnetwork:\n  - { host: api.example.com }\n  - { host: 10.0.0.1, private: true }\n");
	write_file("requests.yaml", TEST_HEAD "network:\n  - { host: api.example.com, methods: [GET], paths: [\"/a/**\"], secret: { name: github, header: authorization } }\n"
		"  - { host: t.example.com }\n  - { host: n.example.com, registry: { protocol: npm, lock: lock.json } }\n  - { host: b.example.com, limits: { rate: 5/s } }\n");
	write_file("lock.json", "{\"lockfileVersion\":3,\"packages\":{\"node_modules/x\":{\"version\":\"1.0.0\",\"integrity\":\"sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\"}}}");
	write_file("nolock.yaml", TEST_HEAD "network:\n  - { host: n.example.com, registry: { protocol: npm, lock: nowhere.json } }\n");
	write_file("noca.yaml", TEST_HEAD "network:\n  - { host: n.example.com, ca: lock.json }\n");
	write_file("bad.yaml", TEST_HEAD "netwrok: []\n");
	return 0;
}

static int tear_down(void **state)
{
	return unlink("requests.yaml") < 0 || unlink("lock.json") < 0 || unlink("nolock.yaml") < 0 || unlink("noca.yaml") < 0 || unlink("good.yaml") < 0 || unlink("bad.yaml") < 0 || chdir("/") < 0 || rmdir(dir) < 0 ? -1 : 0;
}

/* Runs the command with standard output in a file, and gives back what it wrote there. */
static char *ask(int expected, bool json, const char *const *args)
{
	char *argv[8] = { mem_strdup("policy") };
	int argc = 1;
	for (; *args; args++)
		argv[argc++] = mem_strdup(*args);
	char *given[8];
	memcpy(given, argv, sizeof(argv));
	fflush(stdout);
	FILE *out = tmpfile();
	int kept = dup(STDOUT_FILENO);
	assert_non_null(out);
	dup2(fileno(out), STDOUT_FILENO);
	struct globals g = { .json = json };
	int status = command_policy.run(&g, argc, argv);
	dup2(kept, STDOUT_FILENO);
	close(kept);
	static char text[65536];
	rewind(out);
	text[fread(text, 1, sizeof(text) - 1, out)] = '\0';
	fclose(out);
	if (status != expected)
		fail_msg("status %d, expected %d: %s", status, expected, text);
	for (int i = 0; i < argc; i++)
		mem_free(given[i]);
	return text;
}

#define ASK(status, json, ...) ask(status, json, (const char *const[]){ __VA_ARGS__, NULL })
#define ASSERT_SAYS(text, part) assert_non_null(strstr(text, part))

static void check_answers(void **state)
{
	char *text = ASK(0, false, "check", "good.yaml");
	ASSERT_SAYS(text, "OK t ");
	ASSERT_SAYS(text, "2 network rules, 0 mounts");
	ASSERT_SAYS(text, "warning: good.yaml:4:12: the policy was to be reviewed by 2000-01-01");
	assert_string_equal(ASK(EXIT_NO, false, "check", "bad.yaml"), "");
	ASK(EXIT_FAILED, false, "check", "missing.yaml");
	ASK(EXIT_FAILED, false, "check", "good.yaml", "bad.yaml");
	ASK(EXIT_FAILED, false, "check");
	ASK(EXIT_FAILED, false, "sing");
}

static json_t *parsed(const char *text)
{
	json_t *value = json_loads(text, 0, NULL);
	if (!value)
		fail_msg("not JSON: %s", text);
	return value;
}

static void check_in_json(void **state)
{
	json_t *v = parsed(ASK(0, true, "check", "good.yaml"));
	assert_true(json_is_true(json_object_get(v, "ok")));
	assert_int_equal(json_string_length(json_object_get(v, "hash")), 64);
	assert_int_equal(json_array_size(json_object_get(v, "warnings")), 1);
	assert_string_equal(json_string_value(json_object_get(json_object_get(v, "policy"), "name")), "t");
	json_decref(v);
	v = parsed(ASK(EXIT_NO, true, "check", "bad.yaml"));
	assert_true(json_is_false(json_object_get(v, "ok")));
	ASSERT_SAYS(json_string_value(json_object_get(json_object_get(v, "error"), "text")), "bad.yaml:4:1: ");
	json_decref(v);
	/* a path that is not UTF-8 still gives one JSON document */
	v = parsed(ASK(EXIT_FAILED, true, "check", "x\xff"));
	json_decref(v);
}

static void explain_answers(void **state)
{
	ASSERT_SAYS(ASK(0, false, "explain", "good.yaml", "api.example.com:443"), "allowed: api.example.com port 443, by rule 1");
	ASSERT_SAYS(ASK(0, false, "explain", "--policy", "good.yaml", "API.example.com."), "line 6");
	ASSERT_SAYS(ASK(EXIT_NO, false, "explain", "good.yaml", "http://api.example.com/x"), "port_not_allowed");
	ASSERT_SAYS(ASK(0, false, "explain", "good.yaml", "https://u:p@api.example.com/x@y"), "api.example.com port 443");
	ASSERT_SAYS(ASK(EXIT_NO, false, "explain", "good.yaml", "https://api.example.com@evil.org/"), "names evil.org");
	ASSERT_SAYS(ASK(EXIT_NO, false, "explain", "good.yaml", "https://evil.org\\@api.example.com/"), "names evil.org");
	ASSERT_SAYS(ASK(0, false, "explain", "good.yaml", "10.0.0.1:443"), "rule 2");
	ASSERT_SAYS(ASK(0, false, "explain", "good.yaml", "[::ffff:10.0.0.1]:443"), "rule 2");
	ASSERT_SAYS(ASK(EXIT_NO, false, "explain", "good.yaml", "::1"), "address_loopback");
	ASSERT_SAYS(ASK(EXIT_NO, false, "explain", "2130706433"), "bad_name");
	ASSERT_SAYS(ASK(EXIT_NO, false, "explain", "example.com"), "policy \"default\"");
	ASK(EXIT_FAILED, false, "explain");
	ASK(EXIT_FAILED, false, "explain", "bad.yaml", "example.com");
	ASK(EXIT_FAILED, false, "explain", "--policy", "good.yaml", "good.yaml", "example.com");
	ASK(EXIT_FAILED, false, "explain", "example.com:99999");
}

static void explain_in_json(void **state)
{
	json_t *v = parsed(ASK(0, true, "explain", "good.yaml", "api.example.com"));
	assert_true(json_is_true(json_object_get(v, "allowed")));
	assert_true(json_is_null(json_object_get(v, "port")));
	assert_int_equal(json_integer_value(json_object_get(json_object_get(v, "rule"), "line")), 6);
	json_decref(v);
	v = parsed(ASK(EXIT_NO, true, "explain", "evil\xff.org"));
	assert_string_equal(json_string_value(json_object_get(v, "reason")), "bad_name");
	assert_true(json_is_null(json_object_get(v, "rule")));
	json_decref(v);
}

static void check_shows_what_rules_look_at(void **state)
{
	char *text = ASK(0, false, "check", "requests.yaml");
	ASSERT_SAYS(text, "line 5: api.example.com: inspected: methods GET; paths /a/**; secret github in the header authorization\n");
	ASSERT_SAYS(text, "line 7: n.example.com: inspected: the protocol's methods; npm registry, read only, what lock.json pins (1 digest), packages x\n");
	ASSERT_SAYS(text, "line 8: b.example.com: at most rate 5/s\n");
	assert_null(strstr(text, "t.example.com"));
	/* files are looked for beside the policy, wherever that is */
	char path[128];
	snprintf(path, sizeof(path), "%s/requests.yaml", dir);
	assert_int_equal(chdir("/"), 0);
	ASSERT_SAYS(ASK(0, false, "check", path), "pins (1 digest)");
	assert_int_equal(chdir(dir), 0);
	assert_string_equal(ASK(EXIT_FAILED, false, "check", "nolock.yaml"), "");
	json_t *v = parsed(ASK(EXIT_NO, true, "check", "noca.yaml"));
	ASSERT_SAYS(json_string_value(json_object_get(json_object_get(v, "error"), "text")), "noca.yaml: `ca: lock.json` of the rule for n.example.com in line 5: it has no whole certificate");
	json_decref(v);
}

static void explain_requests(void **state)
{
	ASSERT_SAYS(ASK(0, false, "explain", "requests.yaml", "api.example.com", "GET", "/a/b"), "secret: github is put in");
	ASSERT_SAYS(ASK(0, false, "explain", "--policy", "requests.yaml", "api.example.com:443", "/a/b"), "allowed: GET /a/b of api.example.com port 443");
	ASSERT_SAYS(ASK(0, false, "explain", "requests.yaml", "https://api.example.com/a/b?c"), "allowed: GET /a/b?c");
	ASSERT_SAYS(ASK(EXIT_NO, false, "explain", "requests.yaml", "api.example.com", "POST", "/a/b"), "denied (method_not_allowed)");
	ASSERT_SAYS(ASK(EXIT_NO, false, "explain", "requests.yaml", "api.example.com", "GET"), "denied (path_not_allowed)");
	ASSERT_SAYS(ASK(EXIT_NO, false, "explain", "requests.yaml", "api.example.com", "/a/../b"), "denied (path_ambiguous)");
	ASSERT_SAYS(ASK(EXIT_NO, false, "explain", "requests.yaml", "evil.org", "GET", "/a"), "no rule of policy");
	ASSERT_SAYS(ASK(0, false, "explain", "requests.yaml", "t.example.com", "DELETE", "/"), "not inspected: a tunnel");
	ASSERT_SAYS(ASK(0, false, "explain", "requests.yaml", "n.example.com", "/x/-/x-1.0.0.tgz"), "must have the digest that lock.json pins");
	ASSERT_SAYS(ASK(0, false, "explain", "requests.yaml", "api.example.com"), "inspected: methods GET");
	ASK(EXIT_FAILED, false, "explain", "requests.yaml", "api.example.com", "get", "/a");
	ASK(EXIT_FAILED, false, "explain", "requests.yaml", "api.example.com", "/a", "GET");
	json_t *v = parsed(ASK(0, true, "explain", "requests.yaml", "api.example.com", "GET", "/a/b"));
	assert_true(json_is_true(json_object_get(v, "inspected")));
	assert_string_equal(json_string_value(json_object_get(v, "method")), "GET");
	assert_string_equal(json_string_value(json_object_get(v, "path")), "/a/b");
	assert_string_equal(json_string_value(json_object_get(v, "secret")), "github");
	json_decref(v);
	v = parsed(ASK(EXIT_NO, true, "explain", "requests.yaml", "api.example.com", "/\xff\x1b"));
	assert_true(json_is_null(json_object_get(v, "secret")));
	json_decref(v);
	v = parsed(ASK(0, true, "explain", "requests.yaml", "t.example.com", "GET", "/"));
	assert_true(json_is_false(json_object_get(v, "inspected")));
	assert_true(json_is_null(json_object_get(v, "method")));
	json_decref(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_answers),
		cmocka_unit_test(check_in_json),
		cmocka_unit_test(explain_answers),
		cmocka_unit_test(explain_in_json),
		cmocka_unit_test(check_shows_what_rules_look_at),
		cmocka_unit_test(explain_requests),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
