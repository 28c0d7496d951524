/* SPDX-License-Identifier: Apache-2.0 */
#include "http-fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define REQUIRE(x) do { if (!(x)) abort(); } while (0)

struct seen { bool final, ended, upgrade; size_t unacked; };

/* ---- what was read can be written, and reads the same ---- */

struct again { const struct http_head *want; unsigned heads; };

static void same_text(struct http_text a, struct http_text b)
{
	REQUIRE(a.len == b.len && memcmp(a.p, b.p, a.len) == 0);
}

/* The handshake's own fields are made anew; the others keep their order. */
static bool is_handshake(const struct http_field *f)
{
	return http_text_equal(f->name, "sec-websocket-key") || http_text_equal(f->name, "sec-websocket-accept");
}

static void same_fields(const struct http_head *a, const struct http_head *b)
{
	size_t i = 0, k = 0;
	for (;;) {
		while (i < a->n_fields && is_handshake(&a->fields[i]))
			i++;
		while (k < b->n_fields && is_handshake(&b->fields[k]))
			k++;
		if (i == a->n_fields || k == b->n_fields)
			break;
		same_text(a->fields[i].name, b->fields[k].name);
		same_text(a->fields[i].value, b->fields[k].value);
		i++, k++;
	}
	REQUIRE(i == a->n_fields && k == b->n_fields);
}

static void again_head(void *ctx, struct http_stream *s, const struct http_head *head, bool end)
{
	struct again *a = ctx;
	REQUIRE(++a->heads == 1);
	same_text(a->want->method, head->method);
	same_text(a->want->path, head->path);
	same_text(a->want->authority, head->authority);
	same_text(a->want->protocol, head->protocol);
	/* "No body" may be said with a length of 0. */
	REQUIRE(a->want->length == head->length && (a->want->has_length == head->has_length || (end && head->length == 0)));
	same_fields(a->want, head);
}

static void no_data(void *ctx, struct http_stream *s, const uint8_t *p, size_t len) { }
static void no_end(void *ctx, struct http_stream *s, const struct http_head *t) { }
static void no_drain(void *ctx, struct http_stream *s) { }
static void no_close(void *ctx, struct http_stream *s, enum http_fault f) { }

static void write_again(const struct http_head *head, bool end, enum http_version version)
{
	static const struct http_conn_ops ops = { again_head, no_data, no_end, no_drain, no_close };
	struct again a = { .want = head };
	struct http_conn_config config = { .version = version, .role = HTTP_CLIENT };
	struct http_conn *client = http_conn_new(&config, &ops, &a);
	struct err err = ERR_INIT;
	struct buf bytes;
	buf_init(&bytes, 1 << 20);
	struct http_stream *s = http_stream_open(client, head, end, &err);
	/* Without a host there is no request to be written; everything else that was read can be. */
	REQUIRE(s || head->authority.len == 0);
	config.role = HTTP_SERVER;
	struct http_conn *server = http_conn_new(&config, &ops, &a);
	http_conn_pull(client, &bytes, 1 << 20);
	http_conn_feed(server, bytes.data, bytes.len);
	REQUIRE(!s || (a.heads == 1 && http_conn_fault(server) == HTTP_FAULT_NONE));
	http_conn_free(client);
	http_conn_free(server);
	buf_free(&bytes);
}

/* ---- the owner ---- */

static void clean_text(struct http_text t)
{
	for (size_t i = 0; i < t.len; i++)
		REQUIRE(t.p[i] != 0 && t.p[i] != '\r' && t.p[i] != '\n');
}

static void check_head(const struct http_head *h)
{
	size_t total = 0;
	clean_text(h->method), clean_text(h->path), clean_text(h->authority), clean_text(h->scheme);
	REQUIRE(h->n_fields <= HTTP_FIELDS_MAX);
	for (size_t i = 0; i < h->n_fields; i++) {
		clean_text(h->fields[i].name), clean_text(h->fields[i].value);
		total += h->fields[i].name.len + h->fields[i].value.len;
	}
	REQUIRE(total <= HTTP_HEAD_MAX);
	REQUIRE(!http_head_get(h, "content-length") && !http_head_get(h, "transfer-encoding") && !http_head_get(h, "host"));
	REQUIRE(!http_head_get(h, "connection") && !http_head_get(h, "upgrade"));
}

static void answer(struct fuzz_owner *o, struct http_stream *s)
{
	struct http_head h;
	http_head_init(&h);
	h.status = o->mood & 1 ? 200 : 403;
	http_head_add(&h, "x-answer", "a", 1);
	if (o->mood & 2)
		h.has_length = true, h.length = 5;
	bool end = (o->mood & 12) == 12 && !h.has_length;
	if (http_stream_send_head(s, &h, end, NULL) == 0 && !end) {
		http_stream_send_data(s, "hello", 5);
		http_stream_send_end(s, o->mood & 16 ? &h : NULL);
	}
	http_head_free(&h);
}

static void on_head(void *ctx, struct http_stream *s, const struct http_head *head, bool end)
{
	struct fuzz_owner *o = ctx;
	struct seen *seen = http_stream_ctx(s);
	check_head(head);
	o->heads++;
	if (head->method.len) {
		REQUIRE(!seen);
		http_stream_set_ctx(s, seen = mem_alloc(sizeof(*seen)));
		o->alive++;
		write_again(head, end, HTTP_1);
		write_again(head, end, HTTP_2);
	}
	REQUIRE(!seen->final && !seen->ended);
	seen->final = head->method.len || head->status >= 200;
	seen->ended = end;
	REQUIRE(!end || seen->final);
	if (head->method.len && o->mood & 32)
		answer(o, s);
	if (head->method.len && (o->mood & 0xc0) == 0xc0)
		http_stream_reset(s, HTTP_CANCELLED);
}

static void on_data(void *ctx, struct http_stream *s, const uint8_t *p, size_t len)
{
	struct fuzz_owner *o = ctx;
	struct seen *seen = http_stream_ctx(s);
	REQUIRE(seen->final && !seen->ended && len > 0);
	seen->unacked += len;
	REQUIRE(seen->unacked <= HTTP_WINDOW);
	if (!(o->mood & 64)) {
		http_stream_credit(s, len);
		seen->unacked = 0;
	}
}

static void on_end(void *ctx, struct http_stream *s, const struct http_head *trailers)
{
	struct fuzz_owner *o = ctx;
	struct seen *seen = http_stream_ctx(s);
	REQUIRE(seen->final && !seen->ended);
	seen->ended = true;
	if (trailers)
		check_head(trailers);
	if (!(o->mood & 32))
		answer(o, s);
}

static void on_close(void *ctx, struct http_stream *s, enum http_fault fault)
{
	struct fuzz_owner *o = ctx;
	mem_free(http_stream_ctx(s));
	o->alive--;
}

static const struct http_conn_ops ops = { on_head, on_data, on_end, no_drain, on_close };

static void request(struct fuzz_owner *o)
{
	struct http_head h;
	http_head_init(&h);
	bool upgrade = o->mood & 1, head = !upgrade && o->mood & 2;
	http_head_set(&h, &h.method, upgrade ? "CONNECT" : head ? "HEAD" : "GET", upgrade ? 7 : head ? 4 : 3);
	http_head_set(&h, &h.scheme, "https", 5);
	http_head_set(&h, &h.authority, "a.example", 9);
	http_head_set(&h, &h.path, "/", 1);
	if (upgrade) {
		http_head_set(&h, &h.protocol, "websocket", 9);
		http_head_add(&h, "sec-websocket-version", "13", 2);
		http_head_add(&h, "sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==", 24);
	}
	struct http_stream *s = http_stream_open(o->conn, &h, !upgrade, NULL);
	if (s) {
		http_stream_set_ctx(s, mem_alloc(sizeof(struct seen)));
		o->alive++;
	}
	http_head_free(&h);
}

static void take_output(struct fuzz_owner *o)
{
	struct buf out;
	buf_init(&out, 4096);
	for (unsigned i = 0; i < 1000; i++) {
		buf_clear(&out);
		http_conn_pull(o->conn, &out, 4096);
		REQUIRE(out.len <= 4096);
		if (out.len == 0)
			break;
	}
	buf_free(&out);
}

void fuzz_conn(enum http_version version, enum http_role role, uint8_t mood, const uint8_t *data, size_t len)
{
	struct fuzz_owner o = { .mood = mood };
	struct http_conn_config config = { .version = version, .role = role, .proxy = mood & 4 };
	o.conn = http_conn_new(&config, &ops, &o);
	size_t at = 0, piece = mood % 7 ? len + 1 : (size_t)1 + mood / 7;
	while (at < len && !http_conn_fault(o.conn)) {
		if (role == HTTP_CLIENT && http_conn_can_open(o.conn) && http_conn_streams(o.conn) < 4)
			request(&o);
		take_output(&o);
		size_t n = len - at < piece ? len - at : piece;
		size_t used = http_conn_feed(o.conn, data + at, n);
		REQUIRE(used <= n && o.alive == http_conn_streams(o.conn));
		at += used;
		take_output(&o);
		if (used == 0)
			break;
	}
	http_conn_feed_end(o.conn);
	take_output(&o);
	REQUIRE(!http_conn_fault(o.conn) || o.alive == 0);
	http_conn_free(o.conn);
	REQUIRE(o.alive == 0);
}
