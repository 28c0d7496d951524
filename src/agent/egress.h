/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways out of the box: listening sockets on the synthetic addresses of allowed names, on literal addresses that the
 * policy names, and on the proxy port. Each accepted connection becomes a stream on the pipe; nothing is parsed here, the
 * host's gate reads and judges. When the host resets a stream, the program's connection is reset.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/listener.h"
#include "agent/names.h"
#include "base/err.h"
#include "event/loop.h"
#include "wire/messages.h"
#include "wire/mux.h"

struct egress;

struct egress *egress_new(struct loop *loop, struct mux *mux, struct listeners *listeners);
struct egress *egress_free(struct egress *e); /* resets all connections; accepts NULL; returns NULL */
/* Opens the proxy port and the literal addresses. A box whose entrances can't be opened must not run: -1. */
int egress_start(struct egress *e, const struct wire_config *config, struct err *err);

/* An allowed name: listens on its addresses at these ports, then returns its entry; so a program that has the address can
 * connect. NULL when a ceiling or the box itself (a program already listening there) is in the way. The entry is valid until
 * the next call. */
const struct name *egress_publish(struct egress *e, const struct hostname *host, const uint16_t *ports, unsigned n_ports);
/* No longer allowed: stops listening. Connections that stand are the host's to cut. */
void egress_withdraw(struct egress *e, const struct hostname *host);
const struct names *egress_names(const struct egress *e);
/* Whether the box can do IPv6 at all. */
bool egress_has_v6(const struct egress *e);
