/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "wire/pump.h"

/* Two muxes joined by a socketpair in one loop: `box` opens a stream, `host` answers the announcement with what the test prepared. */
static struct loop *loop;
static struct mux *host, *box;

struct joint {
	struct pump *pump;
	unsigned done, input_ends;
	bool failed, keep;
	struct err err;
	size_t pass;         /* what the filter lets through; SIZE_MAX: all */
	size_t shown;
	bool free_in_filter, release_in_filter, cut_in_filter;
	size_t cut_at;
};
static struct joint near, far; /* near: the box's end, far: the host's */
static int far_rfd, far_wfd;
static const struct pump_ops *far_ops;

static void on_done(void *ctx, const struct err *err)
{
	struct joint *j = ctx;
	j->done++;
	j->failed = err != NULL;
	if (err)
		j->err = *err;
	if (!j->keep) {
		pump_free(j->pump);
		j->pump = NULL;
	}
}

static size_t filter(void *ctx, const uint8_t *data, size_t len)
{
	struct joint *j = ctx;
	j->shown += len;
	if (j->free_in_filter) {
		pump_free(j->pump);
		j->pump = NULL;
		return len;
	}
	if (j->cut_in_filter)
		pump_cut(j->pump, j->cut_at);
	if (j->release_in_filter)
		pump_release(j->pump, SIZE_MAX);
	return j->pass < len ? j->pass : len;
}

static void on_input_end(void *ctx) { ((struct joint *)ctx)->input_ends++; }

static const struct pump_ops plain = { .on_done = on_done, .on_input_end = on_input_end };
static const struct pump_ops filtered = { .on_done = on_done, .filter = filter };

static int on_message(void *ctx, uint16_t type, const uint8_t *body, size_t len, struct err *err)
{
	uint32_t id = (uint32_t)body[0] << 24 | (uint32_t)body[1] << 16 | (uint32_t)body[2] << 8 | body[3];
	far.pump = pump_new(loop, host, id, far_rfd, far_wfd, far_ops, &far, err);
	return far.pump ? 0 : -1;
}

static void on_closed(void *ctx, const struct err *err) {}
static const struct mux_ops mux_ops = { on_message, on_closed };

static int setup(void **state)
{
	int s[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) < 0)
		return -1;
	loop = loop_new();
	host = mux_new(loop, s[0], s[0], MUX_HOST, &mux_ops, NULL);
	box = mux_new(loop, s[1], s[1], MUX_BOX, &mux_ops, NULL);
	near = far = (struct joint){ .pass = SIZE_MAX };
	far_ops = &plain;
	return 0;
}

static int teardown(void **state)
{
	pump_free(near.pump);
	pump_free(far.pump);
	mux_free(box);
	mux_free(host);
	loop_free(loop);
	return 0;
}

static void settle(void)
{
	for (int i = 0; i < 30; i++)
		loop_run_once(loop, false);
}

/* Opens one stream: near_rfd/near_wfd on the box's side, rfd/wfd on the host's. */
static void join(int near_rfd, int near_wfd, int rfd, int wfd)
{
	struct err err;
	uint32_t id = mux_stream_allocate(box);
	const uint8_t body[4] = { (uint8_t)(id >> 24), (uint8_t)(id >> 16), (uint8_t)(id >> 8), (uint8_t)id };
	far_rfd = rfd;
	far_wfd = wfd;
	near.pump = pump_new(loop, box, id, near_rfd, near_wfd, &plain, &near, &err);
	assert_non_null(near.pump);
	assert_int_equal(mux_send(box, 1, body, 4, &err), 0);
	settle();
	assert_true(far.pump || far.done);
}

static void make_pipe(int p[2]) { assert_int_equal(pipe2(p, O_CLOEXEC), 0); }

static void make_sockets(int s[2]) { assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0); }

static void put(int fd, const char *text) { assert_int_equal(fd_write_full(fd, text, strlen(text)), 0); }

static void expect(int fd, const char *text)
{
	char got[256];
	settle();
	fd_set_nonblock(fd, true);
	ssize_t n = read(fd, got, sizeof(got));
	assert_int_equal(n, strlen(text));
	assert_memory_equal(got, text, strlen(text));
}

static void expect_end(int fd)
{
	char c;
	settle();
	fd_set_nonblock(fd, true);
	assert_int_equal(read(fd, &c, 1), 0);
}

static void expect_nothing(int fd)
{
	char c;
	settle();
	fd_set_nonblock(fd, true);
	assert_int_equal(read(fd, &c, 1), -1);
	assert_int_equal(errno, EAGAIN);
}

static void one_way(void **state)
{
	int in[2], out[2];
	make_pipe(in);
	make_pipe(out);
	join(in[0], -1, -1, out[1]);
	put(in[1], "hello");
	expect(out[0], "hello");
	assert_int_equal(pump_bytes_out(near.pump), 5);
	assert_int_equal(pump_bytes_in(far.pump), 5);
	put(in[1], "rest");
	close(in[1]);
	expect(out[0], "rest");
	expect_end(out[0]);
	assert_int_equal(near.done, 1);
	assert_int_equal(far.done, 1);
	assert_false(near.failed);
	assert_false(far.failed);
	assert_int_equal(far.input_ends, 1);
	close(out[0]);
}

static void both_ways_with_half_close(void **state)
{
	int a[2], b[2];
	make_sockets(a);
	make_sockets(b);
	join(a[0], a[0], b[0], b[0]);
	put(a[1], "request");
	shutdown(a[1], SHUT_WR);
	expect(b[1], "request");
	expect_end(b[1]);
	assert_int_equal(near.done + far.done, 0);
	put(b[1], "response"); /* after the other direction has ended */
	close(b[1]);
	expect(a[1], "response");
	expect_end(a[1]);
	assert_int_equal(near.done, 1);
	assert_int_equal(far.done, 1);
	assert_false(near.failed || far.failed);
	close(a[1]);
}

static void output_survives_an_immediate_free(void **state)
{
	/* As an agent does: the command has ended, its pump is done and freed, the host reads later. Host's side never says EOF here. */
	int in[2], out[2], quiet[2];
	make_pipe(in);
	make_pipe(out);
	make_pipe(quiet);
	put(in[1], "all of it");
	close(in[1]);
	join(in[0], -1, quiet[0], out[1]);
	expect(out[0], "all of it");
	expect_end(out[0]);
	assert_int_equal(near.done, 1);
	assert_false(near.failed);
	assert_int_equal(far.done, 1); /* its own reading was cut off by the reset */
	assert_true(far.failed);
	close(quiet[1]);
	close(out[0]);
}

static void bytes_without_taker_are_dropped_and_credited(void **state)
{
	int in[2], hold[2];
	make_pipe(in);
	make_pipe(hold);
	join(in[0], -1, hold[0], -1);
	cleanup_free char *block = mem_alloc(65536);
	for (int i = 0; i < 32; i++) { /* 2 MiB: far more than the window */
		assert_int_equal(fd_write_full(in[1], block, 65536), 0);
		settle();
	}
	assert_true(pump_bytes_in(far.pump) == 32 * 65536);
	assert_int_equal(far.done, 0);
	close(in[1]);
	close(hold[1]);
}

static void a_slow_reader_holds_back_the_writer(void **state)
{
	int in[2], out[2];
	make_pipe(in);
	make_pipe(out);
	fd_set_nonblock(in[1], true);
	join(in[0], -1, -1, out[1]);
	cleanup_free char *block = mem_alloc(65536);
	size_t taken = 0;
	for (int i = 0; i < 200; i++) {
		ssize_t n = write(in[1], block, 65536);
		taken += n > 0 ? (size_t)n : 0;
		settle();
	}
	/* Two kernel pipes, one window (of which the pump's buffer is part): no more is in flight, whatever the peer tries. */
	assert_true(taken <= 2 * 65536 + MUX_WINDOW);
	assert_true(pump_bytes_in(far.pump) <= 65536 + MUX_WINDOW);
	size_t got = 0;
	fd_set_nonblock(out[0], true);
	for (int idle = 0; idle < 3;) {
		ssize_t n = read(out[0], block, 65536);
		got += n > 0 ? (size_t)n : 0;
		idle = n > 0 ? 0 : idle + 1;
		settle();
	}
	assert_int_equal(got, taken);
	close(in[1]);
	close(out[0]);
}

static void much_data_arrives_in_order(void **state)
{
	int a[2], b[2];
	make_sockets(a);
	make_sockets(b);
	fd_set_nonblock(a[1], true);
	fd_set_nonblock(b[1], true);
	join(a[0], a[0], b[0], b[0]);
	/* A counting pattern both ways at once, in odd portions. */
	enum { TOTAL = 3 * 1024 * 1024 };
	size_t sent[2] = { 0 }, got[2] = { 0 };
	const int ends[2] = { a[1], b[1] };
	static uint8_t block[50021];
	for (int rounds = 0; (got[0] < TOTAL || got[1] < TOTAL) && rounds < 1000000; rounds++) {
		for (int d = 0; d < 2; d++) {
			size_t want = TOTAL - sent[d] < sizeof(block) ? TOTAL - sent[d] : sizeof(block);
			for (size_t i = 0; i < want; i++)
				block[i] = (uint8_t)((sent[d] + i) % 251);
			ssize_t n = want ? write(ends[d], block, want) : 0;
			sent[d] += n > 0 ? (size_t)n : 0;
			n = read(ends[1 - d], block, sizeof(block) - (size_t)(rounds % 7) * 5000);
			for (ssize_t i = 0; i < n; i++)
				if (block[i] != (uint8_t)((got[d] + (size_t)i) % 251))
					fail_msg("byte %zu of direction %d is wrong", got[d] + (size_t)i, d);
			got[d] += n > 0 ? (size_t)n : 0;
		}
		loop_run_once(loop, false);
	}
	assert_int_equal(got[0], TOTAL);
	assert_int_equal(got[1], TOTAL);
	close(a[1]);
	close(b[1]);
	settle();
	assert_int_equal(near.done, 1);
	assert_int_equal(far.done, 1);
}

static void a_dead_reader_is_an_error_but_not_a_signal(void **state)
{
	int in[2], out[2];
	make_pipe(in);
	make_pipe(out);
	join(in[0], -1, -1, out[1]);
	close(out[0]);
	put(in[1], "x");
	settle();
	assert_int_equal(far.done, 1);
	assert_true(far.failed);
	assert_int_equal(far.err.sys, EPIPE);
	assert_int_equal(near.done, 1); /* told by a reset */
	assert_true(near.failed);
	close(in[1]);
}

static void an_early_answer_is_delivered_though_the_request_fails(void **state)
{
	int a[2], in[2], out[2];
	make_sockets(a);
	make_pipe(in);  /* what the far descriptor says */
	make_pipe(out); /* what it is told */
	join(a[0], a[0], in[0], out[1]);
	close(out[0]);
	put(a[1], "request");
	settle();
	assert_int_equal(far.done, 0);
	put(in[1], "413 too large");
	close(in[1]);
	expect(a[1], "413 too large");
	assert_int_equal(far.done, 1);
	assert_true(far.failed);
	close(a[1]);
}

static void stopping_to_read_and_to_write(void **state)
{
	int a[2], b[2];
	make_sockets(a);
	make_sockets(b);
	join(a[0], a[0], b[0], b[0]);
	pump_stop_reading(near.pump);
	assert_int_equal(near.done, 0); /* never from inside a call */
	put(a[1], "unheard");
	expect_end(b[1]);
	put(b[1], "answer");
	expect(a[1], "answer");
	pump_stop_writing(near.pump);
	assert_int_equal(near.done, 0);
	put(b[1], "dropped");
	settle();
	assert_int_equal(near.done, 1);
	close(a[1]);
	close(b[1]);
}

static void draining_takes_what_is_there_and_no_more(void **state)
{
	int in[2], out[2];
	make_pipe(in);
	make_pipe(out);
	join(in[0], -1, -1, out[1]);
	put(in[1], "of the command");
	pump_drain(near.pump);
	put(in[1], "of a grandchild that keeps the pipe open");
	expect(out[0], "of the command");
	expect_end(out[0]);
	assert_int_equal(near.done, 1);
	assert_false(near.failed);
	close(in[1]);
	close(out[0]);
}

static void draining_an_empty_pipe_ends_at_once(void **state)
{
	int in[2], out[2];
	make_pipe(in);
	make_pipe(out);
	join(in[0], -1, -1, out[1]);
	pump_drain(near.pump);
	expect_end(out[0]);
	assert_int_equal(near.done, 1);
	close(in[1]);
	close(out[0]);
}

static void a_terminal_ends_with_its_last_user(void **state)
{
	int master, slave, out[2];
	struct termios raw;
	make_pipe(out);
	assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
	tcgetattr(slave, &raw);
	cfmakeraw(&raw);
	tcsetattr(slave, TCSANOW, &raw);
	join(master, -1, -1, out[1]);
	struct pollfd ready = { .fd = master, .events = POLLIN };
	put(slave, "shell");
	assert_int_equal(poll(&ready, 1, 60000), 1); /* the kernel hands it over a moment later */
	expect(out[0], "shell");
	close(slave); /* EIO on the master: an end, not an error */
	assert_int_equal(poll(&ready, 1, 60000), 1);
	expect_end(out[0]);
	assert_int_equal(near.done, 1);
	assert_false(near.failed);
	close(out[0]);
}

static void a_reset_before_the_end_is_an_error(void **state)
{
	int in[2], out[2];
	make_pipe(in);
	make_pipe(out);
	join(in[0], -1, -1, out[1]);
	put(in[1], "part");
	settle();
	pump_free(near.pump);
	near.pump = NULL;
	expect(out[0], "part");
	assert_int_equal(far.done, 1);
	assert_true(far.failed);
	assert_int_equal(far.err.code, ERR_CLOSED);
	close(in[1]);
	close(out[0]);
}

static void the_end_of_the_pipe_is_an_error(void **state)
{
	int in[2], out[2];
	make_pipe(in);
	make_pipe(out);
	join(in[0], -1, -1, out[1]);
	pump_free(near.pump);
	near.pump = NULL;
	mux_free(box);
	box = NULL;
	settle();
	assert_int_equal(far.done, 1);
	assert_true(far.failed);
	close(in[1]);
	close(out[0]);
}

static void what_arrived_whole_is_written_after_the_pipe_ended(void **state)
{
	/* The agent sent everything and exited; the reader of our stdout is slow. */
	int in[2], out[2];
	make_pipe(in);
	make_pipe(out);
	cleanup_free char *block = mem_alloc(65536);
	join(in[0], -1, -1, out[1]);
	for (int i = 0; i < 3; i++) { /* 64 KiB fill the pipe, the rest waits in the pump */
		assert_int_equal(fd_write_full(in[1], block, 65536), 0);
		settle();
	}
	close(in[1]);
	settle();
	assert_int_equal(near.done, 1);
	mux_free(box);
	box = NULL;
	settle();
	assert_int_equal(far.done, 0);
	size_t got = 0;
	fd_set_nonblock(out[0], true);
	for (int idle = 0; idle < 3;) {
		ssize_t n = read(out[0], block, 65536);
		got += n > 0 ? (size_t)n : 0;
		idle = n > 0 ? 0 : idle + 1;
		settle();
	}
	assert_int_equal(got, 3 * 65536);
	assert_int_equal(far.done, 1);
	assert_false(far.failed);
	close(out[0]);
}

static void filter_holds_and_releases(void **state)
{
	int in[2], out[2];
	make_pipe(in);
	make_pipe(out);
	far_ops = &filtered;
	far.pass = 3;
	join(in[0], -1, -1, out[1]);
	put(in[1], "abcdef");
	expect(out[0], "abc");
	assert_int_equal(far.shown, 6);
	far.pass = SIZE_MAX;
	put(in[1], "ghi"); /* would pass, but not ahead of what is held */
	expect_nothing(out[0]);
	assert_int_equal(far.shown, 9);
	pump_release(far.pump, 2);
	expect(out[0], "de");
	pump_release(far.pump, 1000); /* more than is held counts as all */
	expect(out[0], "fghi");
	put(in[1], "jkl");
	expect(out[0], "jkl");
	far.pass = 0;
	put(in[1], "held to the end");
	close(in[1]);
	expect_nothing(out[0]);
	assert_int_equal(far.done, 0);
	pump_release(far.pump, SIZE_MAX);
	expect(out[0], "held to the end");
	expect_end(out[0]);
	assert_int_equal(far.done, 1);
	assert_false(far.failed);
	close(out[0]);
}

static void filter_may_release_or_free(void **state)
{
	int in[2], out[2];
	make_pipe(in);
	make_pipe(out);
	far_ops = &filtered;
	far.pass = 0;
	join(in[0], -1, -1, out[1]);
	put(in[1], "abc");
	expect_nothing(out[0]);
	far.pass = SIZE_MAX;
	far.release_in_filter = true;
	put(in[1], "def");
	expect(out[0], "abcdef");
	far.free_in_filter = true;
	put(in[1], "forbidden");
	expect_end(out[0]); /* freed, so closed, and not a byte of it */
	assert_int_equal(far.done, 0);
	assert_int_equal(near.done, 1);
	close(in[1]);
	close(out[0]);
}

static void held_bytes_hold_back_the_peer(void **state)
{
	int in[2], out[2];
	make_pipe(in);
	make_pipe(out);
	far_ops = &filtered;
	far.pass = 0;
	fd_set_nonblock(in[1], true);
	join(in[0], -1, -1, out[1]);
	cleanup_free char *block = mem_alloc(65536);
	for (int i = 0; i < 50; i++) {
		ssize_t n = write(in[1], block, 65536);
		(void)n;
		settle();
	}
	assert_int_equal(pump_bytes_in(far.pump), MUX_WINDOW);
	close(in[1]);
	close(out[0]);
}

static void what_lies_behind_a_cut_is_not_waited_for(void **state)
{
	int in[2], out[2];
	make_pipe(in);
	make_pipe(out);
	far_ops = &filtered;
	far.pass = 0;
	join(in[0], -1, -1, out[1]);
	put(in[1], "ab");
	settle();
	far.cut_in_filter = true;
	far.cut_at = 3;
	put(in[1], "cdefg");
	settle();
	put(in[1], "never shown");
	settle();
	assert_int_equal(far.shown, 7);
	assert_int_equal(far.done, 0);
	pump_release(far.pump, 5);
	expect(out[0], "abcde");
	expect_end(out[0]);
	assert_int_equal(far.done, 1);
	close(in[1]);
	close(out[0]);
}

static void a_cut_at_nothing_ends_the_direction(void **state)
{
	int in[2], out[2];
	make_pipe(in);
	make_pipe(out);
	far_ops = &filtered;
	far.cut_in_filter = true;
	join(in[0], -1, -1, out[1]);
	put(in[1], "abc");
	expect_end(out[0]);
	assert_int_equal(far.done, 1);
	close(in[1]);
	close(out[0]);
}

static void many_streams_share_the_pipe_fairly(void **state)
{
	/* One stream that floods must not keep another from being heard. */
	int flood[2], sink[2], in[2], out[2];
	make_pipe(flood);
	make_pipe(sink);
	make_pipe(in);
	make_pipe(out);
	fd_set_nonblock(flood[1], true);
	fd_set_nonblock(sink[0], true);
	join(flood[0], -1, -1, sink[1]);
	struct joint near1 = near, far1 = far;
	near = far = (struct joint){ .pass = SIZE_MAX };
	join(in[0], -1, -1, out[1]);
	cleanup_free char *block = mem_alloc(65536);
	put(in[1], "quiet");
	fd_set_nonblock(out[0], true);
	char got[8];
	ssize_t n = -1;
	unsigned rounds = 0;
	for (; n < 0 && rounds < 1000; rounds++) {
		while (write(flood[1], block, 65536) > 0)
			;
		while (read(sink[0], block, 65536) > 0)
			;
		loop_run_once(loop, false);
		n = read(out[0], got, sizeof(got));
	}
	assert_int_equal(n, 5);
	assert_true(rounds < 10);
	pump_free(near1.pump);
	pump_free(far1.pump);
	near1.pump = far1.pump = NULL;
	close(flood[1]);
	close(sink[0]);
	close(in[1]);
	close(out[0]);
}

static void failure_leaves_the_descriptors_to_the_caller(void **state)
{
	struct err err = ERR_INIT;
	int p[2];
	make_pipe(p);
	assert_null(pump_new(loop, host, 0, p[0], -1, &plain, &near, &err));
	assert_int_equal(err.code, ERR_PROTOCOL);
	assert_true(fcntl(p[0], F_GETFD) >= 0);
	assert_null(pump_new(loop, host, 2, 9999, -1, &plain, &near, &err));
	assert_int_equal(err.sys, EBADF);
	close(p[0]);
	close(p[1]);
	pump_free(NULL);
}

static void a_shared_socket_stays_blocking_for_others(void **state)
{
	int a[2], b[2];
	make_sockets(a);
	make_sockets(b);
	join(a[0], a[0], b[0], b[0]);
	assert_false(fcntl(a[0], F_GETFL) & O_NONBLOCK);
	put(a[1], "x");
	expect(b[1], "x");
	close(a[1]);
	close(b[1]);
}

static void files_can_be_pumped(void **state)
{
	char path[] = "/tmp/test-wire-pump-XXXXXX";
	int file = mkostemp(path, O_CLOEXEC), out[2];
	unlink(path);
	make_pipe(out);
	put(file, "content");
	lseek(file, 0, SEEK_SET);
	join(file, -1, -1, out[1]);
	expect(out[0], "content");
	expect_end(out[0]);
	assert_int_equal(near.done, 1);
	close(out[0]);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(one_way), T(both_ways_with_half_close), T(output_survives_an_immediate_free), T(bytes_without_taker_are_dropped_and_credited),
		T(a_slow_reader_holds_back_the_writer), T(much_data_arrives_in_order), T(a_dead_reader_is_an_error_but_not_a_signal),
		T(an_early_answer_is_delivered_though_the_request_fails), T(stopping_to_read_and_to_write),
		T(draining_takes_what_is_there_and_no_more), T(draining_an_empty_pipe_ends_at_once), T(a_terminal_ends_with_its_last_user),
		T(a_reset_before_the_end_is_an_error), T(the_end_of_the_pipe_is_an_error),
		T(what_arrived_whole_is_written_after_the_pipe_ended), T(filter_holds_and_releases), T(filter_may_release_or_free),
		T(held_bytes_hold_back_the_peer), T(what_lies_behind_a_cut_is_not_waited_for),
		T(a_cut_at_nothing_ends_the_direction), T(many_streams_share_the_pipe_fairly), T(failure_leaves_the_descriptors_to_the_caller),
		T(a_shared_socket_stays_blocking_for_others), T(files_can_be_pumped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
