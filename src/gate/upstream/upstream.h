/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The upstream half of the gate: it alone reaches servers, and it alone holds secrets.
 *
 *   bulkhead-inspect ──link──► upflow (OPEN: a place) ──► origin (a verified connection), several if need be
 *                      │                                        ▲
 *                      └─────► exchange (a request): judge → value → record → put in ─┘
 *                      ◄────── answer: unpacked, scrubbed of every secret ◄───────────┘
 * upstream-link.h and upstream-protocol.h are what it is told; the front half is believed in nothing that matters: place, request, and whether a secret
 * may go there are judged here again.
 */
#pragma once

#include "crypto/tls.h"
#include "gate/gate.h"

struct upstream;

/* What must be read from the system before confinement. */
struct upstream_system {
	struct gate_system gate;
	struct tls_roots *roots;      /* taken over by upstream_new */
};

int upstream_system_read(struct upstream_system *ret, struct err *err);
/* The sockets are taken over. Reads the resolver's configuration files; nothing later touches a path. The loop ends (loop_quit) with 0 when the supervisor
 * or the front half closed its end, with 1 when something broke: upstream_failure says what. */
struct upstream *upstream_new(struct loop *loop, int control_fd, int audit_fd, int link_fd, struct upstream_system *system, struct err *err);
struct upstream *upstream_free(struct upstream *u); /* accepts NULL */
const struct err *upstream_failure(const struct upstream *u);
