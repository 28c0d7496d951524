/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP/2 connection over nghttp2: session and receiving in http2-conn.c, sending in http2-send.c. Private to src/net. */
#pragma once

#include <nghttp2/nghttp2.h>

#include "net/http-codec.h"

/* Frames that cost work and carry nothing, within a window of time. */
struct http2_abuse {
	uint64_t since_ns;
	uint64_t resets, control, useful;
};
/* Each returns false when it is too much. `now` in ns. */
bool http2_abuse_reset(struct http2_abuse *a, uint64_t now, uint64_t max);
bool http2_abuse_control(struct http2_abuse *a, uint64_t now);
void http2_abuse_useful(struct http2_abuse *a, size_t bytes); /* content earns its share of control frames */

struct http2_stream {
	struct http_stream base;
	struct http2_stream *prev, *next;
	int32_t id;
	struct http_head in;        /* of the head that is coming */
	struct http_queue out;
	struct http_head *trailers; /* to go; NULL: none */
	unsigned interim;
	enum http_fault cut;
	bool is_cut;                /* the owner gave it up, or we did: no callback but on_close */
	bool malformed;             /* what the peer sent on it */
	bool reset_came;            /* the peer's RST_STREAM */
	bool announced;             /* SERVER: on_head was called. CLIENT: for the final head */
	bool remote_ended;
	bool to_head, upgrade;
	bool answered;              /* SERVER: the final head was given */
	bool end_sent;              /* our END_STREAM went */
	bool send_ended, deferred, want_drain, drain_due;
};

struct http2_conn {
	struct http_conn base;
	nghttp2_session *session;
	struct http2_stream *streams;
	struct http_queue spill;    /* the rest of a frame that was larger than the room for it */
	struct buf *to;             /* pull: where bytes go */
	size_t max;
	size_t asking;              /* streams whose peer hasn't ended its side */
	struct http2_abuse abuse;
	bool settled;               /* the peer's SETTINGS came */
	bool goaway;                /* from the peer: no new streams */
	bool last_said;             /* our own last GOAWAY went out */
	bool in_ended, no_more;
	bool drains;                /* some stream has drain_due */
};

static inline struct http2_conn *http2(const struct http_conn *c)
{
	return (struct http2_conn *)(uintptr_t)c; /* base is its first member */
}
static inline struct http2_stream *http2_stream(const struct http_stream *s)
{
	return (struct http2_stream *)(uintptr_t)s; /* likewise */
}
static inline bool http2_is_server(const struct http2_conn *h) { return h->base.config.role == HTTP_SERVER; }

struct http2_stream *http2_stream_new(struct http2_conn *h, int32_t id);
struct http2_stream *http2_find(const struct http2_conn *h, int32_t id); /* NULL: closed, or unknown */
/* The connection fails: GOAWAY; its streams end when the session has returned. */
void http2_fail(struct http2_conn *h, enum http_fault fault);
/* Ends what is left of the streams of a failed connection. */
void http2_close_all(struct http2_conn *h, enum http_fault fault);

/* http2-head.c */
/* One field of the head that is coming. HTTP_FAULT_NONE, or why it can't be taken. `trailers`: it comes after the body. */
enum http_fault http2_head_field(struct http2_stream *s, bool trailers, const char *name, size_t name_len, const char *value,
	size_t value_len, uint8_t flags);
#define HTTP2_FIELDS_MAX (HTTP_FIELDS_MAX + 8u)
/* As nghttp2 takes it; the texts stay the head's, the numbers lie in *digits. Returns how many. */
struct http2_digits { char length[24], status[8]; };
size_t http2_head_list(const struct http_head *head, bool upgrade, nghttp2_nv nv[HTTP2_FIELDS_MAX], struct http2_digits *digits);

/* http2-send.c */
struct http_stream *http2_open(struct http_conn *c, const struct http_head *head, bool end, struct err *err);
int http2_send_head(struct http_stream *s, const struct http_head *head, bool end, struct err *err);
size_t http2_send_data(struct http_stream *s, const void *p, size_t len);
int http2_send_end(struct http_stream *s, const struct http_head *trailers);
void http2_reset(struct http_stream *s, enum http_fault fault);
void http2_pull(struct http_conn *c, struct buf *out, size_t max);
int http2_on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *framehd, size_t length,
	nghttp2_data_source *source, void *user_data);

/* http2-memory.c: malloc, but what is freed is wiped first */
nghttp2_mem *http2_memory(void);
