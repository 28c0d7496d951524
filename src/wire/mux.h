/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one pipe: a byte stream (socketpair, stdin+stdout, virtio-serial port) that carries control messages and any number of
 * flow-controlled byte streams, opened from either side. The format is written down in docs/wire.md.
 *
 * Frame:  u8 type | u8 zero[3] | u32 stream | u32 length | payload[length]       (big-endian, length ≤ MUX_PAYLOAD_MAX)
 *   MESSAGE  stream 0; payload: u16 message type, body. Length ≤ MUX_MESSAGE_MAX
 *   DATA     bytes of a stream; never more than the receiver's credit
 *   EOF      the sender of this frame writes no more on the stream (length 0)
 *   RESET    both directions end at once; payload u32 reason (enum mux_reset)
 *   CREDIT   payload u32: the receiver of DATA has consumed that many bytes
 * MESSAGE, CREDIT and RESET go ahead of queued DATA (a RESET after the sender's EOF keeps its place).
 *
 * Stream ids: the host allocates odd ones, the box even ones, each side strictly rising, never reused. Which id means what is
 * said by the control message that names it (wire/messages.h); both ends then call mux_stream_open with that id. Frames for a
 * stream that was already closed here are dropped; frames for an id never opened are a protocol error, which ends the pipe.
 *
 * Both ends treat the other as hostile: every ceiling below holds against any sequence of bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "event/loop.h"

#define MUX_HEADER_SIZE 12u
#define MUX_PAYLOAD_MAX (64u * 1024u)
#define MUX_MESSAGE_MAX (64u * 1024u - 2u)
#define MUX_WINDOW (256u * 1024u)      /* credit of a fresh stream, each direction */
#define MUX_STREAMS_MAX 1024u          /* open at once, for each opener; more are refused */
#define MUX_QUEUE_MAX (1024u * 1024u)  /* control bytes waiting to be written; more is ERR_LIMIT: the peer doesn't read */

enum mux_side { MUX_HOST, MUX_BOX };

enum mux_reset {
	MUX_RESET_CANCEL = 1,   /* the opener no longer wants it */
	MUX_RESET_REFUSED,      /* policy or limit */
	MUX_RESET_IO,           /* the descriptor behind it failed */
	MUX_RESET_LIMIT,
};

struct mux;
struct mux_stream;

struct mux_ops {
	/* A control message. `body` is valid during the call. Return -1 (with err) to end the pipe with a protocol error. */
	int (*on_message)(void *ctx, uint16_t type, const uint8_t *body, size_t len, struct err *err);
	/* The pipe is over: err->code is ERR_CLOSED at a clean end, ERR_PROTOCOL or ERR_SYSTEM else. Called once; all streams
	 * have had on_reset before. The mux may be freed from inside. */
	void (*on_closed)(void *ctx, const struct err *err);
};

struct mux_stream_ops {
	/* `data` is valid during the call. The stream owes the peer credit for `len` until mux_stream_consumed(). */
	void (*on_data)(void *ctx, const uint8_t *data, size_t len);
	void (*on_eof)(void *ctx);
	/* The stream is gone, from the peer or with the pipe; the handle is invalid from here on. */
	void (*on_reset)(void *ctx, uint32_t reason);
	/* Room to send again after mux_stream_write had taken less than offered (or mux_stream_reserve had given NULL). */
	void (*on_writable)(void *ctx);
};

/* rfd and wfd may be the same descriptor; both become non-blocking and are owned (closed by mux_free). Never NULL: what is
 * wrong with the descriptors arrives as on_closed. */
struct mux *mux_new(struct loop *loop, int rfd, int wfd, enum mux_side side, const struct mux_ops *ops, void *ctx);
/* Accepts NULL; no callbacks are made. What is queued is written as far as the descriptor takes it at once. Free the users of
 * streams (pumps) before: their handles end here. */
void mux_free(struct mux *mux);

/* Queues a control message; it is written when the callbacks at hand are through. 0 or -1 (ERR_LIMIT, ERR_CLOSED). */
int mux_send(struct mux *mux, uint16_t type, const void *body, size_t len, struct err *err);

/* A fresh id of our side. */
uint32_t mux_stream_allocate(struct mux *mux);
/* Declares a stream as open: for our own id right after allocation, for the peer's id while handling the message that names it.
 * The id is checked for side, order and number (-> NULL + err, ERR_PROTOCOL or ERR_LIMIT). With ERR_LIMIT the peer's stream was
 * refused by a RESET (MUX_RESET_LIMIT), and the pipe may go on. To refuse a stream for another reason, open it and close it: an
 * id that was named but never opened would make the peer's first data a protocol error. */
struct mux_stream *mux_stream_open(struct mux *mux, uint32_t id, const struct mux_stream_ops *ops, void *ctx, struct err *err);
uint32_t mux_stream_id(const struct mux_stream *s);
/* How many bytes mux_stream_write would take now: 0 when credit or the output queue is exhausted. */
size_t mux_stream_room(const struct mux_stream *s);
/* Takes up to len bytes, bounded by room; returns how many. */
size_t mux_stream_write(struct mux_stream *s, const void *data, size_t len);
/* The same without a copy: where to put up to *ret_len bytes, or NULL when there is no room; then mux_stream_commit with what
 * was put there (0 is fine). Nothing else may be called on the mux in between. */
void *mux_stream_reserve(struct mux_stream *s, size_t *ret_len);
void mux_stream_commit(struct mux_stream *s, size_t len);
void mux_stream_eof(struct mux_stream *s);
void mux_stream_consumed(struct mux_stream *s, size_t len);
/* Sends RESET (unless both directions already saw EOF) and forgets the stream; no callback is made. A RESET overtakes queued
 * data, except after mux_stream_eof: then the peer gets all data and the EOF first. */
void mux_stream_close(struct mux_stream *s, uint32_t reason);
/* True when EOF went both ways: the stream can be closed without RESET. */
bool mux_stream_ended(const struct mux_stream *s);

/* True when nothing waits to be written to the pipe. */
bool mux_flushed(const struct mux *mux);
/* Bytes written and read on the pipe so far; for idle detection. */
uint64_t mux_activity(const struct mux *mux);
