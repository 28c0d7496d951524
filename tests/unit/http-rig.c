/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "http-rig.h"

#define PULL 65536u

/* ---- links ---- */

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

bool rig_pipe_move(struct rig_pipe *p)
{
	size_t before = p->bytes.len;
	if (before < PULL)
		http_conn_pull(p->from, &p->bytes, before + PULL);
	bool any = p->bytes.len > before;
	size_t at = 0;
	while (at < p->bytes.len && http_conn_wants_input(p->to)) {
		size_t n = smaller(p->split, p->bytes.len - at);
		size_t used = http_conn_feed(p->to, p->bytes.data + at, n);
		at += used;
		if (used < n)
			break;
	}
	p->moved += at;
	if (p->bytes.len)
		buf_consume(&p->bytes, at);
	if (p->bytes.len == 0 && !p->ended && http_conn_output_ended(p->from)) {
		p->ended = any = true;
		http_conn_feed_end(p->to);
	}
	return any || at > 0;
}

void rig_link_init(struct rig_link *l, struct http_conn *client, struct http_conn *server, size_t split)
{
	*l = (struct rig_link){ .client = client, .server = server, .up = { .from = client, .to = server, .split = split },
		.down = { .from = server, .to = client, .split = split } };
	buf_init(&l->up.bytes, 4 * PULL);
	buf_init(&l->down.bytes, 4 * PULL);
}

bool rig_link_move(struct rig_link *l)
{
	bool up = rig_pipe_move(&l->up), down = rig_pipe_move(&l->down);
	return up || down;
}

void rig_link_free(struct rig_link *l)
{
	http_conn_free(l->client);
	http_conn_free(l->server);
	buf_free(&l->up.bytes);
	buf_free(&l->down.bytes);
}

/* ---- what was seen ---- */

void rig_seen_init(struct rig_seen *s)
{
	memset(s, 0, sizeof(*s));
	http_head_init(&s->head);
	http_head_init(&s->trailers);
}

void rig_seen_free(struct rig_seen *s)
{
	http_head_free(&s->head);
	http_head_free(&s->trailers);
}

uint64_t rig_sum(uint64_t sum, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum = (sum ^ p[i]) * 1099511628211ULL;
	return sum;
}

static void see_head(struct rig_seen *s, const struct http_head *head, bool end)
{
	assert_false(s->ended);
	if (head->status && head->status < 200) {
		assert_false(end);
		s->interim++;
		return;
	}
	s->heads++;
	assert_int_equal(s->heads, 1);
	assert_int_equal(http_head_copy(&s->head, head), 0);
	s->ended = end;
}

static void see_data(struct rig_seen *s, const uint8_t *p, size_t len)
{
	assert_int_equal(s->heads, 1);
	assert_false(s->ended);
	assert_true(len > 0);
	if (s->bytes < sizeof(s->text) - 1)
		memcpy(s->text + s->bytes, p, smaller(len, sizeof(s->text) - 1 - s->bytes));
	s->bytes += len;
	s->sum = rig_sum(s->sum, p, len);
}

static void see_end(struct rig_seen *s, const struct http_head *trailers)
{
	assert_int_equal(s->heads, 1);
	assert_false(s->ended);
	s->ended = true;
	if (trailers)
		assert_int_equal(http_head_copy(&s->trailers, trailers), 0);
}

/* ---- the client ---- */

static void client_head(void *ctx, struct http_stream *s, const struct http_head *head, bool end)
{
	struct rig_client *c = http_stream_ctx(s);
	see_head(&c->seen, head, end);
	assert_int_equal(c->seen.closes, 0);
}

static void client_data(void *ctx, struct http_stream *s, const uint8_t *p, size_t len)
{
	struct rig_client *c = http_stream_ctx(s);
	see_data(&c->seen, p, len);
	c->uncredited += len;
	assert_true(c->uncredited <= HTTP_WINDOW);
	if (!c->lazy) {
		http_stream_credit(s, len);
		c->uncredited -= len;
	}
}

static void client_end(void *ctx, struct http_stream *s, const struct http_head *trailers)
{
	see_end(&((struct rig_client *)http_stream_ctx(s))->seen, trailers);
}

void rig_client_push(struct rig_client *c)
{
	uint8_t piece[4096];
	while (c->stream && c->sent < c->to_send) {
		size_t n = smaller(sizeof(piece), c->to_send - c->sent);
		for (size_t i = 0; i < n; i++)
			piece[i] = (uint8_t)((c->sent + i) * 2654435761u >> 13);
		size_t took = http_stream_send_data(c->stream, piece, n);
		c->sum = rig_sum(c->sum, piece, took);
		c->sent += took;
		if (took < n)
			return;
	}
	if (c->stream && c->ends) {
		c->ends = false;
		assert_int_equal(http_stream_send_end(c->stream, c->trailers), 0);
	}
}

static void client_drain(void *ctx, struct http_stream *s)
{
	rig_client_push(http_stream_ctx(s));
}

static void client_close(void *ctx, struct http_stream *s, enum http_fault fault)
{
	struct rig_client *c = http_stream_ctx(s);
	c->seen.closes++;
	c->seen.fault = fault;
	c->stream = NULL;
	assert_int_equal(c->seen.closes, 1);
}

const struct http_conn_ops rig_client_ops = { client_head, client_data, client_end, client_drain, client_close };

void rig_client_start(struct rig_client *c, struct http_conn *conn, const struct http_head *head, uint64_t body, bool ends)
{
	struct err err = ERR_INIT;
	const struct http_head *trailers = c->trailers;
	bool lazy = c->lazy;
	bool at_once = ends && body == 0 && !trailers;
	*c = (struct rig_client){ .to_send = body, .ends = ends && !at_once, .trailers = trailers, .lazy = lazy };
	rig_seen_init(&c->seen);
	c->stream = http_stream_open(conn, head, at_once, &err);
	if (!c->stream)
		fail_msg("%s", err.text);
	http_stream_set_ctx(c->stream, c);
	rig_client_push(c);
}

/* ---- the server ---- */

static void respond(struct http_stream *s, unsigned status, bool has_length, uint64_t length, bool end)
{
	struct http_head h;
	struct err err = ERR_INIT;
	http_head_init(&h);
	h.status = status;
	h.has_length = has_length;
	h.length = length;
	assert_int_equal(http_head_add(&h, "x-answer", "yes", 3), 0);
	if (http_stream_send_head(s, &h, end, &err) < 0)
		fail_msg("%s", err.text);
	http_head_free(&h);
}

/* An exchange of the server: what it echoes and couldn't send yet. */
struct echo { struct http_stream *s; struct buf held; bool in_ended, has_trailers, done; struct http_head trailers; };

static void echo_push(struct echo *e)
{
	if (!e->s || e->done)
		return;
	size_t n = e->held.len ? http_stream_send_data(e->s, e->held.data, e->held.len) : 0;
	if (n) {
		buf_consume(&e->held, n);
		http_stream_credit(e->s, n);
	}
	if (e->held.len == 0 && e->in_ended) {
		e->done = true;
		assert_int_equal(http_stream_send_end(e->s, e->has_trailers ? &e->trailers : NULL), 0);
	}
}

static bool path_is(const struct http_head *h, const char *path) { return http_text_equal(h->path, path); }

static struct echo *echo_new(struct http_stream *s)
{
	struct echo *e = mem_alloc(sizeof(*e));
	e->s = s;
	buf_init(&e->held, HTTP_WINDOW);
	http_head_init(&e->trailers);
	http_stream_set_ctx(s, e);
	return e;
}

static void server_head(void *ctx, struct http_stream *s, const struct http_head *head, bool end)
{
	struct rig_server *v = ctx;
	v->requests++;
	v->newest = s;
	rig_seen_free(&v->last);
	rig_seen_init(&v->last);
	see_head(&v->last, head, end);
	struct echo *e = echo_new(s);
	if (path_is(head, "/204"))
		respond(s, 204, false, 0, true);
	else if (path_is(head, "/304"))
		respond(s, 304, true, 77, true);
	else if (http_text_equal(head->method, "HEAD"))
		respond(s, 200, true, 1234, true);
	else if (path_is(head, "/denied"))
		respond(s, 403, false, 0, true);
	else if (path_is(head, "/hold"))
		v->held = s;
	else if (path_is(head, "/length"))
		respond(s, 200, true, head->length, end);
	else {
		if (path_is(head, "/interim")) {
			respond(s, 100, false, 0, false);
			respond(s, 103, false, 0, false);
		}
		respond(s, 200, false, 0, false);
		e->in_ended = end;
		echo_push(e);
		return;
	}
	e->done = !path_is(head, "/length") || end;
	e->in_ended = end;
}

static void server_data(void *ctx, struct http_stream *s, const uint8_t *p, size_t len)
{
	struct rig_server *v = ctx;
	struct echo *e = http_stream_ctx(s);
	if (v->newest == s)
		see_data(&v->last, p, len);
	if (v->held == s || e->done) {
		if (!v->lazy)
			http_stream_credit(s, len);
		return;
	}
	assert_int_equal(buf_append(&e->held, p, len), 0); /* never more than the window */
	echo_push(e);
}

static void server_end(void *ctx, struct http_stream *s, const struct http_head *trailers)
{
	struct rig_server *v = ctx;
	struct echo *e = http_stream_ctx(s);
	if (v->newest == s)
		see_end(&v->last, trailers);
	e->in_ended = true;
	if (trailers) {
		e->has_trailers = true;
		assert_int_equal(http_head_copy(&e->trailers, trailers), 0);
	}
	if (v->held != s)
		echo_push(e);
}

static void server_drain(void *ctx, struct http_stream *s) { echo_push(http_stream_ctx(s)); }

static void server_close(void *ctx, struct http_stream *s, enum http_fault fault)
{
	struct rig_server *v = ctx;
	struct echo *e = http_stream_ctx(s);
	v->closes++;
	v->last.fault = fault;
	if (v->held == s)
		v->held = NULL;
	buf_free(&e->held);
	http_head_free(&e->trailers);
	mem_free(e);
}

const struct http_conn_ops rig_server_ops = { server_head, server_data, server_end, server_drain, server_close };

/* ---- the relay ---- */

struct half { struct http_stream *to, *from; struct buf held; bool ended, finished, has_trailers; struct http_head trailers; };
struct pair { struct http_stream *down, *up; struct half upward, downward; };

static void half_init(struct half *h, struct http_stream *from, struct http_stream *to)
{
	*h = (struct half){ .from = from, .to = to };
	buf_init(&h->held, HTTP_WINDOW);
	http_head_init(&h->trailers);
}

static void half_push(struct rig_relay *r, struct half *h)
{
	if (h->held.len > r->most_held)
		r->most_held = h->held.len;
	if (!h->to || h->finished)
		return;
	size_t n = h->held.len ? http_stream_send_data(h->to, h->held.data, h->held.len) : 0;
	if (n) {
		buf_consume(&h->held, n);
		if (h->from)
			http_stream_credit(h->from, n);
	}
	if (h->held.len == 0 && h->ended) {
		h->finished = true;
		if (http_stream_send_end(h->to, h->has_trailers ? &h->trailers : NULL) < 0)
			http_stream_reset(h->to, HTTP_TRUNCATED);
	}
}

static void half_data(struct rig_relay *r, struct half *h, const uint8_t *p, size_t len)
{
	assert_int_equal(buf_append(&h->held, p, len), 0);
	half_push(r, h);
}

static void half_end(struct rig_relay *r, struct half *h, const struct http_head *trailers)
{
	h->ended = true;
	if (trailers) {
		h->has_trailers = true;
		assert_int_equal(http_head_copy(&h->trailers, trailers), 0);
	}
	half_push(r, h);
}

static void half_free(struct half *h)
{
	buf_free(&h->held);
	http_head_free(&h->trailers);
}

static void down_head(void *ctx, struct http_stream *s, const struct http_head *head, bool end)
{
	struct rig_relay *r = ctx;
	struct err err = ERR_INIT;
	struct pair *p = mem_alloc(sizeof(*p));
	r->exchanges++;
	p->down = s;
	p->up = http_stream_open(r->up, head, end, &err);
	if (!p->up)
		fail_msg("the relay can't open: %s", err.text);
	half_init(&p->upward, p->down, p->up);
	half_init(&p->downward, p->up, p->down);
	p->upward.ended = p->upward.finished = end;
	http_stream_set_ctx(p->down, p);
	http_stream_set_ctx(p->up, p);
}

static void up_head(void *ctx, struct http_stream *s, const struct http_head *head, bool end)
{
	struct pair *p = http_stream_ctx(s);
	struct err err = ERR_INIT;
	if (p->down && http_stream_send_head(p->down, head, end, &err) < 0)
		fail_msg("the relay can't answer: %s", err.text);
	if (end)
		p->downward.ended = p->downward.finished = true;
}

static struct half *upward(struct http_stream *s) { return &((struct pair *)http_stream_ctx(s))->upward; }
static struct half *downward(struct http_stream *s) { return &((struct pair *)http_stream_ctx(s))->downward; }
static void down_data(void *ctx, struct http_stream *s, const uint8_t *d, size_t len) { half_data(ctx, upward(s), d, len); }
static void up_data(void *ctx, struct http_stream *s, const uint8_t *d, size_t len) { half_data(ctx, downward(s), d, len); }
static void down_end(void *ctx, struct http_stream *s, const struct http_head *t) { half_end(ctx, upward(s), t); }
static void up_end(void *ctx, struct http_stream *s, const struct http_head *t) { half_end(ctx, downward(s), t); }
static void down_drain(void *ctx, struct http_stream *s) { half_push(ctx, downward(s)); }
static void up_drain(void *ctx, struct http_stream *s) { half_push(ctx, upward(s)); }

static void side_close(struct pair *p, struct http_stream *s, enum http_fault fault)
{
	struct http_stream *other = s == p->down ? p->up : p->down;
	if (s == p->down)
		p->down = p->upward.from = p->downward.to = NULL;
	else
		p->up = p->downward.from = p->upward.to = NULL;
	if (other && fault)
		http_stream_reset(other, fault);
	if (!p->down && !p->up) {
		half_free(&p->upward);
		half_free(&p->downward);
		mem_free(p);
	}
}

static void relay_close(void *ctx, struct http_stream *s, enum http_fault fault) { side_close(http_stream_ctx(s), s, fault); }

const struct http_conn_ops rig_relay_down_ops = { down_head, down_data, down_end, down_drain, relay_close };
const struct http_conn_ops rig_relay_up_ops = { up_head, up_data, up_end, up_drain, relay_close };

/* ---- the chain ---- */

static struct http_conn *conn(enum http_version version, enum http_role role, const struct http_conn_ops *ops, void *ctx)
{
	struct http_conn_config config = { .version = version, .role = role, .scheme = "https" };
	return http_conn_new(&config, ops, ctx);
}

void rig_init(struct rig *r, enum http_version first, enum http_version second, size_t split)
{
	memset(r, 0, sizeof(*r));
	rig_seen_init(&r->server.last);
	struct http_conn *client = conn(first, HTTP_CLIENT, &rig_client_ops, NULL);
	r->relay.down = conn(first, HTTP_SERVER, &rig_relay_down_ops, &r->relay);
	r->relay.up = conn(second, HTTP_CLIENT, &rig_relay_up_ops, &r->relay);
	struct http_conn *server = conn(second, HTTP_SERVER, &rig_server_ops, &r->server);
	rig_link_init(&r->first, client, r->relay.down, split);
	rig_link_init(&r->second, r->relay.up, server, split);
}

void rig_run(struct rig *r)
{
	for (bool any = true; any;) {
		any = rig_link_move(&r->first);
		any |= rig_link_move(&r->second);
	}
}

void rig_free(struct rig *r)
{
	rig_link_free(&r->first);
	rig_link_free(&r->second);
	rig_seen_free(&r->server.last);
}

void rig_request(struct http_head *h, const char *method, const char *path)
{
	http_head_init(h);
	assert_int_equal(http_head_set(h, &h->method, method, strlen(method)), 0);
	assert_int_equal(http_head_set(h, &h->scheme, "https", 5), 0);
	assert_int_equal(http_head_set(h, &h->authority, "example.com", 11), 0);
	assert_int_equal(http_head_set(h, &h->path, path, strlen(path)), 0);
}
