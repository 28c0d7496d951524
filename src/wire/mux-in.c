/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes from the peer. Every field is checked as soon as its header is there, before anything waits for a payload.
 */
#include "wire/mux-internal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct frame {
	uint8_t type;
	uint32_t stream;
	uint32_t length;
	const uint8_t *payload;
};

static uint32_t load_u32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int refuse(struct err *err, const struct frame *f, const char *why)
{
	return err_set(err, ERR_PROTOCOL,
		       "the other side of the pipe broke the protocol: frame type %u, stream %u, length %u: %s", f->type, f->stream, f->length, why);
}

static bool length_is_valid(const struct frame *f)
{
	switch (f->type) {
	case MUX_FRAME_MESSAGE:
		return f->length >= 2 && f->length <= MUX_MESSAGE_MAX + 2;
	case MUX_FRAME_DATA:
		return f->length >= 1 && f->length <= MUX_PAYLOAD_MAX;
	case MUX_FRAME_EOF:
		return f->length == 0;
	case MUX_FRAME_RESET:
	case MUX_FRAME_CREDIT:
		return f->length == 4;
	default:
		return false;
	}
}

static int read_header(const uint8_t *p, struct frame *f, struct err *err)
{
	f->type = p[0];
	f->stream = load_u32(p + 4);
	f->length = load_u32(p + 8);
	f->payload = p + MUX_HEADER_SIZE;
	if (p[1] || p[2] || p[3])
		return refuse(err, f, "reserved bytes are set");
	if (f->type < MUX_FRAME_MESSAGE || f->type > MUX_FRAME_CREDIT)
		return refuse(err, f, "there is no such type");
	if (!length_is_valid(f))
		return refuse(err, f, "this length is not allowed for the type");
	if ((f->type == MUX_FRAME_MESSAGE) != (f->stream == 0))
		return refuse(err, f, "messages, and only they, go on stream 0");
	return 0;
}

static int take_message(struct mux *mux, const struct frame *f, struct err *err)
{
	uint16_t type = (uint16_t)(f->payload[0] << 8 | f->payload[1]);
	*err = ERR_INIT;
	int r = mux->ops->on_message(mux->ctx, type, f->payload + 2, f->length - 2, err);
	if (r < 0 && err->code == ERR_NONE)
		err_set(err, ERR_PROTOCOL, "message type %u was refused", type);
	return r;
}

static int take_data(struct mux_stream *s, const struct frame *f, struct err *err)
{
	if (s->eof_received)
		return refuse(err, f, "data after the end of the stream");
	if (f->length > s->receive_credit)
		return refuse(err, f, "more data than was granted");
	s->receive_credit -= f->length;
	s->unconsumed += f->length;
	s->ops->on_data(s->ctx, f->payload, f->length);
	return 0;
}

static int take_eof(struct mux_stream *s, const struct frame *f, struct err *err)
{
	if (s->eof_received)
		return refuse(err, f, "the stream has ended before");
	s->eof_received = true;
	s->ops->on_eof(s->ctx);
	return 0;
}

static int take_reset(struct mux_stream *s, const struct frame *f, struct err *err)
{
	uint32_t reason = load_u32(f->payload);
	if (reason < MUX_RESET_CANCEL || reason > MUX_RESET_LIMIT)
		return refuse(err, f, "there is no such reason");
	const struct mux_stream_ops *ops = s->ops;
	void *ctx = s->ctx;
	mux_forget(s);
	ops->on_reset(ctx, reason);
	return 0;
}

static int take_credit(struct mux_stream *s, const struct frame *f, struct err *err)
{
	uint32_t n = load_u32(f->payload);
	if (n == 0 || n > MUX_WINDOW - s->send_credit)
		return refuse(err, f, "credit for bytes that were never sent");
	s->send_credit += n;
	if (s->wants_room)
		mux_stream_wait(s);
	return 0;
}

static int take_stream_frame(struct mux *mux, const struct frame *f, struct err *err)
{
	struct mux_stream *s = mux_find(mux, f->stream);
	if (!s) {
		if (f->stream > mux->last_opened[mux_opener(f->stream)])
			return refuse(err, f, "this stream was never opened");
		return 0; /* closed here while the frame was on its way */
	}
	if (f->type == MUX_FRAME_DATA)
		return take_data(s, f, err);
	if (f->type == MUX_FRAME_EOF)
		return take_eof(s, f, err);
	if (f->type == MUX_FRAME_RESET)
		return take_reset(s, f, err);
	return take_credit(s, f, err);
}

/* Handles every whole frame in mux->in and moves the rest to the front. -1 when the pipe must end with *err. */
static int take_frames(struct mux *mux, struct err *err)
{
	size_t at = 0;
	int r = 0;
	while (r == 0 && mux->in_len - at >= MUX_HEADER_SIZE && !mux_is_over(mux)) {
		struct frame f;
		r = read_header(mux->in + at, &f, err);
		if (r < 0 || mux->in_len - at - MUX_HEADER_SIZE < f.length)
			break;
		r = f.type == MUX_FRAME_MESSAGE ? take_message(mux, &f, err) : take_stream_frame(mux, &f, err);
		at += MUX_HEADER_SIZE + f.length;
	}
	if (at > 0) {
		mux->in_len -= at;
		memmove(mux->in, mux->in + at, mux->in_len);
	}
	return r;
}

/* One read. 1: go on, 0: nothing there now, -1: the pipe is over because of *err. */
static int read_some(struct mux *mux, struct err *err)
{
	size_t room = MUX_IN_CAPACITY - mux->in_len;
	ssize_t n = read(mux->rfd, mux->in + mux->in_len, room < MUX_READ_SIZE ? room : MUX_READ_SIZE);
	if (n > 0) {
		mux->in_len += (size_t)n;
		mux->activity += (uint64_t)n;
		return take_frames(mux, err) < 0 ? -1 : 1;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n == 0 && mux->in_len > 0)
		return err_set(err, ERR_PROTOCOL, "the pipe between host and box ended inside a frame: its other side was cut");
	if (n == 0 || errno == ECONNRESET || errno == EPIPE)
		return err_set(err, ERR_CLOSED, "the other side closed the pipe between host and box");
	return err_sys(err, errno, "cannot read from the pipe between host and box");
}

void mux_on_readable(struct mux *mux)
{
	struct err err;
	if (read_some(mux, &err) < 0 && !mux_is_over(mux))
		mux_end(mux, &err);
}

void mux_drain_and_end(struct mux *mux)
{
	/* Socket buffers hold less than this; somebody who can still write more has no claim to be heard. */
	for (int i = 0; i < 16; i++) {
		struct err err;
		int r = read_some(mux, &err);
		if (mux_is_over(mux))
			return;
		if (r < 0) {
			mux_end(mux, &err);
			return;
		}
		if (r == 0)
			break;
	}
	struct err err;
	err_set(&err, ERR_CLOSED, "the other side stopped reading from the pipe between host and box");
	mux_end(mux, &err);
}
