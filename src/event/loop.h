/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop, on epoll. One loop a process, single-threaded; not to be run from inside a callback. Callbacks may add and
 * remove any source, their own included; several sources may watch one descriptor. Children are watched by pidfd (readable
 * when the child ended), signals by signalfd: both are plain descriptors here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct loop;
struct loop_io;
struct loop_timer;

enum { LOOP_READ = 1, LOOP_WRITE = 2 }; /* interest and readiness bits; errors and hang-ups show up as both asked-for bits */

typedef void (*loop_io_fn)(void *ctx, int fd, int ready);
typedef void (*loop_timer_fn)(void *ctx);

/* Never NULL: without a loop the process ends with status 125. Also ignores SIGPIPE, process-wide: a peer that closes its end
 * is an error code (EPIPE) here, never a death. child_start gives children the default back. */
struct loop *loop_new(void);
void loop_free(struct loop *loop); /* accepts NULL; remove all sources before */
/* Runs until loop_quit or until nothing is left that could ever happen (parked sources and stopped timers don't count). Returns
 * the value given to loop_quit, else 0. */
int loop_run(struct loop *loop);
/* Handles what is ready now without waiting; for tests and for teardown paths. */
void loop_run_once(struct loop *loop, bool wait);
void loop_quit(struct loop *loop, int value);

/* The descriptor stays the caller's: remove the source before closing it. `events` may be 0 (parked). */
struct loop_io *loop_io_add(struct loop *loop, int fd, int events, loop_io_fn fn, void *ctx);
void loop_io_set(struct loop_io *io, int events);
struct loop_io *loop_io_remove(struct loop_io *io); /* accepts NULL; returns NULL */

/* A timer is created stopped. */
struct loop_timer *loop_timer_new(struct loop *loop, loop_timer_fn fn, void *ctx);
void loop_timer_set(struct loop_timer *t, uint64_t after_ns, uint64_t repeat_ns); /* (re)starts; repeat 0 = once */
void loop_timer_stop(struct loop_timer *t);
struct loop_timer *loop_timer_free(struct loop_timer *t); /* accepts NULL; returns NULL */

/* Calls fn once, from the loop, after the callbacks of the events at hand and before the loop waits again. */
void loop_defer(struct loop *loop, loop_timer_fn fn, void *ctx);
/* Forgets the deferred calls of (fn, ctx) that were not made yet: to be used before ctx is freed. */
void loop_defer_cancel(struct loop *loop, loop_timer_fn fn, void *ctx);
/* Blocks the given signals and returns a signalfd (close-on-exec, non-blocking), or -1. List ends with 0. */
int loop_signalfd(struct err *err, int first_signal, ...);
