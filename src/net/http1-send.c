/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http1-conn.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "net/http-rules.h"

#define CHUNK_LINES 24u /* around the bytes of a chunk */

/* ---- requests ---- */

static bool usually_has_body(struct http_text method)
{
	return http_text_equal(method, "POST") || http_text_equal(method, "PUT") || http_text_equal(method, "PATCH");
}

static void choose_key(struct http1_conn *h, const struct http_head *head)
{
	const struct http_field *key = http_head_get(head, "sec-websocket-key");
	h->key[0] = 0;
	if (!head->protocol.len)
		return;
	if (key && websocket_key_valid(key->value.p, key->value.len))
		memcpy(h->key, key->value.p, WEBSOCKET_KEY_LEN);
	else
		websocket_key_make(h->key);
	h->key[WEBSOCKET_KEY_LEN] = 0;
}

struct http_stream *http1_open(struct http_conn *c, const struct http_head *head, bool end, struct err *err)
{
	struct http1_conn *h = http1(c);
	if (http_request_check(head, end, err) < 0)
		return NULL;
	choose_key(h, head);
	struct http1_heading how = { .zero = usually_has_body(head->method), .key = h->key[0] ? h->key : NULL };
	how.framing = how.key ? OUT_WAIT : end ? OUT_NONE : head->has_length ? OUT_LENGTH : OUT_CHUNKED;
	if (http1_write_request(&h->out, head, &how) < 0) {
		err_set(err, ERR_LIMIT, "the request is larger than the room for what waits to go");
		return NULL;
	}
	h->framing_out = how.framing;
	h->left = head->has_length ? head->length : 0;
	h->writing = end ? WRITE_DONE : WRITE_BODY;
	h->to_head = http_text_equal(head->method, "HEAD");
	h->interim = 0;
	return http1_stream_new(h);
}

/* ---- responses ---- */

static int send_interim(struct http1_conn *h, const struct http_head *head)
{
	struct http1_heading how = { .framing = OUT_NONE };
	return h->old ? 0 : http1_write_response(&h->out, head, &how); /* HTTP/1.0 has none */
}

static enum http1_framing_out response_framing(const struct http1_conn *h, const struct http_head *head, bool end)
{
	if (h->key[0] && head->status / 100 == 2)
		return OUT_RAW;
	if (end || http_is_bodiless(head->status, h->to_head))
		return OUT_NONE;
	return head->has_length ? OUT_LENGTH : h->old ? OUT_CLOSE : OUT_CHUNKED;
}

static int send_final(struct http1_conn *h, const struct http_head *head, bool end)
{
	struct http1_heading how = { .framing = response_framing(h, head, end) };
	bool unread = h->reading == READ_BODY; /* of a request that was answered at once: who reads it? */
	h->close |= h->no_more || how.framing == OUT_CLOSE || (end && unread);
	how.close = h->close;
	how.zero = !http_is_bodiless(head->status, h->to_head);
	how.key = how.framing == OUT_RAW ? h->key : NULL;
	if (http1_write_response(&h->out, head, &how) < 0)
		return -1;
	h->framing_out = how.framing;
	h->left = head->length;
	h->writing = end ? WRITE_DONE : WRITE_BODY;
	if (h->reading == READ_WAIT)
		h->reading = how.framing == OUT_RAW ? READ_RAW : READ_DONE;
	return 0;
}

int http1_send_head(struct http_stream *s, const struct http_head *head, bool end, struct err *err)
{
	struct http1_conn *h = http1(s->conn);
	if (!http1_is_server(h) || h->writing != WRITE_HEAD || h->cutting)
		return err_set(err, ERR_INVALID, "a response was begun already");
	if (http_response_check(head, end && !http_is_bodiless(head->status, h->to_head), err) < 0)
		return -1;
	if ((head->status < 200 ? send_interim(h, head) : send_final(h, head, end)) < 0)
		return err_set(err, ERR_LIMIT, "the response is larger than the room for what waits to go");
	return 0;
}

/* ---- bodies ---- */

static size_t room(const struct http1_conn *h)
{
	size_t queued = http_queue_len(&h->out);
	return queued < HTTP_SEND_MAX ? HTTP_SEND_MAX - queued : 0;
}

static size_t put_chunk(struct http1_conn *h, const void *p, size_t len)
{
	char line[CHUNK_LINES];
	int n = snprintf(line, sizeof(line), "%zx\r\n", len);
	bool ok = http_queue_add(&h->out, line, (size_t)n) == 0 && http_queue_add(&h->out, p, len) == 0 &&
		http_queue_add(&h->out, "\r\n", 2) == 0;
	return ok ? len : 0;
}

size_t http1_send_data(struct http_stream *s, const void *p, size_t len)
{
	struct http1_conn *h = http1(s->conn);
	if (h->cutting || h->writing == WRITE_DONE || (h->writing == WRITE_BODY && h->framing_out == OUT_NONE))
		return len; /* to a message that has no place for it */
	if (h->framing_out == OUT_LENGTH && len > h->left) {
		http1_reset(s, HTTP_MALFORMED); /* more than was announced would be read as the next message */
		return len;
	}
	size_t n = h->writing == WRITE_BODY && h->framing_out != OUT_WAIT ? room(h) : 0;
	if (n > len)
		n = len;
	h->want_drain |= n < len;
	if (n == 0)
		return 0;
	if (h->framing_out == OUT_CHUNKED)
		return put_chunk(h, p, n);
	if (http_queue_add(&h->out, p, n) < 0)
		return 0;
	h->left -= h->framing_out == OUT_LENGTH ? n : 0;
	return n;
}

int http1_send_end(struct http_stream *s, const struct http_head *trailers)
{
	struct http1_conn *h = http1(s->conn);
	if (h->cutting || h->writing == WRITE_DONE)
		return 0;
	if (h->writing == WRITE_HEAD || (trailers && http_trailers_check(trailers, NULL) < 0))
		return -1;
	if (h->framing_out == OUT_LENGTH && h->left > 0) {
		http1_reset(s, HTTP_TRUNCATED);
		return -1;
	}
	if (h->framing_out == OUT_CHUNKED && http1_write_trailers(&h->out, trailers) < 0)
		return -1;
	h->writing = WRITE_DONE;
	h->want_drain = false;
	return 0;
}

void http1_reset(struct http_stream *s, enum http_fault fault)
{
	struct http1_conn *h = http1(s->conn);
	if (h->cutting || (h->reading == READ_DONE && h->writing == WRITE_DONE))
		return;
	bool open_ended = h->framing_out == OUT_CLOSE || h->framing_out == OUT_RAW;
	h->broken = h->writing == WRITE_BODY && open_ended;
	h->cutting = true;
	h->cut = fault;
	h->reading = READ_CLOSED;
	h->writing = WRITE_DONE;
	h->want_drain = false;
	h->ended = true;
}

int http1_last_words(struct http_conn *c, const struct http_head *head, const void *body, size_t len)
{
	struct http1_conn *h = http1(c);
	struct http1_heading how = { .framing = OUT_LENGTH, .close = true };
	struct http_head last;
	if (!http1_is_server(h) || !c->fault || h->writing != WRITE_HEAD || head->status < 200)
		return -1;
	if (http_response_check(head, false, NULL) < 0)
		return -1;
	http_head_init(&last);
	int r = http_head_copy(&last, head);
	last.has_length = true;
	last.length = len;
	if (r == 0)
		r = http_queue_len(&h->out) + len + last.live < HTTP_OUTPUT_MAX ? http1_write_response(&h->out, &last, &how) : -1;
	if (r == 0 && len && !h->to_head)
		r = http_queue_add(&h->out, body, len);
	http_head_free(&last);
	h->writing = WRITE_DONE;
	return r;
}
