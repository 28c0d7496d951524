/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection of the box, from its first byte to its last. Every callback that reaches a flow makes one step and then
 * settles it: a flow that is over is freed there and nowhere else, so a step may end the flow and still touch it.
 */
#pragma once

#include "base/buf.h"
#include "gate/dial.h"
#include "gate/internal.h"
#include "net/http1.h"

#define FLOW_CHUNK (64u * 1024u)       /* most that is held in each direction once bytes move */
#define FLOW_UP_MAX (256u * 1024u)     /* a judged first flight, or a chunk framed anew */

/*
 * State       client → server                    server → client          timer
 * PROXY_HEAD  held: the proxy's request          –                        the head must come
 * RECORDING   not read                           –                        –
 * RESOLVING   not read                           –                        –  (c-ares has its own)
 * DIALLING    not read                           –                        –  (dial has its own)
 * INSPECTING  held until judged                  relayed                  –
 * TUNNEL      relayed                            relayed                  –
 * HTTP        one request, framed anew           relayed                  after bytes that follow the request
 * OPENING     held: TLS or HTTP, to be looked into  –                     –  (the interceptor has its own)
 * INTERCEPTED the interceptor has the socket
 * REFUSING    first bytes awaited: they say in which form to refuse       then in none
 * CLOSING     dropped                            what is held is sent     then cut
 */
enum flow_state {
	FLOW_PROXY_HEAD = 0,
	FLOW_RECORDING,
	FLOW_RESOLVING,
	FLOW_DIALLING,
	FLOW_INSPECTING,
	FLOW_TUNNEL,
	FLOW_HTTP,
	FLOW_OPENING,
	FLOW_INTERCEPTED,
	FLOW_REFUSING,
	FLOW_CLOSING,
	FLOW_NUM_STATES,
};

struct flow {
	struct gate *gate;
	struct flow *prev, *next;
	uint64_t id, start_ns;
	enum flow_state state;
	enum wire_entrance entrance;
	bool over;
	bool admitted;               /* holds a connection of the budget; its end will be recorded */
	int rule;                    /* whose budgets it uses; -1 before */
	bool clear;                  /* a tunnel whose bytes can be read: placeholders are looked for */
	bool inspect;                /* must be looked into: never relayed by this file */
	struct looking *looking;     /* in the clear: placeholders looked for so far; the interceptor's */
	struct guest *guest;         /* INTERCEPTED: the interceptor's side of it */
	bool forwards;               /* PROXY, absolute form: the held head is the request itself */
	bool answers_http;           /* the client waits for an HTTP answer of ours */
	struct gate_target target;
	struct verdict verdict;
	struct ip address;           /* dialled; family 0 before */

	int client_fd, server_fd;    /* server_fd is -1 before it is dialled and after it is over */
	struct loop_io *client_io, *server_io;
	struct loop_timer *timer;    /* NULL before the first use */
	struct recorder_ticket *ticket;
	struct resolver_lookup *lookup;
	struct dial *dial;

	struct buf head;             /* from the client, held until judged */
	struct buf up, down;         /* on their way, where the other side took less than was offered; empty: no memory */
	bool client_eof, server_eof; /* read to their end */
	bool up_shut, down_shut;     /* the end was passed on */
	bool up_broken;              /* the server takes no more */
	uint64_t bytes_up, bytes_down; /* moved to and from the server */

	char *detail;                /* a sentence for the record of its end; or NULL */
	const char *protocol;        /* found by inspection: "tls", "http", "tcp"; else NULL */
	bool encrypted_hello;
	struct http1_body body;
	struct http1_watch watch;
	bool websocket;              /* waits for 101 */
	bool extra;                  /* the client sent more than its request */
};

/* copy.c: moving bytes. Each may end the flow (over) or begin to close it. */
void copy_up(struct flow *f);    /* what is in `up` to the server; the end, when it is reached */
void copy_down(struct flow *f);  /* server to client */
void copy_tunnel(struct flow *f); /* client to server, raw */
void copy_request(struct flow *f); /* client to server, as the body of one HTTP request */
void copy_discard(struct flow *f); /* client to nowhere */
void copy_flush(struct flow *f); /* what is held for the client, as far as it goes */
void copy_last(struct flow *f);  /* what is held for the client, then our end; over when the client has ended too */
/* Reads into `head`, at most up to `max` bytes held. False when nothing new came. */
bool copy_hold(struct flow *f, size_t max);
/* Offers the body bytes p to the request's framing. */
void copy_body(struct flow *f, const uint8_t *p, size_t len);

/* flow.c */
/* After each step: the one place where a flow is freed. */
void flow_settle(struct flow *f);
/* OPENING → INTERCEPTED: the client's socket is the caller's from now on; f->head still holds what was read from it. */
int flow_surrender(struct flow *f);
/* Bytes of the client on their way in the clear. True: they carry a placeholder, and the flow was refused. */
bool flow_look(struct flow *f, const void *p, size_t len);
void flow_end(struct flow *f, enum reason reason);          /* at once */
void flow_close(struct flow *f, enum reason reason);        /* after what is held for the client was sent */
void flow_deny(struct flow *f, struct verdict v, const struct ip *address);
void flow_upgraded(struct flow *f, bool yes);               /* the server's final status is known */
void flow_set_timer(struct flow *f, uint64_t after_ns);
