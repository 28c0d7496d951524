/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http2-conn.h"

#include <string.h>

#include "base/mem.h"
#include "net/http-rules.h"

#define SPILL_MAX (256u * 1024u)      /* more than any frame */
#define ACKS_MAX 100u                 /* of pings and settings that wait to go */
#define QUEUE_MAX 500u                /* frames that wait to go: beyond, the peer doesn't read */
#define HEADER_TABLE 4096u            /* of HPACK, each way */

/* ---- streams ---- */

struct http2_stream *http2_stream_new(struct http2_conn *h, int32_t id)
{
	struct http2_stream *s = mem_alloc(sizeof(*s));
	s->base.conn = &h->base;
	s->base.id = ++h->base.opened;
	s->id = id;
	s->next = h->streams;
	if (s->next)
		s->next->prev = s;
	h->streams = s;
	h->base.streams += !http2_is_server(h); /* a request counts when its head is whole */
	h->asking++;
	http_head_init(&s->in);
	buf_init(&s->out.buf, HTTP_SEND_MAX);
	/* A request of ours gets there when it goes: before, the session has no stream of this number. */
	nghttp2_session_set_stream_user_data(h->session, id, s);
	return s;
}

struct http2_stream *http2_find(const struct http2_conn *h, int32_t id)
{
	return nghttp2_session_get_stream_user_data(h->session, id);
}

static void remote_ended(struct http2_conn *h, struct http2_stream *s)
{
	if (!s->remote_ended)
		h->asking--;
	s->remote_ended = true;
}

static void stream_free(struct http2_stream *s)
{
	http_head_free(&s->in);
	http_queue_free(&s->out);
	if (s->trailers)
		http_head_free(s->trailers);
	mem_free(s->trailers);
	mem_free(s);
}

static void stream_end(struct http2_conn *h, struct http2_stream *s, enum http_fault fault)
{
	remote_ended(h, s);
	if (s->prev)
		s->prev->next = s->next;
	else
		h->streams = s->next;
	if (s->next)
		s->next->prev = s->prev;
	bool known = s->announced || !http2_is_server(h);
	h->base.streams -= known;
	nghttp2_session_set_stream_user_data(h->session, s->id, NULL);
	/* A stream that nobody heard of ends unheard. */
	if (!h->base.gone && known)
		h->base.ops.on_close(h->base.ctx, &s->base, s->is_cut ? s->cut : fault);
	stream_free(s);
}

void http2_close_all(struct http2_conn *h, enum http_fault fault)
{
	while (h->streams)
		stream_end(h, h->streams, fault);
}

void http2_fail(struct http2_conn *h, enum http_fault fault)
{
	if (h->base.fault)
		return;
	h->base.fault = fault;
	bool calm = fault == HTTP_ABUSE || fault == HTTP_TOO_LARGE;
	nghttp2_session_terminate_session(h->session, calm ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_PROTOCOL_ERROR);
}

/* What one stream brought is wrong. A server's client has it all to itself and loses it; a client's other streams are other
 * people's. */
static void stream_malformed(struct http2_conn *h, struct http2_stream *s, enum http_fault fault)
{
	if (http2_is_server(h) || fault != HTTP_MALFORMED)
		http2_fail(h, fault);
	else
		http2_reset(&s->base, fault);
}

static bool deaf(const struct http2_conn *h)
{
	return h->base.fault || h->base.gone;
}

/* ---- what the session tells: frames ---- */

static uint64_t now(const struct http2_conn *h)
{
	return h->base.config.now_ns();
}

static bool carries_nothing(const nghttp2_frame_hd *hd)
{
	switch (hd->type) {
	case NGHTTP2_DATA:
		return hd->length == 0 && !(hd->flags & NGHTTP2_FLAG_END_STREAM);
	case NGHTTP2_HEADERS:
	case NGHTTP2_CONTINUATION:
	case NGHTTP2_RST_STREAM:
		return false;
	default:
		return true;
	}
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *user_data)
{
	struct http2_conn *h = user_data;
	if (!deaf(h) && carries_nothing(hd) && !http2_abuse_control(&h->abuse, now(h)))
		http2_fail(h, HTTP_ABUSE);
	return 0;
}

static void count_reset(struct http2_conn *h)
{
	if (!deaf(h) && !http2_abuse_reset(&h->abuse, now(h), h->base.config.max_resets))
		http2_fail(h, HTTP_ABUSE);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
	struct http2_conn *h = user_data;
	if (deaf(h))
		return 0;
	struct http2_stream *s = http2_find(h, frame->hd.stream_id);
	if (!s && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		http2_stream_new(h, frame->hd.stream_id);
	else if (s)
		http_head_free(&s->in);
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len, const uint8_t *value,
	size_t value_len, uint8_t flags, void *user_data)
{
	struct http2_conn *h = user_data;
	struct http2_stream *s = http2_find(h, frame->hd.stream_id);
	if (deaf(h) || !s || s->is_cut)
		return 0;
	enum http_fault fault = http2_head_field(s, s->announced, (const char *)name, name_len, (const char *)value, value_len, flags);
	if (fault)
		stream_malformed(h, s, fault);
	return 0;
}

static int on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
	const uint8_t *value, size_t value_len, uint8_t flags, void *user_data)
{
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* not merely passed over: the whole head is malformed */
}

static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int code, void *user_data)
{
	struct http2_conn *h = user_data;
	struct http2_stream *s = http2_find(h, frame->hd.stream_id);
	bool message = code == NGHTTP2_ERR_HTTP_HEADER || code == NGHTTP2_ERR_HTTP_MESSAGING;
	if (s && !deaf(h)) {
		s->malformed = true;
		if (message && !s->is_cut)
			stream_malformed(h, s, HTTP_MALFORMED);
	}
	/* Making us reset is as good as resetting. */
	count_reset(h);
	return 0;
}

/* ---- messages ---- */

static enum http_fault judge_request(const struct http2_conn *h, const struct http_head *head, bool end)
{
	const char *scheme = h->base.config.scheme;
	if (http_request_check(head, end, NULL) < 0 || (scheme[0] && !http_text_equal(head->scheme, scheme)))
		return HTTP_MALFORMED;
	return HTTP_FAULT_NONE;
}

static void take_request(struct http2_conn *h, struct http2_stream *s, bool end)
{
	if (h->no_more) { /* GOAWAY says that it was not looked at: so it isn't */
		http2_reset(&s->base, HTTP_REFUSED);
		return;
	}
	enum http_fault fault = judge_request(h, &s->in, end);
	if (fault) {
		stream_malformed(h, s, fault);
		return;
	}
	s->announced = true;
	h->base.streams++;
	s->to_head = http_text_equal(s->in.method, "HEAD");
	s->upgrade = s->in.protocol.len > 0;
	h->base.ops.on_head(h->base.ctx, &s->base, &s->in, end);
}

static void take_response(struct http2_conn *h, struct http2_stream *s, bool end)
{
	struct http_head *head = &s->in;
	bool interim = head->status < 200;
	if (http_response_check(head, end && !http_is_bodiless(head->status, s->to_head), NULL) < 0 || (interim && end)) {
		stream_malformed(h, s, HTTP_MALFORMED);
		return;
	}
	if (interim && ++s->interim > HTTP_INTERIM_MAX) {
		http2_reset(&s->base, HTTP_ABUSE);
		return;
	}
	s->announced = !interim;
	if (head->status == 204)
		head->has_length = false;
	h->base.ops.on_head(h->base.ctx, &s->base, head, end);
}

static void take_trailers(struct http2_conn *h, struct http2_stream *s)
{
	if (s->in.live > HTTP_TRAILERS_MAX)
		stream_malformed(h, s, HTTP_TOO_LARGE);
	else
		h->base.ops.on_end(h->base.ctx, &s->base, s->in.n_fields ? &s->in : NULL);
}

static void take_headers(struct http2_conn *h, struct http2_stream *s, bool end)
{
	if (end)
		remote_ended(h, s);
	if (s->is_cut)
		return;
	if (s->announced)
		take_trailers(h, s);
	else if (http2_is_server(h))
		take_request(h, s, end);
	else
		take_response(h, s, end);
	/* The stream is there still: it ends in on_stream_close only. */
	if (!h->base.gone)
		http_head_free(&s->in);
}

static void take_end(struct http2_conn *h, struct http2_stream *s)
{
	remote_ended(h, s);
	if (!s->is_cut)
		h->base.ops.on_end(h->base.ctx, &s->base, NULL);
}

static void take_reset(struct http2_conn *h, struct http2_stream *s)
{
	if (s)
		s->reset_came = true;
	count_reset(h);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
	struct http2_conn *h = user_data;
	if (deaf(h))
		return 0;
	struct http2_stream *s = frame->hd.stream_id ? http2_find(h, frame->hd.stream_id) : NULL;
	bool end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	if (frame->hd.type == NGHTTP2_HEADERS && s)
		take_headers(h, s, end);
	else if (frame->hd.type == NGHTTP2_DATA && end && s)
		take_end(h, s);
	else if (frame->hd.type == NGHTTP2_RST_STREAM)
		take_reset(h, s);
	else if (frame->hd.type == NGHTTP2_GOAWAY)
		h->goaway = true;
	else if (frame->hd.type == NGHTTP2_SETTINGS && !(frame->hd.flags & NGHTTP2_FLAG_ACK))
		h->settled = true;
	return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t len, void *user_data)
{
	struct http2_conn *h = user_data;
	struct http2_stream *s = http2_find(h, id);
	nghttp2_session_consume_connection(session, len);
	http2_abuse_useful(&h->abuse, len);
	if (deaf(h) || !s || s->is_cut)
		return 0;
	if (!s->announced) { /* nghttp2 lets no data come before the head */
		stream_malformed(h, s, HTTP_MALFORMED);
		return 0;
	}
	h->base.ops.on_data(h->base.ctx, &s->base, p, len);
	return 0;
}

static enum http_fault closing_fault(const struct http2_conn *h, const struct http2_stream *s, uint32_t code)
{
	if (h->base.fault)
		return h->base.fault;
	/* nghttp2 resets by itself, without a word, what doesn't keep to its length. */
	if (s->malformed || (code == NGHTTP2_PROTOCOL_ERROR && !s->reset_came))
		return HTTP_MALFORMED;
	/* A server that has answered in full may drop the rest of the request (RFC 9113 8.1). */
	if (code == NGHTTP2_NO_ERROR && s->remote_ended && (s->send_ended || !http2_is_server(h)))
		return HTTP_FAULT_NONE;
	if (code == NGHTTP2_REFUSED_STREAM)
		return HTTP_REFUSED;
	return code == NGHTTP2_INTERNAL_ERROR ? HTTP_TRUNCATED : HTTP_CANCELLED;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *user_data)
{
	struct http2_conn *h = user_data;
	struct http2_stream *s = http2_find(h, id);
	if (!s || h->base.gone)
		return 0;
	enum http_fault fault = closing_fault(h, s, code);
	if (fault == HTTP_MALFORMED && http2_is_server(h) && !s->is_cut)
		http2_fail(h, fault);
	stream_end(h, s, fault);
	return 0;
}

/* ---- what went, or did not ---- */

static enum http_fault goaway_fault(uint32_t code)
{
	return code == NGHTTP2_ENHANCE_YOUR_CALM || code == NGHTTP2_INTERNAL_ERROR ? HTTP_ABUSE : HTTP_MALFORMED;
}

static struct http2_stream *search(const struct http2_conn *h, int32_t id)
{
	struct http2_stream *s = h->streams;
	while (s && s->id != id)
		s = s->next;
	return s;
}

static void goaway_sent(struct http2_conn *h, uint32_t code)
{
	/* nghttp2 gives a connection up by itself, too. */
	if (!h->base.fault && code != NGHTTP2_NO_ERROR)
		h->base.fault = goaway_fault(code);
	h->last_said |= h->base.fault != HTTP_FAULT_NONE;
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
	struct http2_conn *h = user_data;
	if (frame->hd.type == NGHTTP2_GOAWAY) {
		goaway_sent(h, frame->goaway.error_code);
		return 0;
	}
	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, search(h, frame->hd.stream_id));
	if (frame->hd.type > NGHTTP2_HEADERS || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	struct http2_stream *s = http2_find(h, frame->hd.stream_id);
	if (s) {
		s->end_sent = true;
		if (s->is_cut && s->cut == HTTP_FAULT_NONE)
			nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_NO_ERROR);
	}
	return 0;
}

/* A request that never left has no stream in the session that could close. */
static int on_frame_not_send(nghttp2_session *session, const nghttp2_frame *frame, int code, void *user_data)
{
	struct http2_conn *h = user_data;
	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST || h->base.gone)
		return 0;
	struct http2_stream *s = search(h, frame->hd.stream_id);
	if (s)
		stream_end(h, s, h->base.fault ? h->base.fault : HTTP_REFUSED);
	return 0;
}

/* ---- the connection ---- */

static enum http_fault receive_fault(ssize_t code)
{
	switch (code) {
	case NGHTTP2_ERR_BAD_CLIENT_MAGIC:
		return HTTP_BAD_VERSION;
	case NGHTTP2_ERR_FLOODED:
	case NGHTTP2_ERR_TOO_MANY_CONTINUATIONS:
	case NGHTTP2_ERR_TOO_MANY_SETTINGS:
		return HTTP_ABUSE;
	case NGHTTP2_ERR_NOMEM:
		return HTTP_TOO_LARGE;
	default:
		return HTTP_MALFORMED;
	}
}

static size_t feed(struct http_conn *c, const void *p, size_t len)
{
	struct http2_conn *h = http2(c);
	ssize_t n = nghttp2_session_mem_recv(h->session, p, len);
	if (n < 0)
		http2_fail(h, receive_fault(n));
	if (c->fault && !c->gone)
		http2_close_all(h, c->fault);
	return n < 0 ? 0 : (size_t)n;
}

static void feed_end(struct http_conn *c)
{
	struct http2_conn *h = http2(c);
	h->in_ended = true;
	while (h->streams && !c->gone) {
		struct http2_stream *s = h->streams;
		bool whole = http2_is_server(h) && s->remote_ended;
		if (!whole)
			c->fault = HTTP_TRUNCATED;
		stream_end(h, s, whole ? HTTP_CANCELLED : HTTP_TRUNCATED);
	}
	h->last_said = true; /* nobody listens */
}

static bool has_output(const struct http_conn *c)
{
	const struct http2_conn *h = http2(c);
	if (http_queue_len(&h->spill) || (c->fault && h->streams))
		return true;
	return !h->last_said && (h->drains || nghttp2_session_want_write(h->session));
}

static bool wants_input(const struct http_conn *c)
{
	const struct http2_conn *h = http2(c);
	return !h->in_ended && nghttp2_session_get_outbound_queue_size(h->session) < QUEUE_MAX;
}

static bool finished(const struct http_conn *c)
{
	const struct http2_conn *h = http2(c);
	if (h->streams || http_queue_len(&h->spill))
		return false;
	if (c->fault)
		return h->last_said || !nghttp2_session_want_write(h->session);
	return h->in_ended || (!nghttp2_session_want_read(h->session) && !nghttp2_session_want_write(h->session));
}

static bool broken(const struct http_conn *c) { return false; } /* every message has an end mark */

static bool awaits(const struct http_conn *c)
{
	const struct http2_conn *h = http2(c);
	return !http2_is_server(h) || !h->streams || h->asking > 0;
}

static bool can_open(const struct http_conn *c)
{
	const struct http2_conn *h = http2(c);
	uint32_t theirs = nghttp2_session_get_remote_settings(h->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
	size_t max = theirs < c->config.max_streams ? theirs : c->config.max_streams;
	if (!h->settled && max > HTTP_STREAMS_MAX)
		max = HTTP_STREAMS_MAX; /* as nghttp2 assumes before it knows */
	return !http2_is_server(h) && !h->goaway && !h->no_more && !h->in_ended && c->streams < max &&
		nghttp2_session_check_request_allowed(h->session);
}

static void credit(struct http_stream *s, size_t len)
{
	nghttp2_session_consume_stream(http2(s->conn)->session, http2_stream(s)->id, len);
}

static void shut(struct http_conn *c)
{
	struct http2_conn *h = http2(c);
	if (!h->no_more && !c->fault)
		nghttp2_submit_goaway(h->session, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(h->session), NGHTTP2_NO_ERROR,
			NULL, 0);
	h->no_more = true;
}

static int last_words(struct http_conn *c, const struct http_head *head, const void *body, size_t len)
{
	return -1; /* GOAWAY says it */
}

static void abandon(struct http_conn *c, enum http_fault fault)
{
	http2_close_all(http2(c), fault);
}

static void free_conn(struct http_conn *c)
{
	struct http2_conn *h = http2(c);
	nghttp2_session_del(h->session);
	http_queue_free(&h->spill);
	mem_free(h);
}

/* Of our own small objects: no memory for one ends the process, as it does in mem.h. */
static void require(int result)
{
	if (result != 0)
		mem_free(mem_alloc(PTRDIFF_MAX));
}

static nghttp2_session_callbacks *make_callbacks(void)
{
	nghttp2_session_callbacks *cb;
	require(nghttp2_session_callbacks_new(&cb));
	nghttp2_session_callbacks_set_on_begin_frame_callback(cb, on_begin_frame);
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_invalid_header_callback(cb, on_invalid_header);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(cb, on_invalid_frame);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data_chunk);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
	nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_send);
	nghttp2_session_callbacks_set_on_frame_not_send_callback(cb, on_frame_not_send);
	nghttp2_session_callbacks_set_send_data_callback(cb, http2_on_send_data);
	return cb;
}

static nghttp2_option *make_options(const struct http_conn_config *config)
{
	nghttp2_option *o;
	require(nghttp2_option_new(&o));
	nghttp2_option_set_no_auto_window_update(o, 1);
	nghttp2_option_set_no_closed_streams(o, 1);
	nghttp2_option_set_max_reserved_remote_streams(o, 0);
	nghttp2_option_set_peer_max_concurrent_streams(o, HTTP_STREAMS_MAX);
	nghttp2_option_set_max_send_header_block_length(o, 2 * HTTP_HEAD_MAX);
	nghttp2_option_set_max_deflate_dynamic_table_size(o, HEADER_TABLE);
	nghttp2_option_set_max_outbound_ack(o, ACKS_MAX);
	/* Ours is the tighter count. */
	nghttp2_option_set_stream_reset_rate_limit(o, 1000 + 2 * config->max_resets, 33 + config->max_resets / 10);
	return o;
}

static void announce(struct http2_conn *h, const struct http_conn_config *config)
{
	bool server = config->role == HTTP_SERVER;
	nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP_HEAD_MAX },
		{ server ? NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS : NGHTTP2_SETTINGS_ENABLE_PUSH, server ? config->max_streams : 0 },
		{ NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1 },
		{ NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1 },
	};
	nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, settings, ARRAY_LEN(settings) - !server);
	nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE, 0,
		(int32_t)(config->connection_window < INT32_MAX ? config->connection_window : INT32_MAX));
}

struct http_conn *http2_conn_new(const struct http_conn_config *config)
{
	static const struct http_codec codec = { .free = free_conn, .abandon = abandon, .feed = feed, .feed_end = feed_end, .pull = http2_pull,
		.last_words = last_words, .shutdown = shut, .has_output = has_output, .wants_input = wants_input, .finished = finished,
		.output_ended = finished, .broken = broken, .awaits = awaits, .can_open = can_open, .open = http2_open,
		.send_head = http2_send_head, .send_data = http2_send_data, .send_end = http2_send_end, .credit = credit, .reset = http2_reset };
	static nghttp2_session_callbacks *callbacks;
	if (!callbacks)
		callbacks = make_callbacks();
	struct http2_conn *h = mem_alloc(sizeof(*h));
	nghttp2_option *options = make_options(config);
	require(config->role == HTTP_SERVER ? nghttp2_session_server_new3(&h->session, callbacks, h, options, http2_memory()) :
		nghttp2_session_client_new3(&h->session, callbacks, h, options, http2_memory()));
	nghttp2_option_del(options);
	h->base.codec = &codec;
	buf_init(&h->spill.buf, SPILL_MAX);
	announce(h, config);
	return &h->base;
}
