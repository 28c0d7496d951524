/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/mux-internal.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/mem.h"

#define SOCKET_BUFFER (512 * 1024)

/* life of the pipe */

static void stop_io(struct mux *mux)
{
	mux->read_io = loop_io_remove(mux->read_io);
	mux->write_io = loop_io_remove(mux->write_io);
}

static void release_memory(struct mux *mux)
{
	mem_free(mux->in);
	mem_free(mux);
}

void mux_hold(struct mux *mux)
{
	mux->held++;
}

void mux_release(struct mux *mux)
{
	if (--mux->held == 0 && mux->freed)
		release_memory(mux);
}

static struct mux_stream *any_stream(const struct mux *mux)
{
	if (mux->n_open[0] + mux->n_open[1] == 0)
		return NULL;
	for (size_t i = 0; i < MUX_BUCKETS; i++)
		if (mux->buckets[i])
			return mux->buckets[i];
	return NULL;
}

void mux_end(struct mux *mux, const struct err *err)
{
	if (mux->freed || mux->over)
		return;
	struct err reason = *err;
	mux->over = true;
	stop_io(mux);
	for (struct mux_stream *s; !mux->freed && (s = any_stream(mux));) {
		const struct mux_stream_ops *ops = s->ops;
		void *ctx = s->ctx;
		mux_forget(s);
		ops->on_reset(ctx, MUX_RESET_IO);
	}
	if (!mux->freed)
		mux->ops->on_closed(mux->ctx, &reason);
}

static void end_deferred(void *ctx)
{
	struct mux *mux = ctx;
	mux_hold(mux);
	mux_end(mux, &mux->failure);
	mux_release(mux);
}

int mux_fail(struct mux *mux, const struct err *err)
{
	if (!mux_is_over(mux)) {
		mux->failed = true;
		mux->failure = *err;
		loop_defer(mux->loop, end_deferred, mux);
	}
	return -1;
}

static void on_ready(void *ctx, int fd, int ready)
{
	struct mux *mux = ctx;
	mux_hold(mux);
	if ((ready & LOOP_WRITE) && !mux_is_over(mux))
		mux_on_writable(mux);
	if ((ready & LOOP_READ) && !mux_is_over(mux))
		mux_on_readable(mux);
	mux_release(mux);
}

static int prepare_descriptors(struct mux *mux, struct err *err)
{
	int r = fd_set_nonblock(mux->rfd, true);
	if (r == 0)
		r = fd_set_nonblock(mux->wfd, true);
	struct stat st;
	if (r == 0 && fstat(mux->wfd, &st) < 0)
		r = -errno;
	if (r < 0)
		return err_sys(err, -r, "the descriptors of the pipe between host and box can't be used");
	mux->wfd_is_socket = S_ISSOCK(st.st_mode);
	int size = SOCKET_BUFFER;
	if (mux->wfd_is_socket)
		(void)setsockopt(mux->wfd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)); /* only faster; the kernel may cap it */
	return 0;
}

struct mux *mux_new(struct loop *loop, int rfd, int wfd, enum mux_side side, const struct mux_ops *ops, void *ctx)
{
	struct mux *mux = mem_alloc(sizeof(*mux));
	mux->loop = loop;
	mux->ops = ops;
	mux->ctx = ctx;
	mux->side = side;
	mux->rfd = rfd;
	mux->wfd = wfd;
	mux->next_id = side == MUX_HOST ? 1 : 2;
	/* Zeroed pages of the kernel: only what is used becomes memory, and an idle pipe uses next to nothing. */
	mux->in = mem_alloc(MUX_IN_CAPACITY);
	mux->data = mem_alloc(MUX_DATA_CAPACITY);
	buf_init(&mux->control, 2 * MUX_QUEUE_MAX + MUX_HEADER_SIZE + MUX_PAYLOAD_MAX);
	TAILQ_INIT(&mux->waiting);
	TAILQ_INIT(&mux->crediting);
	struct err err;
	if (prepare_descriptors(mux, &err) < 0) {
		mux_fail(mux, &err);
		return mux;
	}
	mux->read_io = loop_io_add(loop, rfd, LOOP_READ, on_ready, mux);
	if (wfd != rfd)
		mux->write_io = loop_io_add(loop, wfd, 0, on_ready, mux);
	return mux;
}

void mux_free(struct mux *mux)
{
	if (!mux || mux->freed)
		return;
	/* A last message of ours may be waiting for the loop, which will not come round again. */
	if (!mux_is_over(mux))
		mux_write_out(mux);
	mux->freed = true;
	stop_io(mux);
	loop_defer_cancel(mux->loop, end_deferred, mux);
	loop_defer_cancel(mux->loop, mux_flush_now, mux);
	for (struct mux_stream *s; (s = any_stream(mux));)
		mux_forget(s);
	if (mux->wfd != mux->rfd)
		fd_close(&mux->wfd);
	fd_close(&mux->rfd);
	buf_free(&mux->control);
	mux->data = mem_free(mux->data);
	if (mux->held == 0)
		release_memory(mux); /* else mux_release does: the reader is still working on the bytes in mux->in */
}

int mux_send(struct mux *mux, uint16_t type, const void *body, size_t len, struct err *err)
{
	if (mux_is_over(mux))
		return err_set(err, ERR_CLOSED, "the pipe between host and box is closed");
	if (len > MUX_MESSAGE_MAX)
		return err_set(err, ERR_LIMIT, "a control message of %zu bytes is larger than the pipe carries (%u)", len,
			       MUX_MESSAGE_MAX);
	const uint8_t prefix[2] = { (uint8_t)(type >> 8), (uint8_t)type };
	return mux_queue_control(mux, MUX_FRAME_MESSAGE, 0, prefix, sizeof(prefix), body, len, err);
}

uint64_t mux_activity(const struct mux *mux)
{
	return mux->activity;
}

/* streams */

static size_t bucket_of(uint32_t id)
{
	return id * 2654435761u >> 23;
}
_Static_assert(MUX_BUCKETS == 1u << 9, "bucket_of keeps the upper 9 bits");

struct mux_stream *mux_find(const struct mux *mux, uint32_t id)
{
	struct mux_stream *s = mux->buckets[bucket_of(id)];
	while (s && s->id != id)
		s = s->next_in_bucket;
	return s;
}

void mux_forget(struct mux_stream *s)
{
	struct mux *mux = s->mux;
	struct mux_stream **at = &mux->buckets[bucket_of(s->id)];
	while (*at != s)
		at = &(*at)->next_in_bucket;
	*at = s->next_in_bucket;
	if (s->in_waiting)
		TAILQ_REMOVE(&mux->waiting, s, waiting);
	if (s->in_crediting)
		TAILQ_REMOVE(&mux->crediting, s, crediting);
	mux->n_open[mux_opener(s->id)]--;
	mem_free(s);
}

uint32_t mux_stream_allocate(struct mux *mux)
{
	uint32_t id = mux->next_id;
	if (id != 0)
		mux->next_id = id > UINT32_MAX - 2 ? 0 : id + 2; /* 0 when all are used up: mux_stream_open refuses it */
	return id;
}

static int check_open(struct mux *mux, uint32_t id, struct err *err)
{
	enum mux_side opener = mux_opener(id);
	if (mux_is_over(mux))
		return err_set(err, ERR_CLOSED, "the pipe between host and box is closed");
	if (id == 0)
		return err_set(err, ERR_PROTOCOL, "stream 0 can't be opened: it carries the control messages");
	bool never_allocated = opener == mux->side && mux->next_id != 0 && id >= mux->next_id;
	if (id <= mux->last_opened[opener] || never_allocated)
		return err_set(err, ERR_PROTOCOL, "stream %u can't be opened: the number was used before or isn't its opener's",
			       id);
	if (mux->n_open[opener] < MUX_STREAMS_MAX)
		return 0;
	if (opener != mux->side) {
		/* Counts as opened and closed, so that what the peer already sent on it is dropped. */
		mux->last_opened[opener] = id;
		mux_queue_u32(mux, MUX_FRAME_RESET, id, MUX_RESET_LIMIT);
	}
	return err_set(err, ERR_LIMIT, "stream %u can't be opened: %u are open already", id, MUX_STREAMS_MAX);
}

struct mux_stream *mux_stream_open(struct mux *mux, uint32_t id, const struct mux_stream_ops *ops, void *ctx, struct err *err)
{
	if (check_open(mux, id, err) < 0)
		return NULL;
	struct mux_stream *s = mem_alloc(sizeof(*s));
	s->mux = mux;
	s->ops = ops;
	s->ctx = ctx;
	s->id = id;
	s->send_credit = s->receive_credit = MUX_WINDOW;
	s->next_in_bucket = mux->buckets[bucket_of(id)];
	mux->buckets[bucket_of(id)] = s;
	mux->last_opened[mux_opener(id)] = id;
	mux->n_open[mux_opener(id)]++;
	return s;
}

uint32_t mux_stream_id(const struct mux_stream *s)
{
	return s->id;
}

void mux_stream_eof(struct mux_stream *s)
{
	if (s->eof_sent)
		return;
	s->eof_sent = true;
	mux_queue_in_order(s->mux, MUX_FRAME_EOF, s->id, NULL, 0);
}

void mux_stream_consumed(struct mux_stream *s, size_t len)
{
	struct mux *mux = s->mux;
	uint32_t n = len < s->unconsumed ? (uint32_t)len : s->unconsumed;
	s->unconsumed -= n;
	s->consumed += n;
	if (s->consumed < MUX_CREDIT_STEP || s->in_crediting || s->eof_received)
		return;
	s->in_crediting = true;
	TAILQ_INSERT_TAIL(&mux->crediting, s, crediting);
	mux_schedule_flush(mux);
}

bool mux_stream_ended(const struct mux_stream *s)
{
	return s->eof_sent && s->eof_received;
}

void mux_stream_close(struct mux_stream *s, uint32_t reason)
{
	struct mux *mux = s->mux;
	uint8_t payload[4];
	mux_store_u32(payload, reason);
	/* After our EOF the data before it was promised: the RESET, which only refuses the other direction, must not overtake
	 * it. */
	if (s->eof_sent && !s->eof_received)
		mux_queue_in_order(mux, MUX_FRAME_RESET, s->id, payload, sizeof(payload));
	else if (!s->eof_sent)
		mux_queue_u32(mux, MUX_FRAME_RESET, s->id, reason);
	mux_forget(s);
}
