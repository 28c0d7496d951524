/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections of DNS over TCP (RFC 7766): a length, a message, and so on. One question of a connection is worked on at a
 * time. When there are too many connections, the one that has been silent for longest is reset.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "event/loop.h"

#define DNS_TCP_MAX 64u

struct dns_tcp;
struct dns_tcp_conn;

/* One whole message has come; `data` is valid during the call. No other comes from this connection until dns_tcp_reply. */
typedef void (*dns_tcp_fn)(void *ctx, struct dns_tcp_conn *conn, uint64_t serial, const uint8_t *data, size_t len);

struct dns_tcp *dns_tcp_new(struct loop *loop, dns_tcp_fn fn, void *ctx);
struct dns_tcp *dns_tcp_free(struct dns_tcp *t); /* accepts NULL; returns NULL */
void dns_tcp_accepted(void *dns_tcp, int fd); /* a listener_fn */
/* Nothing happens when the connection that had this serial is gone. `len` 0: no answer, the connection is closed. */
void dns_tcp_reply(struct dns_tcp *t, struct dns_tcp_conn *conn, uint64_t serial, const uint8_t *data, size_t len);
