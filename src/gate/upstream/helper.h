/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a credential helper: the supervisor starts it, we read what it writes, to its end, within a deadline. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "event/loop.h"

#define HELPER_DEADLINE_S 60u

struct helper_call;
/* What it wrote (wiped after the call), or NULL and a sentence. The call is over and freed. */
typedef void (*helper_fn)(void *ctx, const struct buf *output, const char *why);

struct helper_call *helper_call_new(struct loop *loop, uint64_t id, helper_fn fn, void *ctx);
struct helper_call *helper_call_free(struct helper_call *c); /* accepts NULL; fn isn't called */
uint64_t helper_call_id(const struct helper_call *c);
/* The supervisor's answer; takes the descriptor (-1: it wasn't started). */
void helper_call_started(struct helper_call *c, int fd);
