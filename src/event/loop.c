/* SPDX-License-Identifier: Apache-2.0 */
/* The loop's life and its rounds: deferred calls, descriptors (loop-io.c), timers (loop-timer.c). */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "event/loop-internal.h"

void loop_die(const char *what)
{
	ssize_t ignored = write(STDERR_FILENO, what, strlen(what));
	(void)ignored;
	_exit(125);
}

struct loop *loop_new(void)
{
	struct loop *loop = mem_alloc(sizeof(*loop));
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0)
		loop_die("bulkhead: cannot create an event loop (epoll); is the limit of open files reached?\n");
	signal(SIGPIPE, SIG_IGN);
	return loop;
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	fd_close(&loop->epoll_fd);
	free(loop->slots);
	free(loop->changes);
	free(loop->pending);
	free(loop->heap);
	free(loop->waiting.items);
	free(loop->running.items);
	free(loop);
}

static bool alive(const struct loop *loop)
{
	return loop->n_asking > 0 || loop->n_heap > 0 || loop->waiting.len > 0;
}

static void run_deferred(struct loop *loop)
{
	/* Only what was there at the start: a call that defers itself must not starve the descriptors. */
	struct deferred_list round = loop->waiting;
	loop->waiting = loop->running;
	loop->waiting.len = 0;
	loop->running = round;
	for (size_t i = 0; i < loop->running.len; i++) {
		struct deferred d = loop->running.items[i];
		if (d.fn)
			d.fn(d.ctx);
	}
	loop->running.len = 0;
}

static void run_events(struct loop *loop, bool wait)
{
	bool nothing_to_wait_for = !alive(loop) || loop->waiting.len > 0;
	loop_io_wait(loop, wait && !nothing_to_wait_for ? loop_timer_wait_ms(loop) : 0);
	loop_io_run(loop);
	loop_timer_run(loop);
}

int loop_run(struct loop *loop)
{
	loop->quit_value = 0;
	loop->quitting = false;
	while (!loop->quitting) {
		run_deferred(loop);
		if (loop->quitting || !alive(loop))
			break;
		run_events(loop, true);
	}
	return loop->quit_value;
}

void loop_run_once(struct loop *loop, bool wait)
{
	bool has_deferred = loop->waiting.len > 0;
	run_deferred(loop);
	run_events(loop, wait && !has_deferred);
	/* What the callbacks deferred belongs to the events that were just handled. */
	run_deferred(loop);
}

void loop_quit(struct loop *loop, int value)
{
	loop->quit_value = value;
	loop->quitting = true;
}

void loop_defer(struct loop *loop, loop_timer_fn fn, void *ctx)
{
	struct deferred_list *list = &loop->waiting;
	if (list->len == list->cap) {
		list->cap = list->cap ? list->cap * 2 : 8;
		list->items = mem_grow_array(list->items, list->cap, sizeof(*list->items));
	}
	list->items[list->len++] = (struct deferred){ .fn = fn, .ctx = ctx };
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
