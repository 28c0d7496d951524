/* SPDX-License-Identifier: Apache-2.0 */
/* The upstream half: every live secret is taken out of every answer, in heads, bodies and trailers, in any spelling and coding, over both versions. */
#include "upstream-rig.h"

#include <stdio.h>
#include <zlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "gate/upstream-link.h"
#include "secrets/unpack.h"

#define VALUE "s3cr3t-value-0001"
#define BASE64 "czNjcjN0LXZhbHVlLTAwMDE="
#define HEX "7333637233742d76616c75652d30303031"
#define RULES "[{ host: api.example, ports: [@0], private: true, ca: rig.pem, secret: { name: key, header: Authorization } }]"

static const char *const secrets[] = { "key", "second", NULL };

static const char *at(const struct user *s)
{
	static char authority[64];
	snprintf(authority, sizeof(authority), "api.example:%u", s->port);
	return authority;
}

static struct urig *start(const char *alpn, struct user **ret)
{
	struct urig *r = urig_new();
	*ret = urig_server(r, r->mint, "api.example", alpn);
	urig_run(r, RULES, secrets);
	urig_secret(r, "key", VALUE, 1);
	urig_secret(r, "second", "another/secret+value", 1);
	struct call *c = urig_open(r, 1, "https", at(*ret), "h2,http/1.1");
	URIG_WAIT(r, c->answered || c->closed);
	assert_int_equal(c->head.status, 200);
	return r;
}

static struct call *fetch_with(struct urig *r, struct user *s, const char *method, const char *field)
{
	const char *fields[] = { field, NULL };
	struct call *c = urig_request(r, 1, method, "https", at(s), "/", field ? fields : NULL, NULL, 0);
	URIG_WAIT(r, c->closed);
	return c;
}

static struct call *fetch(struct urig *r, struct user *s) { return fetch_with(r, s, "GET", "accept-encoding: gzip, br, zstd, deflate, compress"); }

static void assert_clean(const struct call *c)
{
	static const char *const forms[] = { VALUE, BASE64, HEX, "s3cr3t-value", "another/secret+value" };
	for (size_t k = 0; k < ARRAY_LEN(forms); k++) {
		assert_false(call_has(c, forms[k]));
		for (size_t i = 0; i < c->head.n_fields + c->trailers.n_fields; i++) {
			const struct http_field *f = i < c->head.n_fields ? &c->head.fields[i] : &c->trailers.fields[i - c->head.n_fields];
			assert_true(!f->value.len || !memmem(f->value.p, f->value.len, forms[k], strlen(forms[k])));
		}
	}
}

static const char *const protocols[] = { "http/1.1", "h2" };

static void heads_bodies_and_trailers_are_scrubbed(void **state)
{
	static const char body[] = "before " VALUE " and " BASE64 " and " HEX " and another/secret+value after";
	for (size_t p = 0; p < 2; p++) {
		struct user *s;
		struct urig *r = start(protocols[p], &s);
		s->script = (struct script){ .status = 200, .fields = { "x-echo: Bearer " VALUE, "set-cookie: t=" BASE64, "set-cookie: u=another%2Fsecret%2Bvalue",
			"location: https://x.example/?t=" VALUE "&y" }, .body = body, .len = strlen(body), .trailer = "x-sum: " VALUE };
		struct call *c = fetch(r, s);
		assert_int_equal(c->head.status, 200);
		assert_clean(c);
		assert_int_equal(c->body.len, strlen(body)); /* lengths stay */
		assert_true(call_has(c, "before "));
		assert_true(call_has(c, " after"));
		assert_int_equal(strlen(call_field(c, "x-echo")), strlen("Bearer " VALUE));
		assert_int_equal(http_head_count(&c->head, "set-cookie"), 2);
		assert_true(c->has_trailers);
		URIG_WAIT(r, urig_count(r, "secret.found") >= 6);
		const json_t *found = urig_last(r, "secret.found");
		assert_string_equal(urig_text(found, "host"), "api.example");
		assert_string_equal(urig_text(found, "where"), "trailer");
		urig_free(r);
	}
}

static void a_said_length_stays(void **state)
{
	for (size_t p = 0; p < 2; p++) {
		struct user *s;
		struct urig *r = start(protocols[p], &s);
		s->script = (struct script){ .status = 200, .body = "x" VALUE "y", .len = strlen(VALUE) + 2, .has_length = true };
		struct call *c = fetch(r, s);
		assert_clean(c);
		assert_true(c->head.has_length);
		assert_int_equal(c->head.length, c->body.len);
		urig_free(r);
	}
}

/* Each border of chunks within the secret. */
static void a_secret_over_any_border_is_found(void **state)
{
	for (size_t p = 0; p < 2; p++) {
		struct user *s;
		struct urig *r = start(protocols[p], &s);
		char body[4096];
		size_t n = 0;
		while (n < 4000)
			n += (size_t)snprintf(body + n, sizeof(body) - n, "%s|%s|", VALUE, BASE64);
		for (size_t piece = 1; piece < 40; piece++) {
			s->script = (struct script){ .status = 200, .body = body, .len = n, .piece = piece };
			struct call *c = fetch(r, s);
			assert_clean(c);
			assert_int_equal(c->body.len, n);
			assert_true(c->ended);
		}
		urig_free(r);
	}
}

/* ---- codings ---- */

static size_t deflate_to(uint8_t *out, size_t room, const void *p, size_t len, int bits)
{
	z_stream z = { 0 };
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (uint8_t *)(uintptr_t)p;
	z.avail_in = (unsigned)len;
	z.next_out = out;
	z.avail_out = (unsigned)room;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return z.total_out;
}

static void coded_bodies_are_uncoded_and_scrubbed(void **state)
{
	static const struct { const char *field; int bits; } codings[] = {
		{ "content-encoding: gzip", 31 }, { "content-encoding: x-gzip", 31 }, { "content-encoding: deflate", 15 }, { "content-encoding: deflate", -15 },
	};
	static const char body[] = "before " VALUE " after, long enough to be made smaller, smaller, smaller, smaller, smaller";
	uint8_t coded[512];
	for (size_t p = 0; p < 2; p++) {
		struct user *s;
		struct urig *r = start(protocols[p], &s);
		for (size_t i = 0; i < ARRAY_LEN(codings); i++) {
			for (size_t piece = 0; piece < 8; piece++) {
				size_t n = deflate_to(coded, sizeof(coded), body, strlen(body), codings[i].bits);
				s->script = (struct script){ .status = 200, .fields = { codings[i].field, "digest: sha-256=x", "etag: \"1\"" }, .body = coded, .len = n,
					.has_length = true, .piece = piece };
				struct call *c = fetch(r, s);
				assert_int_equal(c->head.status, 200);
				assert_clean(c);
				assert_int_equal(c->body.len, strlen(body));
				assert_int_equal(http_head_count(&c->head, "content-encoding"), 0);
				assert_int_equal(http_head_count(&c->head, "digest"), 0);
				assert_int_equal(http_head_count(&c->head, "etag"), 1);
				assert_false(c->head.has_length);
				assert_string_equal(served_field(s->served, "accept-encoding"), "gzip, br, zstd, deflate");
			}
		}
		urig_free(r);
	}
}

/* Much comes of little, and whoever receives it takes its time: nothing piles up, nothing is lost. */
static void a_body_that_grows_waits_for_its_receiver(void **state)
{
	enum { PLAIN = 24 * 1024 * 1024 };
	struct user *s;
	struct urig *r = start("h2", &s);
	char *plain = mem_alloc(PLAIN);
	uint8_t *coded = mem_alloc(PLAIN);
	uint32_t random = 1;
	for (size_t i = 0; i < PLAIN; i++) {
		if (i % 64 == 0)
			random = random * 1664525 + 1013904223;
		plain[i] = (char)('a' + (random >> 24) % 4);
	}
	memcpy(plain + PLAIN / 2, VALUE, strlen(VALUE));
	size_t n = deflate_to(coded, PLAIN, plain, PLAIN, 31);
	assert_true(n < PLAIN / 20);
	s->script = (struct script){ .status = 200, .fields = { "content-encoding: gzip" }, .body = coded, .len = n, .has_length = true };
	struct call *c = urig_request(r, 1, "GET", "https", at(s), "/", NULL, NULL, 0);
	c->hold = true;
	URIG_WAIT(r, c->body.len >= 65536);
	urig_settle(r);
	assert_true(c->body.len <= HTTP_WINDOW);
	call_credit(c);
	URIG_WAIT(r, c->closed);
	assert_true(c->ended);
	assert_int_equal(c->body.len, PLAIN);
	assert_clean(c);
	memset(plain + PLAIN / 2, '*', strlen(VALUE));
	memset(c->body.data + PLAIN / 2, '*', strlen(VALUE));
	assert_memory_equal(c->body.data, plain, PLAIN);
	mem_free(plain);
	mem_free(coded);
	urig_free(r);
}

static void what_cannot_be_read_is_not_handed_over(void **state)
{
	static const struct { const char *field; unsigned status; const char *more; } cases[] = {
		{ "content-encoding: compress", 200, NULL }, { "content-encoding: gzip, made-up", 200, NULL }, { "content-encoding: dcb", 200, NULL },
		{ "content-encoding: gzip", 206, "content-range: bytes 0-3/10" },
	};
	for (size_t p = 0; p < 2; p++) {
		struct user *s;
		struct urig *r = start(protocols[p], &s);
		for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
			s->script = (struct script){ .status = cases[i].status, .fields = { cases[i].field, cases[i].more }, .body = VALUE, .len = strlen(VALUE), .has_length = true };
			struct call *c = fetch(r, s);
			assert_int_equal(c->head.status, 502);
			assert_string_equal(call_field(c, LINK_FIELD_REASON), "response_unreadable");
			assert_int_equal(c->body.len, 0);
		}
		/* a body that isn't what it says is cut, never whole */
		s->script = (struct script){ .status = 200, .fields = { "content-encoding: gzip" }, .body = VALUE, .len = strlen(VALUE), .has_length = true };
		struct call *c = fetch(r, s);
		assert_false(c->ended && c->head.status == 200);
		assert_clean(c);
		/* and one that ends too early */
		uint8_t coded[256];
		size_t n = deflate_to(coded, sizeof(coded), "some text that is long enough", 29, 31);
		s->script = (struct script){ .status = 200, .fields = { "content-encoding: gzip" }, .body = coded, .len = n - 9, .has_length = true };
		c = fetch(r, s);
		assert_false(c->ended && c->head.status == 200);
		urig_free(r);
	}
}

static void answers_without_a_body_stay_so(void **state)
{
	for (size_t p = 0; p < 2; p++) {
		struct user *s;
		struct urig *r = start(protocols[p], &s);
		s->script = (struct script){ .status = 304, .fields = { "etag: \"x\"", "content-encoding: gzip" } };
		struct call *c = fetch(r, s);
		assert_int_equal(c->head.status, 304);
		assert_true(c->ended);
		assert_int_equal(c->body.len, 0);
		s->script = (struct script){ .status = 204 };
		c = fetch(r, s);
		assert_int_equal(c->head.status, 204);
		assert_true(c->ended);
		s->script = (struct script){ .status = 200, .fields = { "x-key: " VALUE } };
		c = fetch_with(r, s, "HEAD", NULL);
		assert_int_equal(c->head.status, 200);
		assert_true(c->ended);
		assert_clean(c);
		urig_free(r);
	}
}

/* Of what may hold the secret no part by itself, whoever asks: the server may have kept it. */
static void no_part_is_asked_for_where_a_secret_goes(void **state)
{
	struct user *s;
	struct urig *r = start("h2", &s);
	char line[128];
	snprintf(line, sizeof(line), "authorization: %s", r->placeholders[0]);
	const char *fields[] = { line, "range: bytes=0-4", "if-range: \"x\"", NULL };
	struct call *c = urig_request(r, 1, "GET", "https", at(s), "/", fields, NULL, 0);
	URIG_WAIT(r, c->closed);
	assert_string_equal(served_field(s->served, "authorization"), VALUE);
	assert_int_equal(http_head_count(&s->served->head, "range"), 0);
	assert_int_equal(http_head_count(&s->served->head, "if-range"), 0);
	c = fetch_with(r, s, "GET", "range: bytes=0-4");
	assert_int_equal(c->head.status, 200);
	assert_int_equal(http_head_count(&s->served->head, "range"), 0);
	/* nor taken, if there is another way to ask for one */
	s->script = (struct script){ .status = 206, .fields = { "content-range: bytes 0-4/20" }, .body = "s3cr3", .len = 5 };
	c = fetch_with(r, s, "GET", "x-ms-range: bytes=0-4");
	assert_int_equal(c->head.status, 502);
	assert_string_equal(call_field(c, LINK_FIELD_REASON), "response_unreadable");
	urig_free(r);
}

/* Of places where none goes, parts are fine. */
static void parts_are_asked_for_elsewhere(void **state)
{
	struct urig *r = urig_new();
	struct user *s = urig_server(r, r->mint, "api.example", "h2");
	urig_server(r, r->mint, "other.example", "h2");
	urig_run(r, "[{ host: other.example, ports: [@1], private: true, ca: rig.pem, secret: { name: key, header: Authorization } }, "
		    "{ host: api.example, ports: [@0], private: true, ca: rig.pem, inspect: true }]", (const char *const[]){ "key", NULL });
	urig_secret(r, "key", VALUE, 1);
	struct call *c = urig_open(r, 1, "https", at(s), "h2,http/1.1");
	URIG_WAIT(r, c->answered || c->closed);
	c = fetch_with(r, s, "GET", "range: bytes=0-4");
	assert_int_equal(c->head.status, 200);
	assert_string_equal(served_field(s->served, "range"), "bytes=0-4");
	assert_string_equal(served_field(s->served, "accept-encoding"), "identity");
	urig_free(r);
}

/* ---- memory ---- */

/* A zstd frame that wants its whole window of 8 MiB, and goes on. */
static bool hold_window(struct unpack **ret)
{
	static const uint8_t head[] = { 0x28, 0xb5, 0x2f, 0xfd, 0, 0x68, 0x08, 0, 0, 'x' };
	struct buf out;
	struct err err;
	size_t used;
	buf_init(&out, 1024);
	assert_int_equal(unpack_new("zstd", ret, &err), 0);
	bool held = unpack_feed(*ret, head, sizeof(head), &used, &out, &err) == 0;
	buf_free(&out);
	return held;
}

/* How much memory an answer wants is the server's choice, and how many there are at once the box's. */
static void unpacking_holds_so_much_memory_and_no_more(void **state)
{
	enum { WINDOW = 8 * 1024 * 1024, N = UNPACK_MEMORY_MAX / WINDOW };
	struct unpack *many[N + 1] = { NULL };
	size_t n = 0;
	while (n <= N && hold_window(&many[n]))
		n++;
	assert_in_range(n, N / 2, N);
	for (size_t i = 0; i <= N; i++)
		unpack_free(many[i]);
	assert_true(hold_window(&many[0]));
	unpack_free(many[0]);
}

/* ---- WebSocket ---- */

static void a_websocket_is_scrubbed_towards_the_box(void **state)
{
	for (size_t p = 0; p < 2; p++) {
		struct user *s;
		struct urig *r = start(protocols[p], &s);
		struct http_head head;
		/* the server is asked over HTTP/1: whether it knows WebSocket over HTTP/2 doesn't matter */
		s->alpn = "h2,http/1.1";
		s->script = (struct script){ .status = 200, .echo = true };
		http_head_init(&head);
		http_head_set(&head, &head.method, "CONNECT", 7);
		http_head_set(&head, &head.protocol, "websocket", 9);
		http_head_set(&head, &head.scheme, "https", 5);
		http_head_set(&head, &head.authority, at(s), strlen(at(s)));
		http_head_set(&head, &head.path, "/ws", 3);
		http_head_add(&head, LINK_FIELD_FLOW, "1", 1);
		http_head_add(&head, "sec-websocket-version", "13", 2);
		http_head_add(&head, "sec-websocket-extensions", "permessage-deflate", 18);
		struct call *c = urig_send_head(r, &head, false);
		URIG_WAIT(r, c->answered || c->closed);
		assert_int_equal(c->head.status, 200);
		assert_int_equal(http_head_count(&s->served->head, "sec-websocket-extensions"), 0);
		call_send(c, "\x81\x11" VALUE ".", 2 + strlen(VALUE) + 1, false);
		URIG_WAIT(r, c->body.len == 2 + strlen(VALUE) + 1);
		assert_clean(c);
		assert_memory_equal(c->body.data, "\x81\x11", 2);
		assert_memory_equal(s->served->body.data, "\x81\x11" VALUE, 2 + strlen(VALUE)); /* upwards as it is */
		urig_free(r);
	}
}

static void a_websocket_with_extensions_is_refused(void **state)
{
	struct user *s;
	struct urig *r = start("http/1.1", &s);
	struct http_head head;
	s->script = (struct script){ .status = 200, .fields = { "sec-websocket-extensions: permessage-deflate" } };
	http_head_init(&head);
	http_head_set(&head, &head.method, "CONNECT", 7);
	http_head_set(&head, &head.protocol, "websocket", 9);
	http_head_set(&head, &head.scheme, "https", 5);
	http_head_set(&head, &head.authority, at(s), strlen(at(s)));
	http_head_set(&head, &head.path, "/ws", 3);
	http_head_add(&head, LINK_FIELD_FLOW, "1", 1);
	http_head_add(&head, "sec-websocket-version", "13", 2);
	struct call *c = urig_send_head(r, &head, false);
	URIG_WAIT(r, c->answered || c->closed);
	assert_int_equal(c->head.status, 502);
	assert_string_equal(call_field(c, LINK_FIELD_REASON), "response_unreadable");
	urig_free(r);
}

/* ---- what comes bit by bit ---- */

/* An event is there when it was sent, not when the next one is: a stream may be silent for long. */
static void events_are_not_held_back(void **state)
{
	static const char *const events[] = { "data: {\"x\": 1}\n\n", ": ping\n\n", "data: done\r\n\r\n", "{\"k\":[1,2,3]}\n", "data: [DONE]\n\n", "</html>" };
	for (size_t p = 0; p < 2; p++) {
		for (size_t coded = 0; coded < 2; coded++) {
			struct user *s;
			struct urig *r = start(protocols[p], &s);
			struct http_head head;
			struct err err;
			z_stream z = { 0 };
			uint8_t out[512];
			size_t total = 0;
			s->script = (struct script){ .status = 0 };
			struct call *c = urig_request(r, 1, "GET", "https", at(s), "/", NULL, NULL, 0);
			URIG_WAIT(r, s->n_served == 1);
			struct served *one = s->served;
			assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
			http_head_init(&head);
			head.status = 200;
			if (coded)
				http_head_add(&head, "content-encoding", "gzip", 4);
			assert_int_equal(http_stream_send_head(one->stream, &head, false, &err), 0);
			for (size_t i = 0; i < ARRAY_LEN(events); i++) {
				const void *bytes = events[i];
				size_t len = strlen(events[i]);
				total += len;
				if (coded) {
					z.next_in = (uint8_t *)(uintptr_t)bytes;
					z.avail_in = (unsigned)len;
					z.next_out = out;
					z.avail_out = sizeof(out);
					assert_int_equal(deflate(&z, Z_SYNC_FLUSH), Z_OK);
					bytes = out;
					len = sizeof(out) - z.avail_out;
				}
				assert_int_equal(http_stream_send_data(one->stream, bytes, len), len);
				channel_kick(one->connection->channel);
				URIG_WAIT(r, c->body.len == total);
			}
			deflateEnd(&z);
			http_head_free(&head);
			urig_free(r);
		}
	}
}

/* ---- rotation ---- */

static void old_and_new_values_are_scrubbed(void **state)
{
	for (size_t p = 0; p < 2; p++) {
		struct user *s;
		struct urig *r = start(protocols[p], &s);
		for (unsigned i = 2; i <= 9; i++) {
			char value[32];
			snprintf(value, sizeof(value), "rotated-value-%04u", i);
			urig_secret(r, "key", value, i);
			assert_true(r->loaded.ok);
		}
		static const char body[] = VALUE " rotated-value-0002 rotated-value-0005 rotated-value-0009.";
		s->script = (struct script){ .status = 200, .body = body, .len = strlen(body) };
		struct call *c = fetch(r, s);
		assert_clean(c);
		assert_false(call_has(c, "rotated-value"));
		urig_free(r);
	}
}

/* An answer that began before a value was set is scrubbed of it all the same, also across the very place. */
static void a_value_that_comes_meanwhile_is_scrubbed_too(void **state)
{
	struct user *s;
	struct urig *r = start("h2", &s);
	s->script = (struct script){ .status = 0 };
	struct call *c = urig_request(r, 1, "GET", "https", at(s), "/", NULL, NULL, 0);
	URIG_WAIT(r, s->n_served == 1);
	struct served *one = s->served;
	struct http_head head;
	struct err err;
	http_head_init(&head);
	head.status = 200;
	assert_int_equal(http_stream_send_head(one->stream, &head, false, &err), 0);
	assert_int_equal(http_stream_send_data(one->stream, "first rotated-va", 16), 16);
	channel_kick(one->connection->channel);
	URIG_WAIT(r, c->body.len >= 6);
	urig_secret(r, "key", "rotated-value-0002", 2);
	assert_int_equal(http_stream_send_data(one->stream, "lue-0002 then rotated-value-0002.", 33), 33);
	assert_int_equal(http_stream_send_end(one->stream, NULL), 0);
	channel_kick(one->connection->channel);
	URIG_WAIT(r, c->closed);
	assert_true(c->ended);
	assert_int_equal(c->body.len, 49);
	assert_false(call_has(c, "then rotated-value-0002"));
	http_head_free(&head);
	urig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads_bodies_and_trailers_are_scrubbed),
		cmocka_unit_test(a_said_length_stays),
		cmocka_unit_test(a_secret_over_any_border_is_found),
		cmocka_unit_test(coded_bodies_are_uncoded_and_scrubbed),
		cmocka_unit_test(a_body_that_grows_waits_for_its_receiver),
		cmocka_unit_test(what_cannot_be_read_is_not_handed_over),
		cmocka_unit_test(answers_without_a_body_stay_so),
		cmocka_unit_test(no_part_is_asked_for_where_a_secret_goes),
		cmocka_unit_test(parts_are_asked_for_elsewhere),
		cmocka_unit_test(unpacking_holds_so_much_memory_and_no_more),
		cmocka_unit_test(a_websocket_is_scrubbed_towards_the_box),
		cmocka_unit_test(a_websocket_with_extensions_is_refused),
		cmocka_unit_test(events_are_not_held_back),
		cmocka_unit_test(old_and_new_values_are_scrubbed),
		cmocka_unit_test(a_value_that_comes_meanwhile_is_scrubbed_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
