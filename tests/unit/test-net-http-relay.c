/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that is relayed, through each pair of versions, in pieces of each size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "http-rig.h"

static const size_t splits[] = { 1, 2, 3, 7, 9, 64, 1000, 65536 };

typedef void (*case_fn)(struct rig *r, struct rig_client *c);

static void each_way(case_fn fn, size_t n_splits, const size_t *sizes)
{
	for (int first = HTTP_1; first <= HTTP_2; first++)
		for (int second = HTTP_1; second <= HTTP_2; second++)
			for (size_t i = 0; i < n_splits; i++) {
				struct rig r;
				struct rig_client c = { 0 };
				print_message("# %d>%d by %zu\n", first, second, sizes[i]);
				rig_init(&r, first, second, sizes[i]);
				fn(&r, &c);
				rig_free(&r);
				rig_seen_free(&c.seen);
			}
}

static void everywhere(case_fn fn) { each_way(fn, ARRAY_LEN(splits), splits); }

static void assert_field(const struct http_head *h, const char *name, const char *value)
{
	const struct http_field *f = http_head_get(h, name);
	assert_non_null(f);
	assert_true(http_text_equal(f->value, value));
}

static void exchange(struct rig *r, struct rig_client *c, const char *method, const char *path, uint64_t body)
{
	struct http_head h;
	rig_request(&h, method, path);
	assert_int_equal(http_head_add(&h, "x-mine", "1", 1), 0);
	rig_client_start(c, r->first.client, &h, body, true);
	http_head_free(&h);
	rig_run(r);
	assert_int_equal(c->seen.closes, 1);
	assert_int_equal(c->seen.fault, HTTP_FAULT_NONE);
	assert_true(c->seen.ended);
	assert_int_equal(c->seen.heads, 1);
	assert_true(http_text_equal(r->server.last.head.method, method));
	assert_true(http_text_equal(r->server.last.head.path, path));
	assert_true(http_text_equal(r->server.last.head.authority, "example.com"));
	assert_true(http_text_equal(r->server.last.head.scheme, "https"));
	assert_field(&r->server.last.head, "x-mine", "1");
	assert_field(&c->seen.head, "x-answer", "yes");
}

static void get_twice(struct rig *r, struct rig_client *c)
{
	exchange(r, c, "GET", "/a?b=c", 0);
	assert_int_equal(c->seen.head.status, 200);
	assert_int_equal(c->seen.bytes, 0);
	rig_seen_free(&c->seen);
	exchange(r, c, "GET", "/second", 0); /* the connections are kept */
	assert_int_equal(r->server.requests, 2);
	assert_int_equal(r->server.closes, 2);
}

static void requests_follow_each_other(void **state) { everywhere(get_twice); }

static void post(struct rig *r, struct rig_client *c)
{
	exchange(r, c, "POST", "/echo", 100000);
	assert_int_equal(r->server.last.bytes, 100000);
	assert_int_equal(r->server.last.sum, c->sum);
	assert_int_equal(c->seen.bytes, 100000);
	assert_int_equal(c->seen.sum, c->sum);
}

static void bodies_come_back(void **state) { everywhere(post); }

static void post_length(struct rig *r, struct rig_client *c)
{
	struct http_head h;
	rig_request(&h, "PUT", "/length");
	h.has_length = true;
	h.length = 5000;
	rig_client_start(c, r->first.client, &h, 5000, true);
	http_head_free(&h);
	rig_run(r);
	assert_true(r->server.last.head.has_length);
	assert_int_equal(r->server.last.head.length, 5000);
	assert_true(c->seen.head.has_length);
	assert_int_equal(c->seen.head.length, 5000);
	assert_int_equal(c->seen.sum, c->sum);
	assert_int_equal(c->seen.fault, HTTP_FAULT_NONE);
	assert_int_equal(c->seen.closes, 1);
}

static void lengths_are_kept(void **state) { everywhere(post_length); }

static void with_trailers(struct rig *r, struct rig_client *c)
{
	struct http_head t;
	http_head_init(&t);
	assert_int_equal(http_head_add(&t, "grpc-status", "0", 1), 0);
	assert_int_equal(http_head_add(&t, "x-checksum", "a b", 3), 0);
	c->trailers = &t;
	exchange(r, c, "POST", "/echo", 10);
	assert_field(&r->server.last.trailers, "grpc-status", "0");
	assert_field(&c->seen.trailers, "grpc-status", "0");
	assert_field(&c->seen.trailers, "x-checksum", "a b");
	http_head_free(&t);
}

static void trailers_are_kept(void **state) { everywhere(with_trailers); }

static void interim(struct rig *r, struct rig_client *c)
{
	exchange(r, c, "POST", "/interim", 10);
	assert_int_equal(c->seen.interim, 2);
	assert_int_equal(c->seen.head.status, 200);
}

static void interim_heads_pass(void **state) { everywhere(interim); }

static void bodiless(struct rig *r, struct rig_client *c)
{
	exchange(r, c, "HEAD", "/a", 0);
	assert_true(c->seen.head.has_length);
	assert_int_equal(c->seen.head.length, 1234);
	rig_seen_free(&c->seen);
	exchange(r, c, "GET", "/204", 0);
	assert_int_equal(c->seen.head.status, 204);
	assert_false(c->seen.head.has_length);
	rig_seen_free(&c->seen);
	exchange(r, c, "GET", "/304", 0);
	assert_int_equal(c->seen.head.status, 304);
	assert_int_equal(c->seen.head.length, 77);
	rig_seen_free(&c->seen);
	exchange(r, c, "OPTIONS", "*", 0);
	assert_int_equal(c->seen.bytes, 0);
	rig_seen_free(&c->seen);
	exchange(r, c, "BULKHEAD-OPEN", "/", 0);
}

static void responses_without_body(void **state) { everywhere(bodiless); }

static void websocket(struct rig *r, struct rig_client *c)
{
	struct http_head h;
	rig_request(&h, "CONNECT", "/chat");
	assert_int_equal(http_head_set(&h, &h.protocol, "websocket", 9), 0);
	assert_int_equal(http_head_add(&h, "sec-websocket-version", "13", 2), 0);
	assert_int_equal(http_head_add(&h, "sec-websocket-protocol", "chat", 4), 0);
	rig_run(r);
	rig_client_start(c, r->first.client, &h, 50000, false);
	http_head_free(&h);
	rig_run(r);
	assert_int_equal(c->seen.head.status, 200);
	assert_true(http_text_equal(r->server.last.head.protocol, "websocket"));
	assert_true(http_text_equal(r->server.last.head.method, "CONNECT"));
	assert_field(&r->server.last.head, "sec-websocket-protocol", "chat");
	assert_int_equal(c->seen.bytes, 50000);
	assert_int_equal(c->seen.sum, c->sum);
	assert_int_equal(c->seen.closes, 0);
	assert_int_equal(http_stream_send_end(c->stream, NULL), 0);
	rig_run(r);
	assert_true(c->seen.ended);
	assert_int_equal(c->seen.closes, 1);
	assert_int_equal(c->seen.fault, HTTP_FAULT_NONE);
	assert_int_equal(r->server.closes, 1);
}

static void websockets_pass(void **state) { everywhere(websocket); }

static void websocket_denied(struct rig *r, struct rig_client *c)
{
	struct http_head h;
	rig_request(&h, "CONNECT", "/denied");
	assert_int_equal(http_head_set(&h, &h.protocol, "websocket", 9), 0);
	assert_int_equal(http_head_add(&h, "sec-websocket-version", "13", 2), 0);
	rig_client_start(c, r->first.client, &h, 10, true);
	http_head_free(&h);
	rig_run(r);
	assert_int_equal(c->seen.head.status, 403);
	assert_true(c->seen.ended);
}

static void websockets_are_denied(void **state) { everywhere(websocket_denied); }

static void reset_by_client(struct rig *r, struct rig_client *c)
{
	struct http_head h;
	rig_request(&h, "POST", "/echo");
	rig_client_start(c, r->first.client, &h, 10, false);
	http_head_free(&h);
	rig_run(r);
	assert_int_equal(c->seen.bytes, 10);
	http_stream_reset(c->stream, HTTP_CANCELLED);
	rig_run(r);
	assert_int_equal(c->seen.closes, 1);
	assert_int_equal(c->seen.fault, HTTP_CANCELLED);
	assert_int_equal(r->server.closes, 1);
	assert_int_not_equal(r->server.last.fault, HTTP_FAULT_NONE);
}

static void resets_reach_the_server(void **state) { everywhere(reset_by_client); }

static void reset_by_server(struct rig *r, struct rig_client *c)
{
	struct http_head h;
	rig_request(&h, "POST", "/hold");
	rig_client_start(c, r->first.client, &h, 10, false);
	http_head_free(&h);
	rig_run(r);
	assert_non_null(r->server.held);
	http_stream_reset(r->server.held, HTTP_TRUNCATED);
	rig_run(r);
	assert_int_equal(c->seen.closes, 1);
	assert_int_equal(c->seen.heads, 0);
	assert_int_equal(c->seen.fault, HTTP_TRUNCATED);
}

static void resets_reach_the_client(void **state) { everywhere(reset_by_server); }

static void stalled(struct rig *r, struct rig_client *c)
{
	c->lazy = true;
	struct http_head h;
	rig_request(&h, "POST", "/echo");
	rig_client_start(c, r->first.client, &h, 16u << 20, true);
	http_head_free(&h);
	rig_run(r);
	/* Everything stands still with bounded amounts in between. */
	assert_int_equal(c->seen.bytes, HTTP_WINDOW);
	assert_true(c->sent < HTTP_WINDOW + 3 * (4u << 20));
	assert_true(r->relay.most_held <= HTTP_WINDOW);
	while (c->uncredited) {
		size_t n = c->uncredited > 100000 ? 100000 : (size_t)c->uncredited;
		c->uncredited -= n;
		http_stream_credit(c->stream, n);
		rig_run(r);
		if (!c->stream)
			break;
	}
	assert_int_equal(c->seen.bytes, 16u << 20);
	assert_int_equal(c->seen.sum, c->sum);
	assert_true(c->seen.ended);
	assert_true(r->relay.most_held <= HTTP_WINDOW);
}

static void pressure_goes_back(void **state)
{
	static const size_t sizes[] = { 777, 65536 };
	each_way(stalled, ARRAY_LEN(sizes), sizes);
}

static void large(struct rig *r, struct rig_client *c)
{
	exchange(r, c, "POST", "/echo", 64u << 20);
	assert_int_equal(c->seen.bytes, 64u << 20);
	assert_int_equal(c->seen.sum, c->sum);
	assert_true(r->relay.most_held <= HTTP_WINDOW);
}

static void large_bodies_need_little_memory(void **state)
{
	static const size_t sizes[] = { 65536 };
	each_way(large, ARRAY_LEN(sizes), sizes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_follow_each_other),
		cmocka_unit_test(bodies_come_back),
		cmocka_unit_test(lengths_are_kept),
		cmocka_unit_test(trailers_are_kept),
		cmocka_unit_test(interim_heads_pass),
		cmocka_unit_test(responses_without_body),
		cmocka_unit_test(websockets_pass),
		cmocka_unit_test(websockets_are_denied),
		cmocka_unit_test(resets_reach_the_server),
		cmocka_unit_test(resets_reach_the_client),
		cmocka_unit_test(pressure_goes_back),
		cmocka_unit_test(large_bodies_need_little_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
