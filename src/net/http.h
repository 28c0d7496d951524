/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP as one model for both versions: heads, and connections that turn bytes into heads, data and trailers and back. No I/O:
 * the owner feeds bytes that came and takes bytes that shall go (channel.h joins that with a socket and TLS).
 *
 * A connection is HTTP/1.1 (http1-conn.c: RFC 9112, strict, one request after the other) or HTTP/2 (http2-conn.c: RFC 9113 by
 * nghttp2), as server or as client. What a peer sent is never passed on as bytes: a head is parsed into this model, judged by
 * others, and written anew from it. Whatever can't be said exactly in the model is refused as malformed.
 *
 * Flow control: on_data hands over bytes that count against the stream's window until http_stream_credit says that they were
 * passed on; http_stream_send_data takes only what there is room for. So a relay holds at most HTTP_WINDOW in each direction.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define HTTP_HEAD_MAX (64u * 1024u)     /* names and values of one head together; more is HTTP_TOO_LARGE */
#define HTTP_FIELDS_MAX 256u
#define HTTP_TRAILERS_MAX (8u * 1024u)
#define HTTP_WINDOW (256u * 1024u)      /* unacknowledged body bytes of one stream */
#define HTTP_STREAMS_MAX 100u           /* at once on one HTTP/2 connection (what we announce) */
#define HTTP_OUTPUT_MAX (512u * 1024u)  /* bytes waiting to be taken, beyond which nothing more is produced or read */

struct http_text { const char *p; size_t len; }; /* not NUL-terminated; never contains NUL, CR or LF */

struct http_field {
	struct http_text name;   /* lower case, a token (RFC 9110 5.1) */
	struct http_text value;  /* no white space around */
	bool sensitive;          /* never indexed by HPACK (RFC 7541 7.1.3): set it after http_head_put of a secret; HTTP/2 passes it on */
};

/*
 * A request head, a response head, or trailers (all of these empty). Owns its text. Connection-specific fields (connection,
 * keep-alive, proxy-connection, te but "trailers", transfer-encoding, upgrade, and whatever Connection names) and host, framing
 * and pseudo-header fields never appear in `fields`: the codec takes them out and writes its own.
 */
struct http_head {
	struct http_text method, scheme, authority, path; /* requests; path with the query, or "*"; authority as sent, "" if absent */
	struct http_text protocol;   /* "websocket": an upgrade (RFC 6455 / RFC 8441 extended CONNECT, method CONNECT then); else "" */
	unsigned status;             /* responses: 100–599 (101 never: an accepted upgrade is a 200 to a head with `protocol`) */
	bool has_length;
	uint64_t length;             /* of the body, when announced */
	struct http_field *fields;
	size_t n_fields;
	struct buf storage;          /* these are private */
	size_t fields_cap, live;
};

void http_head_init(struct http_head *h);
void http_head_free(struct http_head *h);             /* wipes: values may be secret */
int http_head_copy(struct http_head *to, const struct http_head *from); /* -1: too large. Each of these keeps `to` valid */
int http_head_set(struct http_head *h, struct http_text *member, const void *p, size_t len); /* &h->method … */
int http_head_add(struct http_head *h, const char *name, const void *value, size_t len);      /* checks both: -1 when not sendable */
int http_head_put(struct http_head *h, const char *name, const void *value, size_t len);      /* replaces all of that name */
void http_head_remove(struct http_head *h, const char *name);
const struct http_field *http_head_get(const struct http_head *h, const char *name);          /* the first; NULL */
size_t http_head_count(const struct http_head *h, const char *name);
bool http_text_equal(struct http_text t, const char *s);      /* exact */
bool http_text_equal_nocase(struct http_text t, const char *s); /* ASCII */
char *http_text_dup(struct http_text t);                      /* mem_free */

enum http_version { HTTP_1 = 1, HTTP_2 = 2 };
enum http_role { HTTP_SERVER, HTTP_CLIENT };

enum http_fault {
	HTTP_FAULT_NONE = 0,
	HTTP_MALFORMED,      /* smuggling shapes included */
	HTTP_BAD_VERSION,    /* HTTP/0.9, HTTP/2 preface on an HTTP/1 connection, … */
	HTTP_TOO_LARGE,      /* head, field count, trailers */
	HTTP_ABUSE,          /* floods of resets, pings, settings, empty frames, continuations */
	HTTP_REFUSED,        /* the peer takes no more streams (may be tried elsewhere) */
	HTTP_CANCELLED,      /* the peer gave the stream up */
	HTTP_TRUNCATED,      /* the connection ended inside a message */
};

struct http_conn;
struct http_stream;

/* Callbacks come from http_conn_feed, _feed_end, _cut, _pull and _free only. They may call anything but http_conn_free, and
 * of their own connection not the functions just named. */
struct http_conn_ops {
	/* SERVER: a request begins (once a stream). CLIENT: the response head; before it any number of interim ones (status < 200).
	 * `end`: neither data nor trailers follow. The head is the codec's; copy what is kept. */
	void (*on_head)(void *ctx, struct http_stream *s, const struct http_head *head, bool end);
	void (*on_data)(void *ctx, struct http_stream *s, const uint8_t *p, size_t len);
	void (*on_end)(void *ctx, struct http_stream *s, const struct http_head *trailers); /* after data; trailers or NULL */
	void (*on_drain)(void *ctx, struct http_stream *s);             /* there is room again after a short http_stream_send_data */
	/* The stream is over and gone: after both directions ended (HTTP_FAULT_NONE), or cut short. Once for each stream, last. */
	void (*on_close)(void *ctx, struct http_stream *s, enum http_fault fault);
};

struct http_conn_config {
	enum http_version version;
	enum http_role role;
	const char *scheme;       /* "https" or "http": what SERVER requests of HTTP/1 get; "" : as they say (absolute form), else "http" */
	bool proxy;               /* SERVER, HTTP/1: absolute-form targets are accepted (and origin-form too) */
	unsigned max_streams;     /* HTTP/2, at once: what SERVER announces, what CLIENT opens at most; 0: HTTP_STREAMS_MAX */
	size_t connection_window; /* HTTP/2: 0: 1 MiB. Given back at once on receipt: a stalled stream never blocks the others */
	uint64_t max_resets;      /* tolerated within any 10 s; 0: default 200. `now_ns` below is the clock */
	uint64_t (*now_ns)(void); /* NULL: time_monotonic_ns */
};

struct http_conn *http_conn_new(const struct http_conn_config *config, const struct http_conn_ops *ops, void *ctx);
struct http_conn *http_conn_free(struct http_conn *c); /* accepts NULL; on_close is called for streams still there (HTTP_CANCELLED) */
/* Bytes that came. Returns how many were taken: fewer than len when a window is full (call again after credit) or the
 * connection failed (http_conn_fault) – the rest is the caller's to keep. */
size_t http_conn_feed(struct http_conn *c, const void *p, size_t len);
void http_conn_feed_end(struct http_conn *c);            /* the peer's end came (a clean one: TLS close_notify or FIN) */
void http_conn_cut(struct http_conn *c);                 /* the transport broke: streams end as HTTP_TRUNCATED */
/* Appends bytes that shall go, until `out` holds `max`. */
void http_conn_pull(struct http_conn *c, struct buf *out, size_t max);
bool http_conn_has_output(const struct http_conn *c);
bool http_conn_wants_input(const struct http_conn *c);   /* false: reading would only pile bytes up */
enum http_fault http_conn_fault(const struct http_conn *c); /* the whole connection failed; pull its last words, then close */
/* SERVER, HTTP/1, after a fault: a final response where the protocol still allows one (none begun), then the end. 0, or -1:
 * no response can be given; nothing was queued. */
int http_conn_last_words(struct http_conn *c, const struct http_head *head, const void *body, size_t len);
/* No more streams; those at hand finish. HTTP/2: GOAWAY. HTTP/1 SERVER: "connection: close" on the response. */
void http_conn_shutdown(struct http_conn *c);
bool http_conn_finished(const struct http_conn *c);      /* nothing will ever come or go any more: close the transport */
bool http_conn_output_ended(const struct http_conn *c);  /* nothing more will go: the transport's own end may be sent */
/* A message without an end mark of its own was cut: close the transport hard (no close_notify), or it would be taken for
 * whole. */
bool http_conn_broken(const struct http_conn *c);
/* Is it the peer's turn: would silence now be the peer's? (An unanswered request of a SERVER with nothing more to read: no.) */
bool http_conn_awaits(const struct http_conn *c);
bool http_conn_can_open(const struct http_conn *c);      /* CLIENT: another request may be sent now (HTTP/1: idle and kept alive) */
size_t http_conn_streams(const struct http_conn *c);
/* Unread bytes of a peer that turned to another protocol: after an accepted upgrade HTTP/1 carries the raw bytes as on_data /
 * send_data of that stream, so nothing else is needed. */

/* CLIENT: begins a request. NULL + err when not sendable (bad characters, HTTP/1 busy) or refused. `end`: no body. */
struct http_stream *http_stream_open(struct http_conn *c, const struct http_head *head, bool end, struct err *err);
void http_stream_set_ctx(struct http_stream *s, void *ctx);
void *http_stream_ctx(const struct http_stream *s);
struct http_conn *http_stream_conn(const struct http_stream *s);
uint64_t http_stream_id(const struct http_stream *s);   /* for records: counts from 1 on a connection */
/* SERVER: interim (status < 200) heads, then one final. -1: not sendable (nothing was sent) or out of order. */
int http_stream_send_head(struct http_stream *s, const struct http_head *head, bool end, struct err *err);
/* Takes up to what there is room for; returns how much (0: wait for on_drain). */
size_t http_stream_send_data(struct http_stream *s, const void *p, size_t len);
int http_stream_send_end(struct http_stream *s, const struct http_head *trailers); /* trailers may be NULL */
/* Bytes of on_data that were passed on (or dropped). */
void http_stream_credit(struct http_stream *s, size_t len);
/* Cuts it: HTTP/2 RST_STREAM; HTTP/1 the connection can't go on (its message would be taken for whole). on_close follows
 * from the next feed or pull with this fault; no other callback of the stream does. HTTP_FAULT_NONE: SERVER, after its whole
 * response was given: the rest of the request isn't wanted. */
void http_stream_reset(struct http_stream *s, enum http_fault fault);
