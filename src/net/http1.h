/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1 requests, read strictly (RFC 9112 without its leniencies) and written anew. What two servers could read in two ways is
 * malformed here: bare CR or LF, folded lines, space before the colon, repeated or conflicting framing, unknown transfer
 * codings, chunk extensions, names that differ from a framing header by an underscore. A request that was judged is serialised
 * from the parsed form; its original bytes are never forwarded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define HTTP1_HEAD_MAX (64u * 1024u)
#define HTTP1_HEADERS_MAX 256u
#define HTTP1_METHOD_MAX 32u
#define HTTP1_TRAILER_MAX (8u * 1024u)

/* Bytes in place: valid as long as the head they were parsed from. */
struct http1_text {
	const char *p;
	size_t len;
};

struct http1_header {
	struct http1_text name, value; /* value without surrounding white space */
};

enum http1_form { HTTP1_ORIGIN, HTTP1_ABSOLUTE, HTTP1_AUTHORITY, HTTP1_ASTERISK };
enum http1_framing { HTTP1_NO_BODY, HTTP1_LENGTH, HTTP1_CHUNKED };

enum http1_fault {
	HTTP1_FAULT_NONE = 0,
	HTTP1_FAULT_MALFORMED,
	HTTP1_FAULT_VERSION, /* something that calls itself HTTP, but neither 1.0 nor 1.1 */
	HTTP1_FAULT_TOO_LARGE, /* the head, or its number of header lines */
};

struct http1_request {
	struct http1_text method;
	struct http1_text target;    /* as sent */
	struct http1_text authority; /* AUTHORITY: all of the target; ABSOLUTE: "host[:port]"; else empty */
	struct http1_text path;      /* for an origin-form request line: path and query, or "*"; empty for AUTHORITY */
	enum http1_form form;
	unsigned minor;              /* HTTP/1.minor, 0 or 1 */
	struct http1_header headers[HTTP1_HEADERS_MAX];
	size_t n_headers;
	bool has_host;
	struct http1_text host;
	enum http1_framing framing;
	uint64_t length;             /* HTTP1_LENGTH */
	bool websocket;              /* a well-formed request to upgrade to WebSocket, the only upgrade that is passed on */
};

/* Where the head ends (after the empty line). 1 with *ret_len; 0 when more bytes are needed; -1 when the lines are malformed
 * already (a bare LF, a NUL, longer than HTTP1_HEAD_MAX). `from` is where an earlier call on a shorter prefix stopped (its
 * length then), or 0. */
int http1_head_find(const void *data, size_t len, size_t from, size_t *ret_len);
/* The same for who tells the two failures apart. */
int http1_head_scan(const void *data, size_t len, size_t from, size_t *ret_len, enum http1_fault *ret_fault);
/* Exactly one whole head. 0, or -1 with *ret_fault and a sentence; *ret is undefined then. */
int http1_request_parse(const void *data, size_t len, struct http1_request *ret, enum http1_fault *ret_fault, struct err *err);
/* The request as it goes to the server: origin-form, the given Host, its own framing, hop-by-hop headers taken out,
 * "Connection: close" (or the WebSocket upgrade): one request a connection. */
int http1_request_serialise(const struct http1_request *r, const char *host, struct buf *out);
bool http1_text_is(struct http1_text t, const char *s); /* ASCII case ignored */

/* ---- bodies ---- */

struct http1_body {
	enum http1_framing framing;
	uint64_t left;      /* of the body, or of the chunk */
	unsigned state;     /* of the chunk parser */
	unsigned digits;    /* of the chunk size */
	size_t trailer;     /* bytes of trailers so far */
	size_t line;        /* bytes of the trailer line so far */
	bool colon;         /* the trailer line has its colon */
	bool done;
	struct buf *trailers; /* where checked trailer lines go, CRLF and all; NULL: nowhere. Its ceiling is not reached before HTTP1_TRAILER_MAX */
};

void http1_body_init(struct http1_body *b, const struct http1_request *r);
void http1_body_start(struct http1_body *b, enum http1_framing framing, uint64_t length);
/* Takes bytes of the body up to the end of one run of content. *ret_used says how many were the body's; *ret_content is the
 * run among them (empty: only framing). 0, or -1: malformed. Call again until len is used up or the body is done. */
int http1_body_next(struct http1_body *b, const void *data, size_t len, size_t *ret_used, struct http1_text *ret_content);
/* Takes bytes of the body and appends them, framed anew, to `out`. *ret_used says how many were the body's: less than len when
 * the body is over. Trailers are checked and left out. 0, or -1: malformed (or no room: `out` needs len + 64 at worst). */
int http1_body_feed(struct http1_body *b, const void *data, size_t len, size_t *ret_used, struct buf *out);

/* ---- responses, as far as an upgrade depends on them ---- */

enum http1_upgrade { HTTP1_UPGRADE_WAITING = 0, HTTP1_UPGRADE_YES, HTTP1_UPGRADE_NO };

struct http1_watch {
	enum http1_upgrade result;
	char status[16]; /* start of the status line */
	size_t n_status, n_line, n_total;
	bool in_headers;
};

/* Watches the bytes a server sends (they are relayed as they are) until its final status is known: 101 or not. Interim 1xx
 * heads are skipped. */
enum http1_upgrade http1_watch_feed(struct http1_watch *w, const void *data, size_t len);
