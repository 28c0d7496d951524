/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP/1 connection: reading in http1-conn.c, sending in http1-send.c. Private to src/net. */
#pragma once

#include "net/http-codec.h"
#include "net/http1-model.h"

enum http1_reading {
	READ_HEAD,   /* SERVER: the next request. CLIENT: the response, or nothing while no request is open */
	READ_BODY,
	READ_RAW,    /* everything up to the peer's end */
	READ_WAIT,   /* SERVER: a WebSocket was asked for and isn't answered */
	READ_DONE,   /* this message is over; the next one not begun */
	READ_CLOSED, /* what comes is not looked at any more */
};

enum http1_writing {
	WRITE_HEAD,  /* SERVER: the response. CLIENT: nothing, no request open */
	WRITE_BODY,
	WRITE_DONE,
};

enum http1_framing_out {
	OUT_NONE,    /* no body, whatever is given */
	OUT_LENGTH,
	OUT_CHUNKED,
	OUT_CLOSE,   /* ends with the connection */
	OUT_WAIT,    /* CLIENT: a WebSocket was asked for and isn't answered */
	OUT_RAW,     /* both directions are the other protocol's */
};

struct http1_conn {
	struct http_conn base;
	struct http_stream *stream; /* one at a time */
	struct buf in;              /* of a head that is not whole yet */
	size_t scanned;
	struct buf trailers;
	struct http1_body body;
	struct http_queue out;
	size_t unacked;             /* bytes of on_data without credit */
	uint64_t left;              /* OUT_LENGTH */
	enum http1_reading reading;
	enum http1_writing writing;
	enum http1_framing_out framing_out;
	unsigned interim;
	bool to_head;               /* the request at hand is HEAD */
	bool old;                   /* the client speaks HTTP/1.0 */
	bool close;                 /* no further message follows the one at hand */
	bool no_more;               /* shutdown was asked for */
	bool in_ended, ended;       /* the peer's end came; ours follows what is queued */
	bool broken;
	bool want_drain;
	bool cutting;               /* on_close with `cut` is due */
	enum http_fault cut;
	char key[WEBSOCKET_KEY_LEN + 1]; /* "" unless a WebSocket is asked for */
};

static inline struct http1_conn *http1(const struct http_conn *c)
{
	return (struct http1_conn *)(uintptr_t)c; /* base is its first member */
}
static inline bool http1_is_server(const struct http1_conn *h) { return h->base.config.role == HTTP_SERVER; }

struct http_stream *http1_stream_new(struct http1_conn *h);
/* The stream is over: on_close. The connection is ready for the next message before the owner hears of it, or at its end. */
void http1_stream_end(struct http1_conn *h, enum http_fault fault);
/* Ends what is over in both directions, or was cut. */
void http1_settle(struct http1_conn *h);

/* http1-send.c */
struct http_stream *http1_open(struct http_conn *c, const struct http_head *head, bool end, struct err *err);
int http1_send_head(struct http_stream *s, const struct http_head *head, bool end, struct err *err);
size_t http1_send_data(struct http_stream *s, const void *p, size_t len);
int http1_send_end(struct http_stream *s, const struct http_head *trailers);
void http1_reset(struct http_stream *s, enum http_fault fault);
int http1_last_words(struct http_conn *c, const struct http_head *head, const void *body, size_t len);

/* http1-write.c: heads as bytes. 0, or -1: no room (nothing was queued). */
struct http1_heading {
	enum http1_framing_out framing;
	bool zero;                 /* OUT_NONE: say "Content-Length: 0" */
	bool close;
	const char *key;           /* the WebSocket's; or NULL */
};
int http1_write_request(struct http_queue *q, const struct http_head *head, const struct http1_heading *how);
int http1_write_response(struct http_queue *q, const struct http_head *head, const struct http1_heading *how);
int http1_write_trailers(struct http_queue *q, const struct http_head *trailers); /* with the last chunk; trailers may be NULL */
