/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "net/http1.h"

static enum http1_fault parse_fault(const char *text, size_t len)
{
	struct http1_request r;
	enum http1_fault fault;
	struct err err = ERR_INIT;
	if (http1_request_parse(text, len, &r, &fault, &err) == 0)
		return HTTP1_FAULT_NONE;
	assert_int_not_equal(fault, HTTP1_FAULT_NONE);
	assert_true(err.text[0] != 0);
	return fault;
}

/* As it would be forwarded with "Host: example.com". */
static void assert_forwarded(const char *in, const char *out)
{
	struct http1_request r;
	enum http1_fault fault;
	struct buf b;
	buf_init(&b, 1 << 20);
	assert_int_equal(http1_request_parse(in, strlen(in), &r, &fault, NULL), 0);
	assert_int_equal(http1_request_serialise(&r, "example.com", &b), 0);
	buf_append(&b, "", 1);
	assert_string_equal((char *)b.data, out);
	buf_free(&b);
}

static void requests_are_written_anew(void **state)
{
	assert_forwarded("GET /a?b=c HTTP/1.1\r\nhost:   EXAMPLE.com:80 \r\nAccept: */*\r\n\r\n",
		"GET /a?b=c HTTP/1.1\r\nHost: example.com\r\nAccept: */*\r\nConnection: close\r\n\r\n");
	assert_forwarded("GET http://example.com HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n");
	assert_forwarded("GET HTTP://example.com:81/x?y HTTP/1.0\r\nHost: example.com\r\n\r\n",
		"GET /x?y HTTP/1.0\r\nHost: example.com\r\nConnection: close\r\n\r\n");
	assert_forwarded("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n");
	assert_forwarded("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 007\r\nExpect: 100-continue\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: example.com\r\nExpect: 100-continue\r\nContent-Length: 7\r\nConnection: close\r\n\r\n");
	assert_forwarded("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\nTrailer: x\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
}

static void hop_by_hop_headers_go(void **state)
{
	assert_forwarded("GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, X-Mine\r\nKeep-Alive: 5\r\nX-Mine: 1\r\nx-mine: 2\r\nTE: trailers\r\n"
			 "Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic eA==\r\nUpgrade: h2c\r\nHTTP2-Settings: AAAA\r\nX-Other: 3\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: example.com\r\nX-Other: 3\r\nConnection: close\r\n\r\n");
}

static void only_websocket_is_upgraded(void **state)
{
	assert_forwarded("GET /c HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: k\r\n\r\n",
		"GET /c HTTP/1.1\r\nHost: example.com\r\nSec-WebSocket-Key: k\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
	/* without Connection, with a body, in another protocol, twice */
	assert_forwarded("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n", "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n");
	assert_forwarded("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\nContent-Length: 1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1\r\nConnection: close\r\n\r\n");
	assert_forwarded("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n");
	assert_forwarded("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n");
}

/* A request line or a header line that two servers could read in two ways. "\1" stands for a NUL. */
static void ambiguity_is_malformed(void **state)
{
	static const char *const bad[] = {
		/* request lines */
		"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /\tHTTP/1.1\r\nHost: a\r\n\r\n",
		" GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
		"GET / http/1.1\r\nHost: a\r\n\r\n",
		"GET /\r\n\r\n",
		"GET\r\n\r\n",
		"G(T / HTTP/1.1\r\nHost: a\r\n\r\n",
		"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /a\x80 HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /a\1 HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET a HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET * HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http:/// HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http://a?x HTTP/1.1\r\nHost: a\r\n\r\n",
		"CONNECT /a HTTP/1.1\r\nHost: a\r\n\r\n",
		"CONNECT u@a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
		/* line ends */
		"GET / HTTP/1.1\nHost: a\n\n",
		"GET / HTTP/1.1\r\nHost: a\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nX: b\rc\r\n\r\n",
		"GET / HTTP/1.1\rX\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n\r\nX",
		/* header lines */
		"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
		"GET / HTTP/1.1\r\n folded\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost\t: a\r\n\r\n",
		"GET / HTTP/1.1\r\n: a\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nX\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nX(: y\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nX: a\x7f\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nX: a\x0b\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n",
		/* framing */
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1 1\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999999999999999\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n",
		"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
		/* names that CGI-like servers read as framing */
		"POST / HTTP/1.1\r\nHost: a\r\nContent_Length: 1\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer_Encoding: chunked\r\n\r\n",
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char text[512];
		size_t len = strlen(bad[i]);
		memcpy(text, bad[i], len + 1);
		for (size_t j = 0; j < len; j++)
			if (text[j] == 1)
				text[j] = 0;
		if (parse_fault(text, len) != HTTP1_FAULT_MALFORMED)
			fail_msg("taken, or refused for another cause: %s", bad[i]);
	}
}

static void other_versions_are_told(void **state)
{
	static const char *const versions[] = { "HTTP/2.0", "HTTP/1.2", "HTTP/0.9", "HTTP/3", "HTTP/1.10", "HTTP/11" };
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		char text[128];
		int n = snprintf(text, sizeof(text), "GET / %s\r\nHost: a\r\n\r\n", versions[i]);
		assert_int_equal(parse_fault(text, (size_t)n), HTTP1_FAULT_VERSION);
	}
}

static void sizes_have_ceilings(void **state)
{
	struct buf b;
	buf_init(&b, 1 << 20);
	buf_printf(&b, "GET / HTTP/1.1\r\nHost: a\r\n");
	for (unsigned i = 0; i < HTTP1_HEADERS_MAX; i++)
		buf_printf(&b, "X%u: y\r\n", i);
	buf_printf(&b, "\r\n");
	assert_int_equal(parse_fault((char *)b.data, b.len), HTTP1_FAULT_TOO_LARGE);
	buf_clear(&b);
	buf_printf(&b, "GET /");
	while (b.len < HTTP1_HEAD_MAX)
		buf_append(&b, "aaaaaaaaaaaaaaaa", 16);
	size_t end;
	assert_int_equal(http1_head_find(b.data, HTTP1_HEAD_MAX - 1, 0, &end), 0);
	assert_int_equal(http1_head_find(b.data, b.len, 0, &end), -1);
	buf_free(&b);
}

static void the_head_ends_where_it_ends(void **state)
{
	const char *text = "GET / HTTP/1.1\r\nHost: a\r\n\r\nbody\r\n\r\n";
	size_t len = strlen(text), head = 27, end = 0;
	for (size_t n = 0; n < head; n++)
		assert_int_equal(http1_head_find(text, n, 0, &end), 0);
	for (size_t n = head; n <= len; n++) {
		assert_int_equal(http1_head_find(text, n, 0, &end), 1);
		assert_int_equal(end, head);
	}
	assert_int_equal(http1_head_find("GET / HTTP/1.1\n", 15, 0, &end), -1);
	assert_int_equal(http1_head_find("GE\0", 3, 0, &end), -1);
}

/* ---- bodies ---- */

/* Feeds `in` in pieces; returns what would be forwarded, NULL when malformed. */
static char *feed(struct http1_body *b, const char *in, size_t len, size_t piece, size_t *ret_used)
{
	struct buf out;
	buf_init(&out, 1 << 20);
	size_t at = 0;
	while (at < len && !b->done) {
		size_t n = len - at < piece ? len - at : piece, used;
		if (http1_body_feed(b, in + at, n, &used, &out) < 0) {
			buf_free(&out);
			return NULL;
		}
		at += used;
	}
	*ret_used = at;
	char *text = mem_strndup(out.data ? (char *)out.data : "", out.len);
	buf_free(&out);
	return text;
}

static struct http1_body body_of(enum http1_framing framing, uint64_t length)
{
	struct http1_request r = { .framing = framing, .length = length };
	struct http1_body b;
	http1_body_init(&b, &r);
	return b;
}

static void lengths_are_exact(void **state)
{
	for (size_t piece = 1; piece < 12; piece++) {
		struct http1_body b = body_of(HTTP1_LENGTH, 5);
		size_t used;
		char *out = feed(&b, "12345GET /", 10, piece, &used);
		assert_string_equal(out, "12345");
		assert_int_equal(used, 5);
		assert_true(b.done);
		mem_free(out);
	}
	struct http1_body none = body_of(HTTP1_NO_BODY, 0), zero = body_of(HTTP1_LENGTH, 0);
	assert_true(none.done && zero.done);
}

static void chunks_are_framed_anew(void **state)
{
	const char *in = "0005\r\nhello\r\nA\r\n0123456789\r\n0\r\nX-Trailer: dropped\r\nY:\r\n\r\nGET / HTTP/1.1";
	struct http1_body b = body_of(HTTP1_CHUNKED, 0);
	size_t used;
	char *out = feed(&b, in, strlen(in), 1000, &used);
	assert_string_equal(out, "5\r\nhello\r\na\r\n0123456789\r\n0\r\n\r\n");
	assert_string_equal(in + used, "GET / HTTP/1.1");
	mem_free(out);
	for (size_t piece = 1; piece < 20; piece++) {
		b = body_of(HTTP1_CHUNKED, 0);
		out = feed(&b, in, strlen(in), piece, &used);
		assert_non_null(out);
		assert_true(b.done);
		assert_string_equal(in + used, "GET / HTTP/1.1");
		mem_free(out);
	}
}

static void bad_chunks_are_refused(void **state)
{
	static const char *const bad[] = {
		"\r\n", "g\r\n", " 5\r\nhello\r\n", "5 \r\nhello\r\n", "5;x=y\r\nhello\r\n", "0x5\r\nhello\r\n", "-5\r\n", "+5\r\n",
		"5\nhello\n", "5\r\nhelloX", "5\r\nhello\n", "5\r\nhello\rX", "5\rhello", "FFFFFFFFFFFFFFFFF\r\n", "10000000000000000\r\n",
		"0\r\nno colon\r\n\r\n", "0\r\n: x\r\n\r\n", "0\r\n folded: x\r\n\r\n", "0\r\nX : y\r\n\r\n", "0\r\nX: a\nb\r\n\r\n", "0\r\n\n", "0\r\nX\r\n\r\n",
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct http1_body b = body_of(HTTP1_CHUNKED, 0);
		size_t used;
		char *out = feed(&b, bad[i], strlen(bad[i]), 1, &used);
		if (out)
			fail_msg("taken: %s", bad[i]);
	}
}

static void trailers_have_a_ceiling(void **state)
{
	struct buf in;
	buf_init(&in, 1 << 20);
	buf_printf(&in, "0\r\n");
	while (in.len < HTTP1_TRAILER_MAX + 1000)
		buf_printf(&in, "X: yyyyyyyyyyyyyyyyyy\r\n");
	struct http1_body b = body_of(HTTP1_CHUNKED, 0);
	size_t used;
	assert_null(feed(&b, (char *)in.data, in.len, 100, &used));
	buf_free(&in);
}

/* ---- responses ---- */

static enum http1_upgrade watch(const char *text, size_t piece)
{
	struct http1_watch w = { 0 };
	size_t len = strlen(text);
	for (size_t at = 0; at < len; at += piece)
		http1_watch_feed(&w, text + at, len - at < piece ? len - at : piece);
	return w.result;
}

static void only_101_upgrades(void **state)
{
	for (size_t piece = 1; piece < 100; piece += 7) {
		assert_int_equal(watch("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n", piece), HTTP1_UPGRADE_YES);
		assert_int_equal(watch("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 101 S\r\n\r\n", piece), HTTP1_UPGRADE_YES);
		assert_int_equal(watch("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nHTTP/1.1 101 S\r\n\r\n", piece), HTTP1_UPGRADE_NO);
		assert_int_equal(watch("HTTP/1.1 200 OK\r\nX: y\r\n\r\n", piece), HTTP1_UPGRADE_NO);
		assert_int_equal(watch("HTTP/1.0 101 S\r\n\r\n", piece), HTTP1_UPGRADE_NO);
		assert_int_equal(watch("101\r\n\r\n", piece), HTTP1_UPGRADE_NO);
		assert_int_equal(watch("HTTP/1.1 101 S\r\nX: y\r\n", piece), HTTP1_UPGRADE_WAITING);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_written_anew),
		cmocka_unit_test(hop_by_hop_headers_go),
		cmocka_unit_test(only_websocket_is_upgraded),
		cmocka_unit_test(ambiguity_is_malformed),
		cmocka_unit_test(other_versions_are_told),
		cmocka_unit_test(sizes_have_ceilings),
		cmocka_unit_test(the_head_ends_where_it_ends),
		cmocka_unit_test(lengths_are_exact),
		cmocka_unit_test(chunks_are_framed_anew),
		cmocka_unit_test(bad_chunks_are_refused),
		cmocka_unit_test(trailers_have_a_ceiling),
		cmocka_unit_test(only_101_upgrades),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
