/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request as the box can send it. What is taken and written anew must be read back as the same request, with the same body:
 * that is what keeps the server from seeing another one.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/http1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good)
		abort();
}

static int same(struct http1_text a, struct http1_text b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

/* The body as framed anew, and whether it ended. */
static int feed_all(const struct http1_request *r, const uint8_t *p, size_t len, size_t piece, struct buf *out,
	size_t *ret_used)
{
	struct http1_body b;
	size_t at = 0;
	http1_body_init(&b, r);
	while (at < len && !b.done) {
		size_t n = len - at < piece ? len - at : piece, used;
		if (http1_body_feed(&b, p + at, n, &used, out) < 0)
			return -1;
		check(used <= n && (used > 0 || b.done));
		at += used;
	}
	*ret_used = at;
	return b.done;
}

static void check_body(const struct http1_request *r, const uint8_t *p, size_t len)
{
	struct buf one, many;
	size_t used_one, used_many, used_again;
	buf_init(&one, 8 * len + 64);
	buf_init(&many, 8 * len + 64);
	int a = feed_all(r, p, len, len ? len : 1, &one, &used_one), b = feed_all(r, p, len, 1, &many, &used_many);
	check(a == b && (a < 0 || used_one == used_many));
	if (a == 1) {
		/* What goes out is read back to its very end. */
		struct buf again;
		buf_init(&again, 8 * one.len + 64);
		check(one.len == 0 ||
			(feed_all(r, one.data, one.len, one.len, &again, &used_again) == 1 && used_again == one.len));
		check(r->framing != HTTP1_CHUNKED || (again.len == one.len && memcmp(again.data, one.data, one.len) == 0));
		buf_free(&again);
	}
	buf_free(&one);
	buf_free(&many);
}

static void check_request(const struct http1_request *r)
{
	struct buf out;
	struct http1_request back;
	enum http1_fault fault;
	buf_init(&out, 2 * HTTP1_HEAD_MAX);
	/* Host, framing and connection headers are added: with as many lines as a request may have, they would be too many to
	 * read back. */
	if (r->form != HTTP1_AUTHORITY && r->n_headers <= HTTP1_HEADERS_MAX - 4) {
		check(http1_request_serialise(r, "h.example", &out) == 0);
		check(http1_request_parse(out.data, out.len, &back, &fault, NULL) == 0);
		check(same(r->method, back.method) && same(r->path, back.path));
		check(r->framing == back.framing && r->length == back.length);
		check(http1_text_is(back.host, "h.example") && r->websocket == back.websocket && r->minor == back.minor);
	}
	buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http1_request r;
	enum http1_fault fault;
	struct http1_watch w = { 0 };
	size_t head;
	http1_watch_feed(&w, data, size);
	if (http1_head_find(data, size, 0, &head) != 1)
		return 0;
	if (http1_request_parse(data, head, &r, &fault, NULL) < 0) {
		check(fault != HTTP1_FAULT_NONE);
		return 0;
	}
	check_request(&r);
	check_body(&r, data + head, size - head);
	return 0;
}
