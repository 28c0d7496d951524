/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/pump.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"

#define DRAIN_TERMINAL_MAX (64u * 1024u) /* more than a pseudo-terminal holds back; it doesn't tell how much it has */
#define PENDING_KEEP (64u * 1024u) /* a larger buffer is given back once it is empty */

/*
 * "in" is stream → wfd, "out" is rfd → stream. A direction is over when nothing will move on it any more; both over, or
 * `aborted`, means done. on_done is always called from the loop, never from inside a call of the owner.
 */
struct pump {
	struct loop *loop;
	struct mux_stream *stream; /* NULL once it was reset */
	uint32_t id;
	const struct pump_ops *ops;
	void *ctx;
	int rfd, wfd;
	bool rfd_is_socket, wfd_is_socket;
	struct loop_io *read_io, *write_io; /* write_io is NULL when one descriptor does both */
	bool in_over, out_over, aborted, done_deferred;
	bool remote_eof;
	bool cut;              /* it ended by a reset: that must not look like an orderly end to whoever reads at wfd */
	bool limited;          /* pump_cut: nothing after limit_left more bytes of what the filter is shown */
	size_t limit_left;
	bool draining;         /* the end of rfd is after drain_left more bytes, or when it has none */
	size_t drain_left;
	bool starved;          /* the stream took nothing: don't read until on_writable */
	bool has_failed;
	struct err failure;    /* the first */
	struct buf pending;    /* from the stream, not yet written; at most MUX_WINDOW by the stream's credit */
	size_t pending_head;
	size_t allowed;        /* of the pending bytes, those that may be written; the rest is held by the filter */
	uint64_t bytes_in, bytes_out;
	unsigned held;         /* filter calls on the stack */
	bool freed;
};

static size_t pending_len(const struct pump *p)
{
	return p->pending.len - p->pending_head;
}

static void pump_release_memory(struct pump *p)
{
	buf_free(&p->pending);
	mem_free(p);
}

static void call_done(void *ctx)
{
	struct pump *p = ctx;
	p->ops->on_done(p->ctx, p->has_failed ? &p->failure : NULL);
}

static void update(struct pump *p)
{
	bool reading = !p->out_over && !p->starved && !p->aborted;
	bool writing = !p->in_over && p->allowed > 0 && !p->aborted;
	int read_events = reading ? LOOP_READ : 0, write_events = writing ? LOOP_WRITE : 0;
	if (!p->write_io)
		read_events |= write_events;
	if (p->read_io)
		loop_io_set(p->read_io, read_events);
	if (p->write_io)
		loop_io_set(p->write_io, write_events);
	if ((p->aborted || (p->in_over && p->out_over)) && !p->done_deferred) {
		p->done_deferred = true;
		loop_defer(p->loop, call_done, p);
	}
}

static void remember_failure(struct pump *p, const struct err *err)
{
	if (!p->has_failed)
		p->failure = *err;
	p->has_failed = true;
}

static void consumed(struct pump *p, size_t len)
{
	if (p->stream)
		mux_stream_consumed(p->stream, len);
}

/* stream → wfd */

static void drop_pending(struct pump *p)
{
	consumed(p, pending_len(p));
	p->pending_head = p->allowed = 0;
	buf_free(&p->pending);
}

/* Nothing more goes to wfd: tells whoever reads there. */
static void finish_in(struct pump *p)
{
	p->in_over = true;
	if (p->ops->on_input_end)
		p->ops->on_input_end(p->ctx);
	if (p->wfd_is_socket && !p->cut)
		shutdown(p->wfd, SHUT_WR); /* an error means that the other side is gone, which the read side reports */
	if (p->wfd != p->rfd) {
		p->write_io = loop_io_remove(p->write_io);
		fd_close(&p->wfd);
	}
}

/* A write failed: this direction ends, with what was meant for it. The other goes on, for what the descriptor still has to
 * say. */
static void fail_in(struct pump *p, int error)
{
	struct err err;
	err_sys(&err, error, "cannot write to the descriptor behind stream %u", p->id);
	remember_failure(p, &err);
	drop_pending(p);
	p->in_over = true;
}

/* Returns what was taken, 0 when it would block, -1 after fail_in. */
static ssize_t write_some(struct pump *p, const uint8_t *data, size_t len)
{
	ssize_t n;
	do
		n = p->wfd_is_socket ? send(p->wfd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT) : write(p->wfd, data, len);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return n;
	if (errno == EAGAIN)
		return 0;
	fail_in(p, errno);
	return -1;
}

static void write_pending(struct pump *p)
{
	if (p->allowed > 0 && !p->in_over) {
		ssize_t n = write_some(p, p->pending.data + p->pending_head, p->allowed);
		if (n < 0)
			return;
		p->pending_head += (size_t)n;
		p->allowed -= (size_t)n;
		consumed(p, (size_t)n);
	}
	if (pending_len(p) > 0)
		return;
	p->pending_head = 0;
	if (p->pending.cap > PENDING_KEEP)
		buf_free(&p->pending);
	else
		buf_clear(&p->pending);
	if (p->remote_eof && !p->in_over)
		finish_in(p);
}

/* Moves the unwritten rest to the front only when the buffer would not hold the new bytes otherwise: the credit guarantees that
 * they fit. */
static int keep(struct pump *p, const uint8_t *data, size_t len)
{
	if (p->pending.len + len > p->pending.max) {
		buf_consume(&p->pending, p->pending_head);
		p->pending_head = 0;
	}
	return buf_append(&p->pending, data, len);
}

/* How many of the new bytes may pass. False when the filter freed the pump. */
static bool ask_filter(struct pump *p, const uint8_t *data, size_t len, size_t *ret_pass)
{
	*ret_pass = len;
	if (!p->ops->filter)
		return true;
	p->held++;
	size_t pass = p->ops->filter(p->ctx, data, len);
	p->held--;
	if (p->freed) {
		if (p->held == 0)
			pump_release_memory(p);
		return false;
	}
	/* Behind bytes that are held, nothing passes. */
	if (pending_len(p) > p->allowed)
		pass = 0;
	*ret_pass = pass < len ? pass : len;
	return true;
}

static void take_in(struct pump *p, const uint8_t *data, size_t len, size_t pass)
{
	if (pass > 0 && pending_len(p) == 0) {
		ssize_t n = write_some(p, data, pass);
		if (n < 0) {
			consumed(p, len);
			return;
		}
		consumed(p, (size_t)n);
		data += n;
		len -= (size_t)n;
		pass -= (size_t)n;
	}
	if (len == 0)
		return;
	if (keep(p, data, len) < 0) {
		consumed(p, len);
		fail_in(p, ENOMEM);
		return;
	}
	p->allowed += pass;
}

/* What is kept is the last: the direction ends behind it, as if the peer had said so. */
static void drop_behind_limit(struct pump *p, size_t *len, size_t *pass)
{
	size_t keep_len = p->limit_left < *len ? p->limit_left : *len;
	consumed(p, *len - keep_len);
	*len = keep_len;
	if (*pass > keep_len)
		*pass = keep_len;
	p->cut = p->remote_eof = true;
}

void pump_cut(struct pump *p, size_t len)
{
	p->limited = true;
	p->limit_left = len;
}

static void on_data(void *ctx, const uint8_t *data, size_t len)
{
	struct pump *p = ctx;
	p->bytes_in += len;
	size_t pass;
	if (p->in_over || p->aborted || p->limited) {
		consumed(p, len);
		return;
	}
	if (!ask_filter(p, data, len, &pass))
		return;
	if (p->limited)
		drop_behind_limit(p, &len, &pass);
	if (p->in_over)
		consumed(p, len); /* a release from inside the filter met a dead descriptor */
	else
		take_in(p, data, len, pass);
	if (p->limited)
		write_pending(p);
	update(p);
}

static void on_eof(void *ctx)
{
	struct pump *p = ctx;
	p->remote_eof = true;
	write_pending(p);
	update(p);
}

void pump_release(struct pump *p, size_t len)
{
	size_t held = pending_len(p) - p->allowed;
	p->allowed += len < held ? len : held;
	write_pending(p);
	update(p);
}

static const char *reset_text(uint32_t reason)
{
	switch (reason) {
	case MUX_RESET_CANCEL:
		return "it is no longer wanted";
	case MUX_RESET_REFUSED:
		return "it was refused";
	case MUX_RESET_LIMIT:
		return "a limit was reached";
	default:
		return "the descriptor or the pipe behind it failed";
	}
}

static void on_reset(void *ctx, uint32_t reason)
{
	struct pump *p = ctx;
	struct err err;
	err_set(&err, ERR_CLOSED, "the other side ended stream %u: %s", p->id, reset_text(reason));
	p->stream = NULL;
	if (!p->out_over || !p->remote_eof)
		remember_failure(p, &err);
	p->out_over = true;
	/* What had arrived before is still delivered, held bytes included: a sandbox that is killed keeps the output it had written. */
	p->cut = p->cut || !p->remote_eof;
	p->remote_eof = true;
	if (!p->in_over && pending_len(p) == 0 && p->cut)
		p->aborted = true;
	else if (!p->in_over)
		write_pending(p);
	update(p);
}

/* rfd → stream */

static void finish_out(struct pump *p)
{
	p->out_over = true;
	if (p->stream)
		mux_stream_eof(p->stream);
}

static void read_some(struct pump *p)
{
	size_t room;
	void *to = mux_stream_reserve(p->stream, &room);
	p->starved = !to;
	if (!to)
		return;
	if (p->draining && room > p->drain_left)
		room = p->drain_left;
	ssize_t n = p->rfd_is_socket ? recv(p->rfd, to, room, MSG_DONTWAIT) : read(p->rfd, to, room);
	int error = errno;
	mux_stream_commit(p->stream, n > 0 ? (size_t)n : 0);
	if (n > 0) {
		p->bytes_out += (uint64_t)n;
		p->drain_left -= p->draining ? (size_t)n : 0;
		return;
	}
	if (n < 0 && (error == EINTR || (error == EAGAIN && !p->draining)))
		return;
	/* A terminal whose other side is closed reports EIO: that is its end of file. */
	if (n == 0 || error == EAGAIN || (error == EIO && isatty(p->rfd))) {
		finish_out(p);
		return;
	}
	struct err err;
	err_sys(&err, error, "cannot read from the descriptor behind stream %u", p->id);
	remember_failure(p, &err);
	p->aborted = true;
}

/* While draining, everything at once, as far as the stream takes it: an rfd that has run empty would not wake us again. */
static void read_out(struct pump *p)
{
	do
		read_some(p);
	while (p->draining && !p->out_over && !p->aborted && !p->starved);
}

static void on_writable(void *ctx)
{
	struct pump *p = ctx;
	if (!p->out_over && !p->aborted)
		read_out(p);
	update(p);
}

static void on_ready(void *ctx, int fd, int ready)
{
	struct pump *p = ctx;
	if ((ready & LOOP_WRITE) && !p->in_over)
		write_pending(p);
	if ((ready & LOOP_READ) && !p->out_over && !p->aborted)
		read_out(p);
	update(p);
}

void pump_stop_reading(struct pump *p)
{
	if (!p->out_over)
		finish_out(p);
	update(p);
}

void pump_stop_writing(struct pump *p)
{
	if (!p->in_over)
		drop_pending(p);
	p->in_over = true;
	update(p);
}

void pump_drain(struct pump *p)
{
	int waiting = 0;
	if (p->out_over || p->aborted || p->draining)
		return;
	p->draining = true;
	if (isatty(p->rfd))
		waiting = DRAIN_TERMINAL_MAX;
	else if (ioctl(p->rfd, FIONREAD, &waiting) < 0 || waiting < 0)
		waiting = 0;
	p->drain_left = (size_t)waiting;
	if (p->stream)
		read_out(p);
	update(p);
}

/* life */

static const struct mux_stream_ops stream_ops = {
	.on_data = on_data,
	.on_eof = on_eof,
	.on_reset = on_reset,
	.on_writable = on_writable,
};

/* Sockets are asked not to block call by call, which leaves the description as it is for others that share it. */
static int prepare(int fd, bool *ret_is_socket, struct err *err)
{
	struct stat st;
	if (fd < 0)
		return 0;
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "descriptor %d can't be joined with a stream", fd);
	*ret_is_socket = S_ISSOCK(st.st_mode);
	int r = *ret_is_socket ? 0 : fd_set_nonblock(fd, true);
	return r < 0 ? err_sys(err, -r, "descriptor %d can't be joined with a stream", fd) : 0;
}

struct pump *pump_new(struct loop *loop, struct mux *mux, uint32_t stream_id, int rfd, int wfd, const struct pump_ops *ops,
		      void *ctx, struct err *err)
{
	bool rfd_is_socket = false, wfd_is_socket = false;
	if (prepare(rfd, &rfd_is_socket, err) < 0 || prepare(wfd, &wfd_is_socket, err) < 0)
		return NULL;
	struct pump *p = mem_alloc(sizeof(*p));
	p->stream = mux_stream_open(mux, stream_id, &stream_ops, p, err);
	if (!p->stream) {
		mem_free(p);
		return NULL;
	}
	p->id = stream_id;
	p->loop = loop;
	p->ops = ops;
	p->ctx = ctx;
	p->rfd = rfd;
	p->wfd = wfd;
	p->rfd_is_socket = rfd_is_socket;
	p->wfd_is_socket = wfd_is_socket;
	p->in_over = wfd < 0;
	buf_init(&p->pending, MUX_WINDOW);
	if (rfd >= 0)
		p->read_io = loop_io_add(loop, rfd, 0, on_ready, p);
	if (wfd >= 0 && wfd != rfd)
		p->write_io = loop_io_add(loop, wfd, 0, on_ready, p);
	if (rfd < 0)
		finish_out(p);
	update(p);
	return p;
}

void pump_free(struct pump *p)
{
	if (!p || p->freed)
		return;
	p->freed = true;
	p->read_io = loop_io_remove(p->read_io);
	p->write_io = loop_io_remove(p->write_io);
	loop_defer_cancel(p->loop, call_done, p);
	if (p->stream)
		mux_stream_close(p->stream, p->has_failed ? MUX_RESET_IO : MUX_RESET_CANCEL);
	p->stream = NULL;
	if (p->wfd != p->rfd)
		fd_close(&p->wfd);
	fd_close(&p->rfd);
	if (p->held == 0)
		pump_release_memory(p);
}

uint64_t pump_bytes_in(const struct pump *p)
{
	return p->bytes_in;
}

uint64_t pump_bytes_out(const struct pump *p)
{
	return p->bytes_out;
}
