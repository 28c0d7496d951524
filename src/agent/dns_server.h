/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The box's DNS: UDP and TCP on its loopback. No question leaves the box but as NAME_QUERY to the host, which judges it; no
 * name is resolved for the box at all: an allowed one has synthetic addresses (names.h).
 *
 *   allowed name      A, AAAA: its addresses; every other type: NOERROR without records
 *   denied name       NXDOMAIN
 *   host can't say    SERVFAIL
 *   localhost         127.0.0.1 and ::1, not asked; also any name below it (RFC 6761, 6.3)
 *   reverse           the name of a synthetic address; else NXDOMAIN
 *   no host name      with underscores (SRV and the like: policy can't name it): NXDOMAIN; else REFUSED
 */
#pragma once

#include "agent/egress.h"
#include "base/err.h"
#include "event/loop.h"
#include "wire/messages.h"
#include "wire/mux.h"

struct dns_server;

struct dns_server *dns_server_new(struct loop *loop, struct mux *mux, struct egress *egress, struct listeners *listeners,
	uint16_t port, struct err *err);
struct dns_server *dns_server_free(struct dns_server *s); /* accepts NULL; returns NULL */
void dns_server_answer(struct dns_server *s, const struct wire_name_answer *m);
