/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http1-conn.h"

#include <string.h>

#include "base/mem.h"
#include "net/http-rules.h"
#include "net/http1-syntax.h"

#define DRAINED (HTTP_SEND_MAX / 2)

/* ---- streams ---- */

struct http_stream *http1_stream_new(struct http1_conn *h)
{
	struct http_stream *s = mem_alloc(sizeof(*s));
	s->conn = &h->base;
	s->id = ++h->base.opened;
	h->base.streams = 1;
	h->stream = s;
	h->unacked = 0;
	return s;
}

static void next_message(struct http1_conn *h)
{
	h->reading = h->ended || h->base.fault ? READ_CLOSED : READ_HEAD;
	h->writing = h->base.fault ? h->writing : WRITE_HEAD;
	h->framing_out = OUT_NONE;
	h->to_head = h->want_drain = h->cutting = false;
	h->interim = 0;
	h->key[0] = 0;
}

void http1_stream_end(struct http1_conn *h, enum http_fault fault)
{
	struct http_stream *s = h->stream;
	if (!s)
		return;
	h->ended |= h->close || h->no_more || h->in_ended || fault != HTTP_FAULT_NONE;
	h->stream = NULL;
	h->base.streams = 0;
	next_message(h);
	if (!h->base.gone)
		h->base.ops.on_close(h->base.ctx, s, fault);
	mem_free(s);
}

static bool is_over(const struct http1_conn *h)
{
	return h->stream && h->reading == READ_DONE && h->writing == WRITE_DONE;
}

void http1_settle(struct http1_conn *h)
{
	if (h->cutting)
		http1_stream_end(h, h->cut);
	else if (is_over(h))
		http1_stream_end(h, HTTP_FAULT_NONE);
}

static void fail(struct http1_conn *h, enum http_fault fault)
{
	if (h->base.fault)
		return;
	h->base.fault = fault;
	h->broken = h->stream && h->writing == WRITE_BODY && (h->framing_out == OUT_CLOSE || h->framing_out == OUT_RAW);
	h->ended = true;
	h->reading = READ_CLOSED;
	buf_wipe_free(&h->in);
	http1_stream_end(h, fault);
}

/* ---- heads ---- */

/* What a parsed head lies in: used up before anybody else is called, and large. */
static union { struct http1_request request; struct http1_response response; } parsed;

static enum http_fault to_fault(enum http1_fault fault)
{
	switch (fault) {
	case HTTP1_FAULT_NONE: return HTTP_FAULT_NONE;
	case HTTP1_FAULT_MALFORMED: return HTTP_MALFORMED;
	case HTTP1_FAULT_VERSION: return HTTP_BAD_VERSION;
	case HTTP1_FAULT_TOO_LARGE: return HTTP_TOO_LARGE;
	}
	return HTTP_MALFORMED;
}

/* "GET /path": HTTP/0.9, which has no version to say. */
static bool is_simple_request(const void *data, size_t len)
{
	struct http1_text rest = { data, len }, line = http1_next_line(&rest);
	const char *space = memchr(line.p, ' ', line.len);
	if (!space || !http_is_token(line.p, (size_t)(space - line.p)))
		return false;
	struct http1_text target = { space + 1, line.len - (size_t)(space + 1 - line.p) };
	return target.len && target.p[0] == '/' && !memchr(target.p, ' ', target.len);
}

static enum http_fault parse_request(struct http1_conn *h, const void *data, size_t len, struct http_head *head,
	struct http1_facts *facts)
{
	enum http1_fault fault;
	if (http1_request_parse(data, len, &parsed.request, &fault, NULL) < 0)
		return fault == HTTP1_FAULT_MALFORMED && is_simple_request(data, len) ? HTTP_BAD_VERSION : to_fault(fault);
	return http1_request_model(&parsed.request, &h->base.config, head, facts);
}

static void start_body(struct http1_conn *h, enum http1_framing framing, uint64_t length)
{
	http1_body_start(&h->body, framing, length);
	h->body.trailers = &h->trailers;
	h->reading = h->body.done ? READ_DONE : READ_BODY;
}

static void take_request(struct http1_conn *h, const struct http_head *head, const struct http1_facts *facts)
{
	h->to_head = http_text_equal(head->method, "HEAD");
	h->old = facts->minor == 0;
	h->close |= facts->close;
	memcpy(h->key, facts->key, sizeof(h->key));
	start_body(h, facts->framing, head->length);
	if (facts->websocket)
		h->reading = READ_WAIT;
	struct http_stream *s = http1_stream_new(h);
	h->base.ops.on_head(h->base.ctx, s, head, h->reading == READ_DONE);
}

static void take_response(struct http1_conn *h, const struct http_head *head, const struct http1_facts *facts)
{
	if (head->status < 200) {
		if (++h->interim > HTTP_INTERIM_MAX)
			fail(h, HTTP_ABUSE);
		else
			h->base.ops.on_head(h->base.ctx, h->stream, head, false);
		return;
	}
	h->close |= facts->close || facts->until_close;
	start_body(h, facts->framing, head->length);
	if (facts->until_close || facts->websocket)
		h->reading = READ_RAW;
	if (facts->websocket)
		h->framing_out = OUT_RAW;
	else if (h->framing_out == OUT_WAIT)
		h->writing = WRITE_DONE; /* no WebSocket: nothing can go there */
	h->want_drain &= h->writing != WRITE_DONE;
	h->base.ops.on_head(h->base.ctx, h->stream, head, h->reading == READ_DONE);
}

static void take_head(struct http1_conn *h, const void *data, size_t len)
{
	struct http_head head;
	struct http1_facts facts;
	enum http_fault fault;
	http_head_init(&head);
	if (http1_is_server(h)) {
		fault = parse_request(h, data, len, &head, &facts);
	} else {
		fault = to_fault(http1_response_parse(data, len, &parsed.response));
		if (!fault)
			fault = http1_response_model(&parsed.response, h->to_head, h->key[0] ? h->key : NULL, &head, &facts);
	}
	if (fault)
		fail(h, fault);
	else if (http1_is_server(h))
		take_request(h, &head, &facts);
	else
		take_response(h, &head, &facts);
	http_head_free(&head);
}

/* More of a head whose start is kept. */
static size_t continue_head(struct http1_conn *h, const uint8_t *p, size_t len)
{
	size_t before = h->in.len, end;
	enum http1_fault fault;
	if (len > HTTP1_HEAD_MAX - before)
		len = HTTP1_HEAD_MAX - before;
	if (buf_append(&h->in, p, len) < 0) {
		fail(h, HTTP_TOO_LARGE);
		return 0;
	}
	int found = http1_head_scan(h->in.data, h->in.len, h->scanned, &end, &fault);
	h->scanned = h->in.len;
	if (found < 0)
		fail(h, to_fault(fault));
	if (found <= 0)
		return len;
	struct buf whole = h->in;
	buf_init(&h->in, HTTP1_HEAD_MAX);
	take_head(h, whole.data, end);
	buf_wipe_free(&whole);
	return end - before;
}

static size_t read_head(struct http1_conn *h, const uint8_t *p, size_t len)
{
	size_t end;
	enum http1_fault fault;
	if (!http1_is_server(h) && !h->stream) {
		fail(h, HTTP_MALFORMED); /* an answer to nothing */
		return 0;
	}
	if (h->in.len)
		return continue_head(h, p, len);
	int found = http1_head_scan(p, len, 0, &end, &fault);
	if (found < 0)
		fail(h, to_fault(fault));
	if (found < 0)
		return 0;
	if (found == 0) {
		h->scanned = 0;
		return continue_head(h, p, len);
	}
	take_head(h, p, end);
	return end;
}

/* ---- bodies ---- */

static size_t window(const struct http1_conn *h)
{
	return h->unacked < HTTP_WINDOW ? HTTP_WINDOW - h->unacked : 0;
}

static void deliver(struct http1_conn *h, const void *p, size_t len)
{
	h->unacked += len;
	if (len)
		h->base.ops.on_data(h->base.ctx, h->stream, p, len);
}

static void end_body(struct http1_conn *h)
{
	struct http_head trailers;
	http_head_init(&trailers);
	enum http_fault fault = http1_trailers_model(h->trailers.data, h->trailers.len, &trailers);
	buf_wipe_free(&h->trailers);
	if (fault) {
		fail(h, fault);
	} else {
		h->reading = READ_DONE;
		h->base.ops.on_end(h->base.ctx, h->stream, trailers.n_fields ? &trailers : NULL);
	}
	http_head_free(&trailers);
}

static size_t read_body(struct http1_conn *h, const uint8_t *p, size_t len)
{
	struct http1_text run;
	size_t used;
	if (len > window(h))
		len = window(h);
	if (len == 0)
		return 0;
	if (http1_body_next(&h->body, p, len, &used, &run) < 0) {
		fail(h, h->body.trailer > HTTP1_TRAILER_MAX ? HTTP_TOO_LARGE : HTTP_MALFORMED);
		return 0;
	}
	deliver(h, run.p, run.len);
	if (h->reading == READ_BODY && h->body.done)
		end_body(h);
	return used;
}

static size_t read_raw(struct http1_conn *h, const uint8_t *p, size_t len)
{
	if (len > window(h))
		len = window(h);
	deliver(h, p, len);
	return len;
}

/* The message is over. What comes now belongs to the next one, or to nothing. */
static size_t read_after(struct http1_conn *h, size_t len)
{
	if (http1_is_server(h))
		return 0; /* one after the other */
	if (h->close)
		return len;
	fail(h, HTTP_MALFORMED);
	return 0;
}

static size_t read_some(struct http1_conn *h, const uint8_t *p, size_t len)
{
	switch (h->reading) {
	case READ_HEAD: return read_head(h, p, len);
	case READ_BODY: return read_body(h, p, len);
	case READ_RAW: return read_raw(h, p, len);
	case READ_WAIT: return 0;
	case READ_DONE: return read_after(h, len);
	case READ_CLOSED: return len;
	}
	return 0;
}

static size_t feed(struct http_conn *c, const void *data, size_t len)
{
	struct http1_conn *h = http1(c);
	const uint8_t *p = data;
	size_t used = 0;
	http1_settle(h);
	while (used < len && !c->fault && !c->gone) {
		size_t n = read_some(h, p + used, len - used);
		used += n;
		if (!c->gone && !c->fault)
			http1_settle(h);
		if (n == 0)
			break;
	}
	return used;
}

static void end_of_server(struct http1_conn *h)
{
	if (!h->stream) {
		h->ended = true;
		if (h->in.len)
			fail(h, HTTP_TRUNCATED);
	} else if (h->reading == READ_BODY) {
		fail(h, HTTP_TRUNCATED);
	} else if (h->reading == READ_RAW) {
		h->reading = READ_DONE;
		h->base.ops.on_end(h->base.ctx, h->stream, NULL);
	} else if (h->writing != WRITE_DONE) {
		/* Nobody waits for the answer any more: what a client that closes looks like, and the only notice of it that there is. */
		http1_reset(h->stream, HTTP_CANCELLED);
	}
}

static void end_of_client(struct http1_conn *h)
{
	h->ended |= !h->stream;
	if (h->reading == READ_RAW) {
		h->reading = READ_DONE;
		h->base.ops.on_end(h->base.ctx, h->stream, NULL);
	} else if (h->stream && h->reading == READ_DONE) {
		h->writing = WRITE_DONE; /* answered whole; the rest of the request has no reader */
	} else if (h->stream) {
		fail(h, HTTP_TRUNCATED);
	}
}

static void feed_end(struct http_conn *c)
{
	struct http1_conn *h = http1(c);
	if (h->in_ended)
		return;
	h->in_ended = true;
	http1_settle(h);
	if (h->reading == READ_CLOSED)
		return;
	if (http1_is_server(h))
		end_of_server(h);
	else
		end_of_client(h);
	if (!c->fault && !c->gone)
		http1_settle(h);
}

/* ---- output and the rest ---- */

static bool drain_due(const struct http1_conn *h)
{
	return h->want_drain && h->framing_out != OUT_WAIT && http_queue_len(&h->out) <= DRAINED;
}

static void pull(struct http_conn *c, struct buf *out, size_t max)
{
	struct http1_conn *h = http1(c);
	http1_settle(h);
	http_queue_take(&h->out, out, max);
	while (!c->gone && h->stream && drain_due(h)) {
		h->want_drain = false;
		c->ops.on_drain(c->ctx, h->stream);
		http_queue_take(&h->out, out, max);
		if (out->len >= max)
			break;
	}
	if (!c->gone)
		http1_settle(h);
}

static bool has_output(const struct http_conn *c)
{
	const struct http1_conn *h = http1(c);
	return http_queue_len(&h->out) > 0 || h->cutting || is_over(h) || (h->stream && drain_due(h));
}

static bool wants_input(const struct http_conn *c)
{
	const struct http1_conn *h = http1(c);
	bool body = h->reading == READ_BODY || h->reading == READ_RAW;
	return !h->in_ended && (!body || window(h) > 0) && http_queue_len(&h->out) < HTTP_OUTPUT_MAX;
}

static bool finished(const struct http_conn *c)
{
	const struct http1_conn *h = http1(c);
	return (h->ended || c->fault) && !h->stream && http_queue_len(&h->out) == 0;
}

static bool output_ended(const struct http_conn *c)
{
	const struct http1_conn *h = http1(c);
	bool half = h->framing_out == OUT_RAW && h->writing == WRITE_DONE;
	return http_queue_len(&h->out) == 0 && (half || finished(c));
}

static bool broken(const struct http_conn *c) { return http1(c)->broken; }

static bool awaits(const struct http_conn *c)
{
	const struct http1_conn *h = http1(c);
	return !http1_is_server(h) || (h->reading != READ_DONE && h->reading != READ_WAIT);
}

static bool can_open(const struct http_conn *c)
{
	const struct http1_conn *h = http1(c);
	return !http1_is_server(h) && !h->stream && !h->ended && !h->in_ended && !h->no_more;
}

static void credit(struct http_stream *s, size_t len)
{
	struct http1_conn *h = http1(s->conn);
	h->unacked -= len < h->unacked ? len : h->unacked;
}

static void shut(struct http_conn *c)
{
	struct http1_conn *h = http1(c);
	h->no_more = true;
	if (!h->stream)
		h->ended = true;
	if (h->ended && !h->stream)
		h->reading = READ_CLOSED;
}

static void abandon(struct http_conn *c, enum http_fault fault)
{
	struct http1_conn *h = http1(c);
	h->ended = true;
	http1_stream_end(h, h->cutting ? h->cut : fault);
	h->reading = READ_CLOSED;
}

static void free_conn(struct http_conn *c)
{
	struct http1_conn *h = http1(c);
	buf_wipe_free(&h->in);
	buf_wipe_free(&h->trailers);
	http_queue_free(&h->out);
	mem_free(h);
}

struct http_conn *http1_conn_new(const struct http_conn_config *config)
{
	static const struct http_codec codec = { .free = free_conn, .abandon = abandon, .feed = feed, .feed_end = feed_end, .pull = pull,
		.last_words = http1_last_words, .shutdown = shut, .has_output = has_output, .wants_input = wants_input, .finished = finished,
		.output_ended = output_ended, .broken = broken, .awaits = awaits, .can_open = can_open, .open = http1_open,
		.send_head = http1_send_head, .send_data = http1_send_data, .send_end = http1_send_end, .credit = credit, .reset = http1_reset };
	struct http1_conn *h = mem_alloc(sizeof(*h));
	h->base.codec = &codec;
	buf_init(&h->in, HTTP1_HEAD_MAX);
	buf_init(&h->trailers, 2 * HTTP1_TRAILER_MAX); /* line ends come on top of what is counted */
	buf_init(&h->out.buf, HTTP_OUTPUT_MAX);
	return &h->base;
}
