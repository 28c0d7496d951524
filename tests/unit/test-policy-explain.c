/* SPDX-License-Identifier: Apache-2.0 */
#include "policy-help.h"

static const char rules[] = TEST_HEAD "network:\n"
	"  - { host: api.example.com, ports: [443, 8443] }\n"
	"  - { host: db.internal, ports: [5432], private: true }\n";

static void assert_says(const struct policy *p, const char *host, uint16_t port, const char *const *parts)
{
	struct hostname name;
	struct ip ip;
	struct verdict v = { .reason = REASON_BAD_NAME, .rule = -1 };
	if (ip_parse(host, strlen(host), &ip) == 0)
		v = policy_decide_address(p, &ip, port);
	else if (hostname_parse(host, strlen(host), &name, NULL) == 0)
		v = policy_decide_name(p, &name, port);
	char *text = policy_explain_verdict(p, &v, host, port);
	for (; *parts; parts++)
		if (!strstr(text, *parts))
			fail_msg("\"%s\" is missing in:\n%s", *parts, text);
	assert_true(text[0] != '\0' && text[strlen(text) - 1] != '\n');
	mem_free(text);
}

#define SAYS(p, host, port, ...) assert_says(p, host, port, (const char *const[]){ __VA_ARGS__, NULL })

static void names_the_rule_and_the_way(void **state)
{
	struct policy *p = policy_of(rules);
	SAYS(p, "api.example.com", 443, "allowed: api.example.com port 443", "rule 1 of policy \"t\"", "line 5", "ports 443, 8443",
		"only public addresses");
	SAYS(p, "db.internal", 5432, "rule 2", "line 6", "private", "metadata services, multicast and reserved addresses stay refused");
	SAYS(p, "api.example.com", 22, "denied (port_not_allowed)", "rule 1", "line 5", "not port 22", "add 22 to the `ports`");
	SAYS(p, "evil.org", 443, "denied (no_rule)", "policy \"t\"", "{ host: \"evil.org\", ports: [443] }", "o@example.com",
		"--allow evil.org:443");
	SAYS(p, "10.0.0.1", 80, "denied (address_private)", "host: \"10.0.0.1\", ports: [80], private: true");
	SAYS(p, "2606:4700::1", 443, "address_literal", "--allow [2606:4700::1]:443");
	struct ip metadata = ip_of("169.254.169.254");
	struct verdict v = policy_decide_address(p, &metadata, 80);
	char *text = policy_explain_verdict(p, &v, "169.254.169.254", 80);
	assert_non_null(strstr(text, "address_metadata"));
	assert_null(strstr(text, "to ask for it"));
	mem_free(text);
	SAYS(p, "224.0.0.1", 80, "address_multicast", "no rule can open 224.0.0.1");
	SAYS(p, "2130706433", 80, "bad_name", "no rule can name it");
	policy_free(p);
}

static void says_what_came_from_the_command_line(void **state)
{
	struct policy *p = policy_builtin();
	assert_int_equal(policy_add_allow(p, "api.example.com:8080", NULL), 0);
	SAYS(p, "api.example.com", 8080, "given by --allow");
	SAYS(p, "evil.org", 443, "in a policy file", "--allow evil.org:443");
	policy_free(p);
}

/* The host may come out of the box: it must not be able to write to a terminal. */
static void hostile_text_is_made_harmless(void **state)
{
	struct policy *p = policy_builtin();
	struct verdict v = { .reason = REASON_BAD_NAME, .rule = -1 };
	char *text = policy_explain_verdict(p, &v, "\x1b[2J\nallowed: x", 443);
	assert_null(strchr(text, '\x1b'));
	assert_null(strstr(text, "\nallowed"));
	mem_free(text);
	char *longest = mem_alloc(70000);
	memset(longest, 'a', 69999);
	text = policy_explain_verdict(p, &v, longest, 443);
	assert_true(strlen(text) < 2000);
	mem_free(text);
	mem_free(longest);
	policy_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_the_rule_and_the_way),
		cmocka_unit_test(says_what_came_from_the_command_line),
		cmocka_unit_test(hostile_text_is_made_harmless),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
