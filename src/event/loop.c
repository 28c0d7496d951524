/* SPDX-License-Identifier: Apache-2.0 */
#include "event/loop.h"

#include <errno.h>
#include <ev.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"

struct deferred {
	loop_timer_fn fn; /* NULL: cancelled */
	void *ctx;
};

struct deferred_list {
	struct deferred *items;
	size_t len, cap;
};

struct loop {
	struct ev_loop *ev;
	int quit_value;
	ev_prepare before_wait;       /* active while calls are waiting: makes them before the loop sleeps */
	/* active while calls were added by deferred calls: keeps the loop from sleeping on them */
	ev_timer no_wait;
	struct deferred_list waiting; /* for the next round */
	struct deferred_list running; /* the round at hand */
};

struct loop_io {
	ev_io io;
	struct loop *loop;
	loop_io_fn fn;
	void *ctx;
};

struct loop_timer {
	ev_timer timer;
	struct loop *loop;
	loop_timer_fn fn;
	void *ctx;
};

static void run_deferred(struct loop *loop)
{
	/* Only what was there at the start: a call that defers itself must not starve the descriptors. */
	struct deferred_list round = loop->waiting;
	loop->waiting = loop->running;
	loop->waiting.len = 0;
	loop->running = round;
	ev_prepare_stop(loop->ev, &loop->before_wait);
	ev_timer_stop(loop->ev, &loop->no_wait);
	for (size_t i = 0; i < loop->running.len; i++) {
		struct deferred d = loop->running.items[i];
		if (d.fn)
			d.fn(d.ctx);
	}
	loop->running.len = 0;
	if (loop->waiting.len > 0) {
		ev_timer_set(&loop->no_wait, 0., 0.);
		ev_timer_start(loop->ev, &loop->no_wait);
	}
}

static void on_before_wait(struct ev_loop *ev, ev_prepare *w, int revents)
{
	run_deferred(CONTAINER_OF(w, struct loop, before_wait));
}

static void on_no_wait(struct ev_loop *ev, ev_timer *w, int revents)
{
}

struct loop *loop_new(void)
{
	static const char failure[] = "bulkhead: cannot create an event loop (epoll); is the limit of open files reached?\n";
	struct loop *loop = mem_alloc(sizeof(*loop));
	/* No flags from the environment, no signal handling by libev: the caller's environment must not choose our back end. */
	loop->ev = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
	if (!loop->ev) {
		ssize_t ignored = write(STDERR_FILENO, failure, sizeof(failure) - 1);
		(void)ignored;
		_exit(125);
	}
	signal(SIGPIPE, SIG_IGN);
	ev_prepare_init(&loop->before_wait, on_before_wait);
	ev_timer_init(&loop->no_wait, on_no_wait, 0., 0.);
	return loop;
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	ev_prepare_stop(loop->ev, &loop->before_wait);
	ev_timer_stop(loop->ev, &loop->no_wait);
	ev_loop_destroy(loop->ev);
	free(loop->waiting.items);
	free(loop->running.items);
	free(loop);
}

int loop_run(struct loop *loop)
{
	loop->quit_value = 0;
	ev_run(loop->ev, 0);
	return loop->quit_value;
}

void loop_run_once(struct loop *loop, bool wait)
{
	bool has_deferred = loop->waiting.len > 0;
	ev_run(loop->ev, wait && !has_deferred ? EVRUN_ONCE : EVRUN_NOWAIT);
	/* What the callbacks deferred belongs to the events that were just handled. */
	if (loop->waiting.len > 0)
		run_deferred(loop);
}

void loop_quit(struct loop *loop, int value)
{
	loop->quit_value = value;
	ev_break(loop->ev, EVBREAK_ALL);
}

static int to_ev(int events)
{
	return (events & LOOP_READ ? EV_READ : 0) | (events & LOOP_WRITE ? EV_WRITE : 0);
}

static void on_io(struct ev_loop *ev, ev_io *w, int revents)
{
	struct loop_io *io = CONTAINER_OF(w, struct loop_io, io);
	int asked = (w->events & EV_READ ? LOOP_READ : 0) | (w->events & EV_WRITE ? LOOP_WRITE : 0);
	int ready = (revents & EV_READ ? LOOP_READ : 0) | (revents & EV_WRITE ? LOOP_WRITE : 0);
	if (revents & EV_ERROR)
		ready = asked; /* libev has stopped it: the descriptor was closed under it; the next read or write says so */
	if (ready & asked)
		io->fn(io->ctx, w->fd, ready & asked);
	/* `io` may be gone now. */
}

struct loop_io *loop_io_add(struct loop *loop, int fd, int events, loop_io_fn fn, void *ctx)
{
	struct loop_io *io = mem_alloc(sizeof(*io));
	io->loop = loop;
	io->fn = fn;
	io->ctx = ctx;
	ev_io_init(&io->io, on_io, fd, to_ev(events));
	if (events)
		ev_io_start(loop->ev, &io->io);
	return io;
}

void loop_io_set(struct loop_io *io, int events)
{
	int wanted = to_ev(events);
	if ((io->io.events & (EV_READ | EV_WRITE)) == wanted && (bool)ev_is_active(&io->io) == (wanted != 0))
		return;
	ev_io_stop(io->loop->ev, &io->io);
	ev_io_set(&io->io, io->io.fd, wanted);
	if (wanted)
		ev_io_start(io->loop->ev, &io->io);
}

struct loop_io *loop_io_remove(struct loop_io *io)
{
	if (io) {
		/* Stopping also takes back an event that is pending in this round. */
		ev_io_stop(io->loop->ev, &io->io);
		free(io);
	}
	return NULL;
}

static void on_timer(struct ev_loop *ev, ev_timer *w, int revents)
{
	struct loop_timer *t = CONTAINER_OF(w, struct loop_timer, timer);
	t->fn(t->ctx);
}

struct loop_timer *loop_timer_new(struct loop *loop, loop_timer_fn fn, void *ctx)
{
	struct loop_timer *t = mem_alloc(sizeof(*t));
	t->loop = loop;
	t->fn = fn;
	t->ctx = ctx;
	ev_timer_init(&t->timer, on_timer, 0., 0.);
	return t;
}

void loop_timer_set(struct loop_timer *t, uint64_t after_ns, uint64_t repeat_ns)
{
	ev_timer_stop(t->loop->ev, &t->timer);
	/* libev counts from its cached time, which is old when the callback at hand took long. */
	ev_now_update(t->loop->ev);
	ev_timer_set(&t->timer, (double)after_ns / NS_PER_S, (double)repeat_ns / NS_PER_S);
	ev_timer_start(t->loop->ev, &t->timer);
}

void loop_timer_stop(struct loop_timer *t)
{
	ev_timer_stop(t->loop->ev, &t->timer);
}

struct loop_timer *loop_timer_free(struct loop_timer *t)
{
	if (t) {
		ev_timer_stop(t->loop->ev, &t->timer);
		free(t);
	}
	return NULL;
}

void loop_defer(struct loop *loop, loop_timer_fn fn, void *ctx)
{
	struct deferred_list *list = &loop->waiting;
	if (list->len == list->cap) {
		list->cap = list->cap ? list->cap * 2 : 8;
		list->items = mem_grow_array(list->items, list->cap, sizeof(*list->items));
	}
	list->items[list->len++] = (struct deferred){ .fn = fn, .ctx = ctx };
	ev_prepare_start(loop->ev, &loop->before_wait); /* no effect when active */
}

static void cancel(struct deferred_list *list, loop_timer_fn fn, const void *ctx)
{
	for (size_t i = 0; i < list->len; i++)
		if (list->items[i].fn == fn && list->items[i].ctx == ctx)
			list->items[i].fn = NULL;
}

void loop_defer_cancel(struct loop *loop, loop_timer_fn fn, void *ctx)
{
	cancel(&loop->waiting, fn, ctx);
	cancel(&loop->running, fn, ctx);
}

int loop_signalfd(struct err *err, int first_signal, ...)
{
	sigset_t set;
	sigemptyset(&set);
	va_list ap;
	va_start(ap, first_signal);
	for (int s = first_signal; s != 0; s = va_arg(ap, int))
		sigaddset(&set, s);
	va_end(ap);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_sys(err, errno, "cannot block signals");
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return err_sys(err, errno, "cannot create a signal descriptor");
	return fd;
}
