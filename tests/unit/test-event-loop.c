/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "event/loop.h"

static struct loop *loop;

static int make_loop(void **state)
{
	loop = loop_new();
	return 0;
}

static int free_loop(void **state)
{
	loop_free(loop);
	return 0;
}

struct end { int fd, peer, calls, ready; struct loop_io *io; struct end *other; };

static void make_pair(struct end *e)
{
	int s[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s), 0);
	*e = (struct end){ .fd = s[0], .peer = s[1] };
}

static void drop_pair(struct end *e)
{
	e->io = loop_io_remove(e->io);
	close(e->fd);
	if (e->peer >= 0)
		close(e->peer);
}

static void count(void *ctx, int fd, int ready)
{
	struct end *e = ctx;
	assert_int_equal(fd, e->fd);
	e->calls++;
	e->ready = ready;
}

static void readiness(void **state)
{
	struct end e;
	make_pair(&e);
	e.io = loop_io_add(loop, e.fd, LOOP_READ, count, &e);
	loop_run_once(loop, false);
	assert_int_equal(e.calls, 0);
	assert_int_equal(write(e.peer, "x", 1), 1);
	loop_run_once(loop, true);
	assert_int_equal(e.calls, 1);
	assert_int_equal(e.ready, LOOP_READ);
	loop_io_set(e.io, 0); /* parked: the byte is still there */
	loop_run_once(loop, false);
	assert_int_equal(e.calls, 1);
	loop_io_set(e.io, LOOP_WRITE);
	loop_run_once(loop, false);
	assert_int_equal(e.ready, LOOP_WRITE);
	loop_io_set(e.io, LOOP_READ | LOOP_WRITE);
	loop_run_once(loop, false);
	assert_int_equal(e.ready, LOOP_READ | LOOP_WRITE);
	close(e.peer);
	e.peer = -1;
	loop_io_set(e.io, LOOP_READ);
	loop_run_once(loop, false);
	assert_int_equal(e.ready, LOOP_READ); /* a hang-up shows as what was asked for */
	drop_pair(&e);
}

static void files_are_always_ready(void **state)
{
	/* epoll refuses files and /dev/null; stdin may well be one. */
	struct end e = { .fd = open("/dev/null", O_RDWR | O_CLOEXEC), .peer = -1 };
	e.io = loop_io_add(loop, e.fd, LOOP_READ, count, &e);
	loop_run_once(loop, true);
	loop_run_once(loop, true);
	assert_int_equal(e.calls, 2);
	drop_pair(&e);
}

static void a_parked_file_asks_for_nothing(void **state)
{
	struct end e = { .fd = open("/dev/null", O_RDWR | O_CLOEXEC), .peer = -1 };
	e.io = loop_io_add(loop, e.fd, LOOP_READ, count, &e);
	loop_run_once(loop, true);
	loop_io_set(e.io, 0);
	loop_run_once(loop, false);
	assert_int_equal(e.calls, 1);
	assert_int_equal(loop_run(loop), 0); /* and doesn't keep the loop awake */
	loop_io_set(e.io, LOOP_WRITE);
	loop_run_once(loop, true);
	assert_int_equal(e.calls, 2);
	assert_int_equal(e.ready, LOOP_WRITE);
	drop_pair(&e);
}

static void two_sources_may_share_a_descriptor(void **state)
{
	struct end in, out;
	make_pair(&in);
	out = in;
	in.io = loop_io_add(loop, in.fd, LOOP_READ, count, &in);
	out.io = loop_io_add(loop, out.fd, LOOP_WRITE, count, &out);
	loop_run_once(loop, false);
	assert_int_equal(in.calls, 0);
	assert_int_equal(out.ready, LOOP_WRITE);
	loop_io_set(out.io, 0);
	assert_int_equal(write(in.peer, "x", 1), 1);
	loop_run_once(loop, false);
	assert_int_equal(in.ready, LOOP_READ);
	assert_int_equal(out.calls, 1);
	out.io = loop_io_remove(out.io); /* the other stays */
	loop_run_once(loop, false);
	assert_int_equal(in.calls, 2);
	drop_pair(&in);
}

static void remove_both(void *ctx, int fd, int ready)
{
	struct end *e = ctx;
	e->calls++;
	e->io = loop_io_remove(e->io);
	e->other->io = loop_io_remove(e->other->io);
}

static void sources_may_vanish_inside_callbacks(void **state)
{
	struct end a, b;
	make_pair(&a);
	make_pair(&b);
	a.other = &b;
	b.other = &a;
	a.io = loop_io_add(loop, a.fd, LOOP_WRITE, remove_both, &a);
	b.io = loop_io_add(loop, b.fd, LOOP_WRITE, remove_both, &b);
	loop_run_once(loop, false); /* both are ready; the first one called removes both */
	assert_int_equal(a.calls + b.calls, 1);
	loop_run_once(loop, false);
	assert_int_equal(a.calls + b.calls, 1);
	drop_pair(&a);
	drop_pair(&b);
}

static void a_number_is_reused_at_once(void **state)
{
	struct end a, b;
	make_pair(&a);
	a.io = loop_io_add(loop, a.fd, LOOP_READ, count, &a);
	loop_run_once(loop, false);
	int old = a.fd;
	drop_pair(&a);
	make_pair(&b);
	assert_int_equal(b.fd, old);
	b.io = loop_io_add(loop, b.fd, LOOP_READ, count, &b);
	assert_int_equal(write(b.peer, "x", 1), 1);
	loop_run_once(loop, false);
	assert_int_equal(b.calls, 1);
	assert_int_equal(a.calls, 0);
	drop_pair(&b);
}

struct ticker { int calls; struct loop_timer *timer; };

static void tick(void *ctx)
{
	struct ticker *t = ctx;
	t->calls++;
}

static void tick_and_free(void *ctx)
{
	struct ticker *t = ctx;
	t->calls++;
	t->timer = loop_timer_free(t->timer);
	loop_quit(loop, 7);
}

static void timers(void **state)
{
	struct ticker once = { 0 }, gone = { 0 }, stopped = { 0 };
	once.timer = loop_timer_new(loop, tick, &once);
	gone.timer = loop_timer_new(loop, tick_and_free, &gone);
	stopped.timer = loop_timer_new(loop, tick, &stopped);
	loop_run_once(loop, false);
	assert_int_equal(once.calls, 0); /* created stopped */
	uint64_t before = time_monotonic_ns();
	loop_timer_set(once.timer, 2 * NS_PER_MS, 0);
	loop_timer_set(gone.timer, 20 * NS_PER_MS, 0);
	loop_timer_set(stopped.timer, NS_PER_MS, 0);
	loop_timer_stop(stopped.timer);
	assert_int_equal(loop_run(loop), 7);
	assert_true(time_monotonic_ns() - before >= 19 * NS_PER_MS); /* never early */
	assert_int_equal(once.calls, 1);
	assert_int_equal(gone.calls, 1);
	assert_null(gone.timer);
	assert_int_equal(stopped.calls, 0);
	loop_timer_set(once.timer, NS_PER_MS, NS_PER_MS);
	while (once.calls < 4)
		loop_run_once(loop, true);
	loop_timer_free(once.timer);
	loop_timer_free(stopped.timer);
	assert_null(loop_timer_free(NULL));
}

enum { MANY = 500 };
static uint64_t last_earliest;

/* When it is due lies between the two. */
struct due { uint64_t earliest, latest; struct loop_timer *timer; bool rang; };

static void in_order(void *ctx)
{
	struct due *d = ctx;
	assert_false(d->rang);
	assert_true(d->latest >= last_earliest);
	d->rang = true;
	last_earliest = d->earliest;
}

static void many_timers_ring_in_order(void **state)
{
	static struct due due[MANY];
	unsigned x = 12345;
	last_earliest = 0;
	for (size_t i = 0; i < MANY; i++) {
		uint64_t after = (x = x * 1103515245 + 12345) % 60000 * 1000;
		due[i] = (struct due){ .earliest = time_monotonic_ns() + after };
		due[i].timer = loop_timer_new(loop, in_order, &due[i]);
		loop_timer_set(due[i].timer, after, 0);
		due[i].latest = time_monotonic_ns() + after;
	}
	for (size_t i = 0; i < MANY; i += 3)
		loop_timer_stop(due[i].timer);
	assert_int_equal(loop_run(loop), 0);
	for (size_t i = 0; i < MANY; i++) {
		assert_int_equal(due[i].rang, i % 3 != 0);
		loop_timer_free(due[i].timer);
	}
}

static void a_timer_counts_from_now(void **state)
{
	/* The loop's own clock is old after a long callback (here: before anything ran). */
	struct ticker t = { 0 };
	t.timer = loop_timer_new(loop, tick, &t);
	usleep(30000);
	uint64_t before = time_monotonic_ns();
	loop_timer_set(t.timer, 20 * NS_PER_MS, 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(t.calls, 1);
	assert_true(time_monotonic_ns() - before >= 19 * NS_PER_MS);
	loop_timer_free(t.timer);
}

static void run_ends_without_sources(void **state)
{
	struct end e;
	assert_int_equal(loop_run(loop), 0);
	make_pair(&e);
	e.io = loop_io_add(loop, e.fd, 0, count, &e);
	assert_int_equal(loop_run(loop), 0); /* parked sources alone: nothing could ever happen */
	drop_pair(&e);
}

static char trace[64];

static void trace_a(void *ctx) { strcat(trace, "a"); }
static void trace_b(void *ctx) { strcat(trace, "b"); }

static void defer_two(void *ctx, int fd, int ready)
{
	strcat(trace, "[");
	loop_defer(loop, trace_a, NULL);
	loop_defer(loop, trace_b, NULL);
	strcat(trace, "]");
}

static void deferred_calls_follow_the_callback(void **state)
{
	struct end e;
	trace[0] = '\0';
	make_pair(&e);
	e.io = loop_io_add(loop, e.fd, LOOP_WRITE, defer_two, &e);
	loop_run_once(loop, false);
	assert_string_equal(trace, "[]ab");
	drop_pair(&e);
	trace[0] = '\0';
	loop_defer(loop, trace_a, NULL);
	assert_int_equal(loop_run(loop), 0); /* a call that waits keeps the loop alive, and it doesn't sleep on it */
	loop_defer(loop, trace_b, NULL);
	loop_run_once(loop, true);
	assert_string_equal(trace, "ab");
}

static void deferred_calls_can_be_cancelled(void **state)
{
	int x, y;
	trace[0] = '\0';
	loop_defer(loop, trace_a, &x);
	loop_defer(loop, trace_a, &y);
	loop_defer(loop, trace_b, &x);
	loop_defer_cancel(loop, trace_a, &x);
	loop_run_once(loop, false);
	assert_string_equal(trace, "ab");
}

static void cancel_b(void *ctx) { loop_defer_cancel(loop, trace_b, ctx); }

static void cancelling_works_within_the_round(void **state)
{
	trace[0] = '\0';
	loop_defer(loop, cancel_b, trace);
	loop_defer(loop, trace_b, trace);
	loop_defer(loop, trace_a, trace);
	loop_run_once(loop, false);
	assert_string_equal(trace, "a");
}

static int rounds;

static void defer_again(void *ctx)
{
	rounds++;
	loop_defer(loop, defer_again, ctx);
}

static void quit_when_read(void *ctx, int fd, int ready)
{
	loop_quit(loop, 3);
}

static void endless_deferring_does_not_starve_descriptors(void **state)
{
	struct end e;
	make_pair(&e);
	rounds = 0;
	e.io = loop_io_add(loop, e.fd, LOOP_READ, quit_when_read, &e);
	assert_int_equal(write(e.peer, "x", 1), 1);
	loop_defer(loop, defer_again, NULL);
	assert_int_equal(loop_run(loop), 3);
	assert_true(rounds >= 1 && rounds < 10);
	loop_defer_cancel(loop, defer_again, NULL);
	drop_pair(&e);
}

static void signals_are_descriptors(void **state)
{
	struct err err;
	sigset_t before;
	sigprocmask(SIG_SETMASK, NULL, &before);
	int fd = loop_signalfd(&err, SIGUSR1, SIGUSR2, 0);
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	raise(SIGUSR2);
	struct signalfd_siginfo info;
	assert_int_equal(read(fd, &info, sizeof(info)), sizeof(info));
	assert_int_equal(info.ssi_signo, SIGUSR2);
	assert_int_equal(read(fd, &info, sizeof(info)), -1); /* non-blocking */
	close(fd);
	sigprocmask(SIG_SETMASK, &before, NULL);
	struct sigaction sa;
	sigaction(SIGPIPE, NULL, &sa);
	assert_ptr_equal(sa.sa_handler, SIG_IGN);
}

#define T(f) cmocka_unit_test_setup_teardown(f, make_loop, free_loop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(readiness), T(files_are_always_ready), T(a_parked_file_asks_for_nothing), T(two_sources_may_share_a_descriptor),
		T(many_timers_ring_in_order), T(sources_may_vanish_inside_callbacks), T(a_number_is_reused_at_once), T(timers),
		T(a_timer_counts_from_now), T(run_ends_without_sources), T(deferred_calls_follow_the_callback),
		T(deferred_calls_can_be_cancelled), T(cancelling_works_within_the_round), T(endless_deferring_does_not_starve_descriptors),
		T(signals_are_descriptors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
