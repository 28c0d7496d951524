/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/addr.h"
#include "base/mem.h"

/* Input of exact length in its own allocation: a sanitizer sees every byte read beyond. */
static int parse_name(const char *text, size_t len, struct hostname *ret, struct err *err)
{
	char *copy = malloc(len ? len : 1);
	memcpy(copy, text, len);
	int r = hostname_parse(copy, len, ret, err);
	free(copy);
	return r;
}

static void names_accepted(void **state)
{
	static const struct { const char *in, *out; unsigned labels; } cases[] = {
		{ "example.com", "example.com", 2 },
		{ "EXAMPLE.Com", "example.com", 2 },
		{ "example.com.", "example.com", 2 },
		{ "localhost", "localhost", 1 },
		{ "a", "a", 1 },
		{ "3com.com", "3com.com", 2 },
		{ "1.2.3.4.in-addr.arpa", "1.2.3.4.in-addr.arpa", 6 },
		{ "xn--bcher-kva.example", "xn--bcher-kva.example", 2 },
		{ "a--b.example", "a--b.example", 2 },
		{ "127.1.example", "127.1.example", 3 },
		{ "0x7f.example", "0x7f.example", 2 },
		{ "example.0xg", "example.0xg", 2 },
		{ "example.1a", "example.1a", 2 },
		{ "a.b.c.d.e.f", "a.b.c.d.e.f", 6 },
		{ "dead.beef", "dead.beef", 2 },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct hostname name;
		struct err err = ERR_INIT;
		if (parse_name(cases[i].in, strlen(cases[i].in), &name, &err) < 0)
			fail_msg("refused: \"%s\": %s", cases[i].in, err.text);
		assert_string_equal(name.text, cases[i].out);
		assert_int_equal(name.len, strlen(cases[i].out));
		assert_int_equal(name.labels, cases[i].labels);
	}
}

static void names_refused(void **state)
{
#define BYTES(s) { s, sizeof(s) - 1 }
	static const struct { const char *in; size_t len; } cases[] = {
		BYTES(""), BYTES("."), BYTES(".."), BYTES("a.."), BYTES(".a"), BYTES("a..b"), BYTES("example.com.."),
		/* a NUL anywhere: one parser would cut there, another would not */
		BYTES("\0"), BYTES("evil.example\0.good.example"), BYTES("good.example\0"), BYTES("\0good.example"),
		/* what an address parser would read as a number */
		BYTES("127.0.0.1"), BYTES("127.1"), BYTES("0177.0.0.1"), BYTES("2130706433"), BYTES("0x7f000001"), BYTES("0X7F000001"),
		BYTES("0x7f.1"), BYTES("1.2.3.0x4"), BYTES("example.1"), BYTES("example.007"), BYTES("example.0x"), BYTES("example.0xfF"),
		BYTES("1."), BYTES("0"), BYTES("127.0.0.1."), BYTES("1.2.3.4.5"),
		/* addresses of version 6 */
		BYTES("::1"), BYTES("[::1]"), BYTES("fe80::1%eth0"), BYTES("::ffff:127.0.0.1"),
		/* not letters, digits, hyphens */
		BYTES("under_score.example"), BYTES("_dmarc.example"), BYTES("a b.example"), BYTES(" example.com"), BYTES("example.com "),
		BYTES("example.com\n"), BYTES("example.com\r\nX: y"), BYTES("user@example.com"), BYTES("example.com:443"), BYTES("example.com/x"),
		BYTES("example.com?"), BYTES("example.com#"), BYTES("*.example.com"), BYTES("*"), BYTES("ex%61mple.com"), BYTES("a\\b.example"),
		BYTES("b\xc3\xbc" "cher.example"), BYTES("\xef\xbd\x85xample.com"), BYTES("example\xe3\x80\x82" "com"), BYTES("ex\xc2\xad" "ample.com"),
		BYTES("\xff.example"),
		/* hyphens at an end of a label */
		BYTES("-a.example"), BYTES("a-.example"), BYTES("a.-b"), BYTES("a.b-"), BYTES("-"),
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct hostname name = { .len = 99 };
		struct err err = ERR_INIT;
		if (parse_name(cases[i].in, cases[i].len, &name, &err) == 0)
			fail_msg("accepted: \"%s\" (case %zu)", cases[i].in, i);
		assert_int_equal(err.code, ERR_INVALID);
		assert_int_equal(name.len, 99); /* written on success only */
	}
}

static void name_lengths(void **state)
{
	char text[300];
	struct hostname name;
	memset(text, 'a', sizeof(text));
	assert_int_equal(parse_name(text, 63, &name, NULL), 0);
	assert_int_equal(parse_name(text, 64, &name, NULL), -1);
	for (size_t i = 63; i < sizeof(text); i += 64)
		text[i] = '.';
	assert_int_equal(parse_name(text, 253, &name, NULL), 0); /* 63.63.63.61 */
	assert_int_equal(name.len, 253);
	assert_int_equal(name.labels, 4);
	assert_int_equal(parse_name(text, 254, &name, NULL), -1); /* 62 in the last label: only the total is too long */
	text[253] = '.';
	assert_int_equal(parse_name(text, 254, &name, NULL), 0); /* the trailing dot doesn't count */
	assert_int_equal(name.len, 253);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = i % 2 ? '.' : 'a';
	assert_int_equal(parse_name(text, 253, &name, NULL), 0);
	assert_int_equal(name.labels, 127);
}

static void names_equal(void **state)
{
	struct hostname a, b, c;
	parse_name("Example.com.", 12, &a, NULL);
	parse_name("example.COM", 11, &b, NULL);
	parse_name("example.co", 10, &c, NULL);
	assert_true(hostname_equal(&a, &b));
	assert_false(hostname_equal(&a, &c));
}

static void refusal_shows_no_control_bytes(void **state)
{
	struct hostname name;
	struct err err = ERR_INIT;
	parse_name("\x1b[2J\n.example", 13, &name, &err);
	assert_non_null(strstr(err.text, "\\x1b[2J\\x0a.example"));
}

static int parse_ip(const char *text, size_t len, struct ip *ret)
{
	char *copy = malloc(len ? len : 1);
	memcpy(copy, text, len);
	int r = ip_parse(copy, len, ret);
	free(copy);
	return r;
}

static void ips_accepted(void **state)
{
	static const struct { const char *in, *out; } cases[] = {
		{ "0.0.0.0", "0.0.0.0" }, { "127.0.0.1", "127.0.0.1" }, { "255.255.255.255", "255.255.255.255" },
		{ "::", "::" }, { "::1", "::1" }, { "1::", "1::" }, { "2001:DB8::1", "2001:db8::1" },
		{ "2001:0db8:0000:0000:0000:0000:0000:0001", "2001:db8::1" },
		{ "2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1" },       /* one zero group is not shortened */
		{ "2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1" },          /* the first of equal runs */
		{ "2001:0:0:1:0:0:0:1", "2001:0:0:1::1" },                /* the longest run */
		{ "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8" }, { "1:2:3:4:5:6:0:0", "1:2:3:4:5:6::" },
		{ "::ffff:1.2.3.4", "::ffff:1.2.3.4" }, { "::ffff:102:304", "::ffff:1.2.3.4" }, { "::1.2.3.4", "::102:304" },
		{ "64:ff9b::1.2.3.4", "64:ff9b::102:304" }, { "0:0:0:0:0:0:0:1", "::1" },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ip ip, again;
		char out[IP_TEXT_MAX];
		if (parse_ip(cases[i].in, strlen(cases[i].in), &ip) < 0)
			fail_msg("refused: \"%s\"", cases[i].in);
		assert_string_equal(ip_format(&ip, out), cases[i].out);
		assert_int_equal(parse_ip(out, strlen(out), &again), 0);
		assert_true(ip_equal(&ip, &again));
	}
}

static void ips_refused(void **state)
{
	static const struct { const char *in; size_t len; } cases[] = {
		BYTES(""), BYTES("127.1"), BYTES("127.0.1"), BYTES("2130706433"), BYTES("0x7f000001"), BYTES("0x7f.0.0.1"), BYTES("0177.0.0.1"),
		BYTES("127.0.0.01"), BYTES("127.0.0.1."), BYTES(".127.0.0.1"), BYTES("127..0.1"), BYTES("256.0.0.1"), BYTES("1.2.3.4.5"),
		BYTES("1.2.3"), BYTES("1.2.3.-4"), BYTES("+1.2.3.4"), BYTES(" 1.2.3.4"), BYTES("1.2.3.4 "), BYTES("1.2.3.4\n"), BYTES("1.2.3.4\0"),
		BYTES("127.0.0.1\0.example"), BYTES("1.2.3.4/8"), BYTES("1.2.3.4:80"), BYTES("\xd9\xa1.2.3.4"),
		BYTES("[::1]"), BYTES("::1]"), BYTES(":"), BYTES(":::"), BYTES("1:::2"), BYTES("::1::"), BYTES("1:2:3:4:5:6:7"), BYTES("1:2:3:4:5:6:7:8:9"),
		BYTES("12345::"), BYTES("g::"), BYTES("fe80::1%eth0"), BYTES("fe80::1%1"), BYTES("::1/128"), BYTES("::1\0"), BYTES("::ffff:127.1"),
		BYTES("::ffff:0177.0.0.1"), BYTES("::ffff:1.2.3.4.5"), BYTES("1.2.3.4::"), BYTES("::1 "), BYTES("1:2:3:4:5:6:7:"), BYTES(":1:2:3:4:5:6:7"),
		BYTES("0000:0000:0000:0000:0000:ffff:255.255.255.255x"), BYTES("localhost"),
		BYTES("00000000000000000000000000000000000000000000000000000::1"),
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ip ip = { .family = 77 };
		if (parse_ip(cases[i].in, cases[i].len, &ip) == 0)
			fail_msg("accepted: \"%s\" (case %zu)", cases[i].in, i);
		assert_int_equal(ip.family, 77);
	}
}

static void embedded_v4(void **state)
{
	static const struct { const char *v6, *v4; } cases[] = {
		{ "::ffff:127.0.0.1", "127.0.0.1" },                       /* mapped */
		{ "::ffff:a9fe:a9fe", "169.254.169.254" },
		{ "::127.0.0.1", "127.0.0.1" },                            /* compatible */
		{ "::2", "0.0.0.2" },
		{ "::ffff:0:10.0.0.1", "10.0.0.1" },                       /* translated */
		{ "64:ff9b::169.254.169.254", "169.254.169.254" },         /* NAT64 */
		{ "64:ff9b:1::10.1.2.3", "10.1.2.3" },                     /* NAT64, local use */
		{ "64:ff9b:1:ffff:ffff:ffff:10.1.2.3", "10.1.2.3" },
		{ "2002:7f00:1::", "127.0.0.1" },                          /* 6to4 */
		{ "2002:a9fe:a9fe:1234::1", "169.254.169.254" },
		{ "2001:0:4136:e378:8000:63bf:3fff:fdd2", "192.0.2.45" },  /* Teredo, RFC 4380 section 4 */
		{ "fe80::5efe:10.0.0.1", "10.0.0.1" },                     /* ISATAP */
		{ "2001:db8::200:5efe:10.0.0.1", "10.0.0.1" },
	};
	static const char *const none[] = { "::", "::1", "2001:db8::7f00:1", "fe80::1", "64:ff9b:2::7f00:1", "64:ff9b:0:1::7f00:1",
		"2001:1::7f00:1", "2003:7f00:1::", "2001:db8::100:5efe:10.0.0.1", "127.0.0.1" };
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ip v6, v4, expected;
		assert_int_equal(parse_ip(cases[i].v6, strlen(cases[i].v6), &v6), 0);
		assert_int_equal(parse_ip(cases[i].v4, strlen(cases[i].v4), &expected), 0);
		if (!ip_embedded_v4(&v6, &v4) || !ip_equal(&v4, &expected))
			fail_msg("%s should carry %s", cases[i].v6, cases[i].v4);
	}
	for (size_t i = 0; i < ARRAY_LEN(none); i++) {
		struct ip ip, v4;
		assert_int_equal(parse_ip(none[i], strlen(none[i]), &ip), 0);
		if (ip_embedded_v4(&ip, &v4))
			fail_msg("%s should carry nothing", none[i]);
	}
}

static void sockaddrs(void **state)
{
	static const char *const texts[] = { "192.0.2.7", "2001:db8::7" };
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct ip ip, back;
		struct sockaddr_storage ss;
		socklen_t len;
		uint16_t port = 0;
		parse_ip(texts[i], strlen(texts[i]), &ip);
		ip_to_sockaddr(&ip, 443, &ss, &len);
		assert_int_equal(len, i == 0 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
		assert_int_equal(ip_from_sockaddr((struct sockaddr *)&ss, &back, &port), 0);
		assert_int_equal(port, 443);
		assert_true(ip_equal(&ip, &back));
		assert_int_equal(ip_from_sockaddr((struct sockaddr *)&ss, &back, NULL), 0);
	}
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct ip ip;
	assert_int_equal(ip_from_sockaddr((struct sockaddr *)&un, &ip, NULL), -1);
	struct ip v4 = { .family = AF_INET }, v6 = { .family = AF_INET6 };
	assert_false(ip_equal(&v4, &v6));
}

static void hostports_accepted(void **state)
{
	static const struct { const char *in, *host; unsigned port; } cases[] = {
		{ "example.com", "example.com", 0 }, { "example.com:443", "example.com", 443 }, { "a:1", "a", 1 }, { "a:65535", "a", 65535 },
		{ "[::1]:80", "::1", 80 }, { "[::1]", "::1", 0 }, { "127.0.0.1:80", "127.0.0.1", 80 }, { "[::ffff:127.0.0.1]:1", "::ffff:127.0.0.1", 1 },
		{ "*.example.com:8443", "*.example.com", 8443 }, { "example.com.:443", "example.com.", 443 },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *host;
		size_t len;
		uint16_t port = 7;
		if (hostport_split(cases[i].in, strlen(cases[i].in), &host, &len, &port) < 0)
			fail_msg("refused: \"%s\"", cases[i].in);
		assert_int_equal(len, strlen(cases[i].host));
		assert_memory_equal(host, cases[i].host, len);
		assert_int_equal(port, cases[i].port);
	}
}

static void hostports_refused(void **state)
{
	static const struct { const char *in; size_t len; } cases[] = {
		BYTES(""), BYTES(":"), BYTES(":80"), BYTES("a:"), BYTES("a:0"), BYTES("a:080"), BYTES("a:65536"), BYTES("a:100000"), BYTES("a:+1"),
		BYTES("a: 1"), BYTES("a:1 "), BYTES("a:1x"), BYTES("a:80:80"), BYTES("::1"), BYTES("::1:80"), BYTES("2001:db8::1"),
		BYTES("["), BYTES("[]"), BYTES("[]:80"), BYTES("[::1"), BYTES("[::1]80"), BYTES("[::1]:"), BYTES("[::1]:0"), BYTES("[::1]x:80"),
		BYTES("[example.com]:80"), BYTES("[127.0.0.1]:80"), BYTES("[fe80::1%eth0]:80"), BYTES("[[::1]]:80"), BYTES("a[::1]:80"),
		BYTES("a]:80"), BYTES("[::1]:80:"), BYTES("a:8\0000"), BYTES("[::1\0]:80"),
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *host;
		size_t len;
		uint16_t port;
		char *copy = malloc(cases[i].len ? cases[i].len : 1);
		memcpy(copy, cases[i].in, cases[i].len);
		if (hostport_split(copy, cases[i].len, &host, &len, &port) == 0)
			fail_msg("accepted: \"%s\" (case %zu)", cases[i].in, i);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_accepted), cmocka_unit_test(names_refused), cmocka_unit_test(name_lengths), cmocka_unit_test(names_equal),
		cmocka_unit_test(refusal_shows_no_control_bytes), cmocka_unit_test(ips_accepted), cmocka_unit_test(ips_refused),
		cmocka_unit_test(embedded_v4), cmocka_unit_test(sockaddrs), cmocka_unit_test(hostports_accepted),
		cmocka_unit_test(hostports_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
