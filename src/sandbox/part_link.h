/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's end of the socket to a helper program: whole messages, some with descriptors. Sends at once when it can, else queues, bounded; reads a
 * bounded number of messages for each turn of the loop, so that a flood from one can't starve the rest.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "event/loop.h"

#define PART_MESSAGE_MAX (64u * 1024u)
#define PART_MESSAGE_FDS_MAX 2u

struct part_link;

struct part_link_ops {
	/* -1 + err: it broke the protocol; nothing more of this turn is read. */
	int (*on_message)(void *ctx, const void *p, size_t n, struct err *err);
	void (*on_broken)(void *ctx, const struct err *err);
	/* It is gone, or sent what can't be a message. Called once; the link takes no more messages. */
	void (*on_lost)(void *ctx, const char *how);
};

/* Takes the descriptor. */
struct part_link *part_link_new(struct loop *loop, int fd, const struct part_link_ops *ops, void *ctx);
/* Takes the descriptors (n_fds ≤ PART_MESSAGE_FDS_MAX), also on failure. -1: gone, or its queue is full. */
int part_link_post(struct part_link *l, const struct buf *b, const int *fds, size_t n_fds, struct err *err);
struct part_link *part_link_free(struct part_link *l); /* accepts NULL */
