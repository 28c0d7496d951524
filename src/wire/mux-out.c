/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes to the peer. Two queues: control frames, which go first, and data frames in order. They are written together, with one
 * gathering call, after the callbacks of a loop round are through: many small frames make one write.
 */
#include "wire/mux-internal.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/mem.h"

#define CREDIT_BACKLOG_MAX (64u * 1024u)  /* above this, reports of consumption wait: the peer isn't reading anyway */
#define WAKE_ROOM (16u * 1024u)           /* writers are woken for at least this much */
#define CONTROL_KEEP (64u * 1024u)        /* a larger control buffer is given back once it is empty */

static void store_header(uint8_t *p, enum mux_frame type, uint32_t stream, size_t length)
{
	p[0] = (uint8_t)type;
	p[1] = p[2] = p[3] = 0;
	mux_store_u32(p + 4, stream);
	mux_store_u32(p + 8, (uint32_t)length);
}

static size_t control_waiting(const struct mux *mux)
{
	return mux->control.len - mux->control_head;
}

/* the control queue */

int mux_queue_control(struct mux *mux, enum mux_frame type, uint32_t stream, const void *a, size_t a_len, const void *b,
		      size_t b_len, struct err *err)
{
	uint8_t header[MUX_HEADER_SIZE];
	size_t total = sizeof(header) + a_len + b_len;
	if (mux->write_is_dead)
		return err_set(err, ERR_CLOSED, "the other side stopped reading from the pipe between host and box");
	if (control_waiting(mux) + total > MUX_QUEUE_MAX)
		return err_set(err, ERR_LIMIT, "%zu bytes of control messages wait: the other side of the pipe doesn't read",
			       control_waiting(mux));
	if (mux->control_head > mux->control.len / 2) {
		buf_consume(&mux->control, mux->control_head);
		mux->control_head = 0;
	}
	uint8_t *p = buf_reserve(&mux->control, total);
	if (!p)
		return err_set(err, ERR_MEMORY, "out of memory for a control message");
	store_header(header, type, stream, a_len + b_len);
	memcpy(p, header, sizeof(header));
	if (a_len)
		memcpy(p + sizeof(header), a, a_len);
	if (b_len)
		memcpy(p + sizeof(header) + a_len, b, b_len);
	buf_commit(&mux->control, total);
	mux_schedule_flush(mux);
	return 0;
}

void mux_queue_u32(struct mux *mux, enum mux_frame type, uint32_t stream, uint32_t value)
{
	uint8_t payload[4];
	mux_store_u32(payload, value);
	struct err err;
	if (mux_is_over(mux) || mux->write_is_dead)
		return;
	if (mux_queue_control(mux, type, stream, payload, sizeof(payload), NULL, 0, &err) < 0)
		mux_fail(mux, &err);
}

bool mux_flushed(const struct mux *mux)
{
	return control_waiting(mux) == 0 && mux->data_head == mux->data_tail;
}

static void queue_credits(struct mux *mux)
{
	struct mux_stream *s;
	while ((s = TAILQ_FIRST(&mux->crediting)) && control_waiting(mux) < CREDIT_BACKLOG_MAX && !mux_is_over(mux)) {
		TAILQ_REMOVE(&mux->crediting, s, crediting);
		s->in_crediting = false;
		uint32_t n = s->consumed;
		s->consumed = 0;
		s->receive_credit += n;
		mux_queue_u32(mux, MUX_FRAME_CREDIT, s->id, n);
	}
}

/* the data queue: one block of memory, filled at the tail, emptied at the head */

/* Worth moving only when at most half is left: then each byte is moved once at most. */
static bool should_compact(const struct mux *mux)
{
	return mux->data_head >= MUX_DATA_CAPACITY / 2;
}

static void compact(struct mux *mux)
{
	memmove(mux->data, mux->data + mux->data_head, mux->data_tail - mux->data_head);
	mux->data_tail -= mux->data_head;
	mux->data_head = 0;
}

/* Bytes that DATA frames may still take, headers included. */
static size_t data_space(const struct mux *mux)
{
	size_t used = should_compact(mux) ? mux->data_tail - mux->data_head : mux->data_tail;
	return used < MUX_DATA_MAX ? MUX_DATA_MAX - used : 0;
}

size_t mux_stream_room(const struct mux_stream *s)
{
	const size_t frame = MUX_HEADER_SIZE + MUX_PAYLOAD_MAX;
	const struct mux *mux = s->mux;
	if (s->eof_sent || mux_is_over(mux) || mux->write_is_dead)
		return 0;
	size_t space = data_space(mux);
	size_t tail = space % frame;
	size_t room = space / frame * MUX_PAYLOAD_MAX + (tail > MUX_HEADER_SIZE ? tail - MUX_HEADER_SIZE : 0);
	return room < s->send_credit ? room : s->send_credit;
}

/* The stream was offered less than it wanted: on_writable comes when that changes. */
static void remember_want(struct mux_stream *s)
{
	if (s->eof_sent)
		return;
	s->wants_room = true;
	if (s->send_credit > 0)
		mux_stream_wait(s);
}

void *mux_stream_reserve(struct mux_stream *s, size_t *ret_len)
{
	size_t room = mux_stream_room(s);
	if (room == 0) {
		remember_want(s);
		return NULL;
	}
	if (should_compact(s->mux))
		compact(s->mux);
	*ret_len = room < MUX_PAYLOAD_MAX ? room : MUX_PAYLOAD_MAX;
	return s->mux->data + s->mux->data_tail + MUX_HEADER_SIZE;
}

void mux_stream_commit(struct mux_stream *s, size_t len)
{
	struct mux *mux = s->mux;
	if (len == 0)
		return;
	store_header(mux->data + mux->data_tail, MUX_FRAME_DATA, s->id, len);
	mux->data_tail += MUX_HEADER_SIZE + len;
	s->send_credit -= (uint32_t)len;
	mux_schedule_flush(mux);
}

size_t mux_stream_write(struct mux_stream *s, const void *data, size_t len)
{
	const uint8_t *p = data;
	size_t taken = 0;
	while (taken < len) {
		size_t room;
		uint8_t *to = mux_stream_reserve(s, &room);
		if (!to)
			break;
		size_t n = len - taken < room ? len - taken : room;
		memcpy(to, p + taken, n);
		mux_stream_commit(s, n);
		taken += n;
	}
	return taken;
}

void mux_queue_in_order(struct mux *mux, enum mux_frame type, uint32_t stream, const void *payload, size_t len)
{
	if (mux_is_over(mux) || mux->write_is_dead)
		return;
	if (mux->data_tail + MUX_HEADER_SIZE + len > MUX_DATA_CAPACITY)
		compact(mux);
	if (mux->data_tail + MUX_HEADER_SIZE + len > MUX_DATA_CAPACITY) {
		struct err err;
		err_set(&err, ERR_LIMIT, "too many streams ended while the other side of the pipe doesn't read");
		mux_fail(mux, &err);
		return;
	}
	uint8_t *p = mux->data + mux->data_tail;
	store_header(p, type, stream, len);
	if (len)
		memcpy(p + MUX_HEADER_SIZE, payload, len);
	mux->data_tail += MUX_HEADER_SIZE + len;
	mux_schedule_flush(mux);
}

/* writing */

/* What to write next: the rest of a frame that was begun, all control, all other data. */
static int gather(const struct mux *mux, struct iovec iov[3])
{
	int n = 0;
	size_t rest = mux->data_tail - mux->data_head - mux->frame_left;
	if (mux->frame_left)
		iov[n++] = (struct iovec){ mux->data + mux->data_head, mux->frame_left };
	if (control_waiting(mux))
		iov[n++] = (struct iovec){ mux->control.data + mux->control_head, control_waiting(mux) };
	if (rest)
		iov[n++] = (struct iovec){ mux->data + mux->data_head + mux->frame_left, rest };
	return n;
}

static uint32_t frame_size_at(const uint8_t *p)
{
	return MUX_HEADER_SIZE + ((uint32_t)p[8] << 24 | (uint32_t)p[9] << 16 | (uint32_t)p[10] << 8 | p[11]);
}

static void advance_data(struct mux *mux, size_t n)
{
	while (n > 0) {
		if (mux->frame_left == 0)
			mux->frame_left = frame_size_at(mux->data + mux->data_head);
		size_t step = n < mux->frame_left ? n : mux->frame_left;
		mux->data_head += step;
		mux->frame_left -= step;
		n -= step;
	}
	if (mux->data_head == mux->data_tail)
		mux->data_head = mux->data_tail = 0;
}

static void advance_control(struct mux *mux, size_t n)
{
	mux->control_head += n;
	if (mux->control_head < mux->control.len)
		return;
	mux->control_head = 0;
	if (mux->control.cap > CONTROL_KEEP)
		buf_free(&mux->control);
	else
		buf_clear(&mux->control);
}

static void advance(struct mux *mux, size_t n)
{
	mux->activity += n;
	size_t begun = n < mux->frame_left ? n : mux->frame_left;
	advance_data(mux, begun);
	n -= begun;
	size_t control = n < control_waiting(mux) ? n : control_waiting(mux);
	if (control)
		advance_control(mux, control);
	advance_data(mux, n - control);
}

static void set_blocked(struct mux *mux, bool blocked)
{
	mux->write_blocked = blocked;
	if (mux->write_io)
		loop_io_set(mux->write_io, blocked ? LOOP_WRITE : 0);
	else if (mux->read_io)
		loop_io_set(mux->read_io, blocked ? LOOP_READ | LOOP_WRITE : LOOP_READ);
}

static ssize_t write_gathered(const struct mux *mux, struct iovec *iov, int n)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = (size_t)n };
	ssize_t r;
	do
		r = mux->wfd_is_socket ? sendmsg(mux->wfd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) : writev(mux->wfd, iov, n);
	while (r < 0 && errno == EINTR);
	return r;
}

static void drop_output(struct mux *mux)
{
	mux->write_is_dead = true;
	mux->data_head = mux->data_tail = mux->frame_left = 0;
	buf_free(&mux->control);
	mux->control_head = 0;
	set_blocked(mux, false);
}

void mux_write_out(struct mux *mux)
{
	struct iovec iov[3];
	while (!mux->write_is_dead) {
		queue_credits(mux);
		int n = gather(mux, iov);
		if (n == 0) {
			set_blocked(mux, false);
			return;
		}
		size_t offered = 0;
		for (int i = 0; i < n; i++)
			offered += iov[i].iov_len;
		ssize_t written = write_gathered(mux, iov, n);
		if (written < 0 && errno != EAGAIN) {
			int error = errno;
			drop_output(mux);
			if (error != EPIPE && error != ECONNRESET) {
				struct err err;
				err_sys(&err, error, "cannot write to the pipe between host and box");
				mux_fail(mux, &err);
			}
			return;
		}
		if (written > 0)
			advance(mux, (size_t)written);
		if (written < 0 || (size_t)written < offered) {
			set_blocked(mux, true);
			return;
		}
	}
}

void mux_stream_wait(struct mux_stream *s)
{
	if (s->in_waiting)
		return;
	s->in_waiting = true;
	TAILQ_INSERT_TAIL(&s->mux->waiting, s, waiting);
	mux_schedule_flush(s->mux);
}

/* Calls those that wait for room, each once, in the order in which they came: nobody gets a second turn before the last got
 * one. */
static void wake_waiting(struct mux *mux)
{
	struct mux_stream *s, *last = TAILQ_LAST(&mux->waiting, mux_stream_list);
	uint32_t last_id = last ? last->id : 0;
	while (!mux_is_over(mux) && data_space(mux) >= WAKE_ROOM && (s = TAILQ_FIRST(&mux->waiting))) {
		bool is_last = s->id == last_id;
		TAILQ_REMOVE(&mux->waiting, s, waiting);
		s->in_waiting = false;
		/* It may have used up its credit or ended meanwhile; then the next CREDIT wakes it, or nothing does. */
		if (mux_stream_room(s) > 0) {
			s->wants_room = false;
			s->ops->on_writable(s->ctx);
		}
		if (is_last)
			break;
	}
}

/* Only while held. */
static void flush(struct mux *mux)
{
	bool was_dead = mux->write_is_dead;
	if (!mux->write_blocked)
		mux_write_out(mux);
	if (mux->write_is_dead && !was_dead && !mux_is_over(mux)) {
		mux_drain_and_end(mux);
		return;
	}
	wake_waiting(mux);
}

void mux_flush_now(void *ctx)
{
	struct mux *mux = ctx;
	mux->flush_deferred = false;
	if (mux_is_over(mux))
		return;
	mux_hold(mux);
	flush(mux);
	mux_release(mux);
}

void mux_on_writable(struct mux *mux)
{
	mux->write_blocked = false;
	flush(mux);
}

void mux_schedule_flush(struct mux *mux)
{
	if (mux->flush_deferred || mux_is_over(mux))
		return;
	mux->flush_deferred = true;
	loop_defer(mux->loop, mux_flush_now, mux);
}
