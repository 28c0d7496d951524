/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads requests with our HTTP/1 connection for compare-http1: on stdin "LENGTH\n" and that many bytes, again and again; for
 * each one line of JSON on stdout: what was accepted, or the fault.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/http.h"

struct reading { json_t *requests; struct buf body; };

static json_t *text(const char *p, size_t len)
{
	/* Bytes as Latin-1, which JSON can say and Python turns back. */
	char *utf8 = mem_alloc(2 * len + 1);
	size_t n = 0;
	for (size_t i = 0; i < len; i++) {
		uint8_t c = (uint8_t)p[i];
		if (c >= 0x80)
			utf8[n++] = (char)(0xc0 | c >> 6);
		utf8[n++] = (char)(c >= 0x80 ? 0x80 | (c & 0x3f) : c);
	}
	json_t *j = json_stringn(utf8, n);
	mem_free(utf8);
	return j;
}

static json_t *fields(const struct http_head *h)
{
	json_t *list = json_array();
	for (size_t i = 0; i < h->n_fields; i++)
		json_array_append_new(list, json_pack("[o,o]", text(h->fields[i].name.p, h->fields[i].name.len),
			text(h->fields[i].value.p, h->fields[i].value.len)));
	return list;
}

static void put(json_t *o, const char *key, struct http_text t) { json_object_set_new(o, key, text(t.p, t.len)); }

static void finish(struct reading *r, const struct http_head *trailers)
{
	json_t *o = json_array_get(r->requests, json_array_size(r->requests) - 1);
	json_object_set_new(o, "body", text((const char *)r->body.data, r->body.len));
	json_object_set_new(o, "whole", json_true());
	json_object_set_new(o, "trailers", trailers ? fields(trailers) : json_array());
	buf_clear(&r->body);
}

static void on_head(void *ctx, struct http_stream *s, const struct http_head *h, bool end)
{
	struct reading *r = ctx;
	json_t *o = json_object();
	put(o, "method", h->method);
	put(o, "target", h->path);
	put(o, "authority", h->authority);
	put(o, "protocol", h->protocol);
	json_object_set_new(o, "length", h->has_length ? json_integer((json_int_t)h->length) : json_null());
	json_object_set_new(o, "headers", fields(h));
	json_array_append_new(r->requests, o);
	if (end)
		finish(r, NULL);
}

static void answer(struct http_stream *s)
{
	struct http_head h;
	http_head_init(&h);
	h.status = 404;
	http_stream_send_head(s, &h, true, NULL);
	http_head_free(&h);
}

static void on_data(void *ctx, struct http_stream *s, const uint8_t *p, size_t len)
{
	buf_append(&((struct reading *)ctx)->body, p, len);
	http_stream_credit(s, len);
}

static void on_end(void *ctx, struct http_stream *s, const struct http_head *trailers) { finish(ctx, trailers); }
static void on_drain(void *ctx, struct http_stream *s) { }
static void on_close(void *ctx, struct http_stream *s, enum http_fault fault) { }

/* A whole request is answered before the next is looked at. */
static void head_and_answer(void *ctx, struct http_stream *s, const struct http_head *h, bool end)
{
	on_head(ctx, s, h, end);
	if (end && !h->protocol.len)
		answer(s);
}

static void end_and_answer(void *ctx, struct http_stream *s, const struct http_head *trailers)
{
	on_end(ctx, s, trailers);
	answer(s);
}

static void read_one(const char *p, size_t len)
{
	static const struct http_conn_ops ops = { head_and_answer, on_data, end_and_answer, on_drain, on_close };
	struct reading r = { .requests = json_array() };
	struct http_conn_config config = { .version = HTTP_1, .role = HTTP_SERVER, .scheme = "http" };
	struct http_conn *c = http_conn_new(&config, &ops, &r);
	buf_init(&r.body, 1 << 20);
	http_conn_feed(c, p, len);
	json_t *o = json_pack("{s:i,s:o}", "fault", (int)http_conn_fault(c), "requests", r.requests);
	char *line = json_dumps(o, JSON_COMPACT);
	puts(line);
	fflush(stdout);
	free(line);
	json_decref(o);
	http_conn_free(c);
	buf_free(&r.body);
}

int main(void)
{
	char line[32];
	while (fgets(line, sizeof(line), stdin)) {
		size_t len = strtoul(line, NULL, 10);
		char *p = mem_alloc(len ? len : 1);
		if (fread(p, 1, len, stdin) != len)
			return 1;
		read_one(p, len);
		mem_free(p);
	}
	return 0;
}
