/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipe's bytes, as a hostile other end writes them. The first byte chooses: a side of the multiplexer, which gets the rest
 * through a socketpair and behaves like a real end (opens what is announced, echoes data, sends replies), or the decoders of
 * all control messages.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "wire/messages.h"
#include "wire/pump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool condition)
{
	if (!condition)
		abort();
}

/* decoders: what is accepted must encode again, to the very same bytes */

#define ROUND_TRIP(type, done)                                                              \
	static void round_trip_##type(const uint8_t *p, size_t n)                               \
	{                                                                                       \
		struct wire_##type m;                                                           \
		struct err err = ERR_INIT;                                                      \
		if (wire_##type##_decode(p, n, &m, &err) < 0) {                                 \
			check(err.code == ERR_PROTOCOL);                                        \
			return;                                                                 \
		}                                                                               \
		struct buf out;                                                                 \
		buf_init(&out, n);                                                              \
		check(wire_##type##_encode(&out, &m) == 0 && out.len == n);                     \
		check(n == 0 || memcmp(out.data, p, n) == 0);                                   \
		buf_free(&out);                                                                 \
		done;                                                                           \
	}

ROUND_TRIP(hello, )
ROUND_TRIP(config, )
ROUND_TRIP(exec, wire_exec_done(&m))
ROUND_TRIP(exec_started, )
ROUND_TRIP(exec_exited, )
ROUND_TRIP(signal, )
ROUND_TRIP(resize, )
ROUND_TRIP(failed, mem_free(m.text))
ROUND_TRIP(name_query, )
ROUND_TRIP(name_answer, )
ROUND_TRIP(egress_open, )

static void decode_all(const uint8_t *p, size_t n)
{
	round_trip_hello(p, n);
	round_trip_config(p, n);
	round_trip_exec(p, n);
	round_trip_exec_started(p, n);
	round_trip_exec_exited(p, n);
	round_trip_signal(p, n);
	round_trip_resize(p, n);
	round_trip_failed(p, n);
	round_trip_name_query(p, n);
	round_trip_name_answer(p, n);
	round_trip_egress_open(p, n);
}

/* the multiplexer */

#define PLAIN_MAX 8

struct echo { struct mux_stream *s; size_t owed; };

static struct loop *loop;
static struct mux *mux;
static struct echo echoes[PLAIN_MAX];
static struct pump *pumps[PLAIN_MAX];
static size_t n_echoes, n_pumps;
static unsigned n_closed;
static bool hold_back; /* consume nothing: the peer must stop at its credit */

static void on_data(void *ctx, const uint8_t *data, size_t len)
{
	struct echo *e = ctx;
	e->owed += len;
	check(e->owed <= MUX_WINDOW);
	if (len % 7 == 3) {
		mux_stream_close(e->s, MUX_RESET_REFUSED);
		e->s = NULL;
		return;
	}
	size_t room = mux_stream_room(e->s);
	size_t taken = mux_stream_write(e->s, data, len);
	check(taken == (len < room ? len : room));
	if (!hold_back) {
		mux_stream_consumed(e->s, len);
		e->owed = 0;
	}
}

static void on_eof(void *ctx)
{
	struct echo *e = ctx;
	mux_stream_eof(e->s);
	check(mux_stream_ended(e->s));
}

static void on_reset(void *ctx, uint32_t reason)
{
	struct echo *e = ctx;
	check(e->s != NULL && reason >= MUX_RESET_CANCEL && reason <= MUX_RESET_LIMIT);
	e->s = NULL;
}

static void on_writable(void *ctx)
{
	struct echo *e = ctx;
	check(mux_stream_room(e->s) > 0);
}

static const struct mux_stream_ops stream_ops = { on_data, on_eof, on_reset, on_writable };

static void on_done(void *ctx, const struct err *err)
{
	struct pump **p = ctx;
	pump_free(*p);
	*p = NULL;
}

static size_t filter(void *ctx, const uint8_t *data, size_t len)
{
	return data[0] & 1 ? len : len / 2;
}

static const struct pump_ops pump_ops = { .on_done = on_done, .filter = filter };

static int open_pump(uint32_t id, struct err *err)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	check(fd >= 0);
	pumps[n_pumps] = pump_new(loop, mux, id, fd, fd, &pump_ops, &pumps[n_pumps], err);
	if (!pumps[n_pumps]) {
		close(fd);
		return -1;
	}
	n_pumps++;
	return 0;
}

/* Even types open what the body names, odd ones get an answer; every body goes through the decoders. */
static int on_message(void *ctx, uint16_t type, const uint8_t *body, size_t len, struct err *err)
{
	decode_all(body, len);
	struct cursor c = cursor_make(body, len);
	uint32_t id = cursor_u32(&c);
	if (type == 0xffff)
		return -1;
	if (type % 2 == 1)
		return mux_send(mux, type, body, len, err);
	if (type % 4 == 2 && n_pumps < PLAIN_MAX)
		return open_pump(id, err);
	if (n_echoes == PLAIN_MAX)
		return 0;
	struct echo *e = &echoes[n_echoes++];
	e->s = mux_stream_open(mux, id, &stream_ops, e, err);
	return e->s || err->code == ERR_LIMIT ? 0 : -1;
}

static void free_all(void)
{
	for (size_t i = 0; i < n_pumps; i++) {
		pump_free(pumps[i]);
		pumps[i] = NULL;
	}
	mux_free(mux);
	mux = NULL;
}

static void on_closed(void *ctx, const struct err *err)
{
	check(err->code != ERR_NONE && err->text[0] != '\0');
	for (size_t i = 0; i < n_echoes; i++)
		check(echoes[i].s == NULL); /* all were told before */
	n_closed++;
	free_all();
}

static const struct mux_ops ops = { on_message, on_closed };

static void drain(int fd)
{
	static uint8_t sink[256 * 1024];
	while (read(fd, sink, sizeof(sink)) > 0)
		;
}

static void feed(int fd, const uint8_t *data, size_t size, bool reads)
{
	for (size_t at = 0; at < size && mux;) {
		ssize_t n = write(fd, data + at, size - at);
		if (n > 0)
			at += (size_t)n;
		loop_run_once(loop, false);
		if (reads)
			drain(fd);
	}
}

/* 0x02: the host's side, else the box's. 0x04: the peer never reads. 0x08: we consume nothing. */
static void fuzz_mux(uint8_t mode, const uint8_t *data, size_t size)
{
	int s[2];
	check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s) == 0);
	if (!loop)
		loop = loop_new();
	n_echoes = n_pumps = n_closed = 0;
	memset(echoes, 0, sizeof(echoes));
	hold_back = mode & 8;
	mux = mux_new(loop, s[0], s[0], mode & 2 ? MUX_HOST : MUX_BOX, &ops, NULL);
	struct echo *own = &echoes[n_echoes++];
	own->s = mux_stream_open(mux, mux_stream_allocate(mux), &stream_ops, own, NULL);
	check(own->s && mux_stream_write(own->s, "hi", 2) == 2);
	feed(s[1], data, size, !(mode & 4));
	for (int i = 0; i < 4 && mux; i++) {
		loop_run_once(loop, false);
		drain(s[1]);
	}
	close(s[1]);
	for (int i = 0; i < 64 && mux; i++)
		loop_run_once(loop, false);
	check(!mux && n_closed == 1); /* whatever came: one end, and everything was told */
	loop_run_once(loop, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] & 1)
		decode_all(data + 1, size - 1);
	else
		fuzz_mux(data[0], data + 1, size - 1);
	return 0;
}
