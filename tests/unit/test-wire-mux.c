/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "wire/mux.h"

enum { MESSAGE = 1, DATA, END, RESET, CREDIT };

/* One side under test (`host`), the other end of its pipe in our hands, and what its callbacks saw. */
static struct loop *loop;
static struct mux *host;
static int peer;
static struct buf seen;        /* frames that arrived at the peer, not yet looked at */
static struct err closed;      /* what on_closed said */
static unsigned n_closed, n_messages;
static uint16_t message_type;
static struct buf message_body;
static enum { KEEP, OPEN_STREAM, REFUSE, FREE_MUX, REPLY } on_message_does;

struct side {
	struct mux_stream *s;
	struct buf data;
	unsigned eofs, resets, writables;
	uint32_t reason;
	bool consume, close_on_data, free_on_data;
};
static struct side side;

static void on_data(void *ctx, const uint8_t *data, size_t len)
{
	struct side *e = ctx;
	assert_int_equal(buf_append(&e->data, data, len), 0);
	if (e->free_on_data) {
		mux_free(host);
		host = NULL;
		return;
	}
	if (e->consume)
		mux_stream_consumed(e->s, len);
	if (e->close_on_data) {
		mux_stream_close(e->s, MUX_RESET_REFUSED);
		e->s = NULL;
	}
}

static void on_eof(void *ctx) { ((struct side *)ctx)->eofs++; }
static void on_writable(void *ctx) { ((struct side *)ctx)->writables++; }

static void on_reset(void *ctx, uint32_t reason)
{
	struct side *e = ctx;
	e->resets++;
	e->reason = reason;
	e->s = NULL;
}

static const struct mux_stream_ops stream_ops = { on_data, on_eof, on_reset, on_writable };

static int on_message(void *ctx, uint16_t type, const uint8_t *body, size_t len, struct err *err)
{
	n_messages++;
	message_type = type;
	buf_clear(&message_body);
	assert_int_equal(buf_append(&message_body, body, len), 0);
	switch (on_message_does) {
	case OPEN_STREAM:
		assert_int_equal(len, 4);
		struct cursor c = cursor_make(body, len);
		side.s = mux_stream_open(host, cursor_u32(&c), &stream_ops, &side, err);
		return side.s || err->code == ERR_LIMIT ? 0 : -1;
	case REFUSE:
		return -1;
	case FREE_MUX:
		mux_free(host);
		host = NULL;
		return 0;
	case REPLY:
		return mux_send(host, 2, body, len, err);
	case KEEP:
		break;
	}
	return 0;
}

static void on_closed(void *ctx, const struct err *err)
{
	n_closed++;
	closed = *err;
	mux_free(host);
	host = NULL;
}

static const struct mux_ops ops = { on_message, on_closed };

static int setup(void **state)
{
	int s[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) < 0 || fd_set_nonblock(s[1], true) < 0)
		return -1;
	loop = loop_new();
	host = mux_new(loop, s[0], s[0], MUX_HOST, &ops, NULL);
	peer = s[1];
	side = (struct side){ .consume = true };
	buf_init(&side.data, 64 << 20);
	buf_init(&seen, 64 << 20);
	buf_init(&message_body, 1 << 20);
	n_closed = n_messages = 0;
	on_message_does = OPEN_STREAM;
	return 0;
}

static int teardown(void **state)
{
	mux_free(host);
	host = NULL;
	fd_close(&peer);
	loop_free(loop);
	buf_free(&side.data);
	buf_free(&seen);
	buf_free(&message_body);
	return 0;
}

static void pull(void)
{
	for (ssize_t n; peer >= 0;) {
		void *to = buf_reserve(&seen, 65536);
		assert_non_null(to);
		if ((n = read(peer, to, 65536)) <= 0)
			break;
		buf_commit(&seen, (size_t)n);
	}
}

/* Lets both ends work until nothing moves any more. */
static void settle(void)
{
	for (int i = 0; i < 4; i++)
		loop_run_once(loop, false);
}

static void settle_and_pull(void)
{
	size_t before;
	do {
		before = seen.len;
		settle();
		pull();
	} while (seen.len != before);
}

static void put_raw(const void *p, size_t n)
{
	const uint8_t *at = p;
	while (n > 0) {
		ssize_t w = write(peer, at, n);
		if (w < 0) {
			assert_int_equal(errno, EAGAIN);
			settle();
			continue;
		}
		at += w;
		n -= (size_t)w;
	}
}

static void put_frame(unsigned type, uint32_t stream, const void *payload, uint32_t len)
{
	struct buf b;
	buf_init(&b, 1 << 20);
	buf_put_u32(&b, type << 24);
	buf_put_u32(&b, stream);
	buf_put_u32(&b, len);
	buf_append(&b, payload, len);
	put_raw(b.data, b.len);
	buf_free(&b);
}

static void put_u32_frame(unsigned type, uint32_t stream, uint32_t v)
{
	const uint8_t p[4] = { (uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v };
	put_frame(type, stream, p, 4);
}

/* Announces and opens a stream of the box. */
static void open_from_box(uint32_t id)
{
	const uint8_t p[6] = { 0, 9, (uint8_t)(id >> 24), (uint8_t)(id >> 16), (uint8_t)(id >> 8), (uint8_t)id };
	put_frame(MESSAGE, 0, p, 6);
	settle();
}

struct frame { unsigned type; uint32_t stream, length; const uint8_t *payload; };

static bool next_frame(struct frame *f)
{
	struct cursor c = cursor_make(seen.data, seen.len);
	uint32_t head = cursor_u32(&c);
	f->type = head >> 24;
	f->stream = cursor_u32(&c);
	f->length = cursor_u32(&c);
	const uint8_t *p = cursor_take(&c, f->length);
	if (c.bad)
		return false;
	assert_int_equal(head & 0xffffff, 0);
	static uint8_t copy[MUX_PAYLOAD_MAX];
	assert_true(f->length <= sizeof(copy));
	memcpy(copy, p, f->length);
	f->payload = copy;
	buf_consume(&seen, 12 + f->length);
	return true;
}

static void expect_frame(unsigned type, uint32_t stream, const char *payload, size_t len)
{
	struct frame f;
	assert_true(next_frame(&f));
	assert_int_equal(f.type, type);
	assert_int_equal(f.stream, stream);
	assert_int_equal(f.length, len);
	assert_memory_equal(f.payload, payload, len);
}

static void expect_protocol_error(void)
{
	settle();
	assert_int_equal(n_closed, 1);
	assert_int_equal(closed.code, ERR_PROTOCOL);
	assert_null(host);
}

static void messages_both_ways(void **state)
{
	struct err err;
	on_message_does = KEEP;
	assert_int_equal(mux_send(host, 0x0102, "abc", 3, &err), 0);
	assert_int_equal(mux_send(host, 3, NULL, 0, &err), 0);
	settle_and_pull();
	expect_frame(MESSAGE, 0, "\1\2abc", 5);
	expect_frame(MESSAGE, 0, "\0\3", 2);
	assert_true(mux_flushed(host));
	put_frame(MESSAGE, 0, "\7\10xyz", 5);
	settle();
	assert_int_equal(n_messages, 1);
	assert_int_equal(message_type, 0x0708);
	assert_memory_equal(message_body.data, "xyz", 3);
	assert_int_equal(mux_activity(host), 12 + 5 + 12 + 2 + 12 + 5);
}

static void bytes_may_come_one_by_one(void **state)
{
	on_message_does = KEEP;
	static const char frame[] = "\1\0\0\0" "\0\0\0\0" "\0\0\0\5" "\0\1abc";
	for (size_t i = 0; i < sizeof(frame) - 1; i++) {
		assert_int_equal(n_messages, 0);
		put_raw(frame + i, 1);
		settle();
	}
	assert_int_equal(n_messages, 1);
	assert_memory_equal(message_body.data, "abc", 3);
}

static void largest_message(void **state)
{
	struct err err;
	cleanup_free char *big = mem_alloc(MUX_MESSAGE_MAX + 2);
	on_message_does = KEEP;
	assert_int_equal(mux_send(host, 1, big, MUX_MESSAGE_MAX + 1, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_int_equal(mux_send(host, 1, big, MUX_MESSAGE_MAX, &err), 0);
	settle_and_pull();
	struct frame f;
	assert_true(next_frame(&f));
	assert_int_equal(f.length, MUX_MESSAGE_MAX + 2);
	put_frame(MESSAGE, 0, big, MUX_MESSAGE_MAX + 2);
	settle();
	assert_int_equal(message_body.len, MUX_MESSAGE_MAX);
}

static void a_stream_of_ours(void **state)
{
	struct err err;
	uint32_t id = mux_stream_allocate(host);
	assert_int_equal(id, 1);
	assert_int_equal(mux_stream_allocate(host), 3);
	side.s = mux_stream_open(host, id, &stream_ops, &side, &err);
	assert_non_null(side.s);
	assert_int_equal(mux_stream_id(side.s), 1);
	assert_int_equal(mux_stream_write(side.s, "hello", 5), 5);
	mux_stream_eof(side.s);
	mux_stream_eof(side.s); /* once is enough */
	assert_int_equal(mux_stream_room(side.s), 0);
	settle_and_pull();
	expect_frame(DATA, 1, "hello", 5);
	expect_frame(END, 1, "", 0);
	assert_int_equal(seen.len, 0);
	assert_false(mux_stream_ended(side.s));
	put_frame(DATA, 1, "world", 5);
	put_frame(END, 1, "", 0);
	settle();
	assert_int_equal(side.data.len, 5);
	assert_memory_equal(side.data.data, "world", 5);
	assert_int_equal(side.eofs, 1);
	assert_true(mux_stream_ended(side.s));
	mux_stream_close(side.s, MUX_RESET_CANCEL);
	settle_and_pull();
	assert_int_equal(seen.len, 0); /* ended both ways: no RESET */
	put_frame(DATA, 1, "late", 4); /* closed here: dropped */
	settle();
	assert_int_equal(n_closed, 0);
}

static void a_stream_of_the_box(void **state)
{
	open_from_box(2);
	assert_non_null(side.s);
	put_frame(DATA, 2, "abc", 3);
	settle();
	assert_int_equal(side.data.len, 3);
	put_u32_frame(RESET, 2, MUX_RESET_IO);
	settle();
	assert_int_equal(side.resets, 1);
	assert_int_equal(side.reason, MUX_RESET_IO);
	put_frame(DATA, 2, "abc", 3);
	put_u32_frame(RESET, 2, MUX_RESET_IO);
	put_u32_frame(CREDIT, 2, 5);
	put_frame(END, 2, "", 0);
	settle();
	assert_int_equal(n_closed, 0);
	assert_int_equal(side.resets, 1);
}

static void closing_tells_the_peer(void **state)
{
	open_from_box(2);
	mux_stream_close(side.s, MUX_RESET_REFUSED);
	settle_and_pull();
	expect_frame(RESET, 2, "\0\0\0\2", 4);
}

static void reset_after_eof_keeps_its_place(void **state)
{
	/* A program's output is written, ended, and the stream closed while the peer has not said EOF: nothing may be lost. */
	open_from_box(2);
	assert_int_equal(mux_stream_write(side.s, "last words", 10), 10);
	mux_stream_eof(side.s);
	mux_stream_close(side.s, MUX_RESET_CANCEL);
	settle_and_pull();
	expect_frame(DATA, 2, "last words", 10);
	expect_frame(END, 2, "", 0);
	expect_frame(RESET, 2, "\0\0\0\1", 4);
}

static void credit_is_reported_in_portions(void **state)
{
	cleanup_free char *block = mem_alloc(MUX_PAYLOAD_MAX);
	open_from_box(2);
	side.consume = false;
	for (int i = 0; i < 4; i++)
		put_frame(DATA, 2, block, MUX_PAYLOAD_MAX);
	settle_and_pull();
	assert_int_equal(side.data.len, MUX_WINDOW);
	assert_int_equal(seen.len, 0);
	mux_stream_consumed(side.s, 100);
	settle_and_pull();
	assert_int_equal(seen.len, 0);
	mux_stream_consumed(side.s, MUX_WINDOW); /* more than was delivered counts as all */
	settle_and_pull();
	expect_frame(CREDIT, 2, "\0\4\0\0", 4);
	put_frame(DATA, 2, block, 1);
	settle();
	assert_int_equal(n_closed, 0);
}

static void more_data_than_granted_ends_the_pipe(void **state)
{
	cleanup_free char *block = mem_alloc(MUX_PAYLOAD_MAX);
	open_from_box(2);
	side.consume = false;
	for (int i = 0; i < 4; i++)
		put_frame(DATA, 2, block, MUX_PAYLOAD_MAX);
	put_frame(DATA, 2, "x", 1);
	expect_protocol_error();
	assert_int_equal(side.data.len, MUX_WINDOW);
	assert_int_equal(side.resets, 1);
	assert_int_equal(side.reason, MUX_RESET_IO);
}

static void writing_stops_at_the_credit(void **state)
{
	cleanup_free char *block = mem_alloc(MUX_WINDOW + 1);
	open_from_box(2);
	assert_int_equal(mux_stream_room(side.s), MUX_WINDOW);
	assert_int_equal(mux_stream_write(side.s, block, MUX_WINDOW + 1), MUX_WINDOW);
	assert_int_equal(mux_stream_room(side.s), 0);
	settle_and_pull();
	assert_int_equal(side.writables, 0);
	size_t total = 0;
	for (struct frame f; next_frame(&f);)
		total += f.length;
	assert_int_equal(total, MUX_WINDOW);
	put_u32_frame(CREDIT, 2, 10);
	settle();
	assert_int_equal(side.writables, 1);
	assert_int_equal(mux_stream_room(side.s), 10);
	put_u32_frame(CREDIT, 2, 10);
	settle();
	assert_int_equal(side.writables, 1); /* nothing was refused since: nothing is owed */
}

static void queue_is_bounded_when_the_peer_does_not_read(void **state)
{
	struct err err;
	struct mux_stream *s[8];
	cleanup_free char *block = mem_alloc(MUX_WINDOW);
	size_t total = 0;
	struct side many[8] = { 0 };
	for (int i = 0; i < 8; i++) {
		s[i] = mux_stream_open(host, mux_stream_allocate(host), &stream_ops, &many[i], &err);
		assert_non_null(s[i]);
		total += mux_stream_write(s[i], block, MUX_WINDOW);
	}
	assert_true(total > 256 * 1024 && total <= 512 * 1024); /* before anything could be written */
	settle();
	settle_and_pull();
	/* As the peer reads, those that had got less are woken, and everybody gets through. */
	for (int i = 0; i < 8; i++)
		total += mux_stream_write(s[i], block, MUX_WINDOW);
	settle_and_pull();
	for (int round = 0; round < 8; round++) {
		for (int i = 0; i < 8; i++)
			total += mux_stream_write(s[i], block, MUX_WINDOW);
		settle_and_pull();
	}
	assert_int_equal(total, 8 * MUX_WINDOW);
	unsigned woken = 0;
	for (int i = 0; i < 8; i++)
		woken += many[i].writables > 0;
	assert_true(woken >= 6);
	size_t arrived = 0;
	for (struct frame f; next_frame(&f);)
		arrived += f.type == DATA ? f.length : 0;
	assert_int_equal(arrived, total);
}

static void control_goes_ahead_of_data(void **state)
{
	struct err err;
	struct side many[4] = { 0 };
	cleanup_free char *block = mem_alloc(MUX_WINDOW);
	for (int i = 0; i < 4; i++) {
		many[i].s = mux_stream_open(host, mux_stream_allocate(host), &stream_ops, &many[i], &err);
		mux_stream_write(many[i].s, block, MUX_WINDOW);
	}
	settle(); /* the socket is full, half a data frame is written, more waits */
	for (int i = 0; i < 4; i++)
		mux_stream_write(many[i].s, block, MUX_WINDOW);
	assert_false(mux_flushed(host));
	assert_int_equal(mux_send(host, 5, "now", 3, &err), 0);
	settle_and_pull();
	size_t before = 0, after = 0;
	bool met = false;
	for (struct frame f; next_frame(&f);) {
		met = met || f.type == MESSAGE;
		*(met ? &after : &before) += f.length;
	}
	assert_true(met);
	assert_true(before < 512 * 1024); /* what the socket held, and not what was queued behind */
	assert_true(after > 64 * 1024);
}

static void unread_control_is_bounded(void **state)
{
	struct err err = ERR_INIT;
	cleanup_free char *block = mem_alloc(MUX_MESSAGE_MAX);
	unsigned n = 0;
	while (mux_send(host, 1, block, MUX_MESSAGE_MAX, &err) == 0) {
		settle();
		assert_true(++n < 1000);
	}
	assert_int_equal(err.code, ERR_LIMIT);
	assert_int_equal(n_closed, 0);
	settle_and_pull();
	unsigned got = 0;
	for (struct frame f; next_frame(&f);)
		got++;
	assert_int_equal(got, n); /* what was accepted arrives whole */
	assert_int_equal(mux_send(host, 1, block, 10, &err), 0);
}

static void a_peer_that_asks_but_never_reads_is_cut_off(void **state)
{
	on_message_does = REPLY;
	cleanup_free uint8_t *block = mem_alloc(60000);
	block[1] = 1;
	for (int i = 0; i < 1000 && n_closed == 0; i++) {
		put_frame(MESSAGE, 0, block, 60000);
		settle();
		if (peer < 0)
			break;
	}
	assert_int_equal(n_closed, 1);
	assert_int_equal(closed.code, ERR_LIMIT);
}

static void ids_are_checked(void **state)
{
	struct err err = ERR_INIT;
	assert_null(mux_stream_open(host, 0, &stream_ops, &side, &err));
	assert_int_equal(err.code, ERR_PROTOCOL);
	assert_null(mux_stream_open(host, 1, &stream_ops, &side, &err)); /* ours, but never allocated */
	assert_int_equal(err.code, ERR_PROTOCOL);
	assert_int_equal(mux_stream_allocate(host), 1);
	assert_int_equal(mux_stream_allocate(host), 3);
	struct mux_stream *s = mux_stream_open(host, 3, &stream_ops, &side, &err);
	assert_non_null(s);
	assert_null(mux_stream_open(host, 1, &stream_ops, &side, &err)); /* falling */
	assert_null(mux_stream_open(host, 3, &stream_ops, &side, &err)); /* again */
	struct mux_stream *theirs = mux_stream_open(host, 10, &stream_ops, &side, &err);
	assert_non_null(theirs);
	assert_null(mux_stream_open(host, 10, &stream_ops, &side, &err));
	assert_null(mux_stream_open(host, 8, &stream_ops, &side, &err));
	mux_stream_close(theirs, MUX_RESET_CANCEL);
	assert_null(mux_stream_open(host, 10, &stream_ops, &side, &err)); /* never reused */
	assert_int_equal(err.code, ERR_PROTOCOL);
	theirs = mux_stream_open(host, UINT32_MAX - 1, &stream_ops, &side, &err);
	assert_non_null(theirs);
}

static void a_reused_id_from_the_peer_ends_the_pipe(void **state)
{
	open_from_box(2);
	open_from_box(2);
	expect_protocol_error();
}

static void streams_are_limited_for_each_opener(void **state)
{
	struct err err = ERR_INIT;
	struct side many = { 0 };
	for (uint32_t i = 0; i < MUX_STREAMS_MAX; i++)
		assert_non_null(mux_stream_open(host, 2 + 2 * i, &stream_ops, &many, &err));
	open_from_box(2 + 2 * MUX_STREAMS_MAX);
	put_frame(DATA, 2 + 2 * MUX_STREAMS_MAX, "x", 1); /* sent before the refusal arrived */
	settle_and_pull();
	assert_int_equal(n_closed, 0);
	assert_null(side.s);
	struct frame f;
	assert_true(next_frame(&f));
	assert_int_equal(f.type, RESET);
	assert_int_equal(f.stream, 2 + 2 * MUX_STREAMS_MAX);
	assert_int_equal(f.payload[3], MUX_RESET_LIMIT);
	/* The box at its limit doesn't keep the host from opening. */
	for (uint32_t i = 0; i < MUX_STREAMS_MAX; i++)
		assert_non_null(mux_stream_open(host, mux_stream_allocate(host), &stream_ops, &many, &err));
	assert_null(mux_stream_open(host, mux_stream_allocate(host), &stream_ops, &many, &err));
	assert_int_equal(err.code, ERR_LIMIT);
	fd_close(&peer);
	settle();
	assert_int_equal(many.resets, 2 * MUX_STREAMS_MAX); /* each exactly once, before the end */
	assert_int_equal(closed.code, ERR_CLOSED);
}

/* Each of these alone must end the pipe; stream 2 is open, stream 4 never was. */
static const struct { const char *name, *bytes; size_t len; } broken[] = {
#define B(name, s) { name, s, sizeof(s) - 1 }
	B("type 0", "\0\0\0\0" "\0\0\0\2" "\0\0\0\0"),
	B("type 6", "\6\0\0\0" "\0\0\0\2" "\0\0\0\0"),
	B("type 255", "\xff\0\0\0" "\0\0\0\2" "\0\0\0\0"),
	B("reserved bytes", "\2\0\0\1" "\0\0\0\2" "\0\0\0\1x"),
	B("length over the ceiling", "\2\0\0\0" "\0\0\0\2" "\0\1\0\1"),
	B("length 4 GiB", "\2\0\0\0" "\0\0\0\2" "\xff\xff\xff\xff"),
	B("message over the ceiling", "\1\0\0\0" "\0\0\0\0" "\0\1\0\1"),
	B("message without type", "\1\0\0\0" "\0\0\0\0" "\0\0\0\1x"),
	B("message on a stream", "\1\0\0\0" "\0\0\0\2" "\0\0\0\2\0\1"),
	B("data on stream 0", "\2\0\0\0" "\0\0\0\0" "\0\0\0\1x"),
	B("empty data", "\2\0\0\0" "\0\0\0\2" "\0\0\0\0"),
	B("data on a stream never opened", "\2\0\0\0" "\0\0\0\4" "\0\0\0\1x"),
	B("data on a stream of the host never opened", "\2\0\0\0" "\0\0\0\1" "\0\0\0\1x"),
	B("end of a stream never opened", "\3\0\0\0" "\0\0\0\4" "\0\0\0\0"),
	B("reset of a stream never opened", "\4\0\0\0" "\0\0\0\4" "\0\0\0\4\0\0\0\1"),
	B("credit for a stream never opened", "\5\0\0\0" "\0\0\0\4" "\0\0\0\4\0\0\0\1"),
	B("end with a payload", "\3\0\0\0" "\0\0\0\2" "\0\0\0\1x"),
	B("two ends", "\3\0\0\0" "\0\0\0\2" "\0\0\0\0" "\3\0\0\0" "\0\0\0\2" "\0\0\0\0"),
	B("data after the end", "\3\0\0\0" "\0\0\0\2" "\0\0\0\0" "\2\0\0\0" "\0\0\0\2" "\0\0\0\1x"),
	B("short reset", "\4\0\0\0" "\0\0\0\2" "\0\0\0\3\0\0\0"),
	B("reset without reason", "\4\0\0\0" "\0\0\0\2" "\0\0\0\4\0\0\0\0"),
	B("reset with an unknown reason", "\4\0\0\0" "\0\0\0\2" "\0\0\0\4\0\0\0\5"),
	B("credit of nothing", "\5\0\0\0" "\0\0\0\2" "\0\0\0\4\0\0\0\0"),
	B("credit for bytes never sent", "\5\0\0\0" "\0\0\0\2" "\0\0\0\4\0\0\0\1"),
	B("credit of 4 GiB", "\5\0\0\0" "\0\0\0\2" "\0\0\0\4\xff\xff\xff\xff"),
#undef B
};

static void broken_frames_end_the_pipe(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
		teardown(NULL);
		setup(NULL);
		open_from_box(2);
		put_raw(broken[i].bytes, broken[i].len);
		settle();
		if (n_closed != 1 || closed.code != ERR_PROTOCOL)
			fail_msg("accepted: %s", broken[i].name);
		assert_int_equal(side.resets, 1);
	}
}

static void a_header_is_refused_before_its_payload_comes(void **state)
{
	put_raw("\2\0\0\0" "\0\0\0\2" "\0\2\0\0", 12); /* 128 KiB announced: nobody waits for them */
	expect_protocol_error();
}

static void a_clean_end(void **state)
{
	open_from_box(2);
	fd_close(&peer);
	settle();
	assert_int_equal(n_closed, 1);
	assert_int_equal(closed.code, ERR_CLOSED);
	assert_int_equal(side.resets, 1);
}

static void an_end_inside_a_frame(void **state)
{
	put_raw("\2\0\0\0" "\0\0", 6);
	fd_close(&peer);
	expect_protocol_error();
}

static void last_words_are_heard_though_writing_fails(void **state)
{
	/* The agent reports the exit, then is gone; we notice while writing to it. Its report must not be lost. */
	struct err err;
	on_message_does = KEEP;
	put_frame(MESSAGE, 0, "\0\5bye", 5);
	fd_close(&peer);
	assert_int_equal(mux_send(host, 1, "x", 1, &err), 0);
	settle();
	assert_int_equal(n_messages, 1);
	assert_int_equal(n_closed, 1);
	assert_int_equal(closed.code, ERR_CLOSED);
}

static void a_peer_that_shuts_its_reading_side_is_over(void **state)
{
	struct err err;
	assert_int_equal(shutdown(peer, SHUT_RD), 0);
	assert_int_equal(mux_send(host, 1, "x", 1, &err), 0);
	settle();
	assert_int_equal(n_closed, 1);
	assert_int_equal(closed.code, ERR_CLOSED);
}

static void a_refused_message_ends_the_pipe(void **state)
{
	on_message_does = REFUSE;
	put_frame(MESSAGE, 0, "\0\5", 2);
	expect_protocol_error();
}

static void freeing_inside_callbacks(void **state)
{
	on_message_does = FREE_MUX;
	put_frame(MESSAGE, 0, "\0\5", 2);
	put_frame(MESSAGE, 0, "\0\5", 2);
	settle();
	assert_int_equal(n_messages, 1);
	assert_int_equal(n_closed, 0);
	teardown(NULL);
	setup(NULL);
	open_from_box(2);
	side.free_on_data = true;
	put_frame(DATA, 2, "abc", 3);
	put_frame(DATA, 2, "abc", 3);
	settle();
	assert_int_equal(side.data.len, 3);
	assert_int_equal(side.resets, 0); /* mux_free makes no callbacks */
	teardown(NULL);
	setup(NULL);
	open_from_box(2);
	side.close_on_data = true;
	put_frame(DATA, 2, "abc", 3);
	put_frame(DATA, 2, "abc", 3);
	settle_and_pull();
	assert_int_equal(side.data.len, 3);
	expect_frame(RESET, 2, "\0\0\0\2", 4);
}

static void freeing_flushes(void **state)
{
	struct err err;
	assert_int_equal(mux_send(host, 1, "bye", 3, &err), 0);
	mux_free(host);
	host = NULL;
	pull();
	expect_frame(MESSAGE, 0, "\0\1bye", 5);
	char c;
	assert_int_equal(read(peer, &c, 1), 0);
}

static void after_the_end(void **state)
{
	struct err err;
	put_frame(9, 0, "", 0);
	settle();
	assert_int_equal(n_closed, 1);
	/* A failing descriptor arrives as on_closed, too. */
	host = mux_new(loop, 9999, 9999, MUX_HOST, &ops, NULL);
	assert_non_null(host);
	assert_int_equal(mux_send(host, 1, "x", 1, &err), -1);
	assert_int_equal(err.code, ERR_CLOSED);
	assert_null(mux_stream_open(host, 2, &stream_ops, &side, &err));
	assert_int_equal(err.code, ERR_CLOSED);
	settle();
	assert_int_equal(n_closed, 2);
	assert_int_equal(closed.code, ERR_SYSTEM);
}

static void two_pipes_instead_of_a_socket(void **state)
{
	/* stdin and stdout, as under gVisor. */
	struct err err;
	int in[2], out[2];
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
	mux_free(host);
	host = mux_new(loop, in[0], out[1], MUX_HOST, &ops, NULL);
	on_message_does = KEEP;
	assert_int_equal(write(in[1], "\1\0\0\0" "\0\0\0\0" "\0\0\0\2" "\0\1", 14), 14);
	cleanup_free char *block = mem_alloc(60000);
	for (int i = 0; i < 5; i++)
		assert_int_equal(mux_send(host, 7, block, 60000, &err), 0);
	settle();
	assert_int_equal(n_messages, 1);
	fd_close(&peer);
	peer = out[0];
	settle_and_pull();
	assert_int_equal(seen.len, 5 * (12 + 2 + 60000));
	close(out[0]);
	peer = -1;
	assert_int_equal(mux_send(host, 7, "x", 1, &err), 0);
	settle(); /* EPIPE, and no signal */
	assert_int_equal(n_closed, 1);
	assert_int_equal(closed.code, ERR_CLOSED);
	close(in[1]);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(messages_both_ways), T(bytes_may_come_one_by_one), T(largest_message), T(a_stream_of_ours), T(a_stream_of_the_box),
		T(closing_tells_the_peer), T(reset_after_eof_keeps_its_place), T(credit_is_reported_in_portions),
		T(more_data_than_granted_ends_the_pipe), T(writing_stops_at_the_credit), T(queue_is_bounded_when_the_peer_does_not_read),
		T(control_goes_ahead_of_data), T(unread_control_is_bounded), T(a_peer_that_asks_but_never_reads_is_cut_off), T(ids_are_checked),
		T(a_reused_id_from_the_peer_ends_the_pipe), T(streams_are_limited_for_each_opener), T(broken_frames_end_the_pipe),
		T(a_header_is_refused_before_its_payload_comes), T(a_clean_end), T(an_end_inside_a_frame),
		T(last_words_are_heard_though_writing_fails), T(a_peer_that_shuts_its_reading_side_is_over),
		T(a_refused_message_ends_the_pipe), T(freeing_inside_callbacks), T(freeing_flushes), T(after_the_end),
		T(two_pipes_instead_of_a_socket),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
