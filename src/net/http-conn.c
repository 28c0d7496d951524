/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http-codec.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define DEFAULT_RESETS 200u
#define DEFAULT_CONNECTION_WINDOW (1024u * 1024u)
#define FIRST_QUEUE (16u * 1024u) /* a queue that takes body bytes starts large, so that it doesn't grow by doubling */

struct http_conn *http_conn_new(const struct http_conn_config *config, const struct http_conn_ops *ops, void *ctx)
{
	struct http_conn_config full = *config;
	if (!full.max_resets)
		full.max_resets = DEFAULT_RESETS;
	if (!full.max_streams)
		full.max_streams = HTTP_STREAMS_MAX;
	if (!full.connection_window)
		full.connection_window = DEFAULT_CONNECTION_WINDOW;
	if (!full.now_ns)
		full.now_ns = time_monotonic_ns;
	struct http_conn *c = full.version == HTTP_2 ? http2_conn_new(&full) : http1_conn_new(&full);
	strncpy(c->scheme, full.scheme ? full.scheme : "", sizeof(c->scheme) - 1);
	c->config = full;
	c->config.scheme = c->scheme;
	c->ops = *ops;
	c->ctx = ctx;
	return c;
}

void http_conn_abandon(struct http_conn *c)
{
	if (!c->gone)
		c->codec->abandon(c, HTTP_CANCELLED);
	c->gone = true;
}

struct http_conn *http_conn_free(struct http_conn *c)
{
	if (c) {
		http_conn_abandon(c);
		c->codec->free(c);
	}
	return NULL;
}

size_t http_conn_feed(struct http_conn *c, const void *p, size_t len)
{
	return c->gone || c->fault ? 0 : c->codec->feed(c, p, len);
}

void http_conn_feed_end(struct http_conn *c)
{
	if (!c->gone && !c->fault)
		c->codec->feed_end(c);
}

void http_conn_cut(struct http_conn *c)
{
	if (c->gone)
		return;
	if (!c->fault)
		c->fault = HTTP_TRUNCATED;
	c->codec->abandon(c, c->fault);
}

void http_conn_pull(struct http_conn *c, struct buf *out, size_t max)
{
	if (!c->gone)
		c->codec->pull(c, out, max);
}

int http_conn_last_words(struct http_conn *c, const struct http_head *head, const void *body, size_t len)
{
	return c->codec->last_words(c, head, body, len);
}

void http_conn_shutdown(struct http_conn *c) { c->codec->shutdown(c); }
bool http_conn_has_output(const struct http_conn *c) { return !c->gone && c->codec->has_output(c); }
bool http_conn_wants_input(const struct http_conn *c) { return !c->gone && !c->fault && c->codec->wants_input(c); }
enum http_fault http_conn_fault(const struct http_conn *c) { return c->fault; }
bool http_conn_finished(const struct http_conn *c) { return c->gone || c->codec->finished(c); }
bool http_conn_output_ended(const struct http_conn *c) { return c->gone || c->codec->output_ended(c); }
bool http_conn_broken(const struct http_conn *c) { return c->codec->broken(c); }
bool http_conn_awaits(const struct http_conn *c) { return c->codec->awaits(c); }
bool http_conn_can_open(const struct http_conn *c) { return !c->gone && !c->fault && c->codec->can_open(c); }
size_t http_conn_streams(const struct http_conn *c) { return c->streams; }

struct http_stream *http_stream_open(struct http_conn *c, const struct http_head *head, bool end, struct err *err)
{
	if (!http_conn_can_open(c)) {
		err_set(err, ERR_LIMIT, "the connection takes no further request now");
		return NULL;
	}
	return c->codec->open(c, head, end, err);
}

void http_stream_set_ctx(struct http_stream *s, void *ctx) { s->ctx = ctx; }
void *http_stream_ctx(const struct http_stream *s) { return s->ctx; }
struct http_conn *http_stream_conn(const struct http_stream *s) { return s->conn; }
uint64_t http_stream_id(const struct http_stream *s) { return s->id; }

int http_stream_send_head(struct http_stream *s, const struct http_head *head, bool end, struct err *err)
{
	return s->conn->codec->send_head(s, head, end, err);
}

size_t http_stream_send_data(struct http_stream *s, const void *p, size_t len)
{
	return len ? s->conn->codec->send_data(s, p, len) : 0;
}

int http_stream_send_end(struct http_stream *s, const struct http_head *trailers)
{
	return s->conn->codec->send_end(s, trailers && trailers->n_fields ? trailers : NULL);
}

void http_stream_credit(struct http_stream *s, size_t len)
{
	if (len)
		s->conn->codec->credit(s, len);
}

void http_stream_reset(struct http_stream *s, enum http_fault fault)
{
	s->conn->codec->reset(s, fault);
}

/* ---- queues ---- */

void *http_queue_reserve(struct http_queue *q, size_t len)
{
	/* Moving the rest down is cheap once most of the buffer was taken. */
	if (q->at && (q->at >= q->buf.len / 2 || q->buf.len + len > q->buf.max)) {
		buf_consume(&q->buf, q->at);
		q->at = 0;
	}
	if (!q->buf.data && len >= FIRST_QUEUE / 4 && q->buf.max >= FIRST_QUEUE)
		(void)buf_reserve(&q->buf, FIRST_QUEUE);
	return buf_reserve(&q->buf, len);
}

int http_queue_add(struct http_queue *q, const void *p, size_t len)
{
	void *to = http_queue_reserve(q, len);
	if (!to)
		return -1;
	memcpy(to, p, len);
	buf_commit(&q->buf, len);
	return 0;
}

void http_queue_drop(struct http_queue *q, size_t len)
{
	q->at += len;
	if (q->at >= q->buf.len)
		http_queue_free(q);
}

void http_queue_take(struct http_queue *q, struct buf *out, size_t max)
{
	size_t n = http_queue_len(q), room = max > out->len ? max - out->len : 0;
	if (n > room)
		n = room;
	if (n && buf_append(out, q->buf.data + q->at, n) == 0)
		http_queue_drop(q, n);
}

void http_queue_free(struct http_queue *q)
{
	if (q->wipe)
		mem_wipe(q->buf.data, q->buf.len);
	buf_free(&q->buf);
	q->at = 0;
	q->wipe = false;
}
