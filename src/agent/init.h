/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The duties of a pid 1: collecting every child and orphan, and ending all of them.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "event/loop.h"

struct reaper;

/* Called for every process that was collected, known or not. Must not free the reaper. */
typedef void (*reaper_fn)(void *ctx, pid_t pid, int wait_status);

struct reaper *reaper_new(struct loop *loop, reaper_fn fn, void *ctx, struct err *err);
struct reaper *reaper_free(struct reaper *r); /* accepts NULL; returns NULL */
/* Collects what has ended; true when no child at all is left then. */
bool reaper_collect(struct reaper *r);

/* No signal may end or stop the agent, and programs in the box can send any. The kernel keeps them from a pid 1 without
 * handlers; what is left is SIGPIPE, which is an error code here. */
void init_ignore_signals(void);
/* SIGKILL to every process in the box. Outside a box (not pid 1: tests) nothing, since there "every process" is the
 * machine's. */
void init_kill_all(void);
