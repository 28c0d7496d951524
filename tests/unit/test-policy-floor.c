/* SPDX-License-Identifier: Apache-2.0 */
/* The floor by table: every block at its first and last address and one beyond, every spelling of IPv4 in IPv6. */
#include "policy-help.h"

struct expect {
	const char *ip;
	enum reason reason;
};

static void check(const struct expect *e, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct ip ip = ip_of(e[i].ip);
		if (floor_classify(&ip) != e[i].reason)
			fail_msg("%s is %s, expected %s", e[i].ip, reason_name(floor_classify(&ip)), reason_name(e[i].reason));
	}
}

static void ipv4(void **state)
{
	static const struct expect table[] = {
		{ "0.0.0.0", REASON_ADDRESS_LOOPBACK }, { "0.255.255.255", REASON_ADDRESS_LOOPBACK }, { "1.0.0.0", REASON_NONE },
		{ "9.255.255.255", REASON_NONE }, { "10.0.0.0", REASON_ADDRESS_PRIVATE }, { "10.255.255.255", REASON_ADDRESS_PRIVATE },
		{ "11.0.0.0", REASON_NONE }, { "100.63.255.255", REASON_NONE }, { "100.64.0.0", REASON_ADDRESS_PRIVATE },
		{ "100.127.255.255", REASON_ADDRESS_PRIVATE }, { "100.128.0.0", REASON_NONE },
		{ "100.100.100.200", REASON_ADDRESS_METADATA }, { "100.100.100.201", REASON_ADDRESS_PRIVATE },
		{ "126.255.255.255", REASON_NONE }, { "127.0.0.0", REASON_ADDRESS_LOOPBACK }, { "127.0.0.1", REASON_ADDRESS_LOOPBACK },
		{ "127.255.255.255", REASON_ADDRESS_LOOPBACK }, { "128.0.0.0", REASON_NONE },
		{ "168.63.129.15", REASON_NONE }, { "168.63.129.16", REASON_ADDRESS_METADATA }, { "168.63.129.17", REASON_NONE },
		{ "169.253.255.255", REASON_NONE }, { "169.254.0.0", REASON_ADDRESS_LINK_LOCAL }, { "169.254.0.23", REASON_ADDRESS_METADATA },
		{ "169.254.42.42", REASON_ADDRESS_METADATA }, { "169.254.169.254", REASON_ADDRESS_METADATA },
		{ "169.254.169.253", REASON_ADDRESS_LINK_LOCAL }, { "169.254.170.2", REASON_ADDRESS_METADATA },
		{ "169.254.170.23", REASON_ADDRESS_METADATA }, { "169.254.255.255", REASON_ADDRESS_LINK_LOCAL }, { "169.255.0.0", REASON_NONE },
		{ "172.15.255.255", REASON_NONE }, { "172.16.0.0", REASON_ADDRESS_PRIVATE }, { "172.31.255.255", REASON_ADDRESS_PRIVATE },
		{ "172.32.0.0", REASON_NONE }, { "192.0.0.0", REASON_ADDRESS_RESERVED }, { "192.0.0.192", REASON_ADDRESS_METADATA },
		{ "192.0.0.255", REASON_ADDRESS_RESERVED }, { "192.0.1.0", REASON_NONE }, { "192.0.2.1", REASON_ADDRESS_RESERVED },
		{ "192.0.3.0", REASON_NONE }, { "192.88.99.1", REASON_ADDRESS_RESERVED }, { "192.88.100.0", REASON_NONE },
		{ "192.167.255.255", REASON_NONE }, { "192.168.0.0", REASON_ADDRESS_PRIVATE }, { "192.168.255.255", REASON_ADDRESS_PRIVATE },
		{ "192.169.0.0", REASON_NONE }, { "198.17.255.255", REASON_NONE }, { "198.18.0.0", REASON_ADDRESS_RESERVED },
		{ "198.19.255.255", REASON_ADDRESS_RESERVED }, { "198.20.0.0", REASON_NONE }, { "198.51.100.7", REASON_ADDRESS_RESERVED },
		{ "203.0.113.255", REASON_ADDRESS_RESERVED }, { "203.0.114.0", REASON_NONE }, { "223.255.255.255", REASON_NONE },
		{ "224.0.0.0", REASON_ADDRESS_MULTICAST }, { "239.255.255.255", REASON_ADDRESS_MULTICAST },
		{ "240.0.0.0", REASON_ADDRESS_RESERVED }, { "255.255.255.255", REASON_ADDRESS_RESERVED }, { "8.8.8.8", REASON_NONE },
	};
	check(table, ARRAY_LEN(table));
}

static void ipv6(void **state)
{
	static const struct expect table[] = {
		{ "::", REASON_ADDRESS_RESERVED }, { "::1", REASON_ADDRESS_LOOPBACK }, { "::2", REASON_ADDRESS_LOOPBACK },
		{ "100::", REASON_ADDRESS_RESERVED }, { "100::ffff", REASON_ADDRESS_RESERVED }, { "1fff::1", REASON_ADDRESS_RESERVED },
		{ "2000::1", REASON_NONE }, { "2001:db8::1", REASON_ADDRESS_RESERVED }, { "2001:db9::1", REASON_NONE },
		{ "2001:2::1", REASON_ADDRESS_RESERVED }, { "2001:10::1", REASON_ADDRESS_RESERVED }, { "2001:20::1", REASON_ADDRESS_RESERVED },
		{ "2001:1ff:ffff::1", REASON_ADDRESS_RESERVED }, { "2001:200::1", REASON_NONE }, { "2001:4860:4860::8888", REASON_NONE },
		{ "2606:4700::1111", REASON_NONE }, { "3ffe:ffff::1", REASON_NONE }, { "3fff::1", REASON_ADDRESS_RESERVED },
		{ "3fff:fff::1", REASON_ADDRESS_RESERVED }, { "3fff:1000::1", REASON_NONE }, { "4000::1", REASON_ADDRESS_RESERVED },
		{ "5f00::1", REASON_ADDRESS_RESERVED }, { "fc00::1", REASON_ADDRESS_PRIVATE }, { "fdff:ffff::1", REASON_ADDRESS_PRIVATE },
		{ "fd00:ec2::254", REASON_ADDRESS_METADATA }, { "fd00:ec2::253", REASON_ADDRESS_PRIVATE },
		{ "fd00:ec2::23", REASON_ADDRESS_METADATA }, { "fd20:ce::254", REASON_ADDRESS_METADATA },
		{ "fd00:42::42", REASON_ADDRESS_METADATA }, { "fe80::a9fe:a9fe", REASON_ADDRESS_METADATA },
		{ "fe80::1", REASON_ADDRESS_LINK_LOCAL }, { "febf::1", REASON_ADDRESS_LINK_LOCAL }, { "fec0::1", REASON_ADDRESS_PRIVATE },
		{ "feff::1", REASON_ADDRESS_PRIVATE }, { "ff02::1", REASON_ADDRESS_MULTICAST }, { "ff0e::1", REASON_ADDRESS_MULTICAST },
		{ "fe00::1", REASON_ADDRESS_RESERVED }, { "e000::1", REASON_ADDRESS_RESERVED },
	};
	check(table, ARRAY_LEN(table));
}

/* {carrier with the IPv4 address as %02x%02x:%02x%02x, what a public address in it gives} */
static void ipv4_in_ipv6(void **state)
{
	static const struct { const char *format; enum reason public_inside; bool inverted; } carriers[] = {
		{ "::ffff:%02x%02x:%02x%02x", REASON_NONE, false },
		{ "64:ff9b::%02x%02x:%02x%02x", REASON_NONE, false },
		{ "64:ff9b:1::%02x%02x:%02x%02x", REASON_ADDRESS_RESERVED, false },
		{ "::%02x%02x:%02x%02x", REASON_ADDRESS_RESERVED, false },
		{ "::ffff:0:%02x%02x:%02x%02x", REASON_ADDRESS_RESERVED, false },
		{ "2002:%02x%02x:%02x%02x::1", REASON_ADDRESS_RESERVED, false },
		{ "2001:0:1234:5678:8000:63bf:%02x%02x:%02x%02x", REASON_ADDRESS_RESERVED, true },
		{ "2600:1234::5efe:%02x%02x:%02x%02x", REASON_ADDRESS_RESERVED, false },
		{ "2600:1234::200:5efe:%02x%02x:%02x%02x", REASON_ADDRESS_RESERVED, false },
	};
	static const struct { uint8_t b[4]; enum reason reason; } inner[] = {
		{ { 127, 0, 0, 1 }, REASON_ADDRESS_LOOPBACK }, { { 10, 0, 0, 1 }, REASON_ADDRESS_PRIVATE },
		{ { 192, 168, 1, 1 }, REASON_ADDRESS_PRIVATE }, { { 169, 254, 169, 254 }, REASON_ADDRESS_METADATA },
		{ { 100, 100, 100, 200 }, REASON_ADDRESS_METADATA }, { { 168, 63, 129, 16 }, REASON_ADDRESS_METADATA },
		{ { 169, 254, 1, 1 }, REASON_ADDRESS_LINK_LOCAL }, { { 224, 0, 0, 251 }, REASON_ADDRESS_MULTICAST },
		{ { 255, 255, 255, 255 }, REASON_ADDRESS_RESERVED }, { { 8, 8, 8, 8 }, REASON_NONE },
	};
	for (size_t c = 0; c < ARRAY_LEN(carriers); c++)
		for (size_t i = 0; i < ARRAY_LEN(inner); i++) {
			uint8_t x = carriers[c].inverted ? 0xff : 0;
			const uint8_t *b = inner[i].b;
			char text[64];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			snprintf(text, sizeof(text), carriers[c].format, b[0] ^ x, b[1] ^ x, b[2] ^ x, b[3] ^ x);
#pragma GCC diagnostic pop
			enum reason expected = inner[i].reason == REASON_NONE ? carriers[c].public_inside : inner[i].reason;
			struct expect e = { text, expected };
			check(&e, 1);
		}
}

static void never_another_family(void **state)
{
	struct ip ip = { .family = 77 };
	assert_int_equal(floor_classify(&ip), REASON_ADDRESS_RESERVED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4),
		cmocka_unit_test(ipv6),
		cmocka_unit_test(ipv4_in_ipv6),
		cmocka_unit_test(never_another_family),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
