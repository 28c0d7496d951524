/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http2-conn.h"

#include <string.h>

#include "base/mem.h"
#include "net/http-rules.h"

#define DRAINED (HTTP_SEND_MAX / 2)
#define FRAME_HEADER 9u

/* ---- bodies, as the session asks for them ---- */

static ssize_t end_of_body(nghttp2_session *session, struct http2_stream *s, uint32_t *flags)
{
	static nghttp2_nv nv[HTTP2_FIELDS_MAX];
	struct http2_digits digits;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (!s->trailers)
		return 0;
	*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
	size_t n = http2_head_list(s->trailers, false, nv, &digits);
	return nghttp2_submit_trailer(session, s->id, nv, n) == 0 ? 0 : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static ssize_t on_read(nghttp2_session *session, int32_t id, uint8_t *buf, size_t length, uint32_t *flags, nghttp2_data_source *source,
	void *user_data)
{
	struct http2_stream *s = http2_find(user_data, id);
	if (!s)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	size_t n = http_queue_len(&s->out);
	if (n == 0 && s->send_ended)
		return end_of_body(session, s, flags);
	s->deferred = n == 0;
	if (n == 0)
		return NGHTTP2_ERR_DEFERRED;
	*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	if (n > length)
		return (ssize_t)length;
	if (s->send_ended && !s->trailers)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

/* What doesn't fit is less than a frame, and waits. */
static int emit(struct http2_conn *h, const void *p, size_t len)
{
	size_t room = h->max > h->to->len ? h->max - h->to->len : 0, n = len < room ? len : room;
	if (http_queue_len(&h->spill))
		n = 0;
	if (n && buf_append(h->to, p, n) < 0)
		n = 0;
	return n == len ? 0 : http_queue_add(&h->spill, (const uint8_t *)p + n, len - n);
}

int http2_on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *framehd, size_t length,
	nghttp2_data_source *source, void *user_data)
{
	struct http2_conn *h = user_data;
	struct http2_stream *s = http2_find(h, frame->hd.stream_id);
	if (!s || length > http_queue_len(&s->out))
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	if (h->to->len >= h->max || http_queue_len(&h->spill))
		return NGHTTP2_ERR_WOULDBLOCK;
	if (emit(h, framehd, FRAME_HEADER) < 0 || emit(h, s->out.buf.data + s->out.at, length) < 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	http_queue_drop(&s->out, length);
	http2_abuse_useful(&h->abuse, length);
	if (s->want_drain && http_queue_len(&s->out) <= DRAINED)
		s->drain_due = h->drains = true;
	return 0;
}

static nghttp2_data_provider provider(void)
{
	return (nghttp2_data_provider){ .read_callback = on_read };
}

static void move_along(struct http2_conn *h, struct http2_stream *s)
{
	if (s->deferred) {
		s->deferred = false;
		nghttp2_session_resume_data(h->session, s->id);
	}
}

size_t http2_send_data(struct http_stream *stream, const void *p, size_t len)
{
	struct http2_conn *h = http2(stream->conn);
	struct http2_stream *s = http2_stream(stream);
	if (s->is_cut || s->send_ended || h->base.fault)
		return len; /* to nobody */
	if (http2_is_server(h) && !s->answered)
		return 0;
	size_t queued = http_queue_len(&s->out), n = queued < HTTP_SEND_MAX ? HTTP_SEND_MAX - queued : 0;
	if (n > len)
		n = len;
	s->want_drain |= n < len;
	if (n == 0 || http_queue_add(&s->out, p, n) < 0)
		return 0;
	move_along(h, s);
	return n;
}

int http2_send_end(struct http_stream *stream, const struct http_head *trailers)
{
	struct http2_conn *h = http2(stream->conn);
	struct http2_stream *s = http2_stream(stream);
	if (s->is_cut || s->send_ended)
		return 0;
	if ((http2_is_server(h) && !s->answered) || (trailers && http_trailers_check(trailers, NULL) < 0))
		return -1;
	if (trailers) {
		s->trailers = mem_alloc(sizeof(*s->trailers));
		http_head_init(s->trailers);
		if (http_head_copy(s->trailers, trailers) < 0)
			return -1;
	}
	s->send_ended = true;
	s->want_drain = false;
	move_along(h, s);
	return 0;
}

/* ---- heads ---- */

static int may_upgrade(const struct http2_conn *h, struct err *err)
{
	if (!h->settled || nghttp2_session_get_remote_settings(h->session, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL))
		return 0;
	return err_set(err, ERR_UNSUPPORTED, "the server does not take WebSockets over HTTP/2 (RFC 8441); HTTP/1.1 may do");
}

struct http_stream *http2_open(struct http_conn *c, const struct http_head *head, bool end, struct err *err)
{
	static nghttp2_nv nv[HTTP2_FIELDS_MAX];
	struct http2_conn *h = http2(c);
	struct http2_digits digits;
	bool upgrade = head->protocol.len > 0;
	if (http_request_check(head, end, err) < 0 || (upgrade && may_upgrade(h, err) < 0))
		return NULL;
	size_t n = http2_head_list(head, upgrade, nv, &digits);
	nghttp2_data_provider body = provider();
	int32_t id = nghttp2_submit_request(h->session, NULL, nv, n, end ? NULL : &body, NULL);
	if (id < 0) {
		err_set(err, ERR_LIMIT, "the request can't be sent: %s", nghttp2_strerror(id));
		return NULL;
	}
	struct http2_stream *s = http2_stream_new(h, id);
	s->to_head = http_text_equal(head->method, "HEAD");
	s->upgrade = upgrade;
	s->send_ended = end;
	return &s->base;
}

int http2_send_head(struct http_stream *stream, const struct http_head *head, bool end, struct err *err)
{
	static nghttp2_nv nv[HTTP2_FIELDS_MAX];
	struct http2_conn *h = http2(stream->conn);
	struct http2_stream *s = http2_stream(stream);
	struct http2_digits digits;
	if (!http2_is_server(h) || s->answered || s->is_cut || h->base.fault)
		return err_set(err, ERR_INVALID, "a response was begun already, or the stream is over");
	if (http_response_check(head, end && !http_is_bodiless(head->status, s->to_head), err) < 0)
		return -1;
	bool final = head->status >= 200;
	size_t n = http2_head_list(head, s->upgrade && head->status / 100 == 2, nv, &digits);
	nghttp2_data_provider body = provider();
	int r = final ? nghttp2_submit_response(h->session, s->id, nv, n, end ? NULL : &body) :
		nghttp2_submit_headers(h->session, NGHTTP2_FLAG_NONE, s->id, NULL, nv, n, NULL);
	if (r < 0)
		return err_set(err, ERR_CLOSED, "the response can't be sent: %s", nghttp2_strerror(r));
	s->answered = final;
	s->send_ended = final && end;
	return 0;
}

static uint32_t reset_code(enum http_fault fault)
{
	switch (fault) {
	case HTTP_FAULT_NONE: return NGHTTP2_NO_ERROR;
	case HTTP_MALFORMED:
	case HTTP_BAD_VERSION: return NGHTTP2_PROTOCOL_ERROR;
	case HTTP_TOO_LARGE:
	case HTTP_ABUSE: return NGHTTP2_ENHANCE_YOUR_CALM;
	case HTTP_REFUSED: return NGHTTP2_REFUSED_STREAM;
	case HTTP_CANCELLED: return NGHTTP2_CANCEL;
	case HTTP_TRUNCATED: break;
	}
	return NGHTTP2_INTERNAL_ERROR;
}

void http2_reset(struct http_stream *stream, enum http_fault fault)
{
	struct http2_conn *h = http2(stream->conn);
	struct http2_stream *s = http2_stream(stream);
	if (s->is_cut)
		return;
	s->is_cut = true;
	s->cut = fault;
	s->want_drain = false;
	if (fault == HTTP_FAULT_NONE && s->send_ended && !s->end_sent)
		return; /* follows the end of what was given */
	http_queue_free(&s->out);
	nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, s->id, reset_code(fault));
}

/* ---- output ---- */

static bool drain(struct http2_conn *h)
{
	if (!h->drains)
		return false;
	h->drains = false;
	for (struct http2_stream *s = h->streams, *next; s && !h->base.gone; s = next) {
		next = s->next;
		if (!s->drain_due)
			continue;
		s->drain_due = s->want_drain = false;
		if (!s->is_cut)
			h->base.ops.on_drain(h->base.ctx, &s->base);
	}
	return true;
}

static bool send_some(struct http2_conn *h)
{
	const uint8_t *p;
	ssize_t n = nghttp2_session_mem_send(h->session, &p);
	if (n > 0 && emit(h, p, (size_t)n) == 0)
		return true;
	if (n != 0) {
		/* Out of memory: nothing more can be said. */
		if (!h->base.fault)
			h->base.fault = HTTP_TOO_LARGE;
		h->last_said = true;
	}
	return false;
}

void http2_pull(struct http_conn *c, struct buf *out, size_t max)
{
	struct http2_conn *h = http2(c);
	h->to = out;
	h->max = max;
	for (;;) {
		http_queue_take(&h->spill, out, max);
		if (out->len >= max || h->base.gone || h->last_said)
			break;
		if (!send_some(h) && !drain(h) && (http_queue_len(&h->spill) == 0 || out->len >= max))
			break;
	}
	h->to = NULL;
	if (c->fault)
		http2_close_all(h, c->fault);
}
