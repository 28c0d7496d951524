/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two connections of HTTP and a relay between them, without sockets: client ⇄ server│relay│client ⇄ server, each link of either
 * version, bytes moved in pieces of any size.
 */
#pragma once

#include "net/http.h"

/* One direction of a link. */
struct rig_pipe { struct http_conn *from, *to; struct buf bytes; size_t split; uint64_t moved; bool ended; };
struct rig_link { struct http_conn *client, *server; struct rig_pipe up, down; };

/* Moves what is there; true when anything moved. */
bool rig_pipe_move(struct rig_pipe *p);
void rig_link_init(struct rig_link *l, struct http_conn *client, struct http_conn *server, size_t split);
bool rig_link_move(struct rig_link *l);
void rig_link_free(struct rig_link *l);

/* What one side of an exchange saw. */
struct rig_seen {
	unsigned heads, interim, closes;
	bool ended;                 /* by the head, or by on_end */
	enum http_fault fault;
	struct http_head head, trailers;
	uint64_t bytes, sum;        /* of the body: how many, and a checksum that depends on their order */
	char text[256];             /* its start */
};
void rig_seen_init(struct rig_seen *s);
void rig_seen_free(struct rig_seen *s);
uint64_t rig_sum(uint64_t sum, const uint8_t *p, size_t len);

/* The client: sends `body_len` bytes of a pattern, with a content-length or without, then trailers. */
struct rig_client {
	struct http_stream *stream;
	struct rig_seen seen;
	uint64_t to_send, sent, sum;
	bool ends;                  /* send_end after that (else leaves it open) */
	bool lazy;                  /* gives no credit by itself */
	uint64_t uncredited;
	const struct http_head *trailers;
};
extern const struct http_conn_ops rig_client_ops;
/* NULL + test failure when it can't be opened. The conn's ctx is of no use: each stream has its client. */
void rig_client_start(struct rig_client *c, struct http_conn *conn, const struct http_head *head, uint64_t body, bool ends);
void rig_client_push(struct rig_client *c);

/* The server: answers by path. Its ctx is a struct rig_server. */
/* `last`: what the newest request brought. */
struct rig_server { struct rig_seen last; struct http_stream *newest; unsigned requests, closes; bool lazy; struct http_stream *held; };
extern const struct http_conn_ops rig_server_ops;

/* The relay: the conn towards the client has these ops, with a struct rig_relay as ctx; the one towards the server likewise. */
struct rig_relay { struct http_conn *down, *up; unsigned exchanges; size_t most_held; };
extern const struct http_conn_ops rig_relay_down_ops, rig_relay_up_ops;

/* The whole chain. */
struct rig {
	struct rig_link first, second;
	struct rig_relay relay;
	struct rig_server server;
};
void rig_init(struct rig *r, enum http_version first, enum http_version second, size_t split);
void rig_run(struct rig *r); /* until nothing moves */
void rig_free(struct rig *r);

void rig_request(struct http_head *h, const char *method, const char *path);
