/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks into connections: the front half's part that speaks TLS and HTTP with the box. It holds the sandbox's own certificate authority and the placeholders, and no
 * secret. docs/gate.md tells the way of a request.
 *
 *   flow (judged, recorded) ─ begin ─► OPEN to the upstream half: resolves, dials, verifies the server
 *        └─► TLS with the box, a leaf for that host ─► HTTP/1 or HTTP/2 ─► each request: judge → record → relay to the upstream half
 * A server that can't prove its name is refused before the box sees any certificate.
 */
#pragma once

#include "gate/interceptor.h"

extern const struct interceptor_ops intercept_ops;

/* Before confinement: prepares the libraries. The descriptor of the link (GATE_LINK_FD) is used at CONFIG. */
int intercept_prepare(int link_fd, struct err *err);
