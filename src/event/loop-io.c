/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slot for each descriptor number. What epoll is told lags behind what was asked: interest that changes to and fro within a
 * round costs nothing. Only the last source of a number takes it out at once, because the number may be closed next.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/mem.h"
#include "event/loop-internal.h"

#define EVENTS_EACH_ROUND 64

struct loop_io {
	struct loop *loop;
	struct loop_io *next; /* of the same number */
	loop_io_fn fn;
	void *ctx;
	int fd;
	int events;
	int ready;            /* in this round; the place in `pending` then */
	size_t place;
};

static struct slot *slot_of(struct loop *loop, int fd)
{
	size_t n = loop->n_slots ? loop->n_slots : 32;
	while (n <= (size_t)fd)
		n *= 2;
	if (n > loop->n_slots) {
		loop->slots = mem_grow_array(loop->slots, n, sizeof(*loop->slots));
		for (size_t i = loop->n_slots; i < n; i++)
			loop->slots[i] = (struct slot){ 0 };
		loop->n_slots = n;
	}
	return &loop->slots[fd];
}

static void note_change(struct loop *loop, int fd)
{
	struct slot *s = slot_of(loop, fd);
	if (s->changed)
		return;
	s->changed = true;
	if (loop->n_changes == loop->cap_changes) {
		loop->cap_changes = loop->cap_changes ? loop->cap_changes * 2 : 16;
		loop->changes = mem_grow_array(loop->changes, loop->cap_changes, sizeof(*loop->changes));
	}
	loop->changes[loop->n_changes++] = fd;
}

static int tell(struct loop *loop, int fd, struct slot *s, int wanted)
{
	struct epoll_event e = {
		.events = (wanted & LOOP_READ ? EPOLLIN : 0u) | (wanted & LOOP_WRITE ? EPOLLOUT : 0u),
		.data.u64 = (uint64_t)s->generation << 32 | (uint32_t)fd,
	};
	int op = wanted == 0 ? EPOLL_CTL_DEL : s->told == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
	return epoll_ctl(loop->epoll_fd, op, fd, &e);
}

static void apply_changes(struct loop *loop)
{
	for (size_t i = 0; i < loop->n_changes; i++) {
		int fd = loop->changes[i], wanted = 0;
		struct slot *s = &loop->slots[fd];
		s->changed = false;
		for (struct loop_io *io = s->sources; io; io = io->next)
			wanted |= io->events;
		if (wanted == s->told)
			continue;
		bool always = s->always || (tell(loop, fd, s, wanted) < 0 && wanted != 0);
		loop->n_always += (always && wanted != 0) - (size_t)(s->always && s->told != 0);
		s->always = always;
		s->told = wanted;
	}
	loop->n_changes = 0;
}

/* No source is left: epoll forgets the number while it is still open, and so does what was read of it in this round. */
static void vacate(struct loop *loop, int fd)
{
	struct slot *s = &loop->slots[fd];
	if (s->told && s->always)
		loop->n_always--;
	else if (s->told)
		tell(loop, fd, s, 0);
	s->told = 0;
	s->always = false;
	s->generation++;
}

struct loop_io *loop_io_add(struct loop *loop, int fd, int events, loop_io_fn fn, void *ctx)
{
	struct loop_io *io = mem_alloc(sizeof(*io));
	struct slot *s = slot_of(loop, fd);
	*io = (struct loop_io){ .loop = loop, .next = s->sources, .fn = fn, .ctx = ctx, .fd = fd };
	s->sources = io;
	loop_io_set(io, events);
	return io;
}

void loop_io_set(struct loop_io *io, int events)
{
	if (io->events == events)
		return;
	io->loop->n_asking += (events != 0) - (size_t)(io->events != 0);
	io->events = events;
	note_change(io->loop, io->fd);
}

struct loop_io *loop_io_remove(struct loop_io *io)
{
	if (!io)
		return NULL;
	struct loop *loop = io->loop;
	struct loop_io **p = &loop->slots[io->fd].sources;
	loop_io_set(io, 0);
	while (*p != io)
		p = &(*p)->next;
	*p = io->next;
	if (io->ready)
		loop->pending[io->place] = NULL;
	if (!loop->slots[io->fd].sources)
		vacate(loop, io->fd);
	free(io);
	return NULL;
}

static void note_ready(struct loop *loop, int fd, int ready)
{
	for (struct loop_io *io = loop->slots[fd].sources; io; io = io->next) {
		if (!(ready & io->events) || io->ready)
			continue;
		if (loop->n_pending == loop->cap_pending) {
			loop->cap_pending = loop->cap_pending ? loop->cap_pending * 2 : 16;
			loop->pending = mem_grow_array(loop->pending, loop->cap_pending, sizeof(struct loop_io *));
		}
		io->ready = ready;
		io->place = loop->n_pending;
		loop->pending[loop->n_pending++] = io;
	}
}

void loop_io_wait(struct loop *loop, int timeout_ms)
{
	struct epoll_event events[EVENTS_EACH_ROUND];
	apply_changes(loop);
	int n = epoll_wait(loop->epoll_fd, events, EVENTS_EACH_ROUND, loop->n_always > 0 ? 0 : timeout_ms);
	if (n < 0 && errno != EINTR)
		loop_die("bulkhead: the event loop can't wait any more (epoll)\n");
	for (int i = 0; i < n; i++) {
		int fd = (int)(uint32_t)events[i].data.u64;
		int over = events[i].events & (EPOLLERR | EPOLLHUP) ? LOOP_READ | LOOP_WRITE : 0;
		int ready = (events[i].events & EPOLLIN ? LOOP_READ : 0) | (events[i].events & EPOLLOUT ? LOOP_WRITE : 0);
		if (loop->slots[fd].generation == events[i].data.u64 >> 32)
			note_ready(loop, fd, ready | over);
	}
	for (size_t fd = 0; loop->n_always > 0 && fd < loop->n_slots; fd++)
		if (loop->slots[fd].always)
			note_ready(loop, (int)fd, LOOP_READ | LOOP_WRITE);
}

void loop_io_run(struct loop *loop)
{
	for (size_t i = 0; i < loop->n_pending; i++) {
		struct loop_io *io = loop->pending[i];
		if (!io)
			continue;
		int ready = io->ready & io->events; /* of what is still asked for */
		io->ready = 0;
		if (ready)
			io->fn(io->ctx, io->fd, ready);
		/* `io` may be gone now. */
	}
	loop->n_pending = 0;
}
