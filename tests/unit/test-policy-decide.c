/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "policy-help.h"

static const char rules[] = TEST_HEAD "network:\n"
	"  - { host: example.com, ports: [443, 8443] }\n"       /* 0 */
	"  - { host: \"*.example.com\" }\n"                      /* 1 */
	"  - { host: example.com, ports: [22] }\n"               /* 2 */
	"  - { host: db.internal, ports: [5432], private: true }\n" /* 3 */
	"  - { host: 10.1.2.3, ports: [80], private: true }\n"   /* 4 */
	"  - { host: 8.8.8.8, ports: [53] }\n"                   /* 5 */
	"  - { host: 169.254.169.254, ports: [80], private: true }\n" /* 6 */
	"  - { host: \"*.wide.example.org\", private: true }\n"; /* 7 */

static void assert_name(const struct policy *p, const char *host, uint16_t port, enum reason reason, int rule)
{
	struct hostname name = name_of(host);
	struct verdict v = policy_decide_name(p, &name, port);
	if (v.reason != reason || v.rule != rule || v.allow != (reason == REASON_ALLOWED))
		fail_msg("%s:%u gives %s by rule %d, expected %s by rule %d", host, port, reason_name(v.reason), v.rule, reason_name(reason), rule);
}

static void by_name(void **state)
{
	struct policy *p = policy_of(rules);
	assert_name(p, "example.com", 443, REASON_ALLOWED, 0);
	assert_name(p, "EXAMPLE.com.", 443, REASON_ALLOWED, 0);
	assert_name(p, "example.com", 22, REASON_ALLOWED, 2);
	assert_name(p, "example.com", 80, REASON_PORT_NOT_ALLOWED, 0);
	assert_name(p, "example.com", 0, REASON_ALLOWED, 0);
	assert_name(p, "a.example.com", 443, REASON_ALLOWED, 1);
	assert_name(p, "a.b.c.example.com", 443, REASON_ALLOWED, 1);
	assert_name(p, "a.example.com", 8443, REASON_PORT_NOT_ALLOWED, 1);
	/* a suffix is not a label */
	assert_name(p, "evilexample.com", 443, REASON_NO_RULE, -1);
	assert_name(p, "evil-example.com", 443, REASON_NO_RULE, -1);
	assert_name(p, "example.com.evil.org", 443, REASON_NO_RULE, -1);
	assert_name(p, "xexample.com", 443, REASON_NO_RULE, -1);
	assert_name(p, "com", 443, REASON_NO_RULE, -1);
	/* the apex is not included in the wildcard */
	assert_name(p, "wide.example.org", 443, REASON_NO_RULE, -1);
	assert_name(p, "a.wide.example.org", 443, REASON_ALLOWED, 7);
	/* a name never matches a rule for an address */
	assert_name(p, "localhost", 80, REASON_NO_RULE, -1);
	policy_free(p);
}

static void builtin_allows_nothing(void **state)
{
	struct policy *p = policy_builtin();
	struct ip ip = ip_of("8.8.8.8");
	assert_name(p, "example.com", 443, REASON_NO_RULE, -1);
	assert_name(p, "example.com", 0, REASON_NO_RULE, -1);
	assert_false(policy_decide_address(p, &ip, 443).allow);
	assert_false(policy_decide_dial(p, 0, &ip, NULL, 0).allow);
	policy_free(p);
}

static void ports_are_united_in_order(void **state)
{
	struct policy *p = policy_of(TEST_HEAD "network:\n"
		"  - { host: a.example.com, ports: [8443, 443] }\n  - { host: other.org, ports: [1] }\n"
		"  - { host: \"*.example.com\", ports: [443, 80] }\n");
	struct hostname name = name_of("a.example.com"), none = name_of("example.com");
	uint16_t ports[8] = { 0 };
	assert_int_equal(policy_ports_of(p, &name, ports, 8), 3);
	assert_int_equal(ports[0], 8443);
	assert_int_equal(ports[1], 443);
	assert_int_equal(ports[2], 80);
	assert_int_equal(policy_ports_of(p, &name, ports, 2), 2);
	assert_int_equal(policy_ports_of(p, &none, ports, 8), 0);
	policy_free(p);
}

static void assert_address(const struct policy *p, const char *text, uint16_t port, enum reason reason, int rule)
{
	struct ip ip = ip_of(text);
	struct verdict v = policy_decide_address(p, &ip, port);
	if (v.reason != reason || v.rule != rule || v.allow != (reason == REASON_ALLOWED))
		fail_msg("%s:%u gives %s by rule %d, expected %s by rule %d", text, port, reason_name(v.reason), v.rule, reason_name(reason), rule);
}

static void by_address(void **state)
{
	struct policy *p = policy_of(rules);
	assert_address(p, "10.1.2.3", 80, REASON_ALLOWED, 4);
	assert_address(p, "::ffff:10.1.2.3", 80, REASON_ALLOWED, 4);
	assert_address(p, "10.1.2.3", 81, REASON_PORT_NOT_ALLOWED, 4);
	assert_address(p, "10.1.2.4", 80, REASON_ADDRESS_PRIVATE, -1);
	assert_address(p, "64:ff9b::a01:203", 80, REASON_ADDRESS_PRIVATE, -1);
	assert_address(p, "8.8.8.8", 53, REASON_ALLOWED, 5);
	assert_address(p, "8.8.8.8", 443, REASON_PORT_NOT_ALLOWED, 5);
	assert_address(p, "8.8.4.4", 53, REASON_ADDRESS_LITERAL, -1);
	assert_address(p, "2606:4700::1111", 443, REASON_ADDRESS_LITERAL, -1);
	assert_address(p, "169.254.169.254", 80, REASON_ALLOWED, 6);
	assert_address(p, "169.254.170.2", 80, REASON_ADDRESS_METADATA, -1);
	assert_address(p, "127.0.0.1", 80, REASON_ADDRESS_LOOPBACK, -1);
	policy_free(p);
}

static void assert_dial(const struct policy *p, int rule, const char *text, enum reason reason)
{
	static const char *const own_texts[] = { "203.0.114.9", "2606:4700:aaaa::1", "192.168.7.7" };
	struct ip own[3], ip = ip_of(text);
	for (unsigned i = 0; i < 3; i++)
		own[i] = ip_of(own_texts[i]);
	struct verdict v = policy_decide_dial(p, rule, &ip, own, 3);
	if (v.reason != reason || v.allow != (reason == REASON_ALLOWED))
		fail_msg("dialling %s by rule %d gives %s, expected %s", text, rule, reason_name(v.reason), reason_name(reason));
}

static void after_resolution(void **state)
{
	struct policy *p = policy_of(rules);
	/* an ordinary rule: public addresses only */
	assert_dial(p, 0, "8.8.8.8", REASON_ALLOWED);
	assert_dial(p, 0, "64:ff9b::808:808", REASON_ALLOWED);
	assert_dial(p, 0, "10.0.0.1", REASON_ADDRESS_PRIVATE);
	assert_dial(p, 0, "127.0.0.1", REASON_ADDRESS_LOOPBACK);
	assert_dial(p, 0, "::1", REASON_ADDRESS_LOOPBACK);
	assert_dial(p, 0, "169.254.169.254", REASON_ADDRESS_METADATA);
	assert_dial(p, 0, "::ffff:169.254.169.254", REASON_ADDRESS_METADATA);
	assert_dial(p, 0, "203.0.114.9", REASON_ADDRESS_HOST);
	assert_dial(p, 0, "::ffff:203.0.114.9", REASON_ADDRESS_HOST);
	assert_dial(p, 0, "64:ff9b::cb00:7209", REASON_ADDRESS_HOST);
	assert_dial(p, 0, "2606:4700:aaaa::1", REASON_ADDRESS_HOST);
	assert_dial(p, 0, "192.168.7.7", REASON_ADDRESS_PRIVATE);
	/* private: loopback, private, link-local, host; documentation and benchmark blocks */
	assert_dial(p, 3, "10.0.0.1", REASON_ALLOWED);
	assert_dial(p, 3, "127.0.0.1", REASON_ALLOWED);
	assert_dial(p, 3, "::1", REASON_ALLOWED);
	assert_dial(p, 3, "fe80::1", REASON_ALLOWED);
	assert_dial(p, 3, "fc00::1", REASON_ALLOWED);
	assert_dial(p, 3, "203.0.114.9", REASON_ALLOWED);
	assert_dial(p, 3, "198.18.0.1", REASON_ALLOWED);
	assert_dial(p, 3, "192.0.2.1", REASON_ALLOWED);
	/* … never metadata by a name, nor what nothing may open */
	assert_dial(p, 3, "169.254.169.254", REASON_ADDRESS_METADATA);
	assert_dial(p, 3, "fd00:ec2::254", REASON_ADDRESS_METADATA);
	assert_dial(p, 3, "64:ff9b::a9fe:a9fe", REASON_ADDRESS_METADATA);
	assert_dial(p, 3, "0.0.0.0", REASON_ADDRESS_LOOPBACK);
	assert_dial(p, 3, "::", REASON_ADDRESS_RESERVED);
	assert_dial(p, 3, "255.255.255.255", REASON_ADDRESS_RESERVED);
	assert_dial(p, 3, "224.0.0.1", REASON_ADDRESS_MULTICAST);
	assert_dial(p, 3, "ff02::1", REASON_ADDRESS_MULTICAST);
	assert_dial(p, 3, "2002:a00:1::1", REASON_ADDRESS_PRIVATE);
	assert_dial(p, 3, "2002:808:808::1", REASON_ADDRESS_RESERVED);
	assert_dial(p, 3, "2600:1234::5efe:808:808", REASON_ADDRESS_RESERVED);
	/* a rule for an address: that one, and metadata when it is the one */
	assert_dial(p, 4, "10.1.2.3", REASON_ALLOWED);
	assert_dial(p, 4, "10.1.2.4", REASON_ADDRESS_LITERAL);
	assert_dial(p, 6, "169.254.169.254", REASON_ALLOWED);
	assert_dial(p, 6, "169.254.170.2", REASON_ADDRESS_LITERAL);
	/* a rule that doesn't exist */
	assert_dial(p, -1, "8.8.8.8", REASON_NO_RULE);
	assert_dial(p, 8, "8.8.8.8", REASON_NO_RULE);
	policy_free(p);
}

/* ---- properties over random policies, against a matcher written the slow way ---- */

static unsigned next(unsigned *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed >> 8;
}

/* Names out of few short labels, so that suffixes meet often. */
static void random_name(unsigned *seed, char *out, size_t size, unsigned least)
{
	static const char *const labels[] = { "a", "ba", "a-a" };
	unsigned n = least + next(seed) % 2;
	out[0] = '\0';
	for (unsigned i = 0; i < n; i++) {
		size_t len = strlen(out);
		snprintf(out + len, size - len, "%s%s", i ? "." : "", labels[next(seed) % ARRAY_LEN(labels)]);
	}
}

/* Compares from the last label to the first. */
static bool slow_match(const struct network_rule *r, const char *name)
{
	const char *rule = r->name.text;
	size_t rn = strlen(rule), nn = strlen(name);
	for (;;) {
		size_t rl = 0, nl = 0;
		while (rl < rn && rule[rn - rl - 1] != '.')
			rl++;
		while (nl < nn && name[nn - nl - 1] != '.')
			nl++;
		if (rl != nl || memcmp(rule + rn - rl, name + nn - nl, rl) != 0)
			return false;
		bool rule_done = rl == rn, name_done = nl == nn;
		if (rule_done)
			return r->wildcard ? !name_done : name_done;
		if (name_done)
			return false;
		rn -= rl + 1;
		nn -= nl + 1;
	}
}

static struct verdict slow_decide(const struct policy *p, const char *name, uint16_t port)
{
	struct verdict v = { .allow = false, .reason = REASON_NO_RULE, .rule = -1 };
	for (size_t i = 0; i < p->n_rules; i++) {
		if (!slow_match(&p->rules[i], name))
			continue;
		for (unsigned j = 0; j < p->rules[i].n_ports; j++)
			if (p->rules[i].ports[j] == port)
				return (struct verdict){ true, REASON_ALLOWED, (int)i };
		if (v.rule < 0)
			v = (struct verdict){ false, REASON_PORT_NOT_ALLOWED, (int)i };
	}
	return v;
}

static void random_rules(struct policy *p, unsigned *seed)
{
	unsigned n = next(seed) % 6;
	for (unsigned i = 0; i < n; i++) {
		char name[64], spec[80];
		random_name(seed, name, sizeof(name), 2); /* a wildcard over one label is refused */
		snprintf(spec, sizeof(spec), "%s%s:%u", next(seed) % 2 ? "*." : "", name, 1 + next(seed) % 3);
		assert_int_equal(policy_add_allow(p, spec, NULL), 0);
	}
}

static void decide_agrees_with_the_slow_way(void **state)
{
	unsigned seed = 1, allowed = 0;
	for (unsigned round = 0; round < 4000; round++) {
		struct policy *p = policy_builtin();
		random_rules(p, &seed);
		for (unsigned i = 0; i < 10; i++) {
			char text[64];
			random_name(&seed, text, sizeof(text), 2);
			struct hostname name = name_of(text);
			uint16_t port = (uint16_t)(1 + next(&seed) % 3), ports[16];
			struct verdict v = policy_decide_name(p, &name, port), slow = slow_decide(p, text, port);
			assert_int_equal(v.allow, slow.allow);
			assert_int_equal(v.reason, slow.reason);
			assert_int_equal(v.rule, slow.rule);
			/* the union of ports says the same as the decision for each port */
			unsigned n = policy_ports_of(p, &name, ports, 16);
			bool listed = false;
			for (unsigned j = 0; j < n; j++)
				listed |= ports[j] == port;
			assert_int_equal(listed, v.allow);
			assert_int_equal(policy_decide_name(p, &name, 0).allow, n > 0);
			allowed += v.allow;
		}
		policy_free(p);
	}
	assert_true(allowed > 500);
}

/* Adding a rule never takes anything away, and never changes which earlier rule wins. */
static void more_rules_allow_more(void **state)
{
	unsigned seed = 7;
	for (unsigned round = 0; round < 4000; round++) {
		struct policy *p = policy_builtin();
		random_rules(p, &seed);
		char text[64];
		random_name(&seed, text, sizeof(text), 2);
		struct hostname name = name_of(text);
		struct verdict before = policy_decide_name(p, &name, 1);
		random_rules(p, &seed);
		struct verdict after = policy_decide_name(p, &name, 1);
		if (before.allow) {
			assert_true(after.allow);
			assert_int_equal(after.rule, before.rule);
		}
		policy_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_name),
		cmocka_unit_test(builtin_allows_nothing),
		cmocka_unit_test(ports_are_united_in_order),
		cmocka_unit_test(by_address),
		cmocka_unit_test(after_resolution),
		cmocka_unit_test(decide_agrees_with_the_slow_way),
		cmocka_unit_test(more_rules_allow_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
