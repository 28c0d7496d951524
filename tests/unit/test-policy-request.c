/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict on a request: each part of a rule, which rule wins, which reason is said. */
#include "policy-request-help.h"

#define ONE(rest) TEST_HEAD "network:\n  - { host: a.org, " rest " }\n"

static void methods(void **state)
{
	struct policy *p = policy_of(ONE("methods: [GET, POST]"));
	static const struct expected cases[] = { { "GET /", OK }, { "POST /x", OK }, { "HEAD /", REASON_METHOD_NOT_ALLOWED }, { "get /", REASON_METHOD_NOT_ALLOWED },
		{ "DELETE /", REASON_METHOD_NOT_ALLOWED }, { "GETX /", REASON_METHOD_NOT_ALLOWED }, { "GE /", REASON_METHOD_NOT_ALLOWED }, { " /", REASON_METHOD_NOT_ALLOWED },
		{ "CONNECT /", REASON_METHOD_NOT_ALLOWED }, { "OPTIONS *", REASON_METHOD_NOT_ALLOWED }, { "GET *", REASON_PATH_AMBIGUOUS },
		/* another's way to say the method */
		{ "POST /?_method=DELETE", REASON_METHOD_NOT_ALLOWED }, { "POST /?a=1&_method=delete", REASON_METHOD_NOT_ALLOWED }, { "POST /?a=1;_METHOD=PUT", REASON_METHOD_NOT_ALLOWED },
		{ "POST /?%5fmethod=PUT", REASON_METHOD_NOT_ALLOWED }, { "POST /?_method[]=PUT", REASON_METHOD_NOT_ALLOWED }, { "POST /?_method=get", OK }, { "POST /?_methods=PUT", OK },
		{ "POST /?method=PUT", OK } };
	ask_all(p, "a.org", cases, ARRAY_LEN(cases));
	static const char *const bad[][3] = { { "x-http-method-override", "DELETE" }, { "x-http-method", "PUT" }, { "x-method-override", "PATCH" }, { "X-HTTP-Method-Override", "DELETE" },
		{ "x_http_method_override", "DELETE" }, { "x.http.method.override", "DELETE" }, { "X-HTTP_Method.Override", "DELETE" }, { "x-http-method-override", "" }, { "x-http-method-override", "GET, DELETE" } };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(ask_with(p, "a.org", "POST /", bad[i]), REASON_METHOD_NOT_ALLOWED);
	static const char *const good[] = { "x-http-method-override", "GET", NULL };
	assert_int_equal(ask_with(p, "a.org", "POST /", good), OK);
	policy_free(p);
}

static void a_websocket_is_a_get(void **state)
{
	struct policy *p = policy_of(ONE("methods: [GET]"));
	struct hostname name = name_of("a.org");
	struct request_facts facts = { .name = &name, .port = 443, .tls = true, .method = "CONNECT", .method_len = 7, .target = "/chat", .target_len = 5, .upgrade = true };
	struct request_verdict v = { .path = &asked_path };
	policy_decide_request(p, &facts, &v);
	assert_true(v.verdict.allow);
	facts.upgrade = false;
	policy_decide_request(p, &facts, &v);
	assert_int_equal(v.verdict.reason, REASON_METHOD_NOT_ALLOWED);
	policy_free(p);
}

static void paths(void **state)
{
	struct policy *p = policy_of(ONE("paths: [\"/repos/acme/**\", /user, \"/x/*/y\"]"));
	static const struct expected cases[] = { { "GET /user", OK }, { "DELETE /user", OK }, { "GET /user?a=b", OK }, { "GET /repos/acme/x/y", OK }, { "GET /%72epos/acme/x", OK },
		{ "GET /user/", REASON_PATH_NOT_ALLOWED }, { "GET /User", REASON_PATH_NOT_ALLOWED }, { "GET /repos/other/x", REASON_PATH_NOT_ALLOWED }, { "GET /", REASON_PATH_NOT_ALLOWED },
		{ "GET /repos/acme/../other", REASON_PATH_AMBIGUOUS }, { "GET /repos/acme/%2e%2e/other", REASON_PATH_AMBIGUOUS }, { "GET /repos/acme/%252e%252e/o", REASON_PATH_AMBIGUOUS },
		{ "GET /repos/acme//x", REASON_PATH_AMBIGUOUS }, { "GET /repos%2facme/x", REASON_PATH_AMBIGUOUS }, { "GET //repos/acme/x", REASON_PATH_AMBIGUOUS },
		{ "GET /repos/acme/..;/other", REASON_PATH_AMBIGUOUS }, { "GET /repos/acme\\..\\x", REASON_PATH_AMBIGUOUS }, { "GET http://a.org/user", REASON_PATH_AMBIGUOUS },
		{ "OPTIONS *", REASON_PATH_NOT_ALLOWED }, { "GET /x/a/y", OK }, { "GET /x/a/b/y", REASON_PATH_NOT_ALLOWED } };
	ask_all(p, "a.org", cases, ARRAY_LEN(cases));
	/* what was judged is what is forwarded */
	ask(p, "a.org", "GET /%72epos/acme/%41?q=%41");
	assert_string_equal(asked_path.path, "/repos/acme/A");
	assert_string_equal(asked_path.query, "q=%41");
	static const char *const names[] = { "x-original-url", "X-Rewrite-URL", "x_original_url", "x.original.url", "x-forwarded-prefix", "x-original-uri", "x-override-url", "x-forwarded-uri" };
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *const fields[] = { names[i], "/admin", NULL };
		assert_int_equal(ask_with(p, "a.org", "GET /user", fields), REASON_HEADER_NOT_ALLOWED);
	}
	policy_free(p);
}

/* Rules that don't judge the path let every spelling through, and as it is. */
static void paths_that_nobody_judges(void **state)
{
	struct policy *p = policy_of(ONE("methods: [GET]"));
	assert_int_equal(ask(p, "a.org", "GET /a%2fb//c;d/../e%7e?x"), OK);
	assert_string_equal(asked_path.path, "/a%2fb//c;d/../e%7e");
	assert_string_equal(asked_path.query, "x");
	static const struct expected cases[] = { { "GET a", REASON_PATH_AMBIGUOUS }, { "GET /a b", REASON_PATH_AMBIGUOUS }, { "GET /a#b", REASON_PATH_AMBIGUOUS }, { "GET ", REASON_PATH_AMBIGUOUS } };
	ask_all(p, "a.org", cases, ARRAY_LEN(cases));
	const char *const fields[] = { "x-original-url", "/admin", NULL };
	assert_int_equal(ask_with(p, "a.org", "GET /user", fields), OK);
	policy_free(p);
}

static void queries(void **state)
{
	struct policy *p = policy_of(ONE("query: { key: \"v*\", other: \"*\" }"));
	static const struct expected cases[] = { { "GET /?key=v1&other=", OK }, { "GET /?other=x&key=v", OK }, { "GET /?key=%76x&other=1&free=1", OK }, { "GET /?k%65y=v&other", OK },
		{ "GET /", REASON_QUERY_NOT_ALLOWED }, { "GET /?", REASON_QUERY_NOT_ALLOWED }, { "GET /?key=v", REASON_QUERY_NOT_ALLOWED }, { "GET /?key=x&other=1", REASON_QUERY_NOT_ALLOWED },
		{ "GET /?key=v&key=v&other=1", REASON_QUERY_NOT_ALLOWED }, { "GET /?key=v&key=evil&other=1", REASON_QUERY_NOT_ALLOWED }, { "GET /?KEY=evil&key=v&other=1", REASON_QUERY_NOT_ALLOWED },
		{ "GET /?Key=v&other=1", REASON_QUERY_NOT_ALLOWED }, { "GET /?key[]=evil&key=v&other=1", REASON_QUERY_NOT_ALLOWED }, { "GET /?key%5b0%5d=e&key=v&other=1", REASON_QUERY_NOT_ALLOWED },
		{ "GET /?key=v&other=1;key=evil", REASON_QUERY_NOT_ALLOWED }, { "GET /?key=v%00&other=1", REASON_QUERY_NOT_ALLOWED }, { "GET /?key=v%zz&other=1", REASON_QUERY_NOT_ALLOWED },
		{ "GET /?key%00=e&key=v&other=1", REASON_QUERY_NOT_ALLOWED }, { "GET /?%20key=e&key=v&other=1", REASON_QUERY_NOT_ALLOWED }, { "GET /?+key=e&key=v&other=1", REASON_QUERY_NOT_ALLOWED },
		{ "GET /?key&other=1", REASON_QUERY_NOT_ALLOWED }, { "GET /?key=v?&other=1", OK }, { "GET /?keys=x&key=v&other=1", OK }, { "GET /?key=v&other=a+b", OK },
		{ "GET /?a=?key=v&other=1", REASON_QUERY_NOT_ALLOWED } };
	ask_all(p, "a.org", cases, ARRAY_LEN(cases));
	policy_free(p);
	p = policy_of(ONE("query: { user_id: \"7\" }"));
	static const struct expected alike[] = { { "GET /?user_id=7", OK }, { "GET /?user.id=8&user_id=7", REASON_QUERY_NOT_ALLOWED }, { "GET /?user+id=8&user_id=7", REASON_QUERY_NOT_ALLOWED },
		{ "GET /?user_id=77", REASON_QUERY_NOT_ALLOWED } };
	ask_all(p, "a.org", alike, ARRAY_LEN(alike));
	policy_free(p);
}

static void headers(void **state)
{
	struct policy *p = policy_of(ONE("headers: { X-Team: \"red*\" }"));
	static const struct { const char *fields[7]; enum reason reason; } cases[] = {
		{ { "x-team", "red" }, OK }, { { "X-TEAM", "redder" }, OK }, { { "x-team", "red", "x-teams", "blue" }, OK },
		{ { NULL }, REASON_HEADER_NOT_ALLOWED }, { { "x-team", "blue" }, REASON_HEADER_NOT_ALLOWED }, { { "x-team", "" }, REASON_HEADER_NOT_ALLOWED },
		{ { "x-team", "red", "x-team", "red" }, REASON_HEADER_NOT_ALLOWED }, { { "x-team", "red", "X-Team", "blue" }, REASON_HEADER_NOT_ALLOWED },
		{ { "x-team", "red", "x_team", "blue" }, REASON_HEADER_NOT_ALLOWED }, { { "x_team", "red" }, REASON_HEADER_NOT_ALLOWED }, { { "xteam", "red" }, REASON_HEADER_NOT_ALLOWED } };
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (ask_with(p, "a.org", "GET /", cases[i].fields) != cases[i].reason)
			fail_msg("case %zu: %s", i, reason_name(asked.verdict.reason));
	policy_free(p);
}

#define SECRET "secret: { name: s, header: Authorization, value: \"Bearer {}\" }"

static void secrets_need_tls(void **state)
{
	struct policy *p = policy_of(ONE(SECRET ", ports: [443, 8080]"));
	struct hostname name = name_of("a.org");
	struct request_facts facts = { .name = &name, .port = 8080, .method = "GET", .method_len = 3, .target = "/", .target_len = 1 };
	struct request_verdict v = { .path = &asked_path };
	policy_decide_request(p, &facts, &v);
	assert_int_equal(v.verdict.reason, REASON_SECRET_NEEDS_TLS);
	facts.tls = true;
	policy_decide_request(p, &facts, &v);
	assert_true(v.verdict.allow);
	assert_string_equal(p->rules[v.verdict.rule].request->secret->field, "authorization");
	assert_int_equal(ask(p, "a.org", "TRACE /"), REASON_METHOD_NOT_ALLOWED);
	policy_free(p);
}

static void the_first_rule_that_allows_wins(void **state)
{
	struct policy *p = policy_of(TEST_HEAD "network:\n"
		"  - { host: a.org, methods: [GET], paths: [\"/one/**\"], secret: { name: one, header: authorization } }\n"
		"  - { host: a.org, methods: [GET, POST], paths: [\"/two/**\"], secret: { name: two, header: authorization } }\n"
		"  - { host: \"*.a.org\", inspect: true }\n  - { host: b.org }\n  - { host: b.org, methods: [GET] }\n  - { host: c.org, ports: [8443], methods: [GET] }\n"
		"  - { host: 203.0.113.7, private: true, methods: [GET] }\n");
	assert_int_equal(ask(p, "a.org", "GET /one/x"), OK);
	assert_int_equal(asked.verdict.rule, 0);
	assert_int_equal(ask(p, "a.org", "GET /two/x"), OK);
	assert_int_equal(asked.verdict.rule, 1);
	/* the reason of the rule that came nearest */
	assert_int_equal(ask(p, "a.org", "POST /one/x"), REASON_PATH_NOT_ALLOWED);
	assert_int_equal(asked.verdict.rule, 1);
	assert_int_equal(ask(p, "a.org", "PUT /one/x"), REASON_METHOD_NOT_ALLOWED);
	assert_int_equal(asked.verdict.rule, 0);
	assert_int_equal(ask(p, "a.org", "GET /one/../two"), REASON_PATH_AMBIGUOUS);
	/* `inspect` alone looks and allows everything; so does a rule without any of this */
	assert_int_equal(ask(p, "x.a.org", "DELETE /one/../two"), OK);
	assert_int_equal(asked.verdict.rule, 2);
	assert_int_equal(ask(p, "b.org", "DELETE /"), OK);
	assert_int_equal(asked.verdict.rule, 3);
	/* places that no rule leads to */
	assert_int_equal(ask(p, "d.org", "GET /"), REASON_NO_RULE);
	assert_int_equal(asked.verdict.rule, -1);
	assert_int_equal(ask(p, "c.org", "GET /"), REASON_PORT_NOT_ALLOWED);
	struct ip ip = ip_of("203.0.113.7"), mapped = ip_of("::ffff:203.0.113.7"), other = ip_of("203.0.113.8");
	struct request_facts facts = { .ip = &ip, .port = 443, .tls = true, .method = "GET", .method_len = 3, .target = "/", .target_len = 1 };
	policy_decide_request(p, &facts, &asked);
	assert_true(asked.verdict.allow);
	facts.ip = &mapped;
	policy_decide_request(p, &facts, &asked);
	assert_true(asked.verdict.allow);
	facts.ip = &other;
	policy_decide_request(p, &facts, &asked);
	assert_int_equal(asked.verdict.reason, REASON_ADDRESS_RESERVED);
	policy_free(p);
}

static void what_has_to_be_looked_into(void **state)
{
	struct policy *p = policy_of(TEST_HEAD "network:\n  - { host: a.org }\n  - { host: b.org }\n  - { host: b.org, methods: [GET] }\n  - { host: c.org, ports: [8443], inspect: true }\n"
		"  - { host: d.org, limits: { requests: 5 } }\n  - { host: 8.8.8.8, inspect: true }\n  - { host: e.org, ca: x.pem }\n");
	static const struct { const char *host; uint16_t port; bool yes; } cases[] = { { "a.org", 443, false }, { "b.org", 443, true }, { "b.org", 80, false }, { "c.org", 443, false },
		{ "c.org", 8443, true }, { "d.org", 443, false }, { "e.org", 443, true }, { "x.b.org", 443, false } };
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct hostname name = name_of(cases[i].host);
		assert_int_equal(policy_needs_inspection(p, &name, NULL, cases[i].port), cases[i].yes);
	}
	struct ip ip = ip_of("8.8.8.8"), other = ip_of("8.8.4.4");
	assert_true(policy_needs_inspection(p, NULL, &ip, 443));
	assert_false(policy_needs_inspection(p, NULL, &other, 443));
	assert_true(policy_inspects(p));
	policy_free(p);
	p = policy_of(TEST_HEAD "network:\n  - { host: a.org, limits: { requests: 5 } }\n");
	assert_false(policy_inspects(p));
	assert_int_equal(p->rules[0].limits->requests, 5);
	assert_int_equal(p->rules[0].limits->bytes_up, POLICY_UNLIMITED);
	policy_free(p);
}

static void secrets_from_the_command_line(void **state)
{
	static const char *const bad[] = { "", "x", "@a.org", "s@", "s@a.org:443", "s@*.a.org", "s@8.8.8.8", "1s@a.org", "s s@a.org", "s@a.org:host", "s@a.org:user-agent", "s@a.org:x y", "s@a.org:",
		"s@localhost", "s@a.org/x", "s@https://a.org" };
	struct policy *p = policy_builtin();
	struct err err = ERR_INIT;
	assert_int_equal(policy_add_allow(p, "other.org", &err), 0);
	assert_int_equal(policy_add_allow(p, "a.org", &err), 0);
	assert_int_equal(policy_add_secret(p, "github@a.org", &err), 0);
	assert_int_equal(policy_add_secret(p, "key@b.org:X-Api-Key", &err), 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (policy_add_secret(p, bad[i], &err) == 0)
			fail_msg("accepted: %s", bad[i]);
	assert_int_equal(p->n_rules, 4);
	/* in front of the tunnel that would hide it */
	assert_int_equal(ask(p, "a.org", "GET /"), OK);
	assert_string_equal(p->rules[asked.verdict.rule].request->secret->name, "github");
	assert_string_equal(p->rules[asked.verdict.rule].request->secret->field, "authorization");
	assert_null(p->rules[asked.verdict.rule].request->secret->value);
	assert_int_equal(ask(p, "b.org", "GET /"), OK);
	assert_string_equal(p->rules[asked.verdict.rule].request->secret->field, "x-api-key");
	policy_free(p);
	/* behind rules that judge: those stay the first to be asked */
	p = policy_of(ONE("paths: [/a], secret: { name: narrow, header: authorization }"));
	assert_int_equal(policy_add_secret(p, "wide@a.org", &err), 0);
	assert_int_equal(ask(p, "a.org", "GET /a"), OK);
	assert_string_equal(p->rules[asked.verdict.rule].request->secret->name, "narrow");
	policy_free(p);
}

static void explanations(void **state)
{
	struct policy *p = policy_of(ONE("methods: [GET], paths: [/a], " SECRET ", limits: { rate: 10/m, bytes_up: 1MiB }"));
	static const struct { const char *line, *says[4]; } cases[] = {
		{ "GET /a", { "allowed: GET /a of a.org port 443, by rule 1", "secret: s is put in", "secret s in the header authorization", "at most bytes_up 1 MiB, rate 10/m" } },
		{ "PUT /a", { "denied (method_not_allowed): PUT /a of a.org", "add PUT to the `methods`" } },
		{ "GET /b", { "denied (path_not_allowed)", "add /b to the `paths`", "line 5" } },
		{ "GET /a//b", { "denied (path_ambiguous)" } },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char method[8] = "";
		ask(p, "a.org", cases[i].line);
		memcpy(method, cases[i].line, 3);
		char *text = policy_explain_request(p, &asked, "a.org", 443, method, cases[i].line + 4);
		for (size_t k = 0; k < 4 && cases[i].says[k]; k++)
			if (!strstr(text, cases[i].says[k]))
				fail_msg("\"%s\" is missing in:\n%s", cases[i].says[k], text);
		mem_free(text);
	}
	ask(p, "b.org", "GET /");
	char *text = policy_explain_request(p, &asked, "b.org", 443, "GET\x1b", "/\x1b[2J");
	assert_non_null(strstr(text, "no rule of policy"));
	mem_free(text);
	ask(p, "a.org", "GET /b");
	text = policy_explain_request(p, &asked, "a.org", 443, "GET\x1b", "/\x1b[2J\n");
	assert_null(strchr(text, '\x1b'));
	mem_free(text);
	policy_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(methods),
		cmocka_unit_test(a_websocket_is_a_get),
		cmocka_unit_test(paths),
		cmocka_unit_test(paths_that_nobody_judges),
		cmocka_unit_test(queries),
		cmocka_unit_test(headers),
		cmocka_unit_test(secrets_need_tls),
		cmocka_unit_test(the_first_rule_that_allows_wins),
		cmocka_unit_test(what_has_to_be_looked_into),
		cmocka_unit_test(secrets_from_the_command_line),
		cmocka_unit_test(explanations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
