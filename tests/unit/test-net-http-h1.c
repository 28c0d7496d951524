/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1 by bytes: which requests and responses are refused, and as what; what is written for what was asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "http-rig.h"

/* Sizes without the literal's NUL, so that a NUL may stand inside. */
#define BYTES(s) (s), sizeof(s) - 1

struct shape { const char *p; size_t len; enum http_fault fault; unsigned heads; };
#define BAD(s) { BYTES(s), HTTP_MALFORMED, 0 }
#define GOOD(s) { BYTES(s), HTTP_FAULT_NONE, 1 }
#define R "GET / HTTP/1.1\r\nHost: a\r\n"
#define POST "POST / HTTP/1.1\r\nHost: a\r\n"
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
#define WS "GET /c HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define V13 "Sec-WebSocket-Version: 13\r\n"

static const struct shape requests[] = {
	/* framing said twice, or in a way that two servers read in two ways */
	BAD(POST "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	BAD(POST "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"),
	BAD(POST "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde"),
	BAD(POST "Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd"),
	BAD(POST "Content-Length: 4, 4\r\n\r\nabcd"),
	BAD(POST "Content-Length: +4\r\n\r\nabcd"),
	BAD(POST "Content-Length: -1\r\n\r\n"),
	BAD(POST "Content-Length: 0x4\r\n\r\nabcd"),
	BAD(POST "Content-Length: 4 4\r\n\r\nabcd"),
	BAD(POST "Content-Length:\r\n\r\n"),
	BAD(POST "Content-Length: 4.0\r\n\r\nabcd"),
	BAD(POST "Content-Length: \"4\"\r\n\r\nabcd"),
	BAD(POST "Content-Length: 18446744073709551617\r\n\r\na"),
	BAD(POST "Content-Length: 9999999999999999999\r\n\r\na"),
	BAD(POST "Content-Length : 4\r\n\r\nabcd"),
	BAD(POST "Content-Length\t: 4\r\n\r\nabcd"),
	BAD(POST " Content-Length: 4\r\n\r\nabcd"),
	BAD(POST "Content_Length: 4\r\n\r\n"),
	BAD(POST "Transfer_Encoding: chunked\r\n\r\n"),
	BAD(POST "Transfer-Encoding: xchunked\r\n\r\n"),
	BAD(POST "Transfer-Encoding: chunked, chunked\r\n\r\n"),
	BAD(POST "Transfer-Encoding: chunked, identity\r\n\r\n"),
	BAD(POST "Transfer-Encoding: identity\r\n\r\n"),
	BAD(POST "Transfer-Encoding: gzip, chunked\r\n\r\n"),
	BAD(POST "Transfer-Encoding: chunked;q=1\r\n\r\n"),
	BAD(POST "Transfer-Encoding: \"chunked\"\r\n\r\n"),
	BAD(POST "Transfer-Encoding:\x0b" "chunked\r\n\r\n"),
	BAD(POST "Transfer-Encoding: chunked\x00\r\n\r\n"),
	BAD(POST "Transfer-Encoding:\r\n\r\n"),
	BAD(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
	BAD(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n"),
	BAD(POST "Transfer-Encoding:\r\n chunked\r\n\r\n"),
	BAD("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
	/* lines */
	BAD("GET / HTTP/1.1\nHost: a\n\n"),
	BAD("GET / HTTP/1.1\r\nHost: a\n\r\n"),
	BAD("GET / HTTP/1.1\r\nHost: a\r\n\n"),
	BAD("GET / HTTP/1.1\r\nHost: a\r\rX: y\r\n\r\n"),
	BAD(R "X: y\rContent-Length: 4\r\n\r\n"),
	BAD(R "X: a\x00" "b\r\n\r\n"),
	BAD(R "X: a\x01\r\n\r\n"),
	BAD(R "X: a\x7f\r\n\r\n"),
	BAD(R " folded\r\n\r\n"),
	BAD(R "X: a\r\n\tfolded\r\n\r\n"),
	BAD(R "X\r\n\r\n"),
	BAD(R ": y\r\n\r\n"),
	BAD(R "X y: z\r\n\r\n"),
	BAD(R "X\xc3\xa4: z\r\n\r\n"),
	BAD(R "X(: z\r\n\r\n"),
	BAD("\r\n" R "\r\n"),
	BAD("\n" R "\r\n"),
	/* the request line */
	BAD(" GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
	BAD("GET  / HTTP/1.1\r\nHost: a\r\n\r\n"),
	BAD("GET /  HTTP/1.1\r\nHost: a\r\n\r\n"),
	BAD("GET / HTTP/1.1 \r\nHost: a\r\n\r\n"),
	BAD("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"),
	BAD("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"),
	BAD("GET /\x80 HTTP/1.1\r\nHost: a\r\n\r\n"),
	BAD("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n"),
	BAD("GET a HTTP/1.1\r\nHost: a\r\n\r\n"),
	BAD("GET * HTTP/1.1\r\nHost: a\r\n\r\n"),
	BAD("G@T / HTTP/1.1\r\nHost: a\r\n\r\n"),
	BAD("GET / http/1.1\r\nHost: a\r\n\r\n"),
	BAD("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"),
	BAD("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"), /* no proxy here */
	BAD("GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
	{ BYTES("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), HTTP_BAD_VERSION, 0 },
	{ BYTES("GET / HTTP/1.2\r\nHost: a\r\n\r\n"), HTTP_BAD_VERSION, 0 },
	{ BYTES("GET / HTTP/11\r\nHost: a\r\n\r\n"), HTTP_BAD_VERSION, 0 },
	{ BYTES("GET /\r\n\r\n"), HTTP_BAD_VERSION, 0 },
	{ BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), HTTP_BAD_VERSION, 0 },
	/* the host */
	BAD("GET / HTTP/1.1\r\n\r\n"),
	BAD("GET / HTTP/1.1\r\nHost:\r\n\r\n"),
	BAD("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
	BAD("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n"),
	BAD("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"),
	BAD("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"),
	BAD("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
	BAD("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"),
	BAD("GET / HTTP/1.1\r\nHost : a\r\n\r\n"),
	/* WebSocket without what belongs to it */
	BAD(WS V13 "\r\n"),
	BAD(WS KEY "\r\n"),
	BAD(WS KEY KEY V13 "\r\n"),
	BAD(WS V13 "Sec-WebSocket-Key: short\r\n\r\n"),
	/* bodies: the head is good */
	{ BYTES(CHUNKED "1;ext\r\na\r\n0\r\n\r\n"), HTTP_MALFORMED, 1 },
	{ BYTES(CHUNKED "1 \r\na\r\n0\r\n\r\n"), HTTP_MALFORMED, 1 },
	{ BYTES(CHUNKED "0x1\r\na\r\n0\r\n\r\n"), HTTP_MALFORMED, 1 },
	{ BYTES(CHUNKED "-1\r\na\r\n0\r\n\r\n"), HTTP_MALFORMED, 1 },
	{ BYTES(CHUNKED "\r\na\r\n0\r\n\r\n"), HTTP_MALFORMED, 1 },
	{ BYTES(CHUNKED "1\na\r\n0\r\n\r\n"), HTTP_MALFORMED, 1 },
	{ BYTES(CHUNKED "1\r\nab\r\n0\r\n\r\n"), HTTP_MALFORMED, 1 },
	{ BYTES(CHUNKED "1\r\na\n0\r\n\r\n"), HTTP_MALFORMED, 1 },
	{ BYTES(CHUNKED "2\r\na\r\n0\r\n\r\n"), HTTP_MALFORMED, 1 },
	{ BYTES(CHUNKED "10000000000000001\r\na"), HTTP_MALFORMED, 1 },
	{ BYTES(CHUNKED "0\r\nX\r\n\r\n"), HTTP_MALFORMED, 1 },
	{ BYTES(CHUNKED "0\r\nX : y\r\n\r\n"), HTTP_MALFORMED, 1 },
	{ BYTES(CHUNKED "0\r\n X: y\r\n\r\n"), HTTP_MALFORMED, 1 },
	{ BYTES(CHUNKED "0\r\nX: y\n\r\n"), HTTP_MALFORMED, 1 },
	{ BYTES(CHUNKED "0\r\nContent-Length: 4\r\n\r\n"), HTTP_MALFORMED, 1 },
	{ BYTES(CHUNKED "0\r\nHost: b\r\n\r\n"), HTTP_MALFORMED, 1 },
	{ BYTES(CHUNKED "0\r\nTransfer-Encoding: chunked\r\n\r\n"), HTTP_MALFORMED, 1 },
	{ BYTES(CHUNKED "0\r\nAuthorization: x\r\n\r\n"), HTTP_MALFORMED, 1 },
	/* and what must pass */
	GOOD(R "\r\n"),
	GOOD("GET / HTTP/1.0\r\n\r\n"),
	GOOD("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"),
	GOOD("BULKHEAD-OPEN / HTTP/1.1\r\nHost: [::1]:443\r\n\r\n"),
	GOOD(R "X: \xc3\xa4\r\nY:\r\n\r\n"),
	GOOD(POST "Content-Length: 004\r\n\r\nabcd"),
	GOOD(CHUNKED "001\r\na\r\n000\r\nX:y\r\n\r\n"),
	GOOD(WS KEY V13 "\r\n"),
	GOOD(POST "Upgrade: websocket\r\nConnection: upgrade\r\nContent-Length: 1\r\n\r\na"), /* a plain request: no upgrade with a body */
	GOOD(R "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAAA\r\n\r\n"),
};

static struct http_conn *make(enum http_role role, bool proxy, const struct http_conn_ops *ops, void *ctx)
{
	struct http_conn_config config = { .version = HTTP_1, .role = role, .scheme = proxy ? "" : "https", .proxy = proxy };
	return http_conn_new(&config, ops, ctx);
}

static void feed_by(struct http_conn *c, const char *p, size_t len, size_t piece)
{
	struct buf out;
	buf_init(&out, 1 << 20);
	for (size_t at = 0; at < len && !http_conn_fault(c);) {
		size_t n = len - at < piece ? len - at : piece;
		size_t used = http_conn_feed(c, p + at, n);
		http_conn_pull(c, &out, 1 << 20);
		at += used;
		if (used == 0)
			break;
	}
	buf_free(&out);
}

static void requests_are_judged_by_bytes(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(requests); i++)
		for (size_t piece = 1; piece <= 4096; piece *= 8) {
			struct rig_server app = { 0 };
			rig_seen_init(&app.last);
			struct http_conn *c = make(HTTP_SERVER, false, &rig_server_ops, &app);
			feed_by(c, requests[i].p, requests[i].len, piece);
			if (http_conn_fault(c) != requests[i].fault || app.requests != requests[i].heads)
				fail_msg("request %zu by %zu: fault %d, heads %u: %s", i, piece, http_conn_fault(c), app.requests, requests[i].p);
			if (requests[i].fault && requests[i].heads)
				assert_int_equal(app.last.fault, requests[i].fault);
			http_conn_free(c);
			rig_seen_free(&app.last);
		}
}

static const struct shape responses[] = {
	BAD("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	BAD("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"),
	BAD("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde"),
	BAD("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nabcd"),
	BAD("HTTP/1.1 200 OK\r\nContent-Length: 4, 4\r\n\r\nabcd"),
	BAD("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
	BAD("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"),
	BAD("HTTP/1.1 200 OK\r\nContent-Length : 4\r\n\r\nabcd"),
	BAD("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
	BAD("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"),
	BAD("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
	BAD("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
	BAD("HTTP/1.1 200 OK\nContent-Length: 0\n\n"),
	BAD("HTTP/1.1 200 OK\r\nX: y\n\r\n"),
	BAD("HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n"),
	BAD("HTTP/1.1 200 OK\r\nX: a\r\n folded\r\n\r\n"),
	BAD("HTTP/1.1 200 OK\r\nX: a\x00" "b\r\n\r\n"),
	BAD("HTTP/1.1 200 O\x01K\r\n\r\n"),
	BAD("HTTP/1.1 099 OK\r\n\r\n"),
	BAD("HTTP/1.1 600 OK\r\n\r\n"),
	BAD("HTTP/1.1 20 OK\r\n\r\n"),
	BAD("HTTP/1.1 2000 OK\r\n\r\n"),
	BAD("HTTP/1.1  200 OK\r\n\r\n"),
	BAD("HTTP/1.1 abc OK\r\n\r\n"),
	BAD("HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n"),
	BAD("HTTP/1.1 103 E\r\nTransfer-Encoding: chunked\r\n\r\n"),
	BAD("HTTP/1.1 204 N\r\nContent-Length: 5\r\n\r\nhello"),
	BAD("HTTP/1.1 204 N\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	BAD("HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
	BAD("\r\nHTTP/1.1 200 OK\r\n\r\n"),
	BAD("<html>\r\n\r\n"),
	{ BYTES("HTTP/2.0 200 OK\r\n\r\n"), HTTP_BAD_VERSION, 0 },
	{ BYTES("HTTP/1.2 200 OK\r\n\r\n"), HTTP_BAD_VERSION, 0 },
	{ BYTES("ICY 200 OK\r\n\r\n"), HTTP_BAD_VERSION, 0 },
	{ BYTES("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"), HTTP_MALFORMED, 1 }, /* an answer to nothing */
	{ BYTES("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x\r\na\r\n0\r\n\r\n"), HTTP_MALFORMED, 1 },
	{ BYTES("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nSet-Cookie: a\r\n\r\n"), HTTP_MALFORMED, 1 },
	GOOD("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n"),
	GOOD("HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok"),
	GOOD("HTTP/1.1 204 N\r\nContent-Length: 0\r\n\r\n"),
	GOOD("HTTP/1.1 100 C\r\n\r\nHTTP/1.1 404 Not \xc3\xa4\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"),
	GOOD("HTTP/1.0 200 OK\r\n\r\nall of it"),
	GOOD("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nraw"),
};

static void ask(struct http_conn *c, struct rig_client *client, bool websocket)
{
	struct http_head h;
	rig_request(&h, websocket ? "CONNECT" : "GET", "/");
	if (websocket) {
		http_head_set(&h, &h.protocol, "websocket", 9);
		assert_int_equal(http_head_add(&h, "sec-websocket-version", "13", 2), 0);
		assert_int_equal(http_head_add(&h, "sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==", 24), 0);
	}
	rig_client_start(client, c, &h, 0, !websocket);
	http_head_free(&h);
}

static void responses_are_judged_by_bytes(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(responses); i++)
		for (size_t piece = 1; piece <= 4096; piece *= 8) {
			struct rig_client client = { 0 };
			struct http_conn *c = make(HTTP_CLIENT, false, &rig_client_ops, NULL);
			ask(c, &client, strstr(responses[i].p, "s3pPL") != NULL);
			feed_by(c, responses[i].p, responses[i].len, piece);
			if (http_conn_fault(c) != responses[i].fault || client.seen.heads != responses[i].heads)
				fail_msg("response %zu by %zu: fault %d, heads %u: %s", i, piece, http_conn_fault(c), client.seen.heads, responses[i].p);
			http_conn_free(c);
			rig_seen_free(&client.seen);
		}
}

static void websockets_need_the_right_answer(void **state)
{
	static const char *const wrong[] = {
		"HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n",
		"HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		"HTTP/1.1 101 S\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
		"HTTP/1.1 101 S\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
		"HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", /* would read as accepted */
	};
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct rig_client client = { 0 };
		struct http_conn *c = make(HTTP_CLIENT, false, &rig_client_ops, NULL);
		ask(c, &client, true);
		feed_by(c, wrong[i], strlen(wrong[i]), 4096);
		assert_int_equal(http_conn_fault(c), HTTP_MALFORMED);
		assert_int_equal(client.seen.heads, 0);
		assert_int_equal(client.seen.fault, HTTP_MALFORMED);
		http_conn_free(c);
		rig_seen_free(&client.seen);
	}
}

/* ---- sizes ---- */

static enum http_fault fault_of(enum http_role role, const struct buf *bytes, unsigned *heads)
{
	struct rig_server app = { 0 };
	struct rig_client client = { 0 };
	rig_seen_init(&app.last);
	struct http_conn *c = make(role, false, role == HTTP_SERVER ? &rig_server_ops : &rig_client_ops, &app);
	if (role == HTTP_CLIENT)
		ask(c, &client, false);
	feed_by(c, (const char *)bytes->data, bytes->len, 1000);
	enum http_fault fault = http_conn_fault(c);
	*heads = role == HTTP_SERVER ? app.requests : client.seen.heads;
	http_conn_free(c);
	rig_seen_free(&app.last);
	if (role == HTTP_CLIENT)
		rig_seen_free(&client.seen);
	return fault;
}

static void fill(struct buf *b, const char *start, const char *line, unsigned times, const char *end)
{
	buf_clear(b);
	buf_append(b, start, strlen(start));
	for (unsigned i = 0; i < times; i++)
		buf_append(b, line, strlen(line));
	buf_append(b, end, strlen(end));
}

static void sizes_have_ceilings(void **state)
{
	struct buf b;
	unsigned heads;
	buf_init(&b, 1 << 20);
	fill(&b, R, "X: y\r\n", HTTP_FIELDS_MAX - 1, "\r\n");
	assert_int_equal(fault_of(HTTP_SERVER, &b, &heads), HTTP_FAULT_NONE);
	assert_int_equal(heads, 1);
	fill(&b, R, "X: y\r\n", HTTP_FIELDS_MAX, "\r\n");
	assert_int_equal(fault_of(HTTP_SERVER, &b, &heads), HTTP_TOO_LARGE);
	fill(&b, R "X: ", "aaaaaaaaaaaaaaaa", HTTP_HEAD_MAX / 16, "\r\n\r\n");
	assert_int_equal(fault_of(HTTP_SERVER, &b, &heads), HTTP_TOO_LARGE);
	fill(&b, "GET /", "aaaaaaaaaaaaaaaa", HTTP_HEAD_MAX / 16, " HTTP/1.1\r\nHost: a\r\n\r\n");
	assert_int_equal(fault_of(HTTP_SERVER, &b, &heads), HTTP_TOO_LARGE);
	fill(&b, CHUNKED "0\r\n", "X: aaaaaaaaaaa\r\n", HTTP_TRAILERS_MAX / 16 + 1, "\r\n");
	assert_int_equal(fault_of(HTTP_SERVER, &b, &heads), HTTP_TOO_LARGE);
	fill(&b, CHUNKED "0\r\nX: ", "aaaaaaaaaaaaaaaa", HTTP_TRAILERS_MAX / 16, "\r\n\r\n");
	assert_int_equal(fault_of(HTTP_SERVER, &b, &heads), HTTP_TOO_LARGE);
	fill(&b, "HTTP/1.1 200 OK\r\n", "X: y\r\n", HTTP_FIELDS_MAX + 1, "\r\n");
	assert_int_equal(fault_of(HTTP_CLIENT, &b, &heads), HTTP_TOO_LARGE);
	fill(&b, "", "HTTP/1.1 102 P\r\n\r\n", 100, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	assert_int_equal(fault_of(HTTP_CLIENT, &b, &heads), HTTP_ABUSE);
	assert_int_equal(heads, 0);
	buf_free(&b);
}

/* ---- what is written ---- */

static void assert_output(struct http_conn *c, const char *want)
{
	struct buf out;
	buf_init(&out, 1 << 20);
	http_conn_pull(c, &out, (1 << 20) - 1);
	buf_append(&out, "", 1);
	assert_string_equal((char *)out.data, want);
	buf_free(&out);
}

static void assert_answer(const char *request, const char *answer, bool finished)
{
	struct rig_server app = { 0 };
	rig_seen_init(&app.last);
	struct http_conn *c = make(HTTP_SERVER, true, &rig_server_ops, &app);
	assert_int_equal(http_conn_feed(c, request, strlen(request)), strlen(request));
	assert_output(c, answer);
	assert_int_equal(http_conn_finished(c), finished);
	http_conn_free(c);
	rig_seen_free(&app.last);
}

static void responses_are_framed_for_the_client(void **state)
{
	assert_answer(CHUNKED "3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX-Answer: yes\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n", false);
	assert_answer("POST / HTTP/1.0\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nX-Answer: yes\r\nConnection: close\r\n\r\nabc", true);
	assert_answer("POST /interim HTTP/1.0\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nX-Answer: yes\r\nConnection: close\r\n\r\nabc", true);
	assert_answer("GET /204 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
		"HTTP/1.1 204 No Content\r\nX-Answer: yes\r\nConnection: close\r\n\r\n", true);
	assert_answer("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\nX-Answer: yes\r\nContent-Length: 1234\r\n\r\n", false);
	assert_answer("GET http://a/denied HTTP/1.1\r\nHost: a:80\r\n\r\n",
		"HTTP/1.1 403 Forbidden\r\nX-Answer: yes\r\nContent-Length: 0\r\n\r\n", false);
	assert_answer("POST /denied HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n",
		"HTTP/1.1 403 Forbidden\r\nX-Answer: yes\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", false);
	assert_answer("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" KEY V13 "\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nX-Answer: yes\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
		"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", false);
}

static void requests_are_written_anew(void **state)
{
	struct rig_client client = { 0 };
	struct http_head h;
	struct http_conn *c = make(HTTP_CLIENT, false, &rig_client_ops, NULL);
	rig_request(&h, "POST", "/a?b");
	assert_int_equal(http_head_add(&h, "X-Mine", " 1 ", 3), 0);
	assert_int_equal(http_head_add(&h, "te", "trailers", 8), 0);
	rig_client_start(&client, c, &h, 0, true);
	assert_output(c, "POST /a?b HTTP/1.1\r\nHost: example.com\r\nX-Mine: 1\r\nTE: trailers\r\nContent-Length: 0\r\nConnection: TE\r\n\r\n");
	assert_false(http_conn_can_open(c));
	struct err err = ERR_INIT;
	assert_null(http_stream_open(c, &h, true, &err)); /* one after the other */
	assert_int_not_equal(err.code, ERR_NONE);
	http_head_free(&h);
	http_conn_free(c);
	rig_seen_free(&client.seen);
}

static void what_cannot_be_sent_is_refused(void **state)
{
	static const struct { const char *method, *scheme, *authority, *path; } wrong[] = {
		{ "", "https", "a", "/" }, { "G T", "https", "a", "/" }, { "GET\r\n", "https", "a", "/" }, { "CONNECT", "https", "a", "/" },
		{ "GET", "ftp", "a", "/" }, { "GET", "https", "", "/" }, { "GET", "https", "a\r\nX: y", "/" }, { "GET", "https", "u@a", "/" },
		{ "GET", "https", "a", "" }, { "GET", "https", "a", "x" }, { "GET", "https", "a", "/ HTTP/1.1\r\n" }, { "GET", "https", "a", "*" },
		{ "GET", "https", "a", "/#" },
	};
	for (int version = HTTP_1; version <= HTTP_2; version++)
		for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
			struct http_conn_config config = { .version = version, .role = HTTP_CLIENT };
			struct http_conn *c = http_conn_new(&config, &rig_client_ops, NULL);
			struct http_head h;
			struct err err = ERR_INIT;
			http_head_init(&h);
			http_head_set(&h, &h.method, wrong[i].method, strlen(wrong[i].method));
			http_head_set(&h, &h.scheme, wrong[i].scheme, strlen(wrong[i].scheme));
			http_head_set(&h, &h.authority, wrong[i].authority, strlen(wrong[i].authority));
			http_head_set(&h, &h.path, wrong[i].path, strlen(wrong[i].path));
			assert_null(http_stream_open(c, &h, true, &err));
			assert_true(err.text[0] != 0);
			http_head_free(&h);
			http_conn_free(c);
		}
}

static void a_response_keeps_to_its_length(void **state)
{
	for (int more = 0; more <= 1; more++) {
		struct rig_server app = { 0 };
		struct http_head h;
		rig_seen_init(&app.last);
		struct http_conn *c = make(HTTP_SERVER, false, &rig_server_ops, &app);
		const char *request = "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n";
		http_conn_feed(c, request, strlen(request));
		http_head_init(&h);
		h.status = 200;
		h.has_length = true;
		h.length = 5;
		assert_int_equal(http_stream_send_head(app.held, &h, false, NULL), 0);
		http_head_free(&h);
		if (more) {
			assert_int_equal(http_stream_send_data(app.held, "hello GET /smuggled", 19), 19);
		} else {
			assert_int_equal(http_stream_send_data(app.held, "hel", 3), 3);
			assert_int_equal(http_stream_send_end(app.held, NULL), -1);
		}
		assert_output(c, more ? "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" : "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel");
		assert_int_equal(app.closes, 1);
		assert_int_equal(app.last.fault, more ? HTTP_MALFORMED : HTTP_TRUNCATED);
		assert_true(http_conn_finished(c));
		http_conn_free(c);
		rig_seen_free(&app.last);
	}
}

static void ends_in_the_middle_are_told(void **state)
{
	static const struct { const char *bytes; enum http_fault fault; } cases[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", HTTP_TRUNCATED },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", HTTP_TRUNCATED },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", HTTP_TRUNCATED },
		{ "HTTP/1.1 200 OK\r\nX: ", HTTP_TRUNCATED },
		{ "", HTTP_TRUNCATED },
		{ "HTTP/1.1 100 C\r\n\r\n", HTTP_TRUNCATED },
		{ "HTTP/1.1 200 OK\r\n\r\nhel", HTTP_FAULT_NONE },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		for (int broken = 0; broken <= 1; broken++) {
			struct rig_client client = { 0 };
			struct http_conn *c = make(HTTP_CLIENT, false, &rig_client_ops, NULL);
			ask(c, &client, false);
			feed_by(c, cases[i].bytes, strlen(cases[i].bytes), 100);
			if (broken)
				http_conn_cut(c);
			else
				http_conn_feed_end(c);
			assert_int_equal(client.seen.closes, 1);
			/* A body that ends with the connection ends only with a clean end of it. */
			assert_int_equal(client.seen.fault, broken ? HTTP_TRUNCATED : cases[i].fault);
			assert_int_equal(client.seen.ended, !broken && cases[i].fault == HTTP_FAULT_NONE);
			http_conn_free(c);
			rig_seen_free(&client.seen);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_judged_by_bytes),
		cmocka_unit_test(responses_are_judged_by_bytes),
		cmocka_unit_test(websockets_need_the_right_answer),
		cmocka_unit_test(sizes_have_ceilings),
		cmocka_unit_test(responses_are_framed_for_the_client),
		cmocka_unit_test(requests_are_written_anew),
		cmocka_unit_test(what_cannot_be_sent_is_refused),
		cmocka_unit_test(a_response_keeps_to_its_length),
		cmocka_unit_test(ends_in_the_middle_are_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
