/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the multiplexer share: mux.c (life of pipe and streams), mux-in.c (bytes from the peer), mux-out.c (bytes
 * to it). Included by these only.
 *
 * Callbacks may call anything, mux_free included. So whoever makes a callback holds the mux (mux_hold … mux_release) and looks
 * at mux_is_over() afterwards; stream objects must not be touched after a callback.
 */
#pragma once

#include <sys/queue.h>

#include "base/buf.h"
#include "wire/mux.h"

enum mux_frame { MUX_FRAME_MESSAGE = 1, MUX_FRAME_DATA, MUX_FRAME_EOF, MUX_FRAME_RESET, MUX_FRAME_CREDIT };

#define MUX_BUCKETS 512u
#define MUX_READ_SIZE (256u * 1024u)
#define MUX_IN_CAPACITY (MUX_READ_SIZE + MUX_HEADER_SIZE + MUX_PAYLOAD_MAX)
#define MUX_DATA_MAX (512u * 1024u)                /* queued DATA frames, headers included */
#define MUX_DATA_CAPACITY (MUX_DATA_MAX + 64u * 1024u) /* the rest is for EOF and RESET, which must not wait for room */
#define MUX_CREDIT_STEP (MUX_WINDOW / 4u)          /* consumed bytes are reported in portions of at least this */

struct mux_stream {
	struct mux *mux;
	const struct mux_stream_ops *ops;
	void *ctx;
	uint32_t id;
	uint32_t send_credit;    /* what we may still queue */
	uint32_t receive_credit; /* what the peer may still send */
	uint32_t unconsumed;     /* delivered, not yet consumed */
	uint32_t consumed;       /* consumed, not yet reported; with the two above this makes MUX_WINDOW */
	bool eof_sent, eof_received;
	bool wants_room;         /* owed an on_writable */
	bool in_waiting, in_crediting;
	struct mux_stream *next_in_bucket;
	/* wants_room and has credit: waits for the queue to drain, first come first served */
	TAILQ_ENTRY(mux_stream) waiting;
	TAILQ_ENTRY(mux_stream) crediting; /* has consumed enough for a CREDIT frame */
};

TAILQ_HEAD(mux_stream_list, mux_stream);

struct mux {
	struct loop *loop;
	const struct mux_ops *ops;
	void *ctx;
	enum mux_side side;
	int rfd, wfd;
	bool wfd_is_socket;
	struct loop_io *read_io, *write_io; /* write_io is NULL when one descriptor does both */
	unsigned held;       /* callbacks on the stack */
	bool freed;          /* mux_free was called while held */
	bool over;           /* on_closed was called */
	bool failed;         /* `failure` says why; on_closed comes from the loop */
	bool write_is_dead;  /* the peer reads no more; what it wrote before is still taken */
	bool write_blocked;  /* waiting for LOOP_WRITE */
	bool flush_deferred;
	struct err failure;
	uint64_t activity;

	uint8_t *in;
	size_t in_len;

	struct buf control;  /* MESSAGE, RESET and CREDIT frames: they go ahead of data */
	size_t control_head; /* written already */
	uint8_t *data;       /* DATA, EOF and late RESET frames, in order */
	size_t data_head, data_tail;
	size_t frame_left;   /* of the data frame that is partly written: nothing may come in between */

	struct mux_stream *buckets[MUX_BUCKETS];
	uint32_t next_id;
	uint32_t last_opened[2]; /* by enum mux_side */
	uint32_t n_open[2];
	struct mux_stream_list waiting, crediting;
};

static inline bool mux_is_over(const struct mux *mux) { return mux->freed || mux->over || mux->failed; }
static inline void mux_store_u32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (24 - 8 * i));
}
static inline enum mux_side mux_opener(uint32_t id) { return id & 1 ? MUX_HOST : MUX_BOX; }

/* mux.c */
void mux_hold(struct mux *mux);
void mux_release(struct mux *mux); /* `mux` may be gone afterwards */
/* Records the first failure and ends the pipe from the loop. Returns -1. */
int mux_fail(struct mux *mux, const struct err *err);
/* Ends the pipe now: on_reset for every stream, then on_closed. Only while held, as the last thing. */
void mux_end(struct mux *mux, const struct err *err);
struct mux_stream *mux_find(const struct mux *mux, uint32_t id);
/* Takes the stream out of all lists and frees it. */
void mux_forget(struct mux_stream *s);

/* mux-in.c */
void mux_on_readable(struct mux *mux);
/* The peer reads no more: takes what it had written before, then ends the pipe. */
void mux_drain_and_end(struct mux *mux);

/* mux-out.c */
int mux_queue_control(struct mux *mux, enum mux_frame type, uint32_t stream, const void *a, size_t a_len, const void *b,
		      size_t b_len, struct err *err);
/* RESET, CREDIT; a failure ends the pipe. */
void mux_queue_u32(struct mux *mux, enum mux_frame type, uint32_t stream, uint32_t value);
/* In order with the data of the stream: EOF, or RESET after it. */
void mux_queue_in_order(struct mux *mux, enum mux_frame type, uint32_t stream, const void *payload, size_t len);
void mux_schedule_flush(struct mux *mux);
void mux_stream_wait(struct mux_stream *s);       /* on_writable is owed, and credit is there */
void mux_on_writable(struct mux *mux);
void mux_write_out(struct mux *mux);
void mux_flush_now(void *ctx);
