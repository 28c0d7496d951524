/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "net/dns.h"

/* A query under construction. */
struct packet { uint8_t bytes[2048]; size_t len; };

static void add(struct packet *p, const void *data, size_t len)
{
	assert_true(p->len + len <= sizeof(p->bytes));
	memcpy(p->bytes + p->len, data, len);
	p->len += len;
}

static void add_u16(struct packet *p, unsigned v)
{
	add(p, (uint8_t[]){ (uint8_t)(v >> 8), (uint8_t)v }, 2);
}

static void add_header(struct packet *p, unsigned flags, unsigned qd, unsigned an, unsigned ns, unsigned ar)
{
	add_u16(p, 0x1234);
	add_u16(p, flags);
	add_u16(p, qd);
	add_u16(p, an);
	add_u16(p, ns);
	add_u16(p, ar);
}

/* "a.b" as labels. */
static void add_name(struct packet *p, const char *dotted)
{
	while (*dotted) {
		size_t n = strcspn(dotted, ".");
		add(p, (uint8_t[]){ (uint8_t)n }, 1);
		add(p, dotted, n);
		dotted += n + (dotted[n] == '.');
	}
	add(p, "", 1);
}

static void add_question(struct packet *p, const char *dotted, unsigned type)
{
	add_name(p, dotted);
	add_u16(p, type);
	add_u16(p, DNS_CLASS_IN);
}

static void add_opt(struct packet *p, unsigned udp_size, unsigned version)
{
	add(p, "", 1);
	add_u16(p, DNS_TYPE_OPT);
	add_u16(p, udp_size);
	add_u16(p, version);
	add_u16(p, 0);
	add_u16(p, 0);
}

static struct packet query_for(const char *dotted, unsigned type)
{
	struct packet p = { .len = 0 };
	add_header(&p, 0x0100, 1, 0, 0, 0);
	add_question(&p, dotted, type);
	return p;
}

static enum dns_parse parse(const struct packet *p, struct dns_query *q, enum dns_rcode *rcode)
{
	/* an exact allocation, so that reading past the end is seen by the sanitizer */
	uint8_t *exact = mem_alloc(p->len);
	memcpy(exact, p->bytes, p->len);
	enum dns_parse r = dns_query_parse(exact, p->len, q, rcode);
	mem_free(exact);
	return r;
}

static void assert_error(const struct packet *p, enum dns_rcode expected)
{
	struct dns_query q;
	enum dns_rcode rcode;
	assert_int_equal(parse(p, &q, &rcode), DNS_PARSE_ERROR);
	assert_int_equal(rcode, expected);
}

/* ---- queries ---- */

static void test_plain_query(void **state)
{
	struct packet p = query_for("Api.Example.COM", DNS_TYPE_AAAA);
	struct dns_query q;
	enum dns_rcode rcode;
	char text[HOSTNAME_MAX + 1];
	size_t len;
	assert_int_equal(parse(&p, &q, &rcode), DNS_PARSE_OK);
	assert_int_equal(q.id, 0x1234);
	assert_true(q.recursion_desired);
	assert_false(q.edns);
	assert_int_equal(q.qtype, DNS_TYPE_AAAA);
	assert_int_equal(dns_name_text(&q, text, &len), 0);
	assert_string_equal(text, "Api.Example.COM");
	assert_int_equal(len, strlen(text));
	assert_int_equal(dns_reply_room_udp(&q), DNS_UDP_CLASSIC_MAX);
}

static void test_every_cut_is_refused(void **state)
{
	struct packet whole = { .len = 0 };
	add_header(&whole, 0x0100, 1, 0, 0, 1);
	add_question(&whole, "www.example.com", DNS_TYPE_A);
	add_opt(&whole, 4096, 0);
	struct dns_query q;
	enum dns_rcode rcode;
	assert_int_equal(parse(&whole, &q, &rcode), DNS_PARSE_OK);
	for (size_t len = 0; len < whole.len; len++) {
		struct packet cut = whole;
		cut.len = len;
		assert_int_equal(parse(&cut, &q, &rcode), len < 12 ? DNS_PARSE_DROP : DNS_PARSE_ERROR);
	}
	whole.len++;
	assert_error(&whole, DNS_FORMERR); /* one byte too many */
}

static void test_answers_are_not_answered(void **state)
{
	struct packet p = query_for("a.example", DNS_TYPE_A);
	struct dns_query q;
	enum dns_rcode rcode;
	p.bytes[2] |= 0x80;
	assert_int_equal(parse(&p, &q, &rcode), DNS_PARSE_DROP);
}

static void test_counts(void **state)
{
	static const struct { unsigned qd, an, ns, ar; } bad[] = { { 0, 0, 0, 0 }, { 2, 0, 0, 0 }, { 1, 1, 0, 0 }, { 1, 0, 1, 0 },
		{ 1, 0, 0, 1 }, { 1, 0, 0, 65535 }, { 65535, 0, 0, 0 } };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct packet p = { .len = 0 };
		add_header(&p, 0, bad[i].qd, bad[i].an, bad[i].ns, bad[i].ar);
		add_question(&p, "a.example", DNS_TYPE_A);
		assert_error(&p, DNS_FORMERR);
	}
}

static void test_opcode_and_class(void **state)
{
	struct packet p = query_for("a.example", DNS_TYPE_A);
	p.bytes[2] = 0x28; /* UPDATE */
	assert_error(&p, DNS_NOTIMP);
	p = query_for("a.example", DNS_TYPE_A);
	p.bytes[p.len - 1] = 3; /* CH */
	assert_error(&p, DNS_REFUSED);
}

static void test_compression_is_refused(void **state)
{
	struct packet p = { .len = 0 };
	add_header(&p, 0, 1, 0, 0, 0);
	add(&p, "\1a\xc0\x0c", 4); /* points at itself */
	add_u16(&p, DNS_TYPE_A);
	add_u16(&p, DNS_CLASS_IN);
	assert_error(&p, DNS_FORMERR);
	p.bytes[14] = 0x40; /* the reserved label types */
	assert_error(&p, DNS_FORMERR);
	p.bytes[14] = 0x80;
	assert_error(&p, DNS_FORMERR);
}

static void fill_name(char *out, size_t label, size_t total)
{
	for (size_t i = 0; i < total; i++)
		out[i] = (i + 1) % (label + 1) == 0 ? '.' : 'x';
	out[total] = '\0';
}

static void test_name_ceilings(void **state)
{
	char name[300];
	struct dns_query q;
	enum dns_rcode rcode;
	fill_name(name, 63, 63 * 3 + 3 + 61); /* 255 bytes on the wire */
	struct packet p = query_for(name, DNS_TYPE_A);
	assert_int_equal(parse(&p, &q, &rcode), DNS_PARSE_OK);
	assert_int_equal(q.name_len, 255);
	fill_name(name, 63, 63 * 3 + 3 + 62);
	p = query_for(name, DNS_TYPE_A);
	assert_error(&p, DNS_FORMERR);
	fill_name(name, 64, 64);
	p = query_for(name, DNS_TYPE_A);
	assert_error(&p, DNS_FORMERR);
}

static void test_name_text_takes_no_tricks(void **state)
{
	static const char *const bad[] = { "a b", "a/b", "\xc3\xa4", "a@b", "a:b", "*", "a\\b" };
	char text[HOSTNAME_MAX + 1];
	size_t len;
	struct dns_query q;
	enum dns_rcode rcode;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct packet p = query_for(bad[i], DNS_TYPE_A);
		assert_int_equal(parse(&p, &q, &rcode), DNS_PARSE_OK);
		assert_int_equal(dns_name_text(&q, text, &len), -1);
	}
	struct packet dot = { .len = 0 }; /* one label "allowed.example" with a dot inside, and one with a NUL */
	add_header(&dot, 0, 1, 0, 0, 0);
	add(&dot, "\x0f" "allowed.example\0\0\1\0\1", 21);
	assert_int_equal(parse(&dot, &q, &rcode), DNS_PARSE_OK);
	assert_int_equal(dns_name_text(&q, text, &len), -1);
	dot.bytes[12 + 8] = '\0';
	assert_int_equal(parse(&dot, &q, &rcode), DNS_PARSE_OK);
	assert_int_equal(dns_name_text(&q, text, &len), -1);
	struct packet root = query_for("", DNS_TYPE_A);
	assert_int_equal(parse(&root, &q, &rcode), DNS_PARSE_OK);
	assert_int_equal(dns_name_text(&q, text, &len), 0);
	assert_int_equal(len, 0);
}

static void test_edns(void **state)
{
	static const struct { unsigned offered, used; } sizes[] = { { 0, 512 }, { 511, 512 }, { 1000, 1000 }, { 65535, DNS_REPLY_MAX } };
	struct dns_query q;
	enum dns_rcode rcode;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct packet p = { .len = 0 };
		add_header(&p, 0, 1, 0, 0, 1);
		add_question(&p, "a.example", DNS_TYPE_A);
		add_opt(&p, sizes[i].offered, 0);
		assert_int_equal(parse(&p, &q, &rcode), DNS_PARSE_OK);
		assert_true(q.edns);
		assert_int_equal(dns_reply_room_udp(&q), sizes[i].used);
	}
	struct packet p = { .len = 0 };
	add_header(&p, 0, 1, 0, 0, 1);
	add_question(&p, "a.example", DNS_TYPE_A);
	add_opt(&p, 1232, 1);
	assert_error(&p, DNS_BADVERS);
	p.len = 0;
	add_header(&p, 0, 1, 0, 0, 2);
	add_question(&p, "a.example", DNS_TYPE_A);
	add_opt(&p, 1232, 0);
	add_opt(&p, 1232, 0);
	assert_error(&p, DNS_FORMERR);
}

/* ---- reverse names ---- */

static int reverse(const char *dotted, struct ip *ip)
{
	struct packet p = query_for(dotted, DNS_TYPE_PTR);
	struct dns_query q;
	enum dns_rcode rcode;
	assert_int_equal(parse(&p, &q, &rcode), DNS_PARSE_OK);
	return dns_name_reverse(&q, ip);
}

static void test_reverse(void **state)
{
	struct ip ip;
	char text[IP_TEXT_MAX];
	assert_int_equal(reverse("4.3.18.198.IN-ADDR.arpa", &ip), 0);
	assert_string_equal(ip_format(&ip, text), "198.18.3.4");
	assert_int_equal(reverse("1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.a.e.4.1.1.0.b.0.0.d.F.ip6.arpa", &ip), 0);
	assert_string_equal(ip_format(&ip, text), "fd00:b011:4ead::1");
	static const char *const bad[] = { "3.18.198.in-addr.arpa", "256.3.18.198.in-addr.arpa", "04.3.18.198.in-addr.arpa",
		"5.4.3.18.198.in-addr.arpa", "4.3.18.198.in-addr.example", "4.3.18.198.in-addr", "arpa", "", "x.3.18.198.in-addr.arpa",
		"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.a.e.4.1.1.0.b.0.0.d.g.ip6.arpa",
		"0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.a.e.4.1.1.0.b.0.0.d.f.ip6.arpa", "4.3.18.198.in\raddr.arpa" };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(reverse(bad[i], &ip), -1);
}

/* ---- answers ---- */

static struct dns_query query_parsed(const char *dotted, unsigned type, bool edns)
{
	struct packet p = { .len = 0 };
	struct dns_query q;
	enum dns_rcode rcode;
	add_header(&p, 0x0110, 1, 0, 0, edns);
	add_question(&p, dotted, type);
	if (edns)
		add_opt(&p, 1232, 0);
	assert_int_equal(parse(&p, &q, &rcode), DNS_PARSE_OK);
	return q;
}

static void test_reply_bytes(void **state)
{
	struct dns_query q = query_parsed("aB.example", DNS_TYPE_A, true);
	struct ip ip = { .family = AF_INET, .bytes = { 198, 18, 0, 1 } };
	struct dns_reply r = { .addresses = &ip, .n_addresses = 1, .ttl = 10 };
	static const uint8_t expected[] = "\x12\x34\x81\x90\0\1\0\1\0\0\0\1" "\2aB\7example\0\0\1\0\1"
		"\xc0\x0c\0\1\0\1\0\0\0\x0a\0\4\xc6\x12\0\1" "\0\0\x29\x04\xd0\0\0\0\0\0\0";
	uint8_t out[DNS_REPLY_MAX];
	assert_int_equal(dns_reply_build(&q, &r, out, sizeof(out)), sizeof(expected) - 1);
	assert_memory_equal(out, expected, sizeof(expected) - 1);
}

static void test_reply_v6_and_ptr(void **state)
{
	struct dns_query q = query_parsed("a.example", DNS_TYPE_AAAA, false);
	struct ip ip = { .family = AF_INET6, .bytes = { 0xfd, [15] = 7 } };
	struct dns_reply r = { .addresses = &ip, .n_addresses = 1, .ttl = 10 };
	uint8_t out[DNS_REPLY_MAX];
	size_t len = dns_reply_build(&q, &r, out, sizeof(out));
	assert_int_equal(len, 12 + 11 + 4 + 12 + 16);
	assert_memory_equal(out + len - 16, ip.bytes, 16);
	struct hostname name;
	assert_int_equal(hostname_parse("api.example", 11, &name, NULL), 0);
	r = (struct dns_reply){ .ptr = &name, .ttl = 10 };
	len = dns_reply_build(&q, &r, out, sizeof(out));
	assert_memory_equal(out + len - 13, "\3api\7example\0", 13);
	assert_memory_equal(out + len - 15, "\0\x0d", 2);
}

static void test_reply_codes(void **state)
{
	static const enum dns_rcode codes[] = { DNS_NXDOMAIN, DNS_SERVFAIL, DNS_REFUSED, DNS_FORMERR, DNS_NOTIMP };
	struct dns_query q = query_parsed("a.example", DNS_TYPE_A, false);
	uint8_t out[DNS_REPLY_MAX];
	for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
		struct dns_reply r = { .rcode = codes[i] };
		size_t len = dns_reply_build(&q, &r, out, sizeof(out));
		assert_int_equal(len, 12 + 11 + 4);
		assert_int_equal(out[3] & 0xf, codes[i]);
		assert_int_equal(out[7], 0);
	}
	struct dns_reply badvers = { .rcode = DNS_BADVERS };
	q.edns = true;
	size_t len = dns_reply_build(&q, &badvers, out, sizeof(out));
	assert_int_equal(out[3] & 0xf, 0);
	assert_int_equal(out[len - 6], 1); /* upper bits of the code, in OPT */
	struct dns_query no_question = { .id = 7, .udp_size = 512 };
	struct dns_reply formerr = { .rcode = DNS_FORMERR };
	assert_int_equal(dns_reply_build(&no_question, &formerr, out, sizeof(out)), 12);
	assert_int_equal(out[5], 0);
}

static void test_reply_truncates(void **state)
{
	struct ip many[64];
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i] = (struct ip){ .family = AF_INET, .bytes = { 198, 18, 0, (uint8_t)i } };
	struct dns_query q = query_parsed("a.example", DNS_TYPE_A, true);
	struct dns_reply r = { .addresses = many, .n_addresses = ARRAY_LEN(many), .ttl = 10 };
	uint8_t out[DNS_REPLY_MAX];
	size_t len = dns_reply_build(&q, &r, out, DNS_UDP_CLASSIC_MAX);
	assert_true(len <= DNS_UDP_CLASSIC_MAX);
	assert_int_equal(out[2] & 0x02, 0x02);
	assert_int_equal(out[7], 0);
	assert_int_equal(len, 12 + 11 + 4 + 11);
	len = dns_reply_build(&q, &r, out, DNS_REPLY_MAX);
	assert_int_equal(out[2] & 0x02, 0);
	assert_int_equal(out[7], 64);
}

/* The longest possible question still leaves room for everything that we answer over classic UDP. */
static void test_longest_question_fits(void **state)
{
	char name[300];
	fill_name(name, 63, 63 * 3 + 3 + 61);
	struct dns_query q = query_parsed(name, DNS_TYPE_AAAA, true);
	struct ip ip = { .family = AF_INET6, .bytes = { 0xfd } };
	struct dns_reply r = { .addresses = &ip, .n_addresses = 1, .ttl = 10 };
	uint8_t out[DNS_UDP_CLASSIC_MAX];
	assert_int_equal(dns_reply_build(&q, &r, out, sizeof(out)), 12 + 255 + 4 + 28 + 11);
	assert_int_equal(out[2] & 0x02, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_query), cmocka_unit_test(test_every_cut_is_refused),
		cmocka_unit_test(test_answers_are_not_answered), cmocka_unit_test(test_counts), cmocka_unit_test(test_opcode_and_class),
		cmocka_unit_test(test_compression_is_refused), cmocka_unit_test(test_name_ceilings),
		cmocka_unit_test(test_name_text_takes_no_tricks), cmocka_unit_test(test_edns), cmocka_unit_test(test_reverse),
		cmocka_unit_test(test_reply_bytes), cmocka_unit_test(test_reply_v6_and_ptr), cmocka_unit_test(test_reply_codes),
		cmocka_unit_test(test_reply_truncates), cmocka_unit_test(test_longest_question_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
