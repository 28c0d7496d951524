/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connects to one of a few checked addresses: in order, the next one when the one before failed or a quarter of a second
 * passed; the first that answers wins. Only addresses given here are ever dialled.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "event/loop.h"

#define DIAL_ADDRESSES_MAX 8u

struct dial;
/* fd is a connected non-blocking socket (the callee's) and *ip whom it reaches; or fd is -1 and sysno says why. The dial is
 * over and freed. */
typedef void (*dial_fn)(void *ctx, int fd, const struct ip *ip, int sysno);

/* Never calls fn before it returns. */
struct dial *dial_start(struct loop *loop, const struct ip *addresses, size_t n, uint16_t port, dial_fn fn, void *ctx);
struct dial *dial_cancel(struct dial *d); /* accepts NULL; returns NULL */
