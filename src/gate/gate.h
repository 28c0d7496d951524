/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate: everything a sandbox sends outside passes here, or doesn't. docs/gate.md is the theory of operation.
 *
 *   supervisor ──control──► gate ──audit──► auditor
 *                            │ one flow for each connection of the box (flow.h)
 *                            ▼
 *        target → verdict → record → resolve → check the address → dial → inspect → copy
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "event/loop.h"
#include "gate/hosts.h"

#define GATE_FLOWS_MAX 20000u          /* at once, admitted or not */
#define GATE_DENIALS_SINGLE_MAX 2000u  /* recorded one by one; later ones are summed up by reason */
#define GATE_HOST_ADDRESSES_MAX 1024u

struct gate;

/* What must be read from the system before confinement. */
struct gate_system {
	struct hosts *hosts;          /* taken over by gate_new */
	struct ip *host_addresses;    /* taken over by gate_new */
	size_t n_host_addresses;
};

/* Reads /etc/hosts and the host's own addresses. */
int gate_system_read(struct gate_system *ret, struct err *err);

/* Both sockets are taken over (and made non-blocking). Reads the resolver's configuration files; nothing later touches a file.
 * The loop ends (loop_quit) with 0 when the supervisor closed its end, with 1 after a protocol error or when the start failed:
 * gate_failure says why. */
/* `ops` looks into connections; NULL: this gate can't, and a policy that asks for it is refused. */
struct interceptor_ops;
struct gate *gate_new(struct loop *loop, int control_fd, int audit_fd, struct gate_system *system, const struct interceptor_ops *ops,
	struct err *err);
struct gate *gate_free(struct gate *g); /* accepts NULL. Flows are cut, callbacks not made */
const struct err *gate_failure(const struct gate *g);
