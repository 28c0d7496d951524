/* SPDX-License-Identifier: Apache-2.0 */
/* The pure parts of the gate: what first bytes are, what a target is, the hosts table, the budget. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "gate/budget.h"
#include "policy/request.h"
#include "gate/hosts.h"
#include "gate/inspect.h"
#include "gate/target.h"

static struct inspection found;

static enum inspect_result look(const char *text, size_t len, bool eof, uint16_t port)
{
	return inspect_first_bytes(text, len ? len : strlen(text), eof, port, &found);
}

/* ---- first bytes ---- */

static void other_protocols_are_raw_at_once_or_at_their_first_line(void **state)
{
	static const struct { const char *text; size_t len; } raw[] = {
		{ "SSH-2.0-OpenSSH_9.2\r\n", 0 }, { "EHLO me\r\n", 0 }, { "*1\r\n", 0 }, { "GET key\r\n", 0 }, { "get key\r\n", 0 }, { "USER x\r\n", 0 },
		{ "CONNECT {\"verbose\":false}\r\n", 0 }, { "\0\0\0\x08\x04\xd2\x16\x2f", 8 }, { "\x10\x1a\0\4MQTT", 8 }, { "AMQP\0\0\x09\1", 8 },
		{ "003egit-upload-pack /p.git\0host=a\0", 34 }, { "\x80\x2e\1\3\1", 5 }, { "\x16\x02\x01", 3 }, { "{\"json\": 1}\n", 0 }, { "\x3a\0\0\0", 4 },
		{ "see http://example.com/ for more\n", 0 }, { "\xff\xfb\x18", 3 },
	};
	for (size_t i = 0; i < ARRAY_LEN(raw); i++)
		if (look(raw[i].text, raw[i].len, false, 9999) != INSPECT_RAW)
			fail_msg("not raw: %s", raw[i].text);
	assert_int_equal(inspect_first_bytes("", 0, true, 9999, &found), INSPECT_RAW);
}

static void a_part_of_a_request_is_never_raw(void **state)
{
	static const char *const requests[] = { "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "X-ANY /%00 HTTP/1.1\r\nHost: a\r\n\r\n",
		"\r\n \r\nPOST /a\tb HTTP/1.0\r\n\r\n", "get\t/\thttp/1.1\n\n", "GET /\x01\x02 HTTP/1.1\r\nHost: a\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" };
	for (size_t i = 0; i < ARRAY_LEN(requests); i++)
		for (size_t n = 1; n <= strlen(requests[i]); n++)
			if (look(requests[i], n, false, 9999) == INSPECT_RAW)
				fail_msg("%zu bytes of it passed as raw: %s", n, requests[i]);
}

static void a_request_at_the_end_of_input_is_judged(void **state)
{
	assert_int_equal(look("GET / HTTP/1.1", 0, true, 9999), INSPECT_REFUSE);
	assert_int_equal(found.reason, REASON_HTTP_MALFORMED);
	assert_int_equal(look("GET / HT", 0, true, 9999), INSPECT_REFUSE);
	assert_int_equal(found.reason, REASON_HTTP_VERSION);
	assert_int_equal(look("\x16", 1, true, 9999), INSPECT_RAW);
	assert_int_equal(look("\x16\3\1", 3, true, 9999), INSPECT_REFUSE);
	assert_int_equal(found.reason, REASON_TLS_MALFORMED);
}

static void ports_have_their_protocol(void **state)
{
	static const struct { uint16_t port; const char *text; enum reason reason; } cases[] = {
		{ 443, "GET / HTTP/1.1\r\n\r\n", REASON_PROTOCOL_MISMATCH }, { 443, "SSH-2.0-x\r\n", REASON_PROTOCOL_MISMATCH },
		{ 443, "\x80\x2e\1\3\1", REASON_PROTOCOL_MISMATCH }, { 80, "SSH-2.0-x\r\n", REASON_PROTOCOL_MISMATCH },
		{ 80, "\x16\3\1", REASON_PROTOCOL_MISMATCH }, { 80, "PRI * HTTP/2.0\r\n", REASON_HTTP_VERSION }, { 80, "GET /\r\n", REASON_HTTP_VERSION },
		{ 80, "\r\nGET / HTTP/1.1\r\n", REASON_HTTP_MALFORMED },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(look(cases[i].text, 0, false, cases[i].port), INSPECT_REFUSE);
		assert_int_equal(found.reason, cases[i].reason);
	}
	assert_int_equal(look("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 0, false, 80), INSPECT_HTTP);
	assert_int_equal(found.head_len, 27);
}

static void endless_lines_are_decided_at_the_ceiling(void **state)
{
	char *text = mem_alloc(INSPECT_MAX);
	memset(text, 'a', INSPECT_MAX);
	assert_int_equal(look(text, HTTP1_HEAD_MAX - 1, false, 9999), INSPECT_MORE);
	assert_int_equal(look(text, HTTP1_HEAD_MAX, false, 9999), INSPECT_RAW);
	text[3] = ' ';
	assert_int_equal(look(text, HTTP1_HEAD_MAX, false, 9999), INSPECT_REFUSE);
	memset(text, '\n', INSPECT_MAX);
	assert_int_not_equal(look(text, INSPECT_MAX, false, 9999), INSPECT_MORE);
	mem_free(text);
}

/* ---- targets ---- */

static void targets_are_parsed_once(void **state)
{
	struct gate_target t;
	assert_int_equal(target_from_name("API.Example.COM.", 16, 443, &t), REASON_NONE);
	assert_string_equal(t.text, "api.example.com");
	assert_true(target_matches_host(&t, "api.EXAMPLE.com", 15));
	assert_false(target_matches_host(&t, "api.example.com\0", 16));
	assert_false(target_matches_host(&t, "xapi.example.com", 16));
	assert_true(target_matches_authority(&t, "api.example.com:443", 19));
	assert_false(target_matches_authority(&t, "api.example.com:80", 18));
	assert_true(target_matches_authority(&t, "api.example.com", 15));
	assert_false(target_matches_authority(&t, "u@api.example.com", 17));
	assert_int_equal(target_from_name("10.0.0.1", 8, 1, &t), REASON_NONE);
	assert_true(t.literal);
	assert_int_equal(target_from_name("10.0.0.01", 9, 1, &t), REASON_BAD_NAME);
	assert_int_equal(target_from_name("a\x1b[2Jb", 6, 1, &t), REASON_BAD_NAME);
	assert_null(strchr(t.text, 0x1b));
	assert_int_equal(target_from_authority("[2001:db8::1]:8080", 18, 0, &t), REASON_NONE);
	assert_true(t.literal && t.port == 8080);
	char host[TARGET_HOST_MAX];
	assert_string_equal(target_host_header(&t, host), "[2001:db8::1]:8080");
	assert_int_equal(target_from_authority("a.example", 9, 80, &t), REASON_NONE);
	assert_string_equal(target_host_header(&t, host), "a.example");
	assert_int_equal(target_from_authority("a.example", 9, 0, &t), REASON_PROXY_MALFORMED);
}

/* ---- hosts, budget ---- */

static void hosts_tables_are_read(void **state)
{
	static const char text[] = "# comment\n127.0.0.1\tlocalhost box.example # other.example\r\n::1 box.example\n999.1.1.1 bad.example\n10.0.0.1 bad_name ok.example";
	struct hosts *h = hosts_parse(text, strlen(text));
	struct hostname n;
	struct ip ip[4];
	hostname_parse("box.example", 11, &n, NULL);
	assert_int_equal(hosts_lookup(h, &n, ip, 4), 2);
	assert_int_equal(ip[0].family, AF_INET);
	assert_int_equal(ip[1].family, AF_INET6);
	assert_int_equal(hosts_lookup(h, &n, ip, 1), 1);
	hostname_parse("other.example", 13, &n, NULL);
	assert_int_equal(hosts_lookup(h, &n, ip, 4), 0);
	hostname_parse("ok.example", 10, &n, NULL);
	assert_int_equal(hosts_lookup(h, &n, ip, 4), 1);
	hosts_free(h);
	struct err err = ERR_INIT;
	h = hosts_read("/nonexistent/hosts", &err);
	assert_non_null(h);
	hosts_free(h);
}

static void budgets_are_exact(void **state)
{
	struct policy *p = policy_builtin();
	struct budget b;
	p->limits.connections = 1;
	p->limits.egress_requests = 2;
	p->limits.egress_bytes = 10;
	budget_init(&b, p);
	assert_int_equal(budget_admit(&b, -1, true, 0), REASON_NONE);
	assert_int_equal(budget_admit(&b, -1, true, 0), REASON_BUDGET_CONNECTIONS);
	budget_release(&b, -1);
	assert_int_equal(budget_room(&b, -1, BUDGET_UP, 100), 10);
	budget_spend(&b, -1, BUDGET_DOWN, 9);
	assert_int_equal(budget_room(&b, -1, BUDGET_UP, 100), 1);
	assert_int_equal(budget_admit(&b, -1, true, 0), REASON_NONE);
	budget_release(&b, -1);
	assert_int_equal(budget_admit(&b, -1, true, 0), REASON_BUDGET_REQUESTS);
	budget_spend(&b, -1, BUDGET_UP, 1);
	b.requests = 0;
	assert_int_equal(budget_admit(&b, -1, true, 0), REASON_BUDGET_BYTES);
	/* A newer policy with less than what was used leaves nothing, never a wrapped number. */
	p->limits.egress_bytes = 5;
	budget_renew(&b, p);
	assert_int_equal(budget_room(&b, -1, BUDGET_UP, 100), 0);
	p->limits.egress_bytes = p->limits.connections = p->limits.egress_requests = POLICY_UNLIMITED;
	budget_renew(&b, p);
	budget_spend(&b, -1, BUDGET_UP, 1u << 30);
	assert_int_equal(budget_room(&b, -1, BUDGET_UP, 100), 100);
	assert_int_equal(budget_admit(&b, -1, true, 0), REASON_NONE);
	budget_done(&b);
	policy_free(p);
}

static struct policy *policy_with_limits(const struct rule_limits *limits)
{
	struct policy *p = policy_builtin();
	assert_int_equal(policy_add_allow(p, "one.example", NULL), 0);
	assert_int_equal(policy_add_allow(p, "two.example", NULL), 0);
	p->rules[0].limits = mem_alloc(sizeof(*limits));
	*p->rules[0].limits = *limits;
	return p;
}

static void a_rule_has_budgets_of_its_own(void **state)
{
	struct policy *p = policy_with_limits(&(struct rule_limits){ .requests = 3, .bytes_up = 5, .bytes_down = 7, .connections = 1,
		.rate_count = POLICY_UNLIMITED });
	struct budget b;
	budget_init(&b, p);
	assert_int_equal(budget_admit(&b, 0, false, 0), REASON_NONE);
	assert_int_equal(budget_admit(&b, 0, false, 0), REASON_BUDGET_CONNECTIONS);
	assert_int_equal(budget_admit(&b, 1, false, 0), REASON_NONE); /* the other rule has none of them */
	for (int i = 0; i < 3; i++)
		assert_int_equal(budget_request(&b, 0, 0), REASON_NONE);
	assert_int_equal(budget_request(&b, 0, 0), REASON_BUDGET_REQUESTS);
	assert_int_equal(budget_request(&b, 1, 0), REASON_NONE);
	assert_int_equal(budget_room(&b, 0, BUDGET_UP, 100), 5);
	assert_int_equal(budget_room(&b, 0, BUDGET_DOWN, 100), 7);
	assert_int_equal(budget_room(&b, 1, BUDGET_UP, 100), 100);
	budget_spend(&b, 0, BUDGET_UP, 5);
	assert_int_equal(budget_room(&b, 0, BUDGET_UP, 1), 0);
	assert_int_equal(budget_room(&b, 0, BUDGET_DOWN, 100), 7);
	budget_release(&b, 0);
	assert_int_equal(budget_admit(&b, 0, false, 0), REASON_BUDGET_BYTES);
	budget_done(&b);
	policy_free(p);
}

static void a_rate_holds_in_any_window(void **state)
{
	struct policy *p = policy_with_limits(&(struct rule_limits){ .requests = POLICY_UNLIMITED, .bytes_up = POLICY_UNLIMITED,
		.bytes_down = POLICY_UNLIMITED, .connections = POLICY_UNLIMITED, .rate_count = 2, .rate_ns = 100 });
	struct budget b;
	budget_init(&b, p);
	assert_int_equal(budget_request(&b, 0, 1000), REASON_NONE);
	assert_int_equal(budget_request(&b, 0, 1090), REASON_NONE);
	assert_int_equal(budget_request(&b, 0, 1099), REASON_BUDGET_RATE);
	assert_int_equal(budget_request(&b, 0, 1100), REASON_NONE); /* the first is 100 ago */
	assert_int_equal(budget_request(&b, 0, 1101), REASON_BUDGET_RATE);
	assert_int_equal(budget_request(&b, 0, 1190), REASON_NONE);
	assert_int_equal(budget_request(&b, 1, 1190), REASON_NONE);
	budget_done(&b);
	policy_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_protocols_are_raw_at_once_or_at_their_first_line),
		cmocka_unit_test(a_part_of_a_request_is_never_raw),
		cmocka_unit_test(a_request_at_the_end_of_input_is_judged),
		cmocka_unit_test(ports_have_their_protocol),
		cmocka_unit_test(endless_lines_are_decided_at_the_ceiling),
		cmocka_unit_test(targets_are_parsed_once),
		cmocka_unit_test(hosts_tables_are_read),
		cmocka_unit_test(budgets_are_exact),
		cmocka_unit_test(a_rule_has_budgets_of_its_own),
		cmocka_unit_test(a_rate_holds_in_any_window),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
