/* SPDX-License-Identifier: Apache-2.0 */
/* A heap of the running timers. */
#include <limits.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "event/loop-internal.h"

struct loop_timer {
	struct loop *loop;
	loop_timer_fn fn;
	void *ctx;
	uint64_t at_ns, repeat_ns;
	size_t place; /* in the heap, counted from 1; 0: stopped */
};

static void put(struct loop *loop, size_t place, struct loop_timer *t)
{
	loop->heap[place - 1] = t;
	t->place = place;
}

/* Places `t` at `place` or where its time belongs above or below. */
static void settle(struct loop *loop, size_t place, struct loop_timer *t)
{
	for (; place > 1 && loop->heap[place / 2 - 1]->at_ns > t->at_ns; place /= 2)
		put(loop, place, loop->heap[place / 2 - 1]);
	for (size_t below; (below = place * 2) <= loop->n_heap; place = below) {
		below += below < loop->n_heap && loop->heap[below]->at_ns < loop->heap[below - 1]->at_ns;
		if (loop->heap[below - 1]->at_ns >= t->at_ns)
			break;
		put(loop, place, loop->heap[below - 1]);
	}
	put(loop, place, t);
}

struct loop_timer *loop_timer_new(struct loop *loop, loop_timer_fn fn, void *ctx)
{
	struct loop_timer *t = mem_alloc(sizeof(*t));
	*t = (struct loop_timer){ .loop = loop, .fn = fn, .ctx = ctx };
	return t;
}

void loop_timer_stop(struct loop_timer *t)
{
	struct loop *loop = t->loop;
	size_t place = t->place;
	if (place == 0)
		return;
	t->place = 0;
	struct loop_timer *last = loop->heap[--loop->n_heap];
	if (last != t)
		settle(loop, place, last);
}

static void start(struct loop_timer *t, uint64_t at_ns)
{
	struct loop *loop = t->loop;
	if (loop->n_heap == loop->cap_heap) {
		loop->cap_heap = loop->cap_heap ? loop->cap_heap * 2 : 8;
		loop->heap = mem_grow_array(loop->heap, loop->cap_heap, sizeof(struct loop_timer *));
	}
	t->at_ns = at_ns;
	settle(loop, ++loop->n_heap, t);
}

void loop_timer_set(struct loop_timer *t, uint64_t after_ns, uint64_t repeat_ns)
{
	uint64_t now = time_monotonic_ns();
	loop_timer_stop(t);
	t->repeat_ns = repeat_ns;
	start(t, after_ns < UINT64_MAX - now ? now + after_ns : UINT64_MAX);
}

struct loop_timer *loop_timer_free(struct loop_timer *t)
{
	if (t) {
		loop_timer_stop(t);
		free(t);
	}
	return NULL;
}

/* Those that are due now; one that is set anew by a callback is later. */
void loop_timer_run(struct loop *loop)
{
	uint64_t now = loop->n_heap > 0 ? time_monotonic_ns() : 0;
	while (loop->n_heap > 0 && loop->heap[0]->at_ns <= now) {
		struct loop_timer *t = loop->heap[0];
		uint64_t next = t->at_ns + t->repeat_ns;
		loop_timer_stop(t);
		if (t->repeat_ns > 0)
			start(t, next > now ? next : now + 1);
		t->fn(t->ctx);
		/* `t` may be gone now. */
	}
}

int loop_timer_wait_ms(const struct loop *loop)
{
	if (loop->n_heap == 0)
		return -1;
	uint64_t now = time_monotonic_ns(), at = loop->heap[0]->at_ns;
	uint64_t ms = at > now ? (at - now - 1) / NS_PER_MS + 1 : 0;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}
