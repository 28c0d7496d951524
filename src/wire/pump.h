/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins a descriptor (or a pair) with a mux stream and copies both ways with back-pressure, half-closes and bounded memory.
 */
#pragma once

#include "wire/mux.h"

struct pump;

struct pump_ops {
	/* Looks at bytes that came from the stream before they are written to wfd. Returns how many of them may be written now
	 * (0 … len); when less than len, the pump holds the rest until pump_release(). While bytes are held, later ones are
	 * shown too but held behind them, whatever is returned. May call pump_release and pump_free. May be NULL: everything
	 * passes at once. */
	size_t (*filter)(void *ctx, const uint8_t *data, size_t len);
	/* The peer's EOF has come and every byte before it was written to wfd, which is closed next. Must not free the pump.
	 * May be NULL. */
	void (*on_input_end)(void *ctx);
	/* Both directions are over (err tells the first failure, if any), or it can't go on. A failed write to wfd drops what
	 * was meant for it and ends that direction only: what rfd still says is delivered first. Called once, from the loop,
	 * never from inside a call of the owner. The pump is freed by the owner, from inside if it likes. */
	void (*on_done)(void *ctx, const struct err *err);
};

/* fd → stream when rfd ≥ 0, stream → fd when wfd ≥ 0 (they may be equal; with a socket, half-closes become shutdown(2)).
 * Descriptors and stream are owned by the pump. A direction without descriptor counts as over: with rfd = -1 EOF is sent at
 * once; with wfd = -1 arriving bytes are dropped and credited, and the peer's EOF isn't waited for.
 * Sockets are used with MSG_DONTWAIT, other descriptors become non-blocking: for a description shared with strangers (inherited
 * stdio) pass fd_dup_nonblock(). NULL + err on failure: then the descriptors stay the caller's. */
struct pump *pump_new(struct loop *loop, struct mux *mux, uint32_t stream_id, int rfd, int wfd, const struct pump_ops *ops,
		      void *ctx, struct err *err);
void pump_free(struct pump *p); /* accepts NULL; closes fds and stream (RESET unless ended); before mux_free */
/* Lets `len` more of the held bytes through (after a filter returned less). */
void pump_release(struct pump *p, size_t len);
/* From inside the filter: of the bytes that it is shown only the first `len` count, and they are the last. The rest and what still
 * comes is dropped; once these have passed, the direction is over. Whoever reads at wfd isn't told of an orderly end. */
void pump_cut(struct pump *p, size_t len);
/* Treats rfd as if it had reached its end: what was read already is still sent, then EOF. */
void pump_stop_reading(struct pump *p);
/* Treats wfd as if nobody read there any more: what was meant for it is dropped, and what still comes. Without on_input_end. */
void pump_stop_writing(struct pump *p);
/* As pump_stop_reading, but what lies in rfd at this moment (in a pipe or terminal) is still read and sent: for a writer that
 * has ended while others keep rfd open. Whatever these write from now on is not waited for. */
void pump_drain(struct pump *p);
/* Totals so far. */
uint64_t pump_bytes_in(const struct pump *p);  /* stream → fd, as received */
uint64_t pump_bytes_out(const struct pump *p); /* fd → stream */
