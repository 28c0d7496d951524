/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening TCP sockets on the box's loopback, many of them, that survive the exhaustion of descriptors: whoever connects
 * then is reset, and the loop doesn't spin on a socket that can't be accepted from.
 */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#include "base/addr.h"
#include "event/loop.h"

struct listeners; /* what they share */
struct listener;

/* `fd` is a fresh connection: non-blocking, close-on-exec, TCP_NODELAY; the callee owns it. The callee may close listeners,
 * this one included. */
typedef void (*listener_fn)(void *ctx, int fd);

struct listeners *listeners_new(struct loop *loop);
struct listeners *listeners_free(struct listeners *all); /* all listeners must be closed; accepts NULL; returns NULL */

/* 0 or -errno. */
int listener_open(struct listeners *all, const struct ip *ip, uint16_t port, listener_fn fn, void *ctx, struct listener **ret);
struct listener *listener_close(struct listener *l); /* accepts NULL; returns NULL */
uint16_t listener_port(const struct listener *l); /* the real one, when 0 was asked for (tests) */

/* A bound socket of the box's loopback, non-blocking and close-on-exec. Returns it or -errno. */
int listener_bind(const struct ip *ip, uint16_t port, int type);
/* Closes so that the other side sees a reset, not an orderly end: a refusal looks like a refusal. */
void listener_reset(int fd);
void listener_make_reset(int fd); /* the next close(2) will do so */
