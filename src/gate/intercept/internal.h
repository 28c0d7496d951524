/* SPDX-License-Identifier: Apache-2.0 */
/* The interceptor's parts as they see one another: one interceptor a gate, one guest a connection of the box, one exchange a request. */
#pragma once

#include "crypto/digest.h"
#include "crypto/mint.h"
#include "gate/facts.h"
#include "gate/flow.h"
#include "gate/intercept/intercept.h"
#include "gate/relay.h"
#include "net/channel.h"
#include "policy/request.h"
#include "secrets/scan.h"

struct exchange;

struct interceptor {
	struct gate *gate;
	struct mint *mint;
	struct channel *link;           /* HTTP/2 client towards the upstream half */
	struct http_conn *link_http;
	struct scan_set *placeholders;  /* NULL: the box holds none */
	unsigned n_secrets;
	char (*secrets)[SECRET_NAME_MAX + 1]; /* by the id of a find */
};

/*
 * An inspected connection.
 *   OPENING    the upstream half connects and verifies; the client's first bytes wait in flow->head
 *   SECURING   the client's own TLS handshake, with a leaf made for the host
 *   SERVING    requests, one exchange each
 *   ENDING     the channel finishes what is on its way
 */
struct guest {
	struct interceptor *it;
	struct flow *flow;
	bool tls, ending, upstream_gone;
	struct http_stream *open;       /* stands at the link for this connection; NULL once gone */
	struct channel *channel;        /* NULL before SECURING */
	struct http_conn *http;         /* NULL before SERVING */
	struct exchange *exchanges;
	uint64_t n_requests;
};

struct exchange {
	struct guest *guest;            /* NULL once the connection is gone: only the streams' ends are awaited */
	struct interceptor *it;
	struct exchange *prev, *next;
	uint64_t id, start_ns;
	struct relay *relay;
	struct http_head head;          /* as it goes to the upstream half; kept to be judged again */
	bool end;                       /* it has no body */
	int rule;
	bool counted, told;             /* `request.end` follows; its refusal was recorded */
	uint64_t bytes_up, bytes_down;
	struct recorder_ticket *ticket;
	struct scan_stream *body;       /* looks for placeholders; NULL: none to look for */
	uint64_t canaries;              /* by id: each is told once */
	bool canary;                    /* one was found that policy refuses */
	int body_secret;                /* the one that may stand in the body; -1 */
	enum reason cut;                /* for what the next byte is refused */
	struct pin_check {
		struct pin *pins;           /* copies; NULL: nothing is pinned */
		size_t n;
		struct digest *digests[DIGEST_KINDS];
		struct buf tail;            /* the end of the body waits for the verdict */
	} pinned;
};

/* intercept.c */
/* A placeholder was found where it has no business: recorded, told, and what the policy asks for. True: refuse what carries it. */
bool intercept_canary(struct interceptor *it, const struct gate_target *t, uint64_t flow, unsigned id, const char *where, const char *spelling);
void intercept_kick(void *it);      /* the link was given something */

/* guest.c */
void guest_begin(struct interceptor *it, struct flow *f, bool tls);
void guest_drop(struct flow *f);
void guest_policy_changed(struct interceptor *it, struct flow *f, uint64_t *ret_cut);
void guest_kick(void *guest);       /* its channel was given something */
/* The answer to OPEN, and its end. */
void guest_opened(struct guest *g, const struct http_head *head);
void guest_upstream_ended(struct guest *g);
void guest_exchange_over(struct guest *g);

/* exchange.c */
void exchange_begin(struct guest *g, struct http_stream *s, const struct http_head *head, bool end);
/* Judges it again by the gate's policy. True: it was cut. */
bool exchange_judge_again(struct exchange *x);
void exchange_detach_all(struct guest *g); /* the guest goes; each ends with its streams */

/* answer.c */
/* x may be NULL: the request could not be read. */
void answer_refusal(struct guest *g, enum reason reason, const struct exchange *x, struct http_head *head, struct buf *body);

/* canary.c */
/* Looks for placeholders in a head, but for the bound place. True: refuse. */
bool canary_in_head(struct exchange *x, const struct secret_binding *bound);
/* The same in the body, chunk by chunk. */
void canary_body_begin(struct exchange *x, const struct secret_binding *bound);
bool canary_in_trailers(struct exchange *x, const struct http_head *trailers);
bool canary_in_body(struct exchange *x, const uint8_t *p, size_t len);

/* pinned.c */
int pinned_begin(struct pin_check *c, const struct pin *pins, size_t n);
void pinned_done(struct pin_check *c);
int pinned_data(struct pin_check *c, const uint8_t *p, size_t len, struct buf *out);
bool pinned_end(struct pin_check *c, struct buf *out); /* false: not what is pinned; the rest was kept back */
