/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request and its response between two HTTP connections, in either half: a stream that a client opened on our SERVER connection (near) is joined with one that we
 * open on a CLIENT connection (far). Bytes pass through the owner's filters, in both directions at once, with back-pressure: at most HTTP_WINDOW is held each way.
 *
 *   near (server role)                           far (client role)
 *   on_head → relay_new → owner judges … → relay_connect (opens the far stream)
 *   data ──up──► filter ──────────────────────► data
 *   head, data ◄──────────────── filter ◄──down── head, data
 * The owner gives both connections' callbacks to the relay: relay_near_* and relay_far_* below are complete http_conn_ops members.
 */
#pragma once

#include "net/http.h"
#include "policy/reason.h"

struct relay;

/* Filters append to `out` what shall go on; NULL members pass everything. Non-zero: the relay is refused with that reason (before the response head: on_refused is asked for the
 * words; after: the near stream is reset). They may call relay_refuse's kin but must not free the relay. */
struct relay_ops {
	enum reason (*up_data)(void *ctx, const uint8_t *p, size_t len, struct buf *out);
	enum reason (*up_end)(void *ctx, struct buf *out, struct http_head *trailers); /* trailers may be NULL; may be changed */
	enum reason (*down_head)(void *ctx, struct http_head *head);                   /* a copy: may be changed; interim ones too */
	enum reason (*down_data)(void *ctx, const uint8_t *p, size_t len, struct buf *out);
	/* A filter that makes more of its bytes than it was given (unpacking) keeps the rest and is asked for it when `out` was passed on: it appends some and says
	 * whether more is waiting. Until then the sender gets no credit. May be NULL. */
	enum reason (*down_more)(void *ctx, struct buf *out, bool *ret_waiting);
	enum reason (*down_end)(void *ctx, struct buf *out, struct http_head *trailers);
	/* It is refused, whatever part of it was answered already (once). May be NULL. */
	void (*on_reason)(void *ctx, enum reason reason);
	/* A refusal before the response head: fills head and body of the answer to the near side. */
	void (*on_refused)(void *ctx, enum reason reason, struct http_head *head, struct buf *body);
	/* Bytes of bodies that went on, after filtering; may be NULL. */
	void (*on_moved)(void *ctx, size_t up, size_t down);
	/* Over, both streams gone; `reason` REASON_NONE: complete. The relay is freed on return. */
	void (*on_over)(void *ctx, enum reason reason);
};

/* From the near connection's on_head. Takes the stream's ctx. `end`: the request has no body. */
struct relay *relay_new(struct http_stream *near, bool end, const struct relay_ops *ops, void *ctx);
/* Opens the far stream with `head` and begins to move. 0; -1: not sendable (the owner refuses then). `kick` is called whenever the other connection was given something outside
 * its own callbacks. */
int relay_connect(struct relay *r, struct http_conn *far, const struct http_head *head, void (*kick_near)(void *), void (*kick_far)(void *), void *kick_ctx,
	struct err *err);
bool relay_connected(const struct relay *r);
/* From the far connection's on_close, instead of relay_far_close: that stream is forgotten, and relay_connect may be called once more. For a request without a body,
 * before anything of its answer came. */
void relay_disconnect(struct relay *r);
void *relay_ctx(const struct relay *r);
bool relay_answered(const struct relay *r);      /* the final response head went to the near side */
/* Refuses: words if the head was not sent yet, else a reset. The far stream is reset. on_over follows from the loop. */
void relay_refuse(struct relay *r, enum reason reason);
enum reason relay_reason(const struct relay *r);
unsigned relay_status(const struct relay *r);    /* of the final response head; 0: none yet */
uint64_t relay_bytes_up(const struct relay *r), relay_bytes_down(const struct relay *r);

/* Members for the two connections' http_conn_ops. The far connection's on_head is relay_far_head as well; near's is the owner's. Streams without a relay (ctx NULL) are ignored. */
void relay_near_data(void *ctx, struct http_stream *s, const uint8_t *p, size_t len);
void relay_near_end(void *ctx, struct http_stream *s, const struct http_head *trailers);
void relay_near_drain(void *ctx, struct http_stream *s);
void relay_near_close(void *ctx, struct http_stream *s, enum http_fault fault);
void relay_far_head(void *ctx, struct http_stream *s, const struct http_head *head, bool end);
void relay_far_data(void *ctx, struct http_stream *s, const uint8_t *p, size_t len);
void relay_far_end(void *ctx, struct http_stream *s, const struct http_head *trailers);
void relay_far_drain(void *ctx, struct http_stream *s);
void relay_far_close(void *ctx, struct http_stream *s, enum http_fault fault);
