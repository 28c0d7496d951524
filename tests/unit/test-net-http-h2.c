/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 by frames: a hostile peer's, with the fault that each earns; and what only HTTP/2 has. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/text.h"
#include "http-rig.h"

enum { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION };
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4 };

#define GET "\x82\x87\x84\x41\x01" "a"  /* GET https / a */
#define POST "\x83\x87\x84\x41\x01" "a"

static void frame(struct buf *b, uint8_t type, uint8_t flags, uint32_t stream, const void *p, size_t len)
{
	assert_int_equal(buf_put_u8(b, (uint8_t)(len >> 16)), 0);
	buf_put_u16(b, (uint16_t)len);
	buf_put_u8(b, type);
	buf_put_u8(b, flags);
	buf_put_u32(b, stream);
	assert_int_equal(buf_append(b, p, len), 0);
}

static void begin(struct buf *b)
{
	static const char magic[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	buf_init(b, 32u << 20);
	buf_append(b, magic, sizeof(magic) - 1);
	frame(b, SETTINGS, 0, 0, "", 0);
}

/* A literal field, never indexed. */
static void literal(struct buf *b, const char *name, const char *value)
{
	buf_put_u8(b, 0x10);
	buf_put_u8(b, (uint8_t)strlen(name));
	buf_append(b, name, strlen(name));
	buf_put_u8(b, (uint8_t)strlen(value));
	buf_append(b, value, strlen(value));
}

static void request(struct buf *b, uint32_t stream, uint8_t flags, const char *block, size_t len)
{
	frame(b, HEADERS, flags | END_HEADERS, stream, block, len);
}

/* ---- a server and what it says ---- */

static uint64_t clock_ns;
static uint64_t test_clock(void) { return clock_ns; }

struct server { struct http_conn *conn; struct rig_server app; struct buf out; };

static void server_open(struct server *s)
{
	struct http_conn_config config = { .version = HTTP_2, .role = HTTP_SERVER, .scheme = "https", .now_ns = test_clock };
	memset(s, 0, sizeof(*s));
	clock_ns = 1000 * NS_PER_S;
	rig_seen_init(&s->app.last);
	buf_init(&s->out, 8u << 20);
	s->conn = http_conn_new(&config, &rig_server_ops, &s->app);
}

static void server_free(struct server *s)
{
	http_conn_free(s->conn);
	rig_seen_free(&s->app.last);
	buf_free(&s->out);
}

static void server_feed(struct server *s, const struct buf *b)
{
	for (size_t at = 0; at < b->len && !http_conn_fault(s->conn);) {
		size_t n = b->len - at < 16384 ? b->len - at : 16384;
		size_t used = http_conn_feed(s->conn, b->data + at, n);
		http_conn_pull(s->conn, &s->out, 7u << 20);
		at += used;
		if (used == 0)
			break;
	}
	http_conn_pull(s->conn, &s->out, 7u << 20);
}

/* Of the first frame of a type that was sent: where its payload is, or NULL. */
static const uint8_t *sent(const struct buf *out, uint8_t type, uint32_t stream, size_t *ret_len, uint8_t *ret_flags)
{
	struct cursor c = cursor_make(out->data, out->len);
	while (c.left >= 9) {
		size_t len = (size_t)cursor_u8(&c) << 16;
		len |= cursor_u16(&c);
		uint8_t kind = cursor_u8(&c), flags = cursor_u8(&c);
		uint32_t id = cursor_u32(&c);
		const uint8_t *p = cursor_take(&c, len);
		if (kind == type && id == stream) {
			*ret_len = len;
			*ret_flags = flags;
			return p;
		}
	}
	return NULL;
}

static int sent_goaway(const struct buf *out)
{
	size_t len;
	uint8_t flags;
	const uint8_t *p = sent(out, GOAWAY, 0, &len, &flags);
	return p ? p[7] : -1;
}

enum { NO_ERROR = 0, PROTOCOL_ERROR = 1, ENHANCE_YOUR_CALM = 11 };

static void assert_fails(struct buf *b, enum http_fault fault, int code)
{
	struct server s;
	server_open(&s);
	server_feed(&s, b);
	if (http_conn_fault(s.conn) != fault)
		fail_msg("fault %d instead of %d", http_conn_fault(s.conn), fault);
	assert_int_equal(sent_goaway(&s.out), code);
	assert_int_equal(http_conn_streams(s.conn), 0);
	assert_true(http_conn_finished(s.conn));
	assert_false(http_conn_wants_input(s.conn));
	assert_int_equal(s.app.requests, s.app.closes);
	server_free(&s);
	buf_free(b);
}

/* ---- heads ---- */

struct pair { const char *name, *value; };
struct shape { const char *block; struct pair fields[4]; enum http_fault fault; bool open; };

#define EXTENDED { ":method", "CONNECT" }, { ":protocol", "websocket" }
static const struct shape shapes[] = {
	{ GET, { { "X-Upper", "1" } }, HTTP_MALFORMED },
	{ GET, { { "x y", "1" } }, HTTP_MALFORMED },
	{ GET, { { "", "1" } }, HTTP_MALFORMED },
	{ GET, { { "x:y", "1" } }, HTTP_MALFORMED },
	{ GET, { { "x", "a\rb" } }, HTTP_MALFORMED },
	{ GET, { { "x", "a\nContent-Length: 4" } }, HTTP_MALFORMED },
	{ GET, { { "x", " a" } }, HTTP_MALFORMED },
	{ GET, { { "x", "a " } }, HTTP_MALFORMED },
	{ GET, { { "x", "a\x01" } }, HTTP_MALFORMED },
	{ GET, { { "connection", "close" } }, HTTP_MALFORMED },
	{ GET, { { "keep-alive", "5" } }, HTTP_MALFORMED },
	{ GET, { { "proxy-connection", "close" } }, HTTP_MALFORMED },
	{ GET, { { "transfer-encoding", "chunked" } }, HTTP_MALFORMED },
	{ GET, { { "upgrade", "websocket" } }, HTTP_MALFORMED },
	{ GET, { { "te", "gzip" } }, HTTP_MALFORMED },
	{ GET, { { "transfer_encoding", "chunked" } }, HTTP_MALFORMED },
	{ GET, { { "content_length", "4" } }, HTTP_MALFORMED },
	{ GET, { { "host", "b" } }, HTTP_MALFORMED },
	{ GET, { { "host", "a" }, { "host", "b" } }, HTTP_MALFORMED },
	{ GET, { { "x", "1" }, { ":path", "/b" } }, HTTP_MALFORMED },
	{ GET, { { ":path", "/b" } }, HTTP_MALFORMED },
	{ GET, { { ":status", "200" } }, HTTP_MALFORMED },
	{ GET, { { ":unknown", "200" } }, HTTP_MALFORMED },
	{ GET, { { "content-length", "4" } }, HTTP_MALFORMED },
	{ GET, { { "content-length", "4" }, { "content-length", "4" } }, HTTP_MALFORMED },
	{ GET, { { "content-length", "-4" } }, HTTP_MALFORMED },
	{ GET, { { "content-length", "4x" } }, HTTP_MALFORMED },
	{ "\x82\x87\x84", { { "x", "1" } }, HTTP_MALFORMED },                    /* no authority */
	{ "\x82\x87\x84", { { ":authority", "" } }, HTTP_MALFORMED },
	{ "\x82\x87\x84", { { ":authority", "u@a" } }, HTTP_MALFORMED },
	{ "\x82\x87\x84", { { ":authority", "a/b" } }, HTTP_MALFORMED },
	{ "\x82\x87", { { ":path", "" }, { ":authority", "a" } }, HTTP_MALFORMED },
	{ "\x82\x87", { { ":path", "x" }, { ":authority", "a" } }, HTTP_MALFORMED },
	{ "\x82\x87", { { ":path", "/a b" }, { ":authority", "a" } }, HTTP_MALFORMED },
	{ "\x82\x87", { { ":path", "/a#b" }, { ":authority", "a" } }, HTTP_MALFORMED },
	{ "\x82\x87", { { ":path", "/\xc3\xa4" }, { ":authority", "a" } }, HTTP_MALFORMED },
	{ "\x82\x87", { { ":path", "*" }, { ":authority", "a" } }, HTTP_MALFORMED },
	{ "\x82\x86\x84", { { ":authority", "a" } }, HTTP_MALFORMED },           /* http inside https */
	{ "\x82\x84", { { ":scheme", "ftp" }, { ":authority", "a" } }, HTTP_MALFORMED },
	{ "\x87\x84", { { ":method", "G T" }, { ":authority", "a" } }, HTTP_MALFORMED },
	{ "\x87\x84", { { ":authority", "a" } }, HTTP_MALFORMED },
	{ "", { { ":method", "CONNECT" }, { ":authority", "a:443" } }, HTTP_MALFORMED, true },
	{ "\x87\x84\x41\x01" "a", { { ":method", "CONNECT" }, { ":protocol", "connect-udp" }, { "sec-websocket-version", "13" } }, HTTP_MALFORMED, true },
	{ "\x87\x84\x41\x01" "a", { EXTENDED }, HTTP_MALFORMED, true },          /* without its version */
	{ "\x87\x84\x41\x01" "a", { EXTENDED, { "sec-websocket-version", "13" } }, HTTP_MALFORMED, false }, /* ends at once */
	{ "\x82\x87\x84\x41\x01" "a", { { ":protocol", "websocket" } }, HTTP_MALFORMED, true },
	{ "\x87\x84\x41\x01" "a", { EXTENDED, { "sec-websocket-version", "13" } }, HTTP_FAULT_NONE, true },
	{ GET, { { "host", "A:443" }, { "te", "trailers" }, { "x", "\xc3\xa4" }, { "y", "" } }, HTTP_FAULT_NONE },
	{ "\x87\x84\x41\x01" "a", { { ":method", "BULKHEAD-OPEN" }, { "bulkhead-flow", "7" } }, HTTP_FAULT_NONE },
	{ "\x87", { { ":method", "OPTIONS" }, { ":path", "*" }, { ":authority", "[::1]:443" } }, HTTP_FAULT_NONE },
	{ POST, { { "content-length", "0" } }, HTTP_FAULT_NONE },
};

static void heads_are_judged_by_fields(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		struct buf b, block;
		struct server s;
		begin(&b);
		buf_init(&block, 4096);
		buf_append(&block, shapes[i].block, strlen(shapes[i].block));
		for (size_t k = 0; k < 4 && shapes[i].fields[k].name; k++)
			literal(&block, shapes[i].fields[k].name, shapes[i].fields[k].value);
		request(&b, 1, shapes[i].open ? 0 : END_STREAM, (const char *)block.data, block.len);
		buf_free(&block);
		if (shapes[i].fault) {
			print_message("# shape %zu\n", i);
			assert_fails(&b, shapes[i].fault, PROTOCOL_ERROR);
			continue;
		}
		server_open(&s);
		server_feed(&s, &b);
		if (http_conn_fault(s.conn) || s.app.requests != 1)
			fail_msg("shape %zu is refused: %d", i, http_conn_fault(s.conn));
		server_free(&s);
		buf_free(&b);
	}
}

static void bodies_keep_to_their_length(void **state)
{
	for (int more = 0; more <= 1; more++) {
		struct buf b, block;
		begin(&b);
		buf_init(&block, 100);
		buf_append(&block, POST, 6);
		literal(&block, "content-length", "4");
		request(&b, 1, 0, (const char *)block.data, block.len);
		frame(&b, DATA, END_STREAM, 1, "abcde", more ? 5 : 3);
		buf_free(&block);
		assert_fails(&b, HTTP_MALFORMED, PROTOCOL_ERROR);
	}
}

static void trailers_are_judged(void **state)
{
	static const struct pair bad[] = { { ":path", "/" }, { "content-length", "1" }, { "host", "a" }, { "cookie", "a" }, { "authorization", "b" } };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct buf b, block;
		begin(&b);
		buf_init(&block, 100);
		literal(&block, bad[i].name, bad[i].value);
		request(&b, 1, 0, POST, 6);
		request(&b, 1, END_STREAM, (const char *)block.data, block.len);
		buf_free(&block);
		assert_fails(&b, HTTP_MALFORMED, PROTOCOL_ERROR);
	}
}

static void another_protocol_is_told(void **state)
{
	struct buf b;
	const char *text = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
	buf_init(&b, 1000);
	buf_append(&b, text, strlen(text));
	assert_fails(&b, HTTP_BAD_VERSION, PROTOCOL_ERROR);
}

/* ---- abuse ---- */

static void resets_have_a_limit(void **state)
{
	struct buf b;
	begin(&b);
	for (uint32_t i = 0; i < 201; i++) {
		request(&b, 1 + 2 * i, END_STREAM, GET, 6);
		frame(&b, RST_STREAM, 0, 1 + 2 * i, "\0\0\0\x08", 4);
	}
	assert_fails(&b, HTTP_ABUSE, ENHANCE_YOUR_CALM);
}

static void resets_within_the_limit_pass(void **state)
{
	struct server s;
	server_open(&s);
	for (uint32_t i = 0; i < 1000; i++) {
		struct buf b;
		if (i == 0)
			begin(&b);
		else
			buf_init(&b, 1000);
		request(&b, 1 + 2 * i, END_STREAM, GET, 6);
		frame(&b, RST_STREAM, 0, 1 + 2 * i, "\0\0\0\x08", 4);
		clock_ns += NS_PER_S / 10;
		server_feed(&s, &b);
		buf_free(&b);
	}
	assert_int_equal(http_conn_fault(s.conn), HTTP_FAULT_NONE);
	assert_int_equal(s.app.requests, 1000);
	assert_int_equal(s.app.closes, 1000);
	server_free(&s);
}

/* Frames that make us reset are counted as if the peer did. */
static void being_made_to_reset_counts(void **state)
{
	struct buf b;
	begin(&b);
	for (uint32_t i = 0; i < 300; i++) {
		request(&b, 1 + 2 * i, 0, POST, 6);
		frame(&b, WINDOW_UPDATE, 0, 1 + 2 * i, "\x7f\xff\xff\xff", 4);
	}
	assert_fails(&b, HTTP_ABUSE, ENHANCE_YOUR_CALM);
}

static void streams_beyond_the_limit_are_refused(void **state)
{
	struct buf b;
	struct server s;
	size_t len;
	uint8_t flags;
	begin(&b);
	for (uint32_t i = 0; i < HTTP_STREAMS_MAX + 5; i++)
		request(&b, 1 + 2 * i, 0, POST, 6);
	server_open(&s);
	server_feed(&s, &b);
	assert_int_equal(s.app.requests, HTTP_STREAMS_MAX);
	assert_int_equal(http_conn_streams(s.conn), HTTP_STREAMS_MAX);
	assert_int_equal(http_conn_fault(s.conn), HTTP_FAULT_NONE);
	const uint8_t *p = sent(&s.out, RST_STREAM, 1 + 2 * HTTP_STREAMS_MAX, &len, &flags);
	assert_non_null(p);
	assert_int_equal(p[3], 7);
	server_free(&s);
	buf_free(&b);
	/* Who has acknowledged the limit breaks the rules by it. */
	begin(&b);
	frame(&b, SETTINGS, ACK, 0, "", 0);
	for (uint32_t i = 0; i < HTTP_STREAMS_MAX + 5; i++)
		request(&b, 1 + 2 * i, 0, POST, 6);
	server_open(&s);
	http_conn_pull(s.conn, &s.out, 1 << 20); /* our settings go first */
	server_feed(&s, &b);
	assert_int_equal(s.app.requests, HTTP_STREAMS_MAX);
	assert_int_equal(s.app.closes, HTTP_STREAMS_MAX);
	assert_int_equal(http_conn_fault(s.conn), HTTP_MALFORMED);
	server_free(&s);
	buf_free(&b);
}

struct flood { uint8_t type, flags; uint32_t stream; const char *payload; size_t len; };

static void floods_have_a_limit(void **state)
{
	static const struct flood floods[] = {
		{ PING, 0, 0, "12345678", 8 }, { PING, ACK, 0, "12345678", 8 }, { SETTINGS, 0, 0, "", 0 }, { SETTINGS, 0, 0, "\0\x04\0\1\0\0", 6 },
		{ DATA, 0, 1, "", 0 }, { PRIORITY, 0, 1, "\0\0\0\0\1", 5 }, { PRIORITY, 0, 99, "\0\0\0\0\1", 5 },
		{ WINDOW_UPDATE, 0, 0, "\0\0\0\1", 4 }, { WINDOW_UPDATE, 0, 1, "\0\0\0\1", 4 },
	};
	for (size_t i = 0; i < ARRAY_LEN(floods); i++) {
		struct buf b;
		print_message("# flood %zu\n", i);
		begin(&b);
		request(&b, 1, 0, POST, 6);
		for (unsigned n = 0; n < 1100; n++)
			frame(&b, floods[i].type, floods[i].flags, floods[i].stream, floods[i].payload, floods[i].len);
		assert_fails(&b, HTTP_ABUSE, ENHANCE_YOUR_CALM);
	}
}

/* Nobody takes what we would say: nothing piles up. */
static void unread_answers_have_a_limit(void **state)
{
	struct buf b;
	struct server s;
	begin(&b);
	for (unsigned n = 0; n < 900; n++)
		frame(&b, PING, 0, 0, "12345678", 8);
	server_open(&s);
	size_t used = http_conn_feed(s.conn, b.data, b.len);
	assert_true(http_conn_fault(s.conn) == HTTP_ABUSE || used < b.len || !http_conn_wants_input(s.conn));
	http_conn_pull(s.conn, &s.out, 1 << 20);
	assert_true(s.out.len < 200 * 17);
	server_free(&s);
	buf_free(&b);
}

static void content_earns_control_frames(void **state)
{
	struct buf b;
	struct server s;
	static uint8_t body[16384];
	begin(&b);
	request(&b, 1, 0, "\x83\x87\x84\x41\x01" "a", 6);
	for (unsigned n = 0; n < 200; n++) {
		frame(&b, DATA, 0, 1, body, 1024);
		for (unsigned k = 0; k < 2; k++)
			frame(&b, PING, 0, 0, "12345678", 8);
	}
	for (unsigned n = 0; n < 900; n++)
		frame(&b, WINDOW_UPDATE, 0, 0, "\0\0\0\1", 4);
	server_open(&s);
	server_feed(&s, &b);
	assert_int_equal(http_conn_fault(s.conn), HTTP_FAULT_NONE);
	server_free(&s);
	buf_free(&b);
}

static void continuations_have_a_limit(void **state)
{
	struct buf b;
	begin(&b);
	frame(&b, HEADERS, END_STREAM, 1, GET, 6);
	for (unsigned i = 0; i < 1000; i++)
		frame(&b, CONTINUATION, 0, 1, "", 0);
	assert_fails(&b, HTTP_ABUSE, ENHANCE_YOUR_CALM);
}

static void heads_have_a_ceiling(void **state)
{
	struct buf b, block;
	/* Many fields. */
	begin(&b);
	buf_init(&block, 1 << 20);
	buf_append(&block, GET, 6);
	for (unsigned i = 0; i < HTTP_FIELDS_MAX + 1; i++)
		literal(&block, "x", "y");
	request(&b, 1, END_STREAM, (const char *)block.data, block.len);
	assert_fails(&b, HTTP_TOO_LARGE, ENHANCE_YOUR_CALM);
	/* A bomb: one field of 4,000 bytes in the table, named again and again by a byte. */
	begin(&b);
	buf_clear(&block);
	buf_append(&block, GET, 6);
	buf_append(&block, "\x40\x01x\x7f\xa1\x1e", 6); /* length 127 + 3873 = 4000 */
	for (unsigned i = 0; i < 4000; i++)
		buf_put_u8(&block, 'a');
	for (unsigned i = 0; i < 200; i++)
		buf_put_u8(&block, 0xbe);
	request(&b, 1, END_STREAM, (const char *)block.data, block.len);
	assert_fails(&b, HTTP_TOO_LARGE, ENHANCE_YOUR_CALM);
	/* Cookie crumbs. */
	begin(&b);
	buf_clear(&block);
	buf_append(&block, GET, 6);
	for (unsigned i = 0; i < 16; i++) {
		buf_append(&block, "\x10\x06" "cookie\x7f\xa1\x1e", 11);
		for (unsigned k = 0; k < 4000; k++)
			buf_put_u8(&block, 'a');
	}
	buf_append(&block, "\x10\x06" "cookie\x7f\xa1\x1e", 11);
	for (unsigned k = 0; k < 4000; k++)
		buf_put_u8(&block, 'a');
	for (size_t at = 0; at < block.len; at += 16000) {
		size_t n = block.len - at < 16000 ? block.len - at : 16000;
		bool last = at + n == block.len;
		frame(&b, at ? CONTINUATION : HEADERS, (uint8_t)((at ? 0 : END_STREAM) | (last ? END_HEADERS : 0)), 1, block.data + at, n);
	}
	assert_fails(&b, HTTP_TOO_LARGE, ENHANCE_YOUR_CALM);
	buf_free(&block);
}

static void broken_frames_end_the_connection(void **state)
{
	static const struct flood bad[] = {
		{ DATA, 0, 0, "a", 1 }, { DATA, 0, 1, "a", 1 }, { HEADERS, END_HEADERS, 0, GET, 6 }, { HEADERS, END_HEADERS, 2, GET, 6 },
		{ SETTINGS, 0, 1, "", 0 }, { SETTINGS, 0, 0, "abc", 3 }, { SETTINGS, ACK, 0, "abcdef", 6 }, { PING, 0, 0, "short", 5 },
		{ PUSH_PROMISE, END_HEADERS, 1, "\0\0\0\2", 4 }, { CONTINUATION, END_HEADERS, 1, GET, 6 }, { WINDOW_UPDATE, 0, 0, "\0\0\0\0", 4 },
		{ HEADERS, END_HEADERS, 1, "\xff\xff\xff\xff\xff", 5 }, { RST_STREAM, 0, 7, "\0\0\0\x08", 4 }, { GOAWAY, 0, 0, "abc", 3 },
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct buf b;
		struct server s;
		begin(&b);
		frame(&b, bad[i].type, bad[i].flags, bad[i].stream, bad[i].payload, bad[i].len);
		server_open(&s);
		server_feed(&s, &b);
		if (http_conn_fault(s.conn) != HTTP_MALFORMED)
			fail_msg("broken frame %zu: fault %d", i, http_conn_fault(s.conn));
		assert_true(sent_goaway(&s.out) > 0);
		assert_int_equal(s.app.requests, 0);
		assert_true(http_conn_finished(s.conn));
		server_free(&s);
		buf_free(&b);
	}
}

/* ---- what only HTTP/2 has ---- */

static void crumbs_become_one_cookie(void **state)
{
	struct buf b, block;
	struct server s;
	begin(&b);
	buf_init(&block, 1000);
	buf_append(&block, GET, 6);
	literal(&block, "cookie", "a=1");
	literal(&block, "x", "y");
	literal(&block, "cookie", "b=2");
	literal(&block, "cookie", "");
	literal(&block, "cookie", "c=3");
	request(&b, 1, END_STREAM, (const char *)block.data, block.len);
	server_open(&s);
	server_feed(&s, &b);
	assert_int_equal(http_head_count(&s.app.last.head, "cookie"), 1);
	assert_true(http_text_equal(http_head_get(&s.app.last.head, "cookie")->value, "a=1; b=2; c=3"));
	server_free(&s);
	buf_free(&b);
	buf_free(&block);
}

struct duo { struct rig_link link; struct rig_server app; };

static void duo_open(struct duo *d, unsigned max_streams)
{
	memset(d, 0, sizeof(*d));
	rig_seen_init(&d->app.last);
	struct http_conn_config config = { .version = HTTP_2, .role = HTTP_CLIENT, .max_streams = max_streams };
	struct http_conn *client = http_conn_new(&config, &rig_client_ops, NULL);
	config.role = HTTP_SERVER;
	rig_link_init(&d->link, client, http_conn_new(&config, &rig_server_ops, &d->app), 4096);
}

static void duo_run(struct duo *d) { while (rig_link_move(&d->link)) { } }

static void duo_free(struct duo *d)
{
	rig_link_free(&d->link);
	rig_seen_free(&d->app.last);
}

static void duo_ask(struct duo *d, struct rig_client *c, const char *path, uint64_t body, bool ends)
{
	struct http_head h;
	rig_request(&h, "POST", path);
	rig_client_start(c, d->link.client, &h, body, ends);
	http_head_free(&h);
}

static void secrets_are_never_indexed(void **state)
{
	struct duo d;
	struct rig_client c = { 0 };
	struct http_head h;
	duo_open(&d, 0);
	rig_request(&h, "GET", "/");
	assert_int_equal(http_head_add(&h, "x-key", "value", 5), 0);
	assert_int_equal(http_head_add(&h, "x-other", "value", 5), 0);
	h.fields[0].sensitive = true;
	rig_client_start(&c, d.link.client, &h, 0, true);
	duo_run(&d);
	assert_true(http_head_get(&d.app.last.head, "x-key")->sensitive);
	assert_false(http_head_get(&d.app.last.head, "x-other")->sensitive);
	http_head_free(&h);
	duo_free(&d);
	rig_seen_free(&c.seen);
}

/* Ninety-nine readers that take nothing don't hold up the hundredth. */
static void stalled_streams_dont_block_others(void **state)
{
	struct duo d;
	static struct rig_client c[HTTP_STREAMS_MAX];
	duo_open(&d, 0);
	d.app.lazy = true;
	for (size_t i = 0; i < HTTP_STREAMS_MAX - 1; i++) {
		c[i].lazy = true;
		duo_ask(&d, &c[i], "/echo", HTTP_WINDOW * 2, true);
		duo_run(&d);
		assert_int_equal(c[i].seen.bytes, HTTP_WINDOW);
	}
	struct rig_client *last = &c[HTTP_STREAMS_MAX - 1];
	duo_ask(&d, last, "/echo", 4u << 20, true);
	assert_false(http_conn_can_open(d.link.client));
	duo_run(&d);
	assert_int_equal(last->seen.bytes, 4u << 20);
	assert_int_equal(last->seen.fault, HTTP_FAULT_NONE);
	duo_free(&d);
	for (size_t i = 0; i < HTTP_STREAMS_MAX; i++)
		rig_seen_free(&c[i].seen);
}

static void many_streams_when_both_agree(void **state)
{
	struct duo d;
	enum { MANY = 1000 };
	static struct rig_client c[MANY];
	duo_open(&d, MANY);
	duo_run(&d);
	for (size_t i = 0; i < MANY; i++) {
		assert_true(http_conn_can_open(d.link.client));
		duo_ask(&d, &c[i], "/echo", 100, false);
	}
	assert_false(http_conn_can_open(d.link.client));
	duo_run(&d);
	assert_int_equal(d.app.requests, MANY);
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(http_stream_send_end(c[i].stream, NULL), 0);
	duo_run(&d);
	for (size_t i = 0; i < MANY; i++) {
		assert_int_equal(c[i].seen.fault, HTTP_FAULT_NONE);
		assert_int_equal(c[i].seen.bytes, 100);
		rig_seen_free(&c[i].seen);
	}
	duo_free(&d);
}

static void a_shutdown_lets_streams_finish(void **state)
{
	struct duo d;
	struct rig_client c = { 0 };
	duo_open(&d, 0);
	duo_ask(&d, &c, "/echo", 1000, false);
	duo_run(&d);
	http_conn_shutdown(d.link.server);
	duo_run(&d);
	assert_false(http_conn_can_open(d.link.client));
	assert_int_equal(c.seen.closes, 0);
	assert_false(http_conn_finished(d.link.server));
	assert_int_equal(http_stream_send_end(c.stream, NULL), 0);
	duo_run(&d);
	assert_int_equal(c.seen.fault, HTTP_FAULT_NONE);
	assert_int_equal(c.seen.bytes, 1000);
	assert_true(http_conn_finished(d.link.server));
	assert_true(http_conn_finished(d.link.client));
	duo_free(&d);
	rig_seen_free(&c.seen);
}

static void requests_that_come_too_late_are_refused(void **state)
{
	struct duo d;
	struct rig_client c = { 0 };
	duo_open(&d, 0);
	duo_run(&d);
	http_conn_shutdown(d.link.server);
	duo_ask(&d, &c, "/echo", 10, true); /* before GOAWAY is seen */
	duo_run(&d);
	assert_int_equal(c.seen.closes, 1);
	assert_int_equal(c.seen.fault, HTTP_REFUSED);
	assert_int_equal(d.app.requests, 0);
	duo_free(&d);
	rig_seen_free(&c.seen);
}

static void an_answer_in_full_may_drop_the_request(void **state)
{
	struct duo d;
	struct rig_client c = { 0 };
	struct http_head h;
	duo_open(&d, 0);
	duo_ask(&d, &c, "/hold", 1000, false);
	duo_run(&d);
	http_head_init(&h);
	h.status = 413;
	assert_int_equal(http_stream_send_head(d.app.held, &h, false, NULL), 0);
	assert_int_equal(http_stream_send_data(d.app.held, "too much", 8), 8);
	assert_int_equal(http_stream_send_end(d.app.held, NULL), 0);
	http_stream_reset(d.app.held, HTTP_FAULT_NONE);
	duo_run(&d);
	assert_int_equal(c.seen.head.status, 413);
	assert_int_equal(c.seen.bytes, 8);
	assert_true(c.seen.ended);
	assert_int_equal(c.seen.closes, 1);
	assert_int_equal(c.seen.fault, HTTP_FAULT_NONE);
	assert_int_equal(d.app.closes, 1);
	assert_int_equal(d.app.last.fault, HTTP_FAULT_NONE);
	http_head_free(&h);
	duo_free(&d);
	rig_seen_free(&c.seen);
}

/* A server's bad answer ends one stream, not those of others. */
static void a_bad_response_is_one_streams(void **state)
{
	static const struct pair bad[] = { { ":status", "101" }, { ":status", "20" }, { ":status", "999" }, { ":status", "2x0" } };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct http_conn_config config = { .version = HTTP_2, .role = HTTP_CLIENT };
		struct http_conn *conn = http_conn_new(&config, &rig_client_ops, NULL);
		struct rig_client c[2] = { { 0 }, { 0 } };
		struct http_head h;
		struct buf b, block;
		buf_init(&b, 1 << 20);
		buf_init(&block, 1000);
		rig_request(&h, "GET", "/");
		rig_client_start(&c[0], conn, &h, 0, true);
		rig_client_start(&c[1], conn, &h, 0, true);
		http_conn_pull(conn, &b, 1 << 20);
		buf_clear(&b);
		frame(&b, SETTINGS, 0, 0, "", 0);
		literal(&block, bad[i].name, bad[i].value);
		request(&b, 1, END_STREAM, (const char *)block.data, block.len);
		request(&b, 3, END_STREAM, "\x88", 1);
		http_conn_feed(conn, b.data, b.len);
		buf_clear(&b);
		http_conn_pull(conn, &b, 1 << 20);
		assert_int_equal(http_conn_fault(conn), HTTP_FAULT_NONE);
		assert_int_equal(c[0].seen.heads, 0);
		assert_int_equal(c[0].seen.fault, HTTP_MALFORMED);
		assert_int_equal(c[1].seen.head.status, 200);
		assert_int_equal(c[1].seen.fault, HTTP_FAULT_NONE);
		http_head_free(&h);
		http_conn_free(conn);
		buf_free(&b);
		buf_free(&block);
		rig_seen_free(&c[0].seen);
		rig_seen_free(&c[1].seen);
	}
}

static void a_server_without_websockets_is_not_asked(void **state)
{
	struct http_conn_config config = { .version = HTTP_2, .role = HTTP_CLIENT };
	struct http_conn *conn = http_conn_new(&config, &rig_client_ops, NULL);
	struct http_head h;
	struct buf b;
	struct err err = ERR_INIT;
	buf_init(&b, 1000);
	frame(&b, SETTINGS, 0, 0, "", 0);
	http_conn_feed(conn, b.data, b.len);
	rig_request(&h, "CONNECT", "/");
	http_head_set(&h, &h.protocol, "websocket", 9);
	assert_int_equal(http_head_add(&h, "sec-websocket-version", "13", 2), 0);
	assert_null(http_stream_open(conn, &h, false, &err));
	assert_int_equal(err.code, ERR_UNSUPPORTED);
	http_head_free(&h);
	http_conn_free(conn);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads_are_judged_by_fields),
		cmocka_unit_test(bodies_keep_to_their_length),
		cmocka_unit_test(trailers_are_judged),
		cmocka_unit_test(another_protocol_is_told),
		cmocka_unit_test(resets_have_a_limit),
		cmocka_unit_test(resets_within_the_limit_pass),
		cmocka_unit_test(being_made_to_reset_counts),
		cmocka_unit_test(streams_beyond_the_limit_are_refused),
		cmocka_unit_test(floods_have_a_limit),
		cmocka_unit_test(unread_answers_have_a_limit),
		cmocka_unit_test(content_earns_control_frames),
		cmocka_unit_test(continuations_have_a_limit),
		cmocka_unit_test(heads_have_a_ceiling),
		cmocka_unit_test(broken_frames_end_the_connection),
		cmocka_unit_test(crumbs_become_one_cookie),
		cmocka_unit_test(secrets_are_never_indexed),
		cmocka_unit_test(stalled_streams_dont_block_others),
		cmocka_unit_test(many_streams_when_both_agree),
		cmocka_unit_test(a_shutdown_lets_streams_finish),
		cmocka_unit_test(requests_that_come_too_late_are_refused),
		cmocka_unit_test(an_answer_in_full_may_drop_the_request),
		cmocka_unit_test(a_bad_response_is_one_streams),
		cmocka_unit_test(a_server_without_websockets_is_not_asked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
