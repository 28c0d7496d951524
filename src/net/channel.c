/* SPDX-License-Identifier: Apache-2.0 */
/*
 * socket ⇄ [tls] ⇄ http. Bytes come through one shared buffer and go through another; a channel owns memory only for what the
 * other side of it doesn't take at the moment.
 */
#include "net/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "net/http-codec.h"

#define PIECE (64u * 1024u)                 /* read, or sent, at once */
#define CIPHER_MAX (4u * PIECE)
#define OUTPUT_CEILING HTTP_OUTPUT_MAX      /* nothing is read beyond */
#define INPUT_MAX (2u * PIECE)
#define ROUNDS 8u                           /* before others get their turn */
#define DEFAULT_LINGER (2 * NS_PER_S)

struct channel {
	struct loop *loop;
	struct loop_io *io;
	struct loop_timer *timer;          /* idle, then linger */
	struct tls *tls;
	struct http_conn *http;
	struct channel_ops ops;
	void *ctx;
	struct http_queue in;              /* HTTP's bytes that it hasn't taken */
	struct http_queue out;             /* the socket's bytes that it hasn't taken */
	uint64_t idle_ns, last_ns;
	int fd;
	unsigned depth;                    /* of our own frames on the stack */
	bool kicked, secure;
	bool tls_more;                     /* tls_read was not asked to the end */
	bool eof, end_told;                /* the peer's end came; HTTP knows */
	bool fault_told;
	bool finishing, shut;              /* no more input; our own end was sent */
	bool closed, doomed;
};

static uint8_t input[PIECE], plain[PIECE];
static struct buf outgoing = { .max = PIECE }, cipher = { .max = CIPHER_MAX };

/* ---- the end ---- */

static void destroy(struct channel *ch)
{
	http_conn_free(ch->http);
	tls_free(ch->tls);
	http_queue_free(&ch->in);
	http_queue_free(&ch->out);
	mem_free(ch);
}

static void on_kick(void *ctx);

static void let_go(struct channel *ch)
{
	ch->closed = true;
	loop_defer_cancel(ch->loop, on_kick, ch);
	ch->io = loop_io_remove(ch->io);
	ch->timer = loop_timer_free(ch->timer);
	fd_close(&ch->fd);
}

struct channel *channel_free(struct channel *ch)
{
	if (!ch || ch->doomed)
		return NULL;
	ch->doomed = true;
	if (!ch->closed)
		let_go(ch);
	if (ch->http)
		http_conn_abandon(ch->http);
	if (ch->depth == 0)
		destroy(ch);
	return NULL;
}

static void enter(struct channel *ch) { ch->depth++; }

static void leave(struct channel *ch)
{
	if (--ch->depth == 0 && ch->doomed)
		destroy(ch);
}

static void close_hard(struct channel *ch)
{
	struct linger hard = { .l_onoff = 1 };
	/* No effect on what isn't TCP: there the missing close_notify says it. */
	setsockopt(ch->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
}

static void close_with(struct channel *ch, const struct err *err)
{
	if (ch->closed)
		return;
	if (ch->http && http_conn_broken(ch->http))
		close_hard(ch);
	let_go(ch);
	if (ch->http)
		http_conn_cut(ch->http);
	if (!ch->doomed)
		ch->ops.on_closed(ch->ctx, err);
}

static const char *fault_text(enum http_fault fault)
{
	switch (fault) {
	case HTTP_FAULT_NONE: break;
	case HTTP_MALFORMED: return "the peer broke the rules of HTTP";
	case HTTP_BAD_VERSION: return "the peer speaks another version of HTTP";
	case HTTP_TOO_LARGE: return "the peer sent a head that is too large";
	case HTTP_ABUSE: return "the peer flooded the connection";
	case HTTP_REFUSED: return "the peer takes no more requests";
	case HTTP_CANCELLED: return "the peer gave the exchange up";
	case HTTP_TRUNCATED: return "the connection ended inside a message";
	}
	return "the connection ended";
}

static void close_orderly(struct channel *ch)
{
	struct err err = ERR_INIT;
	enum http_fault fault = ch->http ? http_conn_fault(ch->http) : HTTP_FAULT_NONE;
	if (fault)
		err_set(&err, fault == HTTP_TRUNCATED ? ERR_CLOSED : ERR_PROTOCOL, "%s", fault_text(fault));
	close_with(ch, &err);
}

/* ---- the timer ---- */

static bool awaiting(const struct channel *ch)
{
	return http_queue_len(&ch->out) > 0 || !ch->http || (http_conn_awaits(ch->http) && http_conn_wants_input(ch->http));
}

static void on_timer(void *ctx)
{
	struct channel *ch = ctx;
	struct err err = ERR_INIT;
	enter(ch);
	uint64_t now = time_monotonic_ns(), silent = now - ch->last_ns;
	if (ch->finishing) {
		close_orderly(ch);
	} else if (!awaiting(ch)) {
		ch->last_ns = now; /* not the peer's silence */
		loop_timer_set(ch->timer, ch->idle_ns, 0);
	} else if (silent < ch->idle_ns) {
		loop_timer_set(ch->timer, ch->idle_ns - silent, 0);
	} else {
		err_set(&err, ERR_TIMEOUT, "nothing came for %llu s", (unsigned long long)(ch->idle_ns / NS_PER_S));
		close_with(ch, &err);
	}
	leave(ch);
}

static struct loop_timer *timer(struct channel *ch)
{
	if (!ch->timer)
		ch->timer = loop_timer_new(ch->loop, on_timer, ch);
	return ch->timer;
}

void channel_set_idle(struct channel *ch, uint64_t idle_ns)
{
	ch->idle_ns = idle_ns;
	ch->last_ns = time_monotonic_ns();
	if (ch->closed || ch->finishing)
		return;
	if (idle_ns)
		loop_timer_set(timer(ch), idle_ns, 0);
	else if (ch->timer)
		loop_timer_stop(ch->timer);
}

static void seen(struct channel *ch)
{
	if (ch->idle_ns)
		ch->last_ns = time_monotonic_ns();
}

/* ---- output ---- */

/* 0 or more sent, -1: closed. */
static ssize_t send_now(struct channel *ch, const void *p, size_t len)
{
	ssize_t n = send(ch->fd, p, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n >= 0) {
		seen(ch);
		return n;
	}
	if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ENOBUFS)
		return 0;
	struct err err = ERR_INIT;
	err_sys(&err, errno, "cannot send to the peer");
	close_with(ch, &err);
	return -1;
}

static void transmit(struct channel *ch, const uint8_t *p, size_t len)
{
	ssize_t n = http_queue_len(&ch->out) ? 0 : send_now(ch, p, len);
	if (n >= 0 && (size_t)n < len && http_queue_add(&ch->out, p + n, len - (size_t)n) < 0) {
		struct err err = ERR_INIT;
		err_set(&err, ERR_LIMIT, "more waits to be sent than there is room for");
		close_with(ch, &err);
	}
}

static bool flush(struct channel *ch)
{
	while (!ch->closed && http_queue_len(&ch->out)) {
		ssize_t n = send_now(ch, ch->out.buf.data + ch->out.at, http_queue_len(&ch->out));
		if (n <= 0)
			return false;
		http_queue_drop(&ch->out, (size_t)n);
	}
	return !ch->closed;
}

/* What TLS has for the peer. */
static bool transmit_tls(struct channel *ch)
{
	if (ch->closed || !tls_output_pending(ch->tls))
		return false;
	buf_clear(&cipher);
	if (tls_pull(ch->tls, &cipher, CIPHER_MAX) < 0 || cipher.len == 0)
		return false;
	transmit(ch, cipher.data, cipher.len);
	return true;
}

static void fail_tls(struct channel *ch)
{
	struct err err = *tls_error(ch->tls);
	transmit_tls(ch); /* the alert */
	close_with(ch, &err);
}

static bool produce(struct channel *ch)
{
	if (ch->tls && transmit_tls(ch))
		return true;
	if (ch->closed || !ch->http || !http_conn_has_output(ch->http))
		return false;
	buf_clear(&outgoing);
	http_conn_pull(ch->http, &outgoing, PIECE);
	if (ch->closed || outgoing.len == 0)
		return false;
	if (ch->ops.on_bytes)
		ch->ops.on_bytes(ch->ctx, 0, outgoing.len);
	if (ch->closed)
		return false;
	if (!ch->tls)
		transmit(ch, outgoing.data, outgoing.len);
	else if (tls_write(ch->tls, outgoing.data, outgoing.len) < 0)
		fail_tls(ch);
	else
		transmit_tls(ch);
	mem_wipe(outgoing.data, outgoing.len);
	return true;
}

/* ---- input ---- */

/* HTTP takes what it can; the rest waits. */
static void give(struct channel *ch, const uint8_t *p, size_t len)
{
	if (ch->ops.on_bytes)
		ch->ops.on_bytes(ch->ctx, len, 0);
	if (ch->closed)
		return;
	size_t n = http_queue_len(&ch->in) ? 0 : http_conn_feed(ch->http, p, len);
	if (!ch->closed && n < len && !http_conn_fault(ch->http) && http_queue_add(&ch->in, p + n, len - n) < 0) {
		struct err err = ERR_INIT;
		err_set(&err, ERR_LIMIT, "more came than there is room for");
		close_with(ch, &err);
	}
}

static bool feed_waiting(struct channel *ch)
{
	if (ch->closed || !http_queue_len(&ch->in))
		return false;
	size_t n = http_conn_feed(ch->http, ch->in.buf.data + ch->in.at, http_queue_len(&ch->in));
	if (n && !ch->closed)
		http_queue_drop(&ch->in, n);
	return n > 0;
}

static bool read_tls(struct channel *ch)
{
	bool any = false;
	if (!ch->http || ch->finishing)
		return false;
	while (!ch->closed && http_queue_len(&ch->in) < PIECE && !http_conn_fault(ch->http)) {
		size_t n = tls_read(ch->tls, plain, sizeof(plain));
		ch->tls_more = n > 0;
		if (n == 0)
			break;
		any = true;
		give(ch, plain, n);
		mem_wipe(plain, n); /* an answer may hold what is taken out of it later */
	}
	return any;
}

/* HTTP is told of the peer's end after the last byte. */
static void tell_end(struct channel *ch)
{
	bool ended = ch->tls ? tls_state(ch->tls) == TLS_ENDED : ch->eof;
	/* An end without close_notify cuts what is open; a connection that lies idle loses nothing by it. */
	bool idle_cut = ch->tls && ch->eof && tls_state(ch->tls) == TLS_FAILED && http_conn_streams(ch->http) == 0;
	/* Bytes that HTTP would take but for the message before them don't hold the end back: who ended waits for no answer. */
	bool held = http_queue_len(&ch->in) && !http_conn_wants_input(ch->http);
	if (ch->end_told || ch->tls_more || held || (!ended && !idle_cut))
		return;
	ch->end_told = true;
	http_conn_feed_end(ch->http);
	if (idle_cut && !ch->closed)
		close_orderly(ch);
}

static bool move_tls(struct channel *ch)
{
	bool any = false;
	if (tls_state(ch->tls) != TLS_HANDSHAKE && tls_state(ch->tls) != TLS_FAILED && !ch->secure) {
		ch->secure = any = true;
		ch->ops.on_secure(ch->ctx);
	}
	if (ch->closed)
		return false;
	any |= read_tls(ch);
	if (!ch->closed && tls_state(ch->tls) == TLS_FAILED && !ch->tls_more && !ch->finishing) {
		if (ch->http)
			tell_end(ch);
		if (!ch->closed)
			fail_tls(ch);
	}
	return any;
}

static void take(struct channel *ch, size_t n)
{
	seen(ch);
	if (ch->finishing)
		return; /* read only so that the peer's end is seen */
	if (ch->tls)
		tls_feed(ch->tls, input, n); /* its state tells the rest */
	else
		give(ch, input, n);
}

static void receive(struct channel *ch)
{
	ssize_t n = recv(ch->fd, input, sizeof(input), MSG_DONTWAIT);
	if (n > 0) {
		take(ch, (size_t)n);
	} else if (n == 0) {
		ch->eof = true;
		if (ch->tls && !ch->finishing)
			tls_feed_end(ch->tls);
	} else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
		struct err err = ERR_INIT;
		err_sys(&err, errno, "cannot read from the peer");
		close_with(ch, &err);
	}
}

/* ---- moving along ---- */

static void tell_fault(struct channel *ch)
{
	enum http_fault fault = http_conn_fault(ch->http);
	if (!fault || ch->fault_told)
		return;
	ch->fault_told = true;
	http_queue_free(&ch->in);
	if (ch->ops.on_fault)
		ch->ops.on_fault(ch->ctx, fault);
}

static bool round_of(struct channel *ch)
{
	bool any = ch->tls ? move_tls(ch) : false;
	if (ch->closed)
		return false;
	if (ch->http && !ch->finishing) {
		any |= feed_waiting(ch);
		if (!ch->closed)
			tell_end(ch);
	}
	if (!ch->closed && ch->http)
		tell_fault(ch);
	if (ch->closed || !flush(ch))
		return false;
	any |= produce(ch);
	return any && !ch->closed;
}

static bool all_sent(const struct channel *ch)
{
	return !http_queue_len(&ch->out) && !(ch->http && http_conn_has_output(ch->http)) && !(ch->tls && tls_output_pending(ch->tls));
}

static void send_end(struct channel *ch)
{
	if (ch->shut || !all_sent(ch))
		return;
	if (ch->tls && tls_state(ch->tls) != TLS_FAILED && tls_state(ch->tls) != TLS_HANDSHAKE) {
		tls_close(ch->tls);
		transmit_tls(ch);
	}
	if (ch->closed || http_queue_len(&ch->out))
		return;
	ch->shut = true;
	shutdown(ch->fd, SHUT_WR);
}

static void start_finish(struct channel *ch, uint64_t linger_ns)
{
	if (ch->finishing || ch->closed)
		return;
	ch->finishing = true;
	http_queue_free(&ch->in);
	loop_timer_set(timer(ch), linger_ns, 0);
}

static void end_if_over(struct channel *ch)
{
	if (ch->http && http_conn_finished(ch->http))
		start_finish(ch, DEFAULT_LINGER);
	bool broken = ch->http && http_conn_broken(ch->http);
	if (broken && ch->finishing && all_sent(ch))
		close_orderly(ch);
	else if (ch->finishing || (ch->http && http_conn_output_ended(ch->http)))
		send_end(ch);
	if (!ch->closed && ch->finishing && ch->shut && ch->eof)
		close_orderly(ch);
}

static bool wants_read(const struct channel *ch)
{
	if (ch->eof)
		return false;
	if (ch->finishing)
		return true;
	if (!ch->http)
		return ch->tls && tls_state(ch->tls) == TLS_HANDSHAKE;
	/* Beyond what HTTP takes now (a request behind an unanswered one) some is read ahead, or the peer's end would go unseen. */
	return http_conn_wants_input(ch->http) && http_queue_len(&ch->in) < PIECE && !ch->tls_more &&
		http_queue_len(&ch->out) < OUTPUT_CEILING / 2;
}

static void move(struct channel *ch)
{
	unsigned rounds = 0;
	while (rounds < ROUNDS && !ch->closed && round_of(ch))
		rounds++;
	if (rounds == ROUNDS)
		channel_kick(ch);
	if (!ch->closed)
		end_if_over(ch);
	if (!ch->closed)
		loop_io_set(ch->io, (wants_read(ch) ? LOOP_READ : 0) | (http_queue_len(&ch->out) ? LOOP_WRITE : 0));
}

static void on_io(void *ctx, int fd, int ready)
{
	struct channel *ch = ctx;
	enter(ch);
	if (ready & LOOP_READ)
		receive(ch);
	if (!ch->closed)
		move(ch);
	leave(ch);
}

static void on_kick(void *ctx)
{
	struct channel *ch = ctx;
	enter(ch);
	ch->kicked = false;
	move(ch);
	leave(ch);
}

void channel_kick(struct channel *ch)
{
	if (ch->closed || ch->kicked)
		return;
	ch->kicked = true;
	loop_defer(ch->loop, on_kick, ch);
}

void channel_finish(struct channel *ch, uint64_t linger_ns)
{
	start_finish(ch, linger_ns);
	channel_kick(ch);
}

struct channel *channel_new(struct loop *loop, int fd, struct tls *tls, const void *early, size_t early_len,
	const struct channel_ops *ops, void *ctx)
{
	struct channel *ch = mem_alloc(sizeof(*ch));
	ch->loop = loop;
	ch->fd = fd;
	ch->tls = tls;
	ch->ops = *ops;
	ch->ctx = ctx;
	buf_init(&ch->in.buf, INPUT_MAX + early_len);
	buf_init(&ch->out.buf, OUTPUT_CEILING + CIPHER_MAX);
	ch->io = loop_io_add(loop, fd, 0, on_io, ch);
	if (tls && early_len)
		tls_feed(tls, early, early_len);
	else if (early_len)
		http_queue_add(&ch->in, early, early_len);
	if (tls)
		channel_kick(ch);
	return ch;
}

void channel_start(struct channel *ch, struct http_conn *http)
{
	ch->http = http;
	ch->tls_more = ch->tls != NULL;
	channel_kick(ch);
}

struct http_conn *channel_http(const struct channel *ch) { return ch->http; }
struct tls *channel_tls(const struct channel *ch) { return ch->tls; }
