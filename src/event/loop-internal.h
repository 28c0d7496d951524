/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by loop.c, loop-io.c and loop-timer.c only. */
#pragma once

#include <stddef.h>

#include "event/loop.h"

struct deferred {
	loop_timer_fn fn; /* NULL: cancelled */
	void *ctx;
};

struct deferred_list {
	struct deferred *items;
	size_t len, cap;
};

/* What is known of a descriptor number. */
struct slot {
	struct loop_io *sources;
	uint32_t generation; /* tells events of an earlier descriptor of that number */
	int told;            /* the interest that epoll knows, or would */
	bool changed;        /* is in the list of changes */
	bool always;         /* epoll doesn't take it (a file, or closed under us): counts as ready, the next read or write tells */
};

struct loop {
	int epoll_fd;
	int quit_value;
	bool quitting;
	struct slot *slots;
	size_t n_slots;
	int *changes;          /* numbers whose interest may differ from what epoll knows */
	size_t n_changes, cap_changes;
	struct loop_io **pending; /* ready in this round; NULL: removed since */
	size_t n_pending, cap_pending;
	size_t n_asking;       /* sources that aren't parked */
	size_t n_always;       /* of those that aren't parked */
	struct loop_timer **heap; /* running timers, the earliest first */
	size_t n_heap, cap_heap;
	struct deferred_list waiting; /* for the next round */
	struct deferred_list running; /* the round at hand */
};

/* For what leaves nothing to go on with: says so and ends the process with status 125. */
void loop_die(const char *what) __attribute__((noreturn));

/* loop-io.c */
void loop_io_wait(struct loop *loop, int timeout_ms); /* notes what is ready; -1: waits without end */
void loop_io_run(struct loop *loop);                  /* calls back for it */

/* loop-timer.c */
void loop_timer_run(struct loop *loop); /* calls those that are due */
int loop_timer_wait_ms(const struct loop *loop); /* until the earliest, rounded up: never early. -1: none runs */
