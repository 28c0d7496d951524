/* SPDX-License-Identifier: Apache-2.0 */
/* What the two codecs share behind http.h. Private to src/net. */
#pragma once

#include "net/http.h"

/* Called with the arguments of the functions of http.h of the same name. */
struct http_codec {
	void (*free)(struct http_conn *c); /* streams are gone already */
	void (*abandon)(struct http_conn *c, enum http_fault fault); /* on_close for every stream, now */
	size_t (*feed)(struct http_conn *c, const void *p, size_t len);
	void (*feed_end)(struct http_conn *c);
	void (*pull)(struct http_conn *c, struct buf *out, size_t max);
	int (*last_words)(struct http_conn *c, const struct http_head *head, const void *body, size_t len);
	void (*shutdown)(struct http_conn *c);
	bool (*has_output)(const struct http_conn *c);
	bool (*wants_input)(const struct http_conn *c);
	bool (*finished)(const struct http_conn *c);
	bool (*output_ended)(const struct http_conn *c);
	bool (*broken)(const struct http_conn *c);
	bool (*awaits)(const struct http_conn *c);
	bool (*can_open)(const struct http_conn *c);
	struct http_stream *(*open)(struct http_conn *c, const struct http_head *head, bool end, struct err *err);
	int (*send_head)(struct http_stream *s, const struct http_head *head, bool end, struct err *err);
	size_t (*send_data)(struct http_stream *s, const void *p, size_t len);
	int (*send_end)(struct http_stream *s, const struct http_head *trailers);
	void (*credit)(struct http_stream *s, size_t len);
	void (*reset)(struct http_stream *s, enum http_fault fault);
};

#define HTTP_SEND_MAX (128u * 1024u)   /* body bytes of one stream that wait to go */
#define HTTP_INTERIM_MAX 32u           /* interim heads before a final one; more is HTTP_ABUSE */

struct http_conn {
	const struct http_codec *codec;
	struct http_conn_ops ops;
	void *ctx;
	struct http_conn_config config;
	char scheme[8];
	enum http_fault fault;
	uint64_t opened;  /* streams ever */
	size_t streams;   /* now */
	bool gone;        /* abandoned: no callback any more */
};

struct http_stream {
	struct http_conn *conn;
	void *ctx;
	uint64_t id;
};

struct http_conn *http1_conn_new(const struct http_conn_config *config);
struct http_conn *http2_conn_new(const struct http_conn_config *config);

/* The owner's streams end now (HTTP_CANCELLED) and it hears nothing more; the memory stays until http_conn_free. For an
 * owner that goes away inside a callback. */
void http_conn_abandon(struct http_conn *c);

/* Bytes waiting to go: appended at the end, taken from the front without moving the rest. */
struct http_queue { struct buf buf; size_t at; bool wipe; /* holds a head: may be secret */ };
static inline size_t http_queue_len(const struct http_queue *q) { return q->buf.len - q->at; }
int http_queue_add(struct http_queue *q, const void *p, size_t len);
/* Room for len bytes at the end, to be committed to q->buf. NULL: no room. */
void *http_queue_reserve(struct http_queue *q, size_t len);
/* Moves bytes to `out` until that holds max. Gives memory back when empty. */
void http_queue_take(struct http_queue *q, struct buf *out, size_t max);
void http_queue_drop(struct http_queue *q, size_t len);
void http_queue_free(struct http_queue *q);
