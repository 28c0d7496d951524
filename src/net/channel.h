/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A socket, TLS or none, and an HTTP connection, stacked and driven by the loop: socket ⇄ [tls] ⇄ http. The only I/O of the
 * stack.
 */
#pragma once

#include "crypto/tls.h"
#include "event/loop.h"
#include "net/http.h"

struct channel;

struct channel_ops {
	/* TLS finished (also for CLIENT after verification): choose the HTTP version by tls_alpn and give it with channel_start.
	 * Not called without TLS. */
	void (*on_secure)(void *ctx);
	/* The transport is gone or gave up: err says how (ERR_NONE: an orderly end). Streams got their on_close before. The channel
	 * may be freed from inside. */
	void (*on_closed)(void *ctx, const struct err *err);
	/* HTTP failed as a whole (once): the moment for http_conn_last_words. What is waiting is sent, then on_closed follows. May
	 * be NULL. */
	void (*on_fault)(void *ctx, enum http_fault fault);
	/* Bytes of HTTP (inside TLS) that crossed the socket; may be NULL. */
	void (*on_bytes)(void *ctx, size_t in, size_t out);
};

/* Takes fd (non-blocking) and tls (NULL: none). Nothing is read before channel_start without TLS. `early` bytes (may be
 * none) were read from the socket already and come first. */
struct channel *channel_new(struct loop *loop, int fd, struct tls *tls, const void *early, size_t early_len,
	const struct channel_ops *ops, void *ctx);
void channel_start(struct channel *ch, struct http_conn *http); /* takes http */
struct http_conn *channel_http(const struct channel *ch);
struct tls *channel_tls(const struct channel *ch);
/* Something was given to the HTTP connection outside its own callbacks (send, credit, reset): moves it along, from the loop. */
void channel_kick(struct channel *ch);
/* Ends it after what is waiting was sent (TLS close_notify, FIN), within `linger_ns`. on_closed follows. */
void channel_finish(struct channel *ch, uint64_t linger_ns);
struct channel *channel_free(struct channel *ch); /* at once; accepts NULL; no on_closed */
/* Nothing came for this long although something was awaited: on_closed with ERR_TIMEOUT. 0: never. */
void channel_set_idle(struct channel *ch, uint64_t idle_ns);
