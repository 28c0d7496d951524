/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "net/tls_hello.h"

/* ---- building hellos ---- */

struct recipe {
	const char *name;      /* NULL: no server_name extension */
	size_t name_len;       /* 0: strlen */
	int name_type;
	unsigned names;        /* entries in the list; 0 counts as 1 */
	bool twice;            /* the extension repeated */
	bool ech;
	bool no_extensions;
	unsigned version;      /* legacy_version; 0: 0x0303 */
	size_t session;        /* length of the session id */
	size_t padding;        /* bytes of a padding extension */
	unsigned bad_tail;     /* bytes after the extensions, inside the message */
};

static void put_name_extension(struct buf *b, const struct recipe *r)
{
	size_t n = r->name_len ? r->name_len : strlen(r->name), entries = r->names ? r->names : 1;
	buf_put_u16(b, 0);
	buf_put_u16(b, (uint16_t)(2 + entries * (3 + n)));
	buf_put_u16(b, (uint16_t)(entries * (3 + n)));
	for (size_t i = 0; i < entries; i++) {
		buf_put_u8(b, (uint8_t)r->name_type);
		buf_put_u16(b, (uint16_t)n);
		buf_append(b, r->name, n);
	}
}

static void put_filled(struct buf *b, uint8_t byte, size_t n)
{
	while (n--)
		buf_put_u8(b, byte);
}

static struct buf hello_message(const struct recipe *r)
{
	struct buf ext, body, m;
	buf_init(&ext, 1 << 20);
	buf_init(&body, 1 << 20);
	buf_init(&m, 1 << 20);
	for (int i = 0; r->name && i < (r->twice ? 2 : 1); i++)
		put_name_extension(&ext, r);
	if (r->ech) {
		buf_put_u16(&ext, 0xfe0d);
		buf_put_u16(&ext, 3);
		put_filled(&ext, 0, 3);
	}
	if (r->padding) {
		buf_put_u16(&ext, 21);
		buf_put_u16(&ext, (uint16_t)r->padding);
		put_filled(&ext, 0, r->padding);
	}
	buf_put_u16(&body, (uint16_t)(r->version ? r->version : 0x0303));
	put_filled(&body, 7, 32);
	buf_put_u8(&body, (uint8_t)r->session);
	put_filled(&body, 9, r->session);
	buf_put_u16(&body, 2);
	buf_put_u16(&body, 0x1301);
	buf_put_u8(&body, 1);
	buf_put_u8(&body, 0);
	if (!r->no_extensions) {
		buf_put_u16(&body, (uint16_t)ext.len);
		buf_append(&body, ext.data, ext.len);
	}
	put_filled(&body, 0, r->bad_tail);
	buf_put_u8(&m, 1);
	buf_put_u8(&m, (uint8_t)(body.len >> 16));
	buf_put_u16(&m, (uint16_t)body.len);
	buf_append(&m, body.data, body.len);
	buf_free(&ext);
	buf_free(&body);
	return m;
}

/* The message in records of at most `piece` bytes. */
static struct buf in_records(const struct buf *m, size_t piece)
{
	struct buf b;
	buf_init(&b, 1 << 21);
	for (size_t at = 0; at < m->len; at += piece) {
		size_t n = m->len - at < piece ? m->len - at : piece;
		buf_put_u8(&b, 22);
		buf_put_u16(&b, 0x0301);
		buf_put_u16(&b, (uint16_t)n);
		buf_append(&b, m->data + at, n);
	}
	return b;
}

static struct buf records(const struct recipe *r, size_t piece)
{
	struct buf m = hello_message(r), b = in_records(&m, piece);
	buf_free(&m);
	return b;
}

static enum tls_hello_result parse(const struct buf *b, struct tls_hello *h) { return tls_hello_parse(b->data, b->len, h, NULL); }

/* ---- tests ---- */

static void names_are_found(void **state)
{
	static const size_t pieces[] = { 16384, 200, 17, 5, 1 };
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		struct recipe r = { .name = "api.example.com", .session = 32, .padding = 300 };
		struct buf b = records(&r, pieces[i]);
		size_t whole = b.len;
		struct tls_hello h = { 0 };
		/* What follows the hello belongs to nobody yet and doesn't disturb. */
		buf_append(&b, "\x14\x03\x03\x00\x01\x01", 6);
		assert_int_equal(parse(&b, &h), TLS_HELLO_COMPLETE);
		assert_true(h.has_name);
		assert_int_equal(h.name_len, 15);
		assert_memory_equal(h.name, "api.example.com", 15);
		assert_int_equal(h.length, whole);
		assert_false(h.encrypted);
		buf_free(&b);
	}
}

static void every_prefix_asks_for_more(void **state)
{
	struct recipe r = { .name = "a.example" };
	struct buf b = records(&r, 40);
	for (size_t n = 0; n < b.len; n++) {
		struct tls_hello h;
		size_t need = 0;
		assert_int_equal(tls_hello_parse(b.data, n, &h, &need), TLS_HELLO_MORE);
		assert_true(need > n && need <= b.len);
	}
	buf_free(&b);
}

static void absence_and_encryption_are_seen(void **state)
{
	struct recipe none = { .padding = 10 }, old = { .no_extensions = true }, ech = { .name = "outer.example", .ech = true };
	struct tls_hello h = { 0 };
	struct buf b = records(&none, 16384);
	assert_int_equal(parse(&b, &h), TLS_HELLO_COMPLETE);
	assert_false(h.has_name);
	buf_free(&b);
	b = records(&old, 16384);
	assert_int_equal(parse(&b, &h), TLS_HELLO_COMPLETE);
	assert_false(h.has_name);
	buf_free(&b);
	b = records(&ech, 16384);
	assert_int_equal(parse(&b, &h), TLS_HELLO_COMPLETE);
	assert_true(h.encrypted);
	assert_memory_equal(h.name, "outer.example", 13);
	buf_free(&b);
}

static void two_readings_are_refused(void **state)
{
	char long_name[300];
	memset(long_name, 'a', sizeof(long_name));
	const struct recipe bad[] = {
		{ .name = "a.example", .names = 2 },
		{ .name = "a.example", .twice = true },
		{ .name = "a.example", .name_type = 1 },
		{ .name = long_name, .name_len = 256 },
		{ .name = "a.example", .bad_tail = 1 },
		{ .name = "a.example", .session = 33 },
		{ .name = "a.example", .version = 0x0203 },
		{ .name = "a.example", .version = 0x0403 },
		{ .no_extensions = true, .bad_tail = 1 },
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct tls_hello h;
		struct buf b = records(&bad[i], 16384);
		if (parse(&b, &h) != TLS_HELLO_MALFORMED)
			fail_msg("hello %zu was taken", i);
		buf_free(&b);
	}
}

static void empty_names_are_refused(void **state)
{
	struct recipe r = { .name = "x" };
	struct buf m = hello_message(&r), b;
	struct tls_hello h;
	/* "x" is the last byte: an empty entry in a list that says so */
	m.data[m.len - 3] = 0;
	m.data[m.len - 2] = 0;
	b = in_records(&m, 16384);
	assert_int_equal(parse(&b, &h), TLS_HELLO_MALFORMED);
	buf_free(&b);
	buf_free(&m);
}

static void raw_name_bytes_are_kept(void **state)
{
	struct recipe r = { .name = "good.example\0.evil.example", .name_len = 26 };
	struct buf b = records(&r, 16384);
	struct tls_hello h = { 0 };
	assert_int_equal(parse(&b, &h), TLS_HELLO_COMPLETE);
	assert_int_equal(h.name_len, 26); /* the caller's parser sees the NUL */
	buf_free(&b);
}

/* The parts of a record stream that no client sends. */
static void record_tricks_are_refused(void **state)
{
	struct recipe r = { .name = "a.example" };
	struct buf m = hello_message(&r);
	struct tls_hello h;
	struct buf b = in_records(&m, 30);
	b.data[35] = 21; /* an alert between fragments */
	assert_int_equal(parse(&b, &h), TLS_HELLO_MALFORMED);
	buf_free(&b);
	b = in_records(&m, 30);
	b.data[35 + 3] = 0, b.data[35 + 4] = 0; /* an empty fragment */
	assert_int_equal(parse(&b, &h), TLS_HELLO_MALFORMED);
	buf_free(&b);
	b = in_records(&m, 16384);
	b.data[3] = 0x50; /* longer than a record may be */
	assert_int_equal(parse(&b, &h), TLS_HELLO_MALFORMED);
	buf_free(&b);
	b = in_records(&m, 16384);
	b.data[5] = 2; /* a ServerHello */
	assert_int_equal(parse(&b, &h), TLS_HELLO_MALFORMED);
	buf_free(&b);
	buf_put_u8(&m, 1); /* a second message begins in the same record */
	b = in_records(&m, 16384);
	assert_int_equal(parse(&b, &h), TLS_HELLO_MALFORMED);
	buf_free(&b);
	buf_free(&m);
}

static void ceilings_hold(void **state)
{
	struct tls_hello h;
	const uint8_t huge[] = { 22, 3, 1, 0, 4, 1, 0x02, 0, 0 }; /* 128 KiB announced */
	assert_int_equal(tls_hello_parse(huge, sizeof(huge), &h, NULL), TLS_HELLO_MALFORMED);
	/* One-byte records up to the ceiling of looked-at bytes. */
	struct recipe r = { .name = "a.example", .padding = 30000 };
	struct buf b = records(&r, 1);
	assert_int_equal(parse(&b, &h), TLS_HELLO_MALFORMED);
	buf_free(&b);
	struct recipe big = { .name = "a.example", .padding = 60000 };
	b = records(&big, 16384);
	assert_int_equal(parse(&b, &h), TLS_HELLO_COMPLETE);
	buf_free(&b);
}

static void other_protocols_are_told_apart(void **state)
{
	static const char *const others[] = { "GET / HTTP/1.1\r\n", "SSH-2.0-x", "\x80\x2e\x01\x03\x01", "\x16\x02\x01", "\x15\x03\x01" };
	struct tls_hello h;
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_int_equal(tls_hello_parse(others[i], strlen(others[i]), &h, NULL), TLS_HELLO_NOT_TLS);
	assert_int_equal(tls_hello_parse("\x16", 1, &h, NULL), TLS_HELLO_MORE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_found),
		cmocka_unit_test(every_prefix_asks_for_more),
		cmocka_unit_test(absence_and_encryption_are_seen),
		cmocka_unit_test(two_readings_are_refused),
		cmocka_unit_test(empty_names_are_refused),
		cmocka_unit_test(raw_name_bytes_are_kept),
		cmocka_unit_test(record_tricks_are_refused),
		cmocka_unit_test(ceilings_hold),
		cmocka_unit_test(other_protocols_are_told_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
