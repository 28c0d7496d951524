/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins a descriptor (or a pair) with a mux stream and copies both ways with back-pressure, half-closes and bounded memory.
 */
#pragma once

#include "wire/mux.h"

struct pump;

struct pump_ops {
	/* Looks at bytes that came from the stream before they are written to wfd. Returns how many of them may be written now (0 … len);
	 * when less than len, the pump holds the rest until pump_release(). May be NULL: everything passes at once. */
	size_t (*filter)(void *ctx, const uint8_t *data, size_t len);
	/* Both directions are over, or one failed (err != NULL). The pump is freed by the caller, from inside if it likes. */
	void (*on_done)(void *ctx, const struct err *err);
};

/* fd → stream when rfd ≥ 0, stream → fd when wfd ≥ 0 (they may be equal; with a socket, half-closes become shutdown(2)). Descriptors and
 * stream are owned by the pump. A direction without descriptor counts as over: with rfd = -1 EOF is sent at once; with wfd = -1 arriving
 * bytes are dropped and credited. */
struct pump *pump_new(struct loop *loop, struct mux *mux, uint32_t stream_id, int rfd, int wfd, const struct pump_ops *ops, void *ctx, struct err *err);
void pump_free(struct pump *p); /* closes fds and stream (RESET unless ended) */
/* Lets `len` more of the held bytes through (after a filter returned less). */
void pump_release(struct pump *p, size_t len);
/* Treats rfd as if it had reached its end: what was read already is still sent, then EOF. */
void pump_stop_reading(struct pump *p);
/* Totals so far. */
uint64_t pump_bytes_in(const struct pump *p);  /* stream → fd, as received */
uint64_t pump_bytes_out(const struct pump *p); /* fd → stream */
